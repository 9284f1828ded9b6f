//===- Fp4Ops.cpp - Verifiers, type inference, folds of the fp4 dialect ---===//
//
// The labels (C1), (C2), ... are those of docs/Spec.md and test/Dialect/Fp4/invalid.mlir.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

#define GET_OP_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// What several verifiers check
//===----------------------------------------------------------------------===//

namespace {

/// One operand or result under verification: `what` is its kind and name, "operand 'input'".
struct Checked {
  Operation *op;
  std::string what;
  RankedTensorType type;

  InFlightDiagnostic must(const Twine &condition) const {
    return op->emitOpError() << what << " must " << condition << ", but got " << type;
  }
};

Checked operand(Operation *op, StringRef name, Value value) {
  return {op, ("operand '" + name + "'").str(), cast<RankedTensorType>(value.getType())};
}

Checked result(Operation *op, StringRef name, Value value) {
  return {op, ("result '" + name + "'").str(), cast<RankedTensorType>(value.getType())};
}

std::string printed(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Two dimensions, the second static, in a layout that has a buffer.
LogicalResult verifyMatrix(const Checked &value) {
  if (value.type.getRank() != 2)
    return value.must("have 2 dimensions");
  if (Attribute encoding = value.type.getEncoding(); encoding && !isa<ScaleLayoutAttr>(encoding))
    return value.must("have no encoding but #fp4.scale_layout");
  if (!value.type.isDynamicDim(1))
    return success();
  auto diag = value.must("have a static number of columns");
  diag.attachNote() << "only the rows, dimension 0, may be dynamic";
  return diag;
}

LogicalResult verifyRealElements(const Checked &value) {
  Type element = value.type.getElementType();
  if (element.isBF16() || element.isF16() || element.isF32())
    return success();
  return value.must("have elements of type bf16, f16 or f32");
}

LogicalResult verifyDataElements(const Checked &value) {
  if (isa<Float4E2M1FNType>(value.type.getElementType()))
    return success();
  return value.must("have elements of type f4E2M1FN");
}

LogicalResult verifyScaleElements(const Checked &value, Format format) {
  Type expected = scaleType(value.type.getContext(), format);
  if (value.type.getElementType() == expected)
    return success();
  auto diag = value.must("have elements of type " +
                         Twine(format == Format::NVFP4 ? "f8E4M3FN" : "f8E8M0FNU"));
  diag.attachNote() << "this is the scale type of format " << stringifyFormat(format);
  return diag;
}

LogicalResult verifyScalar(const Checked &value) {
  if (value.type.getRank() == 0 && value.type.getElementType().isF32() && !value.type.getEncoding())
    return success();
  auto diag = value.must("be a tensor<f32>");
  diag.attachNote() << "it is one number in device memory, not a vector and not a constant";
  return diag;
}

LogicalResult verifyType(const Checked &value, RankedTensorType expected) {
  if (value.type == expected)
    return success();
  return value.must("be '" + Twine(printed(expected)) + "'");
}

/// The extent of `dimension` is a multiple of `multiple` (callers have checked that it is static).
LogicalResult verifyMultiple(const Checked &value, int64_t dimension, int64_t multiple,
                             const Twine &why) {
  int64_t extent = value.type.getDimSize(dimension);
  if (!ShapedType::isDynamic(extent) && extent % multiple == 0)
    return success();
  std::string found = ShapedType::isDynamic(extent) ? "?" : std::to_string(extent);
  auto diag = value.op->emitOpError()
              << value.what << " must have a dimension " << dimension << " that is a multiple of "
              << multiple << ", but got " << found;
  diag.attachNote() << why;
  return diag;
}

LogicalResult verifyBlockMultiple(const Checked &value, int64_t dimension, Format format) {
  return verifyMultiple(value, dimension, blockSize(format),
                        Twine("a block of format ") + stringifyFormat(format) + " has " +
                            Twine(blockSize(format)) +
                            " elements of the contraction axis; pad that axis with zeros");
}

/// An amax goes with NVFP4 and only with it.
LogicalResult verifyAmax(Operation *op, Value amax, Format format) {
  if (format == Format::NVFP4 && !amax) {
    auto diag = op->emitOpError("expects operand 'amax' for format nvfp4, but got none");
    diag.attachNote() << "compute it with fp4.amax; a constant 2688.0 makes the tensor scale 1";
    return diag;
  }
  if (format == Format::MXFP4 && amax) {
    auto diag = op->emitOpError("expects no operand 'amax' for format mxfp4, but got one");
    diag.attachNote() << "mxfp4 has no tensor scale; remove the operand or use format nvfp4";
    return diag;
  }
  return amax ? verifyScalar(operand(op, "amax", amax)) : success();
}

LogicalResult verifyRowMajor(const Checked &scales) {
  if (!scaleLayout(scales.type))
    return success();
  auto diag = scales.must("be row-major");
  diag.attachNote() << "insert fp4.unswizzle_scales";
  return diag;
}

LogicalResult verifyTiled(const Checked &scales) {
  if (scaleLayout(scales.type) == ScaleLayout::Tiled128x4)
    return success();
  auto diag = scales.must("have layout #fp4.scale_layout<tiled_128x4>");
  diag.attachNote() << "insert fp4.swizzle_scales";
  return diag;
}

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t dimOr(RankedTensorType type, unsigned dimension) {
  return dimension < type.getRank() ? type.getDimSize(dimension) : ShapedType::kDynamic;
}

/// The scales of a matrix of this type, blocks along dimension 1, row-major.
RankedTensorType scalesOf(RankedTensorType data, Format format) {
  int64_t columns = dimOr(data, 1);
  int64_t blocks = ShapedType::isDynamic(columns)
                       ? columns
                       : static_cast<int64_t>(llvm::divideCeil(columns, blockSize(format)));
  return RankedTensorType::get({dimOr(data, 0), blocks}, scaleType(data.getContext(), format));
}

RankedTensorType dataOf(RankedTensorType input, bool transposed) {
  SmallVector<int64_t> shape(input.getShape());
  if (transposed && shape.size() == 2)
    std::swap(shape[0], shape[1]);
  return RankedTensorType::get(shape, Float4E2M1FNType::get(input.getContext()));
}

/// Result types of a quantization; `types` gets the pair of each orientation.
void quantizedTypes(RankedTensorType input, Format format, Outputs outputs,
                    SmallVectorImpl<Type> &types) {
  for (bool transposed : {false, true}) {
    if (outputs == (transposed ? Outputs::Rowwise : Outputs::Columnwise))
      continue;
    RankedTensorType data = dataOf(input, transposed);
    types.push_back(data);
    types.push_back(scalesOf(data, format));
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// amax, hadamard
//===----------------------------------------------------------------------===//

LogicalResult AmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(RankedTensorType::get({}, Float32Type::get(context)));
  return success();
}

bool AmaxOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult AmaxOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyRealElements(input))) // amax (C1)
    return failure();
  if (failed(verifyMatrix(input))) // amax (C2)
    return failure();
  return verifyScalar(result(*this, "amax", getAmax())); // amax (C3)
}

LogicalResult HadamardOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

bool HadamardOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult HadamardOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (!input.type.getElementType().isBF16()) // hadamard (C1)
    return input.must("have elements of type bf16");
  if (failed(verifyMatrix(input))) // hadamard (C2)
    return failure();
  int64_t size = getSize();
  if (!llvm::is_contained({16, 32, 64, 128}, size)) // hadamard (C3)
    return emitOpError("attribute 'size' must be 16, 32, 64 or 128, but got ") << size;
  if (getDimension() > 1) // hadamard (C4)
    return emitOpError("attribute 'dimension' must be 0 or 1, but got ")
           << static_cast<int64_t>(getDimension());
  if (failed(verifyMultiple(input, getDimension(), size, // hadamard (C5)
                            "groups do not cross the edge; pad the dimension with zeros")))
    return failure();
  if (size < 64 && (getSignMask() >> size) != 0) { // hadamard (C6)
    auto diag = emitOpError("attribute 'sign_mask' must have no bit set at or above ")
                << size << ", but got " << static_cast<int64_t>(getSignMask());
    diag.attachNote() << "bit i negates element i of each group of " << size;
    return diag;
  }
  return verifyType(result(*this, "result", getResult()), input.type); // hadamard (C7)
}

//===----------------------------------------------------------------------===//
// quantize, dequantize
//===----------------------------------------------------------------------===//

LogicalResult QuantizeOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  quantizedTypes(rankedType(adaptor.getInput()), adaptor.getFormat(), adaptor.getOutputs(), types);
  return success();
}

bool QuantizeOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

void QuantizeOp::build(OpBuilder &builder, OperationState &state, Value input, Value amax,
                       Format format, Recipe recipe) {
  SmallVector<Type> types;
  quantizedTypes(rankedType(input), format, Outputs::Rowwise, types);
  build(builder, state, types[0], types[1], TypeRange(), input, amax, Value(), format, recipe,
        Rounding::NearestEven, Outputs::Rowwise, DenseI64ArrayAttr());
}

/// quantize (C4), (C6): the attributes agree with the format and with the operands.
static LogicalResult verifyQuantizeAttributes(QuantizeOp op) {
  Format format = op.getFormat();
  if (formatOf(op.getRecipe()) != format) { // quantize (C4)
    auto diag = op.emitOpError("expects a recipe of format ")
                << stringifyFormat(format) << ", but got " << stringifyRecipe(op.getRecipe());
    diag.attachNote() << "the recipes of nvfp4 are transformer_engine and transformer_engine_2_13; "
                         "those of mxfp4 are ocp_floor, ocp_ceil, ocp_even and ocp_rceil";
    return diag;
  }
  bool stochastic = op.getRounding() == Rounding::Stochastic;
  if (stochastic != static_cast<bool>(op.getRng())) { // quantize (C6)
    auto diag = op.emitOpError("expects ")
                << (stochastic ? "operand 'rng'" : "no operand 'rng'") << " for rounding "
                << stringifyRounding(op.getRounding()) << ", but got "
                << (stochastic ? "none" : "one");
    diag.attachNote() << "stochastic rounding takes its seed and offset from a tensor<2xi64>";
    return diag;
  }
  if (!op.getRng())
    return success();
  auto i64 = IntegerType::get(op.getContext(), 64);
  return verifyType(operand(op, "rng", op.getRng()), RankedTensorType::get({2}, i64));
}

/// quantize (C7): a block shape that the format has.
static LogicalResult verifyQuantizeBlock(QuantizeOp op) {
  std::optional<ArrayRef<int64_t>> block = op.getBlock();
  if (!block)
    return success();
  int64_t size = op.getBlockSize();
  if (*block == ArrayRef<int64_t>{1, size})
    return success();
  if (op.getFormat() == Format::NVFP4 && *block == ArrayRef<int64_t>{16, 16})
    return success();
  auto diag = op.emitOpError("attribute 'block' must be ")
              << (op.getFormat() == Format::NVFP4 ? "[1, 16] or [16, 16]" : "[1, 32]")
              << " for format " << stringifyFormat(op.getFormat()) << ", but got [" << *block
              << "]";
  return diag;
}

/// quantize (C8): one pair of data and scales per orientation, shaped after the input.
static LogicalResult verifyQuantizeResults(QuantizeOp op) {
  SmallVector<Type> expected;
  quantizedTypes(rankedType(op.getInput()), op.getFormat(), op.getOutputs(), expected);
  if (expected.size() != op->getNumResults()) {
    auto diag = op.emitOpError("expects ")
                << expected.size() << " results for outputs " << stringifyOutputs(op.getOutputs())
                << ", but got " << op->getNumResults();
    diag.attachNote() << "each orientation gives its data and its scales";
    return diag;
  }
  static constexpr StringRef names[] = {"data", "scales", "transposed data", "transposed scales"};
  for (auto [index, type] : llvm::enumerate(expected))
    if (failed(verifyType(result(op, names[index], op->getResult(index)),
                          cast<RankedTensorType>(type))))
      return failure();
  return success();
}

LogicalResult QuantizeOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyRealElements(input))) // quantize (C1)
    return failure();
  if (failed(verifyMatrix(input))) // quantize (C2)
    return failure();
  if (getOutputs() != Outputs::Columnwise &&
      failed(verifyBlockMultiple(input, 1, getFormat()))) // quantize (C3)
    return failure();
  if (getOutputs() != Outputs::Rowwise &&
      failed(verifyBlockMultiple(input, 0, getFormat()))) // quantize (C3)
    return failure();
  if (failed(verifyQuantizeAttributes(*this)))
    return failure();
  if (failed(verifyAmax(*this, getAmax(), getFormat()))) // quantize (C5)
    return failure();
  if (failed(verifyQuantizeBlock(*this)))
    return failure();
  return verifyQuantizeResults(*this);
}

LogicalResult DequantizeOp::verify() {
  Checked data = operand(*this, "data", getData());
  Checked scales = operand(*this, "scales", getScales());
  if (failed(verifyDataElements(data)) || failed(verifyMatrix(data))) // dequantize (C1)
    return failure();
  if (failed(verifyBlockMultiple(data, 1, getFormat()))) // dequantize (C2)
    return failure();
  if (failed(verifyScaleElements(scales, getFormat()))) // dequantize (C3)
    return failure();
  if (failed(verifyRowMajor(scales))) // dequantize (C4)
    return failure();
  if (failed(verifyType(scales, scalesOf(data.type, getFormat())))) // dequantize (C5)
    return failure();
  if (failed(verifyAmax(*this, getAmax(), getFormat()))) // dequantize (C6)
    return failure();
  Checked output = result(*this, "result", getResult());
  if (failed(verifyRealElements(output))) // dequantize (C7)
    return failure();
  return verifyType(output, // dequantize (C8)
                    RankedTensorType::get(data.type.getShape(), output.type.getElementType()));
}

//===----------------------------------------------------------------------===//
// swizzle_scales, unswizzle_scales
//===----------------------------------------------------------------------===//

LogicalResult SwizzleScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType input = rankedType(adaptor.getInput());
  bool legal = isScaleElementType(input.getElementType()) && input.getRank() == 2;
  types.push_back(legal ? withScaleLayout(input, ScaleLayout::Tiled128x4) : input);
  return success();
}

bool SwizzleScalesOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult SwizzleScalesOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (!isScaleElementType(input.type.getElementType())) // swizzle_scales (C1)
    return input.must("have elements of type f8E4M3FN or f8E8M0FNU");
  if (failed(verifyMatrix(input))) // swizzle_scales (C2)
    return failure();
  if (failed(verifyRowMajor(input))) // swizzle_scales (C3)
    return failure();
  return verifyType(result(*this, "result", getResult()), // swizzle_scales (C4)
                    withScaleLayout(input.type, ScaleLayout::Tiled128x4));
}

OpFoldResult SwizzleScalesOp::fold(FoldAdaptor) {
  if (auto inverse = getInput().getDefiningOp<UnswizzleScalesOp>())
    if (inverse.getInput().getType() == getType())
      return inverse.getInput();
  return {};
}

LogicalResult UnswizzleScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(withScaleLayout(rankedType(adaptor.getInput()), std::nullopt));
  return success();
}

bool UnswizzleScalesOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult UnswizzleScalesOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (!isScaleElementType(input.type.getElementType())) // unswizzle_scales (C1)
    return input.must("have elements of type f8E4M3FN or f8E8M0FNU");
  if (failed(verifyMatrix(input))) // unswizzle_scales (C2)
    return failure();
  if (failed(verifyTiled(input))) // unswizzle_scales (C3)
    return failure();
  return verifyType(result(*this, "result", getResult()), // unswizzle_scales (C4)
                    withScaleLayout(input.type, std::nullopt));
}

OpFoldResult UnswizzleScalesOp::fold(FoldAdaptor) {
  if (auto inverse = getInput().getDefiningOp<SwizzleScalesOp>())
    if (inverse.getInput().getType() == getType())
      return inverse.getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// matmul_alpha, blockscaled_matmul
//===----------------------------------------------------------------------===//

LogicalResult MatmulAlphaOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                              Adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(RankedTensorType::get({}, Float32Type::get(context)));
  return success();
}

bool MatmulAlphaOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult MatmulAlphaOp::verify() {
  if (failed(verifyScalar(operand(*this, "lhs_amax", getLhsAmax())))) // matmul_alpha (C1)
    return failure();
  if (failed(verifyScalar(operand(*this, "rhs_amax", getRhsAmax())))) // matmul_alpha (C1)
    return failure();
  return verifyScalar(result(*this, "alpha", getAlpha())); // matmul_alpha (C2)
}

/// blockscaled_matmul (C4) to (C6): the scales of one side belong to its data.
static LogicalResult verifySide(BlockScaledMatmulOp op, const Checked &data,
                                const Checked &scales) {
  if (failed(verifyScaleElements(scales, op.getFormat()))) // blockscaled_matmul (C4)
    return failure();
  if (failed(verifyTiled(scales))) // blockscaled_matmul (C5)
    return failure();
  RankedTensorType expected = scalesOf(data.type, op.getFormat());
  return verifyType(scales, // blockscaled_matmul (C6)
                    withScaleLayout(expected, ScaleLayout::Tiled128x4));
}

/// blockscaled_matmul (C8) to (C10): the result and the tile.
static LogicalResult verifyMatmulResult(BlockScaledMatmulOp op, const Checked &lhs,
                                        const Checked &rhs) {
  if (rhs.type.isDynamicDim(0)) { // blockscaled_matmul (C8)
    auto diag = rhs.must("have a static shape");
    diag.attachNote() << "only the rows of 'lhs' may be dynamic; swap the operands to make the "
                         "other side dynamic";
    return diag;
  }
  Checked output = result(op, "result", op.getResult());
  if (failed(verifyRealElements(output))) // blockscaled_matmul (C9)
    return failure();
  auto expected = RankedTensorType::get({lhs.type.getDimSize(0), rhs.type.getDimSize(0)},
                                        output.type.getElementType());
  if (failed(verifyType(output, expected))) // blockscaled_matmul (C10)
    return failure();
  std::optional<uint64_t> tile = op.getTileN();
  if (tile && !llvm::is_contained({64, 128, 192, 256}, static_cast<int64_t>(*tile)))
    return op.emitOpError("attribute 'tile_n' must be 64, 128, 192 or 256, but got ")
           << static_cast<int64_t>(*tile); // blockscaled_matmul (C11)
  return success();
}

LogicalResult BlockScaledMatmulOp::verify() {
  Checked lhs = operand(*this, "lhs", getLhs());
  Checked rhs = operand(*this, "rhs", getRhs());
  for (const Checked &data : {lhs, rhs})
    if (failed(verifyDataElements(data)) || failed(verifyMatrix(data))) // blockscaled_matmul (C1)
      return failure();
  if (lhs.type.getDimSize(1) != rhs.type.getDimSize(1)) { // blockscaled_matmul (C2)
    auto diag = emitOpError("expects operands 'lhs' and 'rhs' with equal dimensions 1, but got ")
                << lhs.type.getDimSize(1) << " and " << rhs.type.getDimSize(1);
    diag.attachNote() << "both are contracted along dimension 1: lhs is M x K and rhs is N x K";
    return diag;
  }
  if (failed(verifyBlockMultiple(lhs, 1, getFormat()))) // blockscaled_matmul (C3)
    return failure();
  if (failed(verifySide(*this, lhs, operand(*this, "lhs_scales", getLhsScales()))) ||
      failed(verifySide(*this, rhs, operand(*this, "rhs_scales", getRhsScales()))))
    return failure();
  if (getAlpha() && failed(verifyScalar(operand(*this, "alpha", getAlpha()))))
    return failure(); // blockscaled_matmul (C7)
  return verifyMatmulResult(*this, lhs, rhs);
}
