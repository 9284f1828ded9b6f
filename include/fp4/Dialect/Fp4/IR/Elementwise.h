//===- Elementwise.h - Elementwise bodies of upstream operations ----------===//
//
// Scalar operations of arith and math that may stand in an elementwise region: a linalg.generic
// that becomes a kernel, or the epilogue of a matmul. The header also declares the numerics program
// of such a region. Numbers are f32, bf16 and f16, comparisons i1, and integers i32.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Elementwise.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>
#include <string>

namespace fp4 {

/// f32, bf16 or f16.
bool isElementType(mlir::Type type);
/// i1, the type of comparisons, and i32. The kernel that computes such values also reads them, and
/// no memory has them.
bool isKernelOnlyType(mlir::Type type);
/// A tensor that is one condition or integer: a number of a region, which needs no memory.
bool isKernelOnlySplat(mlir::Operation *op);
/// Returns true for a math.exp that may be approximate (`afn`): the instruction for powers of two
/// computes it on every target.
bool isApproximateExp(mlir::Operation *op);
/// f32, bf16 or f16, and f8E4M3FN, which arith.truncf gives at the end.
bool isResultType(mlir::Type type);

/// The step that one operation is, on numbers or on tensors of them; none where there is none.
std::optional<numerics::ElementOp> elementOpOf(mlir::Operation *op);

/// "arith.addf, arith.subf, ...": the operations that have a step.
std::string elementwiseOperations();

/// Returns the reason why `body` is no elementwise program of its first `inputs` arguments; empty
/// when `body` is one. Captured values must be arith.constant, and further arguments must not be
/// used; `combining`, an operation of the body, may use the next argument.
std::string whyNotElementwise(mlir::Block &body, unsigned inputs,
                              mlir::Operation *combining = nullptr);

/// Returns true for an operation of an epilogue region that is no elementwise step: it gives codes
/// and scales, or an amax.
bool isEpilogueOp(mlir::Operation *op);

/// The values that an elementwise region gives: what its terminator yields, and of an epilogue
/// region the element alone.
llvm::SmallVector<mlir::Value> elementwiseResults(mlir::Block &body);

/// The program of a region for which whyNotElementwise is empty. Behind its arguments it has an
/// input for each loop that the region reads, in ascending order.
numerics::ElementProgram elementProgramOf(mlir::Block &body, unsigned inputs);
/// The program of `results` alone, which are values of the region or constants.
numerics::ElementProgram elementProgramOf(mlir::Block &body, unsigned inputs,
                                          mlir::ValueRange results);
/// The program of one operation on tensors, which has a step.
numerics::ElementProgram elementProgramOf(mlir::Operation *op);

/// Why a linalg operation on tensors is not elementwise with rows and columns: every loop is
/// parallel, results are indexed by loops in their order, inputs likewise or by expressions
/// (IndexExpressions.h), and the body is a program. Empty where it is one.
std::string whyNotElementwise(mlir::linalg::LinalgOp op);

/// Returns the reason why the loops of a linalg operation do not find the elements of an input in
/// order; empty where they do.
std::string whyNotIndexed(mlir::linalg::LinalgOp op, mlir::OpOperand *input);

/// Why memory does not have the operands and results of such an operation: they may be conditions.
/// The kernel reads inputs of `others` in a way of its own.
std::string whyNotInMemory(mlir::linalg::LinalgOp op,
                           llvm::ArrayRef<mlir::OpOperand *> others = {});

/// An operand's dimension that no dimension of the result indexes: it has size 1, and index 0.
inline constexpr unsigned kSameForAll = ~0u;

/// The dimensions of the result, in order, that index operand `input` of such an operation; or
/// kSameForAll.
llvm::SmallVector<unsigned> dimensionsOf(mlir::linalg::LinalgOp op, unsigned input);

} // namespace fp4
