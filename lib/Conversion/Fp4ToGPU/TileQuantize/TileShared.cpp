//===- TileShared.cpp - A tile in shared memory ------------------------------===//
#include "E2M1Steps.h"
#include "TileQuantize/TileQuantize.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static constexpr int64_t kChunkBytes = 16;

ElementTile::ElementTile(KernelBuilder &kernel, Tile &tile, bool transforms)
    : b(kernel.body()), tile(tile), transforms(transforms),
      shared(kernel.sharedWords(TilePlan::rows * TilePlan::rowWords, "elements")) {}

/// Chunk `chunk` of row `row`, counted in 16 bytes, is stored as chunk number
///
///   chunk ^ (chunk / 8) ^ (row / 16 % 8) ^ 2 * (row % 2)
///
/// of its row, which changes its low three bits, the banks, only. A warp that reads a column has
/// one chunk in rows 16 apart: row / 16 spreads them over all banks. Eight lanes that write have
/// 16-byte chunks two apart in one row (chunk / 8), or four apart in two rows (row % 2). A warp
/// that transforms reads and writes a chunk of 8 rows that follow each other: row % 8 is in the
/// place of 2 * (row % 2).
Value ElementTile::chunkAddress(Int32 row, Int32 chunk) {
  Int32 inBand = transforms ? row % 8 : row % 2 * 2;
  Int32 stored = chunk ^ (chunk / 8) ^ (row / 16 % 8) ^ inBand;
  return address(b, address(b, shared, row, TilePlan::rowBytes), stored, kChunkBytes);
}

void ElementTile::storeChunks(const Tile::Piece &piece, ArrayRef<Value> words) {
  constexpr int64_t perChunk = kChunkBytes / 4;
  auto type = VectorType::get(perChunk, b.getI32Type());
  int64_t chunks = words.size() / perChunk;
  for (int64_t i = 0; i < chunks; ++i) {
    Value data = vector::FromElementsOp::create(b, type, words.slice(i * perChunk, perChunk));
    store(b, data, chunkAddress(piece.row, piece.block * chunks + i), kChunkBytes);
  }
}

void ElementTile::share(const Tile::Piece &piece) {
  storeChunks(piece, piece.words);
  Value hasRow = tile.hasRow(piece);
  if (!hasRow)
    return;
  Value isBeyond =
      arith::XOrIOp::create(b, hasRow, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  emitWhere(b, isBeyond,
            [&] { storeChunks(piece, SmallVector<Value>(piece.words.size(), constI32(b, 0))); });
}

SmallVector<Value> ElementTile::column(Int32 word, Int32 first, int64_t count) {
  constexpr int64_t perChunk = kChunkBytes / 4;
  // Within 16 rows the place in the row repeats every two.
  std::array<Value, 2> bases;
  SmallVector<Value> words;
  for (int64_t row = 0; row < count; ++row) {
    if (row % 16 < 2)
      bases[row % 2] = address(b, chunkAddress(first + row, word / perChunk), word % perChunk, 4);
    Value pointer = advance(b, bases[row % 2], row % 16 / 2 * 2 * TilePlan::rowBytes);
    words.push_back(LLVM::LoadOp::create(b, b.getI32Type(), pointer, 4));
  }
  return words;
}

SmallVector<Value> ElementTile::transformedBlock(Int32 column, Int32 block) {
  constexpr int64_t size = TilePlan::square, chunks = size * 2 / kChunkBytes;
  Int32 row = block * size + column % size;
  auto type = VectorType::get(kChunkBytes / 4, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Value pointer = chunkAddress(row, column / size * chunks + chunk);
    llvm::append_range(words, scalarsOf(b, LLVM::LoadOp::create(b, type, pointer, kChunkBytes)));
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Words between bands of 16 rows: the lanes of a warp read from eight bands, four words each. The
/// lanes write whole rows that follow each other.
static constexpr int64_t kBandPadding = 4;

static int64_t wordsPerRow(const TilePlan &plan) { return plan.columns() / CodeTile::width; }

static int64_t wordsPerBand(const TilePlan &plan) {
  return TilePlan::square * wordsPerRow(plan) + kBandPadding;
}

CodeTile::CodeTile(KernelBuilder &kernel, Scalars &scalars, const TilePlan &plan)
    : b(kernel.body()), s(scalars), plan(plan),
      shared(kernel.sharedWords(TilePlan::rows / TilePlan::square * wordsPerBand(plan), "codes")) {}

Value CodeTile::wordAddress(Int32 row, Int32 word) {
  Int32 inBand = row % TilePlan::square * wordsPerRow(plan) + word;
  return address(b, shared, row / TilePlan::square * wordsPerBand(plan) + inBand, 4);
}

void CodeTile::share(Int32 row, Int32 block, ArrayRef<Value> codes) {
  auto type = VectorType::get(codes.size(), b.getI32Type());
  store(b, vector::FromElementsOp::create(b, type, codes), wordAddress(row, block * codes.size()),
        4 * codes.size());
}

/// An 8 x 8 matrix of nibbles, a row in each word: exchange halves with the word 4 away, bytes with
/// the word 2 away, nibbles with the neighbour.
void CodeTile::transpose(std::array<Value, width> &words) {
  for (int64_t distance : {4, 2, 1})
    for (int64_t i = 0; i < width; ++i) {
      if (i & distance)
        continue;
      Value &x = words[i], &y = words[i + distance];
      Value low, high;
      if (distance == 1) {
        low = s.bitSelect(e2m1::kHighNibbles, arith::ShLIOp::create(b, y, constI32(b, 4)), x);
        high = s.bitSelect(e2m1::kHighNibbles, y, arith::ShRUIOp::create(b, x, constI32(b, 4)));
      } else {
        low = s.permute(x, y, distance == 4 ? 0x5410 : 0x6240);
        high = s.permute(x, y, distance == 4 ? 0x7632 : 0x7351);
      }
      x = low;
      y = high;
    }
}

std::array<std::array<Value, 2>, CodeTile::width> CodeTile::columns(Int32 group, Int32 first) {
  std::array<std::array<Value, 2>, width> result;
  for (int64_t half = 0; half < 2; ++half) {
    std::array<Value, width> words;
    for (int64_t row = 0; row < width; ++row)
      words[row] = LLVM::LoadOp::create(b, b.getI32Type(),
                                        wordAddress(first + (half * width + row), group), 4);
    transpose(words);
    for (int64_t column = 0; column < width; ++column)
      result[column][half] = words[column];
  }
  return result;
}
