//===- QuantizeBlocks.cpp - The quantizer of an epilogue ------------------===//
//
// A thread has whole scale blocks of its accumulator row in registers, so amax and codes need no
// exchange. The arithmetic is that of the streaming kernels (KernelArithmetic). Values that depend
// only on the tensor are emitted where the amax is known, outside of the role's loops.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

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
    Value row, firstBlock;
    int64_t blockSize = op.getBlockSize();
    if (random) {
      row = arith::AddIOp::create(b, adaptor.getRow(), fp4::accumulatorLane(b, op.getLoc(), state));
      firstBlock = arith::DivUIOp::create(b, adaptor.getColumn(), fp4::constI32(b, blockSize));
    }

    VectorType type = fp4::pipe::vectorOfThread(op.getValue().getType());
    SmallVector<Value> words = fp4::packedWords(b, adaptor.getValue());
    int64_t blocks = fp4::pipe::vectorOfThread(op.getScales().getType()).getNumElements();
    int64_t perBlock = words.size() / blocks;
    SmallVector<Value> codes, scales;
    for (int64_t i = 0; i < blocks; ++i) {
      SmallVector<Value> bits;
      if (random)
        bits = random->words(row, arith::AddIOp::create(b, firstBlock, fp4::constI32(b, i)),
                             blockSize);
      auto block = quantizer.quantize(ArrayRef(words).slice(i * perBlock, perBlock),
                                      type.getElementType(), /*blockAmax=*/Value(),
                                      /*fold=*/{}, bits);
      codes.append(block.codes);
      scales.push_back(block.scale);
    }
    if (op.getResident())
      hold(b, codes, scales);
    rewriter.replaceOp(op, {vectorOf(b, codes), vectorOf(b, scales)});
    return success();
  }

private:
  /// Computes codes and scales at this place, scales in words of their own.
  static void hold(ImplicitLocOpBuilder &b, SmallVector<Value> &codes,
                   SmallVector<Value> &scales) {
    size_t count = codes.size();
    for (Value scale : scales)
      codes.push_back(arith::ExtUIOp::create(b, b.getI32Type(), scale));
    codes = fp4::computeHere(b, b.getLoc(), codes);
    for (auto [scale, word] : llvm::zip_equal(scales, ArrayRef(codes).drop_front(count)))
      scale = arith::TruncIOp::create(b, b.getI8Type(), word);
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
