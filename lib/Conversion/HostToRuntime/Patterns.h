//===- Patterns.h - Pattern sets of convert-host-to-runtime ---------------===//
#pragma once

#include "KernelGlobals.h"

#include "llvm/ADT/StringRef.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace fp4 {

/// Adds patterns of gpu.alloc, dealloc, memset, memcpy, launch_func. `kernels` must outlive the
/// patterns.
void populateGpuPatterns(const mlir::LLVMTypeConverter &converter,
                         mlir::RewritePatternSet &patterns, const KernelResourcesMap &kernels);

/// Adds patterns of the pipe operations of the host: tensor maps, views of buffers, sizes, facts of
/// the device. Adds the conversions of their types to `converter`.
void populatePipeHostPatterns(mlir::LLVMTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

/// Attribute of a launch: the kernel may begin before the one before it has ended
/// (fp4-pdl-launches).
inline constexpr llvm::StringLiteral kDependentAttr = "fp4.dependent";

/// True for kernel operands whose converted value is the address of the kernel's parameter.
bool isPassedByAddress(mlir::Type type);

} // namespace fp4
