//===- KernelForm.h - Forms of a kernel on its way down -------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fp4::pipe {

/// Returns true when `op` belongs to one role: an engine executes it, it is at an end of a channel,
/// or it takes work that is requested.
bool belongsToRole(mlir::Operation *op);

/// Fails where such an op is outside of all roles: the kernel is in the sequential form, or is
/// none.
llvm::LogicalResult verifyInRoles(mlir::gpu::GPUFuncOp kernel);

/// The CTAs that an SM holds at a time, as the kernel's attribute nvvm.minctasm says; else one.
int64_t ctasPerSm(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4::pipe
