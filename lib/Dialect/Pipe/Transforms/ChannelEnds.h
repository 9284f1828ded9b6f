//===- ChannelEnds.h - The two ends of a channel, compared ----------------===//
//
// Roles that produce into and consume from a channel, agreement of their loops, and iteration
// counters that must count the stages of an end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Returns true for pipe.producer_acquire and pipe.consumer_wait.
bool isTake(mlir::Operation *op);
/// Returns true for pipe.producer_commit and pipe.consumer_release.
bool isHandOver(mlir::Operation *op);
/// Returns true when `end` hands over the stages that an op like `take` takes.
bool isEndOf(mlir::Operation *end, mlir::Operation *take);
/// Name of the op that ends what `take` begins, and of the op that begins what `handOver` ends.
llvm::StringRef handOverName(mlir::Operation *take);
llvm::StringRef takeName(mlir::Operation *handOver);
/// The channel operand of an op, or null.
mlir::Value channelOf(mlir::Operation *op);

/// Returns true when two tiles are made, in one block of code, from the same tile of different
/// stages of a channel: they may have the same sets of columns, which the iterations of the channel
/// take in turns. In the scheduled form they may be in any blocks, because the roles are run.
bool shareSets(TmemTileOpInterface one, TmemTileOpInterface other);

struct ChannelEnds {
  /// A role at the end where stages are used.
  struct Consumer {
    RoleRegionOp role;
    llvm::SmallVector<mlir::Operation *> takes; ///< operations that take a stage, in program order
  };
  RoleRegionOp producer;
  /// Operations that take a stage to fill it, in program order.
  llvm::SmallVector<mlir::Operation *> producerTakes;
  llvm::SmallVector<Consumer> consumers;
};

/// (C132) Finds the roles at both ends and checks that they complete them as the channel says.
llvm::FailureOr<ChannelEnds> findEnds(ChannelOp channel);

/// (C133) The loops and branches around the takes of both ends have the same bounds and conditions.
mlir::LogicalResult verifyLoopsAgree(const ChannelEnds &ends);

/// (C134) Iterations of `channel` in `role` start at 0 and advance by one per stage, through all
/// loops.
mlir::LogicalResult verifyIterations(ChannelOp channel, RoleRegionOp role);

} // namespace fp4::pipe
