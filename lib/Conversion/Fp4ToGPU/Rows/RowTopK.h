//===- RowTopK.h - The k best columns of the row of a team ----------------===//
//
// A team within a warp has the scores of a row, and every lane of it the k best of them, which are
// one chunk: the row of k columns on which operations behind fp4.top_k work.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Lowering.h"
#include "Rows/RowElements.h"

namespace fp4 {

class RowTopK {
public:
  /// `kernel` is that of `op`, or of an operation behind it, and `rows` (i32) are those of the
  /// scores. Call it before results are allocated.
  RowTopK(KernelBuilder &kernel, TopKOp op, mlir::Value rows, bool noArithmetic);

  /// Emits the choice and stores what is to be stored, M x k tensors through `narrow`, which then
  /// has the values. `hostRows` (an index) are the rows. All threads of the CTA are here.
  void emit(RowElements &narrow, mlir::Value hostRows);

private:
  /// Scores in an order of integers, and what is given for each, of the lane's 16 columns.
  using Lane = llvm::SmallVector<mlir::Value>;
  /// A key, and the column that has it.
  struct Candidate {
    mlir::Value key, column;
  };

  void choose(const RowTeam::Chunk &chunk);
  void dropGroups(Lane &keys, const RowTeam::Chunk &chunk);
  Lane groupScores(const Lane &keys);
  mlir::Value isChosen(mlir::Value own, Int32 group, const Lane &scores);
  Candidate bestOfLane(const Lane &keys, const RowTeam::Chunk &chunk);
  Candidate bestOfTeam(Candidate best);
  bool mustStore(mlir::Value result);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  TopKOp op;
  mlir::Operation *root;       ///< the operation whose kernel it is
  mlir::Value scores, weights; ///< operands as they are before they have buffers
  RowElements wide;
  bool noArithmetic;
  mlir::Value values, ids; ///< vector<16xf32>, vector<16xi32>
};

} // namespace fp4
