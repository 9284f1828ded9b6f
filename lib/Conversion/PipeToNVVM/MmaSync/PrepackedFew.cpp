//===- PrepackedFew.cpp - MMAs of prepacked weights and few columns -------===//
//
// An MMA of prepacked weights with 8 columns. wgmma takes as long for 8 columns as for 32, and
// beside wgmma the pipes that convert weights are slower by half (notebook/time.md).
// mma.sync.m16n8k16 has the same fragments (WarpColumns.h).
//
// Everything is read before the first MMA; the code behind the reads needs the stage no more. With
// mxfp4, a warp first looks at the scales of its rows, and has its reads and MMAs twice
// (Prepacked.cpp).
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "Common/PrepackedTiles.h"
#include "MmaSync/WarpColumns.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kSteps = hw::weightSteps;

using Powers = PackedHalves::Powers;

/// The part of an MMA's operands and sums that a thread has.
struct Turn {
  Value accumulator;
  std::vector<PrepackedWords> words;       ///< words of each tile
  std::vector<SmallVector<Value>> columns; ///< columns of each tile
  SmallVector<Value> sums;
};

/// Returns `op` and the MMAs behind it, of other sums, that take turns with it, so that fewer
/// instructions wait for those before them. Tiles that may not exist are multiplied by themselves.
SmallVector<pipe::MmaOp> mmasInTurns(pipe::MmaOp op) {
  SmallVector<pipe::MmaOp> products = {op};
  if (op.getExisting())
    return products;
  while (auto next = dyn_cast_or_null<pipe::MmaOp>(products.back()->getNextNode())) {
    bool isLike = next.getA().getType() == op.getA().getType() &&
                  next.getB().getType() == op.getB().getType() && !next.getExisting();
    bool isOther = llvm::none_of(products, [&](pipe::MmaOp product) {
      return product.getAccumulator() == next.getAccumulator();
    });
    if (!isLike || !isOther)
      break;
    products.push_back(next);
  }
  return products;
}

struct LowerMmaPrepackedFew : MmaPattern<hw::MmaForm::WgmmaPrepacked> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (!pipe::takesWarpMmas(op))
      return failure();
    SmallVector<pipe::MmaOp> products = mmasInTurns(op);
    rewriter.setInsertionPoint(products.back());
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(
        b, adaptor.getExisting(), op.getAAs<pipe::SharedType>().getRows(),
        [&](int64_t first, int64_t count) { multiplyTiles(b, rewriter, products, first, count); });
    for (pipe::MmaOp product : products)
      rewriter.eraseOp(product);
    return success();
  }

private:
  void multiplyTiles(ImplicitLocOpBuilder &b, ConversionPatternRewriter &rewriter,
                     ArrayRef<pipe::MmaOp> products, int64_t first, int64_t count) const {
    auto multiplyBy = [&](Powers powers, Int32 thread) {
      std::vector<Turn> turns;
      for (pipe::MmaOp product : products)
        turns.push_back(load(b, rewriter, product, thread, first, count));
      multiply(b, products.front(), turns, count, powers);
    };
    Int32 thread = threadOfRole(b, products.front(), state);
    if (!convertsByPowers(products.front(), state, count))
      return multiplyBy(Powers::Any, thread);
    SmallVector<Value> scales;
    for (pipe::MmaOp product : products)
      for (int64_t tile = first; tile < first + count; ++tile)
        llvm::append_range(scales,
                           loadPairScales(b, rewriter.getRemappedValue(product.getA()),
                                          product.getAAs<pipe::SharedType>(), thread / 4, tile));
    branchByPowers(b, areSmall(b, scales), thread, multiplyBy);
  }

  Turn load(ImplicitLocOpBuilder &b, ConversionPatternRewriter &rewriter, pipe::MmaOp op,
            Int32 thread, int64_t first, int64_t count) const {
    auto lowered = [&](Value value) { return rewriter.getRemappedValue(value); };
    Turn turn = {lowered(op.getAccumulator()), {}, {}, {}};
    WarpColumns columns(b, lowered(op.getB()), op.getB().getType());
    for (int64_t tile = first; tile < first + count; ++tile) {
      turn.words.push_back(
          loadPrepackedTile(b, lowered(op.getA()), op.getAAs<pipe::SharedType>(), thread, tile));
      auto &ofTile = turn.columns.emplace_back();
      for (int64_t pair = 0; pair < kSteps / 2; ++pair)
        llvm::append_range(ofTile, columns.load(0, tile * kSteps / 2 + pair));
    }
    turn.sums =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), turn.accumulator,
                        op.getAccumulate() ? lowered(op.getAccumulate()) : Value(), first == 0);
    return turn;
  }

  void multiply(ImplicitLocOpBuilder &b, pipe::MmaOp op, MutableArrayRef<Turn> turns, int64_t count,
                Powers powers) const {
    Type element = op.getB().getType().getElementType();
    emitProxyFence(b, op.getLoc()); // orders the reads before loads that follow
    PackedHalves halves = halvesOf(b, op, state);
    for (int64_t tile = 0; tile < count; ++tile) {
      SmallVector<SmallVector<Value>> weights;
      for (Turn &turn : turns)
        weights.push_back(
            halves.convertTile(turn.words[tile].codes, turn.words[tile].scales, powers));
      for (int64_t step = 0; step < kSteps; ++step)
        for (auto [turn, ofTurn] : llvm::zip_equal(turns, weights))
          multiplyWarp(b, element, ArrayRef(ofTurn).slice(kWarpRegistersA * step, kWarpRegistersA),
                       ArrayRef(turn.columns[tile]).slice(kWarpRegistersB * step, kWarpRegistersB),
                       turn.sums);
    }
    for (Turn &turn : turns)
      storeElements(b, turn.accumulator, turn.sums);
  }
};

} // namespace

void fp4::populatePrepackedFewPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns.add<LowerMmaPrepackedFew>(converter, patterns.getContext(), state);
}
