//===- ReduceFragment.cpp - Sums of the CTAs of a cluster -------------------===//
//
// reduce of fragments: a thread stores each piece of its accumulator that another CTA adds to the
// shared memory of that CTA, behind those of the CTAs before. The pieces that it adds itself stay
// in registers.
//
//===----------------------------------------------------------------------===//
#include "Common/ReductionExchange.h"

#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

class ClusterReduction : ReductionExchange {
public:
  ClusterReduction(ImplicitLocOpBuilder &b, pipe::ReduceOp op, const KernelState &state,
                   ValueRange fragments)
      : ReductionExchange(b, op, state), op(op), fragments(fragments),
        blocks(state.cluster.shape.m), ranges(int64_t(fragments.size())) {}

  /// Emits the reduction. `phase` is the parity of this reduction, an i32.
  void emit(Value phase) {
    awaitAdded(phase);
    for (int64_t piece = 0; piece < op.getNumPieces(); ++piece)
      for (int64_t range = 0; range < ranges; ++range)
        when(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, mine, Int32(b, piece % blocks)),
             [&] { sendPiece(piece, range); });
    when(mine < sizes.adding, [&] {
      Int32 pieces = Int32(b, op.getNumPieces() + blocks - 1) - mine;
      awaitArrived(pieces / blocks * (sentBytes() / (threads / kWarp)), phase);
      for (int64_t piece = 0; piece < op.getNumPieces(); ++piece)
        when(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, mine, Int32(b, piece % blocks)),
             [&] { add(piece); });
      arriveAdded(blocks, [&](Int32 block) { return first + block; });
    });
  }

private:
  int64_t elementsOfPiece() { return int64_t(*op.getColumns()) / 2; }

  /// Bytes that the other CTAs send of a piece.
  int64_t sentBytes() { return (blocks - 1) * ranges * sizes.pieceBytes; }

  /// The place of k slice `range` of all CTAs among the slices that other CTAs send to `block`.
  int64_t placeOf(int64_t range, int64_t block) {
    return range < block * ranges ? range : range - ranges;
  }

  /// The address of this thread's part of `piece` from the first CTA on; elements are apart by
  /// threads.
  Value slot(int64_t piece) {
    Value ofPiece = offsetPointer(b, b.getLoc(), received, piece / blocks * sentBytes());
    return stridedPointer(b, b.getLoc(), ofPiece, thread, 4 * kTogether);
  }

  void sendPiece(int64_t piece, int64_t range) {
    int64_t begin = piece * elementsOfPiece();
    SmallVector<Value> elements = loadElements(b, fragments[range], begin, elementsOfPiece());
    Value ofRange = offsetPointer(b, b.getLoc(), slot(piece), range * sizes.pieceBytes);
    // CTAs behind the one that adds come a place earlier.
    Value isBehind = Int32(b, piece % blocks) < mine;
    Int32 place = mine - Int32(b, arith::ExtUIOp::create(b, b.getI32Type(), isBehind));
    Value own = stridedPointer(b, b.getLoc(), ofRange, place, ranges * sizes.pieceBytes);
    send(elements, own, first + piece % blocks);
  }

  /// Four elements from `i` on of k slice `range` of all CTAs, for the `piece` that this CTA adds.
  Value elementsOf(int64_t piece, int64_t range, int64_t i) {
    auto type = VectorType::get(kTogether, b.getF32Type());
    int64_t block = piece % blocks, own = range - block * ranges;
    if (own >= 0 && own < ranges)
      return loadVector(b, fragments[size_t(own)], piece * elementsOfPiece() + i, type);
    int64_t offset = placeOf(range, block) * sizes.pieceBytes + 4 * i * threads;
    return LLVM::LoadOp::create(b, type, offsetPointer(b, b.getLoc(), slot(piece), offset),
                                4 * kTogether);
  }

  Value combine(Value x, Value y) {
    if (op.getMaximum())
      return arith::MaximumFOp::create(b, x, y);
    return arith::AddFOp::create(b, x, y);
  }

  void add(int64_t piece) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < elementsOfPiece(); i += kTogether) {
      Value sum;
      for (int64_t range = 0; range < blocks * ranges; ++range) {
        Value next = elementsOf(piece, range, i);
        sum = sum ? combine(sum, next) : next;
      }
      for (int64_t j = 0; j < kTogether; ++j)
        sums.push_back(vector::ExtractOp::create(b, sum, j));
    }
    storeElements(b, offsetPointer(b, b.getLoc(), fragments.front(), 4 * piece * elementsOfPiece()),
                  sums);
  }

  pipe::ReduceOp op;
  ValueRange fragments; ///< fragments of the k slices of this CTA
  int64_t blocks;       ///< along m
  int64_t ranges;       ///< k slices of a CTA
};

struct LowerReduceFragment : PipePattern<pipe::ReduceOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.isOfTmem())
      return rewriter.notifyMatchFailure(op, "reduces tensor memory");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto reduce = [&](Value phase) {
      ClusterReduction(b, op, state, adaptor.getAccumulators()).emit(phase);
    };
    int64_t warps = state.roles.at(op).getNumWarps(), reducing = op.getNumReducing(warps);
    ReductionExchange::emitInTurn(b, state, [&](Value phase) {
      if (reducing == warps)
        return reduce(phase);
      emitIf(b, b.getLoc(), threadOfRole(b, op, state) < reducing * 32, [&] { reduce(phase); });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fp4::populateReduceFragmentPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns, const KernelState &state) {
  patterns.add<LowerReduceFragment>(converter, patterns.getContext(), state);
}
