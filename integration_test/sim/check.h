// Helpers of the programs in this folder: CHECK ends a function with 1 when CUDA fails, runAll runs
// functions until one fails and prints the verdict.
#pragma once
#include <cstdio>
#include <cuda_runtime.h>
#include <initializer_list>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    cudaError_t error = (call);                                                                    \
    if (error != cudaSuccess) {                                                                    \
      std::printf("%s: %s\n", #call, cudaGetErrorString(error));                                   \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

inline int runAll(std::initializer_list<int (*)()> functions) {
  int code = 0, index = 0, failed = -1;
  for (auto *function : functions) {
    if (code == 0 && (code = function()) != 0)
      failed = index;
    ++index;
  }
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  if (code)
    std::printf("%s: wrong, function %d says %d\n", device.name, failed, code);
  else
    std::printf("%s: all equal\n", device.name);
  return code;
}
