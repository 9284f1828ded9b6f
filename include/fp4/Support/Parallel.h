//===- Parallel.h - Independent pieces of work on the host's threads ------===//
#pragma once

#include "fp4/Support/Threads.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace fp4 {

/// Runs body(i) once for each i < items, in any order, on `threads` threads (0: all of the host).
/// The calling thread is one of them, and the only one if the system gives no other.
template <typename Body> void parallelFor(uint64_t items, unsigned threads, const Body &body) {
  std::atomic<uint64_t> next = 0;
  onThreads(static_cast<unsigned>(std::min<uint64_t>(threadCount(threads), items)), [&] {
    for (uint64_t i; (i = next.fetch_add(1)) < items;)
      body(i);
  });
}

} // namespace fp4
