//===- WorkLoop.cpp - The works of a GEMM's kernel ------------------------===//

#include "WorkLoop.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void WorkLoop::countTiles() {
  if (gemm.work.stream)
    numM = b.constant(gemm.work.streamWorks);
  else if (gemm.problem.groups)
    numM = countTilesOfGroups();
  else if (args.rows)
    numM = b.quotientUp(args.rows, gemm.tiling.tileM);
  else
    numM = b.constant(gemm.tilesM());
}

void WorkLoop::forEachTile(TileBuilder::WorkBody body) {
  b.forEachWork(numM, gemm.work.stream ? b.constant(1) : countWorksN(), body);
  gpu::ReturnOp::create(b);
}

WorkLoop::Tile WorkLoop::findTile(Value m, Value n) {
  Tile tile;
  tile.k = allOfK();
  if (gemm.work.stream) {
    tile.share = findShare(m, n, tile.k);
  } else if (gemm.work.reducesInCluster) {
    tile.part = placeOfRange();
  } else if (gemm.work.reducedCtas() > 1) {
    tile.part = b.div(n, gemm.tilesN());
    n = b.rem(n, gemm.tilesN());
    tile.index = b.add(b.mul(m, gemm.tilesN()), n);
  }
  if (gemm.work.splits > 1)
    tile.k = rangeOf(tile.part ? b.mul(tile.part, gemm.work.ranges) : b.constant(0));
  placeTile(tile, m, n);
  return tile;
}

WorkLoop::Share WorkLoop::findShare(Value &m, Value &n, Range &k) {
  Value first = b.mul(m, 2), second = b.add(first, b.constant(1));
  Share share = {entry(args.table, second, 0), entry(args.table, second, 1),
                 entry(args.table, second, 2), entry(args.table, second, 3)};
  m = entry(args.table, first, 0);
  n = entry(args.table, first, 1);
  k = {entry(args.table, first, 2), entry(args.table, first, 3)};
  return share;
}

/// The tile of the result. f32 scales of groups follow their rows, and others have a list of scale
/// tiles. Beside f32 scales the row is computed before the column, so that kernels keep the order
/// of their instructions.
void WorkLoop::placeTile(Tile &tile, Value m, Value n) {
  auto placeColumn = [&] {
    tile.column = tile.rowB = tile.scaleRowB = b.mul(n, gemm.tiling.tileN);
  };
  if (!gemm.problem.hasF32Scales())
    placeColumn();
  auto [row, rowLimit, group] =
      gemm.problem.groups ? tileOfGroup(m) : TileOfGroup{b.mul(m, gemm.tiling.tileM), {}, {}};
  tile.row = tile.scaleRowA = row;
  tile.rows = {row};
  for (int64_t first = partRows; first < gemm.tiling.tileM; first += partRows)
    tile.rows.push_back(b.add(row, b.constant(first)));
  if (gemm.problem.hasF32Scales())
    placeColumn();
  if (!gemm.problem.groups)
    return;
  if (!gemm.problem.hasF32Scales())
    tile.scaleRowA = entry(args.table, m, 3);
  tile.rowB = b.add(tile.column, b.mul(group, gemm.problem.columns));
  tile.scaleRowB = b.add(tile.column, b.mul(group, gemm.scaleRowsOfGroup()));
  tile.group = {rowLimit, alphaOfGroup(args.alpha, group), alphaOfGroup(args.alpha2, group), group,
                Value()};
  tile.group.scaleShift = b.sub(tile.scaleRowA, tile.row);
}

/// i32: the place of this CTA, where split-K parts of a tile are reduced in a cluster.
Value WorkLoop::placeOfRange() {
  Value place = gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x);
  return arith::IndexCastOp::create(b, b.getI32Type(), place);
}

Value WorkLoop::entry(Value from, Value index, int64_t column) {
  auto type = cast<GlobalType>(from.getType());
  int64_t columns = type.getRank() == 2 ? type.getShape()[1] : 1;
  auto row = VectorType::get({columns}, type.getElementType());
  return vector::ExtractOp::create(b, LoadEntryOp::create(b, row, from, index), column);
}

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

/// Searched, all groups are read here, once for all tiles.
Value WorkLoop::countTilesOfGroups() {
  if (gemm.problem.knowsGroups) // a CTA divides by it to find its tiles
    return b.constant(gemm.work.tablePlaces);
  if (!gemm.work.searchedOffsets)
    return entry(args.table, lastPlace(), 0);
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

/// Searched, it is of the last group whose first tile comes no later.
WorkLoop::TileOfGroup WorkLoop::tileOfGroup(Value m) {
  if (!gemm.work.searchedOffsets)
    return {entry(args.table, m, 0), entry(args.table, m, 1), entry(args.table, m, 2)};
  TileOfGroup tile;
  for (auto [group, known] : llvm::enumerate(groups)) {
    Value number = b.sub(m, known.tilesBefore);
    TileOfGroup here = {b.add(known.rows.begin, b.mul(number, gemm.tiling.workM())), known.rows.end,
                        b.constant(int64_t(group))};
    if (group == 0) {
      tile = here;
      continue;
    }
    Value isHere = b.compare(arith::CmpIPredicate::uge, m, known.tilesBefore);
    auto choose = [&](Value then, Value otherwise) -> Value {
      return arith::SelectOp::create(b, isHere, then, otherwise);
    };
    tile = {choose(here.row, tile.row), choose(here.rowLimit, tile.rowLimit),
            choose(here.group, tile.group)};
  }
  return tile;
}

Value WorkLoop::alphaOfGroup(Value alphas, Value group) {
  return alphas && gemm.results.alpha == Results::Alpha::Groups ? entry(alphas, group, 0) : Value();
}

void WorkLoop::checkGroups() { CheckGroupsOp::create(b, args.table, gemm.m(), args.report); }

void WorkLoop::clearSearched() {
  Value first = b.constant(0);
  auto groups = scf::ForOp::create(b, first, b.constant(gemm.problem.groups), b.constant(1), first);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(groups.getBody());
    Value before = groups.getRegionIterArgs().front();
    Rows rows = rowsOfGroup(groups.getInductionVar(), before);
    ClearRowsOp::create(b, args.resultBuffer, before, rows.begin);
    scf::YieldOp::create(b, rows.end);
  }
  ClearRowsOp::create(b, args.resultBuffer, groups.getResult(0), b.constant(gemm.m()));
}

void WorkLoop::clearRows() {
  if (gemm.work.searchedOffsets)
    return clearSearched();
  b.loop(b.constant(0), b.constant(gemm.gaps()), b.constant(1), [&](Value gap) {
    Value place = b.add(gap, b.constant(gemm.work.gapPlaces()));
    ClearRowsOp::create(b, args.resultBuffer, entry(args.table, place, 0),
                        entry(args.table, place, 1));
  });
}

WorkLoop::Range WorkLoop::rangeOf(Value part) {
  constexpr auto kSlice = int64_t(numerics::splitSlice);
  int64_t slices = llvm::divideCeil(gemm.problem.depth, kSlice), tiles = kSlice / gemm.tiling.tileK;
  auto bound = [&](Value number) -> Value {
    Value slice = b.div(b.mul(number, slices), gemm.work.splits);
    return tiles == 1 ? slice : b.min(b.mul(slice, tiles), gemm.tilesK());
  };
  return {bound(part), bound(b.add(part, b.constant(1)))};
}

Value WorkLoop::countWorksN() {
  return args.columns ? b.quotientUp(args.columns, gemm.tiling.workN()) : b.constant(gemm.worksN());
}

Value WorkLoop::countTilesK() {
  return args.depth ? b.quotientUp(args.depth, gemm.tiling.tileK) : b.constant(gemm.tilesK());
}
