//===- MatmulRanges.cpp - Split-K sums of one tile ------------------------===//
//
// Split-K: each CTA has a part of K, and leaves its sums in a workspace. The sums of a part are a
// matrix of whole tiles behind that of the part before. The last CTA of a tile adds them from the
// first part to the last, and finishes the tile. If the number of columns is not known, each tile
// of columns has such a workspace of its own behind the one before it.
//
// Or the CTAs of a cluster have the split-K parts of a tile. Each adds some of its columns, and
// finishes them.
//
// Or workers share tiles, as a table says (StreamTable.cpp).
//
//===----------------------------------------------------------------------===//

#include "MatmulBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Index of the counter of this CTA's tile: rows of CTAs, then columns.
Value MatmulBuilder::counterIndex(const Tile &tile) {
  Value column = arith::DivUIOp::create(b, loc, tile.column, constant(gemm.tiling.tileN));
  Value row = arith::DivUIOp::create(b, loc, tile.row, constant(gemm.tiling.blockM()));
  if (gemm.dynamicColumns())
    return add(mul(column, gemm.tilesM() * gemm.tiling.clusterM), row);
  return add(mul(row, gemm.tilesN() * gemm.tiling.clusterN), column);
}

/// Returns the row of the workspace at which the sums of the first split-K part begin, and the row
/// behind those of the last. An unknown number of columns counts tiles, each with rows of its own.
MatmulBuilder::RowsOfSums MatmulBuilder::rowsOfSums(const Tile &tile) {
  Value rowsOfPart = mul(numM, gemm.tiling.workM()), all = mul(rowsOfPart, gemm.work.splits);
  if (!gemm.dynamicColumns())
    return {tile.laneRow, rowsOfPart, all};
  Value number = arith::DivUIOp::create(b, loc, tile.column, constant(gemm.tiling.tileN));
  Value before = arith::MulIOp::create(b, loc, number, all);
  return {add(before, tile.laneRow), rowsOfPart, add(before, all)};
}

/// The column of the workspace in which the sums of `column` of the result are.
Value MatmulBuilder::columnOfSums(const Tile &tile, Value column) {
  return gemm.dynamicColumns() ? arith::SubIOp::create(b, loc, column, tile.column).getResult()
                               : column;
}

/// The parts of a chunk, added from the first to the last.
Value MatmulBuilder::sumOfParts(const Tile &tile, Value column) {
  auto wide = VectorType::get({gemm.chunk()}, b.getF32Type());
  auto [row, rowsOfPart, end] = rowsOfSums(tile);
  column = columnOfSums(tile, column);
  Value sum;
  for (int64_t part = 0; part < gemm.work.splits; ++part) {
    Value next = FetchOp::create(b, loc, wide, workspace, row, column);
    sum = sum ? arith::AddFOp::create(b, loc, sum, next).getResult() : next;
    row = add(row, rowsOfPart);
  }
  return sum;
}

/// Every CTA leaves the sums of its part; the last one of a tile finishes it.
void MatmulBuilder::buildReduction(ValueRange accs, const Tile &tile) {
  RowsOfSums rows = rowsOfSums(tile);
  Value row = add(rows.first, arith::MulIOp::create(b, loc, tile.part, rows.ofPart));
  drain(
      accs, tile, [](ValueRange sums, Value) { return sums.front(); },
      [&](Value sums, Value column) {
        Value place = columnOfSums(tile, ofThread(tile, column));
        StoreOp::create(b, loc, sums, workspace, row, place, rows.end);
      });
  Value last = CountPartialOp::create(b, loc, counters, counterIndex(tile), gemm.work.splits);
  auto branch = scf::IfOp::create(b, loc, last, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  forColumns(tile, gemm.tiling.laneColumns(), [&](Value column) {
    Value place = add(tile.column, column), inResult = ofThread(tile, place);
    Value sums = sumOfParts(tile, inResult);
    store(convert({sums}, tile, ofThreadOrLast(tile, place)), tile, inResult);
  });
}

/// Columns behind the tile, which the last CTA has where CTAs have no equal parts, are skipped.
void MatmulBuilder::reduceInCluster(Value acc, const Tile &tile) {
  int64_t width = gemm.reducedColumns(), chunk = gemm.chunk();
  auto type = VectorType::get({width}, b.getF32Type());
  Value sums = ReduceTmemOp::create(b, loc, type, acc, IntegerAttr());
  Value first = mul(tile.part, width), all = constant(gemm.tiling.laneColumns());
  if (gemm.hasRaggedColumns()) {
    Value existing = endOfColumns(tile);
    Value before = ofThread(tile, tile.column);
    all = min(arith::SubIOp::create(b, loc, existing, before), gemm.tiling.laneColumns());
  }
  bool isWhole = !gemm.hasRaggedColumns() && gemm.tiling.laneColumns() % width == 0 &&
                 gemm.tiling.laneColumns() / width == gemm.work.reducedCtas();
  for (int64_t column = 0; column < width; column += chunk) {
    Value inTile = add(first, constant(column)), place = add(tile.column, inTile);
    auto finish = [&] {
      Value part = vector::ExtractStridedSliceOp::create(b, loc, sums, ArrayRef(column),
                                                         ArrayRef(chunk), ArrayRef<int64_t>(1));
      store(convert({part}, tile, ofThreadOrLast(tile, place)), tile, ofThread(tile, place));
    };
    if (isWhole)
      finish();
    else
      when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, inTile, all), finish);
  }
}

//===----------------------------------------------------------------------===//
// Tiles that workers share
//===----------------------------------------------------------------------===//

void MatmulBuilder::when(Value condition, llvm::function_ref<void()> body,
                         llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

/// Returns the row of the workspace at which the sums begin that `part` of its tile leaves of this
/// CTA's rows.
Value MatmulBuilder::rowOfSums(const Tile &tile, Value part) {
  Value share = add(tile.firstSums, part);
  if (placeM)
    share = add(mul(share, gemm.tiling.clusterM), placeM);
  return mul(share, gemm.rowsOfShare());
}

/// The rows of columns that a thread has side by side follow each other: those of all TMEM lanes,
/// then those of the next columns.
static int64_t linesOfColumns(int64_t columns) { return columns / Gemm::kShareColumns * kMmaM; }

void MatmulBuilder::leaveShare(Value chunk, Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = add(row, mul(arith::DivUIOp::create(b, loc, column, constant(count)), kMmaM));
  for (int64_t first = 0; first < gemm.storedColumns(); first += count) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(b, loc, chunk, first + i));
    auto type = VectorType::get({count}, b.getF32Type());
    StoreOp::create(b, loc, vector::FromElementsOp::create(b, loc, type, sums), workspace,
                    add(row, constant(linesOfColumns(first))), constant(0), Value());
  }
}

Value MatmulBuilder::fetchShare(Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = add(row, mul(arith::DivUIOp::create(b, loc, column, constant(count)), kMmaM));
  auto type = VectorType::get({count}, b.getF32Type());
  SmallVector<Value> sums;
  for (int64_t first = 0; first < gemm.chunk(); first += count) {
    Value part = FetchOp::create(b, loc, type, workspace, add(row, constant(linesOfColumns(first))),
                                 constant(0));
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(b, loc, part, i));
  }
  return vector::FromElementsOp::create(b, loc, VectorType::get({gemm.chunk()}, b.getF32Type()),
                                        sums);
}

/// The sums of all split-K parts of a tile, from the first to the last. The first two, which every
/// shared tile has, are on their way together.
Value MatmulBuilder::sumOfShares(const Tile &tile, Value column) {
  Value first = fetchShare(rowOfSums(tile, constant(0)), column);
  Value second = fetchShare(rowOfSums(tile, constant(1)), column);
  Value both = arith::AddFOp::create(b, loc, first, second);
  auto parts = scf::ForOp::create(b, loc, constant(2), tile.parts, constant(1), ValueRange{both});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(parts.getBody());
  Value next = fetchShare(rowOfSums(tile, parts.getInductionVar()), column);
  Value sum = arith::AddFOp::create(b, loc, parts.getRegionIterArg(0), next);
  scf::YieldOp::create(b, loc, sum);
  return parts.getResult(0);
}

void MatmulBuilder::finishShared(const Tile &tile) {
  forColumns(tile, gemm.tiling.laneColumns(), [&](Value column) {
    Value place = add(tile.column, column), sums = sumOfShares(tile, column);
    store(convert({sums}, tile, ofThreadOrLast(tile, place)), tile, ofThread(tile, place));
  });
}

/// Stores a tile, or leaves its sums. The CTA that has all of a tile stores it. Every CTA of a
/// shared tile leaves its sums, and the last to come adds all of them.
void MatmulBuilder::buildShare(ValueRange accs, const Tile &tile) {
  Value isShared =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, tile.parts, constant(1));
  Value row = rowOfSums(tile, tile.part);
  drain(
      accs, tile, [](ValueRange sums, Value) { return sums.front(); },
      [&](Value sums, Value column) {
        when(
            isShared,
            [&] { leaveShare(sums, row, arith::SubIOp::create(b, loc, column, tile.column)); },
            [&] {
              Value inResult = ofThread(tile, column);
              store(convert({sums}, tile, orLast(inResult)), tile, inResult);
            });
      });
  when(isShared, [&] {
    Value counter = placeM ? add(mul(tile.counter, gemm.tiling.clusterM), placeM) : tile.counter;
    Value last = CountPartialOp::create(b, loc, counters, counter, tile.parts, IntegerAttr());
    when(last, [&] { finishShared(tile); });
  });
}
