//===- TileLoads.cpp - A tile from global memory -----------------------------===//
#include "TileQuantize/TileQuantize.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

/// The widest load, in bytes.
static constexpr int64_t kAccessBytes = 32;

void fp4::emitWhere(ImplicitLocOpBuilder &b, Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  emitWhen(b, condition, body);
}

//===----------------------------------------------------------------------===//
// RowGroups
//===----------------------------------------------------------------------===//

RowGroups::RowGroups(ArrayRef<int64_t> rows, int64_t columns, int64_t blockSize) {
  int64_t firstRow = 0, firstTile = 0;
  for (auto [index, count] : llvm::enumerate(rows)) {
    if (count == 0)
      continue;
    ranges.push_back(
        {static_cast<int64_t>(index), firstRow, firstRow + count, numBands, firstTile});
    firstRow += count;
    numBands += llvm::divideCeil(count, TilePlan::rows);
    firstTile +=
        hw::tiled128x4Bytes(columns, llvm::divideCeil(count, blockSize)) / hw::scaleBlockBytes;
    rowDivisor = std::gcd(rowDivisor, count);
  }
}

RowGroups::Group RowGroups::find(Int32 band) const {
  ImplicitLocOpBuilder &b = band.builder();
  auto group = [&](const Range &range) -> Group {
    return {Int32(b, range.index), Int32(b, range.firstRow), Int32(b, range.endRow),
            Int32(b, range.firstBand), Int32(b, range.firstTile)};
  };
  Group found = group(ranges.front());
  for (const Range &range : llvm::drop_begin(ranges)) {
    Value isBefore = band < range.firstBand;
    Group next = group(range);
    for (Int32 Group::*field :
         {&Group::index, &Group::firstRow, &Group::endRow, &Group::firstBand, &Group::firstTile})
      found.*field = select(isBefore, found.*field, next.*field);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Tile
//===----------------------------------------------------------------------===//

Tile::Tile(KernelBuilder &kernel, const TilePlan &plan, ElementSource &source, Extent rows,
           Extent columns, Int32 firstRow, Int32 firstColumn)
    : b(kernel.body()), plan(plan), source(source), rows(rows), columns(columns),
      thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type())), tileRow(firstRow),
      tileColumn(firstColumn) {}

/// Threads take pieces row by row. With square blocks a warp has 16 whole rows of the tile, in each
/// pass some that follow each other: a thread has rows of one block.
void Tile::place(int64_t pass, Int32 &row, Int32 &block) {
  int64_t pieces = plan.piecesPerRow();
  block = thread % pieces;
  if (!plan.squareBlocks) {
    row = thread / pieces + pass * (kTileQuantizeThreads / pieces);
    return;
  }
  Int32 warp = thread / TilePlan::warp, lane = thread % TilePlan::warp;
  row = warp * TilePlan::square + lane / pieces + pass * plan.rowsPerPass();
}

/// `count` i32 words from `pointer`, in loads of at most `accessBytes`.
static void appendWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count, int64_t accessBytes,
                        SmallVectorImpl<Value> &words) {
  int64_t perLoad = std::min(count, accessBytes / 4);
  auto type = VectorType::get(perLoad, b.getI32Type());
  for (int64_t first = 0; first < count; first += perLoad) {
    Value data = load(b, type, advance(b, pointer, first * 4), perLoad * 4);
    for (int64_t lane = 0; lane < perLoad; ++lane)
      words.push_back(vector::ExtractOp::create(b, data, lane));
  }
}

/// `row` is one of the matrix.
Value Tile::elementAddress(const ElementSource::Input &input, Int32 row, Int32 column) {
  return address(b, input.hasRows ? input.rows.at(b, row) : input.rows.base, column,
                 input.elementBytes());
}

/// A piece that lies in the matrix or outside of it, where the first of its row is loaded instead.
SmallVector<Value> Tile::loadWhole(const ElementSource::Input &input, Int32 row, Int32 column) {
  if (!columns.isMultipleOf(TilePlan::rows)) // tiles may cover whole tiles of scales
    column = select(column < columns.in(b), column, Int32(b, 0));
  SmallVector<Value> words;
  appendWords(b, elementAddress(input, row, column), plan.blockSize * input.elementBytes() / 4,
              input.rows.widestAccess(kAccessBytes), words);
  return words;
}

/// One i32 of `bytes` bytes of zero-extended memory, or zero.
static Value loadUnit(ImplicitLocOpBuilder &b, Value exists, Value pointer, int64_t bytes) {
  auto loaded = [&]() -> Value {
    Value unit = load(b, b.getIntegerType(8 * bytes), pointer, bytes);
    return bytes < 4 ? arith::ExtUIOp::create(b, b.getI32Type(), unit).getResult() : unit;
  };
  return chooseValue(b, b.getI32Type(), exists, loaded, [&] { return constI32(b, 0); });
}

/// A piece that the last of static columns may cut: in units of at most a word, so small that each
/// is inside or outside.
SmallVector<Value> Tile::loadRagged(const ElementSource::Input &input, Int32 row, Int32 column) {
  int64_t bytes = input.elementBytes(), unit = std::gcd(columns.size * bytes, int64_t(4));
  Value pointer = elementAddress(input, row, column);
  SmallVector<Value> words;
  for (int64_t offset = 0; offset < plan.blockSize * bytes; offset += unit) {
    Int32 element = column + offset / bytes;
    Value loaded = loadUnit(b, element < columns.in(b), advance(b, pointer, offset), unit);
    if (offset % 4 == 0)
      words.push_back(loaded);
    else
      words.back() = arith::OrIOp::create(
          b, words.back(), arith::ShLIOp::create(b, loaded, constI32(b, 8 * (offset % 4))));
  }
  return words;
}

/// Makes computed elements behind the last column zero, as those are that are loaded.
void Tile::clearBehindRow(MutableArrayRef<Value> words, Int32 column) {
  int64_t perWord = 4 / plan.elementBytes;
  for (auto [i, word] : llvm::enumerate(words)) {
    Int32 first = column + static_cast<int64_t>(i) * perWord;
    Value zero = constI32(b, 0);
    if (perWord == 2 && columns.size % 2) {
      Value low = arith::AndIOp::create(b, word, constI32(b, 0xFFFF));
      word = arith::SelectOp::create(b, first + 1 < columns.in(b), word, low);
    }
    word = arith::SelectOp::create(b, first < columns.in(b), word, zero);
  }
}

Tile::Piece Tile::load(int64_t pass) {
  Piece piece{Int32(b, 0), Int32(b, 0), {}};
  place(pass, piece.row, piece.block);
  Int32 column = tileColumn + piece.block * plan.blockSize;
  Int32 row = tileRow + piece.row;
  if (!rows.isMultipleOf(TilePlan::rows))
    row = minimum(row, rows.in(b) - 1);
  bool isWhole = columns.isMultipleOf(plan.blockSize);
  piece.words = source.words(row, plan.blockSize, [&](const ElementSource::Input &input) {
    return isWhole ? loadWhole(input, row, column) : loadRagged(input, row, column);
  });
  if (source.isComputed() && !isWhole)
    clearBehindRow(piece.words, column);
  return piece;
}

Value Tile::hasRow(const Piece &piece) {
  if (rows.isMultipleOf(TilePlan::rows))
    return {};
  return tileRow + piece.row < rows.in(b);
}
