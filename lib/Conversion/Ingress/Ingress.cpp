//===- Ingress.cpp - Block-scaled matmuls of other dialects ---------------===//
//
// See Ingress.h. Checks come first, in words that other dialects use: the left and the right side,
// their scales, rows, batches.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/Ingress.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fp4::ingress {
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// [[0, ..., rank - 2], [rank - 1]]
SmallVector<ReassociationIndices> rowsAndLast(int64_t rank) {
  SmallVector<ReassociationIndices> groups(2);
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    groups[0].push_back(dim);
  groups[1].push_back(rank - 1);
  return groups;
}

/// Checks that a matmul has tensors of one rank, 2 or 3, of which only the first dimension may be
/// dynamic.
LogicalResult checkShapes(Operation *op, const ScaledMatmul &product) {
  const std::pair<StringRef, Value> operands[] = {{"left side", product.lhs.data},
                                                  {"scales of the left side", product.lhs.scales},
                                                  {"right side", product.rhs.data},
                                                  {"scales of the right side", product.rhs.scales}};
  if (!product.rhs.scales)
    return refuse(op, "the right side, the weights, must have scales",
                  "exchange the sides, and transpose the result with linalg.transpose");
  const int64_t rank = product.result.getRank();
  for (auto [name, value] : operands) {
    if (!value) // of 16-bit floats
      continue;
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != rank || (rank != 2 && rank != 3))
      return refuse(op,
                    "the " + name + " and the result must be matrices, or matrices in batches",
                    "collapse other dimensions to rows before the matmul");
    if (llvm::any_of(type.getShape().drop_front(), ShapedType::isDynamic))
      return refuse(op, "the " + name + " must have static sizes behind the first",
                    "export the program with static shapes; the number of rows may be dynamic");
  }
  if (typeOf(product.rhs.data).isDynamicDim(0) || typeOf(product.rhs.scales).isDynamicDim(0))
    return refuse(op, "the right side must have static sizes",
                  "exchange the sides where only the other one is dynamic");
  if (rank == 3 && typeOf(product.lhs.data).isDynamicDim(0))
    return refuse(op, "the number of batches must be static",
                  "collapse batches and rows of the left side to dynamic rows before the matmul");
  return success();
}

/// The formats of the sides; 16-bit floats have none.
struct Formats {
  std::optional<Format> lhs;
  Format rhs;
};

std::string spell(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string typesOf(Type lhs, Type rhs) {
  std::string types;
  llvm::raw_string_ostream(types) << lhs << " and " << rhs;
  return types;
}

/// Checks the elements of a matmul: of 4 and of 8 bits.
LogicalResult checkElements(Operation *op, Type lhs, Type rhs, int64_t k) {
  auto hasFour = [](Type type) { return isa<Float4E2M1FNType>(type); };
  for (Type type : {lhs, rhs})
    if (!hasFour(type) && !isa<Float8E4M3FNType, Float8E5M2Type>(type))
      return refuse(op, "both sides must have elements of type f4E2M1FN, f8E4M3FN or f8E5M2, but got " +
                            typesOf(lhs, rhs),
                    "matmuls of 6-bit elements have no kernel; quantize both sides to 4 or 8 bits");
  constexpr int64_t unit = 128; // matmul (C191)
  if (hasFour(lhs) == hasFour(rhs) || k % unit == 0)
    return success();
  return refuse(op, "elements of 4 bits beside such of 8 must have a K that is a multiple of 128, but got " +
                        Twine(k),
                "pad K of both sides with zeros, or quantize both sides to as many bits");
}

/// The format of data with such scales; `k` and the number of scale blocks give the size of a scale
/// block.
std::optional<Format> formatOf(RankedTensorType data, RankedTensorType scales) {
  const int64_t k = data.getShape().back(), blocks = scales.getShape().back();
  if (blocks == 0 || k % blocks)
    return std::nullopt;
  return findFormat(data.getElementType(), scales.getElementType(), k / blocks);
}

constexpr const char *kScaleTypes =
    "scales must be f8E8M0FNU for blocks of 32 elements (mxfp4, mxfp8) or f8E4M3FN for blocks of 16 "
    "(nvfp4), but got K = ";
constexpr const char *kScaleRemedy = "quantize with the block and the scales of one of these formats";

/// Checks rows of 16-bit floats beside quantized weights.
FailureOr<Formats> checkFloats(Operation *op, const ScaledMatmul &product) {
  RankedTensorType lhs = typeOf(product.lhs.data), rhs = typeOf(product.rhs.data);
  RankedTensorType scales = typeOf(product.rhs.scales);
  if (!isa<BFloat16Type, Float16Type>(lhs.getElementType()))
    return refuse(op, "a side without scales must have elements of type bf16 or f16, but got " +
                          spell(lhs.getElementType()),
                  "convert it to bf16, or quantize it and multiply by its scales");
  if (!isa<Float4E2M1FNType>(rhs.getElementType()))
    return refuse(op, "weights beside 16-bit floats must have elements of type f4E2M1FN, but got " +
                          spell(rhs.getElementType()),
                  "quantize the other side too: sides of 8 bits both have scales");
  if (lhs.getShape().back() != rhs.getShape().back() ||
      rhs.getShape().drop_back() != scales.getShape().drop_back())
    return refuse(op, "both sides must be rows x K, and the scales of the weights rows x K/block",
                  "contract the last dimension of both sides, and give each row its own scales");
  std::optional<Format> format = formatOf(rhs, scales);
  if (!format)
    return refuse(op,
                  Twine(kScaleTypes) + Twine(rhs.getShape().back()) + ", " +
                      Twine(scales.getShape().back()) + " blocks, and scales of " +
                      spell(scales.getElementType()),
                  kScaleRemedy);
  if (lhs.getElementType().isF16() && numerics::isMX(blockFormat(*format)))
    return refuse(op, "a side of f16 has not the exponents of mxfp4 scales beside it",
                  "convert it to bf16");
  return Formats{std::nullopt, *format};
}

/// Checks that data and scales agree: the same rows, and the same scale block in both operands.
FailureOr<Formats> checkFormats(Operation *op, const ScaledMatmul &product) {
  if (!product.lhs.scales)
    return checkFloats(op, product);
  RankedTensorType lhs = typeOf(product.lhs.data), rhs = typeOf(product.rhs.data);
  RankedTensorType lhsScales = typeOf(product.lhs.scales), rhsScales = typeOf(product.rhs.scales);
  const int64_t k = lhs.getShape().back(), blocks = lhsScales.getShape().back();
  if (failed(checkElements(op, lhs.getElementType(), rhs.getElementType(), k)))
    return failure();
  if (k != rhs.getShape().back() || blocks != rhsScales.getShape().back() || blocks == 0 ||
      lhs.getShape().drop_back() != lhsScales.getShape().drop_back() ||
      rhs.getShape().drop_back() != rhsScales.getShape().drop_back())
    return refuse(op, "both sides must be rows x K with scales of rows x K/block",
                  "contract the last dimension of both sides, and give each row its own scales");
  std::optional<Format> left = formatOf(lhs, lhsScales), right = formatOf(rhs, rhsScales);
  if (left && right && lhsScales.getElementType() == rhsScales.getElementType())
    return Formats{*left, *right};
  return refuse(op,
                Twine(kScaleTypes) + Twine(k) + ", " + Twine(blocks) + " blocks, and scales of " +
                    typesOf(lhsScales.getElementType(), rhsScales.getElementType()),
                kScaleRemedy);
}

/// Checks that rows and columns are those of the sides, and that a matmul can write the elements.
LogicalResult checkResult(Operation *op, const ScaledMatmul &product) {
  ArrayRef<int64_t> lhs = typeOf(product.lhs.data).getShape();
  ArrayRef<int64_t> rhs = typeOf(product.rhs.data).getShape();
  ArrayRef<int64_t> result = product.result.getShape();
  if (result.drop_back() != lhs.drop_back() || result.back() != rhs.drop_back().back())
    return refuse(op, "the result must have the rows of the left side, and a column for each row "
                      "of the right side",
                  "infer the shapes again (tosa-infer-shapes, or an export with static shapes)");
  if (!isa<Float32Type, BFloat16Type, Float16Type>(product.result.getElementType())) {
    std::string type;
    llvm::raw_string_ostream(type) << product.result.getElementType();
    return refuse(op, "the result must have elements of type f32, bf16 or f16, but got " + type,
                  "ask for one of these types and convert afterwards");
  }
  if (lhs.size() == 3 && rhs[0] != 1 && rhs[0] != lhs[0])
    return refuse(op, "both sides must have the same number of batches, or the right side one",
                  "repeat the right side where it is meant to be broadcast");
  return success();
}

Value swizzled(OpBuilder &b, Location loc, Value scales) {
  Value matrix = asMatrix(b, loc, scales);
  return SwizzleScalesOp::create(b, loc,
                                 withScaleLayout(typeOf(matrix), ScaleLayout::Tiled128x4), matrix);
}

/// The matrix number `index` of a tensor in batches.
Value batchOf(OpBuilder &b, Location loc, Value tensor, int64_t index) {
  RankedTensorType type = typeOf(tensor);
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<OpFoldResult> offsets = {b.getIndexAttr(index), b.getIndexAttr(0), b.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(shape[1]),
                                     b.getIndexAttr(shape[2])};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape.drop_front(), type.getElementType()), tensor, offsets,
      sizes, strides);
}

Value build(OpBuilder &b, Location loc, const ScaledMatmul &product, const Formats &formats) {
  Value lhsScales = product.lhs.scales ? swizzled(b, loc, product.lhs.scales) : Value();
  Value rhsScales = swizzled(b, loc, product.rhs.scales);
  auto matmul = BlockScaledMatmulOp::create(b, loc, asMatrix(b, loc, product.lhs.data), lhsScales,
                                            asMatrix(b, loc, product.rhs.data), rhsScales,
                                            product.alpha, formats.lhs.value_or(formats.rhs),
                                            product.result.getElementType(), formats.rhs);
  return matmul.getResult();
}

} // namespace

LogicalResult refuse(Operation *op, const Twine &reason, const Twine &remedy) {
  InFlightDiagnostic diagnostic = op->emitOpError("has no counterpart in fp4: ") << reason;
  diagnostic.attachNote() << remedy;
  return diagnostic;
}

std::optional<Format> findFormat(Type data, Type scales, int64_t block) {
  for (uint32_t value = 0; std::optional<Format> format = symbolizeFormat(value); ++value)
    if (data == dataType(data.getContext(), *format) &&
        scales == scaleType(data.getContext(), *format) && block == blockSize(*format))
      return format;
  return std::nullopt;
}

Value asMatrix(OpBuilder &b, Location loc, Value tensor) {
  RankedTensorType type = typeOf(tensor);
  if (type.getRank() == 2)
    return tensor;
  if (type.getRank() == 1)
    return tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({1, type.getDimSize(0)}, type.getElementType()), tensor,
        SmallVector<ReassociationIndices>{{0, 1}});
  return tensor::CollapseShapeOp::create(b, loc, tensor, rowsAndLast(type.getRank()));
}

Value reshapeTo(OpBuilder &b, Location loc, Value matrix, RankedTensorType type) {
  if (type.getRank() == 2)
    return matrix;
  if (type.getRank() == 1)
    return tensor::CollapseShapeOp::create(b, loc, matrix,
                                           SmallVector<ReassociationIndices>{{0, 1}});
  return tensor::ExpandShapeOp::create(b, loc, type, matrix, rowsAndLast(type.getRank()));
}

FailureOr<Value> convertMatmul(OpBuilder &b, Operation *op, const ScaledMatmul &product) {
  if (failed(checkShapes(op, product)))
    return failure();
  FailureOr<Formats> formats = checkFormats(op, product);
  if (failed(formats) || failed(checkResult(op, product)))
    return failure();
  Location loc = op->getLoc();
  const bool oneRight = product.result.getRank() == 2 || typeOf(product.rhs.data).getDimSize(0) == 1;
  if (oneRight)
    return reshapeTo(b, loc, build(b, loc, product, *formats), product.result);
  SmallVector<Value> results;
  for (int64_t batch = 0; batch < product.result.getDimSize(0); ++batch) {
    auto of = [&](Value tensor) {
      return tensor ? batchOf(b, loc, tensor, batch) : Value();
    };
    results.push_back(build(b, loc,
                            {{of(product.lhs.data), of(product.lhs.scales)},
                             {of(product.rhs.data), of(product.rhs.scales)},
                             product.alpha,
                             product.result},
                            *formats));
  }
  return reshapeTo(b, loc, tensor::ConcatOp::create(b, loc, 0, results), product.result);
}

FailureOr<Value> convertDequantization(OpBuilder &b, Operation *op, const ScaledOperand &operand,
                                       Type element) {
  RankedTensorType data = typeOf(operand.data), scales = typeOf(operand.scales);
  if (!isa<Float32Type, BFloat16Type, Float16Type>(element))
    return refuse(op, "dequantized values must be f32, bf16 or f16, but got " + spell(element),
                  "ask for one of these types and convert afterwards");
  if (data.getRank() != 2 || scales.getRank() != 2 || data.getDimSize(0) != scales.getDimSize(0))
    return refuse(op, "numbers must be a matrix whose rows have their own scales",
                  "collapse other dimensions to rows before");
  std::optional<Format> format = formatOf(data, scales);
  if (!format)
    return refuse(op,
                  Twine(kScaleTypes) + Twine(data.getDimSize(1)) + ", " +
                      Twine(scales.getDimSize(1)) + " blocks, and scales of " +
                      typesOf(data.getElementType(), scales.getElementType()),
                  kScaleRemedy);
  auto values = DequantizeOp::create(b, op->getLoc(), operand.data, operand.scales,
                                     /*amax=*/Value(), *format, element);
  if (numerics::hasE4M3Scales(blockFormat(*format))) // a scale alone is the factor
    values.setRecipeAttr(RecipeAttr::get(b.getContext(), *numerics::lookupRecipe("torchao_1level")));
  return Value(values);
}

} // namespace fp4::ingress
