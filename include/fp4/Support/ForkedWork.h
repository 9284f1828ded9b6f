//===- ForkedWork.h - Pieces of work that may crash or never end ----------===//
#pragma once

#include "fp4/Support/Error.h"

#include <chrono>
#include <functional>

namespace fp4 {

/// Result of one piece of work.
struct ForkedResult {
  std::string text; ///< the result
  enum class End : uint8_t { Finished, Crashed, TimedOut } end = End::Finished;
  int signal = 0; ///< signal of a crash; 0: the process ended without a result
};

/// Ends the process of a piece of work, with what it came to.
using Finish = std::function<void(const std::string &text)>;

/// Calls `work` for each number below `items` in a process of its own, a copy of this one without
/// output, of which at most `processes` run at a time. The value that work gives to `finish`, from
/// however deep inside, is its result, and the work ends there. One that takes longer than `limit`
/// is killed. `done` is called here for each, as they end. None outlives this process. No other
/// thread may run meanwhile. An Error says that no process could be made; those that ran have ended
/// then.
Status forEachForked(size_t items, unsigned processes, std::chrono::milliseconds limit,
                     const std::function<void(size_t, const Finish &finish)> &work,
                     const std::function<void(size_t, ForkedResult)> &done);

} // namespace fp4
