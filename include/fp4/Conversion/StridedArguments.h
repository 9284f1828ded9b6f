//===- StridedArguments.h - Rows that the caller of a program places ------===//
//
// An argument with fp4.strided has the buffer of its user with strides that are known at run time:
//
//   tensor                                 buffer
//   tensor<?x64xbf16>                      memref<?x64xbf16, strided<[?, 1]>>
//   tensor<?x64xf4E2M1FN>                  memref<?x32xi8, strided<[?, 1]>>
//   tensor<4x?x64xbf16>                    memref<4x?x64xbf16, strided<[?, ?, 1]>>
//
// A lowering that can read such rows asks here for the buffer and its strides. Any other takes the
// device buffer of the tensor, as ever, and fp4-finalize-host-buffers makes it: a copy without
// gaps. The entry point of a function checks that strides are multiples of 16 bytes
// (EntryPoints.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp4 {

/// Whether `value` is an argument with fp4.strided.
bool isStridedArgument(mlir::Value value);

/// The strided argument whose rows are those of the matrix `tensor`: itself, or a batch of matrices
/// that tensor.collapse_shape stacks. Null where there is none.
mlir::Value stridedRowsOf(mlir::Value tensor);

/// The buffer of an argument of this type with strides of its own.
mlir::MemRefType stridedBufferType(mlir::RankedTensorType type);

/// The buffer of a strided argument.
mlir::Value stridedBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value argument);

/// Rows of a strided argument, of all matrices of a batch, as an index.
mlir::Value stridedRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value argument);

/// Bytes from one index of `dimension` to the next, as an i64.
mlir::Value strideBytes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value argument,
                        unsigned dimension);

} // namespace fp4
