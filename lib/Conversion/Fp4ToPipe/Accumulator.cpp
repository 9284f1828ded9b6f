//===- Accumulator.cpp - The sums of a tile -------------------------------===//

#include "Accumulator.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Type Accumulator::lanesType() {
  return TmemType::get({gemm.tiling.tileM, gemm.tiling.tileN}, b.getF32Type(), Layout::Linear,
                       gemm.tiling.pair);
}

SmallVector<Value> Accumulator::create() {
  SmallVector<Value> accs;
  int64_t count = gemm.work.ranges * (gemm.problem.dual ? 2 : 1);
  if (gemm.tiling.laneGroups) {
    SmallVector<int64_t> size = {kMmaM, gemm.tiling.laneColumns()};
    auto type = FragmentType::get(b.getContext(), size, b.getF32Type(), FragmentKind::Lanes);
    for (int64_t i = 0; i < count; ++i)
      accs.push_back(AccumulatorOp::create(b, type));
  } else if (gemm.route().core == route::Core::Tcgen05)
    for (int64_t i = 0; i < count; ++i)
      accs.push_back(AccumulatorOp::create(b, lanesType()));
  else
    for (int64_t i = 0; i < count * gemm.partsOfTile(); ++i)
      accs.push_back(fragments.create(i * gemm.work.ranges / (count * gemm.partsOfTile())));
  return accs;
}

/// i1: the accumulator has sums of k tiles before. Fragments of prepacked weights and of mma.sync
/// begin as zeros, to which the first k tile is added without a predicate.
Value Accumulator::isMore(const Tile &tile, Value k, int64_t part) {
  bool beginsAsZeros = gemm.prepackedB() || gemm.route().core == route::Core::MmaSync;
  if (part || beginsAsZeros)
    return arith::ConstantOp::create(b, b.getBoolAttr(true));
  return b.compare(arith::CmpIPredicate::sgt, k, tile.k.begin);
}

void Accumulator::multiply(ValueRange accs, const Tile &tile, const KStep &step,
                           ArrayRef<OperandPair> pairs, int64_t part) {
  if (gemm.tiling.laneGroups)
    return promoteLanes(accs, tile, step, pairs.front());
  if (gemm.sumsFewOfK())
    return promote(accs, tile, step, pairs);
  Value more = isMore(tile, step.first, part);
  for (auto [slice, pair] : llvm::enumerate(pairs))
    for (const OperandTile &operand : pair.b) {
      OperandTile y = converted(operand);
      for (const OperandTile &x : pair.a) {
        gemm.bySlice(multiplyInto(accs.front(), x, y, more, part), int64_t(slice));
        accs = accs.drop_front();
      }
    }
}

/// Operand B as the core takes it from shared memory. The second B of a dual GEMM is converted
/// while the first one is multiplied.
OperandTile Accumulator::converted(const OperandTile &operand) {
  if (gemm.route().b != route::Operand::Shared)
    return operand;
  Type half = gemm.problem.block == 16 ? Type(b.getF16Type()) : Type(b.getBF16Type());
  auto type = SharedType::get(cast<SharedType>(operand.data.getType()).getShape(), half,
                              Layout::Swizzle128B);
  auto floats = gemm.byAuxiliary(
      DequantizeTileOp::create(b, type, operand.data, operand.scales, operand.count));
  return {.data = floats.getResult()};
}

/// Adds the products of a k tile of A and one of B. The types choose the atom.
MmaOp Accumulator::multiplyInto(Value acc, const OperandTile &x, const OperandTile &y, Value isMore,
                                int64_t part) {
  auto mma = MmaOp::create(b, acc, x.resident ? x.resident : x.data, x.scales, x.row, y.data,
                           y.scales, y.row, isMore, x.count);
  if (x.resident)
    mma.getNextMutable().assign(x.data);
  if (x.behind)
    mma.getNextMutable().assign(x.behind);
  mma.setKDepth(MmaDepth(gemm.problem.mmaDepth));
  if (int64_t parts = gemm.scaleParts(); parts > 1) {
    int64_t count = gemm.tiling.tileK / gemm.stepK() / parts;
    mma.setPartAttr(b.getDenseI64ArrayAttr({part * count, count}));
  }
  mma.setInOrder(mma.getForm() == hw::MmaForm::WgmmaDequantized && gemm.problem.floats);
  mma.setWithoutPowers(mma.hasByteTiles() && gemm.route().accumulate == route::Accumulate::Fast);
  return mma;
}

//===----------------------------------------------------------------------===//
// Sums of k tiles that threads add
//===----------------------------------------------------------------------===//

/// Each GEMM of a dual one has its sums in an accumulator of its own. The core multiplies both
/// before threads add any, so that these wait once.
void Accumulator::promoteLanes(ValueRange accs, const Tile &tile, const KStep &step,
                               const OperandPair &pair) {
  SmallVector<Value> factors = kLoop.factorsOf(tile, step, 0), sums;
  for (const OperandTile &x : pair.a)
    for (const OperandTile &y : pair.b) {
      sums.push_back(AccumulatorOp::create(b, lanesType()));
      MmaOp::create(b, sums.back(), x.data, y.data).setKDepth(MmaDepth(gemm.problem.mmaDepth));
    }
  for (auto [acc, ofTile, factor] : llvm::zip_equal(accs, sums, factors))
    PromoteOp::create(b, acc, ofTile, factor, /*column=*/Value());
}

/// All parts, those of the second GEMM of a dual one behind those of the first, have their sums in
/// one fragment, one part after the other. Each k tile of a stage has its own, so that the core can
/// multiply all of them at a time. Factors from global memory are taken behind the MMA, so that a
/// tile whose first ones are late begins all the same. A thread with two parts takes the factors
/// before, while the stage is loaded, and tiles of factors are there.
void Accumulator::promote(ValueRange accs, const Tile &tile, const KStep &step,
                          ArrayRef<OperandPair> pairs) {
  bool isEarly = accs.size() > 1 || step.place;
  SmallVector<Value> sums;
  SmallVector<SmallVector<Value>> factors;
  for (int64_t i = 0; i < int64_t(pairs.size()); ++i) {
    sums.push_back(fragments.create());
    if (isEarly)
      factors.push_back(kLoop.factorsOf(tile, step, i));
  }
  Value column = gemm.transposes() ? b.constant(0) : tile.scaleRowB;
  for (auto [i, pair] : llvm::enumerate(pairs))
    for (auto [part, acc] : llvm::enumerate(accs)) {
      size_t partsOfB = accs.size() / pair.b.size(); // of one tile of B, which are rows of A
      int64_t row = int64_t(part % partsOfB) * gemm.partRows();
      MmaOp::create(b, sums[i], pair.a.front().data, pair.b[part / partsOfB].data).setARow(row);
      if (!isEarly)
        factors.push_back(kLoop.factorsOf(tile, step, int64_t(i)));
      PromoteOp::create(b, acc, sums[i], factors[i][part], column);
    }
}
