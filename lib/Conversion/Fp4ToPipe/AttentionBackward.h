//===- AttentionBackward.h - The kernels of fp4.attention_backward --------===//
#pragma once

#include "TileBuilder.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"

namespace fp4 {

/// An fp4.attention_backward, and the tiles of its plan.
struct AttentionBackward {
  AttentionBackward(AttentionBackwardOp op, const KernelPlan &plan)
      : op(op), plan(plan), rows(plan.tile[0]), queries(plan.tile[1]), keys(plan.tile[2]) {}

  AttentionBackwardOp op;
  const KernelPlan &plan;
  int64_t rows;          ///< of a tile
  int64_t queries, keys; ///< of a block that a tile of the other ones passes over

  /// Rows of which each head of a sequence has two numbers: those of queries, and others up to the
  /// end of the last tile or block.
  int64_t paddedQueries() const;
  /// Numbers of one kind (AttentionTotals.cpp).
  int64_t numbers() { return op.getBatches() * op.getHeads() * paddedQueries(); }

  bool isPacked() { return op.isPacked(); }
  /// The first number of a packed sequence, of one head, is at a multiple of kPlaceUnit: that of
  /// its first query, rounded down, and as many for each sequence before it that blocks and tiles
  /// may reach beyond its end.
  static constexpr int64_t kPlaceUnit = 16;
  int64_t rowsBehind() const { return std::max(rows, queries) + kPlaceUnit; }
  /// Returns true when registers have room for the sums of keys and of values of a tile at a time.
  bool sumsTogether() {
    constexpr int64_t most = 320; // elements, with a block of 32 queries
    return op.getElements() + op.getValueElements() <= most;
  }
  mlir::Type element() { return op.getQueryType().getElementType(); }
  int64_t window() { return int64_t(op.getWindow().value_or(0)); }
  /// The key at the place of the first query.
  int64_t firstPlace() { return op.getKeyTokens() - op.getQueryTokens(); }
};

/// A kernel, whose tiles are of keys and values, or of queries and gradients of the output, and
/// pass over blocks of the others. Sums are gradients of the operand of scores, of keys or of
/// queries, or of values, or both.
struct BackwardKernel {
  llvm::StringRef name;
  bool isOfKeys, hasScores, hasPowers;
};

/// Operands and sizes of tiles of one kernel.
struct BackwardSide {
  BackwardSide(AttentionBackward &backward, bool isOfKeys)
      : block(isOfKeys ? backward.keys : backward.queries),
        tokens(isOfKeys ? backward.op.getKeyTokens() : backward.op.getQueryTokens()),
        heads(isOfKeys ? backward.op.getKeyHeads() : backward.op.getHeads()),
        lists(backward.isPacked() ? heads : heads * backward.op.getBatches()) {}

  int64_t block;                ///< rows of a block
  int64_t tokens, heads, lists; ///< of a sequence; heads of all sequences that have tiles
};

/// Arguments of a kernel; null where there are none.
struct BackwardArguments {
  BackwardArguments(AttentionBackward &backward, const BackwardKernel &which,
                    mlir::gpu::GPUFuncOp func);

  std::array<mlir::Value, 4> maps; ///< of tiles, of keys or queries and of values or gradients of
                                   ///< the output, and of blocks
  mlir::Value numbers;             ///< of queries, as columns for tiles of keys and else as rows
  mlir::Value ofScores, ofPowers;  ///< results
  mlir::Value table, places;       ///< tiles of packed sequences (GroupTiles.h), and their number
  std::array<mlir::Value, 2> offsets, rows; ///< of the packed rows of tiles, and of blocks
  mlir::Value padded;                       ///< numbers of a head
};

/// A map of rows of `tokens` of a sequence, a plane, each a panel of a head wide, and a tile of
/// them.
pipe::TensorMapType boxOfTokens(mlir::Type element, int64_t rows, int64_t elements);
pipe::SharedType tileOfTokens(mlir::Type element, int64_t rows, int64_t elements);

/// Builds the body of a kernel of BackwardArguments.
void buildBackward(mlir::gpu::GPUFuncOp kernel, AttentionBackward &backward,
                   const BackwardKernel &which);

/// Two numbers of each query, and as an index how many of each kind a head of packed queries has;
/// else null.
struct Totals {
  mlir::Value buffer, padded;
};

/// Launches the kernel that finds for each query what is added to the exponents of its powers, and
/// the sum of products of its output and their gradient (AttentionTotals.cpp).
Totals findTotals(mlir::RewriterBase &rewriter, AttentionBackward &backward, mlir::Value output,
                  mlir::Value gradient, mlir::Value logSums, mlir::Value offsets);

} // namespace fp4
