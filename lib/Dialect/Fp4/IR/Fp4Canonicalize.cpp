//===- Fp4Canonicalize.cpp - Canonicalizations of the fp4 dialect ---------===//
//
//   absorb casts   op(tensor.cast(x)) with a more static x works on x; its results are cast back
//   unit alpha     matmul with a constant alpha of 1 needs no alpha: 1 * y = y exactly
//   transposes     quantize(linalg.transpose(x)) is the other orientation of quantize(x), and the
//                  largest magnitude of both is the same; linalg.transpose(matmul(a, b)) is
//                  matmul(b, a), whose products and sums are those of matmul(a, b)
//
// The folds unswizzle(swizzle(x)) = x and swizzle(unswizzle(x)) = x, and those of constants, are in
// Fp4Ops.cpp.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

/// Returns true when operands with a number for each row have become static together with the rows:
/// data and its scales, amaxes of rows, an alpha for each row.
bool rowsAgree(Operation *op, ArrayRef<Value> operands) {
  auto rows = [&](unsigned index) {
    return cast<RankedTensorType>(operands[index].getType()).getDimSize(0);
  };
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return !quantize.getPerRow() || !quantize.hasRowwise() || rows(0) == rows(1);
  auto dequantize = dyn_cast<DequantizeOp>(op);
  if (!dequantize)
    return true;
  return rows(0) == rows(1) && (!dequantize.getPerRow() || rows(0) == rows(2));
}

/// Replaces `op` by one on `operands`, whose results of types `types` are cast back.
void replaceWithCasts(Operation *op, ValueRange operands, TypeRange types,
                      PatternRewriter &rewriter) {
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
    replaceWithCasts(op, operands, types, rewriter);
    return success();
  }
};

/// An operand of a matmul, and what it is of more static types.
struct StaticOperand {
  explicit StaticOperand(Value operand)
      : operand(operand), data(staticSource(bundleData(operand))),
        scales(bundleScales(operand) ? staticSource(bundleScales(operand)) : Value()) {}

  bool isStatic() const {
    return data != bundleData(operand) || scales != Value(bundleScales(operand));
  }
  int64_t rows() const { return cast<RankedTensorType>(data.getType()).getDimSize(0); }
  /// Data and scales have become static together.
  bool rowsAgree() const {
    return !scales || rows() == cast<RankedTensorType>(scales.getType()).getDimSize(0);
  }
  Value rebuild(OpBuilder &b) const {
    auto scaled = operand.getDefiningOp<ScaledOp>();
    if (!isStatic() || !scaled)
      return data;
    return bundle(b, scaled.getLoc(), scaled.getResult().getType().getFormat(), data, scales);
  }

  Value operand, data, scales;
};

struct AbsorbCastsOfMatmul : OpRewritePattern<BlockScaledMatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BlockScaledMatmulOp op, PatternRewriter &rewriter) const override {
    StaticOperand lhs(op.getLhsOperand()), rhs(op.getRhsOperand());
    Value alpha = op.getAlpha() ? staticSource(op.getAlpha()) : Value();
    if (!lhs.isStatic() && !rhs.isStatic() && alpha == op.getAlpha())
      return rewriter.notifyMatchFailure(op, "no operand is cast to a less static type");
    if (!op.getInputs().empty() || !op.hasOnlyElements() || op.isDual())
      return rewriter.notifyMatchFailure(op, "other operands or results would have to be static");
    if (!op.isGrouped() && !(lhs.rowsAgree() && isAlphaOf(alpha, lhs)))
      return rewriter.notifyMatchFailure(op, "data and scales are not cast together");
    SmallVector<Value> operands(op->getOperands());
    if (lhs.isStatic())
      operands[0] = lhs.rebuild(rewriter);
    if (rhs.isStatic())
      operands[1] = rhs.rebuild(rewriter);
    if (alpha)
      operands[op.getAlphaMutable()[0].getOperandNumber()] = alpha;
    SmallVector<Type> types;
    if (failed(inferResultTypes(op, operands, types)))
      return rewriter.notifyMatchFailure(op, "result types do not follow from the operands");
    replaceWithCasts(op, operands, types, rewriter);
    return success();
  }

  /// An alpha for each row has become static together with the rows.
  static bool isAlphaOf(Value alpha, const StaticOperand &lhs) {
    auto type = alpha ? cast<RankedTensorType>(alpha.getType()) : RankedTensorType();
    bool isColumn = type && type.getRank() == 2 && type.getDimSize(1) == 1;
    return !isColumn || type.getDimSize(0) == lhs.rows();
  }
};

struct DropUnitAlpha : OpRewritePattern<BlockScaledMatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BlockScaledMatmulOp op, PatternRewriter &rewriter) const override {
    DenseFPElementsAttr alpha;
    if (op.isDual())
      return rewriter.notifyMatchFailure(op, "both matmuls have an alpha or none has");
    if (!op.getAlpha() || !matchPattern(op.getAlpha(), m_Constant(&alpha)))
      return rewriter.notifyMatchFailure(op, "there is no constant alpha");
    if (!alpha.isSplat() || !alpha.getSplatValue<APFloat>().isExactlyValue(1.0))
      return rewriter.notifyMatchFailure(op, "alpha is not 1");
    rewriter.modifyOpInPlace(op, [&] { op.getAlphaMutable().clear(); });
    return success();
  }
};

/// Returns the matrix whose transpose `value` is; null if there is none or a size is dynamic.
Value transposedOf(Value value) {
  auto transpose = value.getDefiningOp<linalg::TransposeOp>();
  if (!transpose || transpose.getPermutation() != ArrayRef<int64_t>{1, 0} ||
      !cast<ShapedType>(value.getType()).hasStaticShape())
    return {};
  return transpose.getInput();
}

/// The kernel that a program asked for stays what it asked for.
void keepPlan(Operation *from, Operation *to) {
  if (Attribute plan = from->getAttr(Fp4Dialect::kPlanAttr))
    to->setAttr(Fp4Dialect::kPlanAttr, plan);
}

bool isGrouped(AmaxOp op) { return op.isGrouped(); }
bool isGrouped(HadamardAmaxOp op) { return op.getGroups().has_value(); }

/// Groups are ranges of rows, and have no name for ranges of columns.
template <typename OpT> struct AmaxOfTransposed : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    Value source = transposedOf(op.getInput());
    if (!source || isGrouped(op))
      return rewriter.notifyMatchFailure(op, "is not of a transposed matrix as a whole");
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputMutable().assign(source);
      if constexpr (std::is_same_v<OpT, AmaxOp>) {
        bool hasRows = op.getPerRow();
        op.setPerRow(op.getPerColumn());
        op.setPerColumn(hasRows);
      }
      if constexpr (std::is_same_v<OpT, HadamardAmaxOp>)
        op.setDimension(1 - op.getDimension());
    });
    return success();
  }
};

/// Random numbers belong to a place in one orientation, so that other elements would get them.
struct QuantizeTransposed : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    Value source = transposedOf(op.getInput());
    if (!source || op.isGrouped() || op.getRounding() == Rounding::Stochastic)
      return rewriter.notifyMatchFailure(op, "the other orientation is not the same");
    if (op.hasF32Scales())
      return rewriter.notifyMatchFailure(op, "the format has rowwise outputs only");
    auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
    if (plan && plan.getFamily() == KernelFamily::StreamBlocks)
      return rewriter.notifyMatchFailure(op, "only rowwise outputs have the kernel of its plan");
    bool both = op.getOutputs() == Outputs::Both;
    Outputs other = both ? Outputs::Both : op.hasRowwise() ? Outputs::Columnwise : Outputs::Rowwise;
    SmallVector<Type> types(op->getResultTypes());
    std::rotate(types.begin(), types.begin() + (both ? 2 : 0), types.end());
    bool hasTwo = bool(op.getColumnwiseAmax());
    auto quantize = QuantizeOp::create(
        rewriter, op.getLoc(), types, source, hasTwo ? op.getColumnwiseAmax() : op.getAmax(),
        hasTwo ? op.getAmax() : Value(), op.getRng(), /*offsets=*/Value(), op.getFormat(),
        op.getRecipe(), op.getRounding(), other, op.getBlockAttr(), op.getColumnwiseHadamardAttr(),
        op.getHadamardAttr(), op.getPhilox(), op.getGroupsAttr(), op.getPerRow(),
        /*unspecified_rows=*/false);
    keepPlan(op, quantize);
    SmallVector<Value> results(quantize->getResults());
    std::rotate(results.begin(), results.begin() + (both ? 2 : 0), results.end());
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct TransposedMatmul : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || !transposedOf(op->getResult(0)))
      return rewriter.notifyMatchFailure(op, "is no transposed matrix of static sizes");
    auto product = op.getInput().getDefiningOp<BlockScaledMatmulOp>();
    if (!product || !product->hasOneUse())
      return rewriter.notifyMatchFailure(op, "is not all that becomes of a matmul");
    if (!product.getEpilogueBody().empty())
      return rewriter.notifyMatchFailure(op, "the inputs of the epilogue are not transposed");
    if (product.usesFma())
      return rewriter.notifyMatchFailure(op, "threads multiply small M, not small N");
    if (product.getStreamK() || product.getDispatch() || product.getSplitPolicy())
      return rewriter.notifyMatchFailure(op, "tiles are counted along the rows of the result");
    if (!product.hasOnlyElements())
      return rewriter.notifyMatchFailure(op, "it has other results than its elements");
    if (!product.getLhsScales() || product.hasPrepackedRhs())
      return rewriter.notifyMatchFailure(op, "an operand without scales has its side");
    if (product.isGrouped())
      return rewriter.notifyMatchFailure(op, "groups are ranges of rows, not of columns");
    if (product.hasF32Scales())
      return rewriter.notifyMatchFailure(op, "scales of lhs and rhs have different granularity");
    if (product.getAlpha() && cast<RankedTensorType>(product.getAlpha().getType()).getRank() != 0)
      return rewriter.notifyMatchFailure(op, "alpha belongs to the rows or columns of the result");
    auto swapped = rewriter.replaceOpWithNewOp<BlockScaledMatmulOp>(
        op, op->getResult(0).getType(), product.getRhsOperand(), product.getLhsOperand(),
        /*rhs2=*/Value(), product.getAlpha(), /*alpha2=*/Value(), /*offsets=*/Value(),
        /*inputs=*/ValueRange(), product.getWorkAttr(), /*dispatch=*/ArrayAttr(),
        product.getArithmeticAttr(), product.getEpilogueAttr());
    keepPlan(product, swapped);
    return success();
  }
};

} // namespace

#define FP4_ABSORBS_CASTS(OpT)                                                                     \
  void OpT::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {       \
    patterns.add<AbsorbCasts>(getOperationName(), context);                                        \
  }

FP4_ABSORBS_CASTS(HadamardOp)
FP4_ABSORBS_CASTS(DequantizeOp)
FP4_ABSORBS_CASTS(MatmulAlphaOp)
FP4_ABSORBS_CASTS(SwizzleScalesOp)
FP4_ABSORBS_CASTS(UnswizzleScalesOp)

#undef FP4_ABSORBS_CASTS

void AmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbCasts>(getOperationName(), context);
  patterns.add<AmaxOfTransposed<AmaxOp>>(context);
}

void HadamardAmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                 MLIRContext *context) {
  patterns.add<AbsorbCasts>(getOperationName(), context);
  patterns.add<AmaxOfTransposed<HadamardAmaxOp>>(context);
}

void QuantizeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbCasts>(getOperationName(), context);
  patterns.add<QuantizeTransposed>(context);
}

void BlockScaledMatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                      MLIRContext *context) {
  patterns.add<AbsorbCastsOfMatmul, DropUnitAlpha, TransposedMatmul>(context);
}
