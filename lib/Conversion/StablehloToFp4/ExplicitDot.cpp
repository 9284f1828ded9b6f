//===- ExplicitDot.cpp - Matmuls of dequantized numbers -------------------===//
//
//   stablehlo.dot_general(x, convert(data) * convert(reshape(broadcast_in_dim(scales))))
//
// A number of 4 or 8 bits by its scale is exact in bf16 and in f32, so such a matmul equals one of
// the numbers and their scales. The side of numbers and scales is multiplied as N x K, or as N x
// scale blocks x elements, and may be transposed before the matmul. The other side has the same
// form, or is of 16-bit floats.
//
//===----------------------------------------------------------------------===//
#include "Stablehlo.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::stablehlo;

static RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

static bool isNarrow(Type type) {
  return isa<Float4E2M1FNType, Float6E2M3FNType, Float6E3M2FNType, Float8E4M3FNType, Float8E5M2Type,
             Float8E8M0FNUType>(getElementTypeOrSelf(type));
}

//===----------------------------------------------------------------------===//
// Feeders
//===----------------------------------------------------------------------===//

static bool isFeeder(Operation *op) {
  constexpr StringLiteral names[] = {"stablehlo.transpose", "stablehlo.broadcast_in_dim",
                                     "stablehlo.convert", "stablehlo.reshape",
                                     "stablehlo.multiply"};
  return llvm::any_of(names, [&](StringRef name) { return is(op, name); });
}

SetVector<Operation *> stablehlo::feedersOf(Operation *op) {
  SetVector<Operation *> found;
  found.insert(op);
  for (size_t i = 0; i < found.size(); ++i)
    for (Value operand : found[i]->getOperands())
      if (isFeeder(operand.getDefiningOp()))
        found.insert(operand.getDefiningOp());
  return found;
}

bool stablehlo::isExplicitDot(Operation *op) {
  auto isBlockScaled = [](Type type) {
    return isa<Float4E2M1FNType, Float8E8M0FNUType>(getElementTypeOrSelf(type));
  };
  return is(op, "stablehlo.dot_general") &&
         llvm::any_of(feedersOf(op), [&](Operation *feeder) {
           return llvm::any_of(feeder->getOperandTypes(), isBlockScaled);
         });
}

//===----------------------------------------------------------------------===//
// Sides
//===----------------------------------------------------------------------===//

/// Returns true when a number by its scale is exact in this type.
static bool isExact(Type type, Type scales) {
  type = getElementTypeOrSelf(type);
  return type.isF32() || type.isBF16() || (type.isF16() && isa<Float8E4M3FNType>(scales));
}

/// Returns true when a conversion changes no number, no scale and no product of a number and its
/// scale.
static bool isExactConversion(Operation *op) {
  if (!is(op, "stablehlo.convert"))
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  bool fitsF16 = isNarrow(from) && !isa<Float8E8M0FNUType>(from);
  return to.isF32() || to.isBF16() || (to.isF16() && fitsF16);
}

/// The source of `value` before conversions that change nothing, for numbers, scales or products of
/// these.
static Value withoutConversions(Value value) {
  while (isExactConversion(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// `shape` with the last two dimensions as one.
static SmallVector<int64_t> merged(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(shape.drop_back());
  result.back() *= shape.back();
  return result;
}

/// The source of the numbers of `value`: through conversions, and through a reshape that takes the
/// last dimension apart.
static Value numbersOf(Value value) {
  value = withoutConversions(value);
  Operation *op = value.getDefiningOp();
  if (!is(op, "stablehlo.reshape"))
    return value;
  Value source = op->getOperand(0);
  RankedTensorType before = typeOf(source), after = typeOf(value);
  bool splits = before && after && before.hasStaticShape() && after.getRank() > 1 &&
                ArrayRef<int64_t>(merged(after.getShape())) == before.getShape();
  return splits ? withoutConversions(source) : value;
}

/// Returns true when `op` repeats each of the elements of a shape, or gives each a dimension of its
/// own.
static bool repeats(Operation *op, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (to.size() != from.size() + 1 || to.drop_back() != from)
    return false;
  if (is(op, "stablehlo.reshape"))
    return to.back() == 1;
  auto dims = dyn_cast_or_null<DenseI64ArrayAttr>(attributeOf(op, "broadcast_dimensions"));
  return is(op, "stablehlo.broadcast_in_dim") && dims &&
         llvm::equal(dims.asArrayRef(), llvm::seq<int64_t>(0, from.size()));
}

/// Returns true when `op` repeats the elements of a last dimension of one.
static bool widens(Operation *op, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  auto dims = dyn_cast_or_null<DenseI64ArrayAttr>(attributeOf(op, "broadcast_dimensions"));
  return is(op, "stablehlo.broadcast_in_dim") && dims && to.size() == from.size() &&
         from.back() == 1 && from.drop_back() == to.drop_back() &&
         llvm::equal(dims.asArrayRef(), llvm::seq<int64_t>(0, from.size()));
}

/// The scales that `value` repeats for the elements of their scale blocks; or null. `value` is rows
/// x scale blocks x elements, or rows x K.
static Value scalesOf(Value value) {
  bool mayMerge = true;
  value = withoutConversions(value);
  while (Operation *op = value.getDefiningOp()) {
    RankedTensorType after = typeOf(value);
    RankedTensorType before = op->getNumOperands() == 1 ? typeOf(op->getOperand(0)) : nullptr;
    if (!before || !after || !before.hasStaticShape() || !after.hasStaticShape() ||
        before.getRank() == 0)
      return {};
    Value source = withoutConversions(op->getOperand(0));
    ArrayRef<int64_t> from = before.getShape(), to = after.getShape();
    if (repeats(op, from, to))
      return source;
    bool merges = mayMerge && is(op, "stablehlo.reshape") && from.size() == to.size() + 1 &&
                  ArrayRef<int64_t>(merged(from)) == to;
    if (!merges && !widens(op, from, to))
      return {};
    mayMerge = false;
    value = source;
  }
  return {};
}

/// Numbers and scales whose product `value` is; nothing if it is none.
static std::optional<ingress::ScaledOperand> scaledOf(Value value) {
  value = numbersOf(value);
  if (Operation *op = value.getDefiningOp(); is(op, "stablehlo.reshape")) {
    Value source = op->getOperand(0); // rows x scale blocks x elements
    RankedTensorType before = typeOf(source), after = typeOf(value);
    bool merges = before && after && before.hasStaticShape() && before.getRank() > 1 &&
                  ArrayRef<int64_t>(merged(before.getShape())) == after.getShape();
    value = merges ? withoutConversions(source) : value;
  }
  Operation *product = value.getDefiningOp();
  if (!is(product, "stablehlo.multiply") || product->getNumOperands() != 2)
    return std::nullopt;
  for (unsigned of : {0, 1}) {
    Value data = numbersOf(product->getOperand(of)), scales = scalesOf(product->getOperand(1 - of));
    if (!scales || !isNarrow(data.getType()) || !isNarrow(scales.getType()))
      continue;
    if (isExact(product->getResult(0).getType(), getElementTypeOrSelf(scales)))
      return ingress::ScaledOperand{data, scales};
  }
  return std::nullopt;
}

/// The 16-bit floats of `value`, as they are or as f32.
static std::optional<ingress::ScaledOperand> floatsOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (is(op, "stablehlo.convert") && getElementTypeOrSelf(value).isF32())
    value = op->getOperand(0);
  Type element = getElementTypeOrSelf(value);
  bool isFloat = typeOf(value) && (element.isBF16() || element.isF16());
  return isFloat ? std::optional(ingress::ScaledOperand{value, Value()}) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// The matmul
//===----------------------------------------------------------------------===//

/// The numbers of `name = [0, 1]` in an attribute that is text.
static SmallVector<int64_t> numbersNamed(StringRef text, StringRef name) {
  SmallVector<int64_t> numbers;
  size_t at = text.find((name + " = [").str());
  if (at == StringRef::npos)
    return numbers;
  StringRef list = text.drop_front(at).split('[').second.split(']').first;
  SmallVector<StringRef> parts;
  list.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t number = -1;
    (void)part.trim().getAsInteger(10, number);
    numbers.push_back(number);
  }
  return numbers;
}

namespace {

struct DotNumbers {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsDepth, rhsDepth;
};

} // namespace

static DotNumbers dotNumbersOf(Operation *op) {
  std::string text;
  if (Attribute attribute = attributeOf(op, "dot_dimension_numbers"))
    llvm::raw_string_ostream(text) << attribute;
  return {numbersNamed(text, "lhs_batching_dimensions"),
          numbersNamed(text, "rhs_batching_dimensions"),
          numbersNamed(text, "lhs_contracting_dimensions"),
          numbersNamed(text, "rhs_contracting_dimensions")};
}

/// The right side with K last, or null.
static Value withDepthLast(Value rhs, ArrayRef<int64_t> depth) {
  const int64_t rank = typeOf(rhs).getRank();
  if (depth == ArrayRef<int64_t>{rank - 1})
    return rhs;
  Value plain = withoutConversions(rhs);
  return depth == ArrayRef<int64_t>{rank - 2} ? transposed(plain) : Value();
}

static LogicalResult refuseRight(Operation *op) {
  return ingress::refuse(
      op, "its right side is not numbers times scales that are repeated for their blocks",
      "write it as data * repeat(scales, block, axis=-1), both converted to bf16 or f32, with data of "
      "N x K and scales of N x K/block; or use jax.lax.scaled_dot");
}

static LogicalResult refuseLeft(Operation *op) {
  return ingress::refuse(op,
                         "its left side is neither of bf16 or f16 nor numbers times scales that are "
                         "repeated for their blocks",
                         "convert it to bf16, or quantize it");
}

FailureOr<ingress::ScaledMatmul> stablehlo::matchExplicitDot(OpBuilder &b, Operation *op) {
  DotNumbers numbers = dotNumbersOf(op);
  if (op->getNumOperands() != 2 || op->getNumResults() != 1 || !typeOf(op->getOperand(0)) ||
      !typeOf(op->getOperand(1)) || !typeOf(op->getResult(0)))
    return ingress::refuse(op, "its sides and its result must be ranked",
                           "export the program with static shapes");
  Value lhs = op->getOperand(0);
  Value rhs = withDepthLast(op->getOperand(1), numbers.rhsDepth);
  const int64_t rank = typeOf(lhs).getRank();
  const bool hasBatch = !numbers.lhsBatch.empty();
  const bool isBatched = numbers.lhsBatch == ArrayRef<int64_t>{0} &&
                         numbers.rhsBatch == ArrayRef<int64_t>{0} && rank == 3;
  if (!rhs || numbers.lhsDepth != ArrayRef<int64_t>{rank - 1} || (hasBatch && !isBatched) ||
      typeOf(rhs).getRank() != (hasBatch ? 3 : 2))
    return ingress::refuse(op,
                           "its dot_dimension_numbers must contract the last dimension of both "
                           "sides, or the one before the last of a transposed right side, with one "
                           "batch in front",
                           "move the axes in jax before the matmul, and keep weights as N x K");
  auto right = scaledOf(rhs), left = scaledOf(lhs);
  if (!left)
    left = floatsOf(lhs);
  if (!right)
    return refuseRight(op);
  if (!left)
    return refuseLeft(op);
  auto result = typeOf(op->getResult(0));
  if (hasBatch || rank == 2)
    return ingress::ScaledMatmul{*left, *right, /*alpha=*/Value(), result};
  if (!result.hasStaticShape())
    return ingress::refuse(op, "rows of several dimensions must have static sizes",
                           "collapse them with a reshape before the matmul");
  left->data = ingress::asMatrix(b, op->getLoc(), left->data);
  if (left->scales)
    left->scales = ingress::asMatrix(b, op->getLoc(), left->scales);
  int64_t columns = result.getShape().back();
  auto matrix = RankedTensorType::get({result.getNumElements() / columns, columns},
                                      result.getElementType());
  return ingress::ScaledMatmul{*left, *right, /*alpha=*/Value(), matrix};
}
