//===- Listing.h - Listings of a program for the explorer -----------------===//
#pragma once

#include "fp4/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// The text of `module`, and the lines of `file` that each of its lines has as its place.
Listing listModule(mlir::ModuleOp module, llvm::StringRef file);

/// Gives every operation the line that it has in the text of `module`, which is `file`, as its
/// place.
void placeInOwnText(mlir::ModuleOp module, llvm::StringRef file);

/// Kernels in the pipelined form as a JSON array: warp roles, channels, and the owners of bytes of
/// shared memory and columns of tensor memory. Compiler::memoryMap has the members.
std::string describeMemory(mlir::ModuleOp module);

} // namespace fp4
