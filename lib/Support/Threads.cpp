//===- Threads.cpp - One piece of work on several host threads ------------===//
#include "fp4/Support/Threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

unsigned fp4::threadCount(unsigned wanted) {
  return wanted ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

void fp4::onThreads(unsigned threads, const std::function<void()> &work) {
  std::mutex lock;
  std::exception_ptr thrown;
  auto guarded = [&] {
    try {
      work();
    } catch (...) {
      std::lock_guard<std::mutex> guard(lock);
      thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < threads; ++i)
      others.emplace_back(guarded);
  } catch (const std::exception &) {
    // After std::system_error or std::bad_alloc, the threads that exist do the work.
  }
  guarded();
  for (std::thread &thread : others)
    thread.join();
  if (thrown)
    std::rethrow_exception(thrown);
}
