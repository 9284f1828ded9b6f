//===- LaneReduction.cpp - Split-K sums in tensor memory ------------------===//
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

#include "LaneEpilogue.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Index of the counter of this CTA's tile: rows of CTAs, then columns.
Value LaneEpilogue::counterIndex(const Part &tile) {
  Value column = b.div(tile.column, gemm.tiling.tileN);
  Value row = b.div(tile.row, gemm.tiling.blockM());
  if (gemm.dynamicColumns())
    return b.add(b.mul(column, gemm.tilesM() * gemm.tiling.clusterM), row);
  return b.add(b.mul(row, gemm.tilesN() * gemm.tiling.clusterN), column);
}

/// Returns the row of the workspace at which the sums of the first split-K part begin, and the row
/// behind those of the last. An unknown number of columns counts tiles, each with rows of its own.
LaneEpilogue::RowsOfSums LaneEpilogue::rowsOfSums(const Part &tile) {
  Value rowsOfPart = b.mul(works.numM, gemm.tiling.workM()),
        all = b.mul(rowsOfPart, gemm.work.splits);
  if (!gemm.dynamicColumns())
    return {tile.laneRow, rowsOfPart, all};
  Value number = b.div(tile.column, gemm.tiling.tileN);
  Value before = b.mul(number, all);
  return {b.add(before, tile.laneRow), rowsOfPart, b.add(before, all)};
}

/// The column of the workspace in which the sums of `column` of the result are.
Value LaneEpilogue::columnOfSums(const Part &tile, Value column) {
  return gemm.dynamicColumns() ? b.sub(column, tile.column) : column;
}

/// The parts of a chunk, added from the first to the last.
Value LaneEpilogue::sumOfParts(const Part &tile, Value column) {
  auto wide = VectorType::get({gemm.chunk()}, b.getF32Type());
  auto [row, rowsOfPart, end] = rowsOfSums(tile);
  column = columnOfSums(tile, column);
  Value sum;
  for (int64_t part = 0; part < gemm.work.splits; ++part) {
    Value next = FetchOp::create(b, wide, args.workspace, row, column);
    sum = sum ? arith::AddFOp::create(b, sum, next).getResult() : next;
    row = b.add(row, rowsOfPart);
  }
  return sum;
}

/// Every CTA leaves the sums of its part; the last one of a tile finishes it.
void LaneEpilogue::buildReduction(const Part &tile, Drain drain) {
  RowsOfSums rows = rowsOfSums(tile);
  Value row = b.add(rows.first, b.mul(tile.part, rows.ofPart));
  drain([](ValueRange sums, Value) { return sums.front(); },
        [&](Value sums, Value column) {
          Value place = columnOfSums(tile, ofThread(tile, column));
          StoreOp::create(b, sums, args.workspace, row, place, rows.end);
        });
  Value last = CountPartialOp::create(b, args.counters, counterIndex(tile), gemm.work.splits);
  auto branch = scf::IfOp::create(b, last, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  forColumns(tile, gemm.tiling.laneColumns(), [&](Value column) {
    Value place = b.add(tile.column, column), inResult = ofThread(tile, place);
    Value sums = sumOfParts(tile, inResult);
    store(convert({sums}, tile, ofThreadOrLast(tile, place)), tile, inResult);
  });
}

/// Columns behind the tile, which the last CTA has where CTAs have no equal parts, are skipped.
void LaneEpilogue::reduceInCluster(Value acc, const Part &tile) {
  int64_t width = gemm.reducedColumns(), chunk = gemm.chunk();
  auto type = VectorType::get({width}, b.getF32Type());
  Value sums = ReduceTmemOp::create(b, type, acc, IntegerAttr());
  Value first = b.mul(tile.part, width), all = b.constant(gemm.tiling.laneColumns());
  if (gemm.hasRaggedColumns()) {
    Value existing = works.endOfColumns(tile);
    Value before = ofThread(tile, tile.column);
    all = b.min(b.sub(existing, before), gemm.tiling.laneColumns());
  }
  bool isWhole = !gemm.hasRaggedColumns() && gemm.tiling.laneColumns() % width == 0 &&
                 gemm.tiling.laneColumns() / width == gemm.work.reducedCtas();
  for (int64_t column = 0; column < width; column += chunk) {
    Value inTile = b.add(first, b.constant(column)), place = b.add(tile.column, inTile);
    auto finish = [&] {
      Value part = vector::ExtractStridedSliceOp::create(b, sums, ArrayRef(column), ArrayRef(chunk),
                                                         ArrayRef<int64_t>(1));
      store(convert({part}, tile, ofThreadOrLast(tile, place)), tile, ofThread(tile, place));
    };
    if (isWhole)
      finish();
    else
      b.when(b.compare(arith::CmpIPredicate::slt, inTile, all), finish);
  }
}

//===----------------------------------------------------------------------===//
// Tiles that workers share
//===----------------------------------------------------------------------===//

/// Returns the row of the workspace at which the sums begin that `part` of its tile leaves of this
/// CTA's rows.
Value LaneEpilogue::rowOfSums(const Part &tile, Value part) {
  Value share = b.add(tile.share.firstSums, part);
  if (works.placeM)
    share = b.add(b.mul(share, gemm.tiling.clusterM), works.placeM);
  return b.mul(share, gemm.rowsOfShare());
}

/// The rows of columns that a thread has side by side follow each other: those of all TMEM lanes,
/// then those of the next columns.
static int64_t linesOfColumns(int64_t columns) { return columns / Gemm::kShareColumns * kMmaM; }

void LaneEpilogue::leaveShare(Value chunk, Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = b.add(row, b.mul(b.div(column, count), kMmaM));
  for (int64_t first = 0; first < gemm.storedColumns(); first += count) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(b, chunk, first + i));
    auto type = VectorType::get({count}, b.getF32Type());
    StoreOp::create(b, vector::FromElementsOp::create(b, type, sums), args.workspace,
                    b.add(row, b.constant(linesOfColumns(first))), b.constant(0), Value());
  }
}

Value LaneEpilogue::fetchShare(Value row, Value column) {
  constexpr int64_t count = Gemm::kShareColumns;
  row = b.add(row, b.mul(b.div(column, count), kMmaM));
  auto type = VectorType::get({count}, b.getF32Type());
  SmallVector<Value> sums;
  for (int64_t first = 0; first < gemm.chunk(); first += count) {
    Value part = FetchOp::create(b, type, args.workspace,
                                 b.add(row, b.constant(linesOfColumns(first))), b.constant(0));
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(b, part, i));
  }
  return vector::FromElementsOp::create(b, VectorType::get({gemm.chunk()}, b.getF32Type()), sums);
}

/// The sums of all split-K parts of a tile, from the first to the last. The first two, which every
/// shared tile has, are on their way together.
Value LaneEpilogue::sumOfShares(const Part &tile, Value column) {
  Value first = fetchShare(rowOfSums(tile, b.constant(0)), column);
  Value second = fetchShare(rowOfSums(tile, b.constant(1)), column);
  Value both = arith::AddFOp::create(b, first, second);
  auto parts =
      scf::ForOp::create(b, b.constant(2), tile.share.parts, b.constant(1), ValueRange{both});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(parts.getBody());
  Value next = fetchShare(rowOfSums(tile, parts.getInductionVar()), column);
  Value sum = arith::AddFOp::create(b, parts.getRegionIterArg(0), next);
  scf::YieldOp::create(b, sum);
  return parts.getResult(0);
}

void LaneEpilogue::finishShared(const Part &tile) {
  forColumns(tile, gemm.tiling.laneColumns(), [&](Value column) {
    Value place = b.add(tile.column, column), sums = sumOfShares(tile, column);
    store(convert({sums}, tile, ofThreadOrLast(tile, place)), tile, ofThread(tile, place));
  });
}

/// Stores a tile, or leaves its sums. The CTA that has all of a tile stores it. Every CTA of a
/// shared tile leaves its sums, and the last to come adds all of them.
void LaneEpilogue::buildShare(const Part &tile, Drain drain) {
  Value isShared = b.compare(arith::CmpIPredicate::sgt, tile.share.parts, b.constant(1));
  Value row = rowOfSums(tile, tile.share.part);
  drain([](ValueRange sums, Value) { return sums.front(); },
        [&](Value sums, Value column) {
          b.when(
              isShared, [&] { leaveShare(sums, row, b.sub(column, tile.column)); },
              [&] {
                Value inResult = ofThread(tile, column);
                store(convert({sums}, tile, orLast(inResult)), tile, inResult);
              });
        });
  b.when(isShared, [&] {
    Value counter = works.placeM
                        ? b.add(b.mul(tile.share.counter, gemm.tiling.clusterM), works.placeM)
                        : tile.share.counter;
    Value last = CountPartialOp::create(b, args.counters, counter, tile.share.parts, IntegerAttr());
    b.when(last, [&] { finishShared(tile); });
  });
}
