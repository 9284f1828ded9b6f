//===- Mbarrier.cpp - mbarrier.* instructions -----------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". Every active
// lane acts for itself, in lane order; waits that fail block the lanes until one of them would
// succeed.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "Sim/State/Awaited.h"
#include "fp4/Sim/Events/BarrierEvent.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fp4::sim {

bool sharedAddress(ExecContext &cx, Space space, const Operand &o, int lane, uint32_t &address) {
  const uint64_t raw = cx.address(o, lane);
  const auto place = cx.place(space, raw);
  if (place.space != Space::SharedCluster && place.space != Space::SharedCta) {
    cx.fail(fmt::format("expects an address in shared memory, but got {:#x}", raw), "", lane);
    return false;
  }
  address = static_cast<uint32_t>(place.address);
  return true;
}

bool singleLane(ExecContext &cx, std::string_view instruction) {
  if (std::has_single_bit(cx.mask))
    return true;
  cx.fail(fmt::format("{} expects one thread to issue it, but {} lanes do", instruction,
                      std::popcount(cx.mask)),
          "guard it with elect.sync, or every lane issues its own copy");
  return false;
}

namespace {

MemOrder orderOf(const Insn &insn) { return insn.as<MbarrierModifiers>().order; }
Scope scopeOf(const Insn &insn) { return insn.as<MbarrierModifiers>().scope; }

/// The mbarrier at a shared::cluster address with its table; null after cx.fail.
struct Found {
  Mbarrier *barrier = nullptr;
  MbarrierTable *table = nullptr;
  uint32_t address = 0;
};
Found barrierAt(ExecContext &cx, uint32_t address, int lane) {
  TicketQueue &queue = TicketQueue::of(cx);
  auto barrier = queue.mbarrier(address);
  if (!barrier) {
    failHere(cx, std::move(barrier.error()), lane);
    return {};
  }
  return {*barrier, &queue.state(address >> kSharedRankShift).mbarriers, address};
}

Found findBarrier(ExecContext &cx, const Insn &insn, const Operand &o, int lane) {
  uint32_t address;
  if (!sharedAddress(cx, insn.as<MbarrierModifiers>().space, o, lane, address))
    return {};
  return barrierAt(cx, address, lane);
}

/// Calls f(mbarrier) for that of the address, or for those at its offset in each CTA of the mask of
/// .multicast::cluster::32b; false where f is, or after cx.fail.
template <typename F>
bool forEachBarrier(ExecContext &cx, const Insn &insn, const Operand &o, int lane, F &&f) {
  const auto &how = insn.as<MbarrierModifiers>();
  uint32_t address;
  if (!sharedAddress(cx, how.space, o, lane, address))
    return false;
  uint32_t ranks = how.ranks ? uint32_t(cx.scalar(insn.op[how.ranks], lane))
                             : 1u << (address >> kSharedRankShift);
  for (; ranks; ranks &= ranks - 1) {
    const uint32_t rank = uint32_t(std::countr_zero(ranks)) << kSharedRankShift;
    const Found found = barrierAt(cx, rank | (address & kSharedOffsetMask), lane);
    if (!found.barrier || !f(found))
      return false;
  }
  return true;
}

/// Lanes blocked until one of their waits would succeed.
class MbarrierWait final : public Wait, public AwaitsWarps {
public:
  struct Target {
    const Mbarrier *barrier;
    uint64_t phase; ///< the phase that must complete
    uint32_t address;
  };
  MbarrierWait(ExecContext &cx, uint32_t warp, bool limited)
      : launch(cx.launch()), warp(warp), limited(limited) {}
  std::vector<Target> targets;

  bool ready() const override {
    for (const Target &target : targets)
      if (target.barrier->phase > target.phase)
        return true;
    return false;
  }
  std::string describe() const override {
    const Target &target = targets.front();
    const Mbarrier &barrier = *target.barrier;
    const std::string symbol = launch.kernel->sharedSymbol(barrier.offset);
    std::string text = fmt::format(
        "phase {} (parity {}) of the mbarrier{} at shared {:#x} of CTA rank {}, "
        "initialised at {}: {}; {}",
        target.phase, target.phase & 1, symbol.empty() ? "" : " '" + symbol + "'", barrier.offset,
        target.address >> kSharedRankShift, describePoint(&launch, barrier.initialised.at),
        barrier.describe(), barrier.describeHistory(&launch));
    if (barrier.tx)
      text += "; " + barrier.describeBytes(&launch);
    return text + describeNoInc(barrier) + barrier.describeParity(warp, target.phase);
  }
  Awaited awaited() const override {
    const uint32_t offset = targets.front().barrier->offset;
    const std::string symbol = launch.kernel->sharedSymbol(offset);
    return {Awaited::What::Mbarrier, targets.front().address >> kSharedRankShift, offset,
            symbol.empty() ? fmt::format("the mbarrier at {:#x}", offset) : "'" + symbol + "'"};
  }

  bool expires() const override { return limited; }
  uint64_t state() const override {
    uint64_t sum = 0;
    for (const Target &target : targets)
      sum = sum * 31 + (target.barrier->phase << 20) + target.barrier->pending;
    return sum;
  }

private:
  /// Explains arrivals after which as many are pending as before.
  std::string describeNoInc(const Mbarrier &barrier) const {
    const auto increments = [&](const ArrivalEvent &event) {
      const auto *how = launch.kernel->code[event.at.pc].get<CopyArriveModifiers>();
      return how && !how->noIncrement;
    };
    if (barrier.pending < barrier.expected || std::ranges::none_of(barrier.arrivals, increments))
      return "";
    return "; .noinc is missing: without it cp.async.mbarrier.arrive makes one more arrival "
           "pending before it arrives";
  }

  const Launch &launch;
  uint32_t warp;
  bool limited; ///< try_wait: it may end without success
};

/// Returns true when a warp of the CTA is blocked on the object.
bool hasWaiter(const Cta &cta, const Mbarrier *barrier) {
  for (const Warp &warp : cta.warps)
    for (const LaneGroup &group : warp.groups)
      if (auto *wait = dynamic_cast<const MbarrierWait *>(group.wait.get()))
        for (const MbarrierWait::Target &target : wait->targets)
          if (target.barrier == barrier && target.barrier->phase <= target.phase)
            return true;
  return false;
}

template <typename F> Outcome forEachLane(ExecContext &cx, F &&f) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (!f(std::countr_zero(rest)))
      return Outcome::Error;
  return Outcome::Next;
}

/// Returns true when an earlier lane initializes the same mbarrier with the same count: in practice
/// that is done once.
bool isRepeated(ExecContext &cx, const Insn &insn, int lane) {
  if (cx.launch().options->judgement == Judgement::Letter)
    return false;
  for (uint32_t rest = cx.mask & ((1u << lane) - 1); rest; rest &= rest - 1) {
    const int earlier = std::countr_zero(rest);
    if (cx.address(insn.op[0], earlier) == cx.address(insn.op[0], lane) &&
        cx.scalar(insn.op[1], earlier) == cx.scalar(insn.op[1], lane))
      return true;
  }
  return false;
}

/// PTX ISA, "mbarrier.init".
Outcome mbarrierInit(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  return forEachLane(cx, [&](int lane) {
    uint32_t address;
    if (isRepeated(cx, insn, lane))
      return true;
    if (!sharedAddress(cx, insn.as<MbarrierModifiers>().space, insn.op[0], lane, address) ||
        !cx.sharedObject(address, 8, 8))
      return false;
    if (address >> kSharedRankShift != cx.cta().rank)
      return cx.fail("mbarrier.init expects an mbarrier of its own CTA", "", lane), false;
    const uint32_t count = static_cast<uint32_t>(cx.scalar(insn.op[1], lane));
    Status status = queue.state(cx.cta().rank)
                        .mbarriers.init(address & kSharedOffsetMask, count, {cx.actor(), cx.here()},
                                        insn.as<MbarrierModifiers>().reporting);
    if (!status)
      return failHere(cx, std::move(status.error()), lane), false;
    queue.emit(cx.actor(), cx.here(), BarrierOp::MbarInit, address, count, MemOrder::Weak,
               Scope::Cta, 1u << lane);
    return true;
  });
}

/// PTX ISA, "mbarrier.inval".
Outcome mbarrierInval(ExecContext &cx, const Insn &insn) {
  return forEachLane(cx, [&](int lane) {
    const Found found = findBarrier(cx, insn, insn.op[0], lane);
    if (!found.barrier)
      return false;
    if (hasWaiter(cx.cta(), found.barrier))
      return cx.fail(fmt::format("mbarrier.inval of the mbarrier at {:#x} while a warp waits on it",
                                 found.barrier->offset),
                     "", lane),
             false;
    Status status = found.table->inval(found.barrier->offset);
    if (!status)
      return failHere(cx, std::move(status.error()), lane), false;
    cx.cta().shared.markUninitialized(found.address & kSharedOffsetMask, 8);
    TicketQueue::of(cx).emit(cx.actor(), cx.here(), BarrierOp::MbarInval, found.address, 0,
                             MemOrder::Weak, Scope::Cta, 1u << lane);
    return true;
  });
}

/// expect_tx of `bytes` by one lane.
bool expectBytes(ExecContext &cx, const Insn &insn, const Found &found, uint64_t bytes, int lane) {
  Status status = found.table->expectTx(*found.barrier, bytes, cx.here());
  if (!status)
    return failHere(cx, std::move(status.error()), lane), false;
  TicketQueue::of(cx).emit(cx.actor(), cx.here(), BarrierOp::MbarExpectTx, found.address, bytes,
                           orderOf(insn), scopeOf(insn), 1u << lane);
  return true;
}

Expected<PhasesDone> arriveAs(Arrival arrival, const Found &found, uint32_t count,
                              const MbarrierEvent &event) {
  switch (arrival) {
  case Arrival::NoComplete:
    if (Status status = found.table->arriveNoComplete(*found.barrier, count, event); !status)
      return tl::unexpected(std::move(status.error()));
    return 0u;
  case Arrival::Drop:
  case Arrival::DropExpectTx:
  case Arrival::DropNoComplete:
    return found.table->arriveDrop(*found.barrier, count, arrival == Arrival::DropNoComplete,
                                   event);
  default:
    return found.table->arrive(*found.barrier, count, event);
  }
}

/// PTX ISA, "mbarrier.arrive" and "mbarrier.arrive_drop", with and without expect_tx.
Outcome mbarrierArrive(ExecContext &cx, const Insn &insn) {
  const Arrival arrival = insn.as<MbarrierModifiers>().arrival;
  const bool expects = arrival == Arrival::ExpectTx || arrival == Arrival::DropExpectTx;
  const bool counted = insn.op[2] && insn.as<MbarrierModifiers>().ranks != 2;
  TicketQueue &queue = TicketQueue::of(cx);
  uint32_t arrived = 0;
  const auto arriveAt = [&](const Found &found, int lane) {
    const uint64_t operand = counted ? cx.scalar(insn.op[2], lane) : 1;
    if (expects && !expectBytes(cx, insn, found, operand, lane))
      return false;
    const uint32_t count = expects ? 1 : static_cast<uint32_t>(operand);
    const uint64_t token = found.barrier->token();
    // Lane mask 0: the next lane arrives here too, and what all of them did is published with the
    // last.
    arrived |= 1u << lane;
    const bool more = !insn.as<MbarrierModifiers>().ranks && lane < 31 &&
                      cx.mask >> (lane + 1) & 1 &&
                      cx.address(insn.op[1], lane + 1) == cx.address(insn.op[1], lane);
    queue.emit(cx.actor(), cx.here(), BarrierOp::MbarArrive, found.address, count, orderOf(insn),
               scopeOf(insn), more ? 0 : std::exchange(arrived, 0));
    auto phases = arriveAs(arrival, found, count, {cx.actor(), cx.here()});
    if (!phases)
      return failHere(cx, queue.atMbarrier(std::move(phases.error()), found.address), lane), false;
    queue.emitPhase(cx.actor(), cx.here(), found.address, *found.barrier, *phases);
    if (insn.op[0])
      cx.setScalar(insn.op[0], lane, token);
    return true;
  };
  return forEachLane(cx, [&](int lane) {
    return forEachBarrier(cx, insn, insn.op[1], lane,
                          [&](const Found &found) { return arriveAt(found, lane); });
  });
}

/// PTX ISA, "mbarrier.expect_tx".
Outcome mbarrierExpectTx(ExecContext &cx, const Insn &insn) {
  return forEachLane(cx, [&](int lane) {
    return forEachBarrier(cx, insn, insn.op[0], lane, [&](const Found &found) {
      return expectBytes(cx, insn, found, cx.scalar(insn.op[1], lane), lane);
    });
  });
}

/// PTX ISA, "mbarrier.complete_tx": moves no data.
Outcome mbarrierCompleteTx(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto completeAt = [&](const Found &found, int lane) {
    const uint64_t bytes = cx.scalar(insn.op[1], lane);
    queue.emit(cx.actor(), cx.here(), BarrierOp::MbarCompleteTx, found.address, bytes,
               orderOf(insn), scopeOf(insn), 1u << lane);
    auto phases = found.table->completeTx(*found.barrier, bytes, {cx.actor(), cx.here()});
    if (!phases)
      return failHere(cx, std::move(phases.error()), lane), false;
    queue.emitPhase(cx.actor(), cx.here(), found.address, *found.barrier, *phases);
    return true;
  };
  return forEachLane(cx, [&](int lane) {
    return forEachBarrier(cx, insn, insn.op[0], lane,
                          [&](const Found &found) { return completeAt(found, lane); });
  });
}

/// Returns true for a parity: by the letter, 0 or 1, or a sign-extended truth value, as Triton has
/// it. Machine code shifts the lowest bit to the top, and published kernels pass other numbers.
bool isParity(ExecContext &cx, uint64_t value) {
  constexpr uint32_t allOnes = ~0u;
  return value <= 1 || value == allOnes || cx.launch().options->judgement == Judgement::Practice;
}

/// The phase a wait is for: with a parity, the latest phase of that parity not after the current
/// one; with a state, the state's.
bool phaseWanted(ExecContext &cx, const Insn &insn, const Found &found, int lane, uint64_t &phase,
                 bool &passed) {
  const uint64_t value = cx.scalar(insn.op[insn.as<MbarrierModifiers>().address + 1u], lane);
  const Mbarrier &barrier = *found.barrier;
  if (insn.as<MbarrierModifiers>().parity) {
    if (!isParity(cx, value))
      return cx.fail(fmt::format("phase parity must be 0 or 1, but got {}", value), "", lane),
             false;
    passed = barrier.parityDone(uint32_t(value & 1));
    phase =
        passed ? barrier.phase - 1 : barrier.phase; // of a fresh barrier: phase -1, which passed
    return true;
  }
  auto done = MbarrierTable::tokenDone(barrier, value);
  if (!done)
    return failHere(cx, std::move(done.error()), lane), false;
  passed = *done;
  phase = barrier.phase - (passed ? 1 : 0);
  return true;
}

/// The lanes that pass a wait. Lanes that pass one phase do so together.
class PassedLanes {
public:
  PassedLanes(ExecContext &cx, const Insn &insn) : cx(cx), insn(insn) {}
  void add(int lane, uint32_t barrier, uint64_t phaseOfIt) {
    if (address != barrier || phase != phaseOfIt)
      tell();
    address = barrier;
    phase = phaseOfIt;
    together |= 1u << lane;
    all |= 1u << lane;
  }
  /// The observer is told of the last ones.
  void tell() {
    if (together)
      TicketQueue::of(cx).emit(cx.actor(), cx.here(), BarrierOp::MbarWaitPass, address, phase,
                               orderOf(insn), scopeOf(insn), std::exchange(together, 0));
  }
  uint32_t mask() const { return all; }

private:
  ExecContext &cx;
  const Insn &insn;
  uint32_t address = 0, together = 0, all = 0;
  uint64_t phase = 0;
};

/// No copy reports here, so that the report is zero and both phases advance together.
void setReport(ExecContext &cx, const Insn &insn) {
  const unsigned address = insn.as<MbarrierModifiers>().address;
  if (address > 1)
    cx.setPredicate(insn.op[1], 0);
  for (uint32_t rest = address > 2 && insn.op[2] ? cx.mask : 0; rest; rest &= rest - 1)
    cx.setScalar(insn.op[2], std::countr_zero(rest), 0);
}

/// PTX ISA, "mbarrier.test_wait, mbarrier.try_wait". A try_wait that would fail for every lane
/// blocks; the hardware's time limit may also let it return false: so it does when nothing else can
/// happen, and at times with the random policy.
template <bool suspends> Outcome mbarrierWait(ExecContext &cx, const Insn &insn) {
  PassedLanes lanes(cx, insn);
  auto wait = std::make_unique<MbarrierWait>(cx, cx.warp().index, suspends);
  const Outcome outcome = forEachLane(cx, [&](int lane) {
    const Found found = findBarrier(cx, insn, insn.op[insn.as<MbarrierModifiers>().address], lane);
    uint64_t phase;
    bool passed;
    if (!found.barrier)
      return false;
    if (found.address >> kSharedRankShift != cx.cta().rank)
      return cx.fail("a wait expects an mbarrier of its own CTA", "", lane), false;
    if (!phaseWanted(cx, insn, found, lane, phase, passed))
      return false;
    if (passed) {
      found.barrier->waited(cx.warp().index, phase);
      lanes.add(lane, found.address, phase);
    } else {
      wait->targets.push_back({found.barrier, phase, found.address});
    }
    return true;
  });
  lanes.tell();
  if (outcome == Outcome::Error)
    return outcome;
  if (!lanes.mask() && suspends && !cx.expired && !cx.cluster().policy->spurious(3))
    return cx.block(std::move(wait));
  cx.setPredicate(insn.op[0], lanes.mask());
  setReport(cx, insn);
  for (const MbarrierWait::Target &target : wait->targets)
    cx.cluster().policy->polled(target.address);
  if (lanes.mask())
    return Outcome::Next;
  TicketQueue::of(cx).pollMissed();
  return Outcome::Yield;
}

/// PTX ISA, "mbarrier.check_layout".
Outcome mbarrierCheckLayout(ExecContext &cx, const Insn &insn) {
  uint32_t same = 0;
  const Outcome outcome = forEachLane(cx, [&](int lane) {
    const Found found = findBarrier(cx, insn, insn.op[1], lane);
    if (found.barrier && found.barrier->reporting == insn.as<MbarrierModifiers>().reporting)
      same |= 1u << lane;
    return found.barrier != nullptr;
  });
  if (outcome != Outcome::Error)
    cx.setPredicate(insn.op[0], same);
  return outcome;
}

/// PTX ISA, "mbarrier.pending_count".
Outcome mbarrierPendingCount(ExecContext &cx, const Insn &insn) {
  const uint64_t *state = cx.src<uint64_t>(insn.op[1]);
  cx.store<uint32_t>(insn.op[0], [&](int lane) { return uint32_t(state[lane] >> 32); });
  return Outcome::Next;
}

MbarrierModifiers &decodeModifiers(BindContext &bind, MemOrder absent) {
  return bind.insn.make<MbarrierModifiers>(
      {spaceFromText(bind.match.text("space")), bind.match.order("sem", absent),
       bind.match.has("scope") ? bind.match.scope() : Scope::Cta});
}

} // namespace

Status bindMbarrierInit(BindContext &bind) {
  decodeModifiers(bind, MemOrder::Weak).reporting = bind.match.text("layout") == "layout::v1";
  return bind.use(mbarrierInit);
}
Status bindMbarrierCheckLayout(BindContext &bind) {
  decodeModifiers(bind, MemOrder::Weak).reporting = bind.match.text("layout") == "layout::v1";
  return bind.use(mbarrierCheckLayout);
}
/// The place of the mask of CTAs: the last operand, behind `first`.
static uint8_t placeOfRanks(const BindContext &bind, uint8_t first) {
  if (!bind.match.has("multicast::cluster::32b"))
    return 0;
  return bind.insn.op[first + 1u] ? uint8_t(first + 1) : first;
}
Status bindMbarrierInval(BindContext &bind) {
  decodeModifiers(bind, MemOrder::Weak);
  return bind.use(mbarrierInval);
}
static Status bindArrival(BindContext &bind, bool drop) {
  MbarrierModifiers &modifiers = decodeModifiers(bind, MemOrder::Release);
  modifiers.ranks = placeOfRanks(bind, 2);
  Arrival &arrival = modifiers.arrival;
  arrival = drop ? Arrival::Drop : Arrival::Plain;
  if (bind.match.has("expect_tx"))
    arrival = drop ? Arrival::DropExpectTx : Arrival::ExpectTx;
  if (bind.match.has("noComplete"))
    arrival = drop ? Arrival::DropNoComplete : Arrival::NoComplete;
  return bind.use(mbarrierArrive);
}
Status bindMbarrierArrive(BindContext &bind) { return bindArrival(bind, false); }
Status bindMbarrierArriveDrop(BindContext &bind) { return bindArrival(bind, true); }
Status bindMbarrierExpectTx(BindContext &bind) {
  decodeModifiers(bind, MemOrder::Relaxed).ranks = placeOfRanks(bind, 1);
  return bind.use(mbarrierExpectTx);
}
Status bindMbarrierCompleteTx(BindContext &bind) {
  decodeModifiers(bind, MemOrder::Relaxed).ranks = placeOfRanks(bind, 1);
  return bind.use(mbarrierCompleteTx);
}
static void describeWait(BindContext &bind) {
  MbarrierModifiers &modifiers = decodeModifiers(bind, MemOrder::Acquire);
  modifiers.parity = bind.match.has("parity");
  modifiers.address = bind.match.has("value") ? 3 : bind.match.has("report") ? 2 : 1;
}
Status bindMbarrierTestWait(BindContext &bind) {
  describeWait(bind);
  return bind.use(mbarrierWait<false>);
}
Status bindMbarrierTryWait(BindContext &bind) {
  describeWait(bind);
  return bind.use(mbarrierWait<true>);
}
Status bindMbarrierPendingCount(BindContext &bind) { return bind.use(mbarrierPendingCount); }

} // namespace fp4::sim
