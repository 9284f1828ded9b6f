//===- FoldAwaits.cpp - Stages that are full when their scales have room ---===//
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
// A warp of its own that copies scales (SplitWarps.cpp) waits by itself.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_FOLDAWAITS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
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

static void foldAwaits(gpu::GPUFuncOp kernel, const hw::TargetModel &) {
  for (auto channel : kernel.getOps<ChannelOp>()) {
    if (!countsMmas(channel))
      continue;
    for (Operation *user : channel->getUsers())
      if (auto await = dyn_cast<AwaitReleaseOp>(user))
        await.setFolded(true);
  }
}

namespace {
struct FoldAwaits : fp4::pipe::impl::FoldAwaitsBase<FoldAwaits> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), foldAwaits)))
      signalPassFailure();
  }
};
} // namespace
