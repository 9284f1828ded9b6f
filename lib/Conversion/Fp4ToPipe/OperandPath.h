//===- OperandPath.h - The way of an operand to the tensor core -----------===//
//
// The path of an operand of an instruction, as the route names it: from memory as it is, converted
// in registers, in shared memory or in tensor memory. A path knows the loads and the conversions of
// a k tile.
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
  virtual ~OperandPath() = default;

  /// Emits what comes before the k tiles of a tile.
  virtual void begin(Tile &) {}
  virtual OperandTiles load(const Tile &tile, const KTile &k) = 0;
  /// Brings part `part` of the scales that the core itself takes to it.
  virtual void takeScales(OperandTiles &, const Tile &, const KTile &, int64_t /*part*/) {}
};

/// Paths of the operands A and B of an instruction.
std::unique_ptr<OperandPath> makePathOfA(GemmKernel &kernel, OperandLoads &loads);
std::unique_ptr<OperandPath> makePathOfB(GemmKernel &kernel, OperandLoads &loads);

} // namespace fp4
