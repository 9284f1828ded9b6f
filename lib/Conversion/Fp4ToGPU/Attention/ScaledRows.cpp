//===- ScaledRows.cpp - Queries or keys whose blocks mma.sync scales ------===//
#include "Attention/ScaledRows.h"

#include "Attention/CacheRows.h"

#include "fp4/ISA/ScaleLayout.h"

using namespace mlir;
using namespace fp4;

ScaledRows::ScaledRows(KernelBuilder &kernel, Value codes, Value scales, int64_t tokens)
    : b(kernel.body()), codes(kernel.input(codes)), scales(kernel.input(scales)),
      element(getElementTypeOrSelf(codes.getType())),
      rowTiles(int64_t(llvm::divideCeil(uint64_t(tokens), hw::scaleBlockRows))) {
  int64_t elements = cast<RankedTensorType>(codes.getType()).getShape().back();
  rowBytes = elements * element.getIntOrFloatBitWidth() / 8;
  int64_t ofRow = cast<RankedTensorType>(scales.getType()).getShape().back();
  tiles = int64_t(llvm::divideCeil(uint64_t(ofRow), hw::scaleBlockColumns));
}

/// A block of MXFP8 is all of an instruction, whose elements may have any order: that of memory.
ScaledRows::Values ScaledRows::load(Int32 row, Int32 lane) {
  Value ofRow = address(b, codes, row, rowBytes);
  constexpr int64_t wordBytes = 4;
  Values words;
  for (int64_t at = 0; at < rowBytes; at += kStepBytes)
    if (isPacked()) {
      Value first = advance(b, address(b, ofRow, lane, wordBytes), at);
      for (int64_t half : {0, 1})
        llvm::append_range(words,
                           loadWords(b, advance(b, first, half * kStepBytes / 2), wordBytes));
    } else {
      Value first = advance(b, address(b, ofRow, lane, 2 * wordBytes), at);
      llvm::append_range(words, loadWords(b, first, 2 * wordBytes));
    }
  return words;
}

ScaledRows::Values ScaledRows::loadScales(Int32 matrix, Int32 token) {
  Values words;
  Int32 rowTile = matrix * rowTiles + token / int64_t(hw::scaleBlockRows);
  for (int64_t i = 0; i < tiles; ++i) {
    Int32 tile = hw::scaleBlockIndex(rowTile, Int32(b, i), tiles);
    Value first = address(b, scales, tile, int64_t(hw::scaleBlockBytes));
    words.push_back(
        fp4::load(b, b.getI32Type(), address(b, first, hw::scaleWordInBlock(token), 1), 4));
  }
  return words;
}
