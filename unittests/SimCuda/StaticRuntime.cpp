//===- StaticRuntime.cpp - Stands for libcudart_static.a ------------------===//
//
// Every function of the runtime, linked into a program: should one of them run, the program fails.
// The section is that by which a program of nvcc is known.
//
//===----------------------------------------------------------------------===//

#define FP4_NAME(name)                                                                             \
  extern "C" __attribute__((aligned(16), noinline)) int name() { return 999; }
#include "../../lib/SimCuda/Host/CudartNames.def"
#undef FP4_NAME

// As in real programs, whose string tables have "cudaMalloc" as the end of another name.
extern "C" int __wrapped_cudaLaunchKernel() { return 999; }

__attribute__((section(".nv_fatbin"), used)) static const int fatbin = 0;
// The runtime has the names of its functions among its data.
__attribute__((used)) static const char *const names[] = {"cudaMalloc", "cudaLaunchKernel"};
