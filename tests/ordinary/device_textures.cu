// Texture objects.
// kernels: sample
#include <vector>

__global__ void sample(cudaTextureObject_t texture, float *out, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width) out[i] = tex2D<float>(texture, i + 0.5f, 0.5f);
}

cudaTextureObject_t made(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    return texture;
}
