//===- JoinFragment.cpp - Sums of the blocks of a cluster -----------------===//
//
// join_fragment: a thread stores each piece of its accumulator that another block adds to the shared
// memory of that block, behind those of the blocks before. What it adds itself stays in registers.
// The stores are asynchronous: nobody waits for them but who adds, and no fence orders them. A block
// has two barriers:
//
//   arrived   counts the bytes that the warps of the cluster send to this block; every warp of it
//             announces those of its own elements
//   added     counts warps: every one of the blocks that add has read what this block sent. Lanes
//             share out the blocks to arrive at
//
// A join waits for the `added` of the one before, whose parity a thread keeps in a register. Behind
// the last one, in the last turn of the loop, nobody arrives there. So where a block has one turn,
// all that reaches it is what it waits for itself. Behind several, the kernel ends with a barrier
// of the cluster, which also releases the stored results to all of the GPU and waits for that.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kWarp = 32, kTogether = 4; ///< elements of a thread that one access moves

class ClusterJoin {
public:
  ClusterJoin(ImplicitLocOpBuilder &b, pipe::JoinFragmentOp op, const KernelState &state,
              ValueRange fragments)
      : b(b), op(op), state(state), fragments(fragments), sizes(state.joins.at(op)),
        blocks(state.cluster.m), ranges(int64_t(fragments.size())),
        mine(b, placeInCluster(b, b.getLoc(), state, hw::ClusterDirection::M)),
        first(Int32(b, state.clusterRank) - mine), thread(threadOfRole(b, op, state)),
        threads(state.roles.at(op).getNumThreads()),
        received(offsetPointer(b, b.getLoc(), state.sharedBase, *op.getPlace())),
        arrived(offsetPointer(b, b.getLoc(), state.sharedBase, sizes.barriers)),
        added(offsetPointer(b, b.getLoc(), arrived, 8)) {}

  /// `phase`: i32, the parity of this join.
  void emit(Value phase) {
    Value before = arith::XOrIOp::create(b, phase, constI32(b, 1));
    emitBarrierWait(b, b.getLoc(), state, added, before, /*cluster=*/true);
    for (int64_t piece = 0; piece < op.getNumPieces(); ++piece)
      for (int64_t range = 0; range < ranges; ++range)
        when(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, mine, Int32(b, piece % blocks)),
             [&] { send(piece, range); });
    when(mine < sizes.adding, [&] {
      announce();
      emitBarrierWait(b, b.getLoc(), state, arrived, phase, /*cluster=*/true);
      for (int64_t piece = 0; piece < op.getNumPieces(); ++piece)
        when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, mine, Int32(b, piece % blocks)),
             [&] { add(piece); });
      if (scf::ForOp loop = loopOfJoins(op))
        when(hasNext(loop), [&] { arriveAdded(); });
      else
        arriveAdded();
    });
  }

private:
  Value hasNext(scf::ForOp loop) {
    Value next = arith::AddIOp::create(b, loop.getInductionVar(), loop.getStep());
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, next, loop.getUpperBound());
  }

  void when(Value condition, llvm::function_ref<void()> body) {
    emitIf(b, b.getLoc(), condition, body);
  }

  int64_t elementsOfPiece() { return int64_t(op.getColumns()) / 2; }

  /// What the other blocks send of a piece.
  int64_t sentBytes() { return (blocks - 1) * ranges * sizes.pieceBytes; }

  /// Where range `range` of all blocks is among those that others send to `block`.
  int64_t placeOf(int64_t range, int64_t block) {
    return range < block * ranges ? range : range - ranges;
  }

  /// What this thread has of `piece` from the first block on; elements are apart by threads.
  Value slot(int64_t piece) {
    Value ofPiece = offsetPointer(b, b.getLoc(), received, piece / blocks * sentBytes());
    return stridedPointer(b, b.getLoc(), ofPiece, thread, 4 * kTogether);
  }

  void send(int64_t piece, int64_t range) {
    int64_t begin = piece * elementsOfPiece();
    SmallVector<Value> elements = loadElements(b, fragments[range], begin, elementsOfPiece());
    Value ofRange = offsetPointer(b, b.getLoc(), slot(piece), range * sizes.pieceBytes);
    // Blocks behind the one that adds come a place earlier.
    Value isBehind = Int32(b, piece % blocks) < mine;
    Int32 place = mine - Int32(b, arith::ExtUIOp::create(b, b.getI32Type(), isBehind));
    Value own = stridedPointer(b, b.getLoc(), ofRange, place, ranges * sizes.pieceBytes);
    Value target = inBlock(b, b.getLoc(), own, first + piece % blocks);
    Value barrier = inBlock(b, b.getLoc(), arrived, first + piece % blocks);
    for (int64_t i = 0; i < elementsOfPiece(); i += kTogether)
      storeAsync(b, ArrayRef(elements).slice(i, kTogether),
                 offsetPointer(b, b.getLoc(), target, 4 * i * threads), barrier);
  }

  /// Four elements from `i` on of `range` of all blocks, where this block adds `piece`.
  Value elementsOf(int64_t piece, int64_t range, int64_t i) {
    auto type = VectorType::get(kTogether, b.getF32Type());
    int64_t block = piece % blocks, own = range - block * ranges;
    if (own >= 0 && own < ranges)
      return loadVector(b, fragments[size_t(own)], piece * elementsOfPiece() + i, type);
    int64_t offset = placeOf(range, block) * sizes.pieceBytes + 4 * i * threads;
    return LLVM::LoadOp::create(b, type, offsetPointer(b, b.getLoc(), slot(piece), offset),
                                4 * kTogether);
  }

  /// The bytes that this warp adds up.
  void announce() {
    Int32 pieces = Int32(b, op.getNumPieces() + blocks - 1) - mine;
    Int32 bytes = pieces / blocks * (sentBytes() / (threads / kWarp));
    when(thread % kWarp < 1, [&] {
      NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), arrived, bytes,
                                             NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                             /*predicate=*/Value());
    });
    NVVM::SyncWarpOp::create(b, constI32(b, -1)); // the lanes go on together
  }

  /// This warp arrives at `added` of all blocks along m.
  void arriveAdded() {
    NVVM::SyncWarpOp::create(b, constI32(b, -1)); // what the other lanes did comes before
    Int32 lane = thread % kWarp;
    when(lane < blocks, [&] { arriveAtBlocks(b, b.getLoc(), state, added, Value(first + lane)); });
    NVVM::SyncWarpOp::create(b, constI32(b, -1)); // the lanes go on together
  }

  void add(int64_t piece) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < elementsOfPiece(); i += kTogether) {
      Value sum;
      for (int64_t range = 0; range < blocks * ranges; ++range) {
        Value next = elementsOf(piece, range, i);
        sum = sum ? arith::AddFOp::create(b, sum, next).getResult() : next;
      }
      for (int64_t j = 0; j < kTogether; ++j)
        sums.push_back(vector::ExtractOp::create(b, sum, j));
    }
    storeElements(b, offsetPointer(b, b.getLoc(), fragments.front(), 4 * piece * elementsOfPiece()),
                  sums);
  }

  ImplicitLocOpBuilder &b;
  pipe::JoinFragmentOp op;
  const KernelState &state;
  ValueRange fragments; ///< of the ranges of this block
  JoinSizes sizes;
  int64_t blocks; ///< along m
  int64_t ranges; ///< of a block
  Int32 mine;     ///< the place of this block along m
  Int32 first;    ///< the rank of the first block along m
  Int32 thread;   ///< of the role
  int64_t threads;
  Value received, arrived, added;
};

struct LowerJoinFragment : PipePattern<pipe::JoinFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::JoinFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value kept = parity(b);
    Value phase = LLVM::LoadOp::create(b, b.getI32Type(), kept, 4);
    ClusterJoin(b, op, state, adaptor.getAccumulators()).emit(phase);
    LLVM::StoreOp::create(b, arith::XOrIOp::create(b, phase, constI32(b, 1)), kept, 4);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// 0 when the kernel begins.
  Value parity(ImplicitLocOpBuilder &b) const {
    Value kept = frameArray(b, state, 1);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointAfterValue(kept);
    LLVM::StoreOp::create(b, constI32(b, 0), kept, 4);
    return kept;
  }
};

} // namespace

scf::ForOp fp4::loopOfJoins(Operation *join) {
  auto loop = dyn_cast<scf::ForOp>(join->getParentOp());
  return loop && !loop->getParentOfType<LoopLikeOpInterface>() ? loop : scf::ForOp();
}

void fp4::initializeJoin(OpBuilder &b, Location loc, Operation *join, const KernelState &state) {
  JoinSizes sizes = state.joins.at(join);
  int64_t warps = state.roles.at(join).getNumWarps();
  auto initialize = [&](int64_t offset, int64_t arrivals) {
    NVVM::MBarrierInitOp::create(b, loc,
                                 offsetPointer(b, loc, state.sharedBase, sizes.barriers + offset),
                                 constantI32(b, loc, arrivals), /*predicate=*/Value());
  };
  initialize(0, warps);
  initialize(8, warps * sizes.adding);
}

void fp4::populateJoinFragmentPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns.add<LowerJoinFragment>(converter, patterns.getContext(), state);
}
