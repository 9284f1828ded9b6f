//===- Fragments.cpp - Products whose accumulator is in registers ---------===//
//
// A fragment is an array in the frame of its thread whose elements have constant numbers
// everywhere, so that LLVM keeps it in registers.
//
// Operands that are converted have an order along K of their own (FragmentLayout.h): a thread of
// mma_converted has 16 bytes of a row of A, the codes of a quarter of the row, which are the
// elements that it has of all instructions:
//
//   register   0          1          2          3
//   row        r          r + 8      r          r + 8      r = 16 w + l / 4
//   k          2 c, + 1   2 c, + 1   2 c + 8, + 1          c = l % 4
//
// convert_tile: a thread takes half of a row, eight bytes of each quarter, and writes the line of
// 128 bytes that they become. Neighbouring threads have neighbouring rows, and every other eight of
// them the other half: with the swizzles of both tiles, they touch all banks equally often.
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

/// Quarters of a row of a k tile, and bytes of each, of packed codes.
constexpr int64_t kQuarters = 4, kQuarterBytes = 16;
constexpr int64_t kGroupThreads = 128, kGroupRows = 64;
constexpr int64_t kLineBytes = 128;
/// ptxas refuses instructions of 256 columns where 512 threads leave 128 registers to each.
constexpr int64_t kInstructionColumns = 128;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Where the bytes of a line of a tile are. Tiles are aligned, and swizzling combines addresses by
/// exclusive or: byte i of the line is at its first byte's address ^ i.
class Line {
public:
  Line(Value tile, pipe::Layout layout, Int32 row)
      : first(Int32(row.builder(),
                    LLVM::PtrToIntOp::create(row.builder(), row.builder().getI32Type(), tile)) +
              hw::swizzle(pipe::swizzleMode(layout), row * pipe::swizzleWidth(layout))),
        type(tile.getType()) {}

  Value at(Int32 byte) const {
    Value address = first ^ byte;
    return LLVM::IntToPtrOp::create(first.builder(), type, address);
  }
  Value at(int64_t byte) const { return at(Int32(first.builder(), byte)); }

private:
  Int32 first;
  Type type;
};

SmallVector<Value> loadWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count) {
  Value words =
      LLVM::LoadOp::create(b, VectorType::get(count, b.getI32Type()), pointer, unsigned(4 * count));
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(vector::ExtractOp::create(b, words, i));
  return result;
}

/// Bytes of two words, chosen by the nibbles of `selector`.
Value pickBytes(ImplicitLocOpBuilder &b, Value low, Value high, Int32 selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

/// `block`, or the last of the blocks of scales that exist. Where a block does not exist, neither
/// do the elements, which are zeros: they take other scales.
Int32 existingBlock(Value blocks, Int32 block) {
  return blocks ? minimum(block, Int32(block.builder(), blocks) - 1) : block;
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

/// Items are halves of rows: one of every row, and then the other.
struct LowerConvertTile : PipePattern<pipe::ConvertTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ConvertTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t threads = state.roles.at(op).getNumThreads();
    int64_t items = op.getSource().getType().getRows() * 2, whole = items / threads * threads;
    Int32 thread = threadOfRole(b, op, state);
    if (whole)
      emitLoop(b, whole, threads,
               [&](Value first) { convertItem(b, op, adaptor, thread + Int32(b, first)); });
    Int32 last = thread + whole;
    if (whole < items)
      emitIf(b, last < items, [&] { convertItem(b, op, adaptor, last); });
    rewriter.eraseOp(op);
    return success();
  }

private:
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

  void convertItem(ImplicitLocOpBuilder &b, pipe::ConvertTileOp op, OpAdaptor adaptor,
                   Int32 index) const {
    HalfOperands halves(b, *state.target, op.getScales().getType().getElementType());
    int64_t rows = op.getSource().getType().getRows();
    Int32 row = index % rows, half = (index / rows) ^ (row / 8 % 2);
    Line source(adaptor.getSource(), pipe::Layout::Swizzle64B, row);
    SmallVector<SmallVector<Value>> quarters;
    for (int64_t quarter = 0; quarter < kQuarters; ++quarter)
      quarters.push_back(loadWords(b, source.at(half * 8 ^ Int32(b, quarter * kQuarterBytes)), 2));
    SmallVector<Value> factors =
        halves.factors(scalesOfQuarters(b, op, adaptor, row, half), kQuarters);
    Value panel = stridedPointer(b, b.getLoc(), adaptor.getDest(), half, rows * kLineBytes);
    Line line(panel, pipe::Layout::Swizzle128B, row);
    for (int64_t word : {0, 1}) {
      SmallVector<SmallVector<Value>> pairs;
      for (int64_t quarter = 0; quarter < kQuarters; ++quarter)
        pairs.push_back(halves.convert(quarters[quarter][word], factors[quarter]));
      for (int64_t i = 0; i < 4; ++i)
        store(b, line.at((4 * word + i) * 16),
              {pairs[0][i], pairs[1][i], pairs[2][i], pairs[3][i]});
    }
  }

  /// A word with the scales of the four quarters of a half of `row`.
  static Value scalesOfQuarters(ImplicitLocOpBuilder &b, pipe::ConvertTileOp op, OpAdaptor adaptor,
                                Int32 row, Int32 half) {
    pipe::SharedType type = op.getScales().getType();
    Value low = loadScales(b, adaptor.getScales(), type, row, Int32(b, 0));
    if (type.getColumns() == kQuarters)
      return low;
    Value high = loadScales(b, adaptor.getScales(), type, row,
                            existingBlock(adaptor.getBlocks(), Int32(b, 1)));
    return pickBytes(b, low, high, half * 0x1111 + 0x6420);
  }

  static void store(ImplicitLocOpBuilder &b, Value pointer, ArrayRef<Value> pairs) {
    SmallVector<Value> words;
    for (Value pair : pairs)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    auto type = VectorType::get(4, b.getI32Type());
    LLVM::StoreOp::create(b, vector::FromElementsOp::create(b, type, words), pointer, 16);
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
    HalfOperands halves(b, *state.target, op.getAScales().getType().getElementType());
    PartOfA part = loadA(b, op, adaptor, halves);
    WarpgroupProduct product = productOf(b, op, adaptor);
    int64_t count = op.getAccumulator().getType().getElementsPerThread();
    SmallVector<Value> sums = loadElements(b, adaptor.getAccumulator(), 0, count);
    // Words are converted while the tensor core multiplies those before.
    int64_t words = op.getB().getType().getRows() > kInstructionColumns ? 1 : 2;
    for (int64_t word = 0; word < kWords; word += words) {
      product.a.clear();
      for (int64_t i = word; i < word + words; ++i)
        llvm::append_range(product.a, convertWord(b, halves, part, i));
      product.bOffset = offsetOfB(op, word);
      product.pending = word + words < kWords || state.continuedProducts.contains(op);
      sums = multiplyWarpgroup(b, sums, product);
      if (word == 0) // the reads of A before loads that follow, while the tensor core is busy
        emitProxyFence(b, op.getLoc());
      product.accumulate = arith::ConstantOp::create(b, b.getBoolAttr(true));
    }
    storeElements(b, adaptor.getAccumulator(), sums);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Words of a quarter of a row. Each has elements of two instructions.
  static constexpr int64_t kWords = kQuarterBytes / 4;

  /// What a thread has of A: a quarter of two rows which are 8 apart, and factors of its words.
  struct PartOfA {
    SmallVector<Value> codes[2], factors[2];
  };

  PartOfA loadA(ImplicitLocOpBuilder &b, pipe::MmaConvertedOp op, OpAdaptor adaptor,
                HalfOperands &halves) const {
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = rowOfThread(thread);
    Int32 quarter = thread % kQuarters;
    PartOfA part;
    for (int64_t i : {0, 1})
      part.codes[i] = loadWords(
          b,
          Line(adaptor.getA(), pipe::Layout::Swizzle64B, row + 8 * i).at(quarter * kQuarterBytes),
          kWords);
    pipe::SharedType type = op.getAScales().getType();
    int64_t perQuarter = type.getColumns() / kQuarters; // one scale or two
    Int32 place = quarter * perQuarter, block = place / pipe::kScaleBlockColumns;
    if (perQuarter > 1)
      block = existingBlock(adaptor.getBlocks(), block);
    Value upper = loadScales(b, adaptor.getAScales(), type, row, block);
    Value lower = loadScales(b, adaptor.getAScales(), type, row + 8, block);
    // Those of the upper row, and then those of the lower row.
    Int32 selector = place % pipe::kScaleBlockColumns * (perQuarter > 1 ? 0x1111 : 0x11) +
                     (perQuarter > 1 ? 0x5410 : 0x40);
    SmallVector<Value> factors =
        halves.factors(pickBytes(b, upper, lower, selector), 2 * perQuarter);
    for (int64_t i : {0, 1})
      for (int64_t word = 0; word < kWords; ++word)
        part.factors[i].push_back(factors[i * perQuarter + word * perQuarter / kWords]);
    return part;
  }

  /// Registers of A of two instructions.
  static SmallVector<Value> convertWord(ImplicitLocOpBuilder &b, HalfOperands &halves,
                                        const PartOfA &part, int64_t word) {
    SmallVector<Value> upper = halves.convert(part.codes[0][word], part.factors[0][word]);
    SmallVector<Value> lower = halves.convert(part.codes[1][word], part.factors[1][word]);
    SmallVector<Value> registers;
    for (int64_t i = 0; i < 4; ++i)
      for (Value pair : {upper[i], lower[i]})
        registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    return registers;
  }

  static WarpgroupProduct productOf(ImplicitLocOpBuilder &b, pipe::MmaConvertedOp op,
                                    OpAdaptor adaptor) {
    WarpgroupProduct product;
    product.element = op.getB().getType().getElementType();
    product.columns = std::min(op.getB().getType().getRows(), kInstructionColumns);
    product.accumulate = adaptor.getAccumulate();
    product.b = wgmmaDescriptor(b, adaptor.getB());
    return product;
  }

  /// Of the elements of B that go with a word of A, in units of the descriptor.
  static int64_t offsetOfB(pipe::MmaConvertedOp op, int64_t word) {
    int64_t byte = word * 2 * hw::mmaRowBytes,
            panelBytes = op.getB().getType().getRows() * kLineBytes;
    return (byte / kLineBytes * panelBytes + byte % kLineBytes) / 16;
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
    auto at = [&](Value pointer, int64_t dimension, Int32 index, Value size,
                  int64_t stride) -> Value {
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

/// Elements of 16 bits leave 16 bytes at a time: the four threads of a row exchange what they have
/// of four tiles of 8 columns, until each has the row of one.
struct LowerStoreFragment : PipePattern<pipe::StoreFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ElementPlaces places(b, op, state, adaptor.getRow(), adaptor.getColumn());
    bool together = exchanges(op);
    SmallVector<SmallVector<Value>> words;
    if (together)
      for (int64_t half : {0, 2})
        words.push_back(rowsOfTiles(b, op, adaptor, half));
    Int32 rows(b, rowLimit(b, op.getLoc(), op.getDest().getType(), adaptor.getRows()));
    for (int64_t half : {0, 2}) { // elements of one row
      auto branch = scf::IfOp::create(b, places.rowOf(half) < rows, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      if (together)
        storeTiles(b, op, adaptor, places, half, words[half / 2]);
      else
        storePairs(b, op, adaptor, places, half);
    }
    NVVM::SyncWarpOp::create(b, op.getLoc(), constantI32(b, op.getLoc(), -1));
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Elements that a thread has of four tiles, and of one row of them.
  static constexpr int64_t kExchanged = 16, kTiles = 4;

  static VectorType vectorOf(pipe::StoreFragmentOp op) {
    return cast<VectorType>(op.getValue().getType());
  }

  static bool exchanges(pipe::StoreFragmentOp op) {
    return vectorOf(op).getElementTypeBitWidth() == 16 &&
           vectorOf(op).getNumElements() % kExchanged == 0 &&
           op.getDest().getType().getShape()[1] % hw::fragmentTileColumns == 0;
  }

  /// The words of row `half` of each four tiles, after their exchange.
  static SmallVector<Value> rowsOfTiles(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op,
                                        OpAdaptor adaptor, int64_t half) {
    int64_t count = vectorOf(op).getNumElements();
    Value all =
        LLVM::BitcastOp::create(b, VectorType::get(count / 2, b.getI32Type()), adaptor.getValue());
    SmallVector<Value> words;
    for (int64_t i = half; i < count; i += 4)
      words.push_back(vector::ExtractOp::create(b, all, i / 2));
    Int32 lane(b, NVVM::LaneIdOp::create(b, b.getI32Type()));
    for (size_t first = 0; first < words.size(); first += kTiles)
      transpose(b, lane, MutableArrayRef(words).slice(first, kTiles));
    return words;
  }

  /// Word j of lane i of four becomes word i of lane j.
  static void transpose(ImplicitLocOpBuilder &b, Int32 lane, MutableArrayRef<Value> words) {
    for (int64_t distance : {1, 2}) {
      Value upper =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, lane & distance, Int32(b, int64_t(0)));
      for (int64_t i = 0; i < kTiles; ++i) {
        if (i & distance)
          continue;
        Value &low = words[i], &high = words[i | distance];
        Value given = arith::SelectOp::create(b, upper, low, high);
        auto number = [&](int64_t value) { return constantI32(b, b.getLoc(), value); };
        Value taken = NVVM::ShflOp::create(b, b.getI32Type(), number(-1), given, number(distance),
                                           number(31), NVVM::ShflKind::bfly, UnitAttr());
        low = arith::SelectOp::create(b, upper, taken, low);
        high = arith::SelectOp::create(b, upper, high, taken);
      }
    }
  }

  /// Lane l has the row of tile l % 4 of four.
  static void storeTiles(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                         const ElementPlaces &places, int64_t half, ArrayRef<Value> words) {
    int64_t columns = op.getDest().getType().getShape()[1];
    Int32 mine =
        Int32(b, adaptor.getColumn()) + Int32(b, NVVM::LaneIdOp::create(b, b.getI32Type())) %
                                            kTiles * int64_t(hw::fragmentTileColumns);
    for (size_t first = 0; first < words.size(); first += kTiles) {
      Int32 column = mine + int64_t(first) * hw::fragmentTileColumns;
      auto branch = scf::IfOp::create(b, column < columns, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      auto type = VectorType::get(kTiles, b.getI32Type());
      Value value = vector::FromElementsOp::create(b, type, words.slice(first, kTiles));
      LLVM::StoreOp::create(b, value, pointerTo(b, op, adaptor, places.rowOf(half), column), 16);
    }
  }

  /// Columns come in pairs where their number is even.
  static void storePairs(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                         const ElementPlaces &places, int64_t half) {
    int64_t columns = op.getDest().getType().getShape()[1], together = columns % 2 ? 1 : 2;
    for (int64_t i = half; i < vectorOf(op).getNumElements(); i += 4)
      for (int64_t j = i; j < i + 2; j += together) {
        auto branch = scf::IfOp::create(b, places.columnOf(j) < columns, /*withElseRegion=*/false);
        OpBuilder::InsertionGuard restore(b);
        b.setInsertionPointToStart(branch.thenBlock());
        storeElements(b, op, adaptor, places, j, together);
      }
  }

  static Value pointerTo(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                         Int32 row, Int32 column) {
    pipe::GlobalType dest = op.getDest().getType();
    Value line = stridedPointer(b, op.getLoc(), adaptor.getDest(), row, dest.getRowPitch());
    return stridedPointer(b, op.getLoc(), line, column,
                          dest.getElementType().getIntOrFloatBitWidth() / 8);
  }

  static void storeElements(ImplicitLocOpBuilder &b, pipe::StoreFragmentOp op, OpAdaptor adaptor,
                            const ElementPlaces &places, int64_t first, int64_t count) {
    Type element = op.getDest().getType().getElementType();
    SmallVector<Value> elements;
    for (int64_t i = first; i < first + count; ++i)
      elements.push_back(vector::ExtractOp::create(b, adaptor.getValue(), i));
    Value value =
        count == 1 ? elements.front()
                   : vector::FromElementsOp::create(b, VectorType::get(count, element), elements);
    LLVM::StoreOp::create(b, value,
                          pointerTo(b, op, adaptor, places.rowOf(first), places.columnOf(first)),
                          unsigned(element.getIntOrFloatBitWidth() / 8 * count));
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

void fp4::findContinuedProducts(gpu::GPUFuncOp kernel, KernelState &state) {
  kernel.walk([&](pipe::MmaConvertedOp op) {
    if (llvm::any_of(op.getB().getUsers(), [&](Operation *user) {
          return isa<pipe::MmaConvertedOp>(user) && user->getBlock() == op->getBlock() &&
                 op->isBeforeInBlock(user);
        }))
      state.continuedProducts.insert(op);
  });
}

void fp4::populateFragmentPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerConvertTile, LowerFragment, LowerMmaConverted, LowerReadFragment,
               LowerFragmentFactors, LowerStoreFragment>(converter, patterns.getContext(), state);
}
