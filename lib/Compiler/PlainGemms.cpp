//===- PlainGemms.cpp - Fused GEMMs as several operations --------------===//

#include "PlainGemms.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp4;

namespace {

/// A matmul of f32 without its epilogue.
Value sumsOf(OpBuilder &b, BlockScaledMatmulOp op, Value rhs, Value alpha) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  auto type = RankedTensorType::get({lhs.getDimSize(0), op.getColumns()}, b.getF32Type());
  return BlockScaledMatmulOp::create(b, op.getLoc(), TypeRange{type}, op.getLhsOperand(), rhs,
                                     /*rhs2=*/Value(), alpha, /*alpha2=*/Value(), op.getOffsets(),
                                     /*inputs=*/ValueRange(), op.getWorkAttr(),
                                     op.getDispatchAttr(), op.getArithmeticAttr(),
                                     op.getEpilogueAttr())
      .getResult();
}

/// The index map of an operand. Dimensions of size 1 are the same for all elements.
AffineMap indexOf(Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<AffineExpr> indices;
  for (auto [number, size] : llvm::enumerate(type.getShape()))
    indices.push_back(size == 1 ? getAffineConstantExpr(0, type.getContext())
                                : getAffineDimExpr(unsigned(number), type.getContext()));
  return AffineMap::get(2, 0, indices, type.getContext());
}

/// Saturates as a matmul rounds an f32 to f8E4M3FN: beyond the largest number it is that, and NaN
/// stays NaN.
Value saturate(OpBuilder &b, Location loc, Value element, Type type) {
  auto largest = APFloat::getLargest(cast<FloatType>(type).getFloatSemantics());
  auto constant = [&](bool isNegative) -> Value {
    double value = isNegative ? -largest.convertToDouble() : largest.convertToDouble();
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  };
  element = arith::MinimumFOp::create(b, loc, element, constant(false));
  element = arith::MaximumFOp::create(b, loc, element, constant(true));
  return arith::TruncFOp::create(b, loc, type, element);
}

/// The epilogue region of `op` for every element of `sums`.
Value elementsOf(OpBuilder &b, BlockScaledMatmulOp op, ArrayRef<Value> sums) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(sums.front().getType()).clone(op.getElementType());
  SmallVector<Value> sizes;
  if (type.isDynamicDim(0))
    sizes.push_back(tensor::DimOp::create(b, loc, op.getLhs(), 0));
  if (type.isDynamicDim(1))
    sizes.push_back(tensor::DimOp::create(b, loc, op.getRhs(), 0));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType(), sizes);
  SmallVector<Value> inputs(sums);
  llvm::append_range(inputs, op.getEpilogueInputs());
  AffineMap all = AffineMap::getMultiDimIdentityMap(2, b.getContext());
  SmallVector<AffineMap> maps(sums.size(), all);
  llvm::append_range(maps, llvm::map_range(op.getEpilogueInputs(), indexOf));
  maps.push_back(all);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange{type}, inputs, ValueRange{empty}, maps, loops,
                                [&](OpBuilder &inside, Location, ValueRange arguments) {
                                  IRMapping mapping;
                                  Block &body = op.getEpilogueBody().front();
                                  mapping.map(body.getArguments().take_front(inputs.size()),
                                              arguments.drop_back());
                                  for (Operation &step : body.without_terminator())
                                    if (!isEpilogueOp(&step))
                                      inside.clone(step, mapping);
                                  Value element = mapping.lookup(op.getYieldedElement());
                                  if (element.getType() != type.getElementType())
                                    element = saturate(inside, loc, element, type.getElementType());
                                  linalg::YieldOp::create(inside, loc, element);
                                });
  return generic.getResult(0);
}

void makePlain(BlockScaledMatmulOp op) {
  OpBuilder b(op);
  SmallVector<Value> sums = {sumsOf(b, op, op.getRhsOperand(), op.getAlpha())};
  if (op.isDual())
    sums.push_back(sumsOf(b, op, op.getRhs2Operand(), op.getAlpha2()));
  Value elements = elementsOf(b, op, sums);
  if (Value result = op.getResult())
    result.replaceAllUsesWith(elements);
  if (op.getQuantizeRecipe()) {
    Format format = formatOf(op.getQuantizeRecipe()->getDecisions().format);
    auto quantized = QuantizeOp::create(
        b, op.getLoc(), op.getQuantized().getTypes(), elements, op.getQuantizeAmax(),
        /*columnwise_amax=*/Value(), /*rng=*/Value(), /*offsets=*/Value(), format,
        *op.getQuantizeRecipe(), Rounding::NearestEven,
        op.getQuantizeOutputs().value_or(Outputs::Rowwise),
        /*block=*/DenseI64ArrayAttr(), /*hadamard=*/HadamardAttr(),
        /*columnwise_hadamard=*/HadamardAttr(), Philox::Element, /*groups=*/DenseI64ArrayAttr(),
        /*per_row=*/false, /*unspecified_rows=*/false);
    op.getQuantized().replaceAllUsesWith(quantized.getResults());
  }
  if (Value amax = op.getAmax())
    amax.replaceAllUsesWith(AmaxOp::create(b, op.getLoc(), elements));
  op.erase();
}

} // namespace

void fp4::makeGemmsPlain(ModuleOp module) {
  SmallVector<BlockScaledMatmulOp> fused;
  module.walk([&](BlockScaledMatmulOp op) {
    if (!op.getEpilogueBody().empty() && !op.isGrouped())
      fused.push_back(op);
  });
  if (fused.empty())
    return;
  module.getContext()
      ->loadDialect<arith::ArithDialect, linalg::LinalgDialect, tensor::TensorDialect>();
  llvm::for_each(fused, makePlain);
}
