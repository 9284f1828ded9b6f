//===- VerifyOverlap.cpp - Stages that have columns in common -------------===//

#include "VerifyOverlap.h"

#include "ChannelEnds.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4::pipe;

/// The smallest and the largest value of `column`: a constant, or what a loop with constant bounds
/// counts.
static std::optional<std::pair<int64_t, int64_t>> valuesOf(Value column) {
  APInt first, end, step;
  if (matchPattern(column, m_ConstantInt(&first)))
    return {{first.getSExtValue(), first.getSExtValue()}};
  auto argument = dyn_cast<BlockArgument>(column);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || loop.getInductionVar() != column ||
      !matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSExtValue() < 1)
    return std::nullopt;
  int64_t low = first.getSExtValue(), count = end.getSExtValue() - low, by = step.getSExtValue();
  return {{low, low + std::max<int64_t>(count - 1, 0) / by * by}};
}

/// (C157) `user` reads columns that are in one stage only.
static LogicalResult verifyReader(Operation *user, PartialReleaseOp partial, ChannelOp channel) {
  auto [first, end] = channel.getOwnColumns();
  auto read = dyn_cast<ReadOp>(user);
  auto values = read ? valuesOf(read.getColumn()) : std::nullopt;
  if (values && values->first >= first &&
      values->second + cast<VectorType>(read.getType()).getNumElements() <= end)
    return success();
  InFlightDiagnostic diag = user->emitOpError()
                            << "must read columns " << first << " to " << end
                            << ", which no other stage has, after the others were released";
  diag.attachNote(partial.getLoc()) << "released here; the place of the columns must be known";
  return diag;
}

/// The op that took the stage which `partial` releases in part, if it is held; nothing else
/// released it before.
static ConsumerWaitOp holderOf(PartialReleaseOp partial) {
  for (Operation *op = partial->getPrevNode(); op; op = op->getPrevNode())
    if (channelOf(op) == partial.getChannel())
      return dyn_cast<ConsumerWaitOp>(op);
  return {};
}

LogicalResult fp4::pipe::verifyOverlap(PartialReleaseOp partial) {
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
      if (failed(verifyReader(user, partial, channel)))
        return failure();
    }
  return success();
}
