//===- VerifyOverlap.cpp - Stages that have columns in common -------------===//

#include "VerifyOverlap.h"

#include "ChannelEnds.h"
#include "StageColumns.h"

using namespace mlir;
using namespace fp4::pipe;

/// (C157) `user` reads columns that are in one stage only, whichever stage it is.
static LogicalResult verifyReader(Operation *user, ConsumerReleaseOp partial, ConsumerWaitOp wait,
                                  ChannelOp channel) {
  auto [common, stride] = channel.getOwnColumns();
  auto read = dyn_cast<ReadOp>(user);
  for (int64_t stage = 0; stage < 2; ++stage) {
    auto [first, end] = ownColumns(common + stride, common, stage);
    std::optional<ColumnRange> range = read ? columnsRead(read, wait, stage) : std::nullopt;
    if (range && range->first >= first && range->end <= end)
      continue;
    InFlightDiagnostic diag = user->emitOpError()
                              << "must read columns " << first << " to " << end << ", which stage "
                              << stage << " alone has, after the others were "
                              << "released";
    diag.attachNote(partial.getLoc()) << "released here; the place of the columns must be known";
    return diag;
  }
  return success();
}

/// The op that took the stage which `partial` releases in part, if it is held; nothing else
/// released it before.
static ConsumerWaitOp holderOf(ConsumerReleaseOp partial) {
  for (Operation *op = partial->getPrevNode(); op; op = op->getPrevNode())
    if (channelOf(op) == partial.getChannel())
      return dyn_cast<ConsumerWaitOp>(op);
  return {};
}

LogicalResult fp4::pipe::verifyOverlap(ConsumerReleaseOp partial) {
  ConsumerWaitOp wait = holderOf(partial);
  if (!wait) { // (C157)
    InFlightDiagnostic diag = partial.emitOpError() << "must follow the wait for its stage, once";
    diag.attachNote() << "put it between pipe.consumer_wait and pipe.consumer_release";
    return diag;
  }
  auto channel = partial.getChannel().getDefiningOp<ChannelOp>();
  for (Value slot : wait.getResults())
    for (Operation *user : slot.getUsers()) {
      Operation *ancestor = partial->getBlock()->findAncestorOpInBlock(*user);
      if (ancestor && ancestor->isBeforeInBlock(partial))
        continue;
      if (failed(verifyReader(user, partial, wait, channel)))
        return failure();
    }
  return success();
}
