//===- Strided.h - Buffers whose rows their caller places -----------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fp4 {

/// Attribute of an argument or result of a function: the caller chooses the strides of the rows at
/// each call, multiples of 16 bytes. Without the attribute rows follow each other
/// (docs/reference/semantics.md).
inline constexpr llvm::StringLiteral kStridedAttr = "fp4.strided";

} // namespace fp4
