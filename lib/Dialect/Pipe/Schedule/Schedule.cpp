//===- Schedule.cpp - Common part of the passes of phase `scheduled` -------===//
#include "Schedule.h"

#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

LogicalResult
fp4::pipe::forEachKernel(Operation *module,
                         function_ref<void(gpu::GPUFuncOp, const hw::TargetModel &)> body) {
  auto isPipelined = [](ChannelOp channel) { return channel.isPipelined(); };
  WalkResult result = module->walk([&](gpu::GPUFuncOp kernel) {
    if (kernel.getBody().getOps<RoleRegionOp>().empty() ||
        !llvm::all_of(kernel.getBody().getOps<ChannelOp>(), isPipelined))
      return WalkResult::advance();
    if (failed(verifyInRoles(kernel)))
      return WalkResult::interrupt();
    FailureOr<hw::TargetModel> target = targetOf(kernel);
    if (failed(target))
      return WalkResult::interrupt();
    body(kernel, *target);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

Value fp4::pipe::number(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

std::optional<Counter> Counter::of(scf::ForOp loop, unsigned number) {
  Counter counter = {loop, number, {}};
  Value argument = loop.getRegionIterArg(number), value = loop.getYieldedValues()[number];
  while (value != argument) {
    auto next = value.getDefiningOp<arith::AddIOp>();
    if (!next || next->getBlock() != loop.getBody() || !matchPattern(next.getRhs(), m_One()))
      return std::nullopt;
    value = next.getLhs();
    counter.values.push_back(value);
  }
  std::reverse(counter.values.begin(), counter.values.end());
  if (counter.values.empty() || !argument.getType().isInteger(32))
    return std::nullopt;
  return counter;
}

ChannelOp Counter::channel() const {
  ChannelOp found;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      auto use = dyn_cast<ChannelOpInterface>(user);
      if (!use || use.getIteration() != value)
        continue;
      auto channel = use.getChannel().getDefiningOp<ChannelOp>();
      if (!channel || (found && channel != found))
        return {};
      found = channel;
    }
  return found;
}

void fp4::pipe::nameStage(ChannelOp channel, Value value, int64_t ahead, const StageAndPhase &at) {
  auto depth = int64_t(*channel.getDepth());
  auto isNamed = [&](ChannelOpInterface use) {
    auto await = dyn_cast<AwaitReleaseOp>(*use);
    int64_t offset = await && !await.getFolded() ? depth - int64_t(await.getDistance()) : 0;
    return use.getIteration() == value && offset == ahead;
  };
  SmallVector<ChannelOpInterface> uses;
  for (Operation *user : value.getUsers())
    if (auto use = dyn_cast<ChannelOpInterface>(user); use && isNamed(use))
      uses.push_back(use);
  if (uses.empty())
    return;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(at.phase);
  Value named =
      StageOfOp::create(b, value.getLoc(), value, at.stage, at.phase, depth, ahead, at.opposite);
  for (ChannelOpInterface use : uses)
    use.setIteration(named);
}

void fp4::pipe::addSchedulePasses(OpPassManager &manager) {
  // Loops over tiles are those of the CTA, so that later passes see what they carry.
  manager.addPass(createExpandWork());
  // Numbers from in front of all roles need no registers in roles that compute them.
  manager.addPass(createPlaceScalars());
  // Copies of scales run ahead of the MMAs in a warp of their own.
  manager.addPass(createSplitWarps());
  // Warps that issue for an engine stay together.
  manager.addPass(createElectThreads());
  // Tiles leave the registers in which a loop would carry them.
  manager.addPass(createRunAhead());
  // The set of scales of a k tile is known, and sums of one k tile are added beside the next one.
  manager.addPass(createUnroll());
  // One wait covers the stage and the set of scales that it is copied to.
  manager.addPass(createFoldAwaits());
  // Stages and phases are carried where a division would cost more.
  manager.addPass(createCarryStages());
  // The tensor core goes on between the iterations of a loop.
  manager.addPass(createDeferReleases());
  // Waits, arrivals and fences that others imply are gone.
  manager.addPass(createElideSync());
  // MMAs begin as soon as their sums and tiles allow.
  manager.addPass(createChainMmas());
}

void fp4::pipe::registerSchedulePipeline() {
  PassPipelineRegistration<>("pipe-schedule", "Run the passes of phase `scheduled` on kernels",
                             addSchedulePasses);
}
