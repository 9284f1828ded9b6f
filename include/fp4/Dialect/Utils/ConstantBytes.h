//===- ConstantBytes.h - Constant tensors as the bytes of their buffers ---===//
//
// `dense` and `dense_resource` hold logical elements in row-major order in every layout of the
// type. The blob of a resource of f4E2M1FN has one byte per element, as in MLIR, or two elements
// per byte and whole bytes per row, as in buffers; its size tells which.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fp4 {

/// Returns true when `value` is a tensor with a buffer whose elements are known.
bool hasConstantBytes(mlir::ElementsAttr value);
/// Does the same, and emits a diagnostic that says why not.
mlir::LogicalResult
verifyConstant(mlir::ElementsAttr value,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// The bytes of `buffer`, which is the device buffer or the user buffer of the tensor `value`;
/// hasConstantBytes(value) must hold. Padding is zero.
std::vector<uint8_t> constantBytes(mlir::ElementsAttr value, mlir::MemRefType buffer);

/// The name of the global that holds these bytes. Equal bytes have equal names, in host code and in
/// manifests.
std::string constantSymbol(llvm::ArrayRef<uint8_t> bytes);
inline constexpr llvm::StringLiteral kConstantPrefix = "fp4_data_";

/// The global of that name in host code, created if `module` does not have it.
mlir::LLVM::GlobalOp constantGlobal(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                    llvm::ArrayRef<uint8_t> bytes);

} // namespace fp4
