//===- GatherRows.cpp - Rows of the fragments of all warps ----------------===//
//
// Values that an epilogue derives from the elements of fragments. A maximum needs no exchange.
// Scale blocks of a row, or of a column, need one: the threads of the role write the columns of one
// warpgroup's segments after the other to shared memory, in lines of 128 bytes under the widest
// swizzle, and the threads of that warpgroup read one row each. From there on, threads have rows as
// TMEM lanes have them.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Common/TileLines.h"

#include "Scalars.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kLanes = 32, kWarpRows = 16;
/// Bytes of one access to shared memory, and of the lines of all rows.
constexpr int64_t kAccessBytes = 16, kPanelBytes = pipe::GatherRowsOp::kRows * kLineBytes;

//===----------------------------------------------------------------------===//
// The maximum
//===----------------------------------------------------------------------===//

struct LowerFragmentAmax : PipePattern<pipe::AmaxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::AmaxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!pipe::distributionOf(op.getValue().getType()).isFragment())
      return rewriter.notifyMatchFailure(op, "takes the maximum of rows of threads");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Scalars s(b, *state.target);
    Int32 thread = threadOfRole(b, op, state);
    Limits limits = limitsOf(b, op, adaptor);
    Int32 line = limits.firstLine + rowOfThread(thread);
    Value amax;
    for (int64_t half : {0, 1}) {
      Value ofLine = ofHalf(b, s, op, adaptor, limits, half, thread);
      if (limits.lines) {
        Value exists = line + 8 * half < Int32(b, limits.lines);
        ofLine = arith::SelectOp::create(b, exists, ofLine, s.constant(0));
      }
      amax = amax ? s.maximumNumber(amax, ofLine) : ofLine;
    }
    if (adaptor.getMore())
      amax = s.maximumNumber(amax, adaptor.getMore());
    rewriter.replaceOp(op, amax);
    return success();
  }

private:
  /// Limits of a fragment. Rows of a fragment are lines and columns are places: rows and columns of
  /// the result, or columns and rows if transposed. Null where all exist.
  struct Limits {
    Int32 firstLine, firstPlace;
    Value lines, places;
    bool areWhole; ///< all places of the op exist, or none
  };

  static Limits limitsOf(ImplicitLocOpBuilder &b, pipe::AmaxOp op, OpAdaptor adaptor) {
    std::optional<int64_t> columns = getConstantIntValue(op.getColumns());
    int64_t covered = op.getValue().getType().getDimSize(1);
    Int32 row(b, adaptor.getRow()), column(b, adaptor.getColumn());
    if (op.getTransposed())
      return {column, row, adaptor.getColumns(), adaptor.getRows(), false};
    return {row, column, adaptor.getRows(), adaptor.getColumns(),
            columns && *columns % covered == 0};
  }

  /// The maximum of the upper or of the lower line; a thread has two neighbours of every 8 places
  /// of each line.
  static Value ofHalf(ImplicitLocOpBuilder &b, Scalars &s, pipe::AmaxOp op, OpAdaptor adaptor,
                      const Limits &limits, int64_t half, Int32 thread) {
    VectorType type = pipe::vectorOfThread(op.getValue().getType());
    SmallVector<Value> all = s.widen(packedWords(b, adaptor.getValue()), type.getElementType());
    SmallVector<Value> kept;
    for (int64_t i = 2 * half; i < type.getNumElements(); i += 4)
      for (int64_t j : {i, i + 1}) {
        Value element = all[size_t(j)];
        if (limits.places && !limits.areWhole) {
          Int32 place =
              limits.firstPlace + thread % 4 * 2 + (j / 4 * hw::fragmentTileColumns + j % 2);
          element =
              arith::SelectOp::create(b, place < Int32(b, limits.places), element, s.constant(0));
        }
        kept.push_back(element);
      }
    Value amax = s.amax(kept, /*keepNaN=*/false);
    if (!limits.areWhole)
      return amax;
    Value exists = limits.firstPlace < Int32(b, limits.places);
    return arith::SelectOp::create(b, exists, amax, s.constant(0));
  }
};

//===----------------------------------------------------------------------===//
// The exchange
//===----------------------------------------------------------------------===//

struct LowerGatherRows : PipePattern<pipe::GatherRowsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::GatherRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getSegment().getType());
    int64_t count = type.getNumElements();
    int64_t groups = state.roles.at(op).getNumThreads() / kGroupThreads;
    Int32 group = groupOfThread(b, op, state);
    Value space = offsetPointer(b, op.getLoc(), state.sharedBase, *op.getPlace());
    SmallVector<Value> words;
    for (int64_t turn = 0; turn < groups; ++turn) {
      meetAtExchange(b, op, state); // earlier reads of this memory
      if (op.getTransposed())
        writeColumns(b, op, adaptor, space, turn);
      else
        writeSegments(b, op, adaptor, space, turn * count);
      meetAtExchange(b, op, state);
      readSegment(b, op, space, group, turn, words);
    }
    Value all =
        vector::FromElementsOp::create(b, VectorType::get(words.size(), b.getI32Type()), words);
    Value segment = vector::BitCastOp::create(b, type, all);
    Int32 first =
        op.getTransposed() ? group * kGroupRows + Int32(b, adaptor.getColumn()) : group * count;
    rewriter.replaceOp(op, {segment, first});
    return success();
  }

private:
  /// The place of several elements of a vector that are written together.
  struct Part {
    Value elements;
    Int32 row, byte; ///< the first row; and the place of its columns in the line of a segment
    int64_t first;   ///< element of the vector
    int64_t count;
  };

  /// Writes the columns of every vector that are in segments from `begin` on, of one warpgroup.
  /// Vectors have as many columns as a segment, or more, or a part of them.
  void writeSegments(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, OpAdaptor adaptor, Value space,
                     int64_t begin) const {
    VectorType type = pipe::vectorOfThread(op.getSegment().getType());
    int64_t segment = type.getNumElements(), bytes = type.getElementTypeBitWidth() / 8;
    int64_t given = pipe::vectorOfThread(op.getValues().front().getType()).getNumElements();
    int64_t part = std::min(segment, 2 * given); // columns
    Int32 row(b, adaptor.getRow()), column(b, adaptor.getColumn());
    for (int64_t at = 0; at < 2 * given; at += part) {
      Int32 place = column + (at - begin);
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, Int32(b, segment));
      auto branch = scf::IfOp::create(b, isHere, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      for (auto [i, value] : llvm::enumerate(adaptor.getValues())) {
        Part written = {value, row + int64_t(i) * kWarpRows, place * bytes, at / 2, part / 2};
        if (bytes == 2)
          writeMatrices(b, op, written, space);
        else
          writePairs(b, op, written, space);
      }
    }
  }

  /// Elements `first` and the next ones of a part.
  static Value slice(ImplicitLocOpBuilder &b, const Part &part, int64_t first, int64_t count) {
    return vector::ExtractStridedSliceOp::create(b, part.elements,
                                                 ArrayRef<int64_t>{part.first + first},
                                                 ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  }

  /// The address of byte `byte` of a row of segments, which lies in lines that are a panel apart.
  /// `byte` is a multiple of all columns of a vector, so that nothing is carried from `offset`,
  /// which is less.
  static Value placeOf(const TileLine &line, ImplicitLocOpBuilder &b, Int32 byte, Int32 offset,
                       int64_t offsetPanel) {
    Int32 panel = byte / kLineBytes + offsetPanel;
    Value inPanel = line.at(byte % kLineBytes ^ offset);
    return stridedPointer(b, b.getLoc(), inPanel, panel, kPanelBytes);
  }

  /// Writes by stmatrix.x4 of 16 columns: lane l names row l % 16 of the 8 columns number l / 16.
  void writeMatrices(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, const Part &part,
                     Value space) const {
    constexpr int64_t together = 8;
    Int32 thread = threadOfRole(b, op, state), lane = thread % kLanes;
    Int32 row = part.row + thread / kLanes * kWarpRows + lane % kWarpRows;
    TileLine line(space, pipe::Layout::Swizzle128B, row);
    auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
    for (int64_t i = 0; i < part.count; i += together) {
      SmallVector<Value> sources;
      for (int64_t j = i; j < i + together; j += 2)
        sources.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), slice(b, part, j, 2)));
      int64_t byte = i / together * 2 * kAccessBytes;
      Int32 offset = lane / kWarpRows * kAccessBytes ^ Int32(b, byte % kLineBytes);
      Value pointer = placeOf(line, b, part.byte, offset, byte / kLineBytes);
      NVVM::StMatrixOp::create(b, pointer, sources, NVVM::MMALayout::row, shape,
                               NVVM::LdStMatrixEltType::B16);
    }
  }

  /// Writes elements of 32 bits, two neighbours at a time.
  void writePairs(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, const Part &part,
                  Value space) const {
    constexpr int64_t pairBytes = 8;
    Int32 thread = threadOfRole(b, op, state);
    for (int64_t half : {0, 1}) {
      Int32 row = part.row + rowOfThread(thread) + 8 * half;
      TileLine line(space, pipe::Layout::Swizzle128B, row);
      for (int64_t i = 2 * half; i < part.count; i += 4) {
        int64_t byte = i / 4 * 4 * pairBytes;
        Int32 offset = thread % 4 * pairBytes ^ Int32(b, byte % kLineBytes);
        LLVM::StoreOp::create(b, slice(b, part, i, 2),
                              placeOf(line, b, part.byte, offset, byte / kLineBytes), pairBytes);
      }
    }
  }

  /// Writes the columns of a warp, which are rows of its fragment, to their places in the segments
  /// of warpgroup `turn`.
  void writeColumns(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, OpAdaptor adaptor, Value space,
                    int64_t turn) const {
    VectorType type = pipe::vectorOfThread(op.getSegment().getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    Int32 warp = threadOfRole(b, op, state) / kLanes;
    Int32 place = warp * kWarpRows - Int32(b, adaptor.getColumn()) - turn * kGroupRows;
    Value isHere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, Int32(b, type.getNumElements()));
    auto branch = scf::IfOp::create(b, isHere, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value elements = adaptor.getValues().front();
    int64_t count = cast<VectorType>(elements.getType()).getNumElements();
    Part part = {elements, Int32(b, adaptor.getRow()), place * bytes, 0, count};
    if (bytes == 2)
      writeTurnedMatrices(b, op, part, space);
    else
      writeTurnedElements(b, op, part, space);
  }

  /// Bytes from a row to the row 8 below, in which the swizzle repeats.
  static constexpr int64_t kRepeatBytes = 8 * kLineBytes;

  /// Writes by stmatrix.trans of 8 rows of the result, or of 16: lane l names row l % 8 of the 8
  /// columns number l / 8 % 2, and lanes from 16 on name the second 8 rows.
  void writeTurnedMatrices(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, const Part &part,
                           Value space) const {
    constexpr int64_t ofMatrix = 8, ofRows = 4; // rows of a matrix, and elements of 8 rows
    int64_t together = std::min<int64_t>(2 * ofRows, part.count);
    Int32 lane = threadOfRole(b, op, state) % kLanes, row = part.row + lane % ofMatrix;
    if (together > ofRows)
      row = row + lane / kWarpRows * ofMatrix;
    TileLine line(space, pipe::Layout::Swizzle128B, row);
    Value first = placeOf(line, b, part.byte, lane / ofMatrix % 2 * kAccessBytes, 0);
    auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
    for (int64_t i = 0; i < part.count; i += together) {
      SmallVector<Value> sources;
      for (int64_t j = i; j < i + together; j += 2)
        sources.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), slice(b, part, j, 2)));
      NVVM::StMatrixOp::create(b, offsetPointer(b, b.getLoc(), first, i / ofRows * kRepeatBytes),
                               sources, NVVM::MMALayout::col, shape, NVVM::LdStMatrixEltType::B16);
    }
  }

  /// Writes elements of 32 bits one at a time: the four of 8 rows, and then those 8 rows below.
  void writeTurnedElements(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, const Part &part,
                           Value space) const {
    constexpr int64_t elementBytes = 4, ofRows = 4;
    Int32 lane = threadOfRole(b, op, state) % kLanes;
    for (int64_t place = 0; place < ofRows; ++place) {
      TileLine line(space, pipe::Layout::Swizzle128B, part.row + (lane % 4 * 2 + place % 2));
      Int32 offset = (lane / 4 + place / 2 * 8) * elementBytes;
      Value first = placeOf(line, b, part.byte, offset, 0);
      for (int64_t i = place; i < part.count; i += ofRows)
        LLVM::StoreOp::create(b, vector::ExtractOp::create(b, part.elements, i),
                              offsetPointer(b, b.getLoc(), first, i / ofRows * kRepeatBytes),
                              elementBytes);
    }
  }

  /// The row whose segment a thread reads: that of its lane, or, if there are few rows, one that
  /// exists.
  Int32 rowToRead(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op) const {
    Int32 lane(b, accumulatorLane(b, b.getLoc(), state));
    auto part = cast<RankedTensorType>(op.getValues().front().getType());
    return op.getTransposed() ? lane % part.getDimSize(1) : lane;
  }

  /// Reads the rows of the threads of warpgroup `turn`; `words` are those of the turns before.
  void readSegment(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, Value space, Int32 group,
                   int64_t turn, SmallVector<Value> &words) const {
    VectorType type = pipe::vectorOfThread(op.getSegment().getType());
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    if (words.empty())
      words.assign(size_t(bytes / 4), constI32(b, 0));
    SmallVector<Type> types(words.size(), b.getI32Type());
    Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, Int32(b, turn));
    auto loaded = [&] {
      TileLine line(space, pipe::Layout::Swizzle128B, rowToRead(b, op));
      SmallVector<Value> mine;
      for (int64_t byte = 0; byte < bytes; byte += kAccessBytes) {
        Value pointer = offsetPointer(b, b.getLoc(), line.at(byte % kLineBytes),
                                      byte / kLineBytes * kPanelBytes);
        llvm::append_range(mine, loadSharedWords(b, pointer, kAccessBytes / 4));
      }
      return mine;
    };
    words = chooseValues(b, types, isMine, loaded, [&] { return words; });
  }
};

//===----------------------------------------------------------------------===//
// Parts of words
//===----------------------------------------------------------------------===//

/// The distance from the lane of a thread to the row that it has gathered.
struct LowerGatheredPlace : PipePattern<pipe::PlaceOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PlaceOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfFewRows())
      return rewriter.notifyMatchFailure(op, "is not the place of a gathered row");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 lane(b, accumulatorLane(b, b.getLoc(), state));
    int64_t rows = cast<pipe::FragmentType>(op.getAccumulator().getType()).getShape()[1];
    Value row = lane % rows - lane;
    rewriter.replaceOp(op, {row, constI32(b, 0)});
    return success();
  }
};

/// Stores scales of few rows. Every byte of a scale tile is written by one thread. Columns that pad
/// a word belong to the thread that has the last column, because no tile may reach them.
struct LowerStoreFewScales : PipePattern<pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfPartialWord())
      return rewriter.notifyMatchFailure(op, "stores no part of a word");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::GlobalType dest = op.getBufferType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t count = type.getNumElements();
    Int32 row = Int32(b, adaptor.getRow()) + Int32(b, accumulatorLane(b, b.getLoc(), state));
    Int32 column(b, adaptor.getColumn()), columns(b, columnsOfBuffer(b, b.getLoc(), op.getDest()));
    Int32 rows = adaptor.getRows() ? Int32(b, adaptor.getRows()) : Int32(b, dest.getShape()[0]);
    Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    SmallVector<Value> scales;
    for (int64_t i = 0; i < count; ++i) {
      Value exists = arith::AndIOp::create(b, row < rows, column + i < columns);
      Value scale = vector::ExtractOp::create(b, adaptor.getValue(), i);
      scales.push_back(arith::SelectOp::create(b, exists, scale, zero));
    }
    Int32 padded = (rows + (pipe::kScaleBlockRows - 1)) / pipe::kScaleBlockRows;
    Value isReached =
        arith::AndIOp::create(b, row < padded * pipe::kScaleBlockRows, column < columns);
    auto branch = scf::IfOp::create(b, isReached, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Int32 blocks(b, scaleBlockColumnsOfBuffer(b, b.getLoc(), op.getDest()));
    Value start = byteOf(b, adaptor.getDest(), row, column, blocks);
    storePiece(b, b.getLoc(), vector::FromElementsOp::create(b, type, scales), 0, count, start);
    if (dest.hasDynamicColumns())
      padGivenWord(b, start, column, columns, count);
    else
      padKnownWord(b, start, column, dest.getShape()[1], count);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void padKnownWord(ImplicitLocOpBuilder &b, Value start, Int32 column, int64_t columns,
                           int64_t count) {
    int64_t last = (columns - 1) / count * count;
    int64_t end = int64_t(llvm::alignTo(columns, pipe::kScaleBlockColumns));
    if (end > last + count)
      padWord(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, column, Int32(b, last)), start,
              count, end - last);
  }

  /// Pads the last word of a row that has no whole words: its last columns, from `column` on, may
  /// be behind a byte of the word, or two, or three.
  static void padGivenWord(ImplicitLocOpBuilder &b, Value start, Int32 column, Int32 columns,
                           int64_t count) {
    Int32 place = column % pipe::kScaleBlockColumns;
    for (int64_t at = 0; at + count < pipe::kScaleBlockColumns; at += count) {
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, Int32(b, at));
      Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, columns, column + count);
      padWord(b, arith::AndIOp::create(b, isHere, isLast), start, count,
              pipe::kScaleBlockColumns - at);
    }
  }

  /// Writes zeros from byte `first` up to `end` behind `start`.
  static void padWord(ImplicitLocOpBuilder &b, Value isLast, Value start, int64_t first,
                      int64_t end) {
    auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    for (int64_t byte = first; byte < end; ++byte)
      LLVM::StoreOp::create(b, zero, offsetPointer(b, b.getLoc(), start, byte), 1);
  }

  static Value byteOf(ImplicitLocOpBuilder &b, Value dest, Int32 row, Int32 column, Int32 blocks) {
    Int32 block =
        hw::scaleBlockIndex(row / hw::scaleBlockRows, column / hw::scaleBlockColumns, blocks);
    Value start = stridedPointer(b, b.getLoc(), dest, block, hw::scaleBlockBytes);
    Value word = stridedPointer(b, b.getLoc(), start, hw::scaleWordInBlock(row), 1);
    return stridedPointer(b, b.getLoc(), word, column % hw::scaleBlockColumns, 1);
  }
};

} // namespace

/// Returns true for an op at which all threads of a role meet.
static bool isExchange(Operation &op) {
  auto quantize = dyn_cast<pipe::QuantizeBlocksOp>(op);
  return isa<pipe::GatherRowsOp>(op) || (quantize && quantize.getPlace());
}

static void meetBehindSegments(Block &block) {
  Operation *last = nullptr;
  auto meet = [&] {
    if (!last)
      return;
    OpBuilder b(last->getContext());
    b.setInsertionPointAfter(last);
    NVVM::SyncWarpOp::create(b, last->getLoc(), constantI32(b, last->getLoc(), -1));
    last = nullptr;
  };
  for (Operation &op : block)
    if (isExchange(op))
      meet();
    else if (auto store = dyn_cast<pipe::StoreOp>(op); store && store.isOfLines())
      last = &op;
  meet();
}

void fp4::meetAtExchange(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state) {
  NVVM::BarrierOp::create(b, TypeRange(), constI32(b, kExchangeBarrier),
                          constI32(b, state.roles.at(op).getNumThreads()),
                          NVVM::BarrierReductionAttr(), Value());
}

void fp4::meetBehindSegments(gpu::GPUFuncOp kernel) {
  SetVector<Block *> blocks;
  kernel.walk([&](Operation *op) {
    if (isExchange(*op))
      blocks.insert(op->getBlock());
  });
  llvm::for_each(blocks, [](Block *block) { ::meetBehindSegments(*block); });
}

void fp4::populateGatherPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                 const KernelState &state) {
  patterns.add<LowerFragmentAmax, LowerGatherRows, LowerGatheredPlace, LowerStoreFewScales>(
      converter, patterns.getContext(), state);
}
