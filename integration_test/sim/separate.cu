// One half of a program of two files, linked on the device (nvcc -rdc=true); separate_part.cu is the other.
#include "separate.h"
#include <cstdio>

__global__ void use(int *out) { out[threadIdx.x] = twice(int(threadIdx.x)) + offset + inlined(1); }

int main() {
  int *device, host[32];
  cudaMalloc(&device, sizeof host);
  use<<<1, 32>>>(device);
  cudaError_t error = cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  const bool right = error == cudaSuccess && host[5] == 10 + 7 + 2;
  std::printf("%s\n", right ? "all equal" : cudaGetErrorString(error));
  return !right;
}
