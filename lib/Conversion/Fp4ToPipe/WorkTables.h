//===- WorkTables.h - Tables of the works of a GEMM -----------------------===//
#pragma once

#include "GemmKernel.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// Sets what `gemm`, of which the tile is known, says of the groups of `op`.
void setGroups(Gemm &gemm, BlockScaledMatmulOp op);

/// The list of tiles of scales as the scales of a matrix of `rows`, whole scale tiles of each
/// group.
mlir::Value scalesOfGroups(mlir::OpBuilder &builder, mlir::Location loc, const Gemm &gemm,
                           mlir::Value tiles, int64_t rows);

/// The buffer of the table of the groups of `op`: a constant, or where the device buffer `offsets`
/// has the rows of groups what a kernel of its own makes of it, which also checks them; all
/// together have `rows`, an index. A kernel that searches the offsets gets these.
mlir::Value tableOfGroups(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value offsets,
                          mlir::Value rows, const Gemm &gemm);

/// Adds the arguments of a kernel of groups: their table, and for a kernel that searches the
/// offsets memory for what it finds wrong with them.
void addGroups(mlir::RewriterBase &rewriter, BlockScaledMatmulOp op, mlir::Value table,
               const Gemm &gemm, KernelArguments &args);

/// `words` as a constant buffer of the table of `gemm`.
mlir::Value constantTable(mlir::OpBuilder &builder, mlir::Location loc,
                          llvm::ArrayRef<int32_t> words, const Gemm &gemm);

/// Sets what `gemm`, of which the tile is known, says of the works of `stream`.
void setStream(Gemm &gemm, const numerics::StreamK &stream);

/// The table of works as an argument of the kernel, a constant.
mlir::Value tableOfStream(mlir::OpBuilder &builder, mlir::Location loc, const Gemm &gemm);

} // namespace fp4
