//===- Fences.cpp - Places of tcgen05.fence::after_thread_sync ------------===//
//
// PTX ISA, "tcgen05.fence": asynchronous tcgen05 operations after a fence::after_thread_sync come
// after the synchronization before it, whether this concerns tensor memory or their operands in
// shared memory. One fence serves all waits before it. Only the last wait before a tcgen05
// operation therefore has a fence.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

using namespace mlir;
using namespace fp4::pipe;

/// Returns true when `op` becomes asynchronous tcgen05 instructions. A copy of scales by a warp of
/// its own is only a name in the warp that runs the MMAs.
static bool usesTensorCore(Operation *op, const fp4::KernelState &state) {
  auto engineOp = dyn_cast<EngineOpInterface>(op);
  if (!engineOp)
    return false;
  Engine engine = engineOp.getEngine();
  RoleAttr role = state.roles.lookup(op);
  if (engine == Engine::ScaleCopy && role && !role.drives(engine))
    return false;
  bool tmem = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TmemType>);
  return engine == Engine::Tensor || engine == Engine::ScaleCopy ||
         ((engine == Engine::Threads || engine == Engine::Convert) && tmem);
}

/// Returns true when `op` becomes a wait that orders tcgen05 operations behind it.
static bool isWait(Operation *op, const fp4::KernelState &state) {
  if (auto await = dyn_cast<AwaitReleaseOp>(op))
    return !state.countedMmas.contains(await.getChannel().getDefiningOp());
  if (!isa<ProducerAcquireOp, ConsumerWaitOp>(op))
    return false;
  auto channel = op->getOperand(0).getDefiningOp<ChannelOp>();
  bool produces = isa<ProducerAcquireOp>(op);
  if (!channel || (produces && state.unawaited.contains(channel)))
    return false;
  Engine engine = produces ? channel.getProducer() : fp4::consumerEngine(channel, op);
  return engine == Engine::Tensor || !channel.getType().isShared();
}

namespace {
enum class Next { TensorOp, Wait, Neither };
} // namespace

/// The first operation of interest in `ops` on any path: a tcgen05 operation if that is possible.
static Next firstOf(llvm::iterator_range<Block::iterator> ops, const fp4::KernelState &state) {
  for (Operation &op : ops) {
    if (usesTensorCore(&op, state))
      return Next::TensorOp;
    if (isWait(&op, state))
      return Next::Wait;
    for (Region &region : op.getRegions())
      for (Block &block : region)
        if (firstOf({block.begin(), block.end()}, state) == Next::TensorOp)
          return Next::TensorOp;
  }
  return Next::Neither;
}

static bool needsFence(Operation *wait, const fp4::KernelState &state) {
  for (Operation *op = wait; !isa<RoleRegionOp, gpu::GPUFuncOp>(op); op = op->getParentOp()) {
    Next next = firstOf({std::next(op->getIterator()), op->getBlock()->end()}, state);
    if (next != Next::Neither)
      return next == Next::TensorOp;
    auto *parent = op->getParentOp(); // a loop begins again
    if (isa<LoopLikeOpInterface>(parent) &&
        firstOf({op->getBlock()->begin(), op->getIterator()}, state) == Next::TensorOp)
      return true;
  }
  return false;
}

void fp4::findFencedWaits(gpu::GPUFuncOp kernel, KernelState &state) {
  kernel.walk([&](Operation *op) {
    if (isWait(op, state) && needsFence(op, state))
      state.fencedWaits.insert(op);
  });
}
