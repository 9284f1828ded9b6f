//===- Remedy.h - Errors that say what helps ------------------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"

namespace fp4 {

/// The error with a note that says what its reader can do.
inline mlir::InFlightDiagnostic withNote(mlir::InFlightDiagnostic &&error,
                                         const llvm::Twine &remedy) {
  error.attachNote() << remedy;
  return std::move(error);
}

} // namespace fp4
