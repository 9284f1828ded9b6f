// Accesses of operations to runs of shared memory: cells of one history change together (Shadow.h),
// and the checker finds what it finds byte by byte.
#include "Sim/Check/Shadow.h"
#include "fp4/Sim/Dependence.h"
#include "fp4/Sim/Events.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Program.h"
#include "fp4/Sim/Simulator.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::check;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

Record record(uint32_t slot, bool write, uint32_t mask = ~0u) {
  Record made;
  made.when = Record::time(0, 1);
  made.who = slot | wholeCells << Record::laneShiftAt | (write ? Record::writeBit : 0);
  made.mask = mask;
  made.pc = slot;
  return made;
}

std::vector<uint32_t> slotsOf(const Cell &cell) {
  std::vector<uint32_t> slots;
  cell.forEach([&](const Record &kept) { slots.push_back(kept.slot()); });
  return slots;
}

/// Adds `made` to each cell; returns how many were not changed as another was.
unsigned addTo(std::vector<Cell> &cells, const Record &made) {
  Changes changes;
  unsigned alone = 0;
  for (Cell &cell : cells)
    if (!changes.repeat(cell, made.mask))
      changes.note(cell, made.mask, [&] {
        cell.add(made);
        ++alone;
        return true;
      });
  return alone;
}

TEST(Runs, CellsOfOneHistoryChangeTogether) {
  std::vector<Cell> cells(8);
  for (uint32_t slot : {1, 2, 3, 4})
    EXPECT_EQ(addTo(cells, record(slot, false)), 1u);
  for (const Cell &cell : cells)
    EXPECT_THAT(slotsOf(cell), ElementsAre(1, 2, 3, 4));
}

TEST(Runs, ACellThatChangesAloneLeavesTheOthers) {
  std::vector<Cell> cells(4);
  addTo(cells, record(1, true));
  addTo(cells, record(2, false));
  addTo(cells, record(3, false));
  cells[2].change([](Record &kept) { kept.mask &= kept.slot() == 2 ? ~1u : ~0u; });
  cells[2].add(record(9, true, 1));
  EXPECT_EQ(addTo(cells, record(4, false)), 2u);
  for (size_t i : {0, 1, 3}) {
    EXPECT_THAT(slotsOf(cells[i]), ElementsAre(1, 2, 3, 4));
    cells[i].forEach([](const Record &kept) { EXPECT_EQ(kept.mask, ~0u); });
  }
  EXPECT_THAT(slotsOf(cells[2]), ElementsAre(1, 2, 3, 9, 4));
}

TEST(Runs, HistoriesMayTakeTurns) {
  std::vector<Cell> cells(16);
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i].add(record(i % 4, true));
  EXPECT_EQ(addTo(cells, record(8, false)), 4u);
  EXPECT_EQ(addTo(cells, record(9, false)), 4u);
  for (size_t i = 0; i < cells.size(); ++i)
    EXPECT_THAT(slotsOf(cells[i]), ElementsAre(i % 4, 8, 9));
}

TEST(Runs, AWriteMakesHistoriesEqual) {
  std::vector<Cell> cells(4);
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].add(record(1, true));
    cells[i].add(record(2 + i % 2, false));
    cells[i].change([](Record &kept) { kept.mask = 0; });
    cells[i].compact();
    cells[i].add(record(7, true));
    EXPECT_TRUE(cells[i].isCopyOf(cells[0]));
  }
}

TEST(Runs, OtherBytesOfACellAreAnotherChange) {
  std::vector<Cell> cells(2);
  Changes changes;
  const auto add = [&](Cell &cell, uint32_t mask) {
    changes.note(cell, mask, [&] { return cell.add(record(1, false, mask)), true; });
  };
  add(cells[0], 0xFFFF);
  EXPECT_FALSE(changes.repeat(cells[1], ~0u));
  EXPECT_TRUE(changes.repeat(cells[1], 0xFFFF));
  EXPECT_EQ(cells[1].first.mask, 0xFFFFu);
}

TEST(Runs, AChangeWithAReportIsNotRepeated) {
  std::vector<Cell> cells(2);
  Changes changes;
  changes.note(cells[0], ~0u, [&] { return cells[0].add(record(1, false)), false; });
  EXPECT_FALSE(changes.repeat(cells[1], ~0u));
}

TEST(Runs, AClearedCellIsNobodysCopy) {
  std::vector<Cell> cells(2);
  addTo(cells, record(1, true));
  addTo(cells, record(2, false));
  cells[0].clear();
  EXPECT_FALSE(cells[0].isCopyOf(cells[1]));
  EXPECT_THAT(slotsOf(cells[0]), IsEmpty());
  EXPECT_THAT(slotsOf(cells[1]), ElementsAre(1, 2));
}

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

constexpr uint32_t warps = 4, instructions = 24, tile = 0x400;

/// Tells a checker of events that no kernel makes; the pc of each is the caller's.
class Events {
public:
  /// `whole`: nothing comes between the runs of an access, else something does between its cells.
  explicit Events(bool strict = false, bool whole = true)
      : whole(whole), checker({.strict = strict, .maxReports = 1000}), simulator(SimOptions()) {
    std::string text = ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
                       ".reg .b32 %r<2>;\n";
    for (uint32_t i = 0; i < instructions; ++i)
      text += "mov.u32 %r0, " + std::to_string(i) + ";\n";
    program = *Program::parse(text + "ret;\n}\n", "k.ptx");
    checker.onLaunch({*program, "k", simulator.memory(), 1, warps, nullptr, none});
  }

  void issue(uint32_t warp, uint64_t id, uint32_t pc, std::vector<SharedRange> writes = {}) {
    TicketEvent event;
    event.actor = {0, 0, warp, 0};
    event.at = {pc, 0};
    event.id = id;
    event.kind = TicketKind::Tma;
    event.writes = writes;
    checker.onTicket(event);
  }
  void complete(uint32_t warp, uint64_t id, uint32_t pc) {
    TicketEvent event;
    event.actor = {0, 0, warp, 0};
    event.at = {pc, 0};
    event.id = id;
    event.state = TicketState::Completed;
    checker.onTicket(event);
  }
  /// A read by ticket `id`.
  void read(uint32_t warp, uint64_t id, uint32_t pc, const std::vector<SharedRange> &runs) {
    for (SharedRange rest : runs)
      while (rest.bytes) {
        const uint32_t cell = cellBytes - rest.address % cellBytes;
        const uint32_t part = whole ? rest.bytes : std::min(rest.bytes, cell);
        access({0, 0, warp, id}, pc, AccessKind::Read, {rest.address, part});
        rest = {rest.address + part, rest.bytes - part};
        if (!whole)
          checker.onFence({{0, 0, warp, 0}, {0, 0}, FenceKind::ProxyAlias});
      }
  }
  /// An access by lane 0.
  void touch(uint32_t warp, uint32_t pc, AccessKind kind, SharedRange bytes) {
    access({0, 0, warp, 0}, pc, kind, bytes);
  }
  void barrier() {
    for (const BarrierOp op : {BarrierOp::CtaArrive, BarrierOp::CtaPass})
      for (uint32_t warp = 0; warp < warps; ++warp) {
        BarrierEvent event{{0, 0, warp, 0}, {0, 0}, op};
        event.count = generation;
        event.laneMask = ~0u;
        checker.onBarrier(event);
      }
    ++generation;
  }
  void fence(uint32_t warp) {
    FenceEvent event{{0, 0, warp, 0}, {0, 0}, FenceKind::ProxyAsync};
    event.laneMask = ~0u;
    checker.onFence(event);
  }
  /// Each report without its count.
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (HazardReport report : checker.reports()) {
      report.count = 1;
      texts.push_back(report.text());
    }
    return texts;
  }
  const std::vector<HazardReport> &reports() const { return checker.reports(); }

private:
  void access(const Actor &actor, uint32_t pc, AccessKind kind, SharedRange bytes) {
    const uint64_t address = bytes.address;
    MemoryEvent event{actor, {pc, 0}, kind, Space::SharedCluster};
    event.proxy = actor.ticket ? Proxy::Async : Proxy::Generic;
    event.laneMask = 1;
    event.bytes = bytes.bytes;
    event.contiguous = actor.ticket != 0;
    event.addresses = &address;
    checker.onMemory(event);
  }

  const bool whole;
  HazardChecker checker;
  Simulator simulator;
  std::shared_ptr<const Program> program;
  Dependence none;
  uint64_t generation = 0;
};

/// 16 rows of 64 bytes, in lines of 128.
std::vector<SharedRange> rows() {
  std::vector<SharedRange> runs;
  for (uint32_t row = 0; row < 16; ++row)
    runs.push_back({tile + 128 * row, 64});
  return runs;
}

std::vector<std::string> placesOf(const Events &events) {
  std::vector<std::string> places;
  for (const HazardReport &report : events.reports())
    places.push_back(report.place + " x " + std::to_string(report.count));
  return places;
}

TEST(Runs, AByteThatIsWrittenLaterMeetsEveryReader) {
  Events events;
  for (uint32_t warp : {0, 1, 2}) {
    events.issue(warp, warp + 1, warp);
    events.read(warp, warp + 1, warp, rows());
  }
  events.touch(3, 10, AccessKind::Write, {tile + 128 * 5 + 35, 1});
  EXPECT_THAT(placesOf(events),
              ElementsAre("shared 0x6a3 of CTA rank 0 x 1", "shared 0x6a3 of CTA rank 0 x 1",
                          "shared 0x6a3 of CTA rank 0 x 1"));
  for (const HazardReport &report : events.reports())
    EXPECT_EQ(report.rule, HazardRule::OverwrittenWhileRead);
}

TEST(Runs, AReaderMeetsTheOneByteThatIsNotOrdered) {
  Events events;
  events.touch(0, 1, AccessKind::Write, {tile, 32});
  events.fence(0);
  events.barrier();
  events.touch(0, 2, AccessKind::Write, {tile + 128 * 7 + 1, 1});
  events.issue(1, 5, 3);
  events.read(1, 5, 3, rows());
  EXPECT_THAT(placesOf(events), ElementsAre("shared 0x781 of CTA rank 0 x 1"));
}

TEST(Runs, RunsEndInsideOfCells) {
  const auto found = [](uint32_t byte) {
    Events events;
    events.issue(0, 1, 1);
    events.read(0, 1, 1, {{tile + 16, 24}, {tile + 100, 60}});
    events.touch(1, 2, AccessKind::Write, {tile + byte, 1});
    return events.reports().size();
  };
  for (const auto &[byte, expected] : {std::pair(15u, 0u),
                                       {16u, 1u},
                                       {39u, 1u},
                                       {40u, 0u},
                                       {99u, 0u},
                                       {100u, 1u},
                                       {159u, 1u},
                                       {160u, 0u}})
    EXPECT_EQ(found(byte), expected) << byte;
}

/// Steps of several warps and their operations, drawn at random, with a barrier now and then.
void drawInto(Events &events, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  std::set<uint64_t> open[warps];
  uint64_t next = 1;
  for (uint32_t step = 0; step < 60; ++step) {
    const uint32_t warp = below(warps), pc = below(instructions);
    const SharedRange bytes{tile + 4 * below(512), 4 * (1 + below(3))};
    switch (below(8)) {
    case 0:
    case 1:
      events.issue(warp, next, pc);
      open[warp].insert(next);
      events.read(warp, next++, pc, rows());
      break;
    case 2:
      events.issue(warp, next, pc, {{tile + 512 * below(4), 512}});
      open[warp].insert(next++);
      break;
    case 3:
      if (!open[warp].empty()) {
        events.complete(warp, *open[warp].begin(), pc);
        open[warp].erase(open[warp].begin());
      }
      break;
    case 4:
      events.touch(warp, pc, AccessKind::Write, bytes);
      break;
    case 5:
      events.touch(warp, pc, AccessKind::Read, bytes);
      break;
    case 6:
      events.fence(warp);
      break;
    default:
      events.barrier();
    }
  }
}

TEST(Runs, VerdictsAreThoseOfSingleCells) {
  size_t reports = 0;
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const bool strict : {false, true}) {
      Events whole(strict, true), parts(strict, false);
      drawInto(whole, seed);
      drawInto(parts, seed);
      ASSERT_EQ(whole.texts(), parts.texts()) << "seed " << seed;
      reports += whole.reports().size();
    }
  EXPECT_GT(reports, 800u);
}

} // namespace
