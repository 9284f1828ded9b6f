//===- TensorSizes.cpp - Sizes that are those of other tensors ------------===//
#include "fp4/Dialect/Utils/TensorSizes.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;

namespace {

/// A size of a program: a constant, a number, or the size of a dimension of a tensor that is no
/// view.
struct Size {
  std::optional<int64_t> constant = {};
  Value value = {};
  int64_t dim = 0;

  bool operator==(const Size &) const = default;
};

Size sizeOf(Value tensor, int64_t dim);

Size sizeOf(OpFoldResult number) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return {.constant = constant};
  auto value = cast<Value>(number);
  auto size = value.getDefiningOp<tensor::DimOp>();
  std::optional<int64_t> dim = size ? size.getConstantIndex() : std::nullopt;
  auto type = size ? dyn_cast<RankedTensorType>(size.getSource().getType()) : RankedTensorType();
  return dim && type && *dim >= 0 && *dim < type.getRank() ? sizeOf(size.getSource(), *dim)
                                                           : Size{.value = value};
}

/// The size of a dimension of a view, or of a result, is that which its operation was given.
Size sizeOf(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return {.constant = type.getDimSize(dim)};
  Operation *op = tensor.getDefiningOp();
  if (auto expand = dyn_cast_if_present<tensor::ExpandShapeOp>(op))
    return sizeOf(expand.getMixedOutputShape()[dim]);
  if (auto empty = dyn_cast_if_present<tensor::EmptyOp>(op))
    return sizeOf(empty.getMixedSizes()[dim]);
  if (auto slice = dyn_cast_if_present<tensor::ExtractSliceOp>(op);
      slice && slice.getSourceType().getRank() == type.getRank())
    return sizeOf(slice.getMixedSizes()[dim]);
  if (auto computed = dyn_cast_if_present<DestinationStyleOpInterface>(op))
    return sizeOf(computed.getTiedOpOperand(cast<OpResult>(tensor))->get(), dim);
  return {.value = tensor, .dim = dim};
}

} // namespace

bool fp4::takesAll(tensor::ExtractSliceOp slice, int64_t dim) {
  bool isFromStart = slice.getStaticOffsets()[dim] == 0 && slice.getStaticStrides()[dim] == 1;
  return isFromStart && sizeOf(slice.getMixedSizes()[dim]) == sizeOf(slice.getSource(), dim);
}
