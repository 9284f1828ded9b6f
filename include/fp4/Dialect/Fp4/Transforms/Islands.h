//===- Islands.h - fp4 inside of the programs of other compilers ----------===//
//
// The parts of fp4-outline-islands: the choice of operations that go to the fp4 compiler together,
// and the form in which everybody else sees tensors that only fp4 knows. docs/guides/embed.md leads a
// host compiler through them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"

namespace fp4 {

/// The module, nested in that of the host, which has the functions of all islands.
inline constexpr llvm::StringLiteral kIslandsModule = "fp4_islands";

/// Takes the module of the islands out of `host`, as a program for fp4::Compiler. Null if there is
/// none, because the host has no fp4 operation.
mlir::OwningOpRef<mlir::ModuleOp> takeIslands(mlir::ModuleOp host);

/// Returns true when the elements of `type` lie in memory otherwise than its shape says: two to a
/// byte, or in the tiles of a scale layout. Only fp4 finds them, so the host handles bytes.
bool hasOwnStorage(mlir::Type type);

/// The tensor of the bytes of `type`, with the shape of its buffer at function boundaries
/// (fp4/Dialect/Utils/BufferTypes.h); `type` itself unless hasOwnStorage. Null where there is no dense
/// buffer.
mlir::RankedTensorType storageType(mlir::RankedTensorType type);

/// Operations of one block that become one function, in their order.
using Island = llvm::SmallVector<mlir::Operation *>;

/// The largest islands of `block`: connected fp4 operations, such that no other operation needs one
/// of them and is needed by another. Views of tensors that only fp4 can store belong to them. No
/// island needs a later one.
llvm::SmallVector<Island> findIslands(mlir::Block &block);

/// Gives every tensor with a storage of its own the type of its storage, across functions, calls,
/// branches and loops of `module`. Reports operations that compute on such tensors.
mlir::LogicalResult convertToStorage(mlir::ModuleOp module);

} // namespace fp4
