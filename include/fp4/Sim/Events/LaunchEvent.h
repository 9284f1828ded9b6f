//===- LaunchEvent.h - A launch begins ------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace fp4::sim {

class GlobalMemory;
class Program;
struct Dependence;

/// A launch begins. The objects it refers to live until its last event.
struct LaunchEvent {
  const Program &program;
  std::string_view kernel;
  const GlobalMemory &memory;
  uint32_t ctasPerCluster = 1, warpsPerCta = 1;
  /// Predicted nanoseconds of each later event, when it is told; NaN where there is none for it.
  /// Null unless the policy is timed and knows all rates that the kernel needs.
  const double *nanoseconds = nullptr;
  const Dependence &dependence;
  bool again = false; ///< the launch of the last such event, in another order
};

} // namespace fp4::sim
