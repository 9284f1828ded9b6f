//===- Lowering.h - Common part of the patterns ---------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

class QuantizeOp;
struct KernelPlan;

/// A `gpu.module @<function>_<kind>_<n>` with the first free n, at the end of `module`.
mlir::gpu::GPUModuleOp createKernelModule(mlir::RewriterBase &rewriter, mlir::ModuleOp module,
                                          mlir::Operation *op, llvm::StringRef kind);

/// Launches `kernel`, whose CTAs share `works` by the schedule of `plan`: as many as there are, or
/// as fit on the GPU at once.
void launchPersistent(mlir::OpBuilder &b, mlir::Location loc, mlir::gpu::GPUFuncOp kernel,
                      const KernelPlan &plan, int64_t works, const hw::TargetModel &target,
                      mlir::ValueRange arguments);

/// Quantizers of family tile_transform; all others are legal.
void populateTransformPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

/// Attention of family tile_attention.
void populateAttentionPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

/// Gradients of attention.
void populateBackwardPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

} // namespace fp4
