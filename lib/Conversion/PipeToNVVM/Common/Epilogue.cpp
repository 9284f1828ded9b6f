//===- Epilogue.cpp - Factors, predicated stores, constant tiles ----------===//
//
// TMEM lane r of an accumulator belongs to thread r of the four epilogue warps, whose first warp is
// a multiple of four: r = thread index mod 128. A warp addresses the 32 TMEM lanes of its quadrant
// only; the lane field of the address is 32 * quadrant << 16 for all its threads.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"

#include "InlinePtx.h"
#include "Int32.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/Swizzle.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace {

/// Loads the factors of rows of threads; FragmentElements.cpp has those of fragments.
struct LowerLoadFactors : fp4::PipePattern<fp4::pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (fp4::pipe::distributionOf(op.getResult().getType()).isFragment() || op.isOfKernel() ||
        !op.getColumn())
      return rewriter.notifyMatchFailure(op,
                                         "fetches elements of a fragment, stored ones or powers");
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = op.getGlobal().getType().getShape();
    VectorType type = fp4::pipe::vectorOfThread(op.getResult().getType());
    Type element = type.getElementType();
    if (op.getTransposed()) {
      rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, column(rewriter, op, adaptor));
      return success();
    }
    Value start = isOneRow(op) ? oneRow(rewriter, op, adaptor) : rowStart(rewriter, op, adaptor);
    if (shape[1] == 1) { // a number for each row
      Value factor = load(rewriter, loc, start, element);
      rewriter.replaceOpWithNewOp<vector::BroadcastOp>(op, type, factor);
      return success();
    }
    if (!ShapedType::isDynamic(shape[1]) && shape[1] % type.getNumElements() == 0) {
      Value pointer =
          fp4::stridedPointer(rewriter, loc, start, adaptor.getColumn(), bytesOf(element));
      rewriter.replaceOp(op, load(rewriter, loc, pointer, type));
      return success();
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, type, units(rewriter, op, start, adaptor.getColumn()));
    return success();
  }

private:
  static int64_t bytesOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

  /// Loads numbers from `column` on; columns behind the last one read some that exist. Numbers are
  /// loaded one by one, or, where columns are dynamic and thus whole units of 16 bytes, by units.
  static SmallVector<Value> units(OpBuilder &b, fp4::pipe::FetchOp op, Value start, Value column) {
    Location loc = op.getLoc();
    VectorType type = fp4::pipe::vectorOfThread(op.getResult().getType());
    Type element = type.getElementType();
    bool isDynamic = op.getGlobal().getType().hasDynamicColumns();
    int64_t unit =
        isDynamic ? std::min(fp4::pipe::kRowUnitBytes / bytesOf(element), type.getNumElements())
                  : 1;
    Value last = arith::SubIOp::create(b, loc, fp4::columnsOfBuffer(b, loc, op.getGlobal()),
                                       fp4::constantI32(b, loc, unit));
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < type.getNumElements(); i += unit) {
      Value place = arith::AddIOp::create(b, loc, column, fp4::constantI32(b, loc, i));
      place = arith::MinSIOp::create(b, loc, place, last);
      Value pointer = fp4::stridedPointer(b, loc, start, place, bytesOf(element));
      if (!isDynamic) {
        numbers.push_back(load(b, loc, pointer, element));
        continue;
      }
      Value loaded = load(b, loc, pointer, VectorType::get({unit}, element));
      for (int64_t lane = 0; lane < unit; ++lane)
        numbers.push_back(vector::ExtractOp::create(b, loc, loaded, lane));
    }
    return numbers;
  }

  /// Returns place 0 of a size of one; else `index`, at most the last place.
  static Value clamped(OpBuilder &b, Location loc, Value index, Value size, bool isOne) {
    if (isOne)
      return fp4::constantI32(b, loc, 0);
    Value last = arith::SubIOp::create(b, loc, size, fp4::constantI32(b, loc, 1));
    return arith::MinSIOp::create(b, loc, index, last);
  }

  /// The numbers of this thread's column of the buffer.
  SmallVector<Value> column(OpBuilder &b, fp4::pipe::FetchOp op, OpAdaptor adaptor) const {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = op.getGlobal().getType().getShape();
    VectorType type = fp4::pipe::vectorOfThread(op.getResult().getType());
    Type element = type.getElementType();
    Value lane = arith::AddIOp::create(b, loc, adaptor.getColumn(),
                                       fp4::accumulatorLane(b, loc, state));
    Value place =
        clamped(b, loc, lane, fp4::columnsOfBuffer(b, loc, op.getGlobal()), shape[1] == 1);
    Value start = fp4::stridedPointer(b, loc, oneRow(b, op, adaptor), place, bytesOf(element));
    Value rows = adaptor.getRows() ? adaptor.getRows() : fp4::constantI32(b, loc, shape[0]);
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      if (i > 0 && isOneRow(op)) {
        numbers.push_back(numbers.front());
        continue;
      }
      Value row = arith::AddIOp::create(b, loc, adaptor.getRow(), fp4::constantI32(b, loc, i));
      row = clamped(b, loc, row, rows, isOneRow(op));
      numbers.push_back(
          load(b, loc, fp4::lineOfBuffer(b, loc, op.getGlobal(), start, row), element));
    }
    return numbers;
  }

  static bool isOneRow(fp4::pipe::FetchOp op) {
    return op.getOneRow() || op.getGlobal().getType().getShape()[0] == 1;
  }

  /// The address of the buffer, or of the one row that all elements read.
  static Value oneRow(OpBuilder &b, fp4::pipe::FetchOp op, OpAdaptor adaptor) {
    if (!op.getOneRow())
      return adaptor.getGlobal();
    return fp4::lineOfBuffer(b, op.getLoc(), op.getGlobal(), adaptor.getGlobal(), adaptor.getRow());
  }

  /// The address of the row of this thread, or of the last row.
  Value rowStart(OpBuilder &b, fp4::pipe::FetchOp op, OpAdaptor adaptor) const {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = op.getGlobal().getType().getShape();
    Value limit = adaptor.getRows() ? adaptor.getRows() : fp4::constantI32(b, loc, shape[0]);
    Value last = arith::SubIOp::create(b, loc, limit, fp4::constantI32(b, loc, 1));
    Value lane = fp4::accumulatorLane(b, loc, state);
    Value row = arith::AddIOp::create(b, loc, adaptor.getRow(), lane);
    row = arith::MinSIOp::create(b, loc, row, last);
    return fp4::lineOfBuffer(b, loc, op.getGlobal(), adaptor.getGlobal(), row);
  }

  /// Loads the number at `pointer`. The load is invariant: the backend uses ld.global.nc.
  static Value load(OpBuilder &b, Location loc, Value pointer, Type type) {
    auto vector = dyn_cast<VectorType>(type);
    int64_t alignment =
        vector ? std::min<int64_t>(16, vector.getNumElements() * bytesOf(vector.getElementType()))
               : bytesOf(type);
    return LLVM::LoadOp::create(b, loc, type, pointer, static_cast<unsigned>(alignment),
                                /*isVolatile=*/false, /*isNonTemporal=*/false,
                                /*isInvariant=*/true);
  }
};

/// Stores rows of threads. Stores count in units: elements, or words of eight packed fp4. The type
/// converter turns the elements of a thread into a vector of units.
struct LowerStore : fp4::PipePattern<fp4::pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOf(fp4::pipe::FragmentKind::Lanes) || op.isOfPartialWord())
      return rewriter.notifyMatchFailure(op, "stores a fragment, columns, or a part of a word");
    Location loc = op.getLoc();
    fp4::pipe::GlobalType dest = op.getBufferType();
    if (dest.isScales())
      return storeScales(op, adaptor, rewriter);
    if (op.getTransposed())
      return storeColumn(op, adaptor, rewriter);
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t unitBytes = type.getElementTypeBitWidth() / 8;
    bool packed = type != op.getThreadType() && unitBytes == 4;
    int64_t count = type.getNumElements();
    std::optional<int64_t> known = knownUnits(dest, packed, unitBytes);
    bool ragged = !known || *known % count != 0; // a segment may straddle the last unit
    auto [row, column, isThere] = placeOf(rewriter, op, adaptor);
    Value firstColumn = unitOf(rewriter, loc, column, packed);
    Value last =
        known ? fp4::constantI32(rewriter, loc, *known)
              : unitOf(rewriter, loc, fp4::columnsOfBuffer(rewriter, loc, op.getDest()), packed);
    Value exists =
        arith::AndIOp::create(rewriter, loc, isThere, isBelow(rewriter, loc, firstColumn, last));
    auto guard = scf::IfOp::create(rewriter, loc, exists, /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(guard.thenBlock());
    Value pointer = segment(rewriter, op, adaptor, row, firstColumn, unitBytes);
    int64_t piece = pieceUnits(dest, count, unitBytes, packed ? 32 : 16);
    Value units = unitsOf(rewriter, loc, adaptor.getValue());
    for (int64_t first = 0; first < count; first += piece)
      storeGuarded(rewriter, loc, ragged && first > 0 ? last : Value(), firstColumn, first, [&] {
        fp4::storePiece(rewriter, loc, units, first, piece,
                        fp4::offsetPointer(rewriter, loc, pointer, first * unitBytes));
      });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The row of this thread in the result, its first column there, and whether the row exists (i1).
  struct RowPlace {
    Value row, column, exists;
  };

  RowPlace placeOf(OpBuilder &builder, fp4::pipe::StoreOp op, OpAdaptor adaptor) const {
    ImplicitLocOpBuilder b(op.getLoc(), builder);
    fp4::Int32 row(b, adaptor.getRow()), lane(b, fp4::accumulatorLane(b, b.getLoc(), state));
    Value rows = rowLimit(b, op, adaptor);
    if (!op.getHeads()) {
      row = row + lane;
      return {row, adaptor.getColumn(), isBelow(b, b.getLoc(), row, rows)};
    }
    ArrayRef<int64_t> sizes = *op.getHeads(); // heads of a row, those that exist, and elements
    fp4::Int32 token = row + lane / sizes[0], head = lane % sizes[0];
    Value exists = isBelow(b, b.getLoc(), token, rows);
    if (sizes[0] != sizes[1])
      exists = arith::AndIOp::create(b, exists, head < fp4::Int32(b, sizes[1]));
    return {token, fp4::Int32(b, adaptor.getColumn()) + head * sizes[2], exists};
  }

  static Value isBelow(OpBuilder &b, Location loc, Value value, Value limit) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, limit);
  }

  /// Stores go as integers where threads keep sums in registers: of a vector of floats LLVM makes
  /// pairs, for which ptxas spills these.
  Value unitsOf(OpBuilder &b, Location loc, Value value) const {
    auto type = cast<VectorType>(value.getType());
    if (!state.facts.keepsLanes || !type.getElementType().isF32())
      return value;
    return LLVM::BitcastOp::create(b, loc, type.clone(b.getI32Type()), value);
  }

  /// Units of a row with static columns. The bytes behind the last packed column belong to nobody.
  static std::optional<int64_t> knownUnits(fp4::pipe::GlobalType dest, bool packed,
                                           int64_t unitBytes) {
    if (dest.hasDynamicColumns())
      return std::nullopt;
    return packed ? dest.getRowPitch() / unitBytes : dest.getShape()[1];
  }

  /// The unit that begins at `column`.
  static Value unitOf(OpBuilder &b, Location loc, Value column, bool packed) {
    return packed ? arith::ShRUIOp::create(b, loc, column, fp4::constantI32(b, loc, 3)).getResult()
                  : column;
  }

  static Value rowLimit(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor) {
    return adaptor.getRows() ? adaptor.getRows()
                             : fp4::constantI32(b, op.getLoc(), op.getBufferType().getShape()[0]);
  }

  static void emitIf(OpBuilder &b, Location loc, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  /// Runs `store` where unit `first` from `column` on is below `last`; without `last`, always.
  static void storeGuarded(OpBuilder &b, Location loc, Value last, Value column, int64_t first,
                           llvm::function_ref<void()> store) {
    if (!last)
      return store();
    column = arith::AddIOp::create(b, loc, column, fp4::constantI32(b, loc, first));
    emitIf(b, loc, isBelow(b, loc, column, last), store);
  }

  /// Units of one access: as many as every row's start is aligned for, `widest` bytes at most.
  /// Since pieces divide the row, each lies inside the row or behind it as a whole. Rows of scales
  /// have any size.
  static int64_t pieceUnits(fp4::pipe::GlobalType dest, int64_t count, int64_t unitBytes,
                            int64_t widest) {
    if (dest.hasDynamicColumns() && count * unitBytes < fp4::pipe::kRowUnitBytes)
      return 1;
    return std::min(count, std::gcd<int64_t>(widest, fp4::unitOfRows(dest)) / unitBytes);
  }

  /// Address of unit (row, column); 64-bit, since the buffer may exceed 4 GiB.
  static Value segment(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor, Value row,
                       Value column, int64_t unitBytes) {
    Location loc = op.getLoc();
    Value start = fp4::lineOfBuffer(b, loc, op.getDest(), adaptor.getDest(), row);
    return fp4::stridedPointer(b, loc, start, column, unitBytes);
  }

  /// `rows` rows behind `start`.
  static Value rowBehind(OpBuilder &b, fp4::pipe::StoreOp op, Value start, int64_t rows) {
    if (!fp4::pipe::matrixOf(op.getDest()))
      return fp4::offsetPointer(b, op.getLoc(), start, rows * op.getBufferType().getRowPitch());
    return fp4::lineOfBuffer(b, op.getLoc(), op.getDest(), start,
                             fp4::constantI32(b, op.getLoc(), rows));
  }

  /// Columns of a tile of the tensor core, which are rows of the result here, at most.
  static constexpr int64_t kMostTileColumns = 256;

  /// Stores this thread's column: an element of each row that exists.
  LogicalResult storeColumn(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                            ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType dest = op.getBufferType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    Value column = arith::AddIOp::create(rewriter, loc, adaptor.getColumn(),
                                         fp4::accumulatorLane(rewriter, loc, state));
    Value columns = fp4::columnsOfBuffer(rewriter, loc, op.getDest());
    Value exists = isBelow(rewriter, loc, column, columns);
    int64_t count = type.getNumElements();
    bool mayEnd = adaptor.getRows() || dest.getShape()[0] % count;
    if (!mayEnd && dest.getShape()[0] % kMostTileColumns) // the last tile may have fewer segments
      exists = arith::AndIOp::create(
          rewriter, loc, exists,
          isBelow(rewriter, loc, adaptor.getRow(), rowLimit(rewriter, op, adaptor)));
    auto guard = scf::IfOp::create(rewriter, loc, exists, /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(guard.thenBlock());
    Value start = segment(rewriter, op, adaptor, adaptor.getRow(), column,
                          type.getElementTypeBitWidth() / 8);
    for (int64_t i = 0; i < count; ++i)
      storeGuarded(rewriter, loc, mayEnd ? rowLimit(rewriter, op, adaptor) : Value(),
                   adaptor.getRow(), i, [&] {
                     fp4::storePiece(rewriter, loc, adaptor.getValue(), i, 1,
                                     rowBehind(rewriter, op, start, i));
                   });
    rewriter.eraseOp(op);
    return success();
  }

  /// Stores scales: four of them are a word of a tiled_128x4 buffer (fp4/ISA/ScaleLayout.h). Every
  /// word of a scale tile that the kernel reaches is written, zero where it pads.
  LogicalResult storeScales(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                            ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) { return fp4::constantI32(rewriter, loc, value); };
    Value row = arith::AddIOp::create(rewriter, loc, adaptor.getRow(),
                                      fp4::accumulatorLane(rewriter, loc, state));
    Value limit = rowLimit(rewriter, op, adaptor), zero = constant(0);
    Value word = LLVM::BitcastOp::create(rewriter, loc, rewriter.getI32Type(), adaptor.getValue());
    word = arith::SelectOp::create(rewriter, loc, isBelow(rewriter, loc, row, limit), word, zero);
    word = existingScales(rewriter, op, adaptor, word);
    Value blocks = fp4::scaleBlockColumnsOfBuffer(rewriter, loc, op.getDest());
    Value padded =
        arith::AddIOp::create(rewriter, loc, limit, constant(fp4::pipe::kScaleBlockRows - 1));
    padded =
        arith::DivUIOp::create(rewriter, loc, padded, constant(fp4::pipe::kScaleBlockRows));
    padded = arith::MulIOp::create(rewriter, loc, padded, constant(fp4::pipe::kScaleBlockRows));
    Value columns =
        arith::MulIOp::create(rewriter, loc, blocks, constant(fp4::pipe::kScaleBlockColumns));
    Value exists = arith::AndIOp::create(rewriter, loc, isBelow(rewriter, loc, row, padded),
                                         isBelow(rewriter, loc, adaptor.getColumn(), columns));
    emitIf(rewriter, loc, exists, [&] {
      LLVM::StoreOp::create(rewriter, loc, word, scaleWord(rewriter, loc, adaptor, row, blocks),
                            /*alignment=*/4);
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// `word` of four scales, zero where their columns do not exist.
  static Value existingScales(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor, Value word) {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType dest = op.getBufferType();
    auto constant = [&](int64_t value) { return fp4::constantI32(b, loc, value); };
    auto keep = [&](int64_t count, Value isMore) -> Value {
      Value kept = arith::AndIOp::create(b, loc, word, constant((1 << 8 * count) - 1));
      return arith::SelectOp::create(b, loc, isMore, word, kept);
    };
    if (!dest.hasDynamicColumns()) {
      int64_t rest = dest.getShape()[1] % fp4::pipe::kScaleBlockColumns;
      Value whole = constant(dest.getShape()[1] - rest);
      return rest ? keep(rest, isBelow(b, loc, adaptor.getColumn(), whole)) : word;
    }
    Value columns = fp4::columnsOfBuffer(b, loc, op.getDest());
    for (int64_t count = fp4::pipe::kScaleBlockColumns - 1; count > 0; --count) {
      Value next = arith::AddIOp::create(b, loc, adaptor.getColumn(), constant(count));
      word = keep(count, isBelow(b, loc, next, columns));
    }
    return word;
  }

  static Value scaleWord(OpBuilder &b, Location loc, OpAdaptor adaptor, Value row, Value blocks) {
    ImplicitLocOpBuilder builder(loc, b);
    fp4::Int32 matrixRow(builder, row), column(builder, adaptor.getColumn());
    fp4::Int32 blocksPerRow(builder, blocks);
    fp4::Int32 block =
        fp4::hw::scaleBlockIndex(matrixRow / fp4::hw::scaleBlockRows,
                                 column / fp4::hw::scaleBlockColumns, blocksPerRow);
    Value start =
        fp4::stridedPointer(b, loc, adaptor.getDest(), block, fp4::hw::scaleBlockBytes);
    return fp4::stridedPointer(b, loc, start, fp4::hw::scaleWordInBlock(matrixRow), 1);
  }
};

/// Thread t writes word t of the 16 rows of 8 words: entries (t / 8, 2 (t mod 8)) and the next. An
/// entry is 1/4 in bf16, with the sign of its popcount and of its column.
struct LowerHadamardMatrix : fp4::PipePattern<fp4::pipe::HadamardMatrixOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::HadamardMatrixOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) { return fp4::constantI32(rewriter, loc, value); };
    Value thread = fp4::accumulatorLane(rewriter, loc, state);
    Value j = arith::ShRUIOp::create(rewriter, loc, thread, constant(3));
    Value i = arith::AndIOp::create(rewriter, loc, thread, constant(7));
    i = arith::ShLIOp::create(rewriter, loc, i, constant(1));
    Value common = arith::AndIOp::create(rewriter, loc, i, j);
    Value even = LLVM::CtPopOp::create(rewriter, loc, rewriter.getI32Type(), common);
    Value odd = arith::AddIOp::create(rewriter, loc, even, j); // bit 0 of i & j is bit 0 of j
    Value signs = arith::ShRUIOp::create(rewriter, loc, constant(op.getSigns()), i);
    Value low = signBit(rewriter, loc, even, signs, 0),
          high = signBit(rewriter, loc, odd, signs, 1);
    Value word = arith::OrIOp::create(rewriter, loc, low, constant(0x3E803E80));
    word = arith::OrIOp::create(rewriter, loc, word, high);
    Value linear = arith::ShLIOp::create(rewriter, loc, thread, constant(2));
    ImplicitLocOpBuilder b(loc, rewriter);
    Value place = fp4::hw::swizzle(fp4::hw::SwizzleMode::B32, fp4::Int32(b, linear));
    LLVM::StoreOp::create(rewriter, loc, word,
                          fp4::stridedPointer(rewriter, loc, adaptor.getDest(), place, 1),
                          /*alignment=*/4);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The sign of half `half` of a word: parity of `count` xor bit `half` of `signs`.
  static Value signBit(OpBuilder &b, Location loc, Value count, Value signs, int64_t half) {
    Value sign =
        half ? arith::ShRUIOp::create(b, loc, signs, fp4::constantI32(b, loc, half)).getResult()
             : signs;
    Value parity = arith::XOrIOp::create(b, loc, count, sign);
    parity = arith::AndIOp::create(b, loc, parity, fp4::constantI32(b, loc, 1));
    return arith::ShLIOp::create(b, loc, parity, fp4::constantI32(b, loc, half ? 31 : 15));
  }
};

/// Elements of 8 bits are bytes from here on.
template <typename OpT> struct ConvertElements : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<Operation *> converted = convertOpResultTypes(
        op, adaptor.getOperands(), *this->getTypeConverter(), rewriter);
    if (failed(converted))
      return failure();
    rewriter.replaceOp(op, *converted);
    return success();
  }
};

} // namespace

Value fp4::accumulatorLane(OpBuilder &b, Location loc, const KernelState &state) {
  return arith::AndIOp::create(b, loc, state.threadIndex, constantI32(b, loc, pipe::kMmaM - 1));
}

void fp4::populateEpiloguePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerLoadFactors, LowerStore, LowerHadamardMatrix>(
      converter, patterns.getContext(), state);
  patterns.add<ConvertElements<vector::BitCastOp>, ConvertElements<vector::ShuffleOp>>(
      converter, patterns.getContext());
}
