//===- KernelGlobals.h - gpu.binary to fp4rt_module -----------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/DenseMap.h"

namespace fp4 {

/// Creates the constant fp4rt_module of `binary` before it. Fails, with a diagnostic, when there is
/// no PTX in it.
mlir::LogicalResult convertKernelBinary(mlir::gpu::BinaryOp binary, mlir::ModuleOp module);

/// (gpu.binary, kernel) to the kernel's entry in the binary's kernel table.
using KernelResourcesMap =
    llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, mlir::gpu::KernelMetadataAttr>;
KernelResourcesMap collectKernels(mlir::ModuleOp module);

} // namespace fp4
