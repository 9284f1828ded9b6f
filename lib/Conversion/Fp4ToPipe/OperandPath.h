//===- OperandPath.h - The way of an operand to the tensor core -----------===//
//
// The path of an operand of an instruction, as the route names it: from memory as it is, converted
// in registers, in shared memory or in tensor memory. A path knows the loads and the conversions of
// a k tile, the arguments of the kernel that it reads, and the rows that a tile has of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "OperandLoads.h"

namespace fp4 {

/// A k tile of an operand, or of a part of it.
struct OperandTile {
  using Value = mlir::Value;
  Value data;
  Value scales = {};   ///< null where the data have none beside them
  Value row = {};      ///< row of the scale tile at which the scales begin; null for the first
  Value count = {};    ///< parts of K that exist; null where all do
  Value resident = {}; ///< register-resident weights, where `data` are those of the next k tile
  Value behind = {};   ///< prepacked weights behind the rows of `data`; null where no tile has any
};
/// The parts of a tile, those of the second GEMM of a dual one behind those of the first.
using OperandTiles = llvm::SmallVector<OperandTile, 2>;

/// A k tile of both operands.
struct OperandPair {
  KTile k;
  OperandTiles a, b;
};

class OperandPath {
public:
  using Value = mlir::Value;
  /// The path of operand A, or B, of an instruction.
  OperandPath(GemmKernel &kernel, OperandLoads &loads, bool isA);

  /// Emits what comes before the k tiles of a tile.
  void begin(Tile &tile);
  OperandTiles load(const Tile &tile, const KTile &k);
  /// Brings part `part` of the scales that the core itself takes to it.
  void takeScales(OperandTiles &tiles, const Tile &tile, const KTile &k, int64_t part);

private:
  void takePowers(Tile &tile);
  void takeUnevenPowers(Tile &tile);
  OperandTiles loadAsIs(const Tile &tile, const KTile &k);
  OperandTiles loadScaled(const Tile &tile, const KTile &k);
  OperandTiles loadPrepacked(const Tile &tile, const KTile &k);
  Value rowInTile(Value row);
  Value tileBehind(Value row);
  OperandTile loadUneven(Value data, Value row, Value k);
  OperandTiles loadToTmem(const Tile &tile, const KTile &k);
  Value countOfK(const KTile &k);
  void takeLaneScales(OperandTile &operand, Value from, const Tile &tile, const KTile &k);
  void takeSharedScales(OperandTile &operand, Value from, const Tile &tile, const KTile &k);
  Value rowBlockOf(const Tile &tile, int64_t part);
  /// The scales of a k tile are the same tile of ones.
  bool hasUnitScales() const { return isArgumentA && gemm.hasUnitScalesOfA(); }

  Value row(const Tile &tile) const { return isArgumentA ? tile.rowA : tile.rowB; }
  Value scaleRow(const Tile &tile) const { return isArgumentA ? tile.scaleRowA : tile.scaleRowB; }
  /// Rows, of the lhs or of weights, of a part that has a fragment of its own; and the first of
  /// such rows, where `first` is that of part 0.
  int64_t rowsOfPart() const;
  int64_t parts() const { return isA ? gemm.partsOfTile() : 1; }
  Value ofPart(Value first, int64_t part) const {
    return part ? b.add(first, b.constant(part * rowsOfPart())) : first;
  }

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandLoads &loads;
  route::Operand way;
  bool isA, isArgumentA; ///< operand A of the instruction, and among the kernel's arguments
  bool isPrepacked;      ///< tiles of fp4.prepack, which warps that multiply convert
  struct Source {
    Value data, scales;
  };
  llvm::SmallVector<Source, 2> sources; ///< buffers of each GEMM
  Value resident, last; ///< register-resident weights, and the last k tile; else null
};

} // namespace fp4
