//===- ScaleWarps.cpp - Barriers of a warp that copies scales --------------===//
//
// A channel with a consumer scale_copy (SplitWarps.cpp of lib/Dialect/Pipe/Schedule) has a third
// barrier for each stage, at which the warp that copies arrives and the one that multiplies waits;
// and a barrier for all copies, which are complete before tensor memory is freed.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4::pipe;

bool fp4::followsScaleWarp(Operation *wait, ChannelOp channel, const KernelState &state) {
  RoleAttr role = state.roles.lookup(wait);
  return channel.isCopiedAhead() && role && role.drives(Engine::Tensor);
}

void fp4::arriveCopied(OpBuilder &b, Operation *release, ChannelOp channel, const ChannelStage &at,
                       const KernelState &state) {
  RoleAttr role = state.roles.lookup(release);
  if (!channel.isCopiedAhead() || !role || !role.drives(Engine::ScaleCopy))
    return;
  Location loc = release->getLoc();
  NVVM::Tcgen05FenceOp::create(b, loc, NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC);
  Value barrier = at.copied(b, loc);
  emitOnce(b, loc, state, release, [&] {
    NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, /*count=*/Value());
  });
}

void fp4::initializeCopied(OpBuilder &b, ChannelOp channel, const KernelState &state) {
  Location loc = channel.getLoc();
  int64_t depth = *channel.getDepth();
  for (int64_t i = 2 * depth; i <= 3 * depth; ++i)
    NVVM::MBarrierInitOp::create(
        b, loc, offsetPointer(b, loc, state.sharedBase, *channel.getBarriers() + 8 * i),
        constantI32(b, loc, 1), /*predicate=*/Value());
}

void fp4::awaitCopies(OpBuilder &b, RoleRegionOp region, const KernelState &state) {
  if (!state.allCopied)
    return;
  Location loc = region.getLoc();
  Value barrier = offsetPointer(b, loc, state.sharedBase, state.allCopied);
  emitOnce(b, loc, state, region, [&] {
    NVVM::Tcgen05CommitOp::create(b, loc, barrier, /*multicastMask=*/Value(), state.ctaGroup());
  });
  emitBarrierWait(b, loc, state, barrier, constantI32(b, loc, 0), /*cluster=*/false);
}
