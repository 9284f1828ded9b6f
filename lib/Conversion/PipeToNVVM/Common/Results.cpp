//===- Results.cpp - Results derived from epilogue elements ---------------===//
//
// Maxima: the bits of magnitudes are ordered as they are, so a warp reduces them with redux.sync
// and raises the scalar in memory with one atomic maximum.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"

#include "Int32.h"
#include "LaneTranspose.h"
#include "Scalars.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace {

constexpr int64_t kWarp = 32;

Value isBelow(OpBuilder &b, Location loc, Value value, Value limit) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, limit);
}

/// The maximum of rows of threads; GatherRows.cpp has that of fragments.
struct LowerRowAmax : fp4::PipePattern<fp4::pipe::AmaxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::AmaxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (fp4::pipe::distributionOf(op.getValue().getType()).isFragment())
      return rewriter.notifyMatchFailure(op, "takes the maximum of a fragment");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    fp4::Scalars s(b, *state.target);
    Value amax = magnitude(b, s, op, adaptor);
    if (adaptor.getRows()) {
      Value row =
          arith::AddIOp::create(b, adaptor.getRow(), fp4::accumulatorLane(b, op.getLoc(), state));
      Value exists = isBelow(b, op.getLoc(), row, adaptor.getRows());
      amax = arith::SelectOp::create(b, exists, amax, s.constant(0));
    }
    if (adaptor.getMore())
      amax = s.maximumNumber(amax, adaptor.getMore());
    rewriter.replaceOp(op, amax);
    return success();
  }

private:
  /// The largest magnitude of the elements whose columns exist.
  static Value magnitude(ImplicitLocOpBuilder &b, fp4::Scalars &s, fp4::pipe::AmaxOp op,
                         OpAdaptor adaptor) {
    VectorType type = fp4::pipe::vectorOfThread(op.getValue().getType());
    SmallVector<Value> words = fp4::packedWords(b, adaptor.getValue());
    std::optional<int64_t> columns = getConstantIntValue(op.getColumns());
    if (columns && *columns % type.getNumElements() == 0) {
      Value amax = s.amax(words, type.getElementType(), /*keepNaN=*/false);
      Value exists = isBelow(b, op.getLoc(), adaptor.getColumn(), adaptor.getColumns());
      return arith::SelectOp::create(b, exists, amax, s.constant(0));
    }
    int64_t together = columns ? 1 : fp4::elementsOfUnit(type.getElementType());
    SmallVector<Value> kept;
    Value exists;
    for (auto [i, element] : llvm::enumerate(s.widen(words, type.getElementType()))) {
      if (int64_t(i) % together == 0) {
        Value column = arith::AddIOp::create(b, adaptor.getColumn(), fp4::constI32(b, int64_t(i)));
        exists = isBelow(b, op.getLoc(), column, adaptor.getColumns());
      }
      kept.push_back(arith::SelectOp::create(b, exists, element, s.constant(0)));
    }
    return s.amax(kept, /*keepNaN=*/false);
  }
};

struct LowerFoldAmax : fp4::PipePattern<fp4::pipe::FoldAmaxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::FoldAmaxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), adaptor.getValue());
    Value ofWarp = NVVM::ReduxOp::create(b, b.getI32Type(), bits, NVVM::ReduxKind::UMAX,
                                         fp4::constI32(b, -1));
    Value lane = arith::AndIOp::create(b, state.threadIndex, fp4::constI32(b, kWarp - 1));
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, fp4::constI32(b, 0));
    auto branch = scf::IfOp::create(b, isFirst);
    b.setInsertionPointToStart(branch.thenBlock());
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, adaptor.getDest(), ofWarp,
                              LLVM::AtomicOrdering::monotonic, "device");
    b.setInsertionPointAfter(branch);
    if (!state.tmemColumns) // the next tile begins with aligned instructions; see also pipe.read
      NVVM::SyncWarpOp::create(b, fp4::constI32(b, -1));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTranspose : fp4::PipePattern<fp4::pipe::TransposeOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::TransposeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    fp4::Scalars s(b, *state.target);
    rewriter.replaceOp(op, fp4::transposeLanes(b, s, adaptor.getValue(), state.threadIndex));
    return success();
  }
};

/// Stores what threads made of columns, which become rows.
struct LowerStoreColumns : fp4::PipePattern<fp4::pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOf(fp4::pipe::FragmentKind::Columns))
      return rewriter.notifyMatchFailure(op, "stores no columns");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Place place = placeOf(b, op, adaptor);
    fp4::pipe::GlobalType dest = op.getBufferType();
    if (dest.isScales())
      storeTiled(b, op, adaptor, place);
    else
      storeRows(b, op, adaptor, place);
    rewriter.eraseOp(op);
    return success();
  }

private:
  struct Place {
    Value row, column;
  };

  Place placeOf(ImplicitLocOpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor) const {
    int64_t count = op.getThreadType().getNumElements();
    Value lane = arith::AndIOp::create(b, state.threadIndex, fp4::constI32(b, kWarp - 1));
    Value warp = arith::AndIOp::create(b, state.warpIndex, fp4::constI32(b, 3));
    Value offset = arith::MulIOp::create(b, warp, fp4::constI32(b, count));
    return {arith::AddIOp::create(b, adaptor.getRow(), lane),
            arith::AddIOp::create(b, adaptor.getColumn(), offset)};
  }

  static bool isShared(fp4::pipe::StoreOp op) {
    return op.getElementsType().getElementType().isF32();
  }

  static void emitIf(ImplicitLocOpBuilder &b, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  static Value limitOfRows(ImplicitLocOpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor) {
    return adaptor.getRows() ? adaptor.getRows() : fp4::rowsOfBuffer(b, op.getLoc(), op.getDest());
  }

  /// Returns true (i1) for a thread whose row exists. The first warp stores what all have in
  /// common.
  Value storesRow(ImplicitLocOpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor,
                  const Place &place) const {
    Value exists = isBelow(b, op.getLoc(), place.row, limitOfRows(b, op, adaptor));
    if (!isShared(op))
      return exists;
    Value warp = arith::AndIOp::create(b, state.warpIndex, fp4::constI32(b, 3));
    return arith::AndIOp::create(b, exists, isBelow(b, op.getLoc(), warp, fp4::constI32(b, 1)));
  }

  /// Stores codes, in words of eight, and row-major scales.
  void storeRows(ImplicitLocOpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor,
                 const Place &place) const {
    fp4::pipe::GlobalType dest = op.getBufferType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8, count = type.getNumElements();
    int64_t elements = op.getThreadType().getNumElements() / count;
    int64_t piece = std::min(count, std::gcd<int64_t>(16, dest.getRowPitch()) / bytes);
    Location loc = op.getLoc();
    emitIf(b, storesRow(b, op, adaptor, place), [&] {
      Value start = fp4::stridedPointer(b, loc, adaptor.getDest(), place.row, dest.getRowPitch());
      Value unit = arith::DivUIOp::create(b, place.column, fp4::constI32(b, elements));
      Value pointer = fp4::stridedPointer(b, loc, start, unit, bytes);
      for (int64_t first = 0; first < count; first += piece) {
        Value column =
            arith::AddIOp::create(b, place.column, fp4::constI32(b, first * elements));
        emitIf(b, isBelow(b, loc, column, fp4::constI32(b, dest.getShape()[1])), [&] {
          fp4::storePiece(b, loc, adaptor.getValue(), first, piece,
                          fp4::offsetPointer(b, loc, pointer, first * bytes));
        });
      }
    });
  }

  /// Stores bytes of a word of a tiled_128x4 buffer, zero where they pad its columns. Rows that pad
  /// are not written.
  static void storeTiled(ImplicitLocOpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor,
                         const Place &place) {
    fp4::pipe::GlobalType dest = op.getBufferType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    Location loc = op.getLoc();
    SmallVector<Value> scales;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value scale = vector::ExtractOp::create(b, adaptor.getValue(), i);
      Value column = arith::AddIOp::create(b, place.column, fp4::constI32(b, i));
      Value exists = isBelow(b, loc, column, fp4::constI32(b, dest.getShape()[1]));
      Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
      scales.push_back(arith::SelectOp::create(b, exists, scale, zero));
    }
    Value all = vector::FromElementsOp::create(b, type, scales);
    int64_t blocks = dest.getScaleBlockColumns();
    Value columns = fp4::constI32(b, blocks * fp4::pipe::kScaleBlockColumns);
    Value exists = arith::AndIOp::create(b, isBelow(b, loc, place.row, limitOfRows(b, op, adaptor)),
                                         isBelow(b, loc, place.column, columns));
    emitIf(b, exists, [&] {
      fp4::Int32 row(b, place.row), column(b, place.column);
      fp4::Int32 block = fp4::hw::scaleBlockIndex(row / fp4::hw::scaleBlockRows,
                                                  column / fp4::hw::scaleBlockColumns, blocks);
      Value start =
          fp4::stridedPointer(b, loc, adaptor.getDest(), block, fp4::hw::scaleBlockBytes);
      Value word = fp4::stridedPointer(b, loc, start, fp4::hw::scaleWordInBlock(row), 1);
      Value byte = fp4::stridedPointer(b, loc, word, column % fp4::hw::scaleBlockColumns, 1);
      fp4::storePiece(b, loc, all, 0, type.getNumElements(), byte);
    });
  }
};

} // namespace

void fp4::populateResultPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                 const KernelState &state) {
  patterns.add<LowerRowAmax, LowerFoldAmax, LowerTranspose, LowerStoreColumns>(
      converter, patterns.getContext(), state);
}
