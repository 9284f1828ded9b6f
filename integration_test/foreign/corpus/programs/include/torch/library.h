// The part of PyTorch that learn-cuda's kernels use: TORCH_CHECK, and headers that come with it.
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <tuple>
#define TORCH_CHECK(condition, ...)                                                                \
  ((condition) ? (void)0 : (std::puts(#__VA_ARGS__), std::exit(1)))
