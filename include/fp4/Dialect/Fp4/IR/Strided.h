//===- Strided.h - Buffers whose rows their caller places -----------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fp4 {

/// On an argument or result of a function: its rows have strides that the caller chooses at each
/// call, multiples of 16 bytes. Without it they follow each other (docs/reference/semantics.md).
inline constexpr llvm::StringLiteral kStridedAttr = "fp4.strided";

} // namespace fp4
