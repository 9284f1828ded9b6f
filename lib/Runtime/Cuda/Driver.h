//===- Driver.h - libcuda, loaded on first use ----------------------------===//
//
// One table of function pointers, filled by dlopen and dlsym when the first CudaDevice is opened.
// The tools therefore start on machines without a driver and report what is missing only when a GPU
// is requested.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DriverTypes.h"
#include "fp4/Support/Error.h"

namespace fp4::rt::cuda {

struct Driver {
#define X(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  FP4_CUDA_CALLS(X)
#undef X
  int version = 0; ///< 13000 for CUDA 13.0

  /// The loaded and initialized driver, or why there is none. Loads once per process.
  static Expected<const Driver *> get();
};

/// Turns a driver result into a Status: "cuMemAlloc of x failed: CUDA_ERROR_... (...)", with a
/// hint. `doing` completes the sentence: "allocating 16 bytes".
Status check(const Driver &driver, Result result, const char *call, const std::string &doing);

} // namespace fp4::rt::cuda
