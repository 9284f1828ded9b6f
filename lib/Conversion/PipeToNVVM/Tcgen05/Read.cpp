//===- Read.cpp - Reads of accumulators in tensor memory ------------------===//
#include "Tcgen05/Lanes.h"

#include "InlinePtx.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {

/// Reads columns of tensor memory; those of a fragment are elements of an array
/// (FragmentElements.cpp).
struct LowerRead : fp4::PipePattern<fp4::pipe::ReadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::ReadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<fp4::pipe::TmemType>(op.getAccumulator().getType()))
      return rewriter.notifyMatchFailure(op, "reads a fragment");
    Location loc = op.getLoc();
    VectorType type = fp4::pipe::vectorOfThread(op.getResult().getType());
    int64_t count = type.getNumElements();
    Type word = rewriter.getI32Type();
    // tcgen05.ld is aligned, and the guarded stores of an earlier segment may have split the warp.
    if (state.facts.splitsWarps)
      NVVM::SyncWarpOp::create(rewriter, loc, fp4::constantI32(rewriter, loc, -1));
    Type loadedType = count == 1 ? word : VectorType::get(count, word);
    Value loaded = NVVM::Tcgen05LdOp::create(
        rewriter, loc, loadedType, /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
        fp4::tmemPointer(rewriter, loc, address(rewriter, loc, adaptor)), /*offset=*/Value());
    SmallVector<Value> words;
    for (int64_t i = 0; i < count; ++i)
      words.push_back(count == 1 ? loaded
                                 : LLVM::ExtractElementOp::create(
                                       rewriter, loc, loaded, fp4::constantI32(rewriter, loc, i)));
    rewriter.setInsertionPoint(placeOfWait(op));
    for (Value &value : words = fp4::waitForLoaded(rewriter, loc, words))
      value = arith::BitcastOp::create(rewriter, loc, type.getElementType(), value);
    rewriter.replaceOp(op, vector::FromElementsOp::create(rewriter, loc, type, words));
    return success();
  }

private:
  /// A thread waits before it uses what it reads, or does anything but arithmetic: in the meantime
  /// it converts what it has read before. Reads in front of a partial release need not wait for
  /// each other, because the MMAs of the next tile wait for all of them.
  static Operation *placeOfWait(fp4::pipe::ReadOp op) {
    Block *block = op->getBlock();
    llvm::SmallPtrSet<Operation *, 4> users;
    for (Operation *user : op->getUsers())
      if (isa<fp4::pipe::ElementsOp>(user)) // no instruction
        for (Operation *next : user->getUsers())
          users.insert(block->findAncestorOpInBlock(*next));
      else
        users.insert(block->findAncestorOpInBlock(*user));
    auto placeBehind = [&](auto passes) {
      Operation *place = op->getNextNode();
      while (!users.contains(place) && passes(place) && !place->hasTrait<OpTrait::IsTerminator>())
        place = place->getNextNode();
      return place;
    };
    Operation *place = placeBehind(
        [](Operation *next) { return isa<fp4::pipe::ReadOp>(next) || isMemoryEffectFree(next); });
    auto release = dyn_cast<fp4::pipe::ConsumerReleaseOp>(place);
    return release && release.getPartial() ? place : placeBehind(isMemoryEffectFree);
  }

  Value address(OpBuilder &builder, Location loc, OpAdaptor adaptor) const {
    ImplicitLocOpBuilder b(loc, builder);
    fp4::Int32 lanes = fp4::lanesOfWarp(b, state);
    return fp4::Int32(b, adaptor.getAccumulator()) + fp4::Int32(b, adaptor.getColumn()) + lanes;
  }
};

} // namespace

void fp4::populateReadPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                               const KernelState &state) {
  patterns.add<LowerRead>(converter, patterns.getContext(), state);
}
