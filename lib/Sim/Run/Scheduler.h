//===- Scheduler.h - Runs the warps of one cluster ------------------------===//
//
// One round gives every runnable warp a quantum of instructions. A warp that blocks gives up the
// rest of its quantum and is asked again each round. When no warp could run, the asynchronous
// ticket completes; when none is left, that is a deadlock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Run/Spinning.h"
#include "Sim/State/ExecContext.h"
#include <unordered_set>
#include <utility>

namespace fp4::sim {

class Stepper;

class Scheduler {
public:
  explicit Scheduler(Cluster &cluster);

  enum class State : uint8_t {
    Done,
    Running,
    Spinning, ///< a run that changed nothing but repeated itself: it ends only if another cluster
              ///< changes global memory
  };
  /// Runs until all CTAs exited, or until `budget` warp instructions are spent or every warp has
  /// been looping for long: then other clusters should have their turn.
  Expected<State> run(uint64_t budget);

  //===--- For those who give each instruction its time (lib/Sim/Time) ---===//

  /// The outcome of `stepOne`.
  struct Step {
    uint32_t pc = 0;
    uint32_t lanes = 0; ///< mask of the lanes that executed; 0: all were switched off
    Outcome outcome = Outcome::Next;
    bool jumped = false; ///< true when all lanes jumped together
  };
  /// The group of `warp` whose turn it is; null while all its lanes wait.
  const LaneGroup *next(Warp &warp) { return pickGroup(warp); }
  /// Executes one instruction of `group`, which next() gave, or the error.
  Expected<Step> stepOne(Warp &warp, const LaneGroup &group);
  /// Lets time limits of waits pass when no warp can run and nothing in flight will end. Fails when
  /// that does not help.
  Status unblock();
  /// All CTAs exited: completes what is still in flight.
  Status close();
  Status checkLimit() const;

  uint64_t executed() const { return instructions; }
  /// Tells `observer` what instructions do, instead of the one that is returned.
  Observer *observe(Observer *observer) { return std::exchange(cx.observer, observer); }
  /// Explains the loops of a cluster that spins. The cluster cannot run on after this call.
  Error livelock();

private:
  Expected<State> runRounds(uint64_t budget);
  Expected<State> blocked();
  bool round();
  /// One turn of `warp`; false when it did nothing but poll, except in the turn that parks it.
  bool turn(Warp &warp, uint32_t quantum);
  /// Parks a warp that only repeats what it reads (Polling.h), after at most a quantum of
  /// instructions.
  bool parks(Warp &warp, uint32_t quantum);
  bool parkIsDue();
  /// Parks the cluster if all its warps together only repeat what they read.
  Expected<bool> parksAll();
  bool repeatsItself(uint64_t rounds);
  bool sleeps();
  /// Runs one group of `warp` for a quantum; false when none can run.
  bool runWarp(Warp &warp, uint32_t quantum);
  const LaneTurn &turnOf(const LaneGroup &group) const;
  LaneGroup *pickGroup(Warp &warp);
  void mergeGroups(Warp &warp);
  /// Asks the stepper, and executes one instruction.
  bool runStepped(Warp &warp, LaneGroup &group, uint64_t end);
  /// Executes the group; returns whether it did something other than poll.
  bool runGroup(Warp &warp, size_t groupIndex, uint32_t quantum);
  Outcome step(Warp &warp, const LaneGroup &group, uint32_t meet, uint32_t &left);
  Outcome lastOutcome{}; ///< outcome of the last instruction of runGroup
  bool finish(Warp &warp, size_t groupIndex, Outcome outcome);
  bool registersReady(Warp &warp, const Insn &insn);
  void jump(Warp &warp, size_t groupIndex);
  void scatter(Warp &warp, size_t groupIndex);
  void suspend(Warp &warp, size_t groupIndex, bool retry);
  void exitLanes(Warp &warp, size_t groupIndex);
  bool expireWaits();

  // The progress of the cluster: see Spinning.h.
  enum class Motion : uint8_t { Changes, Repeats, AwaitsHost, Unclear };
  Expected<State> pause();
  Expected<State> idle(bool still);
  bool lookIsDue() const;
  Motion look();
  /// Returns true unless it is certain that no warp looks at the time in the loop that it is in.
  bool looksAtTime(const LoopProbe &probe);
  LoopTrace trace();
  Status checkProgress(Motion seen);
  Error hostWait();

  Cluster &cluster;
  ExecContext cx;
  Stepper *stepper; ///< null: none
  uint64_t instructions = 0;
  uint64_t busyRounds = 0; ///< rounds in a row in which no warp blocked or exited
  bool clockless;          ///< the kernel does not look at the time
  bool parkable;           ///< clockless, and prints nothing: turns may be left out
  bool spinning = false;   ///< true when the last look found that the cluster repeats itself
  uint64_t nextLook = 0;   ///< instructions at the next look
  uint64_t looked = 0;     ///< instructions at the last look
  struct Mark {
    uint64_t instructions = 0, tickets = 0, liveThreads = 0;
  };
  Mark lastChange, lastExit;
  std::unordered_set<uint64_t> expiredStates; ///< states in which expireWaits has ended waits
  /// Rounds in a row in which nothing happened that others than its warps can see.
  struct Quiet {
    static constexpr uint64_t kFirst = 16, kAgain = 4;
    struct Progress {
      uint64_t changes = 0, tickets = 0, liveThreads = 0;
      bool operator==(const Progress &) const = default;
    } progress;
    uint64_t rounds = 0, next = kFirst; ///< next: when it is examined
  } quiet;
  std::unique_ptr<PollWait> parked; ///< wait during which the whole cluster stands still
};

} // namespace fp4::sim
