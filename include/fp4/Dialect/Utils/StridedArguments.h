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
// A result with fp4.strided has such a buffer too, whose pitch its caller chooses
// (pipe.result_pitch). A lowering that can write such rows asks here for the memory; of any other
// the rows are copied.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp4 {

/// On a gpu.alloc, an i32: the memory is result number N of the function. finalize-host-buffers
/// writes it, or who places the rows of a strided result, and convert-host-to-runtime makes an
/// fp4rt_alloc_result of it.
inline constexpr llvm::StringLiteral kResultAttr = "fp4.result";

/// Returns true when `value` is an argument with fp4.strided.
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

/// The number of the result with fp4.strided that `tensor` is, if it is nothing else.
std::optional<unsigned> stridedResultOf(mlir::Value tensor);

/// The matrix that such a result is of `tensor`, with a row for its last two dimensions, if nothing
/// else reads the tensor: tensor.collapse_shape, or a matrix itself. Null where there is none.
mlir::Value stridedMatrixOf(mlir::Value tensor);

/// The memory of that result, whose type is a matrix, as a buffer of stridedBufferType. `rows` and
/// `columns` are those of the buffer, and may be null where they are static.
mlir::Value allocateStridedResult(mlir::OpBuilder &builder, mlir::Location loc,
                                  mlir::RankedTensorType type, unsigned number, mlir::Value rows,
                                  mlir::Value columns = {});

/// Bytes from one row of `buffer`, a matrix, to the next, as an i64.
mlir::Value pitchBytes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer);

} // namespace fp4
