//===- SplitWarps.cpp - A warp that multiplies, and one that copies scales -===//
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
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_SPLITWARPS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

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
static void keepCopies(RoleRegionOp region, ArrayRef<ChannelOp> channels) {
  erase(region, [&](Operation *op) {
    if (auto use = dyn_cast<ChannelOpInterface>(op))
      return !llvm::is_contained(channels, use.getChannel().getDefiningOp<ChannelOp>());
    auto engineOp = dyn_cast<EngineOpInterface>(op);
    return engineOp && engineOp.getEngine() != Engine::ScaleCopy;
  });
}

/// Makes the warp that copies a consumer of the stages that it copies from.
static SmallVector<ChannelOp> addConsumers(gpu::GPUFuncOp kernel) {
  SmallVector<ChannelOp> channels;
  for (auto channel : kernel.getOps<ChannelOp>())
    if (feedsScaleWarp(channel))
      channels.push_back(channel);
  Builder b(kernel.getContext());
  auto engine = [&](Engine engine) -> Attribute {
    return EngineAttr::get(kernel.getContext(), engine);
  };
  for (ChannelOp channel : channels) {
    channel.setConsumersAttr(b.getArrayAttr({engine(Engine::Tensor), engine(Engine::ScaleCopy)}));
    channel.setConsumerArrivals({1, 1});
  }
  return channels;
}

/// Leaves the code of the warp that multiplies: copies stay as the names of the sets that it reads.
static void keepMmas(RoleRegionOp region) {
  erase(region, llvm::IsaPred<AwaitReleaseOp>);
  region.walk([](CopyScalesOp copy) {
    copy.getBlocksMutable().clear();
    copy.setCopied(true);
  });
}

static void splitWarps(gpu::GPUFuncOp kernel, const hw::TargetModel &) {
  SmallVector<RoleRegionOp> regions;
  for (auto region : kernel.getOps<RoleRegionOp>())
    if (hasScaleWarp(region.getRole()))
      regions.push_back(region);
  SmallVector<ChannelOp> channels = addConsumers(kernel);
  for (RoleRegionOp region : regions) {
    RoleAttr role = region.getRole();
    auto roleOf = [&](const Twine &name, int32_t warp, Engine engine) {
      return RoleAttr::get(kernel.getContext(), name.str(), warp, warp + 1, {engine},
                           role.getRegisters());
    };
    OpBuilder b(kernel.getContext());
    b.setInsertionPointAfter(region);
    auto copies = cast<RoleRegionOp>(b.clone(*region));
    copies.setRoleAttr(
        roleOf(role.getName() + "_scales", role.getFirstWarp() + 1, Engine::ScaleCopy));
    keepCopies(copies, channels);
    region.setRoleAttr(roleOf(role.getName(), role.getFirstWarp(), Engine::Tensor));
    keepMmas(region);
  }
}

namespace {
struct SplitWarps : fp4::pipe::impl::SplitWarpsBase<SplitWarps> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), splitWarps)))
      signalPassFailure();
  }
};
} // namespace
