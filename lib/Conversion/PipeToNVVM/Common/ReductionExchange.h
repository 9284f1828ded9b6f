//===- ReductionExchange.h - Barriers of reductions in a cluster ---------------===//
//
// The exchange of partial sums in a cluster, which both kinds of reduction share
// (ReduceFragment.cpp, ReduceTmem.cpp). Threads store partial sums to the shared memory of the CTA
// that adds them. The stores are asynchronous: only the adding CTA waits for them, and no fence
// orders them. A CTA has two barriers:
//
//   arrived   counts the bytes that the warps of the cluster send to this CTA; every warp of the
//             CTA announces those of its own elements
//   added     counts the warps of adding CTAs that have read what this CTA sent. Lanes share out
//             the CTAs to arrive at
//
// A reduction waits for the `added` of the one before, whose parity a thread keeps in a register.
// Nobody arrives there behind the last reduction, in the last turn of the loop. So a CTA of one
// turn receives only what it waits for itself. A kernel of several turns ends with a barrier of the
// cluster, which also releases the stored results to all of the GPU and waits for that.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Common/Fragments.h"

namespace fp4 {

/// A reduction in the cluster, of which `phase` is the parity.
class ReductionExchange {
public:
  /// Counts the reductions of a thread, behind the ops that `emit` makes for each.
  static void emitInTurn(mlir::ImplicitLocOpBuilder &b, const KernelState &state,
                         llvm::function_ref<void(mlir::Value phase)> emit);

protected:
  static constexpr int64_t kWarp = 32, kTogether = 4; ///< elements of a thread of one access

  ReductionExchange(mlir::ImplicitLocOpBuilder &b, pipe::ClusterReductionOpInterface op,
                    const KernelState &state);

  /// Waits until the adding CTAs have read what this CTA sent in the reduction before.
  void awaitAdded(mlir::Value phase);
  /// Announces `bytes` for this warp, and waits for the bytes of all warps.
  void awaitArrived(Int32 bytes, mlir::Value phase);
  /// Arrives for this warp, which has read what `count` CTAs sent; CTA i of them has rank
  /// `rankOf(i)`. Nothing arrives where there is no next reduction.
  void arriveAdded(int64_t count, llvm::function_ref<Int32(Int32)> rankOf);
  /// Sends a piece to `target`, an address of this CTA, in CTA `rank`; threads are side by side.
  void send(llvm::ArrayRef<mlir::Value> elements, mlir::Value target, Int32 rank);
  void when(mlir::Value condition, llvm::function_ref<void()> body) {
    emitIf(b, b.getLoc(), condition, body);
  }

  mlir::ImplicitLocOpBuilder &b;
  pipe::ClusterReductionOpInterface op;
  const KernelState &state;
  ReductionSizes sizes;
  Int32 mine;   ///< the place of this CTA along m
  Int32 first;  ///< the rank of the first CTA along m
  Int32 thread; ///< thread of the role
  int64_t threads;
  mlir::Value received, arrived, added;
};

} // namespace fp4
