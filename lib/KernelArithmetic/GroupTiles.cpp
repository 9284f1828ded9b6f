//===- GroupTiles.cpp - Tiles of groups of rows ---------------------------===//

#include "GroupTiles.h"

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
      : tiles(tiles), b(b), report(report), table(table) {}

  void emit();

private:
  /// Groups whose rows a thread asks for before it adds up any of them: else it would wait for
  /// memory once for each.
  static constexpr int64_t kAtOnce = 8;

  /// The offsets of a group, limited to the rows that there are.
  struct Rows {
    Int32 begin, end;
  };
  /// The end of a group, and the tiles and rows of scales until there.
  struct Place {
    Int32 end, tiles, scaleRows;
  };

  Value at(Value base, Int32 index, int64_t bytes) {
    Type element = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
    return LLVM::GEPOp::create(b, base.getType(), element, base,
                               ArrayRef<LLVM::GEPArg>{Value(index)});
  }
  void when(Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  int64_t groups() const { return tiles.offsets.groups + tiles.hasRest; }
  Int32 offset(Int32 index);
  Rows rowsOf(Int32 group) {
    int64_t step = tiles.offsets.step;
    return {offset(group * step), offset(group * step + 1)};
  }
  Int32 larger(Int32 x, Int32 y) { return {b, arith::MaxUIOp::create(b, x, y)}; }
  Place advance(const Place &before, const Rows &rows);
  Place placeBefore(Int32 group);
  void writeRow(Int32 row, std::array<Int32, 4> words);
  void writeGroup(Int32 group);

  const GroupTiles &tiles;
  ImplicitLocOpBuilder &b;
  Value report, table;
};
} // namespace

/// Number `index` of the offsets, at most the rows that there are: all of them behind the offsets.
Int32 TableKernel::offset(Int32 index) {
  const GroupOffsets &offsets = tiles.offsets;
  Int32 known = tiles.hasRest ? minimum(index, Int32(b, offsets.groups)) : index;
  Value wide = readOffset(b, offsets, at(offsets.pointer, known, offsets.bytes));
  wide = arith::MaxSIOp::create(b, wide, arith::ConstantIntOp::create(b, 0, 64));
  wide = arith::MinSIOp::create(b, wide, offsets.limit);
  if (tiles.hasRest)
    wide = arith::SelectOp::create(b, index < offsets.groups + 1, wide, offsets.limit);
  return {b, arith::TruncIOp::create(b, b.getI32Type(), wide)};
}

TableKernel::Place TableKernel::advance(const Place &before, const Rows &rows) {
  Int32 begin = larger(before.end, rows.begin), end = larger(begin, rows.end);
  Int32 count = end - begin;
  return {end, before.tiles + (count + (tiles.rows - 1)) / tiles.rows,
          before.scaleRows + (count + (kBlockRows - 1)) / kBlockRows * kBlockRows};
}

TableKernel::Place TableKernel::placeBefore(Int32 group) {
  Int32 zero(b, int64_t(0)), several(b, kAtOnce), last(b, groups() - 1);
  auto loop = scf::ForOp::create(b, zero, group, several, ValueRange{zero, zero, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto carried = [&](ValueRange values) -> Place {
    return {{b, values[0]}, {b, values[1]}, {b, values[2]}};
  };
  Int32 first(b, loop.getInductionVar());
  SmallVector<Rows> rows;
  for (int64_t i = 0; i < kAtOnce; ++i)
    rows.push_back(rowsOf(minimum(first + i, last)));
  Place next = carried(loop.getRegionIterArgs());
  for (int64_t i = 0; i < kAtOnce; ++i) {
    Place before = next, after = advance(before, rows[size_t(i)]);
    Value exists = first + i < group;
    next = {select(exists, after.end, before.end), select(exists, after.tiles, before.tiles),
            select(exists, after.scaleRows, before.scaleRows)};
  }
  scf::YieldOp::create(b, ValueRange{next.end, next.tiles, next.scaleRows});
  return carried(loop.getResults());
}

void TableKernel::writeRow(Int32 row, std::array<Int32, 4> words) {
  Value address = at(table, row, 16);
  for (auto [i, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(b, word, at(address, Int32(b, int64_t(i)), 4), /*alignment=*/4);
}

void TableKernel::writeGroup(Int32 group) {
  Place before = placeBefore(group);
  Rows rows = rowsOf(group);
  Place after = advance(before, rows);
  Int32 begin = larger(before.end, rows.begin), zero(b, int64_t(0)), one(b, int64_t(1));
  auto loop = scf::ForOp::create(b, zero, after.tiles - before.tiles, one);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Int32 tile(b, loop.getInductionVar()), first = tile * tiles.rows;
    writeRow(before.tiles + tile, {begin + first, after.end, group, before.scaleRows + first});
  }
  if (tiles.hasGaps)
    writeRow(group + tiles.gapPlace(), {before.end, begin, zero, zero});
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, Int32(b, groups() - 1));
  when(isLast, [&] {
    writeRow(tiles.countPlace(), {after.tiles, zero, zero, zero});
    Int32 all(b, b.createOrFold<arith::TruncIOp>(b.getI32Type(), tiles.offsets.limit));
    if (tiles.hasGaps)
      writeRow(group + (tiles.gapPlace() + 1), {after.end, all, zero, zero});
  });
}

void TableKernel::emit() {
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Int32 group = block * GroupTiles::kThreads + thread;
  when(group < groups(), [&] { writeGroup(group); });
  // A thread of a warp that has no group where these are few.
  Int32 checker(b, GroupTiles::kThreads - 1);
  when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, checker),
       [&] { emitGroupCheck(b, tiles.offsets, report); });
}

void fp4::emitGroupTiles(ImplicitLocOpBuilder &b, const GroupTiles &tiles, Value report,
                         Value table) {
  TableKernel(b, tiles, report, table).emit();
}
