//===- PrepackedBytes.cpp - Products of e4m3 and prepacked weights --------===//
//
// mma_prepacked beside e4m3: a thread reads its 32 bytes of a tile, the codes of four instructions,
// and the words of its two rows (fp4/ISA/WeightLayout.h), both without bank conflicts. The tensor
// core sums 128 products, and these sums times the powers of two of their rows are added in fp32.
// The next tile is converted while the tensor core multiplies the one before.
//
//===----------------------------------------------------------------------===//
#include "PrepackedTiles.h"

#include "InlinePtx.h"
#include "PackedBytes.h"
#include "SmallBuilders.h"

#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;

namespace {

struct LowerMmaPrepackedBytes : PipePattern<pipe::MmaPrepackedOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::MmaPrepackedOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    pipe::SharedType weights = op.getWeights().getType();
    if (weights.getInnerBytes() != hw::byteTileBytes)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(b, adaptor.getTiles(), weights.getRows(),
                     [&](int64_t first, int64_t count) { multiply(b, op, adaptor, first, count); });
    rewriter.eraseOp(op);
    return success();
  }

private:
  void multiply(ImplicitLocOpBuilder &b, pipe::MmaPrepackedOp op, OpAdaptor adaptor, int64_t first,
                int64_t count) const {
    SmallVector<ByteWords> words;
    Int32 thread = threadOfRole(b, op, state);
    for (int64_t tile = first; tile < first + count; ++tile)
      words.push_back(loadByteTile(b, adaptor.getWeights(), thread, tile));
    PackedBytes bytes(b);
    pipe::SharedType type = op.getB().getType();
    ByteProduct product{type.getRows(),
                        bytes.convertTile(words[0].codes, words[0].rows),
                        uniformDescriptor(b, adaptor.getB()),
                        {}};
    SmallVector<Value> acc =
        loadAccumulator(b, op.getAccumulator().getType(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), first == 0);
    for (int64_t i = 0; i < count; ++i) {
      product.offsets = instructionOffsets(type, (first + i) * hw::byteSteps, hw::byteSteps);
      SmallVector<Value> sums = startBytes(b, product);
      if (i == 0) // the reads of weights before loads that follow, while the tensor core is busy
        emitProxyFence(b, op.getLoc());
      if (i + 1 < count)
        product.a = bytes.convertTile(words[i + 1].codes, words[i + 1].rows);
      promoteBytes(b, awaitSums(b, sums), words[i].rows, acc);
    }
    storeElements(b, adaptor.getAccumulator(), acc);
  }
};

} // namespace

ByteWords fp4::loadByteTile(ImplicitLocOpBuilder &b, Value weights, Int32 thread, int64_t number) {
  Value tile = offsetPointer(b, b.getLoc(), weights, number * hw::byteTileBytes);
  Int32 group = thread / kGroupThreads;
  Value codes = stridedPointer(b, b.getLoc(), tile, group, hw::byteGroupBytes);
  codes = stridedPointer(b, b.getLoc(), codes, thread % kGroupThreads, hw::byteThreadBytes);
  ByteWords words;
  for (int64_t half : {0, 1})
    llvm::append_range(
        words.codes,
        loadSharedWords(b, offsetPointer(b, b.getLoc(), codes, half * hw::byteHalfBytes),
                        PackedBytes::numCodeWords / 2));
  Value rows = offsetPointer(b, b.getLoc(), tile, hw::byteCodeBytes);
  words.rows = loadSharedWords(
      b, stridedPointer(b, b.getLoc(), rows, thread / 4, 4 * PackedBytes::numRowWords),
      PackedBytes::numRowWords);
  return words;
}

void fp4::promoteBytes(ImplicitLocOpBuilder &b, ValueRange sums, ArrayRef<Value> rows,
                       MutableArrayRef<Value> acc) {
  PackedBytes bytes(b);
  Value powers[] = {bytes.powerOf(rows[0]), bytes.powerOf(rows[1])};
  for (auto [i, element] : llvm::enumerate(acc))
    element = LLVM::FMAOp::create(b, sums[i], powers[i / 2 % 2], element);
}

void fp4::populatePrepackedBytePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                        const KernelState &state) {
  patterns.add<LowerMmaPrepackedBytes>(converter, patterns.getContext(), state);
}
