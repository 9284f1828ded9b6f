//===- LaneWorks.cpp - The works of kernels with sums in tensor memory ----===//

#include "LaneWorks.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void LaneWorks::countTilesM() {
  if (gemm.results.clearsRows)
    works.clearRows();
  if (gemm.problem.groups && !gemm.swapsOperands())
    numM = works.countTilesOfGroups();
  else if (Value ofM = gemm.swapsOperands() ? args.columns : args.rows)
    numM = b.quotientUp(ofM, gemm.tiling.workM());
  else
    numM = b.constant(gemm.work.stream ? gemm.work.streamWorks : gemm.tilesM());
}

void LaneWorks::countTilesN() {
  findPlaces();
  Value ofN = givenN();
  numTilesN = gemm.problem.groups && gemm.swapsOperands() ? works.countTilesOfGroups()
              : ofN                                       ? b.quotientUp(ofN, gemm.tiling.workN())
                                                          : b.constant(gemm.tilesN());
}

void LaneWorks::forEachTile(TileBuilder::TurnBody body) {
  Value numN = gemm.work.stream ? b.constant(1) : b.mul(numTilesN, gemm.work.worksOfTile());
  if (gemm.tiling.alternates)
    b.forEachTurn(numM, numN, body);
  else
    b.forEachWork(numM, numN, [&](Value m, Value n) { body(m, n, Value()); });
  gpu::ReturnOp::create(b);
}

/// Finds the places of this CTA. For a reduction in the cluster, CTAs that share loads, or are a
/// pair, are neighbours, one split-K part behind the other.
void LaneWorks::findPlaces() {
  placeM = place(gpu::Dimension::x, gemm.clusterCtasM());
  placeN = place(gpu::Dimension::y, gemm.tiling.clusterN);
  if (!gemm.work.reducesInCluster)
    return;
  Value together = b.constant(gemm.tiling.clusterM), place = placeM;
  placeOfRange = arith::DivUIOp::create(b, place, together);
  placeM = {};
  if (gemm.tiling.clusterM > 1)
    placeM = arith::RemUIOp::create(b, place, together);
}

/// The place of this CTA in its cluster along m or n; null where there is one CTA.
Value LaneWorks::place(gpu::Dimension dimension, int64_t blocks) {
  if (blocks == 1)
    return {};
  return arith::IndexCastOp::create(b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, dimension));
}

/// The rows of the result that a tile of groups has, which with swapped operands are columns of the
/// GEMM, and the group.
void LaneWorks::findGroup(LaneTile &tile, Value work) {
  (gemm.swapsOperands() ? tile.column : tile.row) = works.entry(args.table, work, 0);
  tile.rowLimit = works.entry(args.table, work, 1);
  (gemm.swapsOperands() ? tile.scaleRowB : tile.scaleRowA) = works.entry(args.table, work, 3);
  tile.group = works.entry(args.table, work, 2);
}

/// The weights of a group, their scales and its alphas lie behind those of the groups before.
void LaneWorks::moveToGroup(LaneTile &tile) {
  Value &row = gemm.swapsOperands() ? tile.rowA : tile.rowB;
  Value &scaleRow = gemm.swapsOperands() ? tile.scaleRowA : tile.scaleRowB;
  row = b.add(row, b.mul(tile.group, gemm.problem.columns));
  scaleRow = b.add(scaleRow, b.mul(tile.group, gemm.scaleRowsOfGroup()));
  tile.alpha = works.alphaOfGroup(args.alpha, tile.group);
  tile.alpha2 = works.alphaOfGroup(args.alpha2, tile.group);
}

/// The k tiles of a tile, or those of this CTA's split-K part.
void LaneWorks::findRange(LaneTile &tile, Value &n) {
  tile.k = works.allOfK();
  if (gemm.work.reducesInCluster) {
    tile.part = placeOfRange;
    tile.k = works.rangeOf(tile.part);
  } else if (gemm.work.splits > 1) {
    tile.part = arith::DivUIOp::create(b, n, numTilesN);
    tile.k = works.rangeOf(tile.part);
    n = arith::RemUIOp::create(b, n, numTilesN);
  }
}

LaneTile LaneWorks::findTile(Value m, Value n) {
  auto shifted = [&](Value first, Value place, int64_t size) {
    return place ? b.add(first, b.mul(place, size)) : first;
  };
  LaneTile tile;
  findRange(tile, n);
  if (gemm.work.stream)
    tile.share = works.findShare(m, n, tile.k);
  if (gemm.problem.groups)
    findGroup(tile, gemm.swapsOperands() ? n : m);
  tile.row =
      shifted(tile.row ? tile.row : b.mul(m, gemm.tiling.workM()), placeM, gemm.tiling.blockM());
  tile.rowA = tile.row;
  tile.scaleRowA =
      tile.scaleRowA ? shifted(tile.scaleRowA, placeM, gemm.tiling.blockM()) : tile.row;
  tile.column =
      shifted(tile.column ? tile.column : b.mul(n, gemm.tiling.workN()), placeN, gemm.tiling.tileN);
  Value half = placeM; // half of B, that a CTA of a pair has
  if (gemm.tiling.pair && gemm.tiling.clusterM > 2)
    half = b.rem(placeM, 2);
  tile.rowB = gemm.tiling.pair ? shifted(tile.column, half, gemm.tiling.blockN()) : tile.column;
  tile.scaleRowB = tile.scaleRowB ? tile.scaleRowB : tile.column;
  if (gemm.problem.groups)
    moveToGroup(tile);
  tile.blockA =
      gemm.problem.groups || gemm.tiling.inCluster() ? b.div(tile.scaleRowA, kScaleBlockRows) : m;
  tile.blockB = b.div(tile.scaleRowB, kScaleBlockRows);
  // The tiles of 64, 96 and 192 columns often begin in the middle of the rows of a scale tile.
  if (gemm.splitsScaleBlocks())
    tile.bScaleRow = arith::RemUIOp::create(b, gemm.swapsOperands() ? tile.scaleRowB : tile.column,
                                            b.constant(kScaleBlockRows));
  return tile;
}
