//===- Simulator.h - Runs PTX kernels without a GPU -----------------------===//
//
//   auto program = Program::parse(text, "gemm.ptx");
//   Simulator simulator({.policy = CompletionPolicy::Lazy, .seed = 7});
//   uint64_t x = simulator.memory().allocate(bytes, "x");
//   auto stats = simulator.launch(**program, "kernel", {.grid = {148, 1, 1}, .block = {192, 1, 1}},
//                                 params);
//
// A launch runs to its end before it returns. One host thread with equal options and seed replays a
// launch exactly; with more host threads only the order of global atomics between clusters varies.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Dependence.h"
#include "fp4/Sim/GlobalMemory.h"
#include "fp4/Sim/Orders.h"
#include "fp4/Sim/Program.h"
#include <functional>
#include <span>

namespace fp4::sim {

class Observer;
class PastWrites;
class Stepper;
struct KernelTime;

/// The time at which an asynchronous operation (TMA, bulk copy, tcgen05) moves its data.
enum class CompletionPolicy : uint8_t {
  Eager,      ///< the moment at which the operation is issued
  Lazy,       ///< the moment at which no warp of the cluster can run
  Random,     ///< a random point in the schedule, by the seed
  Delay,      ///< a fixed number of scheduling rounds later, on the chosen engine; others eager
  Timed,      ///< the time on the device, as far as is known (KernelTime.h); one host thread
  Exhaustive, ///< every order that makes a difference (Orders.h); one host thread
};

/// eager, lazy, random, delay, timed, exhaustive.
Expected<CompletionPolicy> parseCompletionPolicy(std::string_view text);

/// The reaction to a read of shared memory that was never written.
enum class UninitializedReads : uint8_t { Error, Ignore };

/// The rules for what the PTX text leaves undefined although published kernels that are right on
/// hardware rely on it (docs/reference/simulator.md, "Default and strict").
enum class Judgement : uint8_t {
  Letter, ///< an error
  /// A register of tcgen05.ld that is used before tcgen05.wait::ld waits for the load; the TMEM
  /// lane of tcgen05.ld and .st counts within the quarter of the warp; a load of 32 lanes may find
  /// 16 that nothing has written; the index of a cluster that was not canceled may be asked for;
  /// lanes may initialize one mbarrier with one count; of a phase parity the lowest bit counts.
  Practice,
};

/// Choice of the CTAs that get clusters of the preferred size, in a launch that prefers one.
/// Hardware promises neither size.
enum class ClusterSizes : uint8_t {
  Mixed,     ///< some, by the seed; with CompletionPolicy::Timed all
  Preferred, ///< all
  Fallback,  ///< none
};

/// mixed, preferred, fallback.
Expected<ClusterSizes> parseClusterSizes(std::string_view text);

struct SimOptions {
  CompletionPolicy policy = CompletionPolicy::Eager;
  uint64_t seed = 0;
  ClusterSizes clusters = ClusterSizes::Mixed;
  std::string delayedEngine = "all"; ///< engine of Delay: tma, bulk, wgmma, tcgen05, all
  uint32_t delayRounds = 16;         ///< rounds of Delay
  uint32_t hostThreads = 0;          ///< 0: one per hardware thread
  std::string target = "sm_100a";    ///< a name of hw::lookupTarget
  UninitializedReads uninitializedReads = UninitializedReads::Error;
  Judgement judgement = Judgement::Letter;
  /// Reads of global memory that nobody wrote are errors (GlobalMemory::trackWrites).
  bool trackWrites = false;
  /// Warp instructions after which a launch is stopped as an endless loop; 0: never.
  uint64_t instructionLimit = 0;
  /// Warp instructions of one cluster without progress (no warp exits, no asynchronous operation
  /// completes, no change of memory is seen) after which the launch is stopped; 16 times as many if
  /// memory does change, but no warp exits. 0: never. With any limit but 0, a launch that is proven
  /// to repeat itself is stopped earlier.
  uint64_t spinLimit = uint64_t(1) << 32;
  /// Called now and then, and at the end, with finished and total CTAs; never concurrently.
  std::function<void(uint64_t done, uint64_t total)> progress;
  /// Receives what kernels print; never called concurrently. If not set: stdout.
  std::function<void(std::string_view)> print;
  /// Receives the predicted time of every launch with CompletionPolicy::Timed.
  std::function<void(KernelTime)> predicted;
  Observer *observer = nullptr; ///< see Observer.h; mostly one host thread
  OrderOptions orders;          ///< options of CompletionPolicy::Exhaustive
  Stepper *stepper = nullptr;   ///< see Stepper.h; forces one host thread
};

struct LaunchConfig {
  std::array<uint32_t, 3> grid{1, 1, 1};    ///< CTAs of the grid
  std::array<uint32_t, 3> block{1, 1, 1};   ///< threads of a CTA
  std::array<uint32_t, 3> cluster{0, 0, 0}; ///< CTAs of a cluster; zeros: as the kernel asks, or 1
  uint32_t dynamicSharedBytes = 0;
  /// Zeroed device memory through which the grid of a cooperative launch synchronizes
  /// (cooperative_groups::grid_group). All CTAs of such a launch run at once.
  uint64_t gridWorkspace = 0;
  /// The launches beside which this one may run. The hazard checker reports accesses that do not
  /// wait for them.
  Dependence dependence{};
  /// CTAs of the larger clusters that the launch prefers, whole multiples of `cluster`; zeros:
  /// none. Without a `cluster` they change nothing.
  std::array<uint32_t, 3> preferredCluster{0, 0, 0};
};

struct LaunchStats {
  uint64_t warpInstructions = 0;
  uint64_t mmas = 0;    ///< tcgen05.mma, wgmma and mma.sync instructions executed
  uint64_t tickets = 0; ///< asynchronous operations completed
  uint64_t ctas = 0;
  double seconds = 0; ///< wall time
};

class Simulator {
public:
  explicit Simulator(SimOptions options = {});
  ~Simulator();

  const SimOptions &options() const { return settings; }
  GlobalMemory &memory() { return global; }

  /// Runs `kernel`. `params` is the parameter block: KernelInfo::paramBytes bytes, each parameter
  /// at its offset. Fails with ErrorKind::Usage for a launch the device would refuse and with
  /// ErrorKind::Simulation for what the program does wrong.
  Expected<LaunchStats> launch(const Program &program, std::string_view kernel,
                               const LaunchConfig &config, std::span<const std::byte> params);

  /// Puts the variables of the module into device memory with their initial values. A second call
  /// does nothing. A launch calls it by itself.
  Status load(const Program &program);

private:
  SimOptions settings;
  GlobalMemory global;
  std::unique_ptr<PastWrites> past;
};

} // namespace fp4::sim
