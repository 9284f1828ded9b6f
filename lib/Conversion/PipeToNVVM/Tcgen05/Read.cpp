//===- Read.cpp - Reads of accumulators, and writes of operands -----------===//
#include "Tcgen05/Lanes.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/PipeRows.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {

/// Columns of one read beside sums in registers: a wider one needs so many registers in a row, for
/// which ptxas spills others.
constexpr int64_t kColumnsBesideSums = 64;

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
    // tcgen05.ld is aligned, and the guarded stores of an earlier segment may have split the warp.
    if (state.facts.splitsWarps)
      NVVM::SyncWarpOp::create(rewriter, loc, fp4::constantI32(rewriter, loc, -1));
    int64_t width = state.facts.keepsLanes ? std::min(count, kColumnsBesideSums) : count;
    Value first = address(rewriter, loc, adaptor);
    SmallVector<Value> words;
    for (int64_t at = 0; at < count; at += width)
      llvm::append_range(words, load(rewriter, loc, first, at, width));
    rewriter.setInsertionPoint(placeOfWait(op));
    for (Value &value : words = fp4::waitForLoaded(rewriter, loc, words))
      value = arith::BitcastOp::create(rewriter, loc, type.getElementType(), value);
    rewriter.replaceOp(op, vector::FromElementsOp::create(rewriter, loc, type, words));
    return success();
  }

private:
  /// The words of `width` columns, `at` columns behind the first one.
  static SmallVector<Value> load(OpBuilder &b, Location loc, Value first, int64_t at,
                                 int64_t width) {
    Type word = b.getI32Type();
    if (at)
      first = arith::AddIOp::create(b, loc, first, fp4::constantI32(b, loc, at));
    Value loaded = NVVM::Tcgen05LdOp::create(
        b, loc, width == 1 ? word : VectorType::get(width, word), /*pack=*/false,
        NVVM::Tcgen05LdStShape::SHAPE_32X32B, fp4::tmemPointer(b, loc, first), /*offset=*/Value());
    if (width == 1)
      return {loaded};
    SmallVector<Value> words;
    for (int64_t i = 0; i < width; ++i)
      words.push_back(LLVM::ExtractElementOp::create(b, loc, loaded, fp4::constantI32(b, loc, i)));
    return words;
  }

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

/// Writes a row of each thread into tensor memory, a word of elements in a column. The arrival of
/// the stage waits for the writes (Channels.cpp).
struct LowerTmemWrite : fp4::PipePattern<fp4::pipe::WriteOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::WriteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getFragmentType())
      return rewriter.notifyMatchFailure(op, "writes a fragment");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType row = fp4::pipe::vectorOfThread(op.getValue().getType());
    int64_t columns = row.getNumElements() * row.getElementTypeBitWidth() / 32;
    if (state.facts.splitsWarps) // tcgen05.st is aligned too
      NVVM::SyncWarpOp::create(b, fp4::constI32(b, -1));
    Value words =
        LLVM::BitcastOp::create(b, VectorType::get(columns, b.getI32Type()), adaptor.getValue());
    fp4::Int32 first = fp4::Int32(b, adaptor.getDest()) + fp4::lanesOfWarp(b, state);
    NVVM::Tcgen05StOp::create(b, /*unpack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                              fp4::tmemPointer(b, b.getLoc(), first), words, /*offset=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Multiplies rows of sums that some thread of the warp must scale.
struct LowerScaleRows : fp4::PipePattern<fp4::pipe::ScaleRowsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::ScaleRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value factor = vector::ExtractOp::create(b, adaptor.getFactors(), 0);
    Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
    Value isScaled = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
    Value any = NVVM::VoteSyncOp::create(b, b.getI1Type(), fp4::constI32(b, -1), isScaled,
                                         NVVM::VoteSyncKind::any);
    auto branch = scf::IfOp::create(b, any, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Value first = fp4::Int32(b, adaptor.getTile()) + fp4::lanesOfWarp(b, state);
    for (int64_t at = 0; at < op.getTile().getType().getShape()[1]; at += kScaledColumns)
      scale(b, fp4::Int32(b, first) + at, factor);
    NVVM::Tcgen05WaitOp::create(b, NVVM::Tcgen05WaitKind::STORE);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Columns that are in registers at a time, beside the scores of a row.
  static constexpr int64_t kScaledColumns = 32;

  static void scale(ImplicitLocOpBuilder &b, Value first, Value factor) {
    Location loc = b.getLoc();
    auto words = VectorType::get(kScaledColumns, b.getI32Type());
    Value address = fp4::tmemPointer(b, loc, first);
    Value loaded =
        NVVM::Tcgen05LdOp::create(b, words, /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                                  address, /*offset=*/Value());
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < kScaledColumns; ++i)
      numbers.push_back(LLVM::ExtractElementOp::create(b, loaded, fp4::constI32(b, i)));
    Value scaled = LLVM::PoisonOp::create(b, words);
    for (auto [i, word] : llvm::enumerate(fp4::waitForLoaded(b, loc, numbers))) {
      Value number = LLVM::BitcastOp::create(b, b.getF32Type(), word);
      Value product =
          LLVM::BitcastOp::create(b, b.getI32Type(), arith::MulFOp::create(b, number, factor));
      scaled = LLVM::InsertElementOp::create(b, scaled, product, fp4::constI32(b, int64_t(i)));
    }
    NVVM::Tcgen05StOp::create(b, /*unpack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B, address,
                              scaled, /*offset=*/Value());
  }
};

} // namespace

void fp4::populateReadPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                               const KernelState &state) {
  patterns.add<LowerRead, LowerTmemWrite, LowerScaleRows>(converter, patterns.getContext(), state);
}
