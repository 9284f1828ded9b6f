//===- ScaleWarps.cpp - A warp that multiplies, and one that copies scales -===//
//
// A role of two warps that drives tensor and scale_copy is one role to all passes before. Here each
// warp gets its part of the code. A third barrier of each stage, and the two that are there, keep
// the order that the role had:
//
//   the role                          warp that copies scales      warp that multiplies
//   acc = producer_acquire accs                                    wait for empty of accs
//   for k                             for k                        for k
//     consumer_wait ab[it]              wait for full[it]            wait for copied[it]
//     await_release ab[it] distance d   wait for empty[it - d]
//     copy_scales                       tcgen05.cp
//     mma                                                            tcgen05.mma
//     consumer_release ab[it]           arrive at copied[it]
//                                       tcgen05.commit to empty[it]  tcgen05.commit to empty[it]
//                                     wait for all copies
//
//  - The stage was full when its scales were copied, so the wait for copied[it] is enough: behind
//    this wait, one warp sees everything that the other one has seen before it arrived.
//  - tcgen05.cp and tcgen05.mma of two threads run in the order in which these synchronize, if
//    tcgen05 fences stand around the barrier; nothing waits for the copies. PTX ISA, "tcgen05
//    memory consistency model": pipelined instructions, different threads.
//  - A commit says that the operations of its thread are complete, so both warps release a stage,
//    and with it the set of scales. The last copies are complete before tensor memory is freed.
//
// The warp that copies runs ahead as far as there are sets of scales. Each wait of this warp was a
// wait of the role, in the same order, so that both warps go on wherever the role did.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

using namespace mlir;
using namespace fp4::pipe;

/// Erases the ops of `region` for which `isOther` holds. Results of erased ops have no other users.
static void erase(RoleRegionOp region, llvm::function_ref<bool(Operation *)> isOther) {
  SmallVector<Operation *> others;
  region.walk([&](Operation *op) {
    if (isOther(op))
      others.push_back(op);
  });
  for (Operation *op : llvm::reverse(others))
    op->erase();
}

/// Leaves the code of the warp that copies: copies, and the ends of the channels that it copies
/// from.
static void keepCopies(RoleRegionOp region, const fp4::KernelState &state) {
  erase(region, [&](Operation *op) {
    if (auto use = dyn_cast<ChannelOpInterface>(op))
      return !state.copiedAhead.contains(use.getChannel().getDefiningOp());
    auto engineOp = dyn_cast<EngineOpInterface>(op);
    return engineOp && engineOp.getEngine() != Engine::ScaleCopy;
  });
}

void fp4::splitScaleWarps(gpu::GPUFuncOp kernel, KernelState &state) {
  for (auto channel : kernel.getOps<ChannelOp>())
    if (feedsScaleWarp(channel)) {
      state.copiedAhead.insert(channel);
      state.allCopied = *channel.getBarriers() + barrierBytes(channel, *channel.getDepth()) - 8;
    }
  for (auto region : llvm::to_vector(kernel.getOps<RoleRegionOp>())) {
    RoleAttr role = region.getRole();
    if (!hasScaleWarp(role))
      continue;
    auto roleOf = [&](const Twine &name, int32_t warp, Engine engine) {
      return RoleAttr::get(kernel.getContext(), name.str(), warp, warp + 1, {engine},
                           role.getRegisters());
    };
    OpBuilder b(kernel.getContext());
    b.setInsertionPointAfter(region);
    auto copies = cast<RoleRegionOp>(b.clone(*region));
    copies.setRoleAttr(
        roleOf(role.getName() + "_scales", role.getFirstWarp() + 1, Engine::ScaleCopy));
    keepCopies(copies, state);
    state.roles[copies] = copies.getRole();
    // Copies stay in the other warp as the names of the sets that it reads.
    region.setRoleAttr(roleOf(role.getName(), role.getFirstWarp(), Engine::Tensor));
    erase(region, llvm::IsaPred<AwaitReleaseOp>);
  }
}

bool fp4::followsScaleWarp(Operation *wait, ChannelOp channel, const KernelState &state) {
  RoleAttr role = state.roles.lookup(wait);
  return state.copiedAhead.contains(channel) && role && role.drives(Engine::Tensor);
}

void fp4::arriveCopied(OpBuilder &b, Operation *release, ChannelOp channel, const ChannelStage &at,
                       const KernelState &state) {
  RoleAttr role = state.roles.lookup(release);
  if (!state.copiedAhead.contains(channel) || !role || !role.drives(Engine::ScaleCopy))
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
