//===- ElementLimit.h - Elements that kernels can count -------------------===//
#pragma once

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace fp4 {

/// Elements of a tensor at most: kernels number blocks of 16, and chunks of 8, with 32 bits.
inline constexpr uint64_t kMostElements = uint64_t(INT32_MAX) * 8;

/// The static sizes of `shape` multiplied, or the largest number where that is less.
inline uint64_t staticElements(llvm::ArrayRef<int64_t> shape) {
  uint64_t elements = 1;
  for (int64_t size : shape)
    if (!mlir::ShapedType::isDynamic(size))
      elements = llvm::SaturatingMultiply(elements, uint64_t(size));
  return elements;
}

} // namespace fp4
