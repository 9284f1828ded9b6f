//===- Mbarrier.cpp - mbarrier objects of one CTA -------------------------===//
#include "Mbarrier.h"
#include "Sim/Async/Fail.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fp4::sim {
namespace {

void remember(ArrivalEvents &events, const ArrivalEvent &event) {
  if (events.size() < kMostArrivals)
    events.push_back(event);
}

/// Adds bytes to those of the same instruction. A phase with very many of them is not told apart.
void count(std::vector<Transactions> &list, CodePoint at, bool delivered, uint64_t bytes) {
  constexpr size_t most = 64;
  auto found = std::ranges::find_if(
      list, [&](const Transactions &t) { return t.at.pc == at.pc && t.delivered == delivered; });
  if (found == list.end() && list.size() < most)
    found = list.insert(list.end(), {at, delivered, 0, 0});
  if (found == list.end())
    return;
  found->bytes += bytes;
  ++found->times;
}

} // namespace

std::string Mbarrier::describe() const {
  std::string text = fmt::format("phase {}, {} of {} arrivals pending", phase, pending, expected);
  if (tx > 0)
    text += fmt::format(", {} bytes expected and not delivered", tx);
  if (tx < 0)
    text += fmt::format(", {} bytes delivered and not expected", -tx);
  return text;
}

std::string Mbarrier::describeHistory(const Launch *launch) const {
  std::string text = "arrived in this phase: " + listArrivals(arrivals, launch);
  if (phase == 0)
    return text;
  text += "; in the phase before: " + listArrivals(previousArrivals, launch);
  const ArrivalEvents missing = missingArrivals(previousArrivals, arrivals);
  if (pending && !arrivals.empty() && !missing.empty())
    text += "; not yet again: " + listArrivals(missing, launch);
  return text;
}

std::string Mbarrier::describeBytes(const Launch *launch) const {
  std::array<std::string, 2> text;
  for (const Transactions &some : transactions) {
    std::string &side = text[some.delivered];
    side += fmt::format("{}{} ({}", side.empty() ? "" : " + ", some.bytes,
                        describePoint(launch, some.at));
    side += some.times > 1 ? fmt::format("; in {} times)", some.times) : ")";
  }
  for (std::string &side : text)
    side = side.empty() ? "nothing" : side;
  return fmt::format("announced: {}; delivered: {}", text[0], text[1]);
}

void Mbarrier::waited(uint32_t warp, uint64_t phaseDone) {
  if (warp >= awaited.size())
    awaited.resize(warp + 1);
  awaited[warp] = phaseDone + 2; // the phase before the first is -1
}

std::string Mbarrier::describeParity(uint32_t warp, uint64_t wanted) const {
  const uint64_t seen = warp < awaited.size() ? awaited[warp] : 0;
  const uint64_t next = seen ? seen - 1 : 0; // the phase that it has to wait for
  if (!seen && !wanted && !phase && arrivals.empty() && !tx)
    return "; it is the first wait of the warp here, and nobody has ever arrived (the wait for a "
           "stage that nobody has filled yet begins with parity 1)";
  if (wanted <= next)
    return "";
  const std::string before =
      next ? fmt::format("has last waited for phase {}", next - 1) : "has not waited here before";
  // Warps that share a ring may wait for every other phase.
  const bool alone = std::ranges::none_of(awaited, [&](uint64_t a) { return a >= next + 2; });
  if ((wanted - next) % 2)
    return alone ? fmt::format("; the warp {}, and has never waited for phase {}, which has "
                               "completed: its parity is one ahead",
                               before, next)
                 : "";
  return fmt::format(
      "; the warp was lapped: it {}, and phases {} to {} have completed meanwhile, so "
      "its parity may mean phase {} (who completes a phase must know that every "
      "waiting warp has seen the one before)",
      before, next, wanted - 1, next);
}

Status MbarrierTable::init(uint32_t offset, uint32_t count, const MbarrierEvent &event,
                           bool reporting) {
  Mbarrier fresh;
  fresh.reporting = reporting;
  if (offset % 8)
    return fail(fmt::format("mbarrier address must be a multiple of 8, but got {:#x}", offset));
  if (count < 1 || count > fresh.maxArrivals())
    return fail(fmt::format("mbarrier.init expects a count of 1 to {}, but got {}",
                            fresh.maxArrivals(), count));
  if (const Mbarrier *old = overlapping(offset, 8))
    return fail(fmt::format("mbarrier.init at {:#x}, where an mbarrier initialised at line {} is "
                            "in use ({})",
                            offset, old->initialised.at.line, old->describe()),
                "execute mbarrier.inval first");
  Mbarrier &barrier = table[offset];
  barrier = fresh;
  barrier.offset = offset;
  barrier.expected = barrier.pending = count;
  barrier.initialised = event;
  return {};
}

Status MbarrierTable::inval(uint32_t offset) {
  FP4_ASSIGN(auto barrier, find(offset));
  if (barrier->tx != 0)
    return fail(fmt::format("mbarrier.inval at {:#x} with transactions outstanding ({})", offset,
                            barrier->describe()));
  table.erase(offset);
  return {};
}

Expected<Mbarrier *> MbarrierTable::find(uint32_t offset) {
  auto it = table.find(offset);
  if (it != table.end())
    return &it->second;
  if (offset % 8)
    return fail(fmt::format("mbarrier address must be a multiple of 8, but got {:#x}", offset));
  std::string known;
  for (const auto &[at, barrier] : table)
    known += fmt::format("{}{:#x}", known.empty() ? "" : ", ", at);
  return fail(fmt::format("no mbarrier is initialised at shared address {:#x}", offset),
              known.empty() ? "no mbarrier.init has been executed in this CTA"
                            : "initialised mbarriers are at " + known);
}

const Mbarrier *MbarrierTable::lookup(uint32_t offset) const {
  auto it = table.find(offset);
  return it == table.end() ? nullptr : &it->second;
}

const Mbarrier *MbarrierTable::overlapping(uint32_t offset, uint32_t bytes) const {
  auto it = table.lower_bound(offset >= 7 ? offset - 7 : 0);
  return it != table.end() && it->first < offset + bytes ? &it->second : nullptr;
}

Status MbarrierTable::checkArrival(const Mbarrier &barrier, uint32_t count) const {
  if (count < 1 || count > barrier.maxArrivals())
    return fail(fmt::format("mbarrier arrival expects a count of 1 to {}, but got {}",
                            barrier.maxArrivals(), count));
  if (count > barrier.pending)
    return fail(fmt::format("mbarrier at {:#x} gets {} arrivals with {} pending in phase {}",
                            barrier.offset, count, barrier.pending, barrier.phase),
                fmt::format("it was initialised with {} expected arrivals at line {}",
                            barrier.expected, barrier.initialised.at.line));
  return {};
}

Expected<PhasesDone> MbarrierTable::settle(Mbarrier &barrier) {
  if (barrier.pending || barrier.tx > 0)
    return 0u;
  if (barrier.tx < 0)
    return fail(fmt::format("mbarrier at {:#x} has every arrival of phase {}, but {} bytes more "
                            "were delivered than expected",
                            barrier.offset, barrier.phase, -barrier.tx),
                "expect_tx must announce every byte of the phase before its last arrival; a box "
                "counts whole, also where it leaves the tensor");
  ++barrier.phase;
  barrier.transactions.clear();
  barrier.pending = barrier.expected;
  barrier.previousArrivals = std::exchange(barrier.arrivals, {});
  barrier.previousDeliveries = std::exchange(barrier.deliveries, {});
  return 1u;
}

Expected<PhasesDone> MbarrierTable::arrive(Mbarrier &barrier, uint32_t count,
                                           const MbarrierEvent &event) {
  FP4_TRY(checkArrival(barrier, count));
  barrier.pending -= count;
  remember(barrier.arrivals, event);
  return settle(barrier);
}

Status MbarrierTable::arriveNoComplete(Mbarrier &barrier, uint32_t count,
                                       const MbarrierEvent &event) {
  FP4_TRY(checkArrival(barrier, count));
  if (barrier.pending == count)
    return fail(fmt::format("mbarrier.arrive.noComplete would complete phase {} of the mbarrier "
                            "at {:#x}",
                            barrier.phase, barrier.offset));
  barrier.pending -= count;
  remember(barrier.arrivals, event);
  return {};
}

Expected<PhasesDone> MbarrierTable::arriveDrop(Mbarrier &barrier, uint32_t count, bool noComplete,
                                               const MbarrierEvent &event) {
  FP4_TRY(checkArrival(barrier, count));
  if (noComplete) {
    FP4_TRY(arriveNoComplete(barrier, count, event));
    barrier.expected -= count;
    return 0u;
  }
  barrier.expected -= count;
  return arrive(barrier, count, event);
}

Status MbarrierTable::expectTx(Mbarrier &barrier, uint64_t bytes, CodePoint at) {
  if (bytes > uint64_t(Mbarrier::maxCount) || barrier.tx + int64_t(bytes) > Mbarrier::maxCount)
    return fail(fmt::format("mbarrier at {:#x} expects {} bytes and {} more: the transaction count "
                            "must not exceed {}",
                            barrier.offset, barrier.tx, bytes, Mbarrier::maxCount));
  barrier.tx += int64_t(bytes);
  count(barrier.transactions, at, /*delivered=*/false, bytes);
  return {};
}

Expected<PhasesDone> MbarrierTable::completeTx(Mbarrier &barrier, uint64_t bytes,
                                               const MbarrierEvent &event) {
  if (barrier.tx - int64_t(bytes) < -Mbarrier::maxCount)
    return fail(fmt::format("mbarrier at {:#x} gets {} bytes, with {} delivered and not expected: "
                            "the transaction count must not fall below -{}",
                            barrier.offset, bytes, -barrier.tx, Mbarrier::maxCount));
  barrier.tx -= int64_t(bytes);
  count(barrier.transactions, event.at, /*delivered=*/true, bytes);
  remember(barrier.deliveries, event);
  return settle(barrier);
}

Expected<bool> MbarrierTable::tokenDone(const Mbarrier &barrier, uint64_t token) {
  const uint32_t behind = uint32_t(barrier.phase) - uint32_t(token);
  if (behind > 1)
    return fail(fmt::format("mbarrier at {:#x} is waited for with the state of phase {}, but its "
                            "phase is {}",
                            barrier.offset, uint32_t(token), barrier.phase),
                "a state may be waited for in its own phase and in the next one only");
  return behind == 1;
}

} // namespace fp4::sim
