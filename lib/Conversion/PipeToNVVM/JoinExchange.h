//===- JoinExchange.h - Barriers of blocks that join in a cluster ---------===//
//
// What the joins of a cluster share (JoinFragment.cpp, JoinLanes.cpp). Threads store what another
// block adds to the shared memory of that block. The stores are asynchronous: nobody waits for them
// but who adds, and no fence orders them. A block has two barriers:
//
//   arrived   counts the bytes that the warps of the cluster send to this block; every warp of it
//             announces those of its own elements
//   added     counts warps: every one of the blocks that add has read what this block sent. Lanes
//             share out the blocks to arrive at
//
// A join waits for the `added` of the one before, whose parity a thread keeps in a register. Behind
// the last one, in the last turn of the loop, nobody arrives there. So where a block has one turn,
// all that reaches it is what it waits for itself. Behind several, the kernel ends with a barrier
// of the cluster, which also releases the stored results to all of the GPU and waits for that.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Fragments.h"

namespace fp4 {

/// One join, of which `phase` is the parity.
class JoinExchange {
public:
  /// Counts the joins of a thread, behind the ops that `emit` makes for each.
  static void emitInTurn(mlir::ImplicitLocOpBuilder &b, const KernelState &state,
                         llvm::function_ref<void(mlir::Value phase)> emit);

protected:
  static constexpr int64_t kWarp = 32, kTogether = 4; ///< elements of a thread of one access

  JoinExchange(mlir::ImplicitLocOpBuilder &b, pipe::ClusterJoinOpInterface op,
               const KernelState &state);

  /// The blocks that add have read what this one sent in the join before.
  void awaitAdded(mlir::Value phase);
  /// This warp announces `bytes`, and waits for those of all.
  void awaitArrived(Int32 bytes, mlir::Value phase);
  /// This warp has read what `count` blocks sent, block i of which has rank `rankOf(i)`; not where
  /// there is no next join.
  void arriveAdded(int64_t count, llvm::function_ref<Int32(Int32)> rankOf);
  /// Sends a piece to `target`, of this block, in block `rank`; threads are side by side.
  void send(llvm::ArrayRef<mlir::Value> elements, mlir::Value target, Int32 rank);
  void when(mlir::Value condition, llvm::function_ref<void()> body) {
    emitIf(b, b.getLoc(), condition, body);
  }

  mlir::ImplicitLocOpBuilder &b;
  pipe::ClusterJoinOpInterface op;
  const KernelState &state;
  JoinSizes sizes;
  Int32 mine;   ///< the place of this block along m
  Int32 first;  ///< the rank of the first block along m
  Int32 thread; ///< of the role
  int64_t threads;
  mlir::Value received, arrived, added;
};

} // namespace fp4
