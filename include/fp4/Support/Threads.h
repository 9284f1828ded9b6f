//===- Threads.h - One piece of work on several host threads --------------===//
#pragma once

#include <functional>

namespace fp4 {

/// `wanted`, or where it is 0 the number of hardware threads.
unsigned threadCount(unsigned wanted);

/// Runs `work` on this thread and on up to `threads` - 1 others, and waits for all of them. Where
/// the system gives fewer threads (a limit on processes, no memory), fewer run: the work must
/// divide itself. What one of them throws is thrown here, when all have ended.
void onThreads(unsigned threads, const std::function<void()> &work);

} // namespace fp4
