//===- GroupTiles.cpp - Tiles of groups of rows ---------------------------===//
//
// Every warp finds the places of all groups of its CTA: a lane asks for its groups at once, adds
// them up, and a scan over the lanes adds what comes before them. Warps need neither shared memory
// nor a barrier for that, and each writes the tiles of one group of every lane. A CTA repeats the
// sums of the groups of CTAs before it.
//
//===----------------------------------------------------------------------===//

#include "GroupTiles.h"

#include "SmallBuilders.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <array>

using namespace mlir;
using namespace fp4;

static constexpr int64_t kBlockRows = hw::scaleBlockRows;

namespace {
class TableKernel {
public:
  TableKernel(ImplicitLocOpBuilder &b, const GroupTiles &tiles, Value report, Value table)
      : tiles(tiles), b(b), report(report), table(table),
        block(b, NVVM::BlockIdXOp::create(b, b.getI32Type())),
        thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type())), lane(thread % kWarp) {}

  void emit();

private:
  static constexpr int64_t kWarp = 32;
  /// Groups of a lane, as many as a CTA has warps.
  static constexpr int64_t kOfLane = GroupTiles::kThreads / kWarp;

  /// The offsets of a group, as they are and limited to the rows that there are.
  struct Rows {
    GroupNumbers numbers;
    Int32 begin, end;
  };
  /// The end of a group, and the tiles and rows of scales until there.
  struct Place {
    Int32 end, tiles, scaleRows;
  };
  /// Groups of a CTA: those of this lane, what is before each, its tiles, and whether it is wrong;
  /// and what is behind the groups of all lanes.
  struct Groups {
    SmallVector<Rows> rows;
    SmallVector<Place> before;
    SmallVector<Int32> tiles;
    SmallVector<Value> areWrong;
    Int32 first; ///< tiles before the CTA
    Place after;
  };
  struct Offset {
    Value number;
    Int32 limited;
  };

  Value at(Value base, Int32 index, int64_t bytes) {
    Type element = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
    return LLVM::GEPOp::create(b, base.getType(), element, base,
                               ArrayRef<LLVM::GEPArg>{Value(index)});
  }
  Value compare(arith::CmpIPredicate holds, Value x, Value y) {
    return arith::CmpIOp::create(b, holds, x, y);
  }

  int64_t groups() const { return tiles.offsets.groups + tiles.hasRest; }
  Int32 zero() { return {b, int64_t(0)}; }
  Int32 firstGroup(Int32 cta) { return cta * GroupTiles::kThreads + lane * kOfLane; }
  Offset offset(Int32 index);
  Rows rowsOf(Int32 group);
  static Int32 larger(Int32 x, Int32 y) {
    return {x.builder(), arith::MaxUIOp::create(x.builder(), x, y)};
  }
  static Int32 sum(Int32 x, Int32 y) { return x + y; }
  Place advance(const Place &before, const Rows &rows);
  Int32 laneBefore(Int32 value, int64_t distance);
  Int32 scan(Int32 value, Int32 (*combine)(Int32, Int32));
  Int32 addLanes(SmallVectorImpl<Place> &before, Int32 Place::*part, Int32 ofLane, Int32 first);
  Groups groupsOf(Int32 cta, const Place &before);
  Value anyWrong(const Groups &found);
  void reportWrong(const Groups &found, Value isReported);
  void writeRow(Int32 row, std::array<Int32, 4> words);
  Int32 addGroups(const Groups &found, function_ref<Int32(Int32 tiles, Int32 group)> term);
  Int32 placeOf(const Groups &found, Int32 group, Int32 tiles, Int32 tile);
  void writeTiles(const Groups &found, Int32 group, const Rows &rows, const Place &before);
  void writeEnds(Int32 group, const Rows &rows, const Place &before);
  void writeGroups(const Groups &found);

  const GroupTiles &tiles;
  ImplicitLocOpBuilder &b;
  Value report, table;
  Int32 block, thread, lane;
};
} // namespace

/// Number `index` of the offsets, and at most the rows that there are: all of them behind the
/// offsets.
TableKernel::Offset TableKernel::offset(Int32 index) {
  const GroupOffsets &offsets = tiles.offsets;
  int64_t last = offsets.step == 1 ? offsets.groups : 2 * offsets.groups - 1;
  Value number =
      readOffset(b, offsets, at(offsets.pointer, minimum(index, Int32(b, last)), offsets.bytes));
  Value wide = arith::MaxSIOp::create(b, number, constI64(b, 0));
  wide = arith::MinSIOp::create(b, wide, offsets.limit);
  if (tiles.hasRest)
    wide = arith::SelectOp::create(b, index < offsets.groups + 1, wide, offsets.limit);
  return {number, {b, arith::TruncIOp::create(b, b.getI32Type(), wide)}};
}

/// The rows of a group. Behind the last group there are groups without rows.
TableKernel::Rows TableKernel::rowsOf(Int32 group) {
  int64_t step = tiles.offsets.step;
  Offset begin = offset(group * step), end = offset(group * step + 1);
  Value exists = group < groups();
  return {{begin.number, end.number},
          select(exists, begin.limited, zero()),
          select(exists, end.limited, zero())};
}

TableKernel::Place TableKernel::advance(const Place &before, const Rows &rows) {
  Int32 begin = larger(before.end, rows.begin), end = larger(begin, rows.end);
  Int32 count = end - begin;
  return {end, before.tiles + (count + (tiles.rows - 1)) / tiles.rows,
          before.scaleRows + (count + (kBlockRows - 1)) / kBlockRows * kBlockRows};
}

/// The value of the lane that is `distance` before this one; its own where there is none.
Int32 TableKernel::laneBefore(Int32 value, int64_t distance) {
  return {b, NVVM::ShflOp::create(b, b.getI32Type(), constI32(b, -1), value, constI32(b, distance),
                                  constI32(b, 0), NVVM::ShflKind::up, UnitAttr())};
}

/// Combines the values of the lanes up to this one.
Int32 TableKernel::scan(Int32 value, Int32 (*combine)(Int32, Int32)) {
  for (int64_t distance = 1; distance < kWarp; distance *= 2) {
    Int32 other = laneBefore(value, distance);
    value = select(lane < distance, value, combine(value, other));
  }
  return value;
}

/// Adds to `part` of each place what lanes before this one have of it, which has `ofLane` itself,
/// and `first` of CTAs before. Returns the sum behind all lanes.
Int32 TableKernel::addLanes(SmallVectorImpl<Place> &before, Int32 Place::*part, Int32 ofLane,
                            Int32 first) {
  Int32 upTo = scan(ofLane, sum);
  for (Place &place : before)
    place.*part = place.*part + (upTo - ofLane) + first;
  return first + Int32(b, valueOfLane(b, upTo, constI32(b, kWarp - 1)));
}

TableKernel::Groups TableKernel::groupsOf(Int32 cta, const Place &before) {
  Groups found{{}, {}, {}, {}, before.tiles, before};
  for (int64_t i = 0; i < kOfLane; ++i)
    found.rows.push_back(rowsOf(firstGroup(cta) + i));
  // No group begins before those in front of it end.
  Int32 most = zero();
  for (const Rows &rows : found.rows)
    most = larger(most, larger(rows.begin, rows.end));
  Int32 upTo = scan(most, larger);
  Int32 others = select(lane < 1, zero(), laneBefore(upTo, 1));
  Place place{larger(before.end, others), zero(), zero()};
  for (int64_t i = 0; i < kOfLane; ++i) {
    Int32 group = firstGroup(cta) + i;
    Value end = arith::ExtUIOp::create(b, b.getI64Type(), place.end);
    const Rows &rows = found.rows[size_t(i)];
    found.areWrong.push_back(arith::AndIOp::create(
        b, group < tiles.offsets.groups, isWrongGroup(b, tiles.offsets, group, rows.numbers, end)));
    found.before.push_back(place);
    place = advance(place, rows);
    found.tiles.push_back(place.tiles - found.before.back().tiles);
  }
  found.after = {larger(before.end, Int32(b, valueOfLane(b, upTo, constI32(b, kWarp - 1)))),
                 addLanes(found.before, &Place::tiles, place.tiles, before.tiles),
                 addLanes(found.before, &Place::scaleRows, place.scaleRows, before.scaleRows)};
  return found;
}

/// Returns (i1) true where a group of this lane is wrong.
Value TableKernel::anyWrong(const Groups &found) {
  Value any = found.areWrong.front();
  for (Value isWrong : ArrayRef(found.areWrong).drop_front())
    any = arith::OrIOp::create(b, any, isWrong);
  return any;
}

/// Reports the first wrong group of the CTA unless one of another CTA comes before it.
void TableKernel::reportWrong(const Groups &found, Value isReported) {
  Value any = anyWrong(found);
  Int32 wrong(b, NVVM::VoteSyncOp::create(b, b.getI32Type(), constI32(b, -1), any,
                                          NVVM::VoteSyncKind::ballot));
  Value isFirst = arith::AndIOp::create(b, any, (wrong & ((1u << lane) - 1)) < 1);
  isFirst = arith::AndIOp::create(b, isFirst, thread < kWarp);
  Value none = arith::XOrIOp::create(b, isReported, arith::ConstantIntOp::create(b, 1, 1));
  emitWhen(b, arith::AndIOp::create(b, isFirst, none), [&] {
    Int32 group = firstGroup(block) + (kOfLane - 1);
    GroupNumbers numbers = found.rows.back().numbers;
    Int32 before = found.before.back().end;
    for (int64_t i = kOfLane - 2; i >= 0; --i) {
      const Rows &rows = found.rows[size_t(i)];
      Value isWrong = found.areWrong[size_t(i)];
      group = select(isWrong, firstGroup(block) + i, group);
      numbers = {arith::SelectOp::create(b, isWrong, rows.numbers.begin, numbers.begin),
                 arith::SelectOp::create(b, isWrong, rows.numbers.end, numbers.end)};
      before = select(isWrong, found.before[size_t(i)].end, before);
    }
    claimReport(b, tiles.offsets, report, group, numbers,
                arith::ExtUIOp::create(b, b.getI64Type(), before));
  });
}

void TableKernel::writeRow(Int32 row, std::array<Int32, 4> words) {
  Value address = at(table, row, 16);
  for (auto [i, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(b, word, at(address, Int32(b, int64_t(i)), 4), /*alignment=*/4);
}

/// Adds up `term` of each group of the CTA. Lanes ask each other for the tiles of their groups.
Int32 TableKernel::addGroups(const Groups &found,
                             function_ref<Int32(Int32 tiles, Int32 group)> term) {
  int64_t lanes = std::min(kWarp, int64_t(llvm::divideCeil(groups(), kOfLane)));
  auto loop =
      scf::ForOp::create(b, zero(), Int32(b, lanes), Int32(b, int64_t(1)), ValueRange{zero()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Int32 other(b, loop.getInductionVar()), sum(b, loop.getRegionIterArgs()[0]);
  for (auto [i, own] : llvm::enumerate(found.tiles))
    sum = sum + term({b, valueOfLane(b, own, other)},
                     block * GroupTiles::kThreads + other * kOfLane + int64_t(i));
  scf::YieldOp::create(b, ValueRange{sum});
  return {b, loop.getResult(0)};
}

/// The place of tile `tile` of a group with so many tiles, among the tiles of the CTA.
Int32 TableKernel::placeOf(const Groups &found, Int32 group, Int32 count, Int32 tile) {
  return addGroups(found, [&](Int32 others, Int32 number) -> Int32 {
    Value isBefore = number < group;
    if (tiles.order == TileOrder::Numbers)
      return minimum(others, tile + select(isBefore, Int32(b, int64_t(1)), zero()));
    Value isEqual = compare(arith::CmpIPredicate::eq, others, count);
    Value isLarger =
        arith::OrIOp::create(b, count < others, arith::AndIOp::create(b, isEqual, isBefore));
    return select(isLarger, others, zero());
  });
}

/// Writes the tiles of a group. If the place of each follows from the tiles of other groups, all
/// lanes have the loop of the one with the most tiles.
void TableKernel::writeTiles(const Groups &found, Int32 group, const Rows &rows,
                             const Place &before) {
  Place after = advance(before, rows);
  Int32 begin = larger(before.end, rows.begin), count = after.tiles - before.tiles, all = count;
  Int32 place = before.tiles, ofCta = found.first;
  if (tiles.order == TileOrder::LargestGroups)
    place = ofCta + placeOf(found, group, count, zero());
  if (tiles.order == TileOrder::Numbers)
    all = Int32(b, valueOfLane(b, scan(count, larger), constI32(b, kWarp - 1)));
  auto loop = scf::ForOp::create(b, zero(), all, Int32(b, int64_t(1)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Int32 tile(b, loop.getInductionVar()), first = tile * tiles.rows;
  std::array<Int32, 4> row = {begin + first, after.end, group, before.scaleRows + first};
  if (tiles.order != TileOrder::Numbers)
    return writeRow(place + tile, row);
  place = ofCta + placeOf(found, group, count, tile);
  emitWhen(b, tile < count, [&] { writeRow(place, row); });
}

/// Writes what is behind a group, and behind all of them.
void TableKernel::writeEnds(Int32 group, const Rows &rows, const Place &before) {
  Place after = advance(before, rows);
  Int32 begin = larger(before.end, rows.begin);
  if (tiles.hasGaps)
    writeRow(group + tiles.gapPlace(), {before.end, begin, zero(), zero()});
  emitWhen(b, compare(arith::CmpIPredicate::eq, group, Int32(b, groups() - 1)), [&] {
    writeRow(tiles.countPlace(), {after.tiles, zero(), zero(), zero()});
    Int32 all(b, b.createOrFold<arith::TruncIOp>(b.getI32Type(), tiles.offsets.limit));
    if (tiles.hasGaps)
      writeRow(group + (tiles.gapPlace() + 1), {after.end, all, zero(), zero()});
  });
}

/// Writes the group of this lane that has the number of the warp.
void TableKernel::writeGroups(const Groups &found) {
  Int32 warp = thread / kWarp;
  Rows rows = found.rows.back();
  Place before = found.before.back();
  for (int64_t i = kOfLane - 2; i >= 0; --i) {
    Value isIt = compare(arith::CmpIPredicate::eq, warp, Int32(b, i));
    const Place &place = found.before[size_t(i)];
    rows.begin = select(isIt, found.rows[size_t(i)].begin, rows.begin);
    rows.end = select(isIt, found.rows[size_t(i)].end, rows.end);
    before = {select(isIt, place.end, before.end), select(isIt, place.tiles, before.tiles),
              select(isIt, place.scaleRows, before.scaleRows)};
  }
  Int32 group = firstGroup(block) + warp;
  writeTiles(found, group, rows, before);
  emitWhen(b, group < groups(), [&] { writeEnds(group, rows, before); });
}

void TableKernel::emit() {
  Value ok = arith::ConstantIntOp::create(b, 0, 1);
  auto loop = scf::ForOp::create(b, zero(), block, Int32(b, int64_t(1)),
                                 ValueRange{zero(), zero(), zero(), ok});
  auto placeIn = [&](ValueRange values) -> Place {
    return {{b, values[0]}, {b, values[1]}, {b, values[2]}};
  };
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Groups found = groupsOf({b, loop.getInductionVar()}, placeIn(loop.getRegionIterArgs()));
    Value any = NVVM::VoteSyncOp::create(b, b.getI1Type(), constI32(b, -1), anyWrong(found),
                                         NVVM::VoteSyncKind::any);
    any = arith::OrIOp::create(b, any, loop.getRegionIterArgs()[3]);
    scf::YieldOp::create(
        b, ValueRange{found.after.end, found.after.tiles, found.after.scaleRows, any});
  }
  Groups found = groupsOf(block, placeIn(loop.getResults()));
  writeGroups(found);
  reportWrong(found, loop.getResult(3));
}

void fp4::emitGroupTiles(ImplicitLocOpBuilder &b, const GroupTiles &tiles, Value report,
                         Value table) {
  TableKernel(b, tiles, report, table).emit();
}
