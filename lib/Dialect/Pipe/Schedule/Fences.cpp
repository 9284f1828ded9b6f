//===- Fences.cpp - Places of tcgen05.fence::after_thread_sync ------------===//
//
// PTX ISA, "tcgen05.fence": asynchronous tcgen05 operations after a fence::after_thread_sync come
// after the synchronization before it, whether this concerns tensor memory or their operands in
// shared memory. One fence serves all waits before it. Only the last wait before a tcgen05
// operation therefore has a fence.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

using namespace mlir;
using namespace fp4::pipe;

/// Returns true when `op` becomes a wait that orders tcgen05 operations behind it.
static bool isWait(Operation *op) {
  auto region = op->getParentOfType<RoleRegionOp>();
  return region && ordersTensorCore(op, region.getRole());
}

namespace {
enum class Next { TensorOp, Wait, Neither };
} // namespace

/// The first operation of interest in `ops` on any path: a tcgen05 operation if that is possible.
static Next firstOf(llvm::iterator_range<Block::iterator> ops) {
  for (Operation &op : ops) {
    if (usesTensorCore(&op))
      return Next::TensorOp;
    if (isWait(&op))
      return Next::Wait;
    for (Region &region : op.getRegions())
      for (Block &block : region)
        if (firstOf({block.begin(), block.end()}) == Next::TensorOp)
          return Next::TensorOp;
  }
  return Next::Neither;
}

static bool needsFence(Operation *wait) {
  for (Operation *op = wait; !isa<RoleRegionOp, gpu::GPUFuncOp>(op); op = op->getParentOp()) {
    Next next = firstOf({std::next(op->getIterator()), op->getBlock()->end()});
    if (next != Next::Neither)
      return next == Next::TensorOp;
    auto *parent = op->getParentOp(); // a loop begins again
    if (isa<LoopLikeOpInterface>(parent) &&
        firstOf({op->getBlock()->begin(), op->getIterator()}) == Next::TensorOp)
      return true;
  }
  return false;
}

void fp4::pipe::findUnfencedWaits(gpu::GPUFuncOp kernel) {
  kernel.walk([](Operation *op) {
    if (!isWait(op) || needsFence(op))
      return;
    if (auto await = dyn_cast<AwaitReleaseOp>(op))
      await.setUnfenced(true);
    else if (auto wait = dyn_cast<ConsumerWaitOp>(op))
      wait.setUnfenced(true);
    else
      cast<ProducerAcquireOp>(op).setUnfenced(true);
  });
}
