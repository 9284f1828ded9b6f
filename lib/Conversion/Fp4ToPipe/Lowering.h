//===- Lowering.h - Common part of the patterns ---------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

class QuantizeOp;

/// A `gpu.module @<function>_<kind>_<n>` with the first free n, at the end of `module`.
mlir::gpu::GPUModuleOp createKernelModule(mlir::RewriterBase &rewriter, mlir::ModuleOp module,
                                          mlir::Operation *op, llvm::StringRef kind);

/// Quantizers of family tile_transform; all others are legal.
void populateTransformPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

/// Attention of family tile_attention.
void populateAttentionPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

} // namespace fp4
