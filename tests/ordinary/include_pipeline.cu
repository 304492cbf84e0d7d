// CUDA's header of pipelines, which has integers of its own for NVRTC.
// kernels: stage, count<float>
#include <cuda_pipeline.h>
#include <cstdint>
#include <vector>
__global__ void stage(const float *in, float *out, uint32_t n) {
  __shared__ float tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = tile[63 - threadIdx.x];
}
template <class T> __global__ void count(T *p, uint32_t *n) { n[threadIdx.x] = p[threadIdx.x] > 0; }
void run(std::vector<float> &v, float *p, uint32_t *n) {
  stage<<<1, 64>>>(p, p, v.size());
  count<<<1, 64>>>(p, n);
}
