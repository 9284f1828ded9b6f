//===- RuntimeCalls.h - Building calls of the runtime's C ABI -------------===//
//
// The functions of include/fp4-c/Runtime.h by name and type, and the layout of its fp4rt_module.
// Everything is created in the LLVM dialect; device and host pointers are both !llvm.ptr.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace fp4 {

/// The functions of the C ABI that compiled host code calls.
enum class RuntimeFunction {
  Alloc,
  AllocResult,
  Constant,
  Counters,
  Free,
  Memset,
  Memcpy2D,
  TensorMap,
  SmCount,
  ExpectSize,
  Launch,
  LaunchDependent,
  LaunchCooperative,
  LaunchClusters,
  GroupReport,
  ResultPitch,
  Call,
};

/// Calls `function` at the builder's insertion point; the declaration is added to `module` on first
/// use. The value is null for functions without a result.
mlir::Value callRuntime(mlir::OpBuilder &builder, mlir::Location loc, mlir::ModuleOp module,
                        RuntimeFunction function, mlir::ValueRange operands);

/// The address of a constant NUL-terminated string; equal strings of one `purpose` share a global.
mlir::Value stringAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::ModuleOp module,
                          llvm::StringRef purpose, llvm::StringRef text);

/// {name, target, ptx, ptx_size, cubin, cubin_size}: fp4rt_module.
mlir::LLVM::LLVMStructType runtimeModuleType(mlir::MLIRContext *context);

/// Symbol of the fp4rt_module of a gpu.binary.
std::string runtimeModuleSymbol(llvm::StringRef binaryName);

/// An integer constant of `bits` bits.
mlir::Value constantInt(mlir::OpBuilder &builder, mlir::Location loc, unsigned bits, int64_t value);

} // namespace fp4
