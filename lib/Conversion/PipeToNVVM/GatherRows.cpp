//===- GatherRows.cpp - Rows of the fragments of all warps ----------------===//
//
// What an epilogue derives from the elements of fragments. A maximum needs no exchange. Blocks of a
// row, and of a column, do: the threads of the role write the columns of one warpgroup's segments
// after the other to shared memory, in lines of 128 bytes under the widest swizzle, and the threads
// of that warpgroup read one row each. From there on they are lanes as those of tensor memory are.
//
//===----------------------------------------------------------------------===//
#include "Scalars.h"
#include "SmallBuilders.h"
#include "TileLines.h"
#include "WarpProducts.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kLanes = 32, kWarpRows = 16;
/// The barrier of the role; 0 is that of the block.
constexpr int64_t kGatherBarrier = 1;
/// Bytes of one access to shared memory, and of the lines of all rows.
constexpr int64_t kAccessBytes = 16, kPanelBytes = pipe::GatherRowsOp::kRows * kLineBytes;

//===----------------------------------------------------------------------===//
// The maximum
//===----------------------------------------------------------------------===//

struct LowerFragmentAmax : PipePattern<pipe::FragmentAmaxOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FragmentAmaxOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Scalars s(b, *state.target);
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = Int32(b, adaptor.getRow()) + rowOfThread(thread);
    Value amax;
    for (int64_t half : {0, 1}) {
      Value ofRow = ofHalf(b, s, op, adaptor, half, thread);
      if (adaptor.getRows()) {
        Value exists = row + 8 * half < Int32(b, adaptor.getRows());
        ofRow = arith::SelectOp::create(b, exists, ofRow, s.constant(0));
      }
      amax = amax ? s.maximumNumber(amax, ofRow) : ofRow;
    }
    if (adaptor.getMore())
      amax = s.maximumNumber(amax, adaptor.getMore());
    rewriter.replaceOp(op, amax);
    return success();
  }

private:
  /// Of the upper or of the lower row; in each it has two neighbours of every 8 columns.
  static Value ofHalf(ImplicitLocOpBuilder &b, Scalars &s, pipe::FragmentAmaxOp op,
                      OpAdaptor adaptor, int64_t half, Int32 thread) {
    auto type = cast<VectorType>(op.getValue().getType());
    int64_t count = type.getNumElements(), columns = int64_t(op.getColumns());
    SmallVector<Value> all = s.widen(packedWords(b, adaptor.getValue()), type.getElementType());
    Int32 first(b, adaptor.getColumn());
    bool isWhole = columns % (2 * count) == 0; // all columns of the op exist, or none
    SmallVector<Value> kept;
    for (int64_t i = 2 * half; i < count; i += 4)
      for (int64_t j : {i, i + 1}) {
        Value element = all[size_t(j)];
        if (!isWhole) {
          Int32 column = first + thread % 4 * 2 + (j / 4 * hw::fragmentTileColumns + j % 2);
          element = arith::SelectOp::create(b, column < Int32(b, columns), element, s.constant(0));
        }
        kept.push_back(element);
      }
    Value amax = s.amax(kept, /*keepNaN=*/false);
    if (!isWhole)
      return amax;
    return arith::SelectOp::create(b, first < Int32(b, columns), amax, s.constant(0));
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
    VectorType type = op.getSegment().getType();
    int64_t count = type.getNumElements();
    int64_t groups = state.roles.at(op).getNumThreads() / kGroupThreads;
    Int32 group = groupOfThread(b, op, state);
    Value space = offsetPointer(b, op.getLoc(), state.sharedBase, *op.getPlace());
    SmallVector<Value> words;
    for (int64_t turn = 0; turn < groups; ++turn) {
      synchronize(b, op); // what was read here before
      writeSegments(b, op, adaptor, space, turn * count);
      synchronize(b, op);
      readSegment(b, op, space, group, turn, words);
    }
    Value all =
        vector::FromElementsOp::create(b, VectorType::get(words.size(), b.getI32Type()), words);
    Value segment = vector::BitCastOp::create(b, type, all);
    rewriter.replaceOp(op, {segment, group * count});
    return success();
  }

private:
  void synchronize(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op) const {
    NVVM::BarrierOp::create(b, TypeRange(), constI32(b, kGatherBarrier),
                            constI32(b, state.roles.at(op).getNumThreads()),
                            NVVM::BarrierReductionAttr(), Value());
  }

  /// What the elements of a vector have in common.
  struct Part {
    Value elements;
    Int32 row, byte; ///< of its rows the first; of its columns, in the line of a segment
    int64_t first;   ///< element of the vector
    int64_t count;
  };

  /// Of every vector the columns that are in segments from `begin` on, of one warpgroup. Vectors
  /// have as many columns as a segment, or more, or a part of them.
  void writeSegments(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, OpAdaptor adaptor, Value space,
                     int64_t begin) const {
    VectorType type = op.getSegment().getType();
    int64_t segment = type.getNumElements(), bytes = type.getElementTypeBitWidth() / 8;
    int64_t given = cast<VectorType>(op.getValues().front().getType()).getNumElements();
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

  /// Byte `byte` of a row of segments, which lies in lines that are a panel apart. It is a multiple
  /// of all columns of a vector, so that nothing is carried from `offset`, which is less.
  static Value placeOf(const TileLine &line, ImplicitLocOpBuilder &b, Int32 byte, Int32 offset,
                       int64_t offsetPanel) {
    Int32 panel = byte / kLineBytes + offsetPanel;
    Value inPanel = line.at(byte % kLineBytes ^ offset);
    return stridedPointer(b, b.getLoc(), inPanel, panel, kPanelBytes);
  }

  /// stmatrix.x4 of 16 columns: lane l names row l % 16 of the 8 columns number l / 16.
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

  /// Of elements of 32 bits two neighbours at a time.
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

  /// The threads of warpgroup `turn` take their rows; `words` are those of the turns before.
  void readSegment(ImplicitLocOpBuilder &b, pipe::GatherRowsOp op, Value space, Int32 group,
                   int64_t turn, SmallVector<Value> &words) const {
    VectorType type = op.getSegment().getType();
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    if (words.empty())
      words.assign(size_t(bytes / 4), constI32(b, 0));
    SmallVector<Type> types(words.size(), b.getI32Type());
    Value isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, Int32(b, turn));
    auto branch = scf::IfOp::create(b, types, isMine, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, words);
    b.setInsertionPointToStart(branch.thenBlock());
    TileLine line(space, pipe::Layout::Swizzle128B,
                  Int32(b, accumulatorLane(b, b.getLoc(), state)));
    SmallVector<Value> mine;
    for (int64_t byte = 0; byte < bytes; byte += kAccessBytes) {
      Value pointer =
          offsetPointer(b, b.getLoc(), line.at(byte % kLineBytes), byte / kLineBytes * kPanelBytes);
      llvm::append_range(mine, loadSharedWords(b, pointer, kAccessBytes / 4));
    }
    scf::YieldOp::create(b, mine);
    words.assign(branch.result_begin(), branch.result_end());
  }
};

//===----------------------------------------------------------------------===//
// Parts of words
//===----------------------------------------------------------------------===//

/// Every byte of a block is written by one thread. Columns that pad a word are those of the thread
/// that has the last column, because no tile may reach them.
struct LowerStoreFewScales : PipePattern<pipe::StoreFewScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreFewScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::GlobalType dest = op.getDest().getType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t count = type.getNumElements(), columns = dest.getShape()[1];
    Int32 row = Int32(b, adaptor.getRow()) + Int32(b, accumulatorLane(b, b.getLoc(), state));
    Int32 column(b, adaptor.getColumn());
    Int32 rows = adaptor.getRows() ? Int32(b, adaptor.getRows()) : Int32(b, dest.getShape()[0]);
    Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    SmallVector<Value> scales;
    for (int64_t i = 0; i < count; ++i) {
      Value exists = arith::AndIOp::create(b, row < rows, column + i < Int32(b, columns));
      Value scale = vector::ExtractOp::create(b, adaptor.getValue(), i);
      scales.push_back(arith::SelectOp::create(b, exists, scale, zero));
    }
    Int32 padded = (rows + (pipe::kScaleBlockRows - 1)) / pipe::kScaleBlockRows;
    Value isReached =
        arith::AndIOp::create(b, row < padded * pipe::kScaleBlockRows, column < Int32(b, columns));
    auto branch = scf::IfOp::create(b, isReached, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Value start = byteOf(b, adaptor.getDest(), row, column, dest.getScaleBlockColumns());
    storePiece(b, b.getLoc(), vector::FromElementsOp::create(b, type, scales), 0, count, start);
    int64_t last = (columns - 1) / count * count;
    int64_t end = int64_t(llvm::alignTo(columns, pipe::kScaleBlockColumns));
    if (end > last + count)
      padWord(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, column, Int32(b, last)), start,
              count, end - last);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Zeros from byte `first` up to `end` behind `start`.
  static void padWord(ImplicitLocOpBuilder &b, Value isLast, Value start, int64_t first,
                      int64_t end) {
    auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    for (int64_t byte = first; byte < end; ++byte)
      LLVM::StoreOp::create(b, zero, offsetPointer(b, b.getLoc(), start, byte), 1);
  }

  static Value byteOf(ImplicitLocOpBuilder &b, Value dest, Int32 row, Int32 column,
                      int64_t blocks) {
    Int32 block =
        hw::scaleBlockIndex(row / hw::scaleBlockRows, column / hw::scaleBlockColumns, blocks);
    Value start = stridedPointer(b, b.getLoc(), dest, block, hw::scaleBlockBytes);
    Value word = stridedPointer(b, b.getLoc(), start, hw::scaleWordInBlock(row), 1);
    return stridedPointer(b, b.getLoc(), word, column % hw::scaleBlockColumns, 1);
  }
};

} // namespace

void fp4::populateGatherPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                 const KernelState &state) {
  patterns.add<LowerFragmentAmax, LowerGatherRows, LowerStoreFewScales>(
      converter, patterns.getContext(), state);
}
