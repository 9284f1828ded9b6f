//===- ElideSync.cpp - Waits, arrivals and fences that others imply -------===//
//
// A channel has no empty barriers where its stages are filled once, or where other channels say
// that a stage is empty (ImpliedReleases.cpp). A wait has a fence of tcgen05 only where it is the
// last one before an operation of the tensor core (Fences.cpp). A release has a fence of shared
// memory only if threads have read the tile with loads of their own, and no fence follows these
// reads already. One thread arrives for a warp that has read a tile together.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "mlir/IR/Matchers.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_ELIDESYNC
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The last MMA before `release` in its basic block, if all reads of tiles of its channel come
/// before that MMA; else null.
static MmaOp mmaBehindReads(ConsumerReleaseOp release) {
  Operation *op = release->getPrevNode();
  while (op && !isSharedMma(op))
    op = op->getPrevNode();
  auto product = cast_or_null<MmaOp>(op);
  auto isEarlier = [&](Operation *user) {
    auto scales = dyn_cast<ScalesOp>(user);
    return scales && scales.getB() && user->getBlock() == op->getBlock() &&
           user->isBeforeInBlock(op);
  };
  return product && areReadBy(release, isEarlier) ? product : MmaOp();
}

/// Returns true when the tile made of the stage is committed right before `release`, so that the
/// fence of that commit also covers the reads of this stage.
static bool followsFencedCommit(ConsumerReleaseOp release) {
  Operation *op = release->getPrevNode();
  while (op && !isa<ProducerCommitOp>(op) && isMemoryEffectFree(op))
    op = op->getPrevNode();
  auto commit = dyn_cast_or_null<ProducerCommitOp>(op);
  auto channel = commit ? commit.getChannel().getDefiningOp<ChannelOp>() : ChannelOp();
  return channel && channel.getType().isShared() && channel.getProducer() == Engine::Threads;
}

/// Returns true when `op` makes an operand in tensor memory.
static bool fillsTmem(Operation *op) {
  if (auto write = dyn_cast<WriteOp>(op))
    return !write.getFragmentType();
  auto dequantize = dyn_cast<DequantizeTileOp>(op);
  return dequantize && dequantize.fillsTmem();
}

/// Returns true when `op` reads tiles in such a way that one thread may arrive for its warp.
static bool isReadByWarps(Operation *op) {
  return isa<ScalesOp>(op) || isSharedMma(op) || fillsTmem(op);
}

/// Says of `release` whether it needs a fence, and who arrives. The warps of wgmma are together;
/// with mma.sync each lane reads for itself (WarpShared.cpp).
static void elideRelease(ConsumerReleaseOp release, bool areTogether) {
  auto channel = release.getChannel().getDefiningOp<ChannelOp>();
  bool isAligned = areTogether && areReadBy(release, isSharedMma);
  if (channel && !channel.isCluster() && areReadBy(release, isReadByWarps))
    release.setBy(isAligned ? Arrival::AlignedWarps : Arrival::Warps);
  MmaOp product = mmaBehindReads(release);
  if (product)
    product.setFencing(true);
  if (product || areReadBy(release, fencesItsReads) || followsFencedCommit(release))
    release.setUnfenced(true);
}

/// Lets one thread of each warp commit a tile that threads have staged.
static void commitByWarps(Operation *stage) {
  for (Operation *op = stage->getNextNode(); op; op = op->getNextNode())
    if (auto commit = dyn_cast<ProducerCommitOp>(op)) {
      auto channel = commit.getChannel().getDefiningOp<ChannelOp>();
      if (channel && !channel.isCluster())
        commit.setBy(Arrival::Warps);
      return;
    }
}

/// Leaves out the second arrival for a stage of which a part was released before.
static void elideArrival(ConsumerReleaseOp partial) {
  if (!partial.getPartial())
    return;
  for (Operation *op = partial->getNextNode(); op; op = op->getNextNode()) {
    auto release = dyn_cast<ConsumerReleaseOp>(op);
    if (!release || release.getChannel() != partial.getChannel())
      continue;
    release.setBy(Arrival::Nobody);
    return;
  }
}

/// Returns true when every stage of `channel` is filled once: each acquire names a constant
/// iteration below the depth.
static bool isFilledOnce(ChannelOp channel) {
  return !channel.overlaps() && llvm::all_of(channel->getUsers(), [&](Operation *user) {
    auto acquire = dyn_cast<ProducerAcquireOp>(user);
    APInt iteration;
    return !acquire ||
           (matchPattern(countedIteration(acquire.getIteration()), m_ConstantInt(&iteration)) &&
            iteration.ult(*channel.getDepth()));
  });
}

static void elideSync(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  bool areTogether = route::hasCore(target, route::Core::Wgmma);
  for (auto channel : kernel.getOps<ChannelOp>())
    if (channel.isPipelined() && isFilledOnce(channel) && !channel.isCopiedAhead())
      channel.setWithoutEmpty(true);
  findUnfencedWaits(kernel);
  kernel.walk([&](Operation *op) {
    if (auto release = dyn_cast<ConsumerReleaseOp>(op); release && !release.getPartial())
      elideRelease(release, areTogether);
    else if (auto stage = dyn_cast<StageOp>(op); (stage && stage.isOfFragment()) || fillsTmem(op))
      commitByWarps(op);
  });
  kernel.walk(elideArrival);
  findImpliedReleases(kernel);
}

namespace {
struct ElideSync : fp4::pipe::impl::ElideSyncBase<ElideSync> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), elideSync)))
      signalPassFailure();
  }
};
} // namespace
