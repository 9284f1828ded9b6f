//===- Fp4Dialect.h - The fp4 dialect: attributes, operations -------------===//
//
// Include this to create or match fp4 operations. Fp4Ops.td is the documentation of each; the
// facts about a format that several places need are the inline functions below.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h.inc"
#include "fp4/Dialect/Fp4/IR/Fp4Enums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.h.inc"

namespace fp4 {

/// Elements of the contraction axis that share one scale.
inline int64_t blockSize(Format format) { return format == Format::NVFP4 ? 16 : 32; }

/// Element type of the block scales.
mlir::FloatType scaleType(mlir::MLIRContext *context, Format format);

/// The format that defines `recipe`.
inline Format formatOf(Recipe recipe) {
  return recipe == Recipe::TransformerEngine || recipe == Recipe::TransformerEngine213
             ? Format::NVFP4
             : Format::MXFP4;
}

/// True for f8E4M3FN and f8E8M0FNU, the element types of block scales.
bool isScaleElementType(mlir::Type type);

/// The layout of a scale tensor; nothing when it is row-major.
std::optional<ScaleLayout> scaleLayout(mlir::RankedTensorType type);

/// `type` with the given layout, or row-major when there is none.
mlir::RankedTensorType withScaleLayout(mlir::RankedTensorType type,
                                       std::optional<ScaleLayout> layout);

} // namespace fp4

#define GET_OP_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Ops.h.inc"
