//===- ReductionExchange.cpp - Barriers of reductions in a cluster -------------===//
#include "Common/ReductionExchange.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

using namespace mlir;
using namespace fp4;

ReductionExchange::ReductionExchange(ImplicitLocOpBuilder &b, pipe::ClusterReductionOpInterface op,
                                     const KernelState &state)
    : b(b), op(op), state(state), sizes(state.reductions.at(op)),
      mine(b, placeInCluster(b, b.getLoc(), state, hw::ClusterDirection::M)),
      first(Int32(b, state.cluster.rank) - mine), thread(threadOfRole(b, op, state)),
      threads(op.getNumReducing(state.roles.at(op).getNumWarps()) * kWarp),
      received(offsetPointer(b, b.getLoc(), state.sharedBase, *op.getReductionPlace())),
      arrived(offsetPointer(b, b.getLoc(), state.sharedBase, sizes.barriers)),
      added(offsetPointer(b, b.getLoc(), arrived, 8)) {}

void ReductionExchange::awaitAdded(Value phase) {
  Value before = arith::XOrIOp::create(b, phase, constI32(b, 1));
  emitBarrierWait(b, b.getLoc(), state, added, before, /*cluster=*/true);
}

void ReductionExchange::awaitArrived(Int32 bytes, Value phase) {
  when(thread % kWarp < 1, [&] {
    NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), arrived, bytes,
                                           NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                           /*predicate=*/Value());
  });
  NVVM::SyncWarpOp::create(b, constI32(b, -1)); // the lanes go on together
  emitBarrierWait(b, b.getLoc(), state, arrived, phase, /*cluster=*/true);
}

void ReductionExchange::arriveAdded(int64_t count, llvm::function_ref<Int32(Int32)> rankOf) {
  auto arrive = [&] {
    NVVM::SyncWarpOp::create(b, constI32(b, -1)); // earlier accesses of other lanes come before
    Int32 lane = thread % kWarp;
    when(lane < count, [&] { arriveAtCtas(b, b.getLoc(), state, added, Value(rankOf(lane))); });
    NVVM::SyncWarpOp::create(b, constI32(b, -1)); // the lanes go on together
  };
  scf::ForOp loop = loopOfReductions(op);
  if (!loop)
    return arrive();
  Value next = arith::AddIOp::create(b, loop.getInductionVar(), loop.getStep());
  when(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, next, loop.getUpperBound()), arrive);
}

void ReductionExchange::send(ArrayRef<Value> elements, Value target, Int32 rank) {
  Value remote = inBlock(b, b.getLoc(), target, rank);
  Value barrier = inBlock(b, b.getLoc(), arrived, rank);
  for (size_t i = 0; i < elements.size(); i += kTogether)
    storeAsync(b, elements.slice(i, kTogether),
               offsetPointer(b, b.getLoc(), remote, 4 * int64_t(i) * threads), barrier);
}

void ReductionExchange::emitInTurn(ImplicitLocOpBuilder &b, const KernelState &state,
                                   llvm::function_ref<void(Value)> emit) {
  Value kept = frameArray(b, state, 1);
  {
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointAfterValue(kept);
    LLVM::StoreOp::create(b, constI32(b, 0), kept, 4); // when the kernel begins
  }
  Value phase = LLVM::LoadOp::create(b, b.getI32Type(), kept, 4);
  emit(phase);
  LLVM::StoreOp::create(b, arith::XOrIOp::create(b, phase, constI32(b, 1)), kept, 4);
}

scf::ForOp fp4::loopOfReductions(Operation *join) {
  auto loop = dyn_cast<scf::ForOp>(join->getParentOp());
  return loop && !loop->getParentOfType<LoopLikeOpInterface>() ? loop : scf::ForOp();
}

void fp4::initializeJoin(OpBuilder &b, Location loc, Operation *join, const KernelState &state) {
  ReductionSizes sizes = state.reductions.at(join);
  int64_t warps = cast<pipe::ClusterReductionOpInterface>(join).getNumReducing(
      state.roles.at(join).getNumWarps());
  auto initialize = [&](int64_t offset, int64_t arrivals) {
    NVVM::MBarrierInitOp::create(b, loc,
                                 offsetPointer(b, loc, state.sharedBase, sizes.barriers + offset),
                                 constantI32(b, loc, arrivals), /*predicate=*/Value());
  };
  initialize(0, warps);
  initialize(8, warps * sizes.adding);
}
