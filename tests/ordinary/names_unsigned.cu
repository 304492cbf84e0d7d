// Short names of unsigned types.
// kernels: bits
__global__ void bits(uint *x, ushort *y, ulong *z) {
    uint i = threadIdx.x;
    x[i] = (uint)(z[i] >> 32) ^ y[i];
}
