//===- PrepackedBytes.cpp - MMAs of e4m3 and prepacked weights ------------===//
//
// An MMA of prepacked weights beside e4m3: a thread reads its 32 bytes of a tile, the codes of four
// instructions, and the words of its two rows (fp4/ISA/WeightLayout.h), both without bank
// conflicts. The tensor core sums 128 products, and these sums times the powers of two of their
// rows are added in fp32. The next tile is converted while the tensor core multiplies the one
// before. Without powers, the tensor core adds to the accumulator, and half a tile is converted at
// a time. On targets without wgmma each warp multiplies its 16 rows with mma.sync.
//
// fetch: a thread reads the words of its two rows from device memory.
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "MmaSync/WarpColumns.h"
#include "Wgmma/Wgmma.h"

#include "InlinePtx.h"
#include "PackedBytes.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

struct LowerMmaPrepackedBytes : MmaPattern<hw::MmaForm::WgmmaPrepacked> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (!op.hasByteTiles())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(b, adaptor.getExisting(), op.getAAs<pipe::SharedType>().getRows(),
                     [&](int64_t first, int64_t count) {
                       if (multipliesByWarps(*state.target))
                         multiplyByWarps(b, op, adaptor, first, count);
                       else if (op.getWithoutPowers())
                         accumulate(b, op, adaptor, first, count);
                       else
                         multiply(b, op, adaptor, first, count);
                     });
    finishMmaLoop(b, op, adaptor.getAccumulator());
    rewriter.eraseOp(op);
    return success();
  }

private:
  SmallVector<PrepackedWords> loadTiles(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                                        int64_t first, int64_t count) const {
    SmallVector<PrepackedWords> words;
    auto [weights, thread] = rowsOfThread(b, threadOfRole(b, op, state), adaptor.getA(),
                                          adaptor.getAScaleRow(), adaptor.getNext());
    for (int64_t tile = first; tile < first + count; ++tile)
      words.push_back(loadByteTile(b, weights, thread, tile));
    return words;
  }

  void multiplyByWarps(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t first,
                       int64_t count) const {
    SmallVector<PrepackedWords> words = loadTiles(b, op, adaptor, first, count);
    WarpColumns columns(b, adaptor.getB(), op.getB().getType());
    PackedBytes bytes(b);
    SmallVector<Value> acc =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), first == 0);
    for (auto [i, tile] : llvm::enumerate(words)) {
      SmallVector<Value> weights = bytes.convertTile(tile.codes, tile.scales);
      int64_t step = (first + int64_t(i)) * hw::byteSteps;
      if (op.getWithoutPowers()) {
        columns.multiplyAll(weights, step, acc);
        continue;
      }
      SmallVector<Value> sums(acc.size(), constF32(b, 0));
      columns.multiplyAll(weights, step, sums);
      promoteBytes(b, sums, tile.scales, acc);
    }
    emitProxyFence(b, op.getLoc()); // earlier reads, before loads that follow
    storeElements(b, adaptor.getAccumulator(), acc);
  }

  /// The tensor core bounds tiles whose stages have one tile of weights. Multiplications of
  /// integers beside it delay its MMAs. Beside tiles of many rows the pipe of multiplications is
  /// busier than that of logic (notebook/gemm-weights.md).
  static PackedBytes::Fields fieldsOf(pipe::MmaOp op, int64_t count) {
    constexpr int64_t manyRows = 128;
    if (count == 1)
      return PackedBytes::Fields::Shifted;
    return op.getB().getType().getRows() < manyRows ? PackedBytes::Fields::Dotted
                                                    : PackedBytes::Fields::Mixed;
  }

  void accumulate(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t first,
                  int64_t count) const {
    constexpr int64_t parts = pipe::kBytePartsOfTile, steps = hw::byteSteps / parts;
    SmallVector<PrepackedWords> words = loadTiles(b, op, adaptor, first, count);
    PackedBytes bytes(b, fieldsOf(op, count));
    multiplyParts(b, op, adaptor, state, {parts * first, parts * count, steps}, [&](int64_t i) {
      const PrepackedWords &tile = words[size_t(i / parts)];
      return bytes.convertSteps(tile.codes, tile.scales, i % parts * steps, steps);
    });
  }

  void multiply(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t first,
                int64_t count) const {
    SmallVector<PrepackedWords> words = loadTiles(b, op, adaptor, first, count);
    PackedBytes bytes(b, PackedBytes::Fields::Dotted);
    pipe::SharedType type = op.getB().getType();
    ByteMma product{type.getRows(),
                    bytes.convertTile(words[0].codes, words[0].scales),
                    uniformDescriptor(b, adaptor.getB()),
                    {}};
    SmallVector<Value> acc =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), first == 0);
    for (int64_t i = 0; i < count; ++i) {
      product.offsets = instructionOffsets(type, (first + i) * hw::byteSteps, hw::byteSteps);
      SmallVector<Value> sums = startBytes(b, product);
      if (i == 0) // the reads of weights before loads that follow, while the tensor core is busy
        emitProxyFence(b, op.getLoc());
      if (i + 1 < count)
        product.a = bytes.convertTile(words[i + 1].codes, words[i + 1].scales);
      promoteBytes(b, awaitSums(b, sums), words[i].scales, acc);
    }
    storeElements(b, adaptor.getAccumulator(), acc);
  }
};

struct LowerRowPowers : PipePattern<pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    bool isOfWgmma =
        pipe::distributionOf(op.getResult().getType()).getKind() == pipe::FragmentKind::Wgmma;
    if (!op.getGlobal().getType().getElementType().isInteger(8) || !isOfWgmma)
      return rewriter.notifyMatchFailure(op, "loads the factors of elements, or of TMEM lanes");
    constexpr int64_t ofBoth = 4; // elements of a thread in 8 columns, half of them of each row
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto [number, thread] = rowsOfThread(b, threadOfRole(b, op, state), adaptor.getRow(),
                                         adaptor.getColumn(), adaptor.getRows());
    Value tile = stridedPointer(b, b.getLoc(), adaptor.getGlobal(), number, hw::byteTileBytes);
    Value rows =
        stridedPointer(b, b.getLoc(), offsetPointer(b, b.getLoc(), tile, hw::byteCodeBytes),
                       thread / 4, 4 * PackedBytes::numRowWords);
    Value words = load(b, VectorType::get(PackedBytes::numRowWords, b.getI32Type()), rows,
                       4 * PackedBytes::numRowWords);
    PackedBytes bytes(b);
    SmallVector<Value> powers, elements;
    for (int64_t row = 0; row < PackedBytes::numRowWords; ++row)
      powers.push_back(bytes.powerOf(vector::ExtractOp::create(b, words, row)));
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back(powers[size_t(i % ofBoth / 2)]);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

} // namespace

void fp4::populatePrepackedBytePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                        const KernelState &state) {
  patterns.add<LowerMmaPrepackedBytes, LowerRowPowers>(converter, patterns.getContext(), state);
}
