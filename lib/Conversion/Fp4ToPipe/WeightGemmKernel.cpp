//===- WeightGemmKernel.cpp - Small-M and float GEMMs of weights -------===//
//
// The textbook algorithm of MatmulKernel.cpp with its operands swapped: rows of weights are those
// of the accumulator, which a warpgroup has in registers, and the rows of A are its columns, so
// that few of them fill an instruction. Weights become 16-bit floats, or e4m3 beside an e4m3 A, on
// their way to the tensor core, or, for many rows, before the GEMM (PreDequantizedWeights.h). A is
// floats, or is converted in shared memory or before (PreDequantize.h). The powers of two of the
// conversions are undone before alpha.
//
// Split-K parts are added from the first to the last. Either they are the CTAs of a cluster, which
// send each other their sums. Or they are tiles of their own: every thread leaves its sums in a
// workspace, and the last CTA to arrive adds them. A CTA may have several k slices, of which each
// stage has a k tile: their sums do not wait for each other.
//
//===----------------------------------------------------------------------===//

#include "FragmentEpilogue.h"
#include "MatmulKernel.h"
#include "OperandPath.h"

#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class WeightGemmBuilder {
public:
  WeightGemmBuilder(GemmKernel &kernel, const KernelPlan &plan)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), loop(kernel, plan) {
    loop.works.partRows = loop.fragments.size[1] = gemm.partRows();
  }
  void build() {
    loop.forEachTile([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  /// A tile of the result, and the first k slice of this CTA.
  struct Tile : WorkLoop::Tile {
    SmallVector<Value> powers; ///< one vector per part, where rows of weights have powers
  };

  Tile findTile(Value m, Value n);
  void buildTile(Value m, Value n);
  void storeTile(ArrayRef<Value> accumulators, const Tile &tile);
  void buildKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k);
  void multiplyPrepacked(ArrayRef<Value> accumulators, const Tile &tile, Value k);
  void multiplyRanges(ArrayRef<Value> accumulators, const Tile &tile, Value k);
  struct Weights {
    Value rows, count; ///< tiles that exist; null where all do
  };
  Weights loadWeights(Value from, Value row, Value k);
  Value firstTile(Value row, int64_t perRow);
  void loadPowers(Tile &tile);
  FragmentEpilogue::Restoring restoring(const Tile &tile, size_t part) {
    return {operands.restoringExponent(), tile.powers.empty() ? Value() : tile.powers[part]};
  }
  Value loadFloats(const Tile &tile, Value k) {
    return operands.load(args.a, tile.row, b.mul(k, gemm.tiling.tileK), gemm.tiling.tileK);
  }
  void multiply(Value acc, Weights weights, Value act);
  void multiplyResident(Value acc, const Tile &tile);
  void multiplyPreDequantized(ArrayRef<Value> accumulators, const Tile &tile);
  /// The powers of a scale block of K, a row of a tile of them.
  struct PowersOfBlock {
    Value tile, block;
  };
  void promoteKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k, PowersOfBlock powers);
  Value loadTile(const Tile &tile, Value k);
  void multiplyPlain(ArrayRef<Value> accumulators, const Tile &tile, Value k, Value more);
  /// A k tile of scaled weights.
  struct ScaledTile {
    Value codes, scales;
  };
  ScaledTile loadScaled(Value map, Value scales, const Tile &tile, size_t part, Value k,
                        OperandPath::ScaleBlocks blocks);
  Value loadRows(const Tile &tile, Value k, OperandPath::ScaleBlocks blocks);
  Value indexOf(const Tile &tile);
  /// A tile of more columns than the warpgroups have rows of fragments, or of more rows than
  /// threads have sums for, consists of parts, each with an accumulator of its own.
  size_t numParts() {
    return size_t(gemm.tiling.tileN / hw::weightTileRows * (gemm.tiling.tileM / gemm.partRows()));
  }
  Value partColumn(const Tile &tile, size_t part) {
    return shift(tile.column, gemm.route().rhs() == route::Operand::Pre ? 0 : part,
                 hw::weightTileRows);
  }
  Value rowOfPart(const Tile &tile, size_t part) {
    return shift(tile.rowB, part, hw::weightTileRows);
  }
  Value shift(Value first, size_t part, int64_t size) {
    return part ? b.add(first, b.constant(int64_t(part) * size)) : first;
  }

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  FragmentLoop loop;
};
} // namespace

WeightGemmBuilder::Tile WeightGemmBuilder::findTile(Value m, Value n) {
  Tile tile{loop.works.findTile(m, n), {}};
  if (gemm.route().rhs() != route::Operand::Pre) // parts are of columns
    tile.rows.assign(numParts(), tile.row);
  return tile;
}

void WeightGemmBuilder::buildTile(Value m, Value n) {
  Tile tile = findTile(m, n);
  SmallVector<Value> accumulators;
  // Accumulators of a second GEMM are behind those of the first.
  for (size_t i = 0; i < numParts() * size_t(gemm.work.ranges) * (gemm.problem.dual ? 2 : 1); ++i)
    accumulators.push_back(loop.fragments.create());
  if (gemm.route().accumulate == route::Accumulate::Fast)
    loadPowers(tile);
  if (gemm.route().rhs() == route::Operand::Pre)
    multiplyPreDequantized(accumulators, tile);
  else if (gemm.holdsWeights())
    multiplyResident(accumulators.front(), tile);
  else
    b.loop(tile.k.begin, tile.k.end, b.constant(1),
           [&](Value k) { buildKTile(accumulators, tile, k); });
  storeTile(accumulators, tile);
}

void WeightGemmBuilder::storeTile(ArrayRef<Value> accumulators, const Tile &tile) {
  if (gemm.work.reducesInCluster) {
    loop.fragments.reduceInCluster(accumulators);
    return loop.epilogue.storeSums(
        accumulators.front(), tile.row, tile.column, restoring(tile, 0), {},
        [&](int64_t first) { return loop.fragments.hasColumns(tile.part, first); });
  }
  auto store = [&](size_t part, auto sums) {
    loop.epilogue.storeSums(sums, tile.rows[part], partColumn(tile, part), restoring(tile, part),
                            tile.group);
  };
  if (gemm.work.stream)
    return loop.fragments.reduceShares(
        accumulators, tile.share, [&](size_t part, FragmentSums::From sums) { store(part, sums); });
  if (gemm.work.reducedCtas() > 1)
    return loop.fragments.reduce(accumulators, indexOf(tile), tile.part,
                                 [&](size_t part, FragmentSums::From sums) { store(part, sums); });
  if (gemm.work.ranges > 1)
    return store(0, [&](VectorType type, int64_t first) {
      return loop.fragments.sumOfRanges(accumulators, type, first);
    });
  for (size_t part = 0; part < numParts(); ++part) {
    Value row = tile.rows[part], column = partColumn(tile, part);
    loop.epilogue.storeSums(accumulators[part], row, column, restoring(tile, part), tile.group, {},
                            gemm.problem.dual ? accumulators[numParts() + part] : Value());
    loop.epilogue.quantizeElements(row, column, {b.constant(0), b.constant(0)}, tile.group);
  }
  loop.epilogue.finishTile();
}

//===----------------------------------------------------------------------===//
// K tiles
//===----------------------------------------------------------------------===//

void WeightGemmBuilder::buildKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k) {
  if (gemm.prepackedB())
    return multiplyPrepacked(accumulators, tile, k);
  Value more = gemm.route().core == route::Core::MmaSync
                   ? arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult()
                   : b.compare(arith::CmpIPredicate::sgt, k, tile.k.begin);
  multiplyPlain(accumulators, tile, k, more);
}

/// Loads the weights `from` of k tile `k` and of the rows from `row` on.
WeightGemmBuilder::Weights WeightGemmBuilder::loadWeights(Value from, Value row, Value k) {
  int64_t columns = hw::weightColumnsOf(gemm.packedBytes());
  int64_t perRow = gemm.problem.depth / columns, perTile = gemm.tiling.tileK / columns;
  auto source = cast<GlobalType>(from.getType());
  auto type = SharedType::get({perTile, source.getShape()[1]}, source.getElementType());
  Value first = b.mul(k, perTile);
  Value count = b.existing(first, perTile, perRow);
  Value index = b.add(firstTile(row, perRow), first);
  Value rows =
      LoadRowsOp::create(b, type, from, index, count, Value(), Value(), Value()).getResult();
  return {rows, count};
}

/// The first tile of the row of tiles that begins with `row`.
Value WeightGemmBuilder::firstTile(Value row, int64_t perRow) {
  return b.mul(b.div(row, hw::weightTileRows), perRow);
}

/// A row has the same power in all tiles, so any of them tells it.
void WeightGemmBuilder::loadPowers(Tile &tile) {
  auto ofRows = VectorType::get({4}, b.getF32Type());
  for (size_t part = 0; part < numParts(); ++part)
    tile.powers.push_back(RowPowersOp::create(
        b, ofRows, args.bb,
        firstTile(rowOfPart(tile, part), gemm.problem.depth / hw::byteTileColumns)));
}

/// The first MMA is added to the zeros of the accumulator, which costs no predicate.
void WeightGemmBuilder::multiply(Value acc, Weights weights, Value act) {
  Value more = arith::ConstantOp::create(b, b.getBoolAttr(true));
  MmaPrepackedOp::create(b, acc, weights.rows, act, more, weights.count,
                         /*without_powers=*/gemm.route().accumulate == route::Accumulate::Fast);
}

void WeightGemmBuilder::multiplyPrepacked(ArrayRef<Value> accumulators, const Tile &tile, Value k) {
  if (gemm.work.ranges > 1)
    return multiplyRanges(accumulators, tile, k);
  SmallVector<Weights> weights;
  SmallVector<Value> sources = {args.bb};
  if (gemm.problem.dual)
    sources.push_back(args.b2);
  for (Value from : sources)
    for (size_t part = 0; part < numParts(); ++part)
      weights.push_back(loadWeights(from, rowOfPart(tile, part), k));
  Value act = loadFloats(tile, k);
  for (auto [acc, ofPart] : llvm::zip_equal(accumulators, weights))
    multiply(acc, ofPart, act);
}

/// Multiplies k tile `k` of the first k slice, and the k tiles of the other slices that are as far
/// from their first.
void WeightGemmBuilder::multiplyRanges(ArrayRef<Value> accumulators, const Tile &tile, Value k) {
  int64_t tilesOfRange = gemm.tilesK() / gemm.work.splits;
  SmallVector<std::pair<Weights, Value>> operands;
  for (int64_t range = 0; range < gemm.work.ranges; ++range) {
    Value own = range ? b.add(k, b.constant(range * tilesOfRange)) : k;
    Weights weights = loadWeights(args.bb, tile.rowB, own);
    operands.push_back({weights, loadFloats(tile, own)});
  }
  for (auto [acc, ofRange] : llvm::zip_equal(accumulators, operands))
    multiply(acc, ofRange.first, ofRange.second);
}

/// The tile of prepacked weights of k tile `k`.
Value WeightGemmBuilder::loadTile(const Tile &tile, Value k) {
  auto source = cast<GlobalType>(args.bb.getType());
  auto type = SharedType::get({1, source.getShape()[1]}, source.getElementType());
  Value index = b.add(firstTile(tile.rowB, gemm.tilesK()), k);
  return LoadRowsOp::create(b, type, args.bb, index, Value(), Value(), Value(), Value())
      .getResult();
}

/// Weights are loaded one k tile early, in the stage of the activations before, so that a warpgroup
/// converts them as soon as these are multiplied. Loads behind the last k tile take the last one
/// again.
void WeightGemmBuilder::multiplyResident(Value acc, const Tile &tile) {
  auto type = FragmentType::get(b.getContext(), {loop.fragments.size[0], hw::byteTileColumns},
                                b.getType<Float8E4M3FNType>(), loop.fragments.kind);
  Value held = LoadResidentOp::create(b, type, loadTile(tile, tile.k.begin));
  Value last = b.sub(tile.k.end, b.constant(1));
  b.loop(tile.k.begin, tile.k.end, b.constant(1), [&](Value k) {
    Value next = loadTile(tile, arith::MinSIOp::create(b, b.add(k, b.constant(1)), last));
    Value act = loadFloats(tile, k);
    MmaResidentOp::create(b, acc, held, act, next);
  });
}

/// Four k tiles are written out if every split-K part has whole fours of them (Promotion.cpp). The
/// powers of the four are loaded together.
void WeightGemmBuilder::multiplyPreDequantized(ArrayRef<Value> accumulators, const Tile &tile) {
  int64_t count = gemm.writtenKTiles();
  auto type = SharedType::get({count, hw::weightTileRows}, b.getF32Type(), Layout::Linear);
  Value firstOfRow = firstTile(tile.column, gemm.tilesK());
  b.loop(tile.k.begin, tile.k.end, b.constant(count), [&](Value first) {
    Value index = b.add(firstOfRow, first);
    Value powers =
        LoadRowsOp::create(b, type, args.scalesB, index, Value(), Value(), Value(), Value())
            .getResult();
    if (count == 1)
      return promoteKTile(accumulators, tile, first, {powers, b.constant(0)});
    b.loop(b.constant(0), b.constant(count), b.constant(1), [&](Value place) {
      promoteKTile(accumulators, tile, b.add(first, place), {powers, place});
    });
  });
}

/// All parts have their sums in one fragment, one part after the other.
void WeightGemmBuilder::promoteKTile(ArrayRef<Value> accumulators, const Tile &tile, Value k,
                                     PowersOfBlock powers) {
  Value element = b.mul(k, gemm.tiling.tileK);
  Value scales =
      TilePowersOp::create(b, VectorType::get({3}, b.getF32Type()), powers.tile, powers.block);
  // The third number, 1, is the scale of every scale block that the columns can reach into.
  SmallVector<int64_t> order(size_t(2 + promotedBlocks(gemm.partRows())), 2);
  std::iota(order.begin(), order.begin() + 2, 0);
  if (order.size() > 3)
    scales = vector::ShuffleOp::create(b, scales, scales, order);
  Value weights = operands.load(args.bb, tile.column, element, gemm.tiling.tileK);
  SmallVector<Value> parts;
  for (Value row : tile.rows)
    parts.push_back(operands.load(args.a, row, element, gemm.tiling.tileK));
  Value sums = loop.fragments.create();
  for (auto [acc, act] : llvm::zip_equal(accumulators, parts)) {
    MmaFragmentOp::create(b, sums, weights, b.getI64IntegerAttr(0), act);
    PromoteOp::create(b, acc, sums, scales, b.constant(0));
  }
}

WeightGemmBuilder::ScaledTile WeightGemmBuilder::loadScaled(Value map, Value scales,
                                                            const Tile &tile, size_t part, Value k,
                                                            OperandPath::ScaleBlocks blocks) {
  Value rowBlock = operands.rowBlockOf(shift(tile.scaleRowB, part, hw::weightTileRows));
  if (part && args.columns) // the part may not exist
    rowBlock = arith::MinUIOp::create(b, rowBlock,
                                      operands.rowBlockOf(b.sub(args.columns, b.constant(1))));
  return {operands.load(map, rowOfPart(tile, part), b.mul(k, gemm.tiling.tileK), gemm.tiling.tileK),
          operands.loadScales(scales, rowBlock, blocks.first, blocks.count, hw::weightTileRows)};
}

/// A is converted once for the weights of both GEMMs, in shared memory or before.
void WeightGemmBuilder::multiplyPlain(ArrayRef<Value> accumulators, const Tile &tile, Value k,
                                      Value more) {
  OperandPath::ScaleBlocks blocks = operands.scaleBlocksOf(k);
  SmallVector<ScaledTile> weights;
  for (size_t part = 0; part < numParts(); ++part)
    weights.push_back(loadScaled(args.bb, args.scalesB, tile, part, k, blocks));
  for (size_t part = 0; gemm.problem.dual && part < numParts(); ++part)
    weights.push_back(loadScaled(args.b2, args.scalesB2, tile, part, k, blocks));
  Value rows = loadRows(tile, k, blocks);
  for (auto [acc, ofPart] : llvm::zip_equal(accumulators, weights))
    MmaConvertedOp::create(b, acc, ofPart.codes, ofPart.scales, rows, more, blocks.count,
                           /*in_order=*/gemm.floatA() && gemm.route().lhs() != route::Operand::Pre);
}

/// A k tile of A, for the tensor core.
Value WeightGemmBuilder::loadRows(const Tile &tile, Value k, OperandPath::ScaleBlocks blocks) {
  Value codes = loadFloats(tile, k);
  if (gemm.floatA())
    return codes;
  // The plan has one tile along m, which begins where a scale tile does.
  Value scales = operands.loadScales(args.scalesA, b.constant(0), blocks.first, blocks.count,
                                     gemm.tiling.tileM);
  return operands.convert(codes, scales, blocks.count);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Index of a tile of the result among all of them.
Value WeightGemmBuilder::indexOf(const Tile &tile) {
  Value m = b.div(tile.row, gemm.tiling.tileM);
  Value n = b.div(tile.column, gemm.tiling.tileN);
  return b.add(b.mul(m, gemm.tilesN()), n);
}

gpu::GPUFuncOp fp4::buildWeightGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                          const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // If warps multiply, ptxas would spill so that more CTAs fit than have shared memory.
  if (*plan.ctasPerSm > 1 || gemm.route().core == route::Core::MmaSync)
    declareCtasPerSm(func, *plan.ctasPerSm);
  GemmKernel kernel(func, gemm, plan, loc);
  WeightGemmBuilder(kernel, plan).build();
  return func;
}
