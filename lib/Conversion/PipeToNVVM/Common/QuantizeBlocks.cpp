//===- QuantizeBlocks.cpp - The quantizer of an epilogue ------------------===//
//
// A thread has whole scale blocks of its accumulator row in registers, so amax and codes need no
// exchange, or a part of a block of 128, whose threads exchange their maxima. The arithmetic is
// that of the streaming kernels (KernelArithmetic). Values that depend only on the tensor are
// emitted where the amax is known, outside of the role's loops.
//
//===----------------------------------------------------------------------===//
#include "Common/Fragments.h"

#include "BlockQuantizer.h"
#include "InlinePtx.h"
#include "Philox.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {

struct LowerQuantizeBlocks : fp4::PipePattern<fp4::pipe::QuantizeBlocksOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::QuantizeBlocksOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    fp4::Scalars scalars(b, *state.target);
    fp4::BlockQuantizer quantizer(scalars, b, op.getRecipe().getDecisions());
    if (Value amax = adaptor.getAmax())
      b.setInsertionPointAfterValue(amax);
    quantizer.setTensorAmax(adaptor.getAmax());
    std::optional<fp4::GroupRandom> random;
    if (Value rng = adaptor.getRng())
      random.emplace(b, rng, randomSide(b, op));
    b.setInsertionPoint(op);
    SmallVector<Value> words = fp4::packedWords(b, adaptor.getValue());
    Value shared =
        op.getBlockThreads() > 1 ? sharedAmax(b, op, quantizer, scalars, words) : Value();
    Type element = fp4::pipe::vectorOfThread(op.getValue().getType()).getElementType();
    int64_t blocks = blocksOf(op), perBlock = words.size() / blocks;
    SmallVector<Value> codes, scales;
    for (int64_t i = 0; i < blocks; ++i) {
      SmallVector<Value> bits;
      if (random)
        bits = wordsOfBlock(b, op, adaptor, *random, i);
      auto block = quantizer.quantize(ArrayRef(words).slice(i * perBlock, perBlock), element,
                                      shared, /*fold=*/{}, bits);
      codes.append(block.codes);
      scales.push_back(block.scale);
    }
    if (op.getResident())
      hold(b, codes, scales);
    rewriter.replaceOp(
        op, {as(b, vectorOf(b, codes), op.getCodes()), as(b, vectorOf(b, scales), op.getScales())});
    return success();
  }

private:
  /// Blocks, or the one part of a block, that a thread has.
  static int64_t blocksOf(fp4::pipe::QuantizeBlocksOp op) {
    return fp4::pipe::vectorOfThread(op.getScales().getType()).getNumElements();
  }

  /// The random words of block `i` of a thread.
  SmallVector<Value> wordsOfBlock(ImplicitLocOpBuilder &b, fp4::pipe::QuantizeBlocksOp op,
                                  OpAdaptor adaptor, fp4::GroupRandom &random, int64_t i) const {
    int64_t size = op.getBlockSize();
    Value row =
        arith::AddIOp::create(b, adaptor.getRow(), fp4::accumulatorLane(b, op.getLoc(), state));
    Value first = arith::DivUIOp::create(b, adaptor.getColumn(), fp4::constI32(b, size));
    return random.words(row, arith::AddIOp::create(b, first, fp4::constI32(b, i)), size);
  }

  /// The bits of `words` in the type that `result` becomes.
  Value as(ImplicitLocOpBuilder &b, Value words, Value result) const {
    auto type = cast<VectorType>(getTypeConverter()->convertType(result.getType()));
    return words.getType() == type ? words : LLVM::BitcastOp::create(b, type, words).getResult();
  }

  /// The amax of a block from those of the threads that have its parts: thread t of the role and
  /// those behind it whose number has the same remainder by the stride, a multiple of a warp.
  Value sharedAmax(ImplicitLocOpBuilder &b, fp4::pipe::QuantizeBlocksOp op,
                   fp4::BlockQuantizer &quantizer, fp4::Scalars &s, ArrayRef<Value> words) const {
    constexpr int64_t bytes = 4;
    VectorType type = fp4::pipe::vectorOfThread(op.getValue().getType());
    Value own = quantizer.amax(words, type.getElementType());
    Value space = fp4::offsetPointer(b, op.getLoc(), state.sharedBase, *op.getPlace());
    fp4::Int32 thread = fp4::threadOfRole(b, op, state);
    fp4::meetAtExchange(b, op, state); // earlier reads of this memory
    LLVM::StoreOp::create(b, own, fp4::stridedPointer(b, op.getLoc(), space, thread, bytes), bytes);
    fp4::meetAtExchange(b, op, state);
    int64_t stride = op.getThreadStride(), all = op.getBlockThreads() * stride;
    fp4::Int32 first = thread - thread % all + thread % stride;
    Value amax;
    for (int64_t i = 0; i < op.getBlockThreads(); ++i) {
      Value from = fp4::stridedPointer(b, op.getLoc(), space, first + i * stride, bytes);
      Value part = LLVM::LoadOp::create(b, b.getF32Type(), from, bytes);
      if (!amax)
        amax = part;
      else
        amax = quantizer.keepsNaN() ? s.maximumOrNaN(amax, part) : s.maximumNumber(amax, part);
    }
    return amax;
  }

  /// Computes codes and scales at this place, scales in words of their own.
  static void hold(ImplicitLocOpBuilder &b, SmallVector<Value> &codes,
                   SmallVector<Value> &scales) {
    size_t count = codes.size();
    Type type = scales.front().getType(), word = b.getI32Type();
    for (Value scale : scales)
      codes.push_back(type == word ? scale : arith::ExtUIOp::create(b, word, scale).getResult());
    codes = fp4::computeHere(b, b.getLoc(), codes);
    for (auto [scale, held] : llvm::zip_equal(scales, ArrayRef(codes).drop_front(count)))
      scale = type == word ? held : arith::TruncIOp::create(b, type, held).getResult();
    codes.truncate(count);
  }

  /// The output whose elements the random words are for.
  static fp4::RandomSide randomSide(ImplicitLocOpBuilder &b, fp4::pipe::QuantizeBlocksOp op) {
    int64_t rows = (*op.getMatrix())[0], columns = (*op.getMatrix())[1];
    fp4::RandomSide side;
    side.mapping = op.getPhilox() == fp4::Philox::Element
                       ? fp4::numerics::PhiloxMapping::Element
                       : fp4::numerics::PhiloxMapping::TransformerEngineBlockwise;
    side.columnwise = op.getColumnwise();
    side.inputColumns = side.columnwise ? rows : columns;
    side.groupsPerRow = fp4::constI32(b, llvm::divideCeil(columns, 16));
    return side;
  }

  static Value vectorOf(ImplicitLocOpBuilder &b, ArrayRef<Value> values) {
    int64_t count = values.size();
    auto type = VectorType::get(count, values.front().getType());
    return vector::FromElementsOp::create(b, type, values);
  }
};

} // namespace

void fp4::populateQuantizePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerQuantizeBlocks>(converter, patterns.getContext(), state);
}
