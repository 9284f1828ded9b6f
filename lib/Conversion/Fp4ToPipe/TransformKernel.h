//===- TransformKernel.h - Hadamard transform and quantization in one -----===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fp4 {

/// What the kernel of a columnwise, transformed fp4.quantize of X[M,K] depends on. Its output is
/// Q[K,M], its transform runs along M.
struct TransformShape {
  int64_t m, k;   ///< rows and columns of X
  uint64_t signs; ///< of the transform
  RecipeAttr recipe;
  mlir::Type scaleType;
  bool tiledScales; ///< layout tiled_128x4, else row-major
  bool hasAmax;     ///< the recipe has a tensor scale
  bool stochastic;
  Philox philox;
  int64_t stripTiles; ///< tiles along m that a block does in a row

  static constexpr int64_t kTileM = 64, kTileK = 128;
  /// Elements that one scale covers, and that one transform does.
  static constexpr int64_t kBlock = 16;
  /// Blocks on a multiprocessor: quantizing takes longer than its four warps can hide, and eight
  /// do.
  static constexpr int64_t kResidentBlocks = 2;

  int64_t tilesM() const { return (m + kTileM - 1) / kTileM; }
  int64_t tilesK() const { return (k + kTileK - 1) / kTileK; }
  int64_t strips() const { return tilesK() * ((tilesM() + stripTiles - 1) / stripTiles); }

  /// Kernel argument types in order: X, the amax if any, seed and offset if any, Q, scales.
  pipe::TensorMapType mapX() const;
  pipe::GlobalType amax() const;
  pipe::GlobalType rng() const;
  pipe::GlobalType codes() const;
  pipe::GlobalType scales() const;
  llvm::SmallVector<mlir::Type> argumentTypes() const;
};

/// Tiles to a strip so that the busiest of `blocks` resident blocks has the least to do; of equals,
/// the most, since a strip writes its rows of Q front to back.
int64_t chooseStripTiles(int64_t tilesM, int64_t tilesK, int64_t blocks);

/// Adds `gpu.func @kernel` of the sequential form, which `roles` will execute, to `module`.
mlir::gpu::GPUFuncOp buildTransformKernel(mlir::gpu::GPUModuleOp module,
                                          const TransformShape &shape, pipe::RolePlanAttr roles, mlir::Location loc);

} // namespace fp4
