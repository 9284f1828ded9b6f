//===- PreDequantize.cpp - A pre-dequantized operand -----------------------===//
//
// A GEMM of many rows loads an operand for every tile of the other one. Conversion in the GEMM
// would convert each element as often. The kernel here converts each element once, at the speed of
// a copy: the GEMM then loads elements that it can multiply.
//
// The elements of a k tile have the order of pipe.dequantize (FragmentLayout.h), and are the same
// numbers, so that a GEMM has the same bits with and without this kernel. The four threads of a k
// tile load a quarter of it each, and exchange words. Then each has eight elements of every
// quarter, which become 64 bytes side by side. The threads exchange these bytes in pieces of 16
// bytes, so that each of their stores writes 64 bytes that follow one another.
//
// Beside prepacked weights, elements keep their order, and become bf16 as fp4.dequantize gives
// them.
//
//===----------------------------------------------------------------------===//

#include "ItemLaunch.h"
#include "OperandKernels.h"
#include "WorkTables.h"

#include "HalfOperands.h"
#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

/// The buffer of the results.
static pipe::GlobalType convertedA(const Gemm &gemm) {
  return pipe::GlobalType::get({gemm.problem.rows, gemm.problem.depth}, gemm.floatsOfLhs());
}

namespace {
class ConvertKernel {
public:
  ConvertKernel(ItemKernel &kernel, const Gemm &gemm, const hw::TargetModel &target)
      : kernel(kernel), gemm(gemm), b(kernel.b),
        halves(b, target, gemm.problem.scaleType, {}, gemm.dataTypeA()), source(kernel.pointer(0)),
        scales(kernel.pointer(1)), dest(kernel.pointer(2)) {
    Int32 rows = kernel.size(gemm.m()), depth = kernel.size(gemm.problem.depth);
    perRow = depth / kElements;
    columns = depth / (gemm.problem.block * int64_t(hw::scaleBlockColumns));
    build(rows);
  }

  /// Elements of an item of a thread: eight of each quarter of a k tile.
  static constexpr int64_t kQuarters = 4, kElements = kQuarters * hw::codesPerWord;

private:
  static constexpr int64_t kItemsOfTile = hw::convertedTileK / kElements;

  /// An item: its row, its k tile, and its place in each quarter.
  struct Item {
    Int32 number, row, tile, place;
  };

  void build(Int32 rows);
  void convert(const Item &item, Value exists);
  PartsOfFour loadCodes(const Item &item);
  Value loadScales(const Item &item);

  ItemKernel &kernel;
  const Gemm &gemm;
  ImplicitLocOpBuilder &b;
  HalfOperands halves;
  Value source, scales, dest;
  Value perRow, columns; ///< items of a row, and its scale blocks
};
} // namespace

void ConvertKernel::build(Int32 rows) {
  Int32 block = kernel.cta(), thread = kernel.thread();
  halves.keepTables(thread);
  Int32 itemsOfRow(b, perRow);
  Int32 number = block * kItemThreads + thread, ofWarp = block * kItemThreads + thread / 32 * 32;
  // Threads exchange what they have, so all of a warp go on, those without an item with the last
  // row.
  kernel.when(ofWarp / itemsOfRow < rows, [&] {
    Int32 row = number / itemsOfRow, inRow = number % itemsOfRow;
    convert({number, minimum(row, rows - 1), inRow / kItemsOfTile, inRow % kItemsOfTile},
            row < rows);
  });
}

/// The words of a quarter, by the thread that needs them.
PartsOfFour ConvertKernel::loadCodes(const Item &item) {
  int64_t words = isByteElementType(gemm.dataTypeA()) ? 2 : 1; // of eight codes
  Int32 index = item.row * Int32(b, perRow) + item.tile * kItemsOfTile + item.place;
  Value first = address(b, source, index, kItemsOfTile * words * 4);
  PartsOfFour parts;
  auto type = VectorType::get(4, b.getI32Type());
  for (int64_t i = 0; i < kItemsOfTile * words; i += 4) {
    Value four = load(b, type, advance(b, first, 4 * i), 16);
    for (int64_t j = i; j < i + 4; ++j)
      parts[j / words].push_back(vector::ExtractOp::create(b, four, j - i));
  }
  return parts;
}

/// A word with the scales of the four quarters.
Value ConvertKernel::loadScales(const Item &item) {
  int64_t blocksOfTile = hw::convertedTileK / gemm.problem.block / int64_t(hw::scaleBlockColumns);
  auto word = [&](int64_t block) -> Value {
    Int32 index = hw::scaleBlockIndex(item.row / int64_t(hw::scaleBlockRows),
                                      item.tile * blocksOfTile + block, Int32(b, columns));
    Value tile = address(b, scales, index, int64_t(hw::scaleBlockBytes));
    return load(b, b.getI32Type(), address(b, tile, hw::scaleWordInBlock(item.row), 1), 4);
  };
  if (blocksOfTile == 1)
    return word(0);
  // Two scales for each quarter, of its first elements and of the others.
  Int32 selector = item.place / 2 * 0x1111 + 0x6420;
  return NVVM::PermuteOp::create(b, b.getI32Type(), word(0), word(1), selector,
                                 NVVM::PermuteMode::DEFAULT);
}

void ConvertKernel::convert(const Item &item, Value exists) {
  PartsOfFour words = exchangeOfFour(b, loadCodes(item), item.place), pieces;
  SmallVector<Value> factors = halves.factors(loadScales(item), kQuarters);
  for (size_t quarter = 0; quarter < kQuarters; ++quarter)
    for (auto [piece, pair] :
         llvm::zip_equal(pieces, halves.convert(words[quarter], factors[quarter])))
      piece.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
  pieces = exchangeOfFour(b, std::move(pieces), item.place);
  kernel.when(exists, [&] {
    constexpr int64_t bytes = 2 * kElements; // bytes of an item
    Value first = address(b, dest, item.number - item.place, bytes);
    first = address(b, first, item.place, bytes / kItemsOfTile);
    for (auto [number, piece] : llvm::enumerate(pieces)) {
      auto type = VectorType::get(kQuarters, b.getI32Type());
      store(b, vector::FromElementsOp::create(b, type, piece),
            advance(b, first, int64_t(number) * bytes), 16);
    }
  });
}

//===----------------------------------------------------------------------===//
// In the order of memory
//===----------------------------------------------------------------------===//

namespace {
/// Beside prepacked weights, whose elements follow one another. A thread converts a word of codes.
/// With groups, whose scales have whole scale tiles each, the table of the GEMM says where the
/// scales of its tiles are.
///
/// A thread converts several words, kItemThreads apart, if the GPU has fewer threads at a time than
/// there are words, and loads all of them first: with one, the GPU waits for loads most of the
/// time.
class OrderedKernel {
public:
  OrderedKernel(ItemKernel &kernel, const Gemm &gemm, const hw::TargetModel &target)
      : kernel(kernel), gemm(gemm), b(kernel.b),
        halves(b, target, gemm.problem.scaleType, gemm.floatA()), codes(kernel.pointer(0)),
        scales(kernel.pointer(1)), elements(kernel.pointer(gemm.problem.groups ? 3 : 2)) {
    Int32 rows = kernel.size(gemm.m());
    if (gemm.problem.dynamicDepth())
      depth = kernel.size(gemm.problem.depth);
    Int32 perRow(b, itemsOfRow());
    if (int64_t count = wordsOfThread(gemm, target); count > 1)
      convertWords(rows * perRow, perRow, count);
    else
      convertWord(rows, perRow);
  }

  static int64_t wordsOfThread(const Gemm &gemm, const hw::TargetModel &target);

private:
  /// A word of codes: its number, its row and the row of its scales, and its place in the row.
  struct Word {
    Int32 number, row, scaleRow, place;
  };

  /// Elements of K over `unit`.
  Value depthIn(int64_t unit) {
    if (depth)
      return (Int32(b, depth) + (unit - 1)) / unit;
    return Int32(b, int64_t(llvm::divideCeil(gemm.problem.depth, unit)));
  }
  Value itemsOfRow() { return depthIn(hw::codesPerWord); }
  void convertWords(Int32 words, Int32 perRow, int64_t count);
  void convertWord(Int32 rows, Int32 perRow);
  void convertOfGroup(Int32 line, Int32 place, Int32 rows, Int32 perRow);
  /// The word and, in the lowest byte of a word, its scale.
  std::pair<Value, Value> loadWord(const Word &word);
  void convert(const Word &word) { store(word, loadWord(word)); }
  void store(const Word &word, std::pair<Value, Value> loaded);
  Value wordOf(const Word &word);
  Value scaleOf(Int32 row, Int32 block);

  ItemKernel &kernel;
  const Gemm &gemm;
  ImplicitLocOpBuilder &b;
  HalfOperands halves;
  Value depth; ///< K, null where it is static
  Value codes, scales, elements;
};
} // namespace

/// Returns one if the GPU has as many threads at a time, or if the number of words is unknown.
int64_t OrderedKernel::wordsOfThread(const Gemm &gemm, const hw::TargetModel &target) {
  constexpr int64_t many = 4, ofWord = hw::codesPerWord;
  const auto &problem = gemm.problem;
  if (problem.groups || problem.dynamicRows() || problem.dynamicDepth() ||
      problem.depth % (many * ofWord))
    return 1;
  int64_t threads = int64_t(target.sms) * int64_t(target.limits.maxThreadsPerSM);
  return gemm.m() * (problem.depth / ofWord) > threads ? many : 1;
}

/// Converts `count` words. A thread without a word loads the last one in its place.
void OrderedKernel::convertWords(Int32 words, Int32 perRow, int64_t count) {
  Int32 first = kernel.cta() * (kItemThreads * count) + kernel.thread();
  SmallVector<std::pair<Word, std::pair<Value, Value>>> loaded;
  for (int64_t i = 0; i < count; ++i) {
    Int32 number = minimum(first + i * kItemThreads, words - 1), row = number / perRow;
    Word word = {number, row, row, number % perRow};
    loaded.push_back({word, loadWord(word)});
  }
  for (auto [i, one] : llvm::enumerate(loaded))
    kernel.when(first + int64_t(i) * kItemThreads < words, [&] { store(one.first, one.second); });
}

void OrderedKernel::convertWord(Int32 rows, Int32 perRow) {
  Int32 item = kernel.item(), line = item / perRow, place = item % perRow;
  if (gemm.problem.groups)
    convertOfGroup(line, place, rows, perRow);
  else
    kernel.when(line < rows, [&] { convert({item, line, line, place}); });
}

/// Converts a word of row `line` of the tiles of the table, whose tiles have as many rows as those
/// of the GEMM (GroupTiles.h).
void OrderedKernel::convertOfGroup(Int32 line, Int32 place, Int32 rows, Int32 perRow) {
  constexpr int64_t placeBytes = 16;
  int64_t ofTile = gemm.workRows();
  Value table = kernel.pointer(2);
  Int32 last = gemm.problem.dynamicRows() ? rows / ofTile + gemm.problem.morePlaces()
                                          : Int32(b, gemm.work.tablePlaces);
  Int32 tiles(b, load(b, b.getI32Type(), address(b, table, last, placeBytes), 4));
  Int32 tile = line / ofTile, inTile = line % ofTile;
  kernel.when(tile < tiles, [&] {
    Value words = load(b, VectorType::get(4, b.getI32Type()), address(b, table, tile, placeBytes),
                       placeBytes);
    auto word = [&](int64_t i) { return Int32(b, vector::ExtractOp::create(b, words, i)); };
    Int32 row = word(0) + inTile;
    kernel.when(row < word(1),
                [&] { convert({row * perRow + place, row, word(3) + inTile, place}); });
  });
}

/// A word of codes, whose rows may have bytes behind K. A dynamic K has rows of whole 16 bytes.
Value OrderedKernel::wordOf(const Word &word) {
  int64_t pitch = depth ? 0 : hw::paddedRowBytes(gemm.problem.depth);
  if (depth || pitch == hw::denseRowBytes(gemm.problem.depth))
    return address(b, codes, word.number, 4);
  return address(b, address(b, codes, word.row, pitch), word.place, 4);
}

/// The scale in the lowest byte of a word.
Value OrderedKernel::scaleOf(Int32 row, Int32 block) {
  const auto ofTile = int64_t(hw::scaleBlockColumns);
  Int32 columns(b, depthIn(gemm.problem.block * ofTile));
  Int32 index = hw::scaleBlockIndex(row / int64_t(hw::scaleBlockRows), block / ofTile, columns);
  Value tile = address(b, scales, index, int64_t(hw::scaleBlockBytes));
  Value word = load(b, b.getI32Type(), address(b, tile, hw::scaleWordInBlock(row), 1), 4);
  return arith::ShRUIOp::create(b, word, block % ofTile * 8);
}

std::pair<Value, Value> OrderedKernel::loadWord(const Word &word) {
  Value eight = load(b, b.getI32Type(), wordOf(word), 4);
  int64_t wordsOfBlock = gemm.problem.block / int64_t(hw::codesPerWord);
  return {eight, scaleOf(word.scaleRow, word.place / wordsOfBlock)};
}

/// A power of two is all that HalfOperands leaves to restore of an element: the element is bf16 all
/// the same.
void OrderedKernel::store(const Word &word, std::pair<Value, Value> loaded) {
  auto [eight, scale] = loaded;
  Value factor = halves.factors(scale, 1).front();
  auto format =
      gemm.problem.block == 16 ? numerics::BlockFormat::NVFP4 : numerics::BlockFormat::MXFP4;
  const int exponent = numerics::convertedExponent(format);
  auto type = VectorType::get(2, gemm.floatA());
  Attribute power = b.getFloatAttr(gemm.floatA(), std::ldexp(1.0, -exponent));
  Value restored = arith::ConstantOp::create(b, DenseElementsAttr::get(type, power));
  SmallVector<Value> words;
  for (Value pair : halves.convertInOrder(eight, factor, factor)) {
    pair = arith::MulFOp::create(b, pair, restored);
    words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
  }
  auto four = VectorType::get(4, b.getI32Type());
  fp4::store(b, vector::FromElementsOp::create(b, four, words),
             address(b, elements, word.number, 16), 16);
}

static gpu::GPUFuncOp buildKernel(RewriterBase &rewriter, BlockScaledMatmulOp op, const Gemm &gemm,
                                  const hw::TargetModel &target) {
  SmallVector<Type> types = {
      pipe::GlobalType::get({gemm.m(), gemm.problem.depth}, gemm.dataTypeA()), gemm.scalesA()};
  if (gemm.problem.groups)
    types.push_back(gemm.table());
  types.push_back(convertedA(gemm));
  types.append(gemm.problem.dynamicRows() + gemm.problem.dynamicDepth(), rewriter.getI32Type());
  ItemKernel kernel(rewriter, op, "convert", types);
  if (gemm.prepackedB())
    OrderedKernel(kernel, gemm, target);
  else
    ConvertKernel(kernel, gemm, target);
  return kernel.finish();
}

/// Rows that threads convert: of groups, all rows of the tiles of the table.
static Value convertedRows(RewriterBase &rewriter, Location loc, const Gemm &gemm, Value rows) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  if (!gemm.problem.groups)
    return gemm.problem.dynamicRows() ? rows : index(gemm.m());
  Value ofTile = index(gemm.workRows());
  if (!gemm.problem.dynamicRows())
    return index(gemm.work.tablePlaces * gemm.workRows());
  Value whole = arith::DivUIOp::create(rewriter, loc, rows, ofTile);
  Value places = arith::AddIOp::create(rewriter, loc, whole, index(gemm.problem.morePlaces()));
  return arith::MulIOp::create(rewriter, loc, places, ofTile);
}

/// Clears the buffer of A before its rows are written: a tile that ends beyond its group loads rows
/// of no group too, which no item converts.
static void clearRows(OpBuilder &b, Location loc, Value floats) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(floats);
  Type element = cast<MemRefType>(floats.getType()).getElementType();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  gpu::MemsetOp::create(b, loc, TypeRange(), ValueRange(), floats, zero);
}

Value fp4::preDequantize(RewriterBase &rewriter, BlockScaledMatmulOp op, const UnconvertedLhs &lhs,
                         const Gemm &gemm, const hw::TargetModel &target,
                         std::optional<LaunchDependents> dependents) {
  Location loc = op.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  gpu::GPUFuncOp kernel = buildKernel(rewriter, op, gemm, target);
  int64_t ofItem = gemm.prepackedB()
                       ? int64_t(hw::codesPerWord) * OrderedKernel::wordsOfThread(gemm, target)
                       : int64_t(ConvertKernel::kElements);
  Value perRow = gemm.problem.dynamicDepth()
                     ? arith::DivUIOp::create(rewriter, loc, lhs.depth, index(ofItem)).getResult()
                     : index(gemm.problem.depth / ofItem);
  SmallVector<Value> inputs = {lhs.codes, lhs.scales};
  if (gemm.problem.groups)
    inputs = {lhs.codes, scalesOfGroups(rewriter, loc, gemm, lhs.scales, gemm.scaleRowsA()),
              lhs.table};
  Value count = convertedRows(rewriter, loc, gemm, lhs.rows);
  Value floats =
      launchItems(rewriter, loc, kernel, inputs, blocksOfRows(rewriter, loc, count, perRow),
                  {gemm.problem.dynamicRows() ? lhs.rows : Value(),
                   gemm.problem.dynamicDepth() ? lhs.depth : Value()},
                  dependents);
  if (op.getOffsets())
    clearRows(rewriter, loc, floats);
  return floats;
}
