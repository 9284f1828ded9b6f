//===- KLoop.cpp - The loop over the k tiles of a tile --------------------===//

#include "KLoop.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// K tiles of a step follow one another, or are those of k slices.
Value KLoop::numberOf(const KStep &step, int64_t number) {
  int64_t distance = gemm.work.ranges > 1 ? gemm.tilesOfSplit() : 1;
  return number ? b.add(step.first, b.constant(number * distance)) : step.first;
}

KTile KLoop::kTileOf(const KStep &step, int64_t number) {
  return loads.kTileOf(numberOf(step, number));
}

/// Returns how many k tiles have their factors in one tile in shared memory; 0 where none have.
/// As many are written out (Promotion.cpp).
int64_t KLoop::factorsTogether() const {
  if (gemm.route().rhs() == route::Operand::Pre)
    return gemm.hasWholeFours() ? Gemm::kStagedBlocks : 1;
  return gemm.stagesScales() ? gemm.blocksTogether() : 0;
}

void KLoop::forEachStep(const Tile &tile, llvm::function_ref<void(const KStep &)> body) {
  int64_t together = factorsTogether();
  Value size = b.constant(gemm.tiling.blocksOfTileK);
  if (!together) {
    b.loop(tile.k.begin, tile.k.end, size, [&](Value k) { body({k, Value()}); });
    return;
  }
  b.loop(tile.k.begin, tile.k.end, b.constant(together), [&](Value first) {
    loadFactors(tile, first);
    if (together == gemm.tiling.blocksOfTileK)
      return body({first, b.constant(0)});
    b.loop(b.constant(0), b.constant(together), size,
           [&](Value place) { body({b.add(first, place), place}); });
  });
}

/// Loads the factors of k tiles from `first` on: the powers of weights that are converted before,
/// or f32 scales of each operand.
void KLoop::loadFactors(const Tile &tile, Value first) {
  firstLoaded = first;
  if (gemm.route().rhs() == route::Operand::Pre) {
    Value index = b.add(loads.firstPacked(tile.column), first);
    factorsA = loads.loadRows(args.scalesB, index, factorsTogether());
    return;
  }
  Value band = b.div(tile.scaleRowB, kPromotedBlock);
  factorsA = loads.loadBox(args.scalesA, tile.row, first);
  factorsB = loads.loadBox(args.scalesB, band, first);
  if (gemm.problem.dual)
    factorsB2 = loads.loadBox(args.scalesB2, band, first);
}

/// The powers of weights of a k tile. The third number, 1, is the scale of every scale block that
/// the columns can reach into.
Value KLoop::powers(Value place) {
  Value scales = ScalesOp::create(b, VectorType::get({3}, b.getF32Type()), factorsA, /*first=*/0,
                                  /*b=*/Value(), place);
  SmallVector<int64_t> order(size_t(2 + promotedBlocks(gemm.partRows())), 2);
  std::iota(order.begin(), order.begin() + 2, 0);
  return order.size() > 3 ? vector::ShuffleOp::create(b, scales, scales, order).getResult()
                          : scales;
}

/// The power of the row of prepacked `weights` that a TMEM lane has, in k tile `k`.
Value KLoop::powerOfLane(Value weights, const Tile &tile, Value k) {
  constexpr int64_t fewest = 4; // columns of a tile of lanes, which are alike here
  auto type = DistributionAttr::tensorOf(FragmentKind::Lanes, fewest, b.getF32Type());
  Value powers = FetchOp::create(b, type, weights, b.add(loads.firstPacked(tile.rowA), k));
  return vector::ExtractOp::create(b, b.toVector(powers), 0);
}

/// The factor of the TMEM lane of a thread for k tile `k`, one for each GEMM.
SmallVector<Value> KLoop::factorsOfLane(const Tile &tile, const KStep &step, Value k) {
  auto factorOf = [&](Value weights, Value scales, Value loaded) -> Value {
    if (gemm.prepackedA())
      return powerOfLane(weights, tile, k);
    if (step.place)
      return ScalesOp::create(b, b.getF32Type(), factorsA, /*first=*/0, loaded, step.place);
    return ScalesOp::create(b, b.getF32Type(), args.scalesA, tile.row, scales, tile.scaleRowB,
                            gemm.tiling.laneColumns(), k, args.rows);
  };
  SmallVector<Value> factors = {factorOf(args.a, args.scalesB, factorsB)};
  if (gemm.problem.dual)
    factors.push_back(factorOf(args.b2, args.scalesB2, factorsB2));
  return factors;
}

/// Appends the f32 scales of each part of `tile` for a k tile beside those of the columns of a
/// GEMM.
void KLoop::appendScales(const Tile &tile, const KStep &k, const ColumnScales &ofColumns,
                         SmallVectorImpl<Value> &factors) {
  auto type = VectorType::get({2 + promotedBlocks(gemm.tiling.tileN)}, b.getF32Type());
  bool areInSets = k.place && gemm.rowSetsOfScales().count() > 1;
  Value fromA = areInSets ? tile.row : Value(),
        fromB = areInSets ? b.div(tile.scaleRowB, kPromotedBlock) : Value(),
        fromBlock = areInSets ? firstLoaded : Value();
  for (auto [part, row] : llvm::enumerate(tile.rows))
    if (k.place)
      factors.push_back(ScalesOp::create(b, type, factorsA, int64_t(part) * gemm.partRows(),
                                         ofColumns.loaded, k.place, fromA, fromB, fromBlock));
    else
      factors.push_back(ScalesOp::create(b, type, args.scalesA, row, ofColumns.buffer,
                                         tile.scaleRowB, gemm.tiling.tileN, k.first, args.rows));
}

SmallVector<Value> KLoop::factorsOf(const Tile &tile, const KStep &step, int64_t number) {
  if (gemm.route().rhs() == route::Operand::Pre)
    return SmallVector<Value>(tile.rows.size(), powers(step.place));
  Value k = numberOf(step, number);
  if (gemm.tiling.laneGroups)
    return factorsOfLane(tile, step, k);
  KStep ofTile = {k, number && step.place ? b.add(step.place, b.constant(number)) : step.place};
  SmallVector<Value> factors;
  appendScales(tile, ofTile, {args.scalesB, factorsB}, factors);
  if (gemm.problem.dual)
    appendScales(tile, ofTile, {args.scalesB2, factorsB2}, factors);
  return factors;
}
