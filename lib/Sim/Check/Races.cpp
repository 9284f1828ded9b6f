//===- Races.cpp - Two accesses that nothing orders -----------------------===//
//
// PTX ISA, "Memory Consistency Model": two accesses to the same bytes, one of them a write, must be
// ordered by base causality, with proxy fences anywhere along the path; strong accesses whose
// scopes include each other do not race. tcgen05 operations: "tcgen05 Memory Consistency Model".
//
//===----------------------------------------------------------------------===//
#include "HazardImpl.h"

namespace fp4::sim {

using namespace check;

namespace {

constexpr size_t keptRecords = 48;      ///< per cell; beyond, the oldest are forgotten
constexpr size_t keptGlobalReaders = 3; ///< per cell of global memory: more readers are in a set

Strength strengthOf(const MemoryEvent &event) {
  if (event.order == MemOrder::Weak && event.kind != AccessKind::Atomic)
    return Weak;
  switch (event.scope) {
  case Scope::Cta:
    return StrongCta;
  case Scope::Cluster:
    return StrongCluster;
  default:
    return StrongGpu; // .volatile too, which is relaxed with system scope
  }
}

/// Returns true when `clock` of the actor of `made` (or that clock of another cluster) has the
/// record.
bool knows(const Access &made, VectorClock Clocks::*member, VectorClock Known::*abroad,
           const Record &old) {
  const VectorClock *clock = clockOf(made, member, abroad, old);
  return clock && (clock->at(old.slot()) >= old.epoch() ||
                   isReleased(made.cluster.laneHistory, *clock, old, old.mask & made.record.mask));
}

bool knowsGeneric(const Access &made, const Record &old) {
  return knows(made, &Clocks::generic, &Known::generic, old);
}
bool knowsLoose(const Access &made, const Record &old) {
  return knows(made, &Clocks::loose, &Known::loose, old);
}
bool knowsAsync(const Access &made, const Record &old) {
  return knows(made, made.space == Space::Global ? &Clocks::asyncGlobal : &Clocks::async,
               &Known::async, old);
}

} // namespace

const VectorClock *check::clockOf(const Access &made, VectorClock Clocks::*clock,
                                  VectorClock Known::*abroad, const Record &old) {
  if (old.cluster() == made.record.cluster())
    return &(made.now->*clock);
  if (!made.now->foreign)
    return nullptr;
  const Known *known = made.now->foreign->find(old.cluster());
  return known ? &(known->*abroad) : nullptr;
}

bool check::bothStrong(const Access &made, const Record &old) {
  const auto weaker = std::min<uint8_t>(made.record.strength(), old.strength());
  if (weaker == Weak || weaker == StrongGpu)
    return weaker == StrongGpu;
  if (old.cluster() != made.record.cluster())
    return false;
  const bool sameCta =
      made.cluster.warpOfSlot(old.slot()).rank == made.cluster.warpOfSlot(made.record.slot()).rank;
  return sameCta || weaker >= StrongCluster;
}

Access HazardChecker::Impl::begin(ClusterState &cluster, const Actor &actor, CodePoint at,
                                  Space space, bool write, uint32_t lanes) {
  Access made{cluster, &cluster.clocks(actor, lanes), {}, space};
  Record &record = made.record;
  record.pc = at.pc;
  record.sequence = ++cluster.sequence;
  const uint32_t kind = write ? Record::writeBit : 0;
  if (!actor.ticket) {
    made.warp = &cluster.warp(actor);
    record.who = kind | made.warp->slot;
    record.when = Record::time(cluster.index, made.warp->epoch);
    return made;
  }
  changes.clear();
  made.ticket = &cluster.ticket(actor.ticket);
  made.asyncProxy = made.ticket->proxy == Proxy::Async;
  uint32_t slot = cluster.slotOf(actor.ticket), epoch = made.ticket->epoch;
  if (space == Space::Global) {
    const uint32_t warp = made.ticket->warpSlot;
    slot = write ? cluster.writeSlot(warp) : cluster.readSlot(warp);
    epoch = made.ticket->number;
  }
  record.who = kind | Record::asyncBit | wholeCells << Record::laneShiftAt | slot;
  record.when = Record::time(cluster.index, epoch);
  return made;
}

//===----------------------------------------------------------------------===//
// From events to cells
//===----------------------------------------------------------------------===//

void HazardChecker::Impl::access(ClusterState &cluster, const MemoryEvent &event) {
  // By default an atomic operation that can change nothing is a load.
  const bool writes =
      event.kind == AccessKind::Write ||
      (event.kind == AccessKind::Atomic && (options.strict || event.unchanged != allLanes));
  Access made = begin(cluster, event.actor, event.at, event.space, writes, event.laneMask);
  made.record.who |= uint32_t(isGuess(event) ? StrongGpu : strengthOf(event)) << Record::strengthAt;
  if (isStoredLoad(event))
    made.record.who |= Record::storedLoadBit;
  if (grids.dependent && event.space == Space::Global)
    checkGridWait(made, event);
  const bool ordered = event.order != MemOrder::Weak && !event.actor.ticket;
  if (ordered)
    synchronize(cluster, event);
  if (ordered && options.strict)
    observe(made, event);
  if (event.actor.ticket && isShared(event.space))
    checkExited(cluster, made, event.addresses[0]);
  if (!options.strict && event.kind == AccessKind::Write && !event.actor.ticket)
    noteStorer(cluster, event);
  if (options.strict && made.warp)
    byLanes(made, event);
  else
    ranges(made, event);
  if (memory && memory->isPolled() && event.space == Space::Global && made.record.write())
    writePolled(made, event);
  if (ordered && options.strict)
    count(cluster, event);
  const bool known = made.ticket && made.ticket->id; // else it is only being issued
  if (known && !writes && !(grids.dependent && event.space == Space::Global))
    open.emplace(std::move(made));
}

/// Lanes that store what is there already.
static uint32_t storesUnchanged(const MemoryEvent &event) {
  return event.kind == AccessKind::Write ? event.unchanged : 0;
}

/// The bytes that lanes, or an operation, access.
void HazardChecker::Impl::ranges(Access &made, const MemoryEvent &event) {
  if (event.actor.ticket) {
    made.unchanged = storesUnchanged(event) == allLanes;
    return range(made, event.addresses[0], event.bytes, 0, wholeCells);
  }
  const bool small = std::has_single_bit(event.bytes) && event.bytes <= cellBytes;
  const uint32_t shift = small ? uint32_t(std::countr_zero(event.bytes)) : wholeCells;
  const uint32_t unchanged = storesUnchanged(event);
  if (event.contiguous && (unchanged == 0 || unchanged == allLanes)) {
    made.unchanged = unchanged;
    return range(made, event.addresses[0], uint64_t(event.bytes) * 32, 0, shift);
  }
  if (event.uniform) {
    made.unchanged = storesUnchanged(event) == allLanes;
    made.record.who |= Record::manyLanesBit; // their numbers do not matter
    return range(made, event.addresses[0], event.bytes, 0, wholeCells);
  }
  lanes(made, event, shift);
}

/// Lanes in a row, or of one address, make one range.
void HazardChecker::Impl::lanes(Access &made, const MemoryEvent &event, uint32_t shift) {
  const uint32_t unchanged = storesUnchanged(event);
  for (uint32_t rest = event.laneMask; rest;) {
    const int first = std::countr_zero(rest);
    const uint64_t address = event.addressOf(first);
    uint64_t bytes = event.bytes;
    int last = first;
    bool many = false;
    made.unchanged = unchanged >> first & 1;
    for (rest &= rest - 1; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (made.unchanged != (unchanged >> lane & 1))
        break;
      const uint64_t next = event.addressOf(lane);
      if (next == address && bytes == event.bytes) {
        many = true; // a broadcast
        continue;
      }
      if (many || lane != last + 1 || next != address + bytes)
        break;
      bytes += event.bytes;
      last = lane;
    }
    made.record.who = (made.record.who & ~Record::manyLanesBit) | (many ? Record::manyLanesBit : 0);
    if (many)
      range(made, address, bytes, 0, wholeCells);
    else
      range(made, address, bytes, first, shift);
  }
}

void HazardChecker::Impl::range(Access &made, uint64_t address, uint64_t bytes, int lane,
                                uint32_t laneShift) {
  Record &record = made.record;
  const uint32_t anybody = (record.who & ~Record::laneFields) | laneShift << Record::laneShiftAt;
  const bool shared = isShared(made.space);
  if (!shared && memory && memory->tracksWrites())
    initialized(made, record, address, bytes);
  const bool filtered = !shared && made.warp && !record.write();
  const int lanesPerCell = int(cellBytes >> laneShift); // 0: no lane in particular
  const int lead = int(address % cellBytes);            // of the run in its first cell
  int laneBase = lanesPerCell ? lane - (lead >> laneShift) : lane;
  for (const uint64_t end = address + bytes; address < end;) {
    // Cells in a row: of the CTA, or up to the end of the page.
    constexpr uint64_t pageBytes = 1u << GlobalShadow::pageShift;
    const uint64_t stop = shared ? end : std::min(end, (address / pageBytes + 1) * pageBytes);
    Cell *cell = shared ? made.cluster.shared(uint32_t(address), uint32_t(end - address))
                        : &global.shadow.cell(address);
    if (!cell)
      return;
    for (; address < stop; ++cell, laneBase += lanesPerCell) {
      const uint32_t from = address % cellBytes;
      const uint32_t part = uint32_t(std::min<uint64_t>(stop - address, cellBytes - from));
      const uint32_t mask = byteMask(from, part);
      record.who = anybody | Record::laneBits(laneBase);
      record.mask = mask;
      address += part;
      if (cell->rememberOwn(record, made.warp ? made.warp->order.sync : 0))
        continue;
      const uint64_t start = address - part - from;
      if (!filtered || !global.filter.repeats(
                           start, record, uint64_t(sharedWrites) << 32 | made.warp->order.last()))
        touch(made, *cell, record, start);
    }
  }
}

/// Checks the read of a tensor map by an operation that copies. A write to the map by a warp of the
/// cluster must have been released to the tensormap proxy, and the map acquired by the CTA, before;
/// of writes by other clusters only the order is known.
void HazardChecker::Impl::useTensorMap(ClusterState &cluster, const MemoryEvent &event) {
  Access made = begin(cluster, event.actor, event.at, Space::Global, false);
  if (grids.dependent)
    checkGridWait(made, event);
  const uint64_t map = event.addressOf(0);
  const MapAcquires &acquires = cluster.mapAcquires[map];
  const auto isAcquired = [&](const Record &old) {
    return std::ranges::any_of(acquires, [&](const auto &ofWarp) {
      const auto &[slot, fences] = ofWarp;
      const uint32_t known = made.now->generic.at(slot);
      return cluster.warps[slot].rank == made.warp->rank &&
             std::ranges::any_of(fences, [&](const MapAcquire &fence) {
               return known >= fence.epoch && (old.cluster() != cluster.index ||
                                               fence.released.at(old.slot()) >= old.epoch());
             });
    });
  };
  for (uint64_t address = map; address < map + event.bytes; address += cellBytes)
    global.shadow.cell(address).forEach([&](const Record &old) {
      if (!old.write())
        return;
      if (!made.record.sameAgent(old) && !knowsGeneric(made, old))
        report(made, old, ruleOf(made, old), address);
      else if (!isAcquired(old))
        report(made, old, HazardRule::MissingTensormapFence, address);
    });
}

void HazardChecker::Impl::accessTmem(ClusterState &cluster, const MemoryEvent &event) {
  constexpr uint32_t quarterLanes = 32;
  Access made = begin(cluster, event.actor, event.at, Space::Tmem, event.kind != AccessKind::Read);
  made.rank = event.tmemRank;
  const uint32_t lane = uint32_t(event.addresses[0] >> 16);
  const uint32_t column = uint32_t(event.addresses[0] & 0xFFFF);
  Record &record = made.record;
  for (uint32_t at = lane; at < lane + event.tmemLanes;) {
    const uint32_t from = at % quarterLanes;
    const uint32_t part = std::min(lane + event.tmemLanes - at, quarterLanes - from);
    record.mask = byteMask(from, part);
    for (uint32_t c = column; c < column + event.bytes / 4; ++c)
      if (Cell *cell = cluster.tmem(event.tmemRank, c, at / quarterLanes);
          cell && !cell->rememberOwn(record))
        touch(made, *cell, record, (at - from) << 16 | c);
    at += part;
  }
}

/// Checks that operations and other CTAs are done with the shared memory of a CTA that ends: a warp
/// of the CTA must know of their accesses. Published kernels end while stores read it, and behind
/// .relaxed barriers.
void HazardChecker::Impl::exitCta(ClusterState &cluster, const LifeEvent &event) {
  Access made = begin(cluster, event.actor, event.at, Space::SharedCluster, true);
  const uint32_t rank = event.actor.ctaRank;
  cluster.exits[rank] = {event.actor, event.at};
  leavePolled(made);
  VectorClock known;
  for (const WarpState &warp : cluster.warps)
    if (warp.rank == rank)
      known.join(options.strict ? cluster.known(warp, warp.lanes.fewLanes).generic
                                : warp.clocks.loose);
  const auto isStore = [&](const Record &old) {
    return !old.write() && cluster.isTicket(old.slot()) && cluster.ticketAt(old.slot()).stores;
  };
  uint64_t address = uint64_t(rank) << rankShift;
  for (Cell &cell : cluster.sharedOf(rank)) {
    cell.forEach([&](const Record &old) {
      const bool own = !old.async() && cluster.warpOfSlot(old.slot()).rank == rank;
      if (!own && known.at(old.slot()) < old.epoch() && (options.strict || !isStore(old)) &&
          !isReleased(laneHistory, known, old, old.mask))
        report(made, old, HazardRule::EarlyExit, address);
    });
    address += cellBytes;
  }
  lateArrivals(made, known);
}

/// Arrivals of threads of other CTAs on the mbarriers of one that exits.
void HazardChecker::Impl::lateArrivals(Access &exit, const VectorClock &known) {
  for (const auto &[address, state] : exit.cluster.mbarriers)
    if (address >> rankShift == exit.warp->rank)
      for (const auto &[slot, arrival] : state.remote)
        if (known.at(slot) < arrival.epoch() && !isReleased(laneHistory, known, arrival, 0))
          report(exit, arrival, HazardRule::EarlyExit, address);
}

/// A store reads when its data moves.
void HazardChecker::Impl::checkExited(ClusterState &cluster, const Access &read, uint64_t address) {
  const auto exit = cluster.exits.find(uint32_t(address >> rankShift));
  if (!options.strict || exit == cluster.exits.end())
    return;
  const auto &[actor, at] = exit->second;
  Access made = begin(cluster, actor, at, Space::SharedCluster, true);
  report(made, read.record, HazardRule::EarlyExit, address);
}

/// tcgen05.dealloc: like a write of every cell, after which nothing is remembered.
void HazardChecker::Impl::freeTmem(ClusterState &cluster, const LifeEvent &event) {
  Access made = begin(cluster, event.actor, event.at, Space::Tmem, true);
  made.rank = event.actor.ctaRank;
  made.record.mask = ~0u;
  const uint32_t first = uint32_t(event.object & 0xFFFF);
  for (uint32_t column = first; column < first + event.count; ++column)
    for (uint32_t quarter = 0; quarter < 4; ++quarter)
      if (Cell *cell = cluster.tmem(made.rank, column, quarter)) {
        cell->forEach([&](const Record &old) {
          const bool fenced = made.warp->tensorIn.at(old.slot()) >= old.epoch();
          if (options.strict && !fenced ? !knowsGeneric(made, old) : !knowsLoose(made, old))
            report(made, old, HazardRule::TmemFreed, quarter << 21 | column);
        });
        cell->clear();
      }
}

//===----------------------------------------------------------------------===//
// One cell
//===----------------------------------------------------------------------===//

void HazardChecker::Impl::touch(Access &made, Cell &cell, const Record &record, uint64_t address) {
  sharedWrites += record.write();
  if (!made.ticket)
    return compare(made, cell, record, address);
  if (changes.repeat(cell, record.mask))
    return;
  changes.note(cell, record.mask, [&] {
    made.told = false;
    compare(made, cell, record, address);
    return !made.told;
  });
}

/// Compares an access with those before, and keeps it.
void HazardChecker::Impl::compare(Access &made, Cell &cell, const Record &record,
                                  uint64_t address) {
  std::as_const(cell).forEach([&](const Record &old) {
    const uint32_t overlap = old.mask & record.mask;
    if (overlap && (old.write() || record.write())) {
      check(made, old, overlap, address);
    }
  });
  if (record.write() && cell.readers())
    checkReaders(made, cell.readers(), address);
  remember(made, cell, record);
}

void HazardChecker::Impl::checkReaders(Access &made, ReaderSets::Set set, uint64_t address) {
  const Record &record = made.record;
  // An actor still knows of readers that it knew at the last cell.
  if (global.compared.set == set && global.compared.write.when == record.when &&
      global.compared.write.sameAgent(record) && global.compared.write.pc == record.pc &&
      global.compared.write.mask == record.mask)
    return;
  global.compared = {set, record};
  global.readers.forEach(set, [&](const Record &old) {
    if (const uint32_t overlap = old.mask & record.mask)
      check(made, old, overlap, address);
  });
}

/// Returns true when the record `old` may be forgotten once `record` is kept: a write covers all, a
/// read the reads that come before it or that one commit covers with it. By default a strong write
/// covers all but one (staysBeside). In strict mode nothing need order the two, and a thread that
/// counts on a contribution (countsOn) does not count on those that have seen it.
bool HazardChecker::Impl::replaces(const Access &made, const Record &record, const Record &old) {
  if (options.strict && record.write() && record.strength() != Weak && bothStrong(made, old))
    return (record.sameAgent(old) || knowsGeneric(made, old)) &&
           !(isUsed(record.pc) && !isUsed(old.pc));
  if (record.write() || old.write())
    return record.write();
  if (record.sameAgent(old) || knowsAsync(made, old))
    return record.speaksFor(old);
  if (!made.ticket || !old.async() || made.space == Space::Global ||
      !made.cluster.isTicket(old.slot()))
    return false;
  const TicketInfo &other = made.cluster.ticketAt(old.slot());
  return made.ticket->pipelined && made.ticket->pipelined == other.pipelined &&
         made.ticket->ctaGroup == other.ctaGroup && made.ticket->warpSlot == other.warpSlot &&
         made.ticket->lane == other.lane;
}

/// (default) Returns true for strong writes that nothing orders: one stays beside the last, since a
/// thread that wrote last itself may read too early. A thread that uses the value found by an
/// atomic operation comes behind the writes that it found (observation order), so the thread that
/// counts last may clear a counter.
bool HazardChecker::Impl::staysBeside(const Access &made, const Record &record, const Record &old) {
  return !options.strict && record.write() && old.write() && record.strength() != Weak &&
         bothStrong(made, old) && !record.sameAgent(old) && !knowsGeneric(made, old) &&
         !isUsed(record.pc);
}

void HazardChecker::Impl::remember(Access &made, Cell &cell, const Record &record) {
  bool emptied = false, joined = false, beside = false;
  size_t others = 0; // that read
  cell.change([&](Record &old) {
    if (!joined && record.repeats(old)) {
      old.mask |= record.mask;
      old.sequence = record.sequence;
      old.pc = record.pc;
      joined = true;
      return;
    }
    const bool overlap = old.mask & record.mask;
    if (overlap && !beside && staysBeside(made, record, old))
      beside = true;
    else if (overlap && replaces(made, record, old))
      old.mask &= ~record.mask;
    emptied |= !old.mask;
    others += !old.write() && old.mask;
  });
  if (emptied)
    cell.compact();
  if (record.write())
    cell.dropReaders(global.readers, record.mask);
  if (joined)
    return;
  if (made.space == Space::Global && others > keptGlobalReaders)
    cell.moveReader(global.readers);
  if (cell.size() >= keptRecords) {
    cell.first.mask = 0;
    cell.compact();
  }
  cell.add(record);
}

//===----------------------------------------------------------------------===//
// Two accesses
//===----------------------------------------------------------------------===//

/// Published kernels for pairs of CTAs have a .relaxed cluster barrier between tcgen05.alloc and
/// the reads of the address it wrote, as before tcgen05.dealloc. Nor does PTX say which proxy
/// tcgen05.alloc writes with; Triton gives its word to a copy next.
bool HazardChecker::Impl::looselyOrdered(const Access &made, const Record &old) const {
  return !options.strict && !old.async() && tmemAllocs.contains(old.pc) && knowsLoose(made, old);
}

void HazardChecker::Impl::check(Access &made, const Record &old, uint32_t overlap,
                                uint64_t address) {
  if (made.space == Space::Tmem) {
    checkTmem(made, old, address + (uint64_t(std::countr_zero(overlap)) << 16));
    return;
  }
  address += uint64_t(std::countr_zero(overlap));
  if (made.record.sameAgent(old) && made.record.async())
    return; // one ticket; in global memory, one warp's, which are taken to be in order
  // Compilers let every lane or warp store a value that all have, and examples let every warp copy
  // the tile that all have: whoever is last, it is there.
  const bool same =
      !options.strict && made.unchanged && old.write() && (!old.async() || made.ticket);
  if (made.record.sameAgent(old) && !made.record.async()) {
    if (same)
      return;
    // All lanes execute tcgen05.alloc, and may read the address behind it (PTX ISA, its example).
    if (!tmemAllocs.contains(old.pc) && lanesRace(made, old, overlap))
      race(made, old, HazardRule::LaneRace, address);
    return;
  }
  if (bothStrong(made, old) && !knowsGeneric(made, old) && countsOn(made, old))
    return report(made, old, HazardRule::RelaxedSync, address);
  if (bothStrong(made, old) || looselyOrdered(made, old))
    return;
  if (same)
    return;
  if (!knowsGeneric(made, old))
    return race(made, old, ruleOf(made, old), address);
  if (made.ticket && old.cluster() == made.record.cluster() && lanesRace(made, old, overlap))
    return report(made, old, HazardRule::LaneRace, address);
  checkOrdered(made, old, address);
}

/// Nothing orders the two.
void HazardChecker::Impl::race(Access &made, const Record &old, HazardRule rule, uint64_t address) {
  if (options.strict || !made.warp || !mayBeUnused(made, old))
    return report(made, old, rule, address);
  if (old.slot() != made.record.slot())
    return deferUse(made, old, rule, address);
  defer(made, old, rule, address);
}

/// Ordered. From the generic to the async proxy that takes a fence; for a read that is then
/// overwritten, and for cp.async, practice relies on the barrier alone. Operands of tcgen05.mma and
/// .cp that another warp or engine wrote take a fence::after_thread_sync behind the synchronization
/// with it.
void HazardChecker::Impl::checkOrdered(Access &made, const Record &old, uint64_t address) {
  const bool threadCopy = old.async() && made.cluster.isTicket(old.slot()) &&
                          made.cluster.ticketAt(old.slot()).kind == TicketKind::ThreadCopy;
  const bool generic = old.async() ? threadCopy && options.strict : old.write() || options.strict;
  const bool needsFence = made.asyncProxy && generic;
  if (needsFence && !knowsAsync(made, old))
    return report(made, old, HazardRule::MissingProxyFence, address);
  if (options.strict && made.ticket && made.ticket->pipelined &&
      old.slot() != made.ticket->warpSlot && made.ticket->fenced.at(old.slot()) < old.epoch() &&
      !isReleased(laneHistory, made.ticket->fenced, old, old.mask & made.record.mask))
    report(made, old, HazardRule::MissingTcgen05Fence, address);
}

/// Returns true when the table of pairs that need no wait has the two operations, issued in this
/// order by threads that tcgen05 fences order.
static bool inOrder(const TicketInfo &first, const TicketInfo &second, bool strict) {
  return first.pipelined && second.pipelined && first.ctaGroup == second.ctaGroup &&
         keepOrder(*first.pipelined, *second.pipelined, strict);
}

bool HazardChecker::Impl::checkTmem(Access &made, const Record &old, uint64_t address) {
  if (made.record.sameAgent(old) || !made.ticket || !made.cluster.isTicket(old.slot()))
    return true;
  const TicketInfo &self = *made.ticket, &other = made.cluster.ticketAt(old.slot());
  if (self.pipelineIn.at(old.slot()) >= old.epoch())
    return true;
  // An operation that was issued later: this one reads when it completes.
  const uint32_t slot = made.record.slot(), epoch = made.record.epoch();
  if (other.issued > self.issued &&
      (other.pipelineIn.at(slot) >= epoch ||
       (other.tensorIn.at(slot) >= epoch && inOrder(self, other, options.strict))))
    return true;
  const bool fenced = self.tensorIn.at(old.slot()) >= old.epoch();
  if (fenced && inOrder(other, self, options.strict))
    return true; // done or not
  const bool complete = knowsGeneric(made, old);
  if (fenced ? knowsLoose(made, old) : complete && !options.strict)
    return true;
  const bool late = self.kind == TicketKind::TmemLoad && other.issued > self.issued;
  const HazardRule rule = complete                             ? HazardRule::MissingTcgen05Fence
                          : knowsLoose(made, old)              ? HazardRule::RelaxedSync
                          : late                               ? HazardRule::TmemUndrained
                          : old.write()                        ? HazardRule::TmemRace
                          : other.kind == TicketKind::TmemLoad ? HazardRule::TmemUndrained
                                                               : HazardRule::TmemRace;
  report(made, old, rule, address);
  return false;
}

HazardRule HazardChecker::Impl::ruleOf(Access &made, const Record &old) const {
  const bool own = made.ticket && old.slot() == made.ticket->warpSlot;
  if (own && options.strict && knowsLoose(made, old))
    return HazardRule::LaneRace;
  if (releasedByOthers(made, old) || acquiredByOthers(made, old))
    return HazardRule::MissingWarpSync;
  if (knowsLoose(made, old))
    return HazardRule::RelaxedSync;
  const bool global = made.space == Space::Global;
  if (old.cluster() != made.record.cluster())
    return HazardRule::GlobalRace;
  // A ticket moves its data when it completes, which may be after a write that came after its
  // issue.
  const bool late = made.ticket && old.write() && made.ticket->issued < old.sequence;
  const bool bothWrite = made.record.write() && old.write();
  if (bothWrite && (late || (old.async() && made.record.async())))
    return HazardRule::OverwrittenWhileWritten;
  const bool reuse =
      made.record.write() && !bothWrite && (old.async() || (made.record.async() && !global));
  if (reuse || late)
    return HazardRule::OverwrittenWhileRead;
  if (old.async() && old.write())
    return HazardRule::UnwaitedCopy;
  return global ? HazardRule::GlobalRace : HazardRule::SharedRace;
}

} // namespace fp4::sim
