//===- Channels.cpp - Rings of mbarriers ----------------------------------===//
//
// Iteration it of a channel of depth d uses stage it mod d in phase (it / d) mod 2.
//
//   consumer_wait     waits on full[stage] for parity phase
//   producer_acquire  waits on empty[stage] for parity phase ^ 1: a fresh barrier counts as if the
//                     phase before its first had completed, so the first d acquires pass at once
//
// If the stages of a channel are filled once, or are known to be empty (ImpliedReleases.cpp), no
// role waits for empty stages: neither that wait nor the arrival that would complete it is emitted.
//
// A waiting thread retries with its own branch: mbarrier.try_wait may return false after a time
// limit. PTX ISA: "Parallel Synchronization and Communication Instructions: mbarrier".
//
//   await_release     waits on empty[stage] as the producer of iteration it + d - distance does,
//                     whose stage is that of it - distance; a producer whose stages overlap waits
//                     in the same way, distance 1; no wait is emitted where consumer_wait covers
//                     both (FoldAwaits.cpp)
//   consumer_release  of a part arrives in the place of that of the whole, which then emits nothing
//                     the fence of shared memory that it would need stands before consumer_wait,
//                     where nothing waits for it: the producer of the stage after the next must
//                     know that the stage before was taken, and tensor memory has fences of its own
//   consumer_release  of tiles that bulk copies read arrives when the reads are done
//                     (StagedStores.cpp)
//
// tcgen05 operations are not ordered by a barrier wait alone: between the last wait and the
// operations that follow there is a tcgen05.fence::after_thread_sync (Fences.cpp), and where
// tcgen05.ld precedes an arrival, a tcgen05.fence::before_thread_sync. tcgen05.commit implies the
// latter.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using fp4::pipe::Arrival;
using fp4::pipe::Engine;

namespace {

void emitFence(OpBuilder &b, Location loc, NVVM::Tcgen05FenceKind kind) {
  NVVM::Tcgen05FenceOp::create(b, loc, kind);
}

/// The address of a tile in shared memory. A thread that only names tiles in descriptors and in
/// copies computes addresses of 32 bits; the accesses of many threads keep the pointer that they
/// are based on.
Value sharedTile(OpBuilder &b, Location loc, const fp4::KernelState &state, Value stage,
                 int64_t place, int64_t stride, bool isElected) {
  if (!isElected || !fp4::pipe::namesTiles(*state.target))
    return fp4::stridedPointer(b, loc, fp4::offsetPointer(b, loc, state.sharedBase, place), stage,
                               stride);
  Value base = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), state.sharedBase);
  Value first = arith::AddIOp::create(b, loc, base, fp4::constantI32(b, loc, place));
  Value offset = arith::MulIOp::create(b, loc, stage, fp4::constantI32(b, loc, stride));
  Value address = arith::AddIOp::create(b, loc, first, offset);
  return LLVM::IntToPtrOp::create(b, loc, state.sharedBase.getType(), address);
}

/// The tiles of one stage: shared pointers or tensor memory addresses.
SmallVector<Value> stageTiles(OpBuilder &b, Location loc, fp4::pipe::ChannelOp channel,
                              const fp4::KernelState &state, Value stage, bool isElected) {
  SmallVector<Value> tiles;
  for (auto [i, place] : llvm::enumerate(*channel.getPayload())) {
    int64_t stride = channel.getStageStride(i);
    if (channel.getType().isShared()) {
      tiles.push_back(sharedTile(b, loc, state, stage, place, stride, isElected));
      continue;
    }
    Value first = arith::AddIOp::create(b, loc, state.tmemBase, fp4::constantI32(b, loc, place));
    Value offset = arith::MulIOp::create(b, loc, stage, fp4::constantI32(b, loc, stride));
    tiles.push_back(arith::AddIOp::create(b, loc, first, offset));
  }
  return tiles;
}

struct LowerChannel : fp4::PipePattern<fp4::pipe::ChannelOp> {
  using PipePattern::PipePattern;
  LogicalResult matchAndRewrite(fp4::pipe::ChannelOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, fp4::offsetPointer(rewriter, op.getLoc(), state.sharedBase, *op.getBarriers()));
    return success();
  }
};

/// Returns true when an MMA waits for the tiles.
static bool isAwaitedByMma(Operation *op) { return op->hasAttr(fp4::pipe::kAwaitedByMmaAttr); }

/// Lowers producer_acquire and consumer_wait: one wait, then the tiles.
template <typename OpT> struct LowerWait : fp4::PipePattern<OpT> {
  using fp4::PipePattern<OpT>::PipePattern;

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<fp4::pipe::ChannelOp> channel = fp4::definingChannel(rewriter, op, op.getChannel());
    if (failed(channel))
      return failure();
    constexpr bool producer = std::is_same_v<OpT, fp4::pipe::ProducerAcquireOp>;
    Location loc = op.getLoc();
    fp4::ChannelStage at = fp4::channelStage(rewriter, loc, this->state, *channel,
                                             adaptor.getChannel(), adaptor.getIteration());
    if (!producer && channel->overlaps() && channel->isCluster() &&
        fp4::hasRestrictedFences(this->state))
      NVVM::FenceSyncRestrictOp::create(rewriter, loc, NVVM::MemOrderKind::RELEASE);
    if (producer && channel->overlaps())
      fp4::emitStageWait(rewriter, loc, this->state, *channel, adaptor.getChannel(),
                         adaptor.getIteration(), 1);
    else if (!producer && fp4::followsScaleWarp(op, *channel, this->state))
      fp4::emitBarrierWait(rewriter, loc, this->state, at.copied(rewriter, loc),
                           at.fullParity(rewriter, loc), /*cluster=*/false);
    else if (!isAwaitedByMma(op) && (!producer || !channel->getWithoutEmpty()))
      fp4::emitBarrierWait(rewriter, loc, this->state, producer ? at.empty : at.full,
                           producer ? at.emptyParity(rewriter, loc) : at.fullParity(rewriter, loc),
                           channel->isCluster());
    fp4::pipe::RoleAttr role = this->state.roles.lookup(op);
    if (!op.getUnfenced() && fp4::pipe::ordersTensorCore(op, role))
      emitFence(rewriter, loc, NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
    rewriter.replaceOp(
        op, stageTiles(rewriter, loc, *channel, this->state, at.stage, role && role.isElected()));
    return success();
  }
};

struct LowerAwaitRelease : fp4::PipePattern<fp4::pipe::AwaitReleaseOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::AwaitReleaseOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<fp4::pipe::ChannelOp> channel = fp4::definingChannel(rewriter, op, op.getChannel());
    if (failed(channel))
      return failure();
    Location loc = op.getLoc();
    if (op.getFolded()) {
      fp4::countMmas(rewriter, op, adaptor.getChannel(), adaptor.getIteration(), state);
      rewriter.eraseOp(op);
      return success();
    }
    fp4::emitStageWait(rewriter, loc, state, *channel, adaptor.getChannel(), adaptor.getIteration(),
                       op.getDistance());
    if (!op.getUnfenced())
      emitFence(rewriter, loc, NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerExpectTx : fp4::PipePattern<fp4::pipe::ExpectTxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::ExpectTxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<fp4::pipe::ChannelOp> channel = fp4::definingChannel(rewriter, op, op.getChannel());
    if (failed(channel))
      return failure();
    fp4::ChannelStage at = fp4::channelStage(rewriter, op.getLoc(), state, *channel,
                                             adaptor.getChannel(), adaptor.getIteration());
    if (state.sharing.lookup(*channel).pairUses) { // the leader announces for both CTAs
      Value leads = fp4::isLeader(rewriter, op.getLoc(), state);
      auto guard = scf::IfOp::create(rewriter, op.getLoc(), leads, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(guard.thenBlock());
    }
    fp4::emitOnce(rewriter, op.getLoc(), state, op, [&] {
      NVVM::MBarrierArriveExpectTxOp::create(rewriter, op.getLoc(), /*res=*/Type(), at.full,
                                             adaptor.getBytes(), NVVM::MemScopeKind::CTA,
                                             /*relaxed=*/false, /*predicate=*/Value());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// producer_commit completes full, consumer_release completes empty, each by the engine that the
/// channel names.
template <typename OpT> struct LowerArrival : fp4::PipePattern<OpT> {
  using fp4::PipePattern<OpT>::PipePattern;

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<fp4::pipe::ChannelOp> channel = fp4::definingChannel(rewriter, op, op.getChannel());
    if (failed(channel))
      return failure();
    constexpr bool producer = std::is_same_v<OpT, fp4::pipe::ProducerCommitOp>;
    Location loc = op.getLoc();
    Engine engine = engineOf(op, *channel);
    if (!producer && engine == Engine::BulkStore)
      NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, loc);
    if (!producer && (channel->getWithoutEmpty() || op.getBy() == Arrival::Nobody)) {
      rewriter.eraseOp(op);
      return success();
    }
    if (!producer && engine == Engine::BulkStore) {
      fp4::releaseStored(rewriter, loc, this->state, *channel, adaptor.getChannel(),
                         adaptor.getIteration());
      rewriter.eraseOp(op);
      return success();
    }
    fp4::ChannelStage at = fp4::channelStage(rewriter, loc, this->state, *channel,
                                             adaptor.getChannel(), adaptor.getIteration());
    fp4::arriveCopied(rewriter, op, *channel, at, this->state);
    Value barrier = producer ? at.full : at.empty;
    switch (engine) {
    case Engine::Tma: // the bytes of the loads complete the barrier
      break;
    case Engine::Tensor:
      emitCommit(rewriter, op, *channel, barrier, producer);
      break;
    case Engine::Threads:
      emitThreadArrival(rewriter, op, *channel, barrier, producer);
      break;
    default:
      return rewriter.notifyMatchFailure(op, "expects a side completed by tma, tensor or threads");
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The engine that completes this end.
  Engine engineOf(OpT op, fp4::pipe::ChannelOp channel) const {
    return std::is_same_v<OpT, fp4::pipe::ProducerCommitOp>
               ? channel.getProducer()
               : fp4::pipe::consumerEngine(channel, this->state.roles.lookup(op));
  }

  static bool isPartial(OpT op) {
    return op.getChannelUse() == fp4::pipe::ChannelUse::PartialRelease;
  }

  void emitCommit(OpBuilder &b, OpT op, fp4::pipe::ChannelOp channel, Value barrier,
                  bool producer) const {
    Location loc = op.getLoc();
    Value mask = commitMask(b, loc, channel, producer);
    fp4::emitOnce(b, loc, this->state, op, [&] {
      NVVM::Tcgen05CommitOp::create(b, loc, barrier, mask, this->state.ctaGroup());
    });
  }

  /// The CTAs at whose barriers tcgen05.commit arrives; null for its own CTA only.
  Value commitMask(OpBuilder &b, Location loc, fp4::pipe::ChannelOp channel, bool producer) const {
    if (!channel.isCluster())
      return {};
    return producer ? fp4::pairMask(b, loc, this->state)
                    : fp4::producersMask(b, loc, this->state, this->state.sharing.at(channel));
  }

  void emitThreadArrival(OpBuilder &b, OpT op, fp4::pipe::ChannelOp channel, Value barrier,
                         bool producer) const {
    Location loc = op.getLoc();
    if (channel.getType().isShared()) {
      // Orders generic accesses to shared memory before those of TMA and tensor cores.
      if (!op.getUnfenced())
        fp4::emitProxyFence(b, loc);
    } else {
      if (producer)
        NVVM::Tcgen05WaitOp::create(b, loc, NVVM::Tcgen05WaitKind::STORE);
      emitFence(b, loc, NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC);
    }
    if (op.getBy() != Arrival::Threads && !channel.isCluster())
      arriveForWarp(b, op, barrier);
    else if (!channel.isCluster())
      NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, /*count=*/Value());
    else if (producer)
      fp4::arriveAtLeader(b, loc, this->state, barrier);
    else
      fp4::arriveAtProducers(b, loc, this->state, this->state.sharing.at(channel), barrier,
                             /*isFenced=*/isPartial(op));
  }

  /// Arrives in one thread of each warp, once all threads of the warp are there.
  void arriveForWarp(OpBuilder &b, OpT op, Value barrier) const {
    constexpr int64_t warpThreads = 32;
    Location loc = op.getLoc();
    if (op.getBy() != Arrival::AlignedWarps)
      NVVM::SyncWarpOp::create(b, loc, fp4::constantI32(b, loc, -1));
    Value lane = arith::AndIOp::create(b, loc, this->state.threadIndex,
                                       fp4::constantI32(b, loc, warpThreads - 1));
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, fp4::constantI32(b, loc, 0));
    fp4::arriveWhen(b, loc, isFirst, barrier, fp4::constantI32(b, loc, warpThreads));
  }
};

} // namespace

void fp4::emitBarrierWait(OpBuilder &b, Location loc, const KernelState &state, Value barrier,
                          Value parity, bool cluster) {
  bool fenced = cluster && hasRestrictedFences(state);
  auto loop = scf::WhileOp::create(b, loc, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard restore(b);
  b.createBlock(&loop.getBefore());
  auto scope = cluster ? NVVM::MemScopeKind::CLUSTER : NVVM::MemScopeKind::CTA;
  Value done = NVVM::MBarrierTryWaitOp::create(b, loc, b.getI1Type(), barrier, parity,
                                               /*ticks=*/Value(), scope, /*relaxed=*/fenced);
  Value again = arith::XOrIOp::create(b, loc, done, arith::ConstantIntOp::create(b, loc, 1, 1));
  scf::ConditionOp::create(b, loc, again, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b, loc);
  if (!fenced)
    return;
  b.setInsertionPointAfter(loop);
  NVVM::FenceSyncRestrictOp::create(b, loc, NVVM::MemOrderKind::ACQUIRE);
}

void fp4::emitProxyFence(OpBuilder &b, Location loc) {
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
}

void fp4::emitStageWait(OpBuilder &b, Location loc, const KernelState &state,
                        pipe::ChannelOp channel, Value barriers, Value iteration,
                        int64_t distance) {
  ChannelStage at =
      channelStage(b, loc, state, channel, barriers, iteration, *channel.getDepth() - distance);
  emitBarrierWait(b, loc, state, at.empty, at.emptyParity(b, loc), channel.isCluster());
}

static Value otherParity(OpBuilder &b, Location loc, Value parity) {
  return arith::XOrIOp::create(b, loc, parity, fp4::constantI32(b, loc, 1));
}

Value fp4::ChannelStage::copied(OpBuilder &b, Location loc) const {
  return offsetPointer(b, loc, full, 16 * depth);
}

Value fp4::ChannelStage::fullParity(OpBuilder &b, Location loc) const {
  return phase ? phase : otherParity(b, loc, other);
}

Value fp4::ChannelStage::emptyParity(OpBuilder &b, Location loc) const {
  return other ? other : otherParity(b, loc, phase);
}

fp4::ChannelStage fp4::channelStage(OpBuilder &b, Location loc, const KernelState &state,
                                    pipe::ChannelOp channel, Value barriers, Value iteration,
                                    int64_t offset) {
  int64_t depth = *channel.getDepth();
  ChannelStage at;
  at.depth = depth;
  if (pipe::StageOfOp known = pipe::stageOf(iteration);
      known && int64_t(known.getAhead()) == offset) {
    at.stage = known.getStage();
    (known.getOpposite() ? at.other : at.phase) = known.getPhase();
  } else {
    iteration = pipe::countedIteration(iteration);
    Value count = constantI32(b, loc, depth), one = constantI32(b, loc, 1);
    if (offset)
      iteration = arith::AddIOp::create(b, loc, iteration, constantI32(b, loc, offset));
    at.stage = arith::RemUIOp::create(b, loc, iteration, count);
    at.phase = arith::AndIOp::create(b, loc, arith::DivUIOp::create(b, loc, iteration, count), one);
  }
  at.full = stridedPointer(b, loc, barriers, at.stage, 8);
  at.empty = offsetPointer(b, loc, at.full, 8 * depth);
  return at;
}

FailureOr<fp4::pipe::ChannelOp> fp4::definingChannel(ConversionPatternRewriter &rewriter,
                                                     Operation *user, Value channel) {
  auto op = channel.getDefiningOp<pipe::ChannelOp>();
  if (!op || !op.isPipelined())
    return rewriter.notifyMatchFailure(user, "expects the pipe.channel op of the pipelined form");
  return op;
}

bool fp4::countsMmas(pipe::ChannelOp channel) {
  return llvm::any_of(channel->getUsers(), [](Operation *user) {
    auto await = dyn_cast<pipe::AwaitReleaseOp>(user);
    return await && await.getFolded();
  });
}

void fp4::arriveForFirstStage(OpBuilder &b, pipe::ChannelOp channel, const KernelState &state) {
  if (!countsMmas(channel))
    return;
  Location loc = channel.getLoc();
  Value barrier = offsetPointer(b, loc, state.sharedBase, *channel.getBarriers());
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, /*count=*/Value());
}

void fp4::countMmas(OpBuilder &b, pipe::AwaitReleaseOp await, Value barriers, Value iteration,
                    const KernelState &state) {
  Location loc = await.getLoc();
  auto channel = await.getChannel().getDefiningOp<pipe::ChannelOp>();
  Value stage;
  if (pipe::StageOfOp known = pipe::stageOf(iteration))
    stage = pipe::nextStage(b, loc, {known.getStage(), known.getPhase(), known.getOpposite()},
                            *channel.getDepth())
                .stage;
  else
    stage = channelStage(b, loc, state, channel, barriers, iteration, /*offset=*/1).stage;
  Value full = stridedPointer(b, loc, barriers, stage, 8);
  emitOnce(b, loc, state, await, [&] {
    NVVM::Tcgen05CommitOp::create(b, loc, full, /*multicastMask=*/Value(), state.ctaGroup());
  });
}

void fp4::populateChannelPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                  const KernelState &state) {
  patterns.add<LowerChannel, LowerWait<pipe::ProducerAcquireOp>, LowerWait<pipe::ConsumerWaitOp>,
               LowerArrival<pipe::ProducerCommitOp>, LowerArrival<pipe::ConsumerReleaseOp>,
               LowerAwaitRelease, LowerExpectTx>(converter, patterns.getContext(), state);
}
