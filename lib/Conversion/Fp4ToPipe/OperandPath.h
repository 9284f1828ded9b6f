//===- OperandPath.h - The way of operands to the tensor core -------------===//
#pragma once

#include "GemmKernel.h"

namespace fp4 {

class OperandPath {
public:
  using Value = mlir::Value;
  explicit OperandPath(GemmKernel &kernel) : b(kernel.b), gemm(kernel.gemm), args(kernel.args) {}

  /// A box of `map` from (row, column) on, or as many as `depth` columns take.
  Value load(Value map, Value row, Value column, int64_t depth = 0);
  /// The rows of `type`, which CTAs along `direction` load together if there are several parts.
  Value load(pipe::SharedType type, Value map, Value row, Value column, int64_t parts,
             pipe::Direction direction);
  /// The scales of a k tile of `rows` rows: the `blocks` scale tiles that exist from (rowBlock,
  /// kBlock) on.
  Value loadScales(Value from, Value rowBlock, Value kBlock, Value blocks, int64_t rows);
  /// A tile of which each of `parts` CTAs along `direction` loads as much as the box of `map`.
  Value loadShared(Value map, Value row, Value column, int64_t parts, pipe::Direction direction);
  /// The scales of a k tile of A or B for tensor memory, from `row` on, which is in scale tile
  /// `rowBlock`. Scale tiles from `kBlock` on, `blocks` of which exist, or all.
  Value loadLaneScales(Value from, Value row, Value rowBlock, Value kBlock, Value blocks);
  /// Copies scales to tensor memory; `blocks` of four columns exist, or all.
  Value copyScales(Value from, Value blocks);
  /// A k tile as the tensor core takes it from shared memory.
  Value convert(Value tile, Value scales, Value blocks);
  /// The exponent of what undoes the powers of two that operands have been converted with, for sums
  /// in registers.
  int restoringExponent() const;

  /// The scale tiles of k tile `k`: the first, and how many exist, null where every tile is whole.
  struct ScaleBlocks {
    Value first, count;
  };
  ScaleBlocks scaleBlocksOf(Value k);
  /// Returns the existing rows of a box of `map` from `row` of the result on; null where the map
  /// has no residue. The count is computed where `row` is.
  Value existingRows(Value map, Value row);
  /// Returns how many of the `count` parts of `unit` elements of a k tile exist; `done` parts come
  /// before.
  Value existingOfK(Value done, int64_t count, int64_t unit);
  /// The row of scale tiles that has `row`.
  Value rowBlockOf(Value row) { return b.div(row, pipe::kScaleBlockRows); }

private:
  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  /// By row and box.
  llvm::SmallDenseMap<std::pair<Value, int64_t>, Value> existingOfBoxes;
};

} // namespace fp4
