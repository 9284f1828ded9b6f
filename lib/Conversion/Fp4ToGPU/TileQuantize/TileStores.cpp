//===- TileStores.cpp - Blocks of one output to memory -----------------------===//
#include "TileQuantize/TileQuantize.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kTileRows = hw::scaleBlockRows, kTileBlocks = hw::scaleBlockColumns;

/// ceil(extent / n).
static Extent quotientUp(ImplicitLocOpBuilder &b, Extent extent, int64_t n) {
  if (!extent.isDynamic())
    return {static_cast<int64_t>(llvm::divideCeil(extent.size, n))};
  return {ShapedType::kDynamic, (extent.in(b) + (n - 1)) / n};
}

static Value both(ImplicitLocOpBuilder &b, Value x, Value y) {
  return x && y ? Value(arith::AndIOp::create(b, x, y)) : x ? x : y;
}

/// `base + index * stride` bytes.
static Value strided(ImplicitLocOpBuilder &b, Value base, Int32 index, Extent stride) {
  if (!stride.isDynamic())
    return address(b, base, index, stride.size);
  Type i64 = b.getI64Type();
  Value offset = arith::MulIOp::create(b, arith::ExtUIOp::create(b, i64, index),
                                       arith::ExtUIOp::create(b, i64, stride.in(b)));
  return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

OutputWriter::OutputWriter(ImplicitLocOpBuilder &b, Value data, Value scales, const Shape &shape)
    : b(b), data(data), scales(scales), shape(shape),
      endBlock(quotientUp(b, shape.columns, shape.blockSize)) {}

/// Null where every block of every tile exists.
Value OutputWriter::exists(Int32 row, Int32 block) {
  Value inRows, inBlocks;
  if (!shape.rows.isMultipleOf(TilePlan::rows))
    inRows = row < shape.rows.in(b);
  if (!shape.columns.isMultipleOf(TilePlan::rows))
    inBlocks = block < endBlock.in(b);
  return both(b, inRows, inBlocks);
}

/// Codes of elements beyond the last column are zero, whatever the arithmetic made of them: the
/// second half of a row's last byte is visible.
static SmallVector<Value> maskResidue(ImplicitLocOpBuilder &b, ArrayRef<Value> codes,
                                      Int32 elements) {
  SmallVector<Value> masked(codes);
  for (auto [i, word] : llvm::enumerate(masked)) {
    Int32 first(b, 8 * i), full(b, 8);
    // Elements of this word, 0 to 8.
    Int32 count = select(elements < first, Int32(b, 0), minimum(elements - first, full));
    Value ones = arith::ShLIOp::create(b, constI32(b, 1), count * 4);
    Value mask = select(count < full, Int32(b, ones) - 1, Int32(b, -1));
    word = arith::AndIOp::create(b, word, mask);
  }
  return masked;
}

/// A block that the last column cuts is written again: the others pay for a test.
void OutputWriter::writeCodes(Int32 row, Int32 block, ArrayRef<Value> codes) {
  auto type = VectorType::get(codes.size(), b.getI32Type());
  Value place = codesAddress(row, block);
  auto storeWords = [&](ArrayRef<Value> words) {
    store(b, vector::FromElementsOp::create(b, type, words), place, shape.blockBytes());
  };
  storeWords(codes);
  if (shape.columns.isMultipleOf(shape.blockSize))
    return;
  Int32 left = shape.columns.in(b)-block * shape.blockSize;
  emitWhere(b, left < shape.blockSize, [&] { storeWords(maskResidue(b, codes, left)); });
}

Value OutputWriter::codesAddress(Int32 row, Int32 block) {
  Extent pitch = shape.bufferColumns; // pitch of codes with a byte each
  if (shape.codeBits == 4 && !pitch.isDynamic())
    pitch.size = hw::paddedRowBytes(pitch.size);
  else if (shape.codeBits == 4)
    pitch.value = hw::paddedRowBytes(pitch.in(b));
  return address(b, strided(b, data, row, pitch), block, shape.blockBytes());
}

void OutputWriter::write(Int32 row, Int32 block, const BlockQuantizer::Block &result) {
  Value valid = exists(row, block);
  emitWhere(b, valid, [&] {
    writeCodes(row, block, result.codes);
    if (shape.tiledScales)
      return;
    Extent perRow = quotientUp(b, shape.bufferColumns, shape.blockSize);
    store(b, result.scale, address(b, strided(b, scales, row, perRow), block, 1), 1);
  });
  if (shape.tiledScales)
    writeTiledScale(row, block, valid, result.scale);
}

void OutputWriter::writeTiledScale(Int32 row, Int32 block, Value valid, Value scale) {
  if (valid)
    scale = arith::SelectOp::create(
        b, valid, scale, arith::ConstantOp::create(b, b.getIntegerAttr(scale.getType(), 0)));
  relativeToOrigin(row, block);
  Int32 inTile = hw::scaleOffsetInBlock(row, block);
  if (shape.stage) {
    Int32 tile = block / kTileBlocks % shape.stagedTiles;
    return store(b, scale, address(b, address(b, shape.stage, tile, kStagePitch), inTile, 1), 1);
  }
  emitInTile(row, block, [&](Value start) { store(b, scale, address(b, start, inTile, 1), 1); });
}

void OutputWriter::flush(Int32 thread, Int32 row, Int32 block) {
  Int32 tile = thread / kStageChunks, offset = thread % kStageChunks * kStageChunkBytes;
  block = block + tile * kTileBlocks;
  relativeToOrigin(row, block);
  emitInTile(row, block, [&](Value start) {
    auto type = VectorType::get(kStageChunkBytes / 4, b.getI32Type());
    Value staged = address(b, address(b, shape.stage, tile, kStagePitch), offset, 1);
    store(b, LLVM::LoadOp::create(b, type, staged, kStageChunkBytes), address(b, start, offset, 1),
          kStageChunkBytes);
  });
}

void OutputWriter::relativeToOrigin(Int32 &row, Int32 &block) {
  if (!shape.tileOrigin)
    return;
  row = row - shape.tileOrigin->row;
  block = block - shape.tileOrigin->block;
}

/// Tiles of the kernel cover whole tiles of scales, but for a last column of them.
void OutputWriter::emitInTile(Int32 row, Int32 block, function_ref<void(Value)> body) {
  Extent tilesPerRow =
      quotientUp(b, shape.tileOrigin ? shape.tileOrigin->blocks : endBlock, kTileBlocks);
  Int32 column = block / kTileBlocks;
  Value inBuffer;
  if (!shape.columns.isMultipleOf(TilePlan::rows))
    inBuffer = column < tilesPerRow.in(b);
  emitWhere(b, inBuffer, [&] {
    Int32 tile = hw::scaleBlockIndex(row / kTileRows, column, tilesPerRow.in(b));
    if (shape.tileOrigin)
      tile = shape.tileOrigin->tile + tile;
    body(address(b, scales, tile, hw::scaleBlockBytes));
  });
}
