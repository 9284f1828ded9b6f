//===- Lowering.h - What the patterns of this conversion share ------------===//
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

/// Reports why a quantizer whose transform is to run on the tensor core has no kernel on `target`.
mlir::LogicalResult checkTransform(QuantizeOp op, const hw::TargetModel &target);

/// Quantizers that transform on the tensor core; all others are legal.
void populateTransformPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns, const hw::TargetModel &target);

} // namespace fp4
