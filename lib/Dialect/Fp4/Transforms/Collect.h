//===- Collect.h - Operations of a kind -----------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace fp4 {

/// The operations of a kind in `root`, in program order: a pass may erase them one by one.
template <typename OpT> llvm::SmallVector<OpT> collect(mlir::Operation *root) {
  llvm::SmallVector<OpT> found;
  root->walk([&](OpT op) { found.push_back(op); });
  return found;
}

} // namespace fp4
