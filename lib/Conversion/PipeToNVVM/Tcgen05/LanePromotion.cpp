//===- LanePromotion.cpp - Sums of TMEM lanes, promoted to fp32 -----------===//
//
// An epilogue for each scale block of k, which adds to the sums that its threads have in registers.
// A thread has one row, and all of its columns have one scale. The thread reads 32 columns at a
// time; the next ones are on their way while it adds those before, since tcgen05.wait::ld waits for
// all that were asked for.
//
// A fragment is an array in the frame of its thread (Fragments.h). PTX ISA, "tcgen05.ld".
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Tcgen05/Lanes.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Columns that are read at a time: ptxas keeps fewer registers beside the sums than with narrower
/// loads, of which it moves many ahead.
constexpr int64_t kReadColumns = 64;

/// The place of the columns of a warpgroup, or of the half of the TMEM lanes of a pair.
struct LowerLanePlace : PipePattern<pipe::PlaceOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PlaceOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getRows() || op.isOfFewRows())
      return rewriter.notifyMatchFailure(op, "is the place of a warp, or of a gathered row");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto tile = dyn_cast<pipe::TmemType>(op.getAccumulator().getType());
    if (tile && tile.isOfHalves()) {
      constexpr int64_t rows = pipe::kMmaM / 2;
      Int32 half = Int32(b, accumulatorLane(b, b.getLoc(), state)) / rows;
      Value row = Int32(b, int64_t(0)) - half * rows, column = half * (tile.getColumns() / 2);
      rewriter.replaceOp(op, {row, column});
      return success();
    }
    int64_t groups = state.roles.at(op).getNumThreads() / kGroupThreads;
    int64_t columns = tile ? tile.getColumns() / groups
                           : cast<pipe::FragmentType>(op.getAccumulator().getType()).getShape()[1];
    Value column = groupOfThread(b, op, state) * columns;
    rewriter.replaceOp(op, {constI32(b, 0), column});
    return success();
  }
};

struct LowerLaneScale : PipePattern<pipe::ScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.isOfFragment() || op.isOfTiles())
      return rewriter.notifyMatchFailure(op, "scales sums of a fragment, or from tiles");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::GlobalType typeA = op.getBufferA();
    Int32 rows = adaptor.getRows() ? Int32(b, adaptor.getRows()) : Int32(b, typeA.getShape()[0]);
    Int32 row = Int32(b, adaptor.getRow()) + Int32(b, accumulatorLane(b, b.getLoc(), state));
    Int32 column =
        Int32(b, adaptor.getColumn()) + groupOfThread(b, op, state) * int64_t(*op.getColumns());
    Int32 last = Int32(b, rowsOfBuffer(b, op.getLoc(), op.getB())) - 1;
    Int32 band = minimum(column / pipe::kPromotedBlock, last);
    Value ofRow = loadAt(b, op.getA(), adaptor.getA(), minimum(row, rows - 1), adaptor.getBlock());
    Value ofColumns = loadAt(b, op.getB(), adaptor.getB(), band, adaptor.getBlock());
    rewriter.replaceOpWithNewOp<LLVM::FMulOp>(op, ofRow, ofColumns);
    return success();
  }

private:
  static Value loadAt(ImplicitLocOpBuilder &b, Value global, Value base, Value row, Value block) {
    Value line = lineOfBuffer(b, b.getLoc(), global, base, row);
    return load(b, b.getF32Type(), stridedPointer(b, b.getLoc(), line, block, 4), 4);
  }
};

/// The rows of a warp are in banks of their own if a tile has scales of one scale block, and four
/// share one if it has four.
struct LowerLaneTileScale : PipePattern<pipe::ScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.isOfFragment() || !op.isOfTiles())
      return rewriter.notifyMatchFailure(op, "scales sums of a fragment, or from buffers");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t pitch = op.getTileA().getInnerBytes();
    auto at = [&](Value tile, Value row) {
      Value line = stridedPointer(b, b.getLoc(), tile, row, pitch);
      Value pointer = stridedPointer(b, b.getLoc(), line, adaptor.getBlock(), 4);
      return LLVM::LoadOp::create(b, b.getF32Type(), pointer, 4);
    };
    Value ofRow = at(adaptor.getA(), accumulatorLane(b, b.getLoc(), state));
    bool isShared = op.getTileB().getRows() == 1;
    Value ofColumns =
        at(adaptor.getB(), isShared ? Value(Int32(b, 0)) : Value(groupOfThread(b, op, state)));
    rewriter.replaceOpWithNewOp<LLVM::FMulOp>(op, ofRow, ofColumns);
    return success();
  }
};

struct LowerPromoteLanes : PipePattern<pipe::PromoteOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PromoteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.isOfFragment())
      return rewriter.notifyMatchFailure(op, "adds sums of a fragment");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t columns = op.getAccumulator().getType().getShape()[1];
    int64_t width = std::min(columns, kReadColumns);
    if (state.facts
            .splitsWarps) // tcgen05.ld is aligned, and guarded stores may have split the warp
      NVVM::SyncWarpOp::create(b, constI32(b, -1));
    Value first = firstColumn(b, op, adaptor.getSums());
    SmallVector<Value> acc = loadElements(b, adaptor.getAccumulator(), 0, columns);
    SmallVector<Value> sums = waitForLoaded(b, b.getLoc(), read(b, first, 0, width));
    for (int64_t column = 0; column < columns; column += width) {
      bool isLast = column + width == columns;
      SmallVector<Value> next;
      if (!isLast)
        next = read(b, first, column + width, width);
      for (int64_t i = 0; i < width; ++i)
        acc[column + i] =
            LLVM::FMAOp::create(b, arith::BitcastOp::create(b, b.getF32Type(), sums[i]),
                                adaptor.getScales(), acc[column + i]);
      if (!isLast)
        sums = waitForLoaded(b, b.getLoc(), next);
    }
    storeElements(b, adaptor.getAccumulator(), acc);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The TMEM lanes of this warp, and the first column of this warpgroup.
  Value firstColumn(ImplicitLocOpBuilder &b, pipe::PromoteOp op, Value sums) const {
    int64_t columns = op.getAccumulator().getType().getShape()[1];
    Int32 lanes = lanesOfWarp(b, state);
    return Int32(b, sums) + lanes + groupOfThread(b, op, state) * columns;
  }

  static SmallVector<Value> read(ImplicitLocOpBuilder &b, Value first, int64_t column,
                                 int64_t width) {
    Value address = Int32(b, first) + column;
    Value loaded = NVVM::Tcgen05LdOp::create(b, VectorType::get(width, b.getI32Type()),
                                             /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                                             tmemPointer(b, b.getLoc(), address),
                                             /*offset=*/Value());
    SmallVector<Value> words;
    for (int64_t i = 0; i < width; ++i)
      words.push_back(LLVM::ExtractElementOp::create(b, loaded, constI32(b, i)));
    return words;
  }
};

} // namespace

void fp4::populateLanePromotionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                        const KernelState &state) {
  patterns.add<LowerLanePlace, LowerLaneScale, LowerLaneTileScale, LowerPromoteLanes>(
      converter, patterns.getContext(), state);
}
