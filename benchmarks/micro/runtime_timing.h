// Common parts of programs of the runtime API: checked calls, and the clock of an SM.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

inline void check(cudaError_t error, const char *file, int line) {
  if (!error)
    return;
  fprintf(stderr, "%s:%d: %s\n", file, line, cudaGetErrorString(error));
  exit(1);
}
#define CHECK(call) check(call, __FILE__, __LINE__)

__device__ __forceinline__ unsigned long long clk() {
  unsigned long long c;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(c)::"memory");
  return c;
}
