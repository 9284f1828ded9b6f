//===- LaneEpilogue.cpp - Results of GEMMs with sums in tensor memory -----===//

#include "LaneEpilogue.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void LaneEpilogue::begin() {
  auto scalar = [&](Value from) -> Value {
    return from ? broadcast(LoadEntryOp::create(b, b.getF32Type(), from)) : Value();
  };
  if (gemm.results.alpha == Results::Alpha::One) {
    alphaVector = scalar(args.alpha);
    alpha2Vector = scalar(args.alpha2);
  }
  if (gemm.results.derives())
    results.emplace(b, gemm, args.derived);
}

Value LaneEpilogue::broadcast(Value scalar) { return b.splat(lanes.chunkType(), scalar); }

/// The place of the chunk of a row from `column` of the tile's GEMM on.
SumConversion::Place LaneEpilogue::placeOf(Value column) {
  const Tile &tile = lanes.tile;
  if (gemm.swapsOperands())
    return {column, tile.row, tile.group.group, /*transposed=*/true};
  return {lanes.laneRow, column, tile.group.group, /*transposed=*/false};
}

Value LaneEpilogue::factors(Value alphas, Value column) {
  return conversion.loadAlphas(lanes.chunkType(), alphas, placeOf(column));
}

/// Converts a chunk of sums of each GEMM.
Value LaneEpilogue::convert(ValueRange chunks, Value column) {
  bool ofColumns = gemm.hasAlphaOfColumns();
  auto restored = [&](size_t number) -> Value {
    Value chunk = conversion.timesPower(chunks[number], gemm.restoringExponent());
    if (lanes.tile.powers.empty())
      return chunk;
    return arith::MulFOp::create(b, chunk, lanes.tile.powers[number]);
  };
  SmallVector<SumConversion::Sums> sums;
  sums.push_back({restored(0), ofColumns ? factors(args.alpha, column) : factor});
  if (gemm.problem.dual)
    sums.push_back({restored(1), ofColumns ? factors(args.alpha2, column) : factor2});
  return conversion.convertSums(sums, placeOf(column));
}

/// Stores a chunk; a staged tile is that of all threads.
void LaneEpilogue::store(Value chunk, Value column) {
  const Tile &tile = lanes.tile;
  Value rows = tile.group.rowLimit ? tile.group.rowLimit : args.rows;
  if (gemm.swapsOperands()) {
    StoreOp::create(b, chunk, args.result, lanes.ofThread(column), tile.row, rows,
                    /*transposed=*/true);
    return;
  }
  if (!gemm.results.storesTiles) {
    StoreOp::create(b, chunk, args.result, lanes.laneRow, lanes.ofThread(column), rows);
    return;
  }
  auto box = cast<TensorMapType>(args.result.getType());
  bool isOfTwo = gemm.tiling.splitsColumns() || gemm.tiling.epilogueGroups > 1;
  SmallVector<int64_t> rowsAndColumns = {kMmaM * gemm.tiling.epilogueGroups, box.getColumns()};
  auto type = SharedType::get(rowsAndColumns, box.getElementType(), box.getLayout());
  Value staged = StageOp::create(b, type, chunk, Value()).getResult();
  auto stored = StoreOp::create(b, staged, args.result, tile.row, column, /*rows=*/Value());
  if (isOfTwo)
    stored.setHalves(gemm.tiling.laneColumns());
}

/// Finds alphas that are alike in all chunks of the tile.
void LaneEpilogue::takeAlphas() {
  const Tile &tile = lanes.tile;
  factor = tile.group.alpha ? broadcast(tile.group.alpha) : alphaVector;
  factor2 = tile.group.alpha2 ? broadcast(tile.group.alpha2) : alpha2Vector;
  if (!gemm.hasAlphaOfThread())
    return;
  factor = factors(args.alpha, tile.column);
  if (gemm.problem.dual)
    factor2 = factors(args.alpha2, tile.column);
}

void LaneEpilogue::finish(ValueRange accs, const Tile &ofCta) {
  lanes.take(accs, ofCta);
  takeAlphas();
  if (!results || gemm.work.addsRanges())
    return lanes.complete(
        [&](ValueRange sums, Value column) { return convert(sums, lanes.ofThreadOrLast(column)); },
        [&](Value chunk, Value column) { store(chunk, column); });
  const Tile &tile = lanes.tile;
  Value first = lanes.ofThread(tile.column);
  auto elementsFrom = [&](OpFoldResult column) {
    Value place = lanes.orLast(b.add(first, b.valueOf(column)));
    return lanes.hold(convert(lanes.read(column), place));
  };
  if (gemm.swapsOperands())
    return results->emitSwappedTile({first, lanes.laneRow,
                                     tile.group.rowLimit ? tile.group.rowLimit : args.rows,
                                     tile.group.scaleShift},
                                    elementsFrom);
  ResultPlace place{lanes.laneRow, first, tile.group.rowLimit ? tile.group.rowLimit : args.rows,
                    tile.group.scaleShift};
  results->emitTile(place, elementsFrom);
}
