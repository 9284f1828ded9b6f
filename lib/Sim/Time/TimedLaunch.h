//===- TimedLaunch.h - Runs a launch on a virtual clock -------------------===//
//
// All SMs run together: an event is the next instruction of a warp or the end of an asynchronous
// operation, and events happen in the order of their cycles. Results are those of any other policy,
// because a program's results do not depend on the schedule. In a large launch only some of the
// slots go on after a while (TimedSample.cpp).
//
// A slot is the SMs of one cluster. Slots have calendars of their own and run ahead of each other
// by at most a few cycles; they share L2 and device memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Run/Scheduler.h"
#include "Sim/Time/Account.h"
#include "Sim/Time/Calendar.h"
#include "Sim/Time/CtaWork.h"
#include "Sim/Time/MachineMix.h"
#include "Sim/Time/PlacesInText.h"
#include "Sim/Time/TimedPolicy.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Sim/ObserverList.h"
#include "fp4/Sim/Predictor.h"
#include <optional>

namespace fp4::sim {

class TimedLaunch {
public:
  /// `sharedBytes` of a CTA. Installs an observer of its own in `launch`.
  TimedLaunch(Launch &launch, const hw::TargetModel &target, uint64_t sharedBytes);
  ~TimedLaunch();

  /// Runs the launch, or its sample.
  Expected<LaunchStats> run();
  /// The first cluster that may not have run and must.
  uint64_t firstLeft() const;
  /// Gives the prediction to whoever asked for it.
  void report() const;
  /// For LaunchEvent; null where there will be no prediction.
  const double *clock() const { return predicts() ? &nanoseconds : nullptr; }

private:
  /// The special functions of a warp, which instructions between them delay.
  class SpecialFunctions {
  public:
    /// Returns the cycle, no earlier than `when`, at which the next one is served, which takes
    /// `interval`; each of two instructions since the last one delays it by `among`.
    double after(double when, double interval, double among) {
      constexpr unsigned most = 2;
      when = std::max(when, free + among * std::min(others, most));
      others = 0;
      free = when + interval;
      return when;
    }
    void pass(unsigned instructions) { others += instructions; }

  private:
    double free = 0;     ///< cycle at which the last one is done
    unsigned others = 0; ///< instructions since then
  };
  struct TimedWarp {
    Warp *warp = nullptr;
    Sm *processor = nullptr;
    unsigned scheduler = 0;
    double nextIssue = 0; ///< earliest cycle of the next issue
    double waited = 0;    ///< cycle since which it does something else than issue
    Activity reason = Activity::Arithmetic;
    bool blocked = false, queued = false;
    bool early = false;          ///< warp of the first CTAs that has not waited for device memory
    struct {
      uint32_t line = ~0u; ///< line of code that was fetched last
      double when = 0;     ///< cycle at which it came
    } fetched;
    /// Cycles at which all that it asked device memory for arrives, and if others go before.
    MemorySystem::Arrival arrival{};
    uint32_t pc = 0; ///< program counter of the next instruction
    SpecialFunctions special;
    bool odd = false;            ///< true after an odd number of arrivals at the cluster's barrier
    float *ready = nullptr;      ///< cycles from `born` until each register is ready
    Activity *because = nullptr; ///< activity that fills each register
    double born = 0;
    uint64_t age = 0;        ///< order of the begin: less for a warp that began earlier
    struct {
      double global = 0, shared = 0; ///< cycles at which L2, and shared memory, have the last one
    } stored;
    WarpAccount account;
  };
  struct Running {
    Running(Launch &launch, uint64_t index) : cluster(launch, index), scheduler(cluster) {}
    Cluster cluster;
    Scheduler scheduler;
    TimedPolicy *policy = nullptr;
    std::vector<TimedWarp> warps;
    std::vector<float> ready;      ///< TimedWarp::ready of all warps
    std::vector<Activity> because; ///< TimedWarp::because of all warps
    std::vector<uint32_t> blocked;
    uint64_t steps = 0; ///< steps since anything but polling happened
    double stores = 0;  ///< cycle at which L2 has the last of the cluster's stores
    /// The cycle at which the last warp so far arrived at the cluster's barrier, in even and odd
    /// phases.
    std::array<double, 2> arrivals{};
  };
  struct Slot {
    Calendar events;
    std::vector<std::unique_ptr<Running>> running; ///< clusters by place; null: a free place
    uint32_t index = 0;
    double until = 0;                   ///< cycle at which its present turn ends
    double flops = 0, instructions = 0; ///< work that was executed
    double before = 0;                  ///< work() when the sample began
    uint32_t atBegin = 0;               ///< clusters that ran when the sample began
    uint32_t begun = 0;                 ///< clusters that began since
    /// MMAs, or instructions where there are none.
    double work() const { return flops > 0 ? flops : instructions; }
  };

  /// A launch is whole until its sample goes on alone. After it the slots that stood still finish
  /// what they have begun, without a time.
  enum class Phase { Whole, Sample, Probe, Rest };

  /// Returns true when the times so far are predictions: all rates were known.
  bool predicts() const {
    return phase < Phase::Probe && rates.missing().empty() && code.unknown().empty();
  }
  /// Sets the clock of events that happen at `cycle`.
  void setClock(double cycle) {
    nanoseconds =
        predicts() ? cycle / launch.timing.gigahertz : std::numeric_limits<double>::quiet_NaN();
  }
  void tellStart(const Running &running, uint32_t firstSm, double when);
  void spend(const Running &running, TimedWarp &warp, Activity activity, double begin, double end);
  const Rates &ratesOfCode();
  uint64_t roomFor(uint64_t cluster) const;
  const Kernel &sortedKernel();
  void leaveOutIdle();
  KernelTime prediction() const;
  Status runSlots(uint32_t begin, uint32_t end);
  uint32_t membersOf() const;
  void settle();
  bool maySample();
  bool standsForRest(uint64_t notBegun);
  void noteTalk(uint32_t pc);
  void checkSpread();
  void checkWork();
  void beginSample();
  Expected<double> machinesOfSample();
  Expected<double> workBetween(uint32_t first, uint32_t last);
  Status probe(Slot &slot);
  Status scaleSample();
  Status finishRest();
  void setUp(Running &running, std::span<Sm *const> processors, uint32_t place, double when,
             bool early);
  bool startNext(Slot &slot, uint32_t place, double when);
  void prefetch(const Slot &slot) const;
  void prefetchOperands(const TimedWarp &warp) const;
  Status runSlot(Slot &slot, double until);
  Status runTicket(Slot &slot, const TimedEvent &event);
  Status runWarp(Slot &slot, const TimedEvent &event);
  Status runReady(Slot &slot, const TimedEvent &event, TimedWarp &warp);
  Status runTurn(Slot &slot, const TimedEvent &event);
  const Turns &turnsOf(const Slot &slot, const TimedEvent &event) const;
  void announceTurn(Slot &slot, Sm &sm, unsigned scheduler, double now);
  Expected<bool> tryIssue(Slot &slot, uint32_t place, uint32_t index, double now);
  Status step(Slot &slot, uint32_t place, TimedWarp &warp, double issue);
  Status settlePlace(Slot &slot, uint32_t place);
  Status checkProgress(Running &running);
  Status unblock(Slot &slot, uint32_t place);
  Status finish(Slot &slot, uint32_t place);
  void retire(Slot &slot, uint32_t place);
  void schedule(Slot &slot, uint32_t place, TimedWarp &warp);
  void wake(Slot &slot, uint32_t place, double now, double extra);
  std::array<double, kPipes> pipeTimes(const Sm &sm, unsigned scheduler, const PipeCounts &counts,
                                       double now) const;
  bool reservePipes(TimedWarp &warp, const TimedInsn &insn, double now, double &when);
  double cyclesOfMma(const TimedInsn &insn, bool known) const;
  bool putOff(Slot &slot, TimedWarp &warp, const TimedInsn &insn, const TimedEvent &event);
  double loadLines(TimedWarp &warp, double now, std::span<const LineAccess> lines);
  double loadThroughL1(TimedWarp &warp, double looked);
  double loadMissing(TimedWarp &warp, double looked, std::span<const LineAccess> missing);
  double fetch(TimedWarp &warp, const TimedInsn &insn, double now);
  double disorder(TimedWarp &warp, double now) const;
  double queueForUnit(TimedWarp &warp, const TimedInsn &insn, double now);
  double whenQueued(const Sm &sm) const;
  double whenTaken(Sm &sm, unsigned scheduler, double now) const;
  double whenAdmitted(const TimedWarp &warp, const TimedInsn &insn, double now) const;
  double specialInterval(const Sm &sm, unsigned scheduler, double now) const;
  bool reserve(TimedWarp &warp, const TimedInsn &insn, double now, double &when);
  void complete(Running &running, TimedWarp &warp, const TimedInsn &insn, double issue,
                const Scheduler::Step &step);
  double registersReady(TimedWarp &warp, const TimedInsn &insn, double ready) const;
  double latencyOf(const TimedInsn &insn) const;
  double release(TimedWarp &warp, double issue) const;
  double arriveAtCluster(TimedWarp &warp, Running &running, const TimedInsn &insn,
                         double issue) const;
  static double hold(TimedWarp &warp, double issue, double cycles, Activity reason);
  double synchronize(TimedWarp &warp, Running &running, const TimedInsn &insn,
                     double issue) const;
  double clusterBarrierEnd(const TimedWarp &warp, const Running &running) const;
  double fenceShared(TimedWarp &warp, double issue) const;
  double handOver(TimedWarp &warp, double issue);
  double resultOf(TimedWarp &warp, Running &running, const TimedInsn &insn, double issue,
                  Activity &because);
  bool reductionsStore(const TimedWarp &warp) const;
  double reload(TimedWarp &warp, double issue) const;
  double accessMemory(TimedWarp &warp, Running &running, const TimedInsn &insn, double issue,
                      Activity &because);
  double wakeCycles(const TimedInsn &insn) const;

  Launch &launch;
  const hw::TargetModel &target;
  const Predictor predictor;
  Rates rates;
  MachineCode machineCode;
  Observer *before;     ///< observer of the launch
  const Kernel *kernel; ///< kernel of the launch
  Kernel sorted;        ///< `kernel` in the order of the machine code, where that is known
  std::vector<uint32_t> places;       ///< pcs of `sorted` in `kernel`; empty: the same pcs
  std::optional<PlacesInText> inText; ///< observer in place of `before`
  TimedCode code;
  uint32_t registers, residentCtasPerSm;
  uint64_t clusterSize;
  uint64_t slotsOfAll; ///< slots of the whole machine
  std::vector<Slot> slots;
  Machine machine;
  Recorder recorder;
  ObserverList observers;
  Kernel withoutIdle; ///< `kernel` without instructions that --time-only leaves out
  Account account;
  uint64_t order = 0;
  double end = 0; ///< cycle at which the last cluster ends
  double nanoseconds = 0;
  Phase phase = Phase::Whole;
  uint32_t members;      ///< slots that are the sample, the first ones
  uint64_t left = 0;     ///< first cluster that had not started when the sample began
  uint64_t executed = 0; ///< warp instructions
  bool settled = false;  ///< traffic that a sample will assume of L2 is counted
  double flopsBefore = 0, bytesBefore = 0, l2BytesBefore = 0; ///< totals when the sample began
  uint64_t canceledBefore = 0;                                ///< clusters that others took before
  bool waits = false; ///< true when the sample waits for CTAs outside of it
  /// Dependences between CTAs, and the equality of their work.
  struct Blocks {
    std::optional<CtaWork> work;   ///< work of the CTAs, by the text
    Spread spread;                 ///< spread of the instructions of clusters that have ended
    uint32_t talk = 0;             ///< a line by which one has learned what others did
    std::string whole;             ///< reason why there is no sample
    std::string refused;           ///< reason why there is no prediction by the sample
  } blocks;
  KernelTime predicted;
  LaunchStats stats;
};

} // namespace fp4::sim
