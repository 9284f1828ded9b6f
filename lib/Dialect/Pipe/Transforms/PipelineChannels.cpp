//===- PipelineChannels.cpp - Depths, places and iteration counters -------===//
//
// From the specialized to the pipelined form:
//  1. MemoryPlan chooses depths and lays out shared and tensor memory; the plan becomes attributes.
//  2. In every role a counter per channel is threaded through the loops around the channel's ops.
//     The counter advances with each commit or release, so it is the number of stages passed since
//     the start of the kernel.
//  3. A stage filled by tma begins with the announcement of the bytes that its loads move: whole
//     boxes for tensor maps and 512 bytes per existing scale tile.
//  4. Scale tiles that have fewer sets than their channel has stages get a pipe.await_release.
//  5. Accumulators that have columns in common get a partial release behind the last read of
//     these.
//  6. Launches of the kernel ask for its shared memory.
//
//===----------------------------------------------------------------------===//

#include "ChannelEnds.h"
#include "MemoryPlan.h"
#include "StageBytes.h"
#include "StageColumns.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_PIPELINECHANNELS
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

static void applyPlan(gpu::GPUFuncOp kernel, const MemoryPlan &plan) {
  Builder b(kernel.getContext());
  for (const ChannelPlan &entry : plan.channels) {
    ChannelOp channel = entry.channel;
    channel.setDepthAttr(b.getI32IntegerAttr(entry.depth));
    channel.setPayloadAttr(b.getDenseI64ArrayAttr(entry.places));
    channel.setBarriersAttr(b.getI64IntegerAttr(entry.barriers));
    if (entry.stride)
      channel.setStrideAttr(b.getDenseI64ArrayAttr(entry.stride));
  }
  for (const StageTilePlan &tile : plan.stageTiles)
    for (TmemTileOpInterface op : tile.ops)
      op.setPlace(tile.column, tile.sets);
  for (const ReductionPlan &join : plan.joins)
    ClusterReductionOpInterface(join.op).setReductionPlace(join.place);
  kernel.walk([&](StoreOp store) {
    if (store.getStaged())
      store.setPlace(plan.stagedPlace);
  });
  kernel.walk([&](GatherRowsOp gather) { gather.setPlace(plan.stagedPlace); });
  kernel.walk([&](QuantizeBlocksOp quantize) {
    if (quantize.getStagedBytes())
      quantize.setPlace(plan.stagedPlace);
  });
  kernel->setAttr(PipeDialect::kSharedBytesAttr, b.getI64IntegerAttr(plan.sharedBytes));
  kernel->setAttr(PipeDialect::kTmemColumnsAttr, b.getI64IntegerAttr(plan.tmemColumns));
  kernel->setAttr(PipeDialect::kTmemSlotAttr, b.getI64IntegerAttr(plan.tmemSlot));
  if (plan.workDepth)
    kernel->setAttr(PipeDialect::kWorkRingAttr,
                    b.getDenseI64ArrayAttr({plan.workRing, plan.workDepth}));
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

namespace {
/// Threads the counter of one channel through one role.
class CounterThreader {
public:
  CounterThreader(RewriterBase &rewriter, ChannelOp channel, Value one)
      : rewriter(rewriter), channel(channel), one(one) {}

  /// Numbers the ops of `block` from `counter` on; the counter after the block.
  FailureOr<Value> run(Block *block, Value counter);

private:
  bool uses(Operation *op) { return channelOf(op) == channel.getResult(); }
  bool contains(Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          return uses(inner) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }
  Value number(Operation *op, Value counter);
  FailureOr<Value> threadLoop(LoopLikeOpInterface loop, Value counter);

  RewriterBase &rewriter;
  ChannelOp channel;
  Value one;
};
} // namespace

/// Gives a channel op its iteration; the counter behind it.
Value CounterThreader::number(Operation *op, Value counter) {
  cast<ChannelOpInterface>(op).setIteration(counter);
  if (!isHandOver(op))
    return counter;
  rewriter.setInsertionPointAfter(op);
  return arith::AddIOp::create(rewriter, op->getLoc(), counter, one);
}

FailureOr<Value> CounterThreader::threadLoop(LoopLikeOpInterface loop, Value counter) {
  bool failedInside = false;
  auto newYields = [&](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
    FailureOr<Value> next = run(&loop.getLoopRegions().front()->front(), arguments.front());
    failedInside = failed(next);
    return SmallVector<Value>{failedInside ? Value(arguments.front()) : *next};
  };
  rewriter.setInsertionPoint(loop);
  auto replaced =
      loop.replaceWithAdditionalYields(rewriter, counter,
                                       /*replaceInitOperandUsesInLoop=*/false, newYields);
  if (failed(replaced) || failedInside)
    return failure();
  return Value(replaced->getLoopResults()->back());
}

FailureOr<Value> CounterThreader::run(Block *block, Value counter) {
  for (Operation &op : llvm::make_early_inc_range(*block)) {
    if (uses(&op)) {
      counter = number(&op, counter);
    } else if (op.getNumRegions() && contains(&op)) {
      auto loop = dyn_cast<LoopLikeOpInterface>(op);
      if (!loop || !loop.getLoopResults())
        return withNote(
            op.emitOpError() << "channel ops must be in straight-line code, scf.for or "
                                "pipe.for_each_work",
            "other control flow has no number of iterations: use arith.select inside of a loop");
      FailureOr<Value> after = threadLoop(loop, counter);
      if (failed(after))
        return failure();
      counter = *after;
    }
  }
  return counter;
}

static LogicalResult threadCounters(gpu::GPUFuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  Value zero = arith::ConstantIntOp::create(rewriter, kernel.getLoc(), 0, 32);
  Value one = arith::ConstantIntOp::create(rewriter, kernel.getLoc(), 1, 32);
  auto channels = llvm::to_vector(kernel.getBody().getOps<ChannelOp>());
  for (RoleRegionOp role : kernel.getBody().getOps<RoleRegionOp>())
    for (ChannelOp channel : channels)
      if (failed(CounterThreader(rewriter, channel, one).run(&role.getBody().front(), zero)))
        return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static Value materialize(OpBuilder &b, Location loc, const LinearForm &form) {
  auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 32); };
  Value sum = constant(form.constant);
  for (auto [value, factor] : form.factors) {
    Value term = arith::MulIOp::create(b, loc, value, constant(factor));
    sum = arith::AddIOp::create(b, loc, term, sum);
  }
  return sum;
}

/// Puts pipe.expect_tx in front of the first load that signals the acquired stage.
static LogicalResult announceBytes(ProducerAcquireOp acquire) {
  LinearForm bytes;
  Operation *first = nullptr;
  for (Operation *op = acquire->getNextNode(); op; op = op->getNextNode()) {
    if (channelOf(op) != acquire.getChannel())
      continue;
    if (isHandOver(op))
      break;
    auto filler = dyn_cast<StageFillerOpInterface>(op);
    if (!filler)
      continue;
    addFilledBytes(bytes, filler);
    first = first ? first : op;
  }
  if (!first)
    return withNote(acquire.emitOpError()
                        << "stage must be filled by loads in the block that acquires it",
                    "move the loads of a stage directly behind its pipe.producer_acquire");
  DominanceInfo dominance;
  for (auto [blocks, factor] : bytes.factors)
    if (!dominance.properlyDominates(blocks, first))
      return withNote(first->emitOpError()
                          << "numbers of scale blocks and rows must be computed before the "
                             "first load of the stage",
                      "move what computes the number in front of the load");
  OpBuilder builder(first);
  bytes = arrivingBytes(bytes, acquire.getChannel().getDefiningOp<ChannelOp>());
  Value sum = materialize(builder, first->getLoc(), bytes);
  ExpectTxOp::create(builder, first->getLoc(), acquire.getChannel(), acquire.getIteration(), sum);
  return success();
}

static LogicalResult announceBytes(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([&](ProducerAcquireOp acquire) {
    auto channel = acquire.getChannel().getDefiningOp<ChannelOp>();
    if (channel.getProducer() == Engine::Tma && failed(announceBytes(acquire)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Sets of tensor memory columns
//===----------------------------------------------------------------------===//

/// Makes a role wait until the MMAs that read a set of tensor memory tiles are complete before it
/// fills the set again, if the channel has more stages than the tiles have sets.
static void protectStageTiles(gpu::GPUFuncOp kernel) {
  llvm::SmallPtrSet<Operation *, 4> done;
  kernel.walk([&](TmemTileOpInterface tile) {
    auto wait = tile.getStageTile().getDefiningOp<ConsumerWaitOp>();
    if (!wait)
      return;
    int64_t depth = *wait.getChannel().getDefiningOp<ChannelOp>().getDepth();
    if (tile.getNumSets() >= depth || !done.insert(wait).second)
      return;
    OpBuilder b(tile);
    AwaitReleaseOp::create(b, tile.getLoc(), wait.getChannel(), wait.getIteration(),
                           tile.getNumSets());
  });
}

//===----------------------------------------------------------------------===//
// Accumulators that overlap
//===----------------------------------------------------------------------===//

/// The other stage is filled as soon as the columns that it has too are read.
static void releaseCommonColumns(gpu::GPUFuncOp kernel) {
  kernel.walk([&](ConsumerWaitOp wait) {
    auto channel = wait.getChannel().getDefiningOp<ChannelOp>();
    if (!channel.overlaps())
      return;
    auto [common, stride] = channel.getOwnColumns();
    ReadOp last = lastCommonRead(readsOf(wait), wait, common + stride, common);
    OpBuilder b(last->getNextNode());
    ConsumerReleaseOp::create(b, wait.getLoc(), wait.getChannel(), wait.getIteration())
        .setPartial(true);
  });
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// The kernel has roles, and channels without a depth.
static bool isSpecialized(gpu::GPUFuncOp kernel) {
  auto channels = kernel.getBody().getOps<ChannelOp>();
  return !kernel.getBody().getOps<RoleRegionOp>().empty() &&
         llvm::none_of(channels, [](ChannelOp channel) { return channel.isPipelined(); });
}

/// Launches of `kernel` ask for its dynamic shared memory.
static void updateLaunches(ModuleOp module, gpu::GPUFuncOp kernel, int64_t bytes) {
  auto kernels = kernel->getParentOfType<gpu::GPUModuleOp>();
  if (!kernels)
    return;
  module.walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() != kernels.getName() ||
        launch.getKernelName() != kernel.getName())
      return;
    OpBuilder builder(launch);
    Value size = arith::ConstantIntOp::create(builder, launch.getLoc(), bytes, 32);
    launch.getDynamicSharedMemorySizeMutable().assign(size);
  });
}

/// Returns the bound that the attribute `name` of the kernel gives, and removes the attribute,
/// which nobody needs any more; else `limit`.
static FailureOr<unsigned> takeLimit(gpu::GPUFuncOp kernel, StringRef name, unsigned limit) {
  Attribute attribute = kernel->removeAttr(name);
  if (!attribute)
    return limit;
  auto number = dyn_cast<IntegerAttr>(attribute);
  if (!number || !number.getType().isInteger(64) || number.getInt() < 1) // (C156)
    return withNote(kernel.emitOpError()
                        << "attribute " << name << " must be a positive i64, but got " << attribute,
                    "write the number of bytes, such as 65536 : i64, or leave the attribute out");
  return unsigned(std::min<int64_t>(number.getInt(), limit));
}

/// Returns the number that the attribute `name` of the kernel asks for, or 0.
static int64_t askedFor(gpu::GPUFuncOp kernel, StringRef name) {
  auto number = kernel->getAttrOfType<IntegerAttr>(name);
  return number ? number.getInt() : 0;
}

/// The channel with the most stages of those that are meant; null where there is none.
static const ChannelPlan *deepestOf(const MemoryPlan &plan,
                                    llvm::function_ref<bool(ChannelOp)> isMeant) {
  const ChannelPlan *deepest = nullptr;
  for (const ChannelPlan &channel : plan.channels)
    if (isMeant(channel.channel) && (!deepest || channel.depth > deepest->depth))
      deepest = &channel;
  return deepest;
}

/// Says that `deepest`, of channels that may have up to `limit` stages, has less than was asked
/// for.
static void tellReduced(const ChannelPlan *deepest, StringRef what, int64_t asked, int64_t limit) {
  if (!deepest || deepest->depth >= asked)
    return;
  ChannelOp channel = deepest->channel;
  int64_t most = mostStages(channel, limit);
  std::string why = deepest->depth + deepest->step > most
                        ? "a channel like this one has at most " + std::to_string(most)
                        : "its memory has no room for more";
  remark::missed(channel.getLoc(), remark::RemarkOpts::name(what).category("pipe-pipeline"))
      << remark::reason("{0} of {1} {2} that are asked for: {3}", deepest->depth, asked, what, why);
}

/// Stages are those of channels that TMA fills, and accumulators those of tensor memory.
static bool isFilledByTma(ChannelOp channel) {
  return channel.getType().isShared() && channel.getProducer() == Engine::Tma;
}
static bool isInTensorMemory(ChannelOp channel) { return !channel.getType().isShared(); }

namespace {
struct PipelineChannelsPass : fp4::pipe::impl::PipelineChannelsBase<PipelineChannelsPass> {
  using PipelineChannelsBase::PipelineChannelsBase;

  LogicalResult pipeline(gpu::GPUFuncOp kernel) {
    FailureOr<hw::TargetModel> target = targetOf(kernel);
    if (failed(target))
      return failure();
    int64_t askedStages = askedFor(kernel, PipeDialect::kMaxStagesAttr),
            askedAccumulators = askedFor(kernel, PipeDialect::kMaxAccumulatorsAttr);
    auto stages = takeLimit(kernel, PipeDialect::kMaxStagesAttr, maxStages);
    auto accumulators = takeLimit(kernel, PipeDialect::kMaxAccumulatorsAttr, maxAccumulators);
    if (failed(stages) || failed(accumulators))
      return failure();
    FailureOr<MemoryPlan> plan =
        planMemory(kernel, *target, {*stages, *accumulators, reserveBytes});
    if (failed(plan))
      return failure();
    tellReduced(deepestOf(*plan, isFilledByTma), "stages", askedStages, maxStages);
    tellReduced(deepestOf(*plan, isInTensorMemory), "accumulators", askedAccumulators,
                maxAccumulators);
    applyPlan(kernel, *plan);
    if (failed(threadCounters(kernel)) || failed(announceBytes(kernel)))
      return failure();
    protectStageTiles(kernel);
    releaseCommonColumns(kernel);
    bool isAlone = bool(kernel->removeAttr(PipeDialect::kAloneAttr)); // then two CTAs do not fit
    int64_t fewest = isAlone ? sharedBytesOfEach(*target, 2) + 1 : 0;
    updateLaunches(getOperation(), kernel, std::max<int64_t>(plan->sharedBytes, fewest));
    for (const ChannelPlan &channel : plan->channels)
      numStages += channel.depth;
    return success();
  }

  void runOnOperation() override {
    SmallVector<gpu::GPUFuncOp> kernels;
    WalkResult walked = getOperation().walk([&](gpu::GPUFuncOp func) {
      if (failed(verifyInRoles(func)))
        return WalkResult::interrupt();
      if (isSpecialized(func))
        kernels.push_back(func);
      return WalkResult::skip();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (gpu::GPUFuncOp kernel : kernels)
      if (failed(pipeline(kernel)))
        return signalPassFailure();
  }
};
} // namespace
