//===- TimedPolicy.h - Asynchronous operations end when they would --------===//
//
// The policy of a cluster of a timed launch. When a ticket goes in flight it gets its place in the
// queue of its engine, and so its end: the engines work in order. The launch's event loop lets the
// stages of the ticket happen then.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/Policy.h"
#include "Sim/Time/Machine.h"
#include "Sim/Time/Recorder.h"
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace fp4::sim {

/// The rate of an SM's MMAs, by the depth of one dense wgmma or tcgen05.mma.
inline TimingRate flopsOf(unsigned k) {
  return k <= 8    ? TimingRate::Tf32Flops
         : k == 16 ? TimingRate::HalfFlops
         : k == 32 ? TimingRate::QuarterFlops
                   : TimingRate::Fp4Flops;
}

class TimedPolicy final : public Policy {
public:
  /// Called with the time of every stage of a ticket.
  using Announce = std::function<void(uint64_t ticket, double when)>;

  /// `processors`: of the CTAs, by rank. `watched`: somebody is told when each ticket ends.
  TimedPolicy(Machine &machine, const Recorder &recorder, const TimedCode &code,
              std::vector<Sm *> processors, bool watched, Announce announce)
      : machine(machine), rates(machine.rates), recorder(recorder), code(code),
        processors(std::move(processors)), watched(watched), announce(std::move(announce)) {}

  uint64_t clock() const override { return uint64_t(now); }
  void beginRound() override {}
  std::optional<double> cycles() const override { return now; }
  /// Without a clock everything happens at once: the warps then wait least.
  bool due(const Ticket &) const override { return stopped; }
  bool spurious(uint32_t) override { return looking; }
  void issued(const Ticket &ticket) override;
  void prefetched(uint32_t rank, std::span<const GlobalRun> runs) override;

  void setTime(double cycle) { now = cycle; }
  /// True when the next instruction is a wait that ends at once (TimedInsn::looks).
  void setLooking(bool looks) { looking = looks; }
  /// Stops the clock: work is still counted, but takes no time.
  void stopClock() { stopped = true; }
  /// Announces the MMAs that wait for others.
  void announceMmas();
  /// Copies that are issued until the first of them ends are among the first of the launch.
  void setFirst() { firstCopies.areCounted = true; }
  /// Returns the cycle at which the last row of a copy is there, whose rows would all be there at
  /// `when` if requests were served in their order.
  double lastRow(uint64_t ticket, double when);
  /// The cycle at which the last operation so far ends.
  double lastEnd() const { return last; }
  /// The cycle at which the operation that was issued last ends.
  double newestEnd() const { return newest; }

private:
  /// The cycles at which the copy engine asks for the first and for the last row of a copy.
  struct CopyTurn {
    double first, last;
  };
  double besideStores(Sm &sm, double fill) const;
  double startOf(Sm &sm, double fill) const;
  CopyTurn turnOf(Sm &sm, double start, double fill, double bytes) const;
  double endOf(const Ticket &ticket, double &firstStage);
  /// `least`, or the end of the last ticket that this one comes after.
  double endOfThoseBefore(const Ticket &ticket, double least) const;
  /// `least`, or the end of the last ticket before, without the arrivals of commits: a commit waits
  /// for MMAs, and not for the way of an earlier arrival to its mbarrier.
  double lastReached(const Ticket &ticket, double least) const;
  double copyIn(const Ticket &ticket);
  double copyOut(const Ticket &ticket);
  double wgmma(const Ticket &ticket);
  double tmemCopy(const Ticket &ticket);
  double multiply(Sm &sm, const Ticket &ticket, double duration, double compute);
  double tcgen05Mma(const Ticket &ticket);
  double tmemMove(const Ticket &ticket);

  Machine &machine;
  const Rates &rates;
  const Recorder &recorder;
  const TimedCode &code;
  std::vector<Sm *> processors;
  const bool watched;
  Announce announce;
  struct {
    std::vector<uint64_t> tickets;
    double end = 0;
  } mmas; ///< MMAs of tcgen05 that are not announced
  double now = 0, last = 0, newest = 0;
  bool looking = false, stopped = false;
  struct {
    bool areCounted = false, haveEnded = false; ///< have ended: one of them has
    std::set<uint64_t> tickets;
  } firstCopies;                             ///< the first copies of the launch
  std::map<Thread, double> chains;           ///< the end of the last wgmma of a warp
  std::map<Thread, double> starts;           ///< begin of the last tcgen05.mma of a thread
  std::vector<double> ends;                  ///< ends of tickets, by id: others may wait for them
  std::vector<double> reached; ///< ends of what tickets do, without the arrivals of commits
  struct {
    const Insn *insn = nullptr;
    double now = -1, arrival = 0;
    Thread issuer;
    size_t rank = 0; ///< rank of the destination
  } copy;            ///< the last load, for the other destinations of a multicast
  struct {
    const Insn *insn = nullptr;
    double now = -1, end = 0;
    Thread warp;
    uint64_t begin = 0, bytes = 0;
  } store; ///< the last store through a tensor map, for the other lanes of its warp
};

} // namespace fp4::sim
