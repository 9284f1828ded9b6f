//===- Simulator.cpp - Launching a kernel ---------------------------------===//
//
// Validates the launch, then runs its clusters: each host thread takes the next cluster, in grid
// order. A cluster that runs very long is set aside so that others may start (a program may wait
// for a flag that another cluster sets). Errors are deterministic: the one of the lowest cluster.
//
// Under an observer clusters run one after the other, unless it is an ApartObserver: then they run
// at the same time first, and again in order if it turns out that one needs another.
//
//===----------------------------------------------------------------------===//
#include "fp4/Sim/Simulator.h"
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Insn/Warp/Call.h"
#include "Sim/Orders/OrderedLaunch.h"
#include "Sim/State/Launch.h"
#include "Sim/State/PastWrites.h"
#include "Sim/Time/TimedLaunch.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Sim/ApartObserver.h"
#include "fp4/Sim/Events/LaunchEvent.h"
#include "fp4/Sim/Observer.h"
#include "fp4/Sim/Stepper.h"
#include "fp4/Support/Threads.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <optional>

using namespace fp4;
using namespace fp4::sim;

Simulator::Simulator(SimOptions options)
    : settings(std::move(options)), past(std::make_unique<PastWrites>()) {
  if (settings.trackWrites)
    global.trackWrites();
}
Simulator::~Simulator() = default;

Status Simulator::load(const Program &program) {
  for (const ModuleVariable &variable : program.impl().variables) {
    if (global.find(variable.address, variable.size))
      continue;
    FP4_TRY(global.reserve(variable.address, variable.size, variable.name, variable.readOnly));
    FP4_TRY(global.write(variable.address, variable.initial.data(), variable.size));
  }
  return {};
}

/// Registers per thread at the launch, where PTX tells: ptxas gives a kernel with setmaxnreg what
/// .maxnreg says. Else 0.
static uint32_t statedRegisters(const Kernel &kernel) {
  bool sets = std::any_of(kernel.code.begin(), kernel.code.end(), [](const Insn &insn) {
    return opcodeTable()[insn.row].base == "setmaxnreg";
  });
  return sets ? kernel.info.maximumRegisters : 0;
}

/// An SM has the registers of one CTA.
static Status checkRegisters(const Kernel &kernel, uint64_t threads,
                             const hw::TargetModel &target) {
  const uint64_t each = statedRegisters(kernel), counted = threadsWithRegisters(threads);
  if (counted * each <= target.limits.registersPerSM)
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format(
          "launch of '{}': a CTA must have at most the {} registers of an SM of {}, but got {} "
          "of {} threads that get {} each (.maxnreg)",
          kernel.info.name, target.limits.registersPerSM, target.name, counted * each, counted,
          each),
      fmt::format("warps get registers by fours: {} threads count as {}", threads, counted));
}

/// Checks the rules of a launch before the first instruction; errors are the launcher's.
static Status checkLaunch(const Kernel &code, const LaunchConfig &config,
                          const hw::TargetModel &target, size_t paramBytes, uint64_t sharedBytes) {
  const KernelInfo &kernel = code.info;
  auto refuse = [&](std::string message) {
    return makeError(ErrorKind::Usage, fmt::format("launch of '{}': {}", kernel.name, message));
  };
  if (volume(config.grid) == 0 || volume(config.block) == 0)
    return refuse(fmt::format("grid and CTA must not be empty, but got {} and {}",
                              textOf(config.grid), textOf(config.block)));
  if (volume(config.block) > target.limits.maxThreadsPerCta)
    return refuse(fmt::format("a CTA must have at most {} threads, but got {}",
                              target.limits.maxThreadsPerCta, volume(config.block)));
  if (kernel.requiredCta[0] && kernel.requiredCta != config.block)
    return refuse(fmt::format("the kernel requires CTAs of {} (.reqntid), but got {}",
                              textOf(kernel.requiredCta), textOf(config.block)));
  if (kernel.maximumCta[0] && volume(config.block) > volume(kernel.maximumCta))
    return refuse(fmt::format("the kernel allows CTAs of at most {} threads (.maxntid), but got {}",
                              volume(kernel.maximumCta), volume(config.block)));
  for (size_t i = 0; i < 3; ++i)
    if (config.grid[i] % config.cluster[i] != 0)
      return refuse(fmt::format("the grid {} must be a multiple of the cluster {}",
                                textOf(config.grid), textOf(config.cluster)));
  if (sharedBytes > target.limits.mostSharedBytes())
    return refuse(fmt::format("a CTA of {} has {} bytes of shared memory, but the kernel needs {}",
                              target.name, target.limits.mostSharedBytes(), sharedBytes));
  if (paramBytes != kernel.paramBytes)
    return refuse(fmt::format("the kernel has {} bytes of parameters, but got {}",
                              kernel.paramBytes, paramBytes));
  return checkRegisters(code, volume(config.block), target);
}

/// Bank 1 for each CTA rank: addresses of shared variables carry the rank.
static void buildConstants(Launch &launch) {
  const Kernel &kernel = *launch.kernel;
  for (uint32_t rank = 0; rank < launch.largestCluster(); ++rank) {
    AlignedBytes bank(kernel.constants.size());
    if (!kernel.constants.empty())
      std::memcpy(bank.bytes(), kernel.constants.data(), kernel.constants.size());
    for (const RankFixup &fixup : kernel.rankFixups)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        std::byte *slot = bank.bytes() + fixup.offset + lane * fixup.width;
        uint64_t value = 0;
        std::memcpy(&value, slot, fixup.width);
        value += uint64_t(rank) << kSharedRankShift;
        std::memcpy(slot, &value, fixup.width);
      }
    launch.constantsByRank.push_back(std::move(bank));
  }
}

namespace {

/// A started cluster and its scheduler.
struct Running {
  Running(Launch &launch, uint64_t index) : cluster(launch, index), scheduler(cluster) {}
  Cluster cluster;
  Scheduler scheduler;
  uint64_t epoch = 0; ///< Grid::epoch when the cluster was last seen to spin
  unsigned spins = 0; ///< runs since then in which the cluster only spun
};

/// Runs the clusters of one launch on several host threads.
class Grid {
public:
  /// `ctasPerSm`: for how many there is room.
  Grid(Launch &launch, uint64_t ctasPerSm) : ctasPerSm(ctasPerSm), launch(launch) {}
  /// Runs each cluster to its end. Returns false if one may need another to get there, or fails:
  /// then no results count.
  bool runApart(unsigned threads, ApartObserver &observer);
  /// A launch that begins early calls `othersEnd` when it gets no further before that.
  Status run(unsigned threads, const std::function<void()> &othersEnd);
  LaunchStats stats;
  const uint64_t ctasPerSm;

private:
  static constexpr uint64_t kSlice = 64'000'000; ///< warp instructions before a cluster yields

  void work();
  void workApart(ApartObserver &observer);
  void runEarly(uint64_t clusters);
  std::unique_ptr<Running> takeNext(uint64_t own);
  void finish(Running &running, Expected<Scheduler::State> result, bool spun);
  bool isStuck(Running &running, Scheduler::State state);

  Launch &launch;
  // Guarded by launch.lock:
  uint64_t resident = 1; ///< clusters that one host thread keeps started
  uint64_t mostResident = 1;
  uint64_t started = 0;  ///< clusters that have not ended
  uint64_t epoch = 0;    ///< ends when a cluster does anything but spin
  uint64_t spinners = 0; ///< clusters that have been seen to spin, twice, in this epoch
  bool stuck = false;    ///< true when all clusters spin
  std::deque<std::unique_ptr<Running>> waiting; ///< clusters that have begun early
  bool failed = false;
  bool failedSpinning = false; ///< the error is a livelock
  uint64_t failedCluster = 0;
  Error error;
};

/// The next cluster, for a host thread that has `own` already.
std::unique_ptr<Running> Grid::takeNext(uint64_t own) {
  uint64_t index;
  {
    std::lock_guard<std::mutex> guard(launch.lock);
    if (!waiting.empty() && !launch.early && own < resident) {
      std::unique_ptr<Running> first = std::move(waiting.front());
      waiting.pop_front();
      return first;
    }
    if (failed || own >= resident || !launch.findNext())
      return nullptr;
    index = launch.queue.nextCluster++;
    ++started;
    ++epoch;
    spinners = 0;
  }
  return std::make_unique<Running>(launch, index);
}

/// Takes note of how a run has ended. Every started cluster has spun in two whole runs since any
/// did anything else: the second began after all that could have changed memory, so none ever will.
/// First, though, more clusters may start: an SM has room for several.
bool Grid::isStuck(Running &running, Scheduler::State state) {
  std::lock_guard<std::mutex> guard(launch.lock);
  if (state != Scheduler::State::Spinning) {
    ++epoch;
    spinners = 0;
    return false;
  }
  if (running.epoch != epoch)
    running.spins = 0;
  running.epoch = epoch;
  spinners += ++running.spins == 2;
  if (spinners == started && launch.queue.nextCluster < launch.queue.totalClusters &&
      resident < mostResident) {
    resident = std::min(2 * resident, mostResident);
    ++epoch; // before others start, another host thread may come here
    spinners = 0;
  } else {
    stuck |= spinners == started;
  }
  return stuck;
}

/// A cluster that spins may do so because another failed, whose error counts.
void Grid::finish(Running &running, Expected<Scheduler::State> result, bool spun) {
  std::lock_guard<std::mutex> guard(launch.lock);
  stats.warpInstructions += running.scheduler.executed();
  stats.mmas += running.cluster.mmas;
  stats.tickets += running.cluster.tickets;
  stats.ctas += running.cluster.ctas.size();
  --started;
  ++epoch;
  spinners = 0;
  const bool counts =
      spun != failedSpinning ? failedSpinning : running.cluster.index < failedCluster;
  if (!result && (!failed || counts)) {
    failed = true;
    failedSpinning = spun;
    failedCluster = running.cluster.index;
    error = std::move(result.error());
  }
  if (launch.options->progress)
    launch.options->progress(stats.ctas + launch.queue.canceledCtas, volume(launch.config.grid));
}

/// One host thread: its own clusters in turn, a new one after each slice while the machine has
/// room for it.
void Grid::work() {
  std::deque<std::unique_ptr<Running>> own;
  while (true) {
    std::unique_ptr<Running> next = takeNext(own.size());
    if (!next && own.empty())
      return;
    if (!next) {
      next = std::move(own.front());
      own.pop_front();
    }
    Expected<Scheduler::State> result = next->scheduler.run(kSlice);
    const bool spun = result && *result != Scheduler::State::Done && isStuck(*next, *result);
    if (spun)
      result = tl::unexpected<Error>(next->scheduler.livelock());
    if (result && *result != Scheduler::State::Done) {
      own.push_back(std::move(next));
      // After an error only clusters below it still matter.
      std::lock_guard<std::mutex> guard(launch.lock);
      if (failed)
        started -= std::erase_if(own, [&](auto &r) { return r->cluster.index > failedCluster; });
      continue;
    }
    finish(*next, std::move(result), spun);
  }
}

/// One host thread of clusters that run apart.
void Grid::workApart(ApartObserver &observer) {
  while (std::unique_ptr<Running> next = takeNext(0)) {
    observer.beginCluster();
    Expected<Scheduler::State> result = next->scheduler.run(kSlice);
    const bool alone = observer.endCluster(uint32_t(next->cluster.index));
    if (alone && result && *result == Scheduler::State::Done) {
      finish(*next, std::move(result), /*spun=*/false);
      continue;
    }
    std::lock_guard<std::mutex> guard(launch.lock);
    failed = true;
  }
}

bool Grid::runApart(unsigned threads, ApartObserver &observer) {
  onThreads(threads, [&] { workApart(observer); });
  return !failed;
}

/// Runs what a device has room for beside the end of other launches, until it waits for that.
void Grid::runEarly(uint64_t clusters) {
  constexpr uint64_t slice = kSlice / 64;
  while (waiting.size() < clusters) {
    std::unique_ptr<Running> next = takeNext(0);
    if (!next)
      return;
    Expected<Scheduler::State> result = next->scheduler.run(slice);
    if (result && *result != Scheduler::State::Done)
      waiting.push_back(std::move(next));
    else
      finish(*next, std::move(result), /*spun=*/false);
  }
}

Status Grid::run(unsigned threads, const std::function<void()> &othersEnd) {
  threads = static_cast<unsigned>(std::min<uint64_t>(threads, launch.queue.totalClusters));
  const bool turns = launch.sm.columns && launch.sm.columns->takesTurns;
  if (turns)
    threads = 1;
  const uint64_t clusterSize = launch.largestCluster();
  resident = launch.config.gridWorkspace
                 ? launch.queue.totalClusters
                 : std::max<uint64_t>(1, launch.sms / clusterSize / threads);
  mostResident = resident * ctasPerSm;
  if (turns)
    resident = mostResident;
  if (launch.early) {
    runEarly(resident * threads);
    othersEnd();
    launch.early = false;
  }
  onThreads(threads, [this] { work(); });
  if (failed)
    return tl::unexpected<Error>(std::move(error));
  return {};
}

} // namespace

/// Returns how many CTAs of this kernel an SM has room for. Registers count where PTX states them.
static uint64_t residentCtas(const hw::TargetModel &target, const Kernel &kernel,
                             const LaunchConfig &config, uint64_t sharedBytes) {
  const uint64_t threads = (volume(config.block) + 31) / 32 * 32,
                 registers = threadsWithRegisters(threads) * kernel.info.maximumRegisters;
  uint64_t ctas =
      std::min(target.limits.maxThreadsPerSM / threads, target.limits.ctasByShared(sharedBytes));
  if (registers)
    ctas = std::min(ctas, target.limits.registersPerSM / registers);
  return std::clamp<uint64_t>(ctas, 1, target.limits.maxCtasPerSM);
}

/// Returns the tensor memory of SMs that have room for several of the CTAs, of a launch that has
/// more CTAs than there are SMs; null otherwise. Orders and times are those of CTAs that do not
/// share columns.
static std::unique_ptr<SmColumns> sharedColumns(const Launch &launch, uint64_t ctasPerSm) {
  const uint32_t allocations = launch.kernel->neighbours.allocations;
  const uint64_t places = std::max<uint64_t>(1, launch.sms / launch.largestCluster());
  const CompletionPolicy policy = launch.options->policy;
  if (!allocations || ctasPerSm < 2 || launch.queue.totalClusters <= places ||
      policy == CompletionPolicy::Timed || policy == CompletionPolicy::Exhaustive)
    return nullptr;
  return std::make_unique<SmColumns>(places, ctasPerSm, allocations > 1);
}

/// Returns how many CTAs run on an SM, which share its tensor memory.
static uint64_t divideSms(Launch &launch, uint64_t sharedBytes) {
  const uint64_t ctas = residentCtas(*launch.target, *launch.kernel, launch.config, sharedBytes);
  launch.sm.columns = sharedColumns(launch, ctas);
  return ctas;
}

/// Bytes of shared memory of a CTA.
static uint64_t sharedBytesOf(const Kernel &kernel, const LaunchConfig &config) {
  return config.dynamicSharedBytes
             ? uint64_t(kernel.dynamicSharedOffset) + config.dynamicSharedBytes
             : kernel.sharedBytes;
}

/// The launch, or a sample of it, on a virtual clock; what is not in the sample is left, if anybody
/// wants its results.
static Status runTimed(Launch &launch, TimedLaunch &timed, LaunchStats &stats) {
  FP4_ASSIGN(stats, timed.run());
  timed.report();
  launch.sampling.runs = false;
  launch.queue.nextCluster = timed.firstLeft();
  return {};
}

static unsigned hostThreads(const SimOptions &options) {
  if (options.observer || options.stepper)
    return 1;
  return threadCount(options.hostThreads);
}

static void announce(Launch &launch, const Program &program,
                     const std::optional<TimedLaunch> &timed, bool again) {
  if (launch.observer)
    launch.observer->onLaunch({program, launch.kernel->info.name, *launch.memory,
                               static_cast<uint32_t>(launch.largestCluster()),
                               static_cast<uint32_t>((volume(launch.config.block) + 31) / 32),
                               timed ? timed->clock() : nullptr, launch.config.dependence, again});
  if (launch.options->stepper)
    launch.options->stepper->began(launch);
}

/// Returns true when launches may begin before others have ended.
static bool canBeginEarly(const SimOptions &options) {
  return options.policy == CompletionPolicy::Lazy || options.policy == CompletionPolicy::Random;
}

/// Returns true when the launch with this number may begin before others have ended.
static bool beginsEarly(const SimOptions &options, uint64_t number) {
  const uint64_t mixed = (options.seed + number) * 0x9E3779B97F4A7C15ull;
  return options.policy == CompletionPolicy::Lazy || mixed >> 63;
}

static void setTarget(Launch &launch, const hw::TargetModel &target) {
  launch.target = &target;
  launch.sms = target.sms;
}

/// Returns the observer of clusters that run at the same time, or null if they may not.
static ApartObserver *apartObserver(const Launch &launch) {
  const SimOptions &options = *launch.options;
  const bool ordered = options.stepper || options.policy == CompletionPolicy::Timed ||
                       launch.config.gridWorkspace || launch.queue.nextCluster ||
                       launch.queue.totalClusters < 2 || threadCount(options.hostThreads) < 2 ||
                       (launch.sm.columns && launch.sm.columns->takesTurns);
  if (ordered || !launch.observer || launch.memory->isPolled() ||
      launch.kernel->neighbours.takesTurns ||
      std::ranges::any_of(launch.memory->allocations(),
                          [](const auto &allocation) { return allocation->hostWrites(); }))
    return nullptr;
  auto *observer = dynamic_cast<ApartObserver *>(launch.observer);
  return observer && observer->beginApart() ? observer : nullptr;
}

/// Runs the clusters of a launch at the same time, if none needs another; otherwise leaves
/// everything as it was, and returns false.
static bool runApart(Launch &launch, Grid &grid, ApartObserver &observer) {
  WriteJournal journal(*launch.memory);
  launch.memory->tell(&journal);
  const auto threads =
      std::min<uint64_t>(threadCount(launch.options->hostThreads), launch.queue.totalClusters);
  const bool ran = grid.runApart(static_cast<unsigned>(threads), observer);
  launch.memory->tell(nullptr);
  observer.endApart(ran);
  if (ran)
    return true;
  journal.close();
  journal.undo();
  launch.queue.nextCluster = 0;
  return false;
}

/// Runs the clusters of a launch beside which no other one runs.
static Status runAlone(Launch &launch, Grid &grid) {
  if (ApartObserver *observer = apartObserver(launch))
    if (Grid apart(launch, grid.ctasPerSm); runApart(launch, apart, *observer)) {
      grid.stats = apart.stats;
      return {};
    }
  return grid.run(hostThreads(*launch.options), [] {});
}

/// Runs the clusters of a launch, beside what it depends on where the policy says so.
static Status runBeside(Launch &launch, Grid &grid, PastWrites &past) {
  const SimOptions &options = *launch.options;
  const Dependence &dependence = launch.config.dependence;
  if (!canBeginEarly(options) || (!dependence.mark && dependence.on.empty()))
    return runAlone(launch, grid);
  PastWrites::Beside beside = past.besideOf(dependence);
  std::shared_ptr<WriteJournal> journal;
  if (dependence.mark && (past.used() || launch.kernel->neighbours.triggers))
    journal = std::make_shared<WriteJournal>(*launch.memory);
  if (!journal && beside.empty())
    return runAlone(launch, grid);
  const bool early = launch.early = !beside.empty() && beginsEarly(options, past.launches());
  const auto redo = [&](const Journals &journals) {
    for (size_t i = 0; early && i < journals.size(); ++i)
      journals[i]->redo(journal.get());
  };
  if (early)
    beside.undo();
  launch.memory->tell(journal.get());
  Status ran = grid.run(hostThreads(options), [&] { redo(beside.waited); });
  launch.memory->tell(nullptr);
  redo(beside.others);
  if (journal) {
    journal->close();
    past.keep(dependence.mark, std::move(journal), std::move(beside), launch.awaited);
  }
  return ran;
}

Expected<LaunchStats> Simulator::launch(const Program &program, std::string_view kernelName,
                                        const LaunchConfig &config,
                                        std::span<const std::byte> params) {
  auto start = std::chrono::steady_clock::now();
  FP4_ASSIGN(auto target, hw::requireTarget(settings.target));
  const Kernel *kernel = program.impl().find(kernelName);
  if (!kernel)
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' has no kernel '{}'", program.name(), kernelName));
  Launch launch;
  launch.options = &settings;
  launch.program = &program.impl();
  launch.kernel = kernel;
  launch.memory = &global;
  launch.observer = settings.observer;
  launch.config = config;
  setTarget(launch, *target);
  FP4_TRY(chooseClusters(launch, *target));
  const uint64_t shared = sharedBytesOf(*kernel, config);
  FP4_TRY(checkLaunch(*kernel, launch.config, *target, params.size(), shared));
  FP4_TRY(load(program));
  divideGrid(launch);
  launch.params.assign(params.begin(), params.end());
  buildConstants(launch);
  std::optional<TimedLaunch> timed;
  if (settings.policy == CompletionPolicy::Timed)
    timed.emplace(launch, *target, shared);
  const auto tell = [&](bool again) { announce(launch, program, timed, again); };
  const uint64_t resident = divideSms(launch, shared);
  if (settings.policy == CompletionPolicy::Exhaustive)
    return OrderedLaunch(launch, resident, tell).run();
  tell(/*again=*/false);
  Grid grid(launch, resident);
  if (timed)
    FP4_TRY(runTimed(launch, *timed, grid.stats));
  FP4_TRY(runBeside(launch, grid, *past));
  grid.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return grid.stats;
}
