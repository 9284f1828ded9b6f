//===- Fp4Canonicalize.cpp - Canonicalizations of the fp4 dialect ---------===//
//
//   absorb casts   op(tensor.cast(x)) with a more static x works on x; its results are cast back
//   unit alpha     blockscaled_matmul with a constant alpha of 1 needs no alpha: 1 * y = y exactly
//
// The folds unswizzle(swizzle(x)) = x and swizzle(unswizzle(x)) = x are in Fp4Ops.cpp.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp4;

namespace {

/// The source of a tensor.cast that only forgets static sizes, else `value`.
Value staticSource(Value value) {
  auto cast = value.getDefiningOp<tensor::CastOp>();
  if (!cast || !tensor::canFoldIntoConsumerOp(cast))
    return value;
  return cast.getSource();
}

/// Whether data and scales have become static together: data comes before its scales.
bool rowsAgree(Operation *op, ArrayRef<Value> operands) {
  if (!isa<DequantizeOp, BlockScaledMatmulOp>(op))
    return true;
  auto rows = [&](unsigned index) {
    return cast<RankedTensorType>(operands[index].getType()).getDimSize(0);
  };
  return rows(0) == rows(1);
}

struct AbsorbCasts : RewritePattern {
  AbsorbCasts(StringRef name, MLIRContext *context)
      : RewritePattern(name, /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), staticSource);
    if (llvm::equal(operands, op->getOperands()))
      return rewriter.notifyMatchFailure(op, "no operand is cast to a less static type");
    if (!rowsAgree(op, operands))
      return rewriter.notifyMatchFailure(op, "data and scales are not cast together");
    SmallVector<Type> types;
    if (failed(inferResultTypes(op, operands, types)))
      return rewriter.notifyMatchFailure(op, "result types do not follow from the operands");
    Operation *absorbed = rewriter.clone(*op);
    absorbed->setOperands(operands);
    SmallVector<Value> results;
    for (auto [result, type, old] :
         llvm::zip_equal(absorbed->getResults(), types, op->getResultTypes())) {
      result.setType(type);
      results.push_back(type == old ? Value(result)
                                    : tensor::CastOp::create(rewriter, op->getLoc(), old, result));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct DropUnitAlpha : OpRewritePattern<BlockScaledMatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BlockScaledMatmulOp op, PatternRewriter &rewriter) const override {
    DenseFPElementsAttr alpha;
    if (!op.getAlpha() || !matchPattern(op.getAlpha(), m_Constant(&alpha)))
      return rewriter.notifyMatchFailure(op, "there is no constant alpha");
    if (!alpha.getSplatValue<APFloat>().isExactlyValue(1.0))
      return rewriter.notifyMatchFailure(op, "alpha is not 1");
    rewriter.modifyOpInPlace(op, [&] { op.getAlphaMutable().clear(); });
    return success();
  }
};

} // namespace

#define FP4_ABSORBS_CASTS(OpT)                                                                     \
  void OpT::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {       \
    patterns.add<AbsorbCasts>(getOperationName(), context);                                        \
  }

FP4_ABSORBS_CASTS(AmaxOp)
FP4_ABSORBS_CASTS(HadamardOp)
FP4_ABSORBS_CASTS(HadamardAmaxOp)
FP4_ABSORBS_CASTS(QuantizeOp)
FP4_ABSORBS_CASTS(DequantizeOp)
FP4_ABSORBS_CASTS(SwizzleScalesOp)
FP4_ABSORBS_CASTS(UnswizzleScalesOp)

#undef FP4_ABSORBS_CASTS

void BlockScaledMatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                      MLIRContext *context) {
  patterns.add<AbsorbCasts>(getOperationName(), context);
  patterns.add<DropUnitAlpha>(context);
}
