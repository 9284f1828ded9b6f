//===- WorkLoop.cpp - The works of a GEMM's kernel ------------------------===//

#include "WorkLoop.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

void WorkLoop::countTilesM() {
  if (gemm.work.searchedOffsets)
    gemm.byAuxiliary(CheckGroupsOp::create(b, args.table, gemm.m(), args.report));
  if (gemm.results.clearsRows)
    clearRows();
  if (gemm.problem.groups && !gemm.swapsOperands())
    numM = countTilesOfGroups();
  else if (Value ofM = gemm.swapsOperands() ? args.columns : args.rows)
    numM = b.quotientUp(ofM, gemm.tiling.workM());
  else
    numM = b.constant(gemm.work.stream ? gemm.work.streamWorks : gemm.tilesM());
}

Value WorkLoop::countTilesN() {
  if (gemm.problem.groups && gemm.swapsOperands())
    return countTilesOfGroups();
  Value ofN = givenN();
  return ofN ? b.quotientUp(ofN, gemm.tiling.workN()) : b.constant(gemm.tilesN());
}

void WorkLoop::forEachTile(TileBody body) {
  findPlaces();
  numTilesN = countTilesN();
  Value numN = gemm.work.stream ? b.constant(1) : b.mul(numTilesN, gemm.work.worksOfTile());
  b.forEachWork(
      numM, numN,
      [&](Value m, Value n, Value turn) {
        Value flip = turn ? flipOf(turn) : Value();
        Tile tile = findTile(m, n);
        tile.flip = flip;
        body(tile);
      },
      gemm.tiling.alternates);
  gpu::ReturnOp::create(b);
}

/// The last chunk of a tile comes first in even turns, and the first one in odd ones: what an
/// accumulator has in common with the next one, which lies behind it or before it.
Value WorkLoop::flipOf(Value turn) {
  Value odd = arith::AndIOp::create(b, turn, b.constant(1));
  Value even = arith::XOrIOp::create(b, odd, b.constant(1));
  return b.mul(even, gemm.tiling.tileN - gemm.chunk());
}

/// Finds the places of this CTA. For a reduction in the cluster, CTAs that share loads, or are a
/// pair, are neighbours, one split-K part behind the other.
void WorkLoop::findPlaces() {
  placeM = placeIn(gpu::Dimension::x, gemm.clusterCtasM());
  placeN = placeIn(gpu::Dimension::y, gemm.tiling.clusterN);
  if (!gemm.work.reducesInCluster)
    return;
  Value together = b.constant(gemm.tiling.clusterM), place = placeM;
  placeOfRange = arith::DivUIOp::create(b, place, together);
  placeM = {};
  if (gemm.tiling.clusterM > 1)
    placeM = arith::RemUIOp::create(b, place, together);
}

/// The place of this CTA in its cluster along m or n; null where there is one CTA.
Value WorkLoop::placeIn(gpu::Dimension dimension, int64_t ctas) {
  if (ctas == 1)
    return {};
  return b.placeInCluster(dimension);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Tile WorkLoop::findTile(Value m, Value n) {
  Tile tile;
  findRange(tile, m, n);
  placeTile(tile, m, n);
  tile.blockA =
      gemm.problem.groups || gemm.tiling.inCluster() ? b.div(tile.scaleRowA, kScaleBlockRows) : m;
  tile.blockB = b.div(tile.scaleRowB, kScaleBlockRows);
  // The tiles of 64, 96 and 192 columns often begin in the middle of the rows of a scale tile.
  if (gemm.splitsScaleBlocks())
    tile.bScaleRow = arith::RemUIOp::create(b, gemm.swapsOperands() ? tile.scaleRowB : tile.column,
                                            b.constant(kScaleBlockRows));
  return tile;
}

/// Finds the k tiles of a tile, or those of this CTA's split-K part, of which `n` has the number.
void WorkLoop::findRange(Tile &tile, Value &m, Value &n) {
  tile.k = {b.constant(0),
            args.depth ? b.quotientUp(args.depth, gemm.tiling.tileK) : b.constant(gemm.tilesK())};
  if (gemm.work.stream) {
    tile.share = findShare(m, n, tile.k);
  } else if (gemm.work.reducesInCluster) {
    tile.part = placeOfRange;
  } else if (gemm.work.reducedCtas() > 1) {
    tile.part = arith::DivUIOp::create(b, n, numTilesN);
    n = arith::RemUIOp::create(b, n, numTilesN);
    tile.index = b.add(b.mul(m, gemm.tilesN()), n);
  }
  if (gemm.work.splits > 1)
    tile.k = rangeOf(tile.part ? b.mul(tile.part, gemm.work.ranges) : b.constant(0));
}

/// Finds the work `m` of the table of shares, of which it sets the tile (m, n), the share and the k
/// tiles.
Tile::Share WorkLoop::findShare(Value &m, Value &n, Tile::Range &k) {
  Value first = b.mul(m, 2), second = b.add(first, b.constant(1));
  Tile::Share share = {b.entry(args.table, second, 0), b.entry(args.table, second, 1),
                       b.entry(args.table, second, 2), b.entry(args.table, second, 3)};
  m = b.entry(args.table, first, 0);
  n = b.entry(args.table, first, 1);
  k = {b.entry(args.table, first, 2), b.entry(args.table, first, 3)};
  return share;
}

/// The k tiles of part `part` of split-K (numerics::splitRange).
Tile::Range WorkLoop::rangeOf(Value part) {
  constexpr auto kSlice = int64_t(numerics::splitSlice);
  int64_t slices = llvm::divideCeil(gemm.problem.depth, kSlice), tiles = kSlice / gemm.tiling.tileK;
  auto bound = [&](Value number) -> Value {
    Value slice = b.div(b.mul(number, slices), gemm.work.splits);
    return tiles == 1 ? slice : b.min(b.mul(slice, tiles), gemm.tilesK());
  };
  return {bound(part), bound(b.add(part, b.constant(1)))};
}

/// Places the tile in the result, and finds its rows of A, of B and of their scales. Fragments
/// beside scale tiles have the column computed before the row, so that kernels keep the order of
/// their instructions.
void WorkLoop::placeTile(Tile &tile, Value m, Value n) {
  auto shifted = [&](Value first, Value place, int64_t size) {
    return place ? b.add(first, b.mul(place, size)) : first;
  };
  bool swaps = gemm.swapsOperands();
  TileOfGroup of;
  auto placeColumn = [&] {
    Value first = swaps && of.row ? of.row : b.mul(n, gemm.tiling.workN());
    tile.column = shifted(first, placeN, gemm.tiling.tileN);
  };
  bool isColumnFirst = gemm.hasFragments() && !gemm.problem.hasF32Scales();
  if (isColumnFirst)
    placeColumn();
  if (gemm.problem.groups)
    of = tileOfGroup(swaps ? n : m);
  Value first = !swaps && of.row ? of.row : b.mul(m, gemm.tiling.workM());
  tile.row = tile.rowA = tile.scaleRowA = shifted(first, placeM, gemm.tiling.blockM());
  if (!swaps && of.scaleRow && !gemm.problem.hasF32Scales())
    tile.scaleRowA = shifted(of.scaleRow, placeM, gemm.tiling.blockM());
  tile.rows = {tile.row};
  for (int64_t part = gemm.partRows(); gemm.sumsFewOfK() && part < gemm.tiling.tileM;
       part += gemm.partRows())
    tile.rows.push_back(b.add(tile.row, b.constant(part)));
  if (!isColumnFirst)
    placeColumn();
  tile.rowB = tile.scaleRowB = tile.column;
  if (gemm.tiling.pair) { // half of B, that a CTA of a pair has
    Value half = gemm.tiling.clusterM > 2 ? b.rem(placeM, 2) : placeM;
    tile.rowB = shifted(tile.column, half, gemm.tiling.blockN());
  }
  if (!gemm.problem.groups)
    return;
  if (swaps)
    tile.scaleRowB = of.scaleRow;
  tile.group.rowLimit = of.rowLimit;
  moveToGroup(tile, of.group);
  if (gemm.problem.hasF32Scales() && of.scaleRow) // results have a list of scale tiles
    tile.group.scaleShift = b.sub(of.scaleRow, of.row);
}

/// The weights of a group, their scales and its alphas lie behind those of the groups before.
void WorkLoop::moveToGroup(Tile &tile, Value group) {
  Value &row = gemm.swapsOperands() ? tile.rowA : tile.rowB;
  Value &scaleRow = gemm.swapsOperands() ? tile.scaleRowA : tile.scaleRowB;
  row = b.add(row, b.mul(group, gemm.rowsOfGroupWeights()));
  scaleRow = b.add(scaleRow, b.mul(group, gemm.scaleRowsOfGroup()));
  tile.group.group = group;
  tile.group.alpha = alphaOfGroup(args.alpha, group);
  tile.group.alpha2 = alphaOfGroup(args.alpha2, group);
  tile.group.scaleShift =
      gemm.swapsOperands() ? b.sub(tile.scaleRowB, tile.column) : b.sub(tile.scaleRowA, tile.row);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Number `number` of `words` of the offsets, of 64 bits each, at most the rows that there are.
Value WorkLoop::rowAt(Value words, int64_t number) {
  Value low = vector::ExtractOp::create(b, words, 2 * number);
  Value high = vector::ExtractOp::create(b, words, 2 * number + 1);
  Value zero = b.constant(0), most = b.constant(gemm.m());
  auto compare = [&](arith::CmpIPredicate holds) -> Value { return b.compare(holds, high, zero); };
  auto choose = [&](arith::CmpIPredicate holds, Value then, Value otherwise) -> Value {
    return arith::SelectOp::create(b, compare(holds), then, otherwise);
  };
  Value row = choose(arith::CmpIPredicate::eq, arith::MinUIOp::create(b, low, most), most);
  return choose(arith::CmpIPredicate::slt, zero, row);
}

/// The rows of `group`, which begin at row `before` or later: no two groups have one in common.
WorkLoop::Rows WorkLoop::rowsOfGroup(Value group, Value before) {
  auto type = VectorType::get({2 * gemm.work.searchedOffsets}, b.getI32Type());
  bool areRanges = gemm.work.searchedOffsets == 2;
  Value words = LoadEntryOp::create(b, type, args.table, group);
  Value next =
      areRanges ? words : LoadEntryOp::create(b, type, args.table, b.add(group, b.constant(1)));
  Value begin = arith::MaxUIOp::create(b, before, rowAt(words, 0));
  Value end = rowAt(next, areRanges ? 1 : 0);
  return {begin, arith::MaxUIOp::create(b, begin, end)};
}

/// The row of the table behind all places, which has the number of tiles.
Value WorkLoop::lastPlace() {
  if (!args.rows)
    return b.constant(gemm.work.tablePlaces);
  Value whole = b.div(args.rows, gemm.workRows());
  return b.add(whole, b.constant(gemm.problem.morePlaces()));
}

/// Counts the tiles of all groups. Searched, all groups are read here, once for all tiles.
Value WorkLoop::countTilesOfGroups() {
  if (gemm.problem.knowsGroups) // a CTA divides by it to find its tiles
    return b.constant(gemm.work.tablePlaces);
  if (!gemm.work.searchedOffsets)
    return b.entry(args.table, lastPlace(), 0);
  Value end = b.constant(0), tiles = b.constant(0);
  for (int64_t group = 0; group < gemm.problem.groups; ++group) {
    Rows rows = rowsOfGroup(b.constant(group), end);
    groups.push_back({rows, tiles});
    end = rows.end;
    Value count = b.sub(rows.end, rows.begin);
    tiles = b.add(tiles, b.quotientUp(count, gemm.tiling.workM()));
  }
  return tiles;
}

/// Finds the tile at `place` of the table. The scales of groups have a list of scale tiles, but f32
/// scales of the lhs follow their rows. Searched, the tile is of the last group whose first tile
/// comes no later.
WorkLoop::TileOfGroup WorkLoop::tileOfGroup(Value place) {
  TileOfGroup tile;
  if (!gemm.work.searchedOffsets) {
    bool hasList = gemm.hasScaleLists(), isGroupFirst = gemm.hasFragments();
    tile.row = b.entry(args.table, place, 0);
    tile.rowLimit = b.entry(args.table, place, 1);
    if (hasList && !isGroupFirst)
      tile.scaleRow = b.entry(args.table, place, 3);
    tile.group = b.entry(args.table, place, 2);
    if (hasList && isGroupFirst)
      tile.scaleRow = b.entry(args.table, place, 3);
    return tile;
  }
  for (auto [group, known] : llvm::enumerate(groups)) {
    Value number = b.sub(place, known.tilesBefore);
    TileOfGroup here = {b.add(known.rows.begin, b.mul(number, gemm.tiling.workM())), known.rows.end,
                        b.constant(int64_t(group)), Value()};
    if (group == 0) {
      tile = here;
      continue;
    }
    Value isHere = b.compare(arith::CmpIPredicate::uge, place, known.tilesBefore);
    auto choose = [&](Value then, Value otherwise) -> Value {
      return arith::SelectOp::create(b, isHere, then, otherwise);
    };
    tile = {choose(here.row, tile.row), choose(here.rowLimit, tile.rowLimit),
            choose(here.group, tile.group), Value()};
  }
  return tile;
}

/// The element of `alphas`, those of one of the GEMMs, for a group; null where a group has none of
/// its own.
Value WorkLoop::alphaOfGroup(Value alphas, Value group) {
  return alphas && gemm.results.alpha == Results::Alpha::Groups ? b.entry(alphas, group) : Value();
}

void WorkLoop::clearSearched() {
  Value first = b.constant(0);
  auto groups = scf::ForOp::create(b, first, b.constant(gemm.problem.groups), b.constant(1), first);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(groups.getBody());
    Value before = groups.getRegionIterArgs().front();
    Rows rows = rowsOfGroup(groups.getInductionVar(), before);
    gemm.byAuxiliary(ClearRowsOp::create(b, args.resultBuffer, before, rows.begin));
    scf::YieldOp::create(b, rows.end);
  }
  gemm.byAuxiliary(
      ClearRowsOp::create(b, args.resultBuffer, groups.getResult(0), b.constant(gemm.m())));
}

/// The rows between groups, which are of none, become zero.
void WorkLoop::clearRows() {
  if (gemm.work.searchedOffsets)
    return clearSearched();
  Value first = b.add(lastPlace(), b.constant(1));
  b.loop(b.constant(0), b.constant(gemm.gaps()), b.constant(1), [&](Value gap) {
    Value place = b.add(gap, first);
    gemm.byAuxiliary(ClearRowsOp::create(b, args.resultBuffer, b.entry(args.table, place, 0),
                                         b.entry(args.table, place, 1)));
  });
}
