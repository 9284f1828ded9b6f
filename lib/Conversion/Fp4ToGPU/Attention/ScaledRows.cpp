//===- ScaledRows.cpp - Rows of codes whose blocks mma.sync scales --------===//
#include "Attention/ScaledRows.h"

#include "Attention/CacheRows.h"

#include "fp4/ISA/ScaleLayout.h"

using namespace mlir;
using namespace fp4;

static constexpr int64_t kWordBytes = 4;

ScaledRows::ScaledRows(KernelBuilder &kernel, Value codes, Value scales, int64_t rows)
    : b(kernel.body()), codes(kernel.input(codes)), scales(kernel.input(scales)),
      element(getElementTypeOrSelf(codes.getType())),
      rowTiles(int64_t(llvm::divideCeil(uint64_t(rows), hw::scaleBlockRows))) {
  int64_t elements = cast<RankedTensorType>(codes.getType()).getShape().back();
  rowBytes = elements * element.getIntOrFloatBitWidth() / 8;
  int64_t ofRow = cast<RankedTensorType>(scales.getType()).getShape().back();
  tiles = int64_t(llvm::divideCeil(uint64_t(ofRow), hw::scaleBlockColumns));
}

/// A block of MXFP8 is all of an instruction, whose elements may have any order: that of memory.
ScaledRows::Values ScaledRows::load(Int32 row, Int32 lane) {
  Value ofRow = address(b, codes, row, rowBytes);
  Values words;
  for (int64_t at = 0; at < rowBytes; at += kStepBytes)
    if (isPacked()) {
      Value first = advance(b, address(b, ofRow, lane, kWordBytes), at);
      for (int64_t half : {0, 1})
        llvm::append_range(words,
                           loadWords(b, advance(b, first, half * kStepBytes / 2), kWordBytes));
    } else {
      Value first = advance(b, address(b, ofRow, lane, 2 * kWordBytes), at);
      llvm::append_range(words, loadWords(b, first, 2 * kWordBytes));
    }
  return words;
}

ScaledRows::Values ScaledRows::loadStep(Int32 row, int64_t behind, Int32 lane, Int32 step) {
  Value ofRow = address(b, codes, row, rowBytes);
  auto words = [&](Int32 byte, int64_t bytes) {
    Int32 existing = rowBytes % kStepBytes ? minimum(byte, Int32(b, rowBytes - bytes)) : byte;
    return loadWords(b, advance(b, address(b, ofRow, existing, 1), behind * rowBytes), bytes);
  };
  Int32 first = step * kStepBytes;
  if (!isPacked())
    return words(first + lane * (2 * kWordBytes), 2 * kWordBytes);
  Values both;
  for (int64_t half : {0, 1})
    llvm::append_range(both, words(first + lane * kWordBytes + half * kStepBytes / 2, kWordBytes));
  return both;
}

/// The four scales of a row in column `column` of the scale tiles.
Value ScaledRows::placeOfScales(Int32 matrix, Int32 row, Int32 column) {
  Int32 tile =
      hw::scaleBlockIndex(matrix * rowTiles + row / int64_t(hw::scaleBlockRows), column, tiles);
  Value first = address(b, scales, tile, int64_t(hw::scaleBlockBytes));
  return address(b, first, hw::scaleWordInBlock(row), 1);
}

ScaledRows::Values ScaledRows::loadScales(Int32 matrix, Int32 row) {
  Values words;
  for (int64_t i = 0; i < tiles; ++i)
    words.push_back(
        fp4::load(b, b.getI32Type(), placeOfScales(matrix, row, Int32(b, i)), kWordBytes));
  return words;
}

Value ScaledRows::loadScalesOfStep(Int32 matrix, Int32 row, Int32 step) {
  Value place = placeOfScales(matrix, row, step / stepsOfWord());
  if (stepsOfWord() == 1)
    return fp4::load(b, b.getI32Type(), place, kWordBytes);
  Value byte = fp4::load(b, b.getI8Type(), address(b, place, step % stepsOfWord(), 1), 1);
  return arith::ExtUIOp::create(b, b.getI32Type(), byte);
}
