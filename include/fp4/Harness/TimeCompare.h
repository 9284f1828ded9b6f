//===- TimeCompare.h - Why one program is predicted to be faster ----------===//
//
// Two predictions side by side: the time of each kernel, and, for the kernel whose time differs
// most, what its resources do and what its roles wait for, in microseconds. All numbers are
// predictions of the simulator (docs/concepts/time-model.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/KernelTime.h"
#include "fp4/Support/Error.h"

#include <optional>

namespace fp4::harness {

/// The predicted launches of one run of a program.
struct TimedProgram {
  std::string label; ///< a plan, a file, or "the plan of the compiler"
  struct Launch {
    std::string name; ///< name of the kernel's module, without the function's
    sim::KernelTime time;
  };
  std::vector<Launch> launches;

  /// The sum of the launches; nothing where one has no prediction.
  std::optional<double> microseconds() const;
};

/// Something that two kernels have, in microseconds or in its own unit; `before` or `now` is 0
/// where only the other kernel has it.
struct TimeDifference {
  std::string name;
  double before = 0, now = 0;
  double delta() const { return now - before; }
};

/// The comparison of `now` with `before`.
struct TimeComparison {
  TimedProgram before, now;
  double ratio = 0; ///< time now by time before; 0 where one has no prediction
  std::vector<TimeDifference> kernels;   ///< microseconds
  std::string kernel;                    ///< the explained kernel; empty: none has a counterpart
  std::string boundBefore, boundNow;     ///< bounds of that kernel
  std::vector<TimeDifference> resources; ///< microseconds that it is busy, the largest change first
  std::vector<TimeDifference> waits;     ///< "role: what", microseconds of the kernel's time
  std::vector<TimeDifference> amounts;   ///< bytes, instructions, CTAs
  std::vector<std::string> reasons;      ///< sentences, the strongest first

  /// The comparison for people, a screen of text.
  std::string text() const;
};

/// Modules are named after their function; in its report the rest of the name says enough.
std::string launchName(const std::string &module, const std::string &function);

/// Launches are matched by name, or by order where both programs have as many.
TimeComparison compareTimes(const TimedProgram &before, const TimedProgram &now);

/// Reads the predictions in a file that --time --json wrote. Any other file is a Usage error.
Expected<TimedProgram> readTimes(const std::string &path);

} // namespace fp4::harness
