//===- RowNumbers.h - Rows that are gathered and scattered ----------------===//
//
// Kernels by rows read rows of a matrix by their numbers, and write them so: tokens of an expert, a
// table of cosines by position, the slots of a cache.
//
//   %y = tensor.gather %x[%rows] gather_dims([0])                 row i of y is row rows[i] of x
//   %c = tensor.scatter %y into %e[%rows] scatter_dims([0]) unique
//                                                                 row rows[i] of c is row i of y
//
// Row numbers are a tensor of M x 1 i64. A gather has zeros for a negative number. A scatter writes
// into a tensor.empty, whose other rows stay what the memory of the result has: a caller gives the
// cache as this memory. Rows with a negative number are skipped.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <string>

namespace fp4 {

/// The gather for which `tensor` stands; null where memory has it.
mlir::tensor::GatherOp gatherOf(mlir::Value tensor);
/// Why no kernel reads the rows of a gather; empty where one does.
std::string whyNotGather(mlir::tensor::GatherOp op);

/// The scatter that alone reads `result`, an operation's result; null where there is none.
mlir::tensor::ScatterOp scatterOf(mlir::Value result);
/// Returns true where a result of `op` is scattered.
bool isScattered(mlir::Operation *op);
/// Returns the reason why no kernel scatters its result by `op`; empty where one does.
std::string whyNotScatter(mlir::tensor::ScatterOp op);

} // namespace fp4
