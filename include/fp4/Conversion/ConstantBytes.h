//===- ConstantBytes.h - Constant tensors as the bytes of their buffers ---===//
//
// `dense` and `dense_resource` hold logical elements in row-major order, whatever the layout of the
// type. The blob of a resource of f4E2M1FN is one byte per element, as MLIR has them, or two
// elements per byte and whole bytes per row, as buffers do; its size tells.
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

/// Whether `value` is a tensor that has a buffer, and its elements are there.
bool hasConstantBytes(mlir::ElementsAttr value);
/// The same; a diagnostic says why not.
mlir::LogicalResult
verifyConstant(mlir::ElementsAttr value,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// The bytes of `buffer`, the device buffer or the user buffer of the tensor that `value` is, which
/// hasConstantBytes. Padding is zero.
std::vector<uint8_t> constantBytes(mlir::ElementsAttr value, mlir::MemRefType buffer);

/// What the global of these bytes is called. Equal bytes have equal names, in host code and in
/// manifests.
std::string constantSymbol(llvm::ArrayRef<uint8_t> bytes);
inline constexpr llvm::StringLiteral kConstantPrefix = "fp4_data_";

/// That global in host code, made where `module` does not have it; whoever loads the code finds it.
mlir::LLVM::GlobalOp constantGlobal(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                    llvm::ArrayRef<uint8_t> bytes);

} // namespace fp4
