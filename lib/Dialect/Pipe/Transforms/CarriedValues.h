//===- CarriedValues.h - Values that loops carry ---------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace fp4::pipe {

/// Lets loops (scf.for) in `root` no longer carry the values that nothing needs but their own next
/// ones. `isGone` says which operations need nothing, because they will be erased.
void freeCarriedValues(mlir::Operation *root, llvm::function_ref<bool(mlir::Operation *)> isGone);

} // namespace fp4::pipe
