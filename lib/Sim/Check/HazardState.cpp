//===- HazardState.cpp - The hazard checker's state of a cluster ----------===//
#include "HazardState.h"
#include "fp4/Sim/Events.h"

#include <utility>

namespace fp4::sim::check {

ClusterState::ClusterState(uint32_t index, uint32_t ctas, uint32_t warpsPerCta, bool strict,
                           LaneHistory &laneHistory)
    : index(index), warpsPerCta(warpsPerCta), strict(strict), warpCount(ctas * warpsPerCta),
      laneHistory(laneHistory), warps(warpCount), tickets(1), storers(ctas), stores(warpCount),
      sharedCells(ctas), tmemCells(ctas) {
  for (uint32_t slot = 0; slot < warpCount; ++slot) {
    WarpState &warp = warps[slot];
    warp.rank = slot / warpsPerCta;
    warp.index = slot % warpsPerCta;
    warp.slot = slot;
    warp.clocks.generic.raise(slot, 1);
    warp.clocks.loose.raise(slot, 1);
  }
}

Cell *ClusterState::shared(uint32_t address, uint32_t bytes) {
  constexpr uint32_t limit = 1 << 18; // no CTA has more
  const uint32_t rank = address >> rankShift, offset = address & rankMask;
  if (offset >= limit || bytes > limit - offset || rank >= sharedCells.size())
    return nullptr;
  std::vector<Cell> &cells = sharedCells[rank];
  const size_t needed = (size_t(offset) + bytes - 1) / cellBytes + 1;
  if (cells.size() < needed)
    cells.resize(needed + 64);
  return &cells[offset / cellBytes];
}

Cell *ClusterState::tmem(uint32_t rank, uint32_t column, uint32_t quarter) {
  constexpr uint32_t columns = 512, quarters = 4;
  if (rank >= tmemCells.size() || column >= columns || quarter >= quarters)
    return nullptr;
  if (tmemCells[rank].empty())
    tmemCells[rank].resize(columns * quarters);
  return &tmemCells[rank][column * quarters + quarter];
}

void ClusterState::dropCta(uint32_t rank) {
  sharedCells[rank].clear();
  tmemCells[rank].clear();
}

uint32_t ClusterState::slotOf(uint64_t ticket) const {
  auto it = slotById.find(ticket);
  return it == slotById.end() ? 3 * warpCount : it->second;
}

void ClusterState::advance(WarpState &warp) {
  ++warp.epoch;
  teach(warp, allLanes, [&](Clocks &clocks) {
    clocks.generic.raise(warp.slot, warp.epoch);
    clocks.loose.raise(warp.slot, warp.epoch);
  });
}

//===----------------------------------------------------------------------===//
// Tickets
//===----------------------------------------------------------------------===//

/// Frees the slots of tickets that are done and that no record and no group refers to.
void ClusterState::collect() {
  std::vector<bool> used(tickets.size());
  const auto mark = [&](uint32_t slot) {
    if (isTicket(slot))
      used[slot - 3 * warpCount] = true;
  };
  const Cell *last = nullptr;
  for (auto *shadow : {&sharedCells, &tmemCells})
    for (const std::vector<Cell> &cells : *shadow)
      for (const Cell &cell : cells)
        if (const Cell *before = std::exchange(last, &cell); !before || !cell.isCopyOf(*before))
          cell.forEach([&](const Record &record) { mark(record.slot()); });
  for (auto &[thread, state] : groups) {
    for (const TicketRef &ref : state.open)
      mark(ref.slot);
    for (const auto &group : state.committed)
      for (const TicketRef &ref : group)
        mark(ref.slot);
  }
  for (const auto &[slot, group] : products)
    for (const Product &product : group.open)
      for (const TicketRef &part : product.parts)
        mark(part.slot);
  for (const WarpState &warp : warps)
    for (const auto *list : {&warp.loads, &warp.stores, &warp.copies})
      for (const TicketRef &ref : *list)
        mark(ref.slot);
  freeSlots.clear();
  for (size_t i = tickets.size(); i-- > 1;)
    if (!used[i] && tickets[i].done)
      freeSlots.push_back(3 * warpCount + uint32_t(i));
  collectAt = std::max<size_t>(64, 2 * (tickets.size() - freeSlots.size()));
}

uint32_t ClusterState::takeSlot() {
  if (freeSlots.empty() && tickets.size() >= collectAt)
    collect();
  if (freeSlots.empty()) {
    tickets.emplace_back();
    return 3 * warpCount + uint32_t(tickets.size()) - 1;
  }
  const uint32_t slot = freeSlots.back();
  freeSlots.pop_back();
  return slot;
}

/// Orders an operation behind the tcgen05 operations of its thread that PTX orders before it
/// (Tcgen05Pairs.def), and behind everything that comes before those.
static void orderInPipeline(TicketInfo &info, Pipeline &pipeline, uint32_t slot, bool strict) {
  Pipeline::Alike *same = nullptr;
  for (Pipeline::Alike &earlier : pipeline.issued) {
    if (keepOrder(earlier.op, *info.pipelined, strict))
      info.pipelineIn.join(earlier.clock);
    if (earlier.op == *info.pipelined)
      same = &earlier;
  }
  if (!same)
    same = &pipeline.issued.emplace_back(Pipeline::Alike{*info.pipelined, {}});
  same->clock.join(info.pipelineIn);
  same->clock.raise(slot, info.epoch);
}

/// Lets a commit publish all operations of its thread: a commit is done when they are, and implies
/// fence::before_thread_sync.
static void coverPipeline(TicketInfo &info, const Pipeline &pipeline) {
  Clocks &clocks = info.clocks;
  clocks.tensor.join(clocks.generic);
  for (VectorClock *clock :
       {&clocks.generic, &clocks.async, &clocks.asyncGlobal, &clocks.loose, &clocks.tensor})
    for (const Pipeline::Alike &earlier : pipeline.issued)
      clock->join(earlier.clock);
}

void ClusterState::orderTcgen05(WarpState &issuer, TicketInfo &info, const TicketEvent &event,
                                uint32_t slot) {
  info.tensorIn = issuer.tensorIn;
  info.pipelineIn.clear();
  info.fenced.clear();
  info.ctaGroup = event.ctaGroup;
  info.pipelined = tcgen05Op(event);
  if (info.pipelined && !strict) // by default the accumulator makes no difference
    info.pipelined->accumulator = 0;
  if (!info.pipelined && info.kind != TicketKind::Commit)
    return;
  Pipeline &pipeline = issuer.pipelines[{event.lane, event.ctaGroup}];
  if (!info.pipelined)
    return coverPipeline(info, pipeline);
  orderInPipeline(info, pipeline, slot, strict);
  if (strict)
    info.fenced = issuer.fenced;
}

/// Records the state that the issuer needs to wait for the operation later.
void ClusterState::enlist(WarpState &issuer, TicketInfo &info, const TicketEvent &event,
                          const TicketRef &ref) {
  if (info.kind == TicketKind::ThreadCopy && event.signals.empty())
    issuer.copies.push_back(ref);
  else if (info.kind == TicketKind::ThreadCopy) // cp.async.mbarrier.arrive
    for (const TicketRef &copy : issuer.copies)
      learn(info.clocks, copy, false);
  if (info.kind == TicketKind::Wgmma) {
    const uint32_t part = issuer.index % 4;
    Products &group = products[issuer.slot - part];
    const size_t index = issuer.products++ - group.first;
    if (group.open.size() <= index)
      group.open.resize(index + 1);
    group.open[index].parts[part] = ref;
    group.open[index].epochs[part] = issuer.epoch;
    group.open[index].issued |= 1u << part;
  }
  if (info.kind == TicketKind::TmemLoad)
    issuer.loads.push_back(ref);
  if (info.kind == TicketKind::TmemStore)
    issuer.stores.push_back(ref);
  if (event.bulkGroup)
    groups[{issuer.slot, event.lane}].open.push_back(ref);
}

void ClusterState::mmaWaited(WarpState &warp, uint64_t ticket) {
  const uint32_t part = warp.index % 4;
  auto found = products.find(warp.slot - part);
  if (found == products.end())
    return;
  Products &group = found->second;
  for (Product &product : group.open) {
    if (!(product.issued >> part & 1) || (product.waited >> part & 1) ||
        ticketAt(product.parts[part].slot).id != ticket)
      continue;
    for (uint32_t other = 0; other < 4; ++other)
      if (product.issued >> other & 1) {
        teach(warp, allLanes, [&](Clocks &clocks) {
          learn(clocks, product.parts[other], false);
          clocks.loose.raise(warp.slot - part + other, product.epochs[other]);
        });
      }
    product.waited |= 1u << part;
    break;
  }
  for (; !group.open.empty() && group.open.front().waited == 0xF; ++group.first)
    group.open.pop_front();
}

/// Returns the lanes that issue an operation: one, or all where the warp issues the instruction.
static uint32_t lanesOf(const TicketEvent &event) {
  switch (event.kind) {
  case TicketKind::Wgmma:
  case TicketKind::TmemLoad:
  case TicketKind::TmemStore:
    return allLanes;
  case TicketKind::ThreadCopy:
    return event.signals.empty() ? allLanes : 1u << event.lane;
  default:
    return 1u << event.lane;
  }
}

void ClusterState::fork(const TicketEvent &event) {
  WarpState &issuer = warp(event.actor);
  const Clocks &clocks = published(issuer, lanesOf(event), event.at.pc); // it may take a slot
  const uint32_t slot = takeSlot();
  slotById[event.id] = slot;
  TicketInfo &info = ticketAt(slot);
  info.id = event.id;
  ++info.epoch;
  info.warpSlot = issuer.slot;
  info.lane = event.lane;
  info.pc = event.at.pc;
  info.issued = ++sequence;
  info.laneSync = issuer.order.sync;
  info.number = ++issuer.asyncCount;
  info.kind = event.kind;
  info.proxy = event.proxy;
  info.signal = event.signals.empty() ? 0 : event.signals.front();
  info.stores = event.signals.empty();
  info.done = false;
  info.clocks = clocks;
  orderTcgen05(issuer, info, event, slot);
  enlist(issuer, info, event, {slot, info.epoch, info.number});
  advance(issuer);
}

void ClusterState::learn(Clocks &clocks, const TicketRef &ref, bool written) const {
  const TicketInfo &info = tickets[ref.slot - 3 * warpCount];
  if (info.kind == TicketKind::ThreadCopy) { // of the generic proxy: the async one takes a fence
    clocks.generic.raise(ref.slot, ref.epoch);
    clocks.loose.raise(ref.slot, ref.epoch);
    return;
  }
  clocks.raiseAll(ref.slot, ref.epoch);
  clocks.raiseAll(readSlot(info.warpSlot), ref.stores);
  if (written && info.stores)
    clocks.raiseAll(writeSlot(info.warpSlot), ref.stores);
}

void ClusterState::complete(uint64_t id) {
  // Signals of a ticket follow this event, and nothing of another ticket comes between.
  if (finished && finished != id) {
    TicketInfo &old = ticket(finished);
    old.done = true;
    old.clocks.clear();
    old.tensorIn.clear();
    old.pipelineIn.clear();
    old.fenced.clear();
    slotById.erase(finished);
  }
  TicketInfo &info = ticket(id);
  learn(info.clocks, {slotOf(id), info.epoch, info.number}, true);
  finished = id;
}

} // namespace fp4::sim::check
