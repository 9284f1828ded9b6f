//===- Parallel.h - Independent pieces of work on the host's threads ------===//
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace fp4 {

/// Starts up to `count` threads that run `work`. The operating system may refuse a thread (a limit
/// on processes): then fewer run, and the caller does the rest. Join what is returned.
template <typename Work> std::vector<std::thread> startThreads(unsigned count, const Work &work) {
  std::vector<std::thread> threads;
  try {
    while (threads.size() < count)
      threads.emplace_back(work);
  } catch (const std::system_error &) {
  }
  return threads;
}

/// Runs body(i) once for each i < items, in any order, on `threads` threads (0: all of the host).
/// The calling thread is one of them. body must not throw.
template <typename Body> void parallelFor(uint64_t items, unsigned threads, const Body &body) {
  std::atomic<uint64_t> next = 0;
  const auto work = [&] {
    for (uint64_t i; (i = next.fetch_add(1)) < items;)
      body(i);
  };
  const uint64_t wanted = threads ? threads : std::max(1u, std::thread::hardware_concurrency());
  const uint64_t useful = std::min(wanted, items);
  std::vector<std::thread> others =
      startThreads(useful ? static_cast<unsigned>(useful - 1) : 0, work);
  work();
  for (std::thread &thread : others)
    thread.join();
}

} // namespace fp4
