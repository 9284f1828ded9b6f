//===- TransformKernel.h - Hadamard transform and quantization in one -----===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fp4 {

/// Facts on which the kernel of a columnwise, transformed fp4.quantize of X[M,K] depends. The
/// output is Q[K,M], and the transform runs along M.
struct TransformShape {
  int64_t m, k;   ///< rows and columns of X
  uint64_t signs; ///< signs of the transform
  RecipeAttr recipe;
  mlir::Type scaleType;
  bool tiledScales; ///< layout tiled_128x4, else row-major
  bool hasAmax;     ///< the recipe has a tensor scale
  bool stochastic;
  Philox philox;
  int64_t tileM, tileK; ///< rows and columns of a tile of X
  int64_t stripTiles;   ///< tiles along m that a CTA does in a row
  int64_t resident;     ///< CTAs per SM

  /// Elements that one scale covers, and that one transform does.
  static constexpr int64_t kBlock = 16;

  int64_t tilesM() const { return (m + tileM - 1) / tileM; }
  int64_t tilesK() const { return (k + tileK - 1) / tileK; }
  int64_t strips() const { return tilesK() * ((tilesM() + stripTiles - 1) / stripTiles); }

  /// Kernel argument types in order: X, the amax if any, seed and offset if any, Q, scales.
  pipe::TensorMapType mapX() const;
  pipe::GlobalType amax() const;
  pipe::GlobalType rng() const;
  pipe::GlobalType codes() const;
  pipe::GlobalType scales() const;
  llvm::SmallVector<mlir::Type> argumentTypes() const;
};

/// Adds `gpu.func @kernel` of the sequential form to `module`. The plan says which roles execute it
/// and which schedule shares out its strips.
mlir::gpu::GPUFuncOp buildTransformKernel(mlir::gpu::GPUModuleOp module,
                                          const TransformShape &shape, const KernelPlan &plan,
                                          mlir::Location loc);

} // namespace fp4
