//===- KernelChoice.h - Which conversion makes the kernel of an operation -===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// A transform of the quantizer runs on the tensor core: its kernel has tiles and roles
/// (convert-fp4-to-pipe) and does not stream (convert-fp4-to-gpu).
inline bool transformsOnTensorCore(QuantizeOp op) {
  auto onTensorCore = [](std::optional<HadamardAttr> transform) {
    return transform && transform->getArithmetic() == HadamardArithmetic::TensorCore;
  };
  return onTensorCore(op.getHadamard()) || onTensorCore(op.getColumnwiseHadamard());
}

} // namespace fp4
