//===- Fragments.cpp - Products whose accumulator is in registers ---------===//
//
// A fragment is an array in the frame of its thread whose elements have constant numbers everywhere,
// so that LLVM keeps it in registers.
//
// convert_tile: a thread takes a chunk of 32 elements of a row, 16 bytes of the packed tile, and
// writes the 64 bytes that they become. Neighbouring threads have neighbouring rows: with the
// swizzles of both tiles, eight of them touch all banks once.
//
// mma_converted: thread l of warp w has of an instruction's A the elements
//
//   register   0          1              2          3
//   row        r          r + 8          r          r + 8          r = 16 w + l / 4
//   k          2 c, + 1   2 c, + 1       2 c + 8, + 1              c = l % 4
//
// of 16: a byte of the lower four and one of the upper four that their row has there. It reads the
// 16 bytes of two instructions at once, as do the three other threads of the row.
//
// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"

#include "HalfOperands.h"
#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/SmemDescriptor.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Elements of K in 16 bytes of packed codes, and in one instruction.
constexpr int64_t kChunk = 32, kInstruction = pipe::kDenseMmaK;
constexpr int64_t kGroupThreads = 128, kGroupRows = 64;
constexpr int64_t kLineBytes = 128;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// 16 bytes of `row` from byte `byte` on, of a tile of lines of one swizzle width.
Value inTile(Value tile, pipe::Layout layout, Int32 row, Int32 byte) {
  int64_t width = pipe::swizzleWidth(layout);
  Int32 place = hw::swizzle(pipe::swizzleMode(layout), row * width + byte);
  ImplicitLocOpBuilder &b = place.builder();
  return stridedPointer(b, b.getLoc(), tile, place, 1);
}

SmallVector<Value> loadChunk(ImplicitLocOpBuilder &b, Value tile, Int32 row, Int32 chunk) {
  Value pointer = inTile(tile, pipe::Layout::Swizzle64B, row, chunk * 16);
  Value words = LLVM::LoadOp::create(b, VectorType::get(4, b.getI32Type()), pointer, 16);
  SmallVector<Value> result;
  for (int64_t i = 0; i < 4; ++i)
    result.push_back(vector::ExtractOp::create(b, words, i));
  return result;
}

/// The four scales of `row` in column `block` of the tile's blocks.
Value loadScales(ImplicitLocOpBuilder &b, Value tile, pipe::SharedType type, Int32 row,
                 Int32 block) {
  int64_t columns = type.getColumns() / pipe::kScaleBlockColumns;
  Int32 index = hw::scaleBlockIndex(row / pipe::kScaleBlockRows, block, columns);
  Int32 offset = index * pipe::kScaleBlockBytes + hw::scaleWordInBlock(row);
  return LLVM::LoadOp::create(b, b.getI32Type(), stridedPointer(b, b.getLoc(), tile, offset, 1), 4);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// Items are chunks: those of all rows in one place after those in the place before.
struct LowerConvertTile : PipePattern<pipe::ConvertTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ConvertTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType source = op.getSource().getType();
    int64_t threads = state.roles.at(op).getNumThreads();
    int64_t items = source.getRows() * (source.getColumns() / kChunk);
    int64_t step = threads * kAtOnce, looped = items / step * step;
    Int32 thread = threadOfRole(b, op, state);
    if (looped)
      emitLoop(b, looped, step, [&](Value first) {
        convertItems(b, op, adaptor, thread + Int32(b, first), threads, kAtOnce);
      });
    int64_t whole = (items - looped) / threads;
    if (whole)
      convertItems(b, op, adaptor, thread + looped, threads, whole);
    Int32 last = thread + (looped + whole * threads);
    if (looped + whole * threads < items)
      emitIf(b, last < items, [&] { convertItems(b, op, adaptor, last, threads, 1); });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Items of a thread that are loaded before the first of them is stored.
  static constexpr int64_t kAtOnce = 2;

  struct Item {
    Int32 row, chunk;
    SmallVector<Value> codes, factors;
  };

  static void emitIf(ImplicitLocOpBuilder &b, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  static void emitLoop(ImplicitLocOpBuilder &b, int64_t end, int64_t step,
                       llvm::function_ref<void(Value)> body) {
    auto constant = [&](int64_t value) { return constantI32(b, b.getLoc(), value); };
    auto loop = scf::ForOp::create(b, constant(0), constant(end), constant(step));
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// `first` and the items `apart` from it, `count` in all.
  void convertItems(ImplicitLocOpBuilder &b, pipe::ConvertTileOp op, OpAdaptor adaptor,
                    Int32 first, int64_t apart, int64_t count) const {
    HalfOperands halves(b, *state.target, op.getScales().getType().getElementType());
    SmallVector<Item> items;
    for (int64_t i = 0; i < count; ++i)
      items.push_back(load(b, op, adaptor, halves, first + i * apart));
    for (const Item &item : items)
      for (auto [i, codes] : llvm::enumerate(item.codes))
        store(b, op, adaptor, item.row, item.chunk * 4 + int64_t(i),
              halves.convert(codes, item.factors[i * 8 / halves.blockSize()]));
  }

  /// Where a block of scales does not exist, neither do the elements: they take the scales of the
  /// last block, and nobody multiplies what they become.
  static Item load(ImplicitLocOpBuilder &b, pipe::ConvertTileOp op, OpAdaptor adaptor,
                   HalfOperands &halves, Int32 index) {
    int64_t rows = op.getSource().getType().getRows();
    Item item{index % rows, index / rows, {}, {}};
    item.codes = loadChunk(b, adaptor.getSource(), item.row, item.chunk);
    pipe::SharedType type = op.getScales().getType();
    int64_t perChunk = kChunk / halves.blockSize();
    Int32 scale = item.chunk * perChunk, block = scale / pipe::kScaleBlockColumns;
    if (adaptor.getBlocks() && type.getColumns() > pipe::kScaleBlockColumns)
      block = minimum(block, Int32(b, adaptor.getBlocks()) - 1);
    Int32 word(b, loadScales(b, adaptor.getScales(), type, item.row, block));
    Int32 scales = word.shiftRight(scale % pipe::kScaleBlockColumns * 8);
    item.factors = halves.factors(scales, perChunk);
    return item;
  }

  /// Eight elements of `row`, 16 bytes, of which there are `at` before in the row.
  static void store(ImplicitLocOpBuilder &b, pipe::ConvertTileOp op, OpAdaptor adaptor, Int32 row,
                    Int32 at, ArrayRef<Value> pairs) {
    SmallVector<Value> words;
    for (Value pair : pairs)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    auto type = VectorType::get(4, b.getI32Type());
    Value value = vector::FromElementsOp::create(b, type, words);
    constexpr int64_t perLine = kLineBytes / 16;
    int64_t panelBytes = op.getTileType().getRows() * kLineBytes;
    Value panel =
        stridedPointer(b, b.getLoc(), adaptor.getDest(), at / perLine, panelBytes);
    LLVM::StoreOp::create(
        b, value, inTile(panel, pipe::Layout::Swizzle128B, row, at % perLine * 16), 16);
  }
};

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// In the entry block, because a frame is as large as all its arrays. Zeros: a product that does
/// not accumulate names the registers all the same.
struct LowerFragment : PipePattern<pipe::FragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FragmentOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t count = op.getType().getElementsPerThread();
    Value array;
    {
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointAfterValue(state.threadIndex);
      auto type = LLVM::LLVMArrayType::get(b.getF32Type(), count);
      array = LLVM::AllocaOp::create(b, LLVM::LLVMPointerType::get(b.getContext()), type,
                                     constantI32(b, op.getLoc(), 1), /*alignment=*/4);
    }
    SmallVector<Value> zeros(count, constF32(b, 0));
    storeElements(b, array, zeros);
    rewriter.replaceOp(op, array);
    return success();
  }
};

struct LowerMmaConverted : PipePattern<pipe::MmaConvertedOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::MmaConvertedOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType scales = op.getAScales().getType();
    int64_t blocks = scales.getColumns() / pipe::kScaleBlockColumns;
    emitFor(b, op, adaptor, blocks);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The product of as many blocks of scales as there are, at most `blocks`.
  void emitFor(ImplicitLocOpBuilder &b, pipe::MmaConvertedOp op, OpAdaptor adaptor,
               int64_t blocks) const {
    if (blocks == 1 || !adaptor.getBlocks())
      return multiply(b, op, adaptor, blocks);
    Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, adaptor.getBlocks(),
                                      constantI32(b, op.getLoc(), blocks));
    auto branch = scf::IfOp::create(b, all, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    multiply(b, op, adaptor, blocks);
    b.setInsertionPointToStart(branch.elseBlock());
    emitFor(b, op, adaptor, blocks - 1);
  }

  void multiply(ImplicitLocOpBuilder &b, pipe::MmaConvertedOp op, OpAdaptor adaptor,
                int64_t blocks) const {
    pipe::SharedType type = op.getB().getType();
    WarpgroupProduct product;
    product.element = type.getElementType();
    product.accumulate = adaptor.getAccumulate();
    product.b = wgmmaDescriptor(b, adaptor.getB());
    product.a = convertA(b, op, adaptor, blocks);
    int64_t panelBytes = type.getRows() * kLineBytes;
    for (size_t i = 0; i < product.a.size() / 4; ++i) {
      int64_t byte = int64_t(i) * hw::mmaRowBytes;
      product.bOffsets.push_back((byte / kLineBytes * panelBytes + byte % kLineBytes) / 16);
    }
    int64_t count = op.getAccumulator().getType().getElementsPerThread();
    SmallVector<Value> sums = loadElements(b, adaptor.getAccumulator(), 0, count);
    storeElements(b, adaptor.getAccumulator(), multiplyWarpgroup(b, sums, product));
  }

  /// Registers of A of all instructions of `blocks` blocks of scales.
  SmallVector<Value> convertA(ImplicitLocOpBuilder &b, pipe::MmaConvertedOp op, OpAdaptor adaptor,
                              int64_t blocks) const {
    pipe::SharedType scaleTile = op.getAScales().getType();
    HalfOperands halves(b, *state.target, scaleTile.getElementType());
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = rowOfThread(thread);
    Int32 lane = thread % 4;
    // Bytes c and c + 4 of eight: the selector's two lowest nibbles.
    Value selector = lane * 0x11 + 0x40;
    SmallVector<Value> registers;
    for (int64_t block = 0; block < blocks; ++block) {
      SmallVector<Value> factors[2];
      for (int64_t half : {0, 1})
        factors[half] = halves.factors(
            loadScales(b, adaptor.getAScales(), scaleTile, row + 8 * half, Int32(b, block)));
      int64_t perBlock = pipe::kScaleBlockColumns * halves.blockSize() / kChunk;
      for (int64_t chunk = 0; chunk < perBlock; ++chunk)
        convertChunk(b, halves, adaptor.getA(), row, block * perBlock + chunk, selector, factors,
                     chunk * kChunk / halves.blockSize(), registers);
    }
    return registers;
  }

  /// Two instructions: 32 elements of `row` and of the row 8 below, from scale `scale` of their
  /// block on.
  static void convertChunk(ImplicitLocOpBuilder &b, HalfOperands &halves, Value tile, Int32 row,
                           int64_t chunk, Value selector, ArrayRef<SmallVector<Value>> factors,
                           int64_t scale, SmallVector<Value> &registers) {
    SmallVector<Value> upper = loadChunk(b, tile, row, Int32(b, chunk));
    SmallVector<Value> lower = loadChunk(b, tile, row + 8, Int32(b, chunk));
    for (int64_t i = 0; i < kChunk / kInstruction; ++i) {
      auto pick = [&](ArrayRef<Value> words) -> Value {
        return NVVM::PermuteOp::create(b, b.getI32Type(), words[2 * i], words[2 * i + 1], selector,
                                       NVVM::PermuteMode::DEFAULT);
      };
      Value low = arith::AndIOp::create(b, pick(upper), constantI32(b, b.getLoc(), 0xFFFF));
      Value high = arith::ShLIOp::create(b, pick(lower), constantI32(b, b.getLoc(), 16));
      Value codes = arith::OrIOp::create(b, low, high);
      int64_t at = scale + i * kInstruction / halves.blockSize();
      SmallVector<Value> pairs = halves.convert(codes, factors[0][at], factors[1][at]);
      for (int64_t pair : {0, 2, 1, 3})
        registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pairs[pair]));
    }
  }
};

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

struct LowerReadFragment : PipePattern<pipe::ReadFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReadFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = op.getResult().getType();
    auto elements = loadElements(b, adaptor.getAccumulator(), int64_t(op.getColumn()) / 2,
                                 type.getNumElements());
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

/// Where the elements of a thread are in the result.
struct ElementPlaces {
  ImplicitLocOpBuilder &b;
  Int32 row, column; ///< of element 0

  ElementPlaces(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state, Value firstRow,
                Value firstColumn)
      : b(b), row(b, firstRow), column(b, firstColumn) {
    Int32 thread = threadOfRole(b, op, state);
    row = row + rowOfThread(thread);
    column = column + thread % 4 * 2;
  }
  Int32 rowOf(int64_t element) const { return row + element / 2 % 2 * 8; }
  Int32 columnOf(int64_t element) const {
    return column + (element / 4 * hw::fragmentTileColumns + element % 2);
  }
};

Value rowLimit(OpBuilder &b, Location loc, pipe::GlobalType type, Value rows) {
  return rows ? rows : constantI32(b, loc, type.getShape()[0]);
}

struct LowerFragmentFactors : PipePattern<pipe::FragmentFactorsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FragmentFactorsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ElementPlaces places(b, op, state, adaptor.getRow(), adaptor.getColumn());
    auto type = op.getResult().getType();
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      int64_t first = firstLike(i, op.getGlobal().getType());
      elements.push_back(first < i ? elements[first] : loadElement(b, op, adaptor, places, i));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }

private:
  /// The first element of the same number: of the same row, or column, where only that counts.
  static int64_t firstLike(int64_t i, pipe::GlobalType global) {
    bool everyRow = global.getShape()[0] == 1, everyColumn = global.getShape()[1] == 1;
    if (everyColumn)
      return everyRow ? 0 : i & 2;
    return everyRow ? i & ~2 : i;
  }

  static Value loadElement(ImplicitLocOpBuilder &b, pipe::FragmentFactorsOp op, OpAdaptor adaptor,
                           const ElementPlaces &places, int64_t i) {
    pipe::GlobalType global = op.getGlobal().getType();
    int64_t bytes = global.getElementType().getIntOrFloatBitWidth() / 8;
    auto at = [&](Value pointer, int64_t dimension, Int32 index, Value size, int64_t stride) -> Value {
      if (global.getShape()[dimension] == 1)
        return pointer;
      return stridedPointer(b, op.getLoc(), pointer, minimum(index, Int32(b, size) - 1), stride);
    };
    Value rows = rowLimit(b, op.getLoc(), global, adaptor.getRows());
    Value columns = constantI32(b, op.getLoc(), global.getShape()[1]);
    Value row = at(adaptor.getGlobal(), 0, places.rowOf(i), rows, global.getRowPitch());
    return load(b, global.getElementType(), at(row, 1, places.columnOf(i), columns, bytes), bytes);
  }
};

struct LowerStoreFragment : PipePattern<pipe::StoreFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ElementPlaces places(b, op, state, adaptor.getRow(), adaptor.getColumn());
    int64_t count = cast<VectorType>(op.getValue().getType()).getNumElements();
    Int32 rows(b, rowLimit(b, op.getLoc(), op.getDest().getType(), adaptor.getRows()));
    for (int64_t half : {0, 2}) { // elements of one row
      auto branch = scf::IfOp::create(b, places.rowOf(half) < rows, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      for (int64_t i = half; i < count; i += 4)
        storePair(b, op, adaptor, places, i);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Elements i and i + 1, which are neighbours. Columns come in pairs where their number is even.
  static void storePair(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                        const ElementPlaces &places, int64_t i) {
    int64_t columns = op.getDest().getType().getShape()[1];
    bool paired = columns % 2 == 0;
    for (int64_t j = i; j < i + 2; j += paired ? 2 : 1) {
      auto branch =
          scf::IfOp::create(b, places.columnOf(j) < columns, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      storeElements(b, op, adaptor, places, j, paired ? 2 : 1);
    }
  }

  static void storeElements(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                            const ElementPlaces &places, int64_t first, int64_t count) {
    pipe::GlobalType dest = op.getDest().getType();
    int64_t bytes = dest.getElementType().getIntOrFloatBitWidth() / 8;
    Value row = stridedPointer(b, op.getLoc(), adaptor.getDest(), places.rowOf(first),
                               dest.getRowPitch());
    Value pointer = stridedPointer(b, op.getLoc(), row, places.columnOf(first), bytes);
    SmallVector<Value> elements;
    for (int64_t i = first; i < first + count; ++i)
      elements.push_back(vector::ExtractOp::create(b, adaptor.getValue(), i));
    Value value = count == 1
                      ? elements.front()
                      : vector::FromElementsOp::create(
                            b, VectorType::get(count, dest.getElementType()), elements);
    LLVM::StoreOp::create(b, value, pointer, unsigned(bytes * count));
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Fragments.h
//===----------------------------------------------------------------------===//

Int32 fp4::threadOfRole(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state) {
  return Int32(b, state.threadIndex) - 32 * int64_t(state.roles.at(op).getFirstWarp());
}

Int32 fp4::rowOfThread(Int32 thread) {
  return thread / kGroupThreads * kGroupRows + thread % kGroupThreads / 32 * 16 + thread % 32 / 4;
}

static Value elementPointer(ImplicitLocOpBuilder &b, Value fragment, int64_t element) {
  return offsetPointer(b, b.getLoc(), fragment, 4 * element);
}

SmallVector<Value> fp4::loadElements(ImplicitLocOpBuilder &b, Value fragment, int64_t first,
                                     int64_t count) {
  SmallVector<Value> elements;
  for (int64_t i = first; i < first + count; ++i)
    elements.push_back(LLVM::LoadOp::create(b, b.getF32Type(), elementPointer(b, fragment, i), 4));
  return elements;
}

void fp4::storeElements(ImplicitLocOpBuilder &b, Value fragment, ValueRange elements) {
  for (auto [i, element] : llvm::enumerate(elements))
    LLVM::StoreOp::create(b, element, elementPointer(b, fragment, int64_t(i)), 4);
}

Value fp4::wgmmaDescriptor(ImplicitLocOpBuilder &b, Value tile) {
  uint64_t form = hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::B128).encodeWgmma();
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), tile);
  Value start = hw::descriptorStart(Int32(b, address));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), start);
  return arith::OrIOp::create(b, wide, constantI64(b, b.getLoc(), int64_t(form)));
}

void fp4::populateFragmentPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerConvertTile, LowerFragment, LowerMmaConverted, LowerReadFragment,
               LowerFragmentFactors, LowerStoreFragment>(converter, patterns.getContext(), state);
}
