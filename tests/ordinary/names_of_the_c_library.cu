// RAND_MAX as a value in device code.
// kernels: k
#include <cstdlib>
#include <vector>
__global__ void k(unsigned *s, float *p) { *s = *s * 1103515245 + 12345; *p = (*s >> 1) / (float)RAND_MAX; }
void b(unsigned *s, float *p) { std::vector<int> v; k<<<1, 1>>>(s, p); }
