//===- Process.h - Another program, with a time limit ---------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <chrono>
#include <vector>

namespace fp4 {

struct ProcessResult {
  int code = 0;          ///< exit code, or 128 + n after signal n
  bool timedOut = false; ///< true after a kill at the limit
  std::string output;    ///< the beginning of what it printed, on both streams

  /// "ended with code 1", "was ended by signal 9 (Killed)", "has not ended after 10 s".
  std::string ending(std::chrono::milliseconds limit) const;
};

/// The path of a program that may be executed, as a shell would find it.
Expected<std::string> findProgram(const std::string &name);

/// Runs `command`, whose first word is the path of a program, without input. At the limit the
/// program and the processes it started are killed; it does not outlive this process. Returns an
/// Error if it cannot be started.
Expected<ProcessResult> runProcess(const std::vector<std::string> &command,
                                   std::chrono::milliseconds limit);

} // namespace fp4
