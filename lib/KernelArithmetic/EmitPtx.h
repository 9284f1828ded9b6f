//===- EmitPtx.h - Inline PTX of the LLVM dialect --------------------------===//
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp4::ptx {

/// Inline PTX `text`, whose result and operands have `constraints`.
mlir::LLVM::InlineAsmOp emit(mlir::OpBuilder &, mlir::Location, mlir::Type result,
                             mlir::ValueRange operands, llvm::StringRef text,
                             llvm::StringRef constraints, bool hasSideEffects = true);

/// The fields of a struct that an instruction with several results gives.
llvm::SmallVector<mlir::Value> fieldsOf(mlir::OpBuilder &, mlir::Location, mlir::Value results,
                                        int64_t count);

/// `text` through which `registers`, all i32 or all f32, flow: read-write operands, which are its
/// results.
llvm::SmallVector<mlir::Value> emitThrough(mlir::OpBuilder &, mlir::Location,
                                           mlir::ValueRange registers, llvm::StringRef text,
                                           bool hasSideEffects);

} // namespace fp4::ptx
