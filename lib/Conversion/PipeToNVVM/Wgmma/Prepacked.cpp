//===- Prepacked.cpp - MMAs of prepacked weights --------------------------===//
//
// An MMA of prepacked weights: a thread reads its 16 bytes of a tile, the codes of four
// instructions, and the scales of its two rows, 8 bytes for nvfp4 and 4 for mxfp4
// (fp4/ISA/WeightLayout.h). The reads have no bank conflicts. All tiles of a step are read first;
// then each is converted while the tensor core multiplies those before.
//
// MXFP4 weights whose scales are small are converted with half of the multiplications. A step is
// there twice, with either conversion: wgmma must be the same for all warps of a warpgroup, so each
// warp looks at the scales of all 64 rows.
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "MmaSync/WarpColumns.h"
#include "Wgmma/Wgmma.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Instructions of K in a tile.
constexpr int64_t kSteps = hw::weightSteps;

using Powers = PackedHalves::Powers;

struct LowerMmaPrepacked : MmaPattern<hw::MmaForm::WgmmaPrepacked> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (op.hasByteTiles() || pipe::takesWarpMmas(op))
      return failure(); // PrepackedBytes.cpp, PrepackedFew.cpp
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(b, adaptor.getExisting(), op.getAAs<pipe::SharedType>().getRows(),
                     [&](int64_t first, int64_t count) { multiply(b, op, adaptor, first, count); });
    rewriter.eraseOp(op);
    return success();
  }

private:
  void multiply(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t first,
                int64_t count) const {
    SmallVector<PrepackedWords> inFront;
    auto [weights, thread] = rowsOfThread(b, threadOfRole(b, op, state), adaptor.getA(),
                                          adaptor.getAScaleRow(), adaptor.getNext());
    auto loadUpTo = [&, &weights = weights](SmallVector<PrepackedWords> &words, int64_t number,
                                            Int32 thread) {
      for (auto tile = int64_t(words.size()); tile < number; ++tile)
        words.push_back(
            loadPrepackedTile(b, weights, op.getAAs<pipe::SharedType>(), thread, first + tile));
    };
    auto multiplyBy = [&](Powers powers, Int32 thread) {
      SmallVector<PrepackedWords> words = inFront;
      loadUpTo(words, count, thread);
      if (multipliesByWarps(*state.target))
        multiplyByWarps(b, op, adaptor, words, first);
      else
        multiplyByGroups(b, op, adaptor, words, first, powers);
    };
    if (convertsByPowers(op, state, count)) {
      SmallVector<Value> scales = scalesOfGroup(b, op, weights, thread);
      loadUpTo(inFront, std::min(count, tilesInFront(op)), thread);
      branchByPowers(b, areSmall(b, scales), thread, multiplyBy);
    } else {
      multiplyBy(Powers::Any, thread);
    }
    finishMmaLoop(b, op, adaptor.getAccumulator());
  }

  /// Tiles that are read before their conversion is chosen, so that loads do not wait behind the
  /// choice. GEMMs of 128 columns have no registers for them (notebook/weight-limits.md).
  static int64_t tilesInFront(pipe::MmaOp op) {
    constexpr int64_t fewColumns = 32, manyColumns = 128;
    int64_t columns = op.getB().getType().getRows();
    return columns <= fewColumns ? 1 : columns < manyColumns ? 2 : 0;
  }

  /// The scales of all rows of this warpgroup, and of all tiles: each lane has those of a pair of
  /// rows.
  static SmallVector<Value> scalesOfGroup(ImplicitLocOpBuilder &b, pipe::MmaOp op, Value weights,
                                          Int32 thread) {
    pipe::SharedType type = op.getAAs<pipe::SharedType>();
    Int32 pair = thread / kGroupThreads * (kGroupRows / 2) + thread % 32;
    SmallVector<Value> words;
    for (int64_t tile = 0; tile < type.getRows(); ++tile)
      llvm::append_range(words, loadPairScales(b, weights, type, pair, tile));
    return words;
  }

  /// Multiplies the tiles from `first` on, which have `words`. A tile is converted while the tensor
  /// core multiplies the tiles before.
  void multiplyByGroups(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                        ArrayRef<PrepackedWords> words, int64_t first, Powers powers) const {
    PackedHalves halves = halvesOf(b, op, state);
    multiplyParts(b, op, adaptor, state, {first, int64_t(words.size()), kSteps}, [&](int64_t i) {
      return halves.convertTile(words[size_t(i)].codes, words[size_t(i)].scales, powers);
    });
  }

  /// Multiplies the tiles from `first` on with mma.sync.
  void multiplyByWarps(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                       ArrayRef<PrepackedWords> words, int64_t first) const {
    WarpColumns columns(b, adaptor.getB(), op.getB().getType());
    PackedHalves halves = halvesOf(b, op, state);
    SmallVector<Value> sums =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), first == 0);
    for (auto [i, ofTile] : llvm::enumerate(words))
      columns.multiplyAll(halves.convertTile(ofTile.codes, ofTile.scales),
                          (first + int64_t(i)) * kSteps, sums);
    emitProxyFence(b, op.getLoc()); // earlier reads, before loads that follow
    storeElements(b, adaptor.getAccumulator(), sums);
  }
};

} // namespace

void fp4::populatePrepackedPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerMmaPrepacked>(converter, patterns.getContext(), state);
}
