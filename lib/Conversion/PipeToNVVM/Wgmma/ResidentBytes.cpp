//===- ResidentBytes.cpp - MMAs of e4m3 and register-resident weights ---------===//
//
// An MMA with A in registers: the weights of a k tile are in registers when it begins, and are
// converted for twice as many columns as an instruction of prepacked weights has. The columns are
// multiplied in two parts, which take turns with one set of sums: registers have no room for two
// beside the accumulators of both.
//
// A warpgroup converts the next k tile behind its MMAs, while the tensor core multiplies for the
// other warpgroup, which is then a half of a k tile behind. Conversions beside the warpgroup's own
// MMAs were slower (notebook/gemm-weights.md), and need 16 registers more.
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "Wgmma/Wgmma.h"

#include "InlinePtx.h"
#include "PackedBytes.h"
#include "SmallBuilders.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Words of a thread: four for each instruction, then those of its two rows.
constexpr int64_t kWeightWords = 4 * hw::byteSteps;
constexpr int64_t kResidentWords = kWeightWords + PackedBytes::numRowWords;

/// Parts of a tile, each of which has as many columns as registers have sums.
constexpr int64_t kParts = 2;

SmallVector<Value> loadResident(ImplicitLocOpBuilder &b, Value held) {
  SmallVector<Value> words;
  for (Value word : loadElements(b, held, 0, kResidentWords))
    words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), word));
  return words;
}

/// The weights of a k tile as e4m3, and the scales of their rows.
void storeConverted(ImplicitLocOpBuilder &b, Value held, const PrepackedWords &tile) {
  SmallVector<Value> words = PackedBytes(b).convertTile(tile.codes, tile.scales), elements;
  llvm::append_range(words, tile.scales);
  for (Value word : words)
    elements.push_back(LLVM::BitcastOp::create(b, b.getF32Type(), word));
  storeElements(b, held, elements);
}

struct LowerDequantizeResident : PipePattern<pipe::DequantizeTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::DequantizeTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.fillsRegisters())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value held = frameArray(b, state, kResidentWords);
    PrepackedWords words = loadByteTile(b, adaptor.getSource(), threadOfRole(b, op, state), 0);
    emitProxyFence(b, op.getLoc());
    storeConverted(b, held, words);
    rewriter.replaceOp(op, held);
    return success();
  }
};

struct LowerWgmmaResident : MmaPattern<hw::MmaForm::WgmmaResident> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType type = op.getB().getType();
    Product product(b, type, adaptor);
    product.multiply(threadOfRole(b, op, state), adaptor.getNext());
    rewriter.eraseOp(op);
    return success();
  }

private:
  struct Product {
    Product(ImplicitLocOpBuilder &b, pipe::SharedType type, OpAdaptor adaptor)
        : b(b), type(type), columns(type.getRows() / kParts),
          descriptor(uniformDescriptor(b, adaptor.getB())), accumulator(adaptor.getAccumulator()),
          accumulate(adaptor.getAccumulate()), array(adaptor.getA()), held(loadResident(b, array)) {
    }

    void multiply(Int32 thread, Value nextTile);

  private:
    SmallVector<Value> start(int64_t part);
    void promote(ValueRange sums, int64_t part);

    ImplicitLocOpBuilder &b;
    pipe::SharedType type;
    int64_t columns;
    Value descriptor, accumulator, accumulate, array;
    SmallVector<Value> held;
  };
};

void LowerWgmmaResident::Product::multiply(Int32 thread, Value nextTile) {
  SmallVector<Value> sums = start(0);
  PrepackedWords next = loadByteTile(b, nextTile, thread, 0);
  emitProxyFence(b, b.getLoc()); // orders the reads of weights before loads that follow
  promote(awaitSums(b, sums), 0);
  sums = start(1);
  promote(awaitSums(b, sums), 1);
  storeConverted(b, array, next);
}

/// Starts the four instructions of a part.
SmallVector<Value> LowerWgmmaResident::Product::start(int64_t part) {
  constexpr int64_t unit = 16; // of addresses in descriptors
  ByteMma product{columns, {}, descriptor, instructionOffsets(type, 0, hw::byteSteps)};
  product.a.append(held.begin(), held.begin() + kWeightWords);
  for (int64_t &offset : product.offsets)
    offset += part * columns * kLineBytes / unit;
  return startBytes(b, product);
}

/// Adds the sums of a part at once: LLVM would add them where the next addition is, and keep them
/// until then.
void LowerWgmmaResident::Product::promote(ValueRange sums, int64_t part) {
  int64_t count = columns / 2, first = part * count;
  SmallVector<Value> acc = orZeros(b, accumulate, loadElements(b, accumulator, first, count));
  promoteBytes(b, sums, ArrayRef(held).drop_front(kWeightWords), acc);
  storeElements(b, offsetPointer(b, b.getLoc(), accumulator, 4 * first),
                finishHere(b, b.getLoc(), acc));
}

} // namespace

void fp4::populateResidentBytePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns.add<LowerDequantizeResident, LowerWgmmaResident>(converter, patterns.getContext(),
                                                            state);
}
