//===- Epilogue.h - Results of a GEMM from its sums -----------------------===//
#pragma once

#include "WorkLoop.h"

namespace fp4 {

/// The end of a tile: the reduction of partial sums, alpha, named steps, an epilogue region,
/// results that are derived, and stores.
class Epilogue {
public:
  virtual ~Epilogue() = default;
  /// Emits what all tiles have in common.
  virtual void begin() = 0;
  /// Emits the epilogue of a tile, whose sums are in `accs`.
  virtual void finish(mlir::ValueRange accs, const Tile &tile) = 0;
};

} // namespace fp4
