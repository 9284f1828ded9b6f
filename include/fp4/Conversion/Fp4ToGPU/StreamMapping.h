//===- StreamMapping.h - Which thread of a streaming kernel does what -----===//
//
// Kernels that stream over blocks have a one-shot grid: `threads` threads per CTA,
// `blocksPerThread` blocks per thread, `threads` apart from each other, so that a warp's accesses
// are adjacent and all loads of a thread are in flight before the first is used.
//
// The defaults are those of hand-written kernels, which were fastest on an H200 with 16 elements
// per thread, or with two blocks where each is transformed. With two blocks the tensor's scale
// costs half per element: 16.3 instead of 17.4 instructions. docs/Performance.md has measurements
// of the compiler's own kernels.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4 {

struct StreamMapping {
  int64_t threads = 256;
  int64_t blocksPerThread = 1;
  /// CTAs that are to be resident on a multiprocessor, which bounds registers; 0 says nothing.
  int64_t residentCtas = 0;

  int64_t blocksPerCta() const { return threads * blocksPerThread; }
};

/// The options that measurements vary; zeros keep the default.
struct StreamOptions {
  int64_t threads = 0, blocksPerThread = 0, residentCtas = 0;
  /// Accesses tell the caches that each line is used once.
  bool cacheHints = false;
  /// Loads and stores as they are, and a sum of the loaded bits in place of the arithmetic: the
  /// twin that benchmarks time beside a kernel. Results are garbage.
  bool noArithmetic = false;

  /// `transforms`: each thread transforms its blocks by itself.
  StreamMapping mapping(bool transforms = false) const {
    StreamMapping chosen = transforms ? StreamMapping{128, 2} : StreamMapping{};
    if (threads > 0)
      chosen.threads = threads;
    if (blocksPerThread > 0)
      chosen.blocksPerThread = blocksPerThread;
    if (residentCtas > 0)
      chosen.residentCtas = residentCtas;
    return chosen;
  }
};

} // namespace fp4
