//===- TicketQueue.h - The asynchronous operations of one cluster ---------===//
//
// Every asynchronous operation is a ticket. Issuing it poisons its destination; when it completes,
// its data moves and its barriers are signalled. The policy decides when that is (Policy.h).
//
// Sources are read when a stage runs. An earlier ticket that has yet to write such a source is an
// error. A source that is overwritten too early gives wrong data, as on the device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Mbarrier.h"
#include "Sim/State/ExecContext.h"
#include "Ticket.h"
#include "WgmmaRegisters.h"
#include <deque>
#include <map>

namespace fp4::sim {

enum class BarrierOp : uint8_t;
enum class TicketState : uint8_t;

/// A tcgen05.ld or a wgmma for which its warp has not waited. The operation may be done.
struct UnwaitedLoad {
  uint64_t id = 0;
  TicketKind kind{};
  const Warp *warp = nullptr;
  const Insn *insn = nullptr;
  Handler chained = nullptr; ///< Ticket::chained
  std::vector<RegisterRange> registers;
};

/// cp.async.bulk groups of one thread, or wgmma groups of one warp.
struct BulkGroups {
  std::vector<uint64_t> open;
  std::deque<std::vector<uint64_t>> committed; ///< oldest first
  size_t waited = 0; ///< number of the first wgmma groups that were waited for and are empty
};

/// The cp.async groups of a warp's threads: threads that have done the same share theirs.
class WarpCopyGroups {
public:
  /// Calls f(groups) for the groups of `lanes`, each once.
  template <typename F> void forLanes(uint32_t lanes, F &&f) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!(parts[i].lanes & lanes))
        continue;
      if (const uint32_t others = parts[i].lanes & ~lanes) {
        parts.push_back(parts[i]);
        parts.back().lanes = others;
        parts[i].lanes &= lanes;
      }
      f(parts[i].groups);
    }
  }

private:
  struct Part {
    uint32_t lanes = ~0u;
    BulkGroups groups;
  };
  std::vector<Part> parts{1};
};

/// The state that one CTA adds to Cta for the asynchronous families.
struct CtaAsync {
  MbarrierTable mbarriers;
  TensorMemory tmem;
  std::map<Thread, BulkGroups> bulkGroups;
  std::map<uint32_t, WarpCopyGroups> copyGroups;     ///< groups of cp.async without bulk, by warp
  std::map<uint32_t, BulkGroups> wgmmaGroups;        ///< groups of wgmma, by warp
  std::map<uint32_t, WgmmaRegisters> wgmmaRegisters; ///< register uses since wgmma.fence, by warp
  std::vector<std::vector<uint64_t>> claims; ///< registers of loads in flight, by warp: claimsOf
  std::array<BarrierArrivals, 16> barrierArrivals; ///< arrivals at each barrier, by its number
};

/// tcgen05.alloc or dealloc of cta_group::2, by one CTA of a pair.
struct PairCall {
  std::string_view what; ///< "alloc"
  uint32_t columns = 0;
  bool operator==(const PairCall &) const = default;
};

class TicketQueue final : public AsyncWork {
public:
  explicit TicketQueue(Cluster &cluster);

  // --- AsyncWork --------------------------------------------------------------------------------
  Status round() override;
  Expected<bool> advance() override;
  bool canAdvance() const override { return !readyTickets.empty(); }
  Status ctaExited(Cta &cta) override;
  Status drain() override;
  Error deadlock() override;
  Status useRegisters(const Warp &warp, const Insn &insn) override;
  /// Every instruction of the warp goes through useRegisters from now on.
  void watchRegisters(Warp &warp);

  // --- For instruction handlers -----------------------------------------------------------------
  static TicketQueue &of(ExecContext &cx) {
    return static_cast<TicketQueue &>(*cx.cluster().async);
  }
  CtaAsync &state(uint32_t rank) { return ctas[rank]; }
  /// The calls of the even and of the odd CTA of a pair, in order.
  std::array<std::vector<PairCall>, 2> &pairCalls(uint32_t pair) { return calls[pair]; }
  Cluster &cluster() { return owner; }

  /// Makes a ticket of the instruction that executes, for `lane`; its id is set.
  Ticket makeTicket(ExecContext &cx, const Insn &insn, TicketKind kind, int lane);
  /// Puts a ticket in flight. With an eager policy it runs at once.
  Status issue(Ticket ticket);

  bool done(uint64_t id) const { return !inFlight.contains(id); }
  bool sourceRead(uint64_t id) const;
  const std::map<uint64_t, Ticket> &tickets() const { return inFlight; }
  /// Runs the next stage of a ticket in flight. False when it has to wait for others.
  Expected<bool> advance(uint64_t id);

  /// Source bytes in shared memory (shared::cluster address) for a stage of `reader`. Fails when
  /// out of bounds, when the CTA has exited, when never written, or when a ticket issued before
  /// `reader` has still to write there.
  Expected<const std::byte *> sharedSource(uint32_t address, uint32_t bytes, const Ticket &reader);
  /// Destination bytes for a stage of a ticket that listed them in writes.shared.
  Expected<std::byte *> sharedDestination(uint32_t address, uint32_t bytes);
  /// Fails when the range is not inside the shared memory of a CTA of the cluster.
  Status checkShared(uint32_t address, uint32_t bytes) const;

  // --- mbarriers --------------------------------------------------------------------------------
  /// The object at a shared::cluster address; fails when the CTA is gone or nothing is there.
  Expected<Mbarrier *> mbarrier(uint32_t address);
  Status completeTx(uint32_t address, uint64_t bytes, const Ticket &ticket);
  Status arrive(uint32_t address, const Ticket &ticket); ///< one arrival, by commit
  /// Adds the name of the mbarrier and the bytes of its phase to an error.
  Error atMbarrier(Error error, uint32_t address) const;
  void emit(const Actor &actor, CodePoint at, BarrierOp op, uint32_t address, uint64_t count,
            MemOrder order = MemOrder::AcqRel, Scope scope = Scope::Cta, uint32_t lanes = 0);
  /// Emits MbarPhaseDone when a phase completed.
  void emitPhase(const Actor &actor, CodePoint at, uint32_t address, const Mbarrier &barrier,
                 PhasesDone phases);
  /// A read or write by a ticket. `unchanged`: a write that finds in memory the bytes it writes.
  void emitAccess(const Ticket &ticket, AccessKind kind, Space space, uint64_t address,
                  uint32_t bytes, Proxy proxy, bool unchanged = false);
  void emitTmem(const Ticket &ticket, AccessKind kind, const TmemCells &cells);
  /// The warp executed tcgen05.wait::ld.
  void loadsWaited(Warp &warp);
  /// The warp waited for wgmma.
  void productsWaited(Warp &warp, const std::vector<uint64_t> &ids);

  // --- tcgen05.fence ----------------------------------------------------------------------------
  // Asynchronous tcgen05 operations before a fence::before_thread_sync are ordered before those
  // that a thread issues after it synchronized with the first and executed
  // fence::after_thread_sync. Checkers, and policies that follow clocks, decide if the thread did
  // synchronize; for other policies tickets are ordered as if it had.
  void publish(const Thread &thread);
  void acquire(const Thread &thread);
  /// The published tickets that `thread` acquired and that are still in flight.
  const std::vector<uint64_t> &acquired(const Thread &thread) const;

  // --- tensor memory ----------------------------------------------------------------------------
  /// Fails when a cell of the range was never written or belongs to a ticket before `reader`.
  Status checkCells(uint32_t rank, const TmemRange &range, uint64_t reader, std::string_view what);
  /// "ticket 12 (tcgen05.mma at gemm.ptx:80)".
  std::string describeTicket(uint64_t id) const override;
  /// Adds the place of the issuing instruction.
  Error located(const Ticket &ticket, Error error) const;

  bool ready(const Ticket &ticket) const;
  /// Returns true when operations of a kind only take time: no thread needs their data.
  bool idle(TicketKind kind) const {
    return owner.launch->timing.idleTickets >> unsigned(kind) & 1;
  }

  /// A poll (mbarrier.test_wait) found nothing. Polls that go on finding nothing while every ticket
  /// is held back make one complete, as blocked warps do.
  void pollMissed() { ++missedPolls; }

private:
  Status runStage(uint64_t id);
  bool writesWhatIsLoaded(const Ticket &ticket) const;
  Status checkDestinations(const Ticket &ticket);
  Status runNow(uint64_t id); ///< all stages
  Status finish(uint64_t id);
  Status runDue(); ///< everything that is ready and due by the policy
  void poison(Ticket &ticket);
  void addReady(uint64_t id);
  void removeFromReady(uint64_t id);
  Warp &warpOf(const Ticket &ticket);
  uint64_t chooseReady(); ///< ready ticket that the policy chooses; one must be ready
  void event(const Ticket &ticket, TicketState state);
  /// `insn` used a register of the load, whose end the warp therefore waited for.
  void emitWaited(const Warp &warp, const Insn &insn, uint64_t id);

  Cluster &owner;
  std::vector<CtaAsync> ctas;
  std::map<uint64_t, Ticket> inFlight; ///< tickets by id, so in issue order
  std::vector<uint64_t> readyTickets;  ///< tickets that wait for no other, in issue order
  std::map<uint64_t, std::vector<uint64_t>> waiting; ///< waiting tickets, by the one they wait for
  std::map<Thread, std::vector<uint64_t>> acquiredTickets;
  /// Calls of tcgen05.alloc and dealloc, by pair and by CTA of the pair.
  std::map<uint32_t, std::array<std::vector<PairCall>, 2>> calls;
  std::vector<UnwaitedLoad> unwaitedLoads; ///< loads that Warp::loadsInFlight counts
  uint64_t nextId = 1;
  const Cta *leaving = nullptr; ///< CTA whose last thread just exited; its memory is still there
  uint32_t missedPolls = 0;     ///< missed polls since the last stage ran

  // The registers of unwaitedLoads, by warp, in units: most instructions name none of them.
  static constexpr uint32_t claimUnit = 64; ///< bytes
  std::vector<uint64_t> &claimsOf(const Warp &warp);
  static void claim(std::vector<uint64_t> &claims, const UnwaitedLoad &load);
  void claimAgain(const Warp &warp);
  bool namesClaimed(const Warp &warp, const Insn &insn);
};

/// Ready when every ticket is done (or, with `readOnly`, has read its source).
class TicketWait final : public Wait {
public:
  TicketWait(TicketQueue &queue, std::vector<uint64_t> tickets, std::string what,
             bool readOnly = false)
      : queue(queue), ids(std::move(tickets)), what(std::move(what)), readOnly(readOnly) {}
  bool ready() const override;
  std::string describe() const override;

private:
  TicketQueue &queue;
  std::vector<uint64_t> ids;
  std::string what;
  bool readOnly;
};

} // namespace fp4::sim
