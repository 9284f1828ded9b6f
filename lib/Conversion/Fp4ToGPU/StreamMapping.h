//===- StreamMapping.h - Which thread of a streaming kernel does what -----===//
//
// Kernels that stream over blocks have a one-shot grid: `threads` threads per CTA,
// `blocksPerThread` blocks per thread, `threads` apart from each other, so that a warp's accesses
// are adjacent and all loads of a thread are in flight before the first is used. The numbers are
// measurements on an H200; docs/Performance.md has the table.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4 {

struct StreamMapping {
  int64_t threads = 256;
  int64_t blocksPerThread = 1;
  /// Loads and stores as they are, and a sum of the loaded bits in place of the arithmetic: the
  /// twin that benchmarks time beside a kernel. Results are garbage.
  bool noArithmetic = false;

  int64_t blocksPerCta() const { return threads * blocksPerThread; }
};

} // namespace fp4
