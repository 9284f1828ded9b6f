//===- Accumulator.h - The sums of a tile ---------------------------------===//
//
// The accumulators of a tile: in tensor memory, in fragments of registers, or in registers to which
// threads add the sums of each k tile.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "FragmentSums.h"
#include "KLoop.h"
#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/PipeMma.h"

namespace fp4 {

class Accumulator {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  Accumulator(GemmKernel &kernel, FragmentSums &fragments, KLoop &kLoop)
      : b(kernel.b), gemm(kernel.gemm), fragments(fragments), kLoop(kLoop) {}

  /// New accumulators of a tile: one for each part of each GEMM and k slice, those of the second
  /// GEMM of a dual one behind those of the first.
  llvm::SmallVector<Value> create();
  /// Multiplies the k tiles of a step, which `pairs` has; of the scales, those of part `part`.
  void multiply(ValueRange accs, const Tile &tile, const KStep &step,
                llvm::ArrayRef<OperandPair> pairs, int64_t part);

private:
  pipe::MmaOp multiplyInto(Value acc, const OperandTile &x, const OperandTile &y, Value isMore,
                           int64_t part);
  Value isMore(const Tile &tile, Value k, int64_t part);
  OperandTile converted(const OperandTile &operand);
  void promoteLanes(ValueRange accs, const Tile &tile, const KStep &step, const OperandPair &pair);
  void promote(ValueRange accs, const Tile &tile, const KStep &step,
               llvm::ArrayRef<OperandPair> pairs);
  mlir::Type lanesType();

  TileBuilder &b;
  const Gemm &gemm;
  FragmentSums &fragments;
  KLoop &kLoop;
};

} // namespace fp4
