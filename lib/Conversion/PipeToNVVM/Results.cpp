//===- Results.cpp - What an epilogue derives from its elements -----------===//
//
// Maxima: the bits of magnitudes are ordered as they are, so a warp reduces them with redux.sync and
// raises the scalar in memory with one atomic maximum.
//
// Transposition: bits of the lane and of the number of an element change places, one of each at a
// time. Two threads whose lanes differ in that bit exchange the registers whose numbers do. Where
// elements are half as wide as registers, the last bit is that of the half.
//
//===----------------------------------------------------------------------===//
#include "BufferLines.h"
#include "Int32.h"
#include "Lowering.h"
#include "Scalars.h"
#include "SmallBuilders.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace {

constexpr int64_t kWarp = 32;

Value isBelow(OpBuilder &b, Location loc, Value value, Value limit) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, limit);
}

struct LowerRowAmax : fp4::PipePattern<fp4::pipe::RowAmaxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::RowAmaxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
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
  /// Of the elements whose columns exist.
  static Value magnitude(ImplicitLocOpBuilder &b, fp4::Scalars &s, fp4::pipe::RowAmaxOp op,
                         OpAdaptor adaptor) {
    auto type = cast<VectorType>(op.getValue().getType());
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
    auto type = cast<VectorType>(op.getValue().getType());
    SmallVector<Value> words = fp4::packedWords(b, adaptor.getValue());
    bool isPacked = type.getElementTypeBitWidth() == 16;
    auto count = static_cast<int64_t>(words.size());
    for (int64_t lane = kWarp / 2; lane > (isPacked ? 1 : 0); lane /= 2)
      exchangeWords(b, words, lane, lane * count / kWarp);
    if (isPacked)
      exchangeHalves(b, words);
    Value all = vector::FromElementsOp::create(
        b, VectorType::get(count, b.getI32Type()), words);
    rewriter.replaceOp(op, Value(vector::BitCastOp::create(b, type, all)));
    return success();
  }

private:
  Value hasBit(ImplicitLocOpBuilder &b, int64_t bit) const {
    Value found = arith::AndIOp::create(b, state.threadIndex, fp4::constI32(b, bit));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, found, fp4::constI32(b, 0));
  }

  static Value ofPartner(ImplicitLocOpBuilder &b, Value word, int64_t bit) {
    return NVVM::ShflOp::create(b, b.getI32Type(), fp4::constI32(b, -1), word,
                                fp4::constI32(b, bit), fp4::constI32(b, kWarp - 1),
                                NVVM::ShflKind::bfly, UnitAttr());
  }

  /// Bit `bit` of the lane changes places with bit `step` of the number of a word.
  void exchangeWords(ImplicitLocOpBuilder &b, SmallVector<Value> &words, int64_t bit,
                     int64_t step) const {
    Value isUpper = hasBit(b, bit);
    auto choose = [&](Value x, Value y) { return arith::SelectOp::create(b, isUpper, x, y); };
    for (size_t i = 0; i < words.size(); ++i) {
      if (i & size_t(step))
        continue;
      Value &low = words[i], &high = words[i + size_t(step)];
      Value got = ofPartner(b, choose(low, high), bit);
      Value newLow = choose(got, low), newHigh = choose(high, got);
      low = newLow;
      high = newHigh;
    }
  }

  /// Bit 0 of the lane changes places with the half of a word.
  void exchangeHalves(ImplicitLocOpBuilder &b, SmallVector<Value> &words) const {
    fp4::Scalars s(b, *state.target);
    Value isUpper = hasBit(b, 1);
    for (Value &word : words) {
      Value got = ofPartner(b, word, 1);
      Value even = s.permute(word, got, 0x5410), odd = s.permute(got, word, 0x7632);
      word = arith::SelectOp::create(b, isUpper, odd, even);
    }
  }
};

struct LowerStoreColumn : fp4::PipePattern<fp4::pipe::StoreColumnOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StoreColumnOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Place place = placeOf(b, op, adaptor);
    fp4::pipe::GlobalType dest = op.getDest().getType();
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

  Place placeOf(ImplicitLocOpBuilder &b, fp4::pipe::StoreColumnOp op, OpAdaptor adaptor) const {
    int64_t count = cast<VectorType>(op.getValue().getType()).getNumElements();
    Value lane = arith::AndIOp::create(b, state.threadIndex, fp4::constI32(b, kWarp - 1));
    Value warp = arith::AndIOp::create(b, state.warpIndex, fp4::constI32(b, 3));
    Value offset = arith::MulIOp::create(b, warp, fp4::constI32(b, count));
    return {arith::AddIOp::create(b, adaptor.getRow(), lane),
            arith::AddIOp::create(b, adaptor.getColumn(), offset)};
  }

  static void emitIf(ImplicitLocOpBuilder &b, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  /// Codes, in words of eight, and row-major scales.
  static void storeRows(ImplicitLocOpBuilder &b, fp4::pipe::StoreColumnOp op, OpAdaptor adaptor,
                        const Place &place) {
    fp4::pipe::GlobalType dest = op.getDest().getType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8, count = type.getNumElements();
    int64_t elements = cast<VectorType>(op.getValue().getType()).getNumElements() / count;
    int64_t piece = std::min(count, std::gcd<int64_t>(16, dest.getRowPitch()) / bytes);
    Location loc = op.getLoc();
    Value exists = isBelow(b, loc, place.row, fp4::rowsOfBuffer(b, loc, op.getDest()));
    emitIf(b, exists, [&] {
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

  /// Bytes of a word of a tiled_128x4 buffer, zero where they pad its columns. Rows that pad are not
  /// written.
  static void storeTiled(ImplicitLocOpBuilder &b, fp4::pipe::StoreColumnOp op, OpAdaptor adaptor,
                         const Place &place) {
    fp4::pipe::GlobalType dest = op.getDest().getType();
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
    Value exists = arith::AndIOp::create(
        b, isBelow(b, loc, place.row, fp4::rowsOfBuffer(b, loc, op.getDest())),
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
  patterns.add<LowerRowAmax, LowerFoldAmax, LowerTranspose, LowerStoreColumn>(
      converter, patterns.getContext(), state);
}
