//===- Threads.h - One piece of work on several host threads --------------===//
#pragma once

#include <functional>

namespace fp4 {

/// `wanted`, or the number of hardware threads if it is 0.
unsigned threadCount(unsigned wanted);

/// Runs `work` on this thread and on up to `threads` - 1 others, and waits for all of them. If the
/// system gives fewer threads (a limit on processes, no memory), fewer run: the work must divide
/// itself. An exception of one of them is thrown here after all have ended.
void onThreads(unsigned threads, const std::function<void()> &work);

} // namespace fp4
