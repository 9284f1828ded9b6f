//===- OrderedLaunch.h - A launch, step by step in every order ------------===//
//
// The steps of a launch are those of its warps, of its asynchronous operations and of the hardware
// that starts clusters. A warp's step ends with an instruction that others can notice: an arrival, a
// wait, an atomic, the issue of an operation, an exit. Plain accesses of memory are part of the step
// in which they happen, as long as everything orders them; where two are not ordered, each becomes a
// step by itself (OrderReport::everyAccess). A warp that has to wait makes no step; nor does one in
// a loop that found nothing new, until what it reads has changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Orders/Explorer.h"
#include "Sim/Orders/OrderRecorder.h"
#include "Sim/Orders/PollLoops.h"
#include "Sim/Run/Scheduler.h"
#include "fp4/Sim/ObserverList.h"
#include <set>
#include <unordered_set>

namespace fp4::sim {

class OrderedLaunch final : public Stepped {
public:
  /// `tell` announces the launch to the observers: for the first time, or again. Installs an
  /// observer of its own in `launch`.
  OrderedLaunch(Launch &launch, uint64_t ctasPerSm, std::function<void(bool again)> tell);
  ~OrderedLaunch() override;

  /// Runs the launch in every order, or in the one to replay.
  Expected<LaunchStats> run();

  void watch(Trace &trace) override { recorder.trace = &trace; }
  Status begin() override;
  std::vector<Process> candidates() override;
  std::vector<Process> operations(size_t most) override;
  Expected<bool> step(Process process) override;
  const Footprint &footprint() const override { return recorder.footprint(); }
  Expected<bool> expire() override;
  Status end() override;
  std::vector<Process> pollers() override;
  Expected<const Footprint *> waits(Process process) override;
  bool refine() override { return !std::exchange(recorder.everyAccess, true); }
  bool wantsRegisters(Process process) const override;
  bool orderRegisters() override { return !std::exchange(recorder.ordersRegisters, true); }

private:
  struct Running {
    Running(Launch &launch, uint64_t index) : cluster(launch, index), scheduler(cluster) {}
    Cluster cluster;
    Scheduler scheduler;
    bool ended = false;
    uint64_t atChange = 0; ///< warp instructions when the cluster last did more than read
    uint64_t atExit = 0;   ///< warp instructions when a warp last exited
    uint64_t live = 0;     ///< threads, then
  };
  /// The states of a warp since it last did more than look at memory, and what it looked at.
  struct Loop {
    std::unordered_set<size_t> states;
    Footprint reads;
    bool closed = false; ///< true when the warp has come back to one of the states
  };
  /// The bytes of an allocation before the launch, and after its first order.
  struct Contents {
    const Allocation *allocation;
    std::vector<std::byte> before, after;
    std::vector<uint64_t> written;
  };

  Cluster &startNext();
  Warp *warpOf(Process process) const;
  bool mayStart() const;
  Expected<bool> stepWarp(Process process, Warp &warp, Scheduler &scheduler);
  Expected<bool> stepTicket(Process process, Running &running);
  Status afterStep(Process process);
  Status endClusters();
  Status checkLimit(Running &running) const;
  bool hasClosedLoop(uint64_t cluster) const;
  bool passOverLoops();
  Status noteLoop(Process process, const Warp &warp, bool looked);
  void issueWarps(const Cluster &cluster);
  void restore();
  Status explain(Status failed, const OrderReport &report) const;
  Expected<LaunchStats> replay();

  Launch &launch;
  const SimOptions &options;
  SimOptions silent; ///< options of all orders but the first: nothing is printed again
  std::function<void(bool again)> tell;
  bool told = false;
  OrderRecorder recorder;
  const PollLoops polls;
  ObserverList observers;
  Observer *before; ///< launch's
  bool cancels = false;          ///< the kernel cancels clusters: when they start matters
  uint64_t resident = 1;      ///< clusters that run together
  std::map<uint64_t, std::unique_ptr<Running>> running;
  std::map<uint64_t, Cluster *> clusters;
  std::map<Process, Loop> loops;
  std::set<Process> loopsLast; ///< warps of which lanes before a loop have their turn last
  Process last = 0; ///< the process of the last step
  std::vector<Contents> memory;
  bool first = true; ///< no order has ended yet
  LaunchStats stats;
};

} // namespace fp4::sim
