//===- KLoop.h - The loop over the k tiles of a tile ----------------------===//
//
// The steps of a tile along K: a k tile, two of them that a stage has together, or one of each k
// slice of the CTA. Sums that threads add in f32 have a factor for each k tile. Tiles in shared
// memory have the factors of four k tiles if every split-K part has whole fours of them. A static K
// without parts has tiles of as many as divide it (StagedScales.h). Else threads take the factors
// from global memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "OperandLoads.h"

namespace fp4 {

/// K tiles that are multiplied together.
struct KStep {
  mlir::Value first; ///< number of the first k tile
  mlir::Value place; ///< place of that tile among those whose factors are loaded together; or null
};

class KLoop {
public:
  using Value = mlir::Value;
  KLoop(GemmKernel &kernel, OperandLoads &loads)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), loads(loads) {}

  /// Emits `body` for every step of `tile`.
  void forEachStep(const Tile &tile, llvm::function_ref<void(const KStep &step)> body);
  /// K tiles of a step.
  int64_t count() const { return std::max(gemm.tiling.blocksOfTileK, gemm.work.ranges); }
  KTile kTileOf(const KStep &step, int64_t number);
  /// The factor of each part of `tile` for k tile `number` of a step, those of the second GEMM of a
  /// dual one behind those of the first.
  llvm::SmallVector<Value> factorsOf(const Tile &tile, const KStep &step, int64_t number);

private:
  Value numberOf(const KStep &step, int64_t number);
  int64_t factorsTogether() const;
  void loadFactors(const Tile &tile, Value first);
  Value powers(Value place);
  Value powerOfLane(Value weights, const Tile &tile, Value k);
  llvm::SmallVector<Value> factorsOfLane(const Tile &tile, const KStep &step, Value k);
  /// Scales of the columns of a GEMM: the buffer, and the tile of it in shared memory, or null.
  struct ColumnScales {
    Value buffer, loaded;
  };
  void appendScales(const Tile &tile, const KStep &k, const ColumnScales &ofColumns,
                    llvm::SmallVectorImpl<Value> &factors);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandLoads &loads;
  Value factorsA, factorsB; ///< tiles of factors in shared memory
  Value factorsB2;          ///< those of the second weights of a dual GEMM
  Value firstLoaded;        ///< first k tile of these
};

} // namespace fp4
