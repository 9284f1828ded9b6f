//===- TileLines.h - Places of a tile's data and scales -------------------===//
#pragma once

#include "Common/Fragments.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/Swizzle.h"

namespace fp4 {

/// The addresses of the bytes of a line of a tile. Tiles are aligned, and swizzling combines
/// addresses by exclusive or: byte i of the line is at its first byte's address ^ i.
class TileLine {
public:
  TileLine(mlir::Value tile, pipe::Layout layout, Int32 row)
      : first(Int32(row.builder(), mlir::LLVM::PtrToIntOp::create(
                                       row.builder(), row.builder().getI32Type(), tile)) +
              hw::swizzle(pipe::swizzleMode(layout), row * pipe::swizzleWidth(layout))),
        type(tile.getType()) {}

  mlir::Value at(Int32 byte) const {
    mlir::Value address = first ^ byte;
    return mlir::LLVM::IntToPtrOp::create(first.builder(), type, address);
  }
  mlir::Value at(int64_t byte) const { return at(Int32(first.builder(), byte)); }

private:
  Int32 first;
  mlir::Type type;
};

/// `block`, or the last of the scale tiles that exist. If a scale tile does not exist, neither do
/// its elements, which are zeros: they may take any scales.
inline Int32 existingBlock(mlir::Value blocks, Int32 block) {
  return blocks ? minimum(block, Int32(block.builder(), blocks) - 1) : block;
}

/// The four scales of `row` in column `block` of the scale tiles.
inline mlir::Value loadScaleWord(mlir::ImplicitLocOpBuilder &b, mlir::Value tile,
                                 pipe::SharedType type, Int32 row, Int32 block) {
  int64_t columns = type.getColumns() / pipe::kScaleBlockColumns;
  Int32 index = hw::scaleBlockIndex(row / pipe::kScaleBlockRows, block, columns);
  Int32 offset = index * pipe::kScaleBlockBytes + hw::scaleWordInBlock(row);
  mlir::Value word = stridedPointer(b, b.getLoc(), tile, offset, 1);
  return mlir::LLVM::LoadOp::create(b, b.getI32Type(), word, 4);
}

/// ldmatrix: the four words that a lane has of four 8 x 8 matrices of 16-bit elements, whose rows
/// of 16 bytes the lanes name by `pointer`.
inline llvm::SmallVector<mlir::Value>
loadMatrices(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
             mlir::NVVM::MMALayout layout = mlir::NVVM::MMALayout::row) {
  llvm::SmallVector<mlir::Type> words(4, b.getI32Type());
  auto type = mlir::LLVM::LLVMStructType::getLiteral(b.getContext(), words);
  auto shape = mlir::NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  mlir::Value loaded = mlir::NVVM::LdMatrixOp::create(b, type, pointer, 4, layout, shape,
                                                      mlir::NVVM::LdStMatrixEltType::B16);
  llvm::SmallVector<mlir::Value> registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(mlir::LLVM::ExtractValueOp::create(b, loaded, i));
  return registers;
}

} // namespace fp4
