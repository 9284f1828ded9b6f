//===- ItemLaunch.h - Kernels of threads that have an item each -*- C++ -*-===//
//
// Small kernels before a GEMM make what its own kernel needs: a converted or a packed operand, or
// the table of its groups. A small kernel has no roles, and writes one buffer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fp4 {

/// Threads of a CTA of a kernel whose items follow one another in rows.
inline constexpr int64_t kItemThreads = 256;

/// An empty kernel in a module of its own, launched in CTAs of `threads`.
mlir::gpu::GPUFuncOp createItemKernel(mlir::RewriterBase &, BlockScaledMatmulOp,
                                      llvm::StringRef kind, mlir::TypeRange arguments,
                                      int64_t threads);

/// CTAs of kItemThreads for so many items of each row.
mlir::Value blocksOfRows(mlir::RewriterBase &, mlir::Location, mlir::Value rows,
                         mlir::Value itemsPerRow);
mlir::Value blocksOfRows(mlir::RewriterBase &, mlir::Location, mlir::Value rows,
                         int64_t itemsPerRow);

/// Launches `blocks` CTAs of a kernel of createItemKernel. The arguments are views of `inputs` and
/// of a new buffer, and as i32 the dynamic `sizes` of this buffer, its rows and columns, of which
/// those that are null do not count, and other `numbers`. Returns the buffer. The launch has the
/// attribute `overlap` (LaunchAttributes.h), if there is one.
mlir::Value launchItems(mlir::RewriterBase &, mlir::Location, mlir::gpu::GPUFuncOp kernel,
                        mlir::ValueRange inputs, mlir::Value blocks,
                        llvm::ArrayRef<mlir::Value> sizes = {}, llvm::StringRef overlap = {},
                        llvm::ArrayRef<mlir::Value> numbers = {});

/// The PDL attribute of a launch, as `plan` says; empty if it does not.
llvm::StringRef pdlOf(const KernelPlan &plan);
/// Returns the PDL attribute of a conversion before the GEMM of `plan`, which begins while the
/// conversion ends; empty: none.
llvm::StringRef pdlBefore(const KernelPlan &plan);

} // namespace fp4
