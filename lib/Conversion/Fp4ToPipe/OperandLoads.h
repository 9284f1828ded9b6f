//===- OperandLoads.h - Loads of k tiles ----------------------------------===//
#pragma once

#include "WorkLoop.h"

namespace fp4 {

/// A k tile: its number, its first element, and its scale tiles where operands have them: the
/// first, and how many exist, null where every tile is whole.
struct KTile {
  mlir::Value number, element, block, blocks;
};

/// Loads of a k tile, or of its scales, to shared memory.
class OperandLoads {
public:
  using Value = mlir::Value;
  explicit OperandLoads(GemmKernel &kernel) : b(kernel.b), gemm(kernel.gemm), args(kernel.args) {}

  /// A box of `map` from (row, column) on.
  Value loadBox(Value map, Value row, Value column);
  /// A k tile, of which each of `parts` CTAs along `direction` loads as much as the box of `map`.
  Value loadTile(Value map, Value row, const KTile &k, int64_t parts = 1,
                 pipe::Direction direction = pipe::Direction::N);
  /// The rows of `type`, which CTAs along `direction` load together if there are several parts.
  Value load(pipe::SharedType type, Value map, Value row, Value column, int64_t parts,
             pipe::Direction direction);
  /// The scales of a k tile of `rows` rows, from the row `rowBlock` of scale tiles on.
  Value loadScales(Value from, Value rowBlock, const KTile &k, int64_t rows);
  /// The scales of a k tile of A or B for tensor memory.
  Value loadLaneScales(bool ofA, Value from, const Tile &tile, const KTile &k);
  /// `count` rows of `from` from `index` on, of which `existing` exist, or all.
  Value loadRows(Value from, Value index, int64_t count, Value existing = {});
  /// k tile `k` of prepacked weights from `row` on, and how many of its tiles exist, null where all
  /// do.
  struct Packed {
    Value rows, count;
  };
  Packed loadPacked(Value from, Value row, Value k);
  /// The first tile of the row of prepacked tiles that begins with `row`.
  Value firstPacked(Value row);

  KTile kTileOf(Value k);
  /// Returns how many of the `count` parts of `unit` elements of a k tile exist; `done` parts come
  /// before.
  Value existingOfK(Value done, int64_t count, int64_t unit);
  /// The row of scale tiles that has `row`.
  Value rowBlockOf(Value row) { return b.div(row, pipe::kScaleBlockRows); }

private:
  Value existingRows(Value map, Value row);
  Value dynamicTilesOfK();

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  /// Parts of boxes that exist, by row and box.
  llvm::SmallDenseMap<std::pair<Value, int64_t>, Value> existingOfBoxes;
};

} // namespace fp4
