//===- Clusters.cpp - Barriers and masks of several CTAs ------------------===//
//
// A channel of scope cluster has the same barriers in every CTA. Arrivals reach other CTAs in two
// ways: tcgen05.commit takes a mask of ranks; a thread maps the address of its own barrier to that
// of another CTA (mapa) and arrives there. The loads of both CTAs of a pair signal the leader:
// cp.async.bulk.tensor with cta_group::2 takes a barrier of either CTA. PTX ISA: "CTA pair",
// "mapa", "tcgen05.commit".
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"
#include "Int32.h"

using namespace mlir;
namespace hw = fp4::hw;

/// Wraps the rank of this CTA in its cluster, as formulas need it.
static fp4::Int32 rankOf(ImplicitLocOpBuilder &b, const fp4::KernelState &state) {
  return fp4::Int32(b, state.cluster.rank);
}

/// Applies `formula` to the shape of the cluster that runs this CTA.
template <typename Formula>
static fp4::Int32 ofShape(const fp4::KernelState &state, Formula formula) {
  fp4::Int32 whole = formula(state.cluster.shape);
  return state.cluster.fallback
             ? select(state.cluster.inFallback, formula(*state.cluster.fallback), whole)
             : whole;
}

/// Widens a mask at once: LLVM would shift in 16 bits, whose clamps ptxas computes on the path to
/// the first load.
static Value maskOperand(ImplicitLocOpBuilder &b, Value mask) {
  Value word = fp4::computeHere(b, b.getLoc(), mask).front();
  return arith::TruncIOp::create(b, b.getI16Type(), word);
}

Value fp4::isLeader(OpBuilder &builder, Location loc, const KernelState &state) {
  ImplicitLocOpBuilder b(loc, builder);
  Value odd = rankOf(b, state) % 2;
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, odd, constantI32(b, loc, 0));
}

Value fp4::placeInCluster(OpBuilder &builder, Location loc, const KernelState &state,
                          hw::ClusterDirection direction) {
  ImplicitLocOpBuilder b(loc, builder);
  return ofShape(state, [&](hw::ClusterShape shape) {
    return hw::placeAlong(rankOf(b, state), shape, direction);
  });
}

Value fp4::multicastMask(OpBuilder &builder, Location loc, const KernelState &state,
                         hw::ClusterDirection direction) {
  ImplicitLocOpBuilder b(loc, builder);
  return maskOperand(b, ofShape(state, [&](hw::ClusterShape shape) {
                       return hw::maskAlong(rankOf(b, state), shape, direction);
                     }));
}

Value fp4::pairMask(OpBuilder &builder, Location loc, const KernelState &state) {
  ImplicitLocOpBuilder b(loc, builder);
  return maskOperand(b, hw::maskOfPair(rankOf(b, state)));
}

Value fp4::producersMask(OpBuilder &builder, Location loc, const KernelState &state,
                         const pipe::ChannelSharing &sharing) {
  ImplicitLocOpBuilder b(loc, builder);
  return maskOperand(b, ofShape(state, [&](hw::ClusterShape shape) {
                       return sharing.in(shape).producersOf(rankOf(b, state));
                     }));
}

Value fp4::inBlock(OpBuilder &b, Location loc, Value pointer, Value rank) {
  Type type = LLVM::LLVMPointerType::get(b.getContext(), kClusterSpace);
  return NVVM::MapaOp::create(b, loc, type, pointer, rank);
}

bool fp4::hasRestrictedFences(const KernelState &state) {
  return state.target->ptxFeature >= "+ptx86";
}

static void emitRemoteArrival(OpBuilder &b, Location loc, Value barrier, Value rank, bool relaxed) {
  NVVM::MBarrierArriveOp::create(b, loc, TypeRange(), fp4::inBlock(b, loc, barrier, rank),
                                 /*count=*/Value(), NVVM::MemScopeKind::CLUSTER, relaxed);
}

void fp4::arriveAtCtas(OpBuilder &b, Location loc, const KernelState &state, Value barrier,
                       ValueRange ranks, bool isFenced) {
  bool fenced = hasRestrictedFences(state);
  if (fenced && !isFenced)
    NVVM::FenceSyncRestrictOp::create(b, loc, NVVM::MemOrderKind::RELEASE);
  for (Value rank : ranks)
    emitRemoteArrival(b, loc, barrier, rank, /*relaxed=*/fenced);
}

Value fp4::leaderBarrier(OpBuilder &builder, Location loc, const KernelState &state,
                         Value barrier) {
  ImplicitLocOpBuilder b(loc, builder);
  Value remote = inBlock(b, loc, barrier, hw::pairLeader(rankOf(b, state)));
  // The copy's operand has the type of an own barrier; the address selects the CTA.
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), remote);
  return LLVM::IntToPtrOp::create(b, barrier.getType(), address);
}

/// The CTAs of `sharing`'s producers that a thread arrives at, its own first.
static SmallVector<fp4::Int32> producerRanks(ImplicitLocOpBuilder &b, const fp4::KernelState &state,
                                             const fp4::pipe::ChannelSharing &sharing) {
  fp4::Int32 rank = rankOf(b, state);
  if (sharing.pairFills)
    return {hw::pairLeader(rank)};
  SmallVector<fp4::Int32> ranks = {rank};
  uint32_t m = sharing.cluster.m, n = sharing.cluster.n;
  fp4::Int32 x = rank % m, first = rank - x;
  for (uint32_t i = 1; sharing.multicastM && i < m; ++i)
    ranks.push_back(first + (x + i) % m);
  for (uint32_t i = 1; sharing.multicastN && i < n; ++i)
    ranks.push_back((rank + i * m) % (m * n));
  return ranks;
}

void fp4::arriveAtLeader(OpBuilder &builder, Location loc, const KernelState &state,
                         Value barrier) {
  ImplicitLocOpBuilder b(loc, builder);
  arriveAtCtas(b, loc, state, barrier, Value(hw::pairLeader(rankOf(b, state))));
}

void fp4::arriveAtProducers(OpBuilder &builder, Location loc, const KernelState &state,
                            const pipe::ChannelSharing &sharing, Value barrier, bool isFenced) {
  ImplicitLocOpBuilder b(loc, builder);
  SmallVector<fp4::Int32> ranks = producerRanks(b, state, sharing);
  arriveAtCtas(b, loc, state, barrier, SmallVector<Value>(ranks.begin(), ranks.end()), isFenced);
}

void fp4::emitFirstBarrier(OpBuilder &b, Location loc, const KernelState &state) {
  if (state.cluster.shape.size() == 1)
    return emitKernelBarrier(b, loc, state);
  // The fence behind the initializations releases them. A barrier that releases too would wait for
  // a fence of the whole GPU before the first load.
  NVVM::ClusterArriveRelaxedOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

void fp4::emitKernelBarrier(OpBuilder &b, Location loc, const KernelState &state) {
  if (state.cluster.shape.size() == 1) {
    NVVM::BarrierOp::create(b, loc);
    return;
  }
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}
