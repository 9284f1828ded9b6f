//===- Fp4Dialect.cpp - Registration, attributes, format facts ------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.cpp.inc"
#include "fp4/Dialect/Fp4/IR/Fp4Enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.cpp.inc"

void Fp4Dialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Ops.cpp.inc"
      >();
}

FloatType fp4::scaleType(MLIRContext *context, Format format) {
  if (format == Format::NVFP4)
    return Float8E4M3FNType::get(context);
  return Float8E8M0FNUType::get(context);
}

bool fp4::isScaleElementType(Type type) { return isa<Float8E4M3FNType, Float8E8M0FNUType>(type); }

std::optional<ScaleLayout> fp4::scaleLayout(RankedTensorType type) {
  if (auto layout = dyn_cast_or_null<ScaleLayoutAttr>(type.getEncoding()))
    return layout.getValue();
  return std::nullopt;
}

RankedTensorType fp4::withScaleLayout(RankedTensorType type, std::optional<ScaleLayout> layout) {
  Attribute encoding;
  if (layout)
    encoding = ScaleLayoutAttr::get(type.getContext(), *layout);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

LogicalResult ScaleLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              function_ref<InFlightDiagnostic()> emitError) const {
  if (!isScaleElementType(elementType)) // scale_layout (C1)
    return emitError() << "scale layout " << *this
                       << " expects elements of type f8E4M3FN or f8E8M0FNU, but got "
                       << elementType;
  if (shape.size() != 2) // scale_layout (C2)
    return emitError() << "scale layout " << *this << " expects 2 dimensions, but got "
                       << shape.size();
  return success();
}
