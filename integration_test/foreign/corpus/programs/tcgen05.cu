// A host for the kernels of gau-nernst/learn-cuda, 02e_matmul_sm100: bf16 products written by hand with tcgen05, from the first
// that works (v0) to persistent pairs of CTAs (v7). FUNCTION names one of them. Sums are exact: every element must be right.
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <vector>

void FUNCTION(const nv_bfloat16 *a, const nv_bfloat16 *b, nv_bfloat16 *c, int m, int n, int k);

int main() {
  const int m = 512, n = 512, k = 512;
  std::vector<nv_bfloat16> a(m * k), b(n * k), c(m * n);
  unsigned state = 7;
  for (auto *matrix : {&a, &b})
    for (nv_bfloat16 &x : *matrix) {
      state = state * 1664525u + 1013904223u;
      x = __float2bfloat16(static_cast<float>(static_cast<int>(state >> 28) - 8) / 4);
    }
  nv_bfloat16 *deviceA, *deviceB, *deviceC;
  if (cudaMalloc(&deviceA, m * k * 2) || cudaMalloc(&deviceB, n * k * 2) || cudaMalloc(&deviceC, m * n * 2))
    return 3;
  cudaMemcpy(deviceA, a.data(), m * k * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceB, b.data(), n * k * 2, cudaMemcpyHostToDevice);
  FUNCTION(deviceA, deviceB, deviceC, m, n, k);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(c.data(), deviceC, m * n * 2, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += __bfloat162float(a[i * k + l]) * __bfloat162float(b[j * k + l]);
      wrong += __bfloat162float(c[i * n + j]) != __bfloat162float(__float2bfloat16(sum));
    }
  std::printf("%s, %d of %d wrong\n", cudaGetErrorString(error), wrong, m * n);
  return error || wrong ? 1 : 0;
}
