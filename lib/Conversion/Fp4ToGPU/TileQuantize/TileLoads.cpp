//===- TileLoads.cpp - A tile from global memory -----------------------------===//
#include "TileQuantize/TileQuantize.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

/// The widest load, in bytes.
static constexpr int64_t kAccessBytes = 32;

void fp4::emitWhere(ImplicitLocOpBuilder &b, Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
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

Tile::Tile(KernelBuilder &kernel, const TilePlan &plan, const InputRows &input, Extent rows,
           Extent columns, Int32 firstRow, Int32 firstColumn)
    : b(kernel.body()), plan(plan), input(input), rows(rows), columns(columns),
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

Value Tile::rowAddress(Int32 row) {
  Int32 inMatrix = tileRow + row;
  if (!rows.isMultipleOf(TilePlan::rows))
    inMatrix = minimum(inMatrix, rows.in(b)-1);
  return input.at(b, inMatrix);
}

/// A piece that lies in the matrix or outside of it, where the first of its row is loaded instead.
SmallVector<Value> Tile::loadWhole(Int32 row, Int32 column) {
  if (!columns.isMultipleOf(TilePlan::rows)) // tiles may cover whole tiles of scales
    column = select(column < columns.in(b), column, Int32(b, 0));
  SmallVector<Value> words;
  appendWords(b, address(b, rowAddress(row), column, plan.elementBytes),
              plan.blockSize * plan.elementBytes / 4, input.widestAccess(kAccessBytes), words);
  return words;
}

/// One i32 of `bytes` bytes of zero-extended memory, or zero.
static Value loadUnit(ImplicitLocOpBuilder &b, Value exists, Value pointer, int64_t bytes) {
  auto branch = scf::IfOp::create(b, b.getI32Type(), exists, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value unit = load(b, b.getIntegerType(8 * bytes), pointer, bytes);
  if (bytes < 4)
    unit = arith::ExtUIOp::create(b, b.getI32Type(), unit);
  scf::YieldOp::create(b, unit);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, constI32(b, 0));
  return branch.getResult(0);
}

/// A piece that the last of static columns may cut: in units of at most a word, so small that each
/// is inside or outside.
SmallVector<Value> Tile::loadRagged(Int32 row, Int32 column) {
  int64_t unit = std::gcd(columns.size * plan.elementBytes, int64_t(4));
  Value pointer = address(b, rowAddress(row), column, plan.elementBytes);
  SmallVector<Value> words;
  for (int64_t offset = 0; offset < plan.blockSize * plan.elementBytes; offset += unit) {
    Int32 element = column + offset / plan.elementBytes;
    Value loaded = loadUnit(b, element < columns.in(b), advance(b, pointer, offset), unit);
    if (offset % 4 == 0)
      words.push_back(loaded);
    else
      words.back() = arith::OrIOp::create(
          b, words.back(), arith::ShLIOp::create(b, loaded, constI32(b, 8 * (offset % 4))));
  }
  return words;
}

Tile::Piece Tile::load(int64_t pass) {
  Piece piece{Int32(b, 0), Int32(b, 0), {}};
  place(pass, piece.row, piece.block);
  Int32 column = tileColumn + piece.block * plan.blockSize;
  piece.words = columns.isMultipleOf(plan.blockSize) ? loadWhole(piece.row, column)
                                                     : loadRagged(piece.row, column);
  return piece;
}

Value Tile::hasRow(const Piece &piece) {
  if (rows.isMultipleOf(TilePlan::rows))
    return {};
  return tileRow + piece.row < rows.in(b);
}
