//===- Fp4Upgrade.h - Former spellings of the fp4 dialect -----------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace fp4 {

/// True if there is an operation of a former spelling in `root`.
bool hasLegacyOps(mlir::Operation *root);

/// Rewrites the operations of former spellings in `root`, fp4.blockscaled_matmul, at their
/// locations. An operation that the new spelling cannot say is reported there.
mlir::LogicalResult upgradeLegacyOps(mlir::Operation *root);

/// Gives attention of bytecode before version 6 an empty epilogue region, and sizes of its results:
/// elements, and maybe 'lse'.
void upgradeAttention(mlir::Operation *root);

/// Rewrites such operations after a warning at the first one, which says how to rewrite the text.
mlir::LogicalResult upgradeLegacyText(mlir::Operation *root);

} // namespace fp4
