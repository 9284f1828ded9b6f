//===- KernelTime.h - The predicted time of a launch, and why -------------===//
//
// The prediction of the policy `timed` for a launch. Every number is a prediction from the rates of
// fp4/ISA/TimingRates.def; docs/concepts/time-model.md has the model and how far it is from measurements.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp4::sim {

/// Activity of a warp at a time. All but Issue are waits.
enum class Activity : uint8_t {
  Issue,      ///< instructions leave
  Arithmetic, ///< wait for the result of an instruction
  Global,     ///< wait for a load from global memory
  Shared,     ///< wait for a load from shared memory, or an exchange between lanes
  Pipe,       ///< wait for a unit that is busy
  Scheduler,  ///< wait for the warp's turn
  Barrier,    ///< wait at a barrier of its CTA or cluster, or for other lanes
  Mbarrier,   ///< wait at an mbarrier
  Products,   ///< wait for wgmma, tcgen05 and copies that it issued
  Fence,
  Branch, ///< the instructions behind a taken branch
};
inline constexpr size_t kActivities = 11;
std::string_view stringify(Activity activity);

/// The warps of a CTA that do the same, over all CTAs.
struct RoleTime {
  std::string name;                        ///< "load", "mma", "warps 0 to 7"
  uint32_t firstWarp = 0, lastWarp = 0;    ///< warps of the CTA
  double instructions = 0;                 ///< machine instructions of a warp, estimated
  std::array<double, kActivities> share{}; ///< shares of the warps' lifetime
};

/// Share of the time in which a resource is busy, of 1.
struct ResourceTime {
  std::string name;
  double busy = 0;
};

/// The power of a GPU while the launch is repeated back to back on random operands, and the clock
/// that its limit leaves.
struct PowerUse {
  double watts = 0, limit = 0; ///< power at KernelTime::gigahertz, and the power limit
  std::vector<std::pair<std::string, double>> parts; ///< W of each consumer, the largest first
  double gigahertz = 0;    ///< clock within the limit, and within that of busy tensor cores
  double microseconds = 0; ///< time of a launch at that clock
  bool falls = false;      ///< that is below KernelTime::gigahertz
};

/// The SMs that were simulated, of how many: fewer where the grid was sampled.
struct SampleSize {
  uint32_t simulated = 0, sms = 0;
  std::string whole; ///< reason why a launch large enough for a sample was simulated whole
};

struct KernelTime {
  std::string kernel, target;
  std::array<uint32_t, 3> grid{}, block{}, cluster{};
  /// Rates that the kernel needs and nobody knows, or an instruction without a unit: if there are
  /// any, there is no prediction, and the numbers below are 0.
  std::vector<std::string> missing;

  double microseconds = 0;       ///< time with the launch
  double launchMicroseconds = 0; ///< launch's part of that time
  double cycles = 0;             ///< cycles of the SMs, without the launch
  double gigahertz = 0;
  double flops = 0;       ///< flops of GEMMs
  double memoryBytes = 0; ///< bytes to and from device memory
  double l2Bytes = 0;
  uint32_t ctasPerSm = 0, registers = 0; ///< CTAs of an SM, and estimated registers of a thread
  uint32_t spilledBytes = 0; ///< bytes that a thread spills; 0 too where ptxas was not asked
  SampleSize sample;
  std::optional<PowerUse> power;       ///< nothing where the target has no rates of it
  std::vector<ResourceTime> resources; ///< the busiest first
  std::vector<RoleTime> roles;

  bool sampled() const { return sample.simulated < sample.sms; }
  /// The busiest resource if it is busy most of the time, else "latency".
  std::string bound() const;
};

/// A few lines and a table of roles, for people.
std::string text(const KernelTime &time);

} // namespace fp4::sim
