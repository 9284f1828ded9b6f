// Programs that are wrong, one per argument: fp4-sim run must say why and end with 5.
#include <cassert>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__global__ void beyond(int *out) { out[threadIdx.x + 1] = 1; }
__global__ void asserted(const int *in) { assert(in[0] == 7 && "seven"); }
__global__ void stuck(int *out) {
  __shared__ int value;
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");
    value = 1;
  }
  __syncthreads();
  out[threadIdx.x] = value;
}
__global__ void race(int *out) {
  __shared__ int value[64];
  value[threadIdx.x] = 0;
  __syncthreads();
  value[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = value[63 - threadIdx.x]; // __syncthreads is missing
}
__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursive(int *out) { out[threadIdx.x] = fibonacci(out[threadIdx.x] & 7); }

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int *memory;
  cudaMalloc(&memory, 64 * sizeof(int));
  cudaMemset(memory, 3, 64 * sizeof(int));
  if (!std::strcmp(mode, "beyond"))
    beyond<<<1, 64>>>(memory);
  if (!std::strcmp(mode, "assert"))
    asserted<<<1, 1>>>(memory);
  if (!std::strcmp(mode, "stuck"))
    stuck<<<1, 64>>>(memory);
  if (!std::strcmp(mode, "race"))
    race<<<1, 64>>>(memory);
  if (!std::strcmp(mode, "recursive"))
    recursive<<<1, 64>>>(memory);
  cudaError_t error = cudaDeviceSynchronize();
  std::printf("the program sees: %s\n", cudaGetErrorName(error));
  return 0;
}
