// cutlass_launch.h: what libraries of CUTLASS' kernels export besides their peer_create, which makes a Launchable.
//
//   peer_create(kind, m, n, k, groups, a, b, sfa, sfb, d)   an object, or null
//   peer_run(object, stream)                                 0 if it was launched
//   peer_error()                                             why one of them failed
//
// All pointers are of the device. One source of a library includes this.
#pragma once
#include <string>

#include "cutlass/cutlass.h"

inline thread_local std::string problem;

struct Launchable {
  virtual ~Launchable() = default;
  virtual cutlass::Status run(cudaStream_t stream) = 0;
};

/// A GEMM with alpha 1 and beta 0.
template <class Gemm>
struct Instance : Launchable {
  Gemm gemm;

  bool initialize(typename Gemm::Arguments arguments) {
    arguments.epilogue.thread.alpha = 1.0f;
    arguments.epilogue.thread.beta = 0.0f;
    void *workspace = nullptr;
    size_t bytes = Gemm::get_workspace_size(arguments);
    if (bytes && cudaMalloc(&workspace, bytes) != cudaSuccess)
      return problem = "no memory for a workspace", false;
    cutlass::Status status = gemm.can_implement(arguments);
    if (status == cutlass::Status::kSuccess)
      status = gemm.initialize(arguments, workspace);
    if (status != cutlass::Status::kSuccess)
      problem = cutlassGetStatusString(status);
    return status == cutlass::Status::kSuccess;
  }

  cutlass::Status run(cudaStream_t stream) override { return gemm.run(stream); }
};

extern "C" int peer_run(void *product, void *stream) {
  cutlass::Status status = static_cast<Launchable *>(product)->run(static_cast<cudaStream_t>(stream));
  if (status != cutlass::Status::kSuccess)
    problem = cutlassGetStatusString(status);
  return status != cutlass::Status::kSuccess;
}

extern "C" const char *peer_error() { return problem.c_str(); }
