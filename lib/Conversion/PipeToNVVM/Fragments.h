//===- Fragments.h - Fragments in the frame of a thread -------------------===//
//
// What the patterns of ops on fragments share (Fragments.cpp, Promotion.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "Lowering.h"

namespace fp4 {

/// Thread of the role around the op.
Int32 threadOfRole(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, const KernelState &state);

/// The first of the two rows, 8 apart, that thread `thread` of a role has in a fragment: of the rows
/// of all warpgroups of the role, 64 each.
Int32 rowOfThread(Int32 thread);

/// `count` elements of a fragment from `first` on, and all of them from the first.
llvm::SmallVector<mlir::Value> loadElements(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment,
                                            int64_t first, int64_t count);
void storeElements(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment, mlir::ValueRange elements);

/// i64, what wgmma knows a K-major tile by whose rows have 128 bytes under a swizzle of 128.
mlir::Value wgmmaDescriptor(mlir::ImplicitLocOpBuilder &b, mlir::Value tile);

} // namespace fp4
