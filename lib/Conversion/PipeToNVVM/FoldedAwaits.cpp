//===- FoldedAwaits.cpp - Stages that are full when their scales have room -===//
//
// Scales in two sets are copied over those of the k tile before the last, so the warp that copies
// scales waits for a stage and for the MMAs that read this set. If every iteration waits for both,
// the second wait is part of the first: these MMAs also arrive at the full barrier of the stage.
//
//   for k                                for k
//     consumer_wait ab[it]                 wait for full[it]
//     await_release ab[it] distance 2 ->   tcgen05.commit to full[it + 1]
//     copy_scales                          tcgen05.cp
//     mma                                  tcgen05.mma
//     consumer_release ab[it]              tcgen05.commit to empty[it]
//
// The commit of iteration `it` covers all MMAs up to those of it - 1. The copies of it + 1 wait for
// these MMAs. A full barrier counts one more arrival for the commit. The thread that initializes
// the barriers arrives at the first one, since no MMAs come before its first phase.
//
// If a warp of its own copies scales (ScaleWarps.cpp), the commit is in the warp that runs the
// MMAs.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

using namespace mlir;
using namespace fp4::pipe;

/// Returns true when the iterations of `wait` are awaited two iterations later, in front of the
/// next op of the channel in its basic block.
static bool isFollowedByAwait(ConsumerWaitOp wait) {
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
    auto use = dyn_cast<ChannelOpInterface>(op);
    if (!use || use.getChannel() != wait.getChannel())
      continue;
    auto await = dyn_cast<AwaitReleaseOp>(op);
    return await && await.getDistance() == 2 && await.getIteration() == wait.getIteration();
  }
  return false;
}

static bool countsMmas(ChannelOp channel) {
  size_t waits = 0, awaits = 0;
  for (Operation *user : channel->getUsers()) {
    awaits += isa<AwaitReleaseOp>(user);
    auto wait = dyn_cast<ConsumerWaitOp>(user);
    waits += bool(wait);
    if (wait && !isFollowedByAwait(wait))
      return false;
  }
  return waits && waits == awaits && channel.getProducer() == Engine::Tma &&
         channel.getConsumerEngines() == ArrayRef(Engine::Tensor) && !feedsScaleWarp(channel);
}

void fp4::foldAwaits(gpu::GPUFuncOp kernel, KernelState &state) {
  for (auto channel : kernel.getOps<ChannelOp>())
    if (channel.isPipelined() && countsMmas(channel))
      state.countedMmas.insert(channel);
}

void fp4::arriveForFirstStage(OpBuilder &b, ChannelOp channel, const KernelState &state) {
  if (!state.countedMmas.contains(channel))
    return;
  Location loc = channel.getLoc();
  Value barrier = offsetPointer(b, loc, state.sharedBase, *channel.getBarriers());
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, /*count=*/Value());
}

void fp4::countMmas(OpBuilder &b, AwaitReleaseOp await, Value barriers, Value iteration,
                    const KernelState &state) {
  Location loc = await.getLoc();
  auto channel = await.getChannel().getDefiningOp<ChannelOp>();
  Value stage;
  if (auto carried = state.carriedStages.find({iteration, 0}); carried != state.carriedStages.end())
    stage = nextStage(b, loc, carried->second, *channel.getDepth()).stage;
  else
    stage = channelStage(b, loc, state, channel, barriers, iteration, /*offset=*/1).stage;
  Value full = stridedPointer(b, loc, barriers, stage, 8);
  emitOnce(b, loc, state, await, [&] {
    NVVM::Tcgen05CommitOp::create(b, loc, full, /*multicastMask=*/Value(), state.ctaGroup());
  });
}
