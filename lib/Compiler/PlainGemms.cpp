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

/// An epilogue region, and the tensors that it reads besides sums.
struct Epilogue {
  Region &region;
  ValueRange inputs;
  Value element; ///< what it yields of the elements
  Type type;     ///< the type of elements, which that is rounded to
};

/// The epilogue region for every element of `sums`, matrices of dynamic `sizes`.
Value elementsOf(OpBuilder &b, Location loc, const Epilogue &epilogue, ArrayRef<Value> sums,
                 ValueRange sizes) {
  auto type = cast<RankedTensorType>(sums.front().getType()).clone(epilogue.type);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType(), sizes);
  SmallVector<Value> inputs(sums);
  llvm::append_range(inputs, epilogue.inputs);
  AffineMap all = AffineMap::getMultiDimIdentityMap(2, b.getContext());
  SmallVector<AffineMap> maps(sums.size(), all);
  llvm::append_range(maps, llvm::map_range(epilogue.inputs, indexOf));
  maps.push_back(all);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange{type}, inputs, ValueRange{empty}, maps, loops,
                                [&](OpBuilder &inside, Location, ValueRange arguments) {
                                  IRMapping mapping;
                                  Block &body = epilogue.region.front();
                                  mapping.map(body.getArguments().take_front(inputs.size()),
                                              arguments.drop_back());
                                  for (Operation &step : body.without_terminator())
                                    if (!isEpilogueOp(&step))
                                      inside.clone(step, mapping);
                                  Value element = mapping.lookup(epilogue.element);
                                  if (element.getType() != type.getElementType())
                                    element = saturate(inside, loc, element, type.getElementType());
                                  linalg::YieldOp::create(inside, loc, element);
                                });
  return generic.getResult(0);
}

Value elementsOf(OpBuilder &b, BlockScaledMatmulOp op, ArrayRef<Value> sums) {
  auto type = cast<RankedTensorType>(sums.front().getType());
  SmallVector<Value> sizes;
  if (type.isDynamicDim(0))
    sizes.push_back(tensor::DimOp::create(b, op.getLoc(), op.getLhs(), 0));
  if (type.isDynamicDim(1))
    sizes.push_back(tensor::DimOp::create(b, op.getLoc(), op.getRhs(), 0));
  Epilogue epilogue{op.getEpilogueBody(), op.getEpilogueInputs(), op.getYieldedElement(),
                    op.getElementType()};
  return elementsOf(b, op.getLoc(), epilogue, sums, sizes);
}

/// The codes and scales of `outputs` of a matrix.
ValueRange quantized(OpBuilder &b, Location loc, Value matrix, EpilogueQuantizeOp quantize,
                     Value amax, TypeRange types) {
  Format format = formatOf(quantize.getRecipe().getDecisions().format);
  return QuantizeOp::create(b, loc, types, matrix, amax, /*columnwise_amax=*/Value(),
                            /*rng=*/Value(), /*offsets=*/Value(), format, quantize.getRecipe(),
                            Rounding::NearestEven, quantize.getOutputs().value_or(Outputs::Rowwise),
                            /*block=*/DenseI64ArrayAttr(), /*hadamard=*/HadamardAttr(),
                            /*columnwise_hadamard=*/HadamardAttr(), Philox::Element,
                            /*groups=*/DenseI64ArrayAttr(), /*per_row=*/false,
                            /*unspecified_rows=*/false)
      .getResults();
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
    op.getQuantized().replaceAllUsesWith(quantized(b, op.getLoc(), elements,
                                                   op.getEpilogueQuantize(), op.getQuantizeAmax(),
                                                   op.getQuantized().getTypes()));
  }
  if (Value amax = op.getAmax())
    amax.replaceAllUsesWith(AmaxOp::create(b, op.getLoc(), elements));
  op.erase();
}

/// The attention without its epilogue, of f32, whose elements of all heads are columns.
AttentionOp plainAttention(OpBuilder &b, AttentionOp op) {
  SmallVector<int64_t> shape(op.getQueryType().getShape());
  shape.back() = op.getValueElements();
  auto plain = cast<AttentionOp>(b.clone(*op));
  SmallVector<Type> types = {RankedTensorType::get(shape, b.getF32Type())};
  if (op.getLse())
    types.push_back(op.getLse().getType());
  plain.getInputsMutable().clear();
  OperationState state(op.getLoc(), AttentionOp::getOperationName(), plain->getOperands(), types);
  auto &properties = state.getOrAddProperties<AttentionOp::Properties>();
  properties = plain.getProperties();
  llvm::copy(ArrayRef<int32_t>{1, op.getLse() ? 1 : 0, 0}, properties.resultSegmentSizes.begin());
  state.addRegion();
  plain.erase();
  return cast<AttentionOp>(b.create(state));
}

void makePlain(AttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  AttentionOp plain = plainAttention(b, op);
  if (op.getLse())
    op.getLse().replaceAllUsesWith(plain.getLse());
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2, 3}};
  if (op.isPacked())
    groups = {{0}, {1, 2}};
  Value matrix = tensor::CollapseShapeOp::create(b, loc, plain.getResult(), groups);
  SmallVector<Value> sizes;
  if (op.isPacked() && op.getQueryType().isDynamicDim(0))
    sizes.push_back(tensor::DimOp::create(b, loc, op.getQuery(), 0));
  Epilogue epilogue{op.getEpilogueBody(), op.getEpilogueInputs(),
                    elementwiseResults(op.getEpilogueBody().front()).front(), op.getElementType()};
  Value elements = elementsOf(b, loc, epilogue, {matrix}, sizes);
  if (Value result = op.getResult())
    result.replaceAllUsesWith(
        tensor::ExpandShapeOp::create(b, loc, result.getType(), elements, groups));
  if (EpilogueQuantizeOp quantize = op.getEpilogueQuantize())
    op.getQuantized().replaceAllUsesWith(
        quantized(b, loc, elements, quantize, quantize.getAmax() ? op.getInputs().back() : Value(),
                  op.getQuantized().getTypes()));
  op.erase();
}

} // namespace

void fp4::makeGemmsPlain(ModuleOp module) {
  SmallVector<BlockScaledMatmulOp> fused;
  module.walk([&](BlockScaledMatmulOp op) {
    if (!op.getEpilogueBody().empty() && !op.isGrouped())
      fused.push_back(op);
  });
  SmallVector<AttentionOp> attentions;
  module.walk([&](AttentionOp op) {
    if (!op.getEpilogueBody().empty())
      attentions.push_back(op);
  });
  if (fused.empty() && attentions.empty())
    return;
  module.getContext()
      ->loadDialect<arith::ArithDialect, linalg::LinalgDialect, tensor::TensorDialect>();
  for (BlockScaledMatmulOp op : fused)
    makePlain(op);
  for (AttentionOp op : attentions)
    makePlain(op);
}
