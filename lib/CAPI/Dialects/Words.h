//===- Words.h - Enumerators that a C program names ------------------------===//
#pragma once

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace fp4::capi {

/// The enumerator that `word` names, as `symbolize` reads it. An unknown one is an error at
/// `location`, whose note lists those that exist; `what` is what they are, "layout".
template <typename Enum>
std::optional<Enum> findWord(MlirLocation location, llvm::StringRef what, MlirStringRef word,
                             std::optional<Enum> (*symbolize)(llvm::StringRef)) {
  if (std::optional<Enum> value = symbolize(unwrap(word)))
    return value;
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(unwrap(location));
  diagnostic << "unknown " << what << " '" << unwrap(word) << "'";
  mlir::Diagnostic &note = diagnostic.attachNote() << "known " << what << "s: ";
  for (uint32_t i = 0; !stringifyEnum(static_cast<Enum>(i)).empty(); ++i)
    note << (i ? ", " : "") << stringifyEnum(static_cast<Enum>(i));
  return std::nullopt;
}

} // namespace fp4::capi
