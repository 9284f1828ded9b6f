//===- Prologue.h - Operations that the kernels of their readers compute --===//
//
// A linalg.generic with the attribute `fp4.prologue` becomes no kernel. The kernels of its readers
// load its inputs and compute its result, and no memory has it. With the value "stored", the first
// of these kernels stores the result beside its own, and every later reader loads it. With the
// value "beside", no reader computes it, but the first kernel that computes an operand of it stores
// it. fp4-fuse writes the attribute; the operation keeps its meaning, so a pass that does not know
// it may ignore it.
//
// An fp4.amax of rows with the attribute is computed by the kernel of the quantizer that reads it,
// which stores it where something behind it reads it, too.
//
// An fp4.top_k with the attribute is computed by the kernel of the first operation that needs its
// values: a linalg.generic on the k columns, or one whose prologues are on these. The kernel stores
// what is read behind it.
//
// A prologue is an elementwise operation on a matrix, a reduction of each of its rows
// (RowReduction.h), or an elementwise operation on the numbers that rows have. A kernel whose
// prologues need a whole row, or are stored, is a row kernel: a team of threads has a row.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <string>

namespace fp4 {

/// A unit attribute of linalg.generic, fp4.amax or fp4.top_k, or of linalg.generic a string.
inline constexpr llvm::StringLiteral kPrologueAttr = "fp4.prologue", kStoredPrologue = "stored",
                                     kBesidePrologue = "beside";

/// The operation that computes `tensor` in the kernels of its readers; null where memory has it.
mlir::linalg::GenericOp prologueOf(mlir::Value tensor);
/// Returns true where a kernel stores the result of the prologue `op` too.
bool isStored(mlir::linalg::GenericOp op);
/// Returns true for a stored prologue that no reader computes.
bool isBeside(mlir::Operation *op);

/// The operations that the kernel of `op` computes, producers first: the prologues behind its
/// operands, but for those that an earlier kernel stores, and those beside them.
llvm::SmallVector<mlir::linalg::GenericOp> prologuesOf(mlir::Operation *op);
/// The first operation of the block whose kernel can compute the prologue `op`; null: none.
mlir::Operation *firstKernelOf(mlir::Operation *op);
/// The operation whose kernel computes `op`, a prologue or the last operation of its own kernel.
mlir::Operation *kernelOf(mlir::Operation *op);
/// The fp4.top_k with the attribute that the kernel of `op` computes; null where there is none.
TopKOp topKOf(mlir::Operation *op);
/// Returns the reason why no kernel computes `op`, an fp4.top_k with the attribute, for its
/// readers; empty where one does.
std::string whyNotBefore(TopKOp op);
/// Returns true when `user`, perhaps in a region, runs behind `op`.
bool isBehind(mlir::Operation *user, mlir::Operation *op);
/// Returns true when the prologue `op` has the rows of `root` and, where it has columns, the same.
bool hasRowsOf(mlir::linalg::GenericOp op, mlir::Operation *root);
/// Returns true for an operation with a kernel of its own in which a team of threads has a row.
bool isRowKernel(mlir::Operation *op);
/// Returns the reason why no row kernel has `op` as its last operation; empty where one can.
std::string whyNotRowKernel(mlir::Operation *op);

/// The amax of each row that the row kernel of `quantize` computes too: of the same elements, and
/// everything else that reads it is behind `quantize`. Null where there is none.
AmaxOp amaxOfRows(QuantizeOp quantize);
/// The candidate for such an amax, where `quantize` has a row kernel.
AmaxOp ownAmaxOfRows(QuantizeOp quantize);
/// The quantizer whose candidate `amax` is; null where there is none.
QuantizeOp quantizerOfRows(AmaxOp amax);
/// The amax of the whole input of `quantize`, which a row kernel before that of `quantize` may
/// compute. Null where there is none.
AmaxOp amaxOfTensor(QuantizeOp quantize);

/// Why no kernel of a reader can compute `op`; empty where one can.
std::string whyNotPrologue(mlir::linalg::GenericOp op);

/// Returns the reason why a linalg.generic that computes its operand `use` by rows does not read a
/// matrix by rows and columns, or the numbers of rows by rows; empty where it does.
std::string whyNotIndexedByRows(mlir::OpOperand &use);

/// Returns the reason why the operation that has the operand `use`, the result of a prologue, does
/// not compute the prologue; empty where it does.
std::string whyNotReader(mlir::OpOperand &use);

/// Returns true where an input is integers (i32), one for each row, which kernels by rows load.
bool readsIntegersOfRows(mlir::linalg::GenericOp op);

/// The input that tells the rows of an operation: the first one that has an element for each of the
/// result, or of the matrix that is reduced; of an operation that reads other columns
/// (IndexExpressions.h), the first one that is read by its rows. Null where there is none.
mlir::Value rowsInputOf(mlir::linalg::GenericOp op);
/// The type of the matrix whose rows a kernel of `op` would have; null where no operand has it.
mlir::RankedTensorType matrixOf(mlir::Operation *op);
/// The type of the matrix with the most columns in the kernel of `op`: that of an fp4.top_k is
/// wider than what is behind it.
mlir::RankedTensorType widestMatrixOf(mlir::Operation *op);

/// Returns true for a tensor that has one number for each row of a matrix: M, or M x 1.
bool isNumbersOfRows(mlir::Type type);

} // namespace fp4
