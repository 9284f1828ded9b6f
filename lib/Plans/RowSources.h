//===- RowSources.h - Tensors that a row kernel reads -----------------------===//
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <string>
#include <tuple>

namespace fp4 {

/// The operation with its prologues.
llvm::SmallVector<mlir::Operation *> stepsOf(mlir::Operation *op);

/// Why few rows of `matrix`, those that `op` computes, may not have a plan of their own: they are
/// static, or written elsewhere. Empty: they may.
std::string whyOnePlan(mlir::Operation *op, mlir::RankedTensorType matrix);

/// A tensor of which a kernel reads the row of its result, and the expressions of its rows and
/// columns. Registers keep a tensor once for each pair of expressions (RowElements).
using RowSource = std::tuple<mlir::Value, mlir::AffineExpr, mlir::AffineExpr>;

/// Sources of `op` and its prologues, without what these compute.
llvm::SmallVector<RowSource> sourcesOf(mlir::Operation *op);

/// Words in memory of a chunk of `matrix`.
double wordsOfChunk(mlir::Value matrix);

/// Words that a thread keeps for a chunk of the row of `op`.
int64_t keptWordsOfChunk(mlir::Operation *op);

/// Words that a thread keeps for a chunk of `rows` rows that follow each other. Heads have the
/// angles of their token together, and what a rotation reads of the other half is its own.
int64_t keptWordsOfChunk(mlir::Operation *op, int64_t rows);

/// Words of a chunk of rows that all rows share, such as weights, and that are read for several
/// reductions, or for one and the result: ptxas keeps them in between.
int64_t sharedWordsOfChunk(mlir::Operation *op);

/// Returns true when a quantizer needs a number of the whole row.
bool needsRow(mlir::Operation *op);

/// Returns true when a quantizer gives each row one scale in fp32.
bool hasScaleOfRow(mlir::Operation *op);

/// Exponentials that are an instruction take less than exact ones.
enum class Exponentials { Any, Exact };

/// Returns true when an element takes such an exponential.
bool takesExponentials(mlir::Operation *op, Exponentials which);

/// Returns true for the last reduction of a row whose elements take approximate exponentials.
bool sumsApproximations(mlir::Operation *op);

/// Returns true when rows of a matrix are gathered.
bool readsGather(mlir::Operation *op);

/// Returns true when a quantizer reads the words of one matrix of bf16 at most.
bool quantizesOneMatrix(mlir::Operation *op);

} // namespace fp4
