//===- LaneBlocks.h - Codes and scales of a row that lanes share -----------===//
//
// Kernels of few queries have a row of results in several lanes. Each quantizes its own elements,
// and lanes that share a block of scales exchange their maxima.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"
#include "Int32.h"

namespace fp4 {

/// Codes and row-major scales in memory, and the recipe; `amax` is null where it has no scale of
/// the tensor.
struct QuantizedRows {
  numerics::Recipe recipe;
  mlir::Value amax, codes, scales;
};

/// Quantizes and stores `elements` (a vector of bf16, f16 or f32), whose first one is number
/// `place` of those of all rows. Lanes whose numbers are `distance` apart have those behind. Blocks
/// end with those of rows. All lanes of the warp come here, and those for which `exists` (i1) holds
/// store.
void storeLaneBlocks(mlir::ImplicitLocOpBuilder &b, Scalars &s, const QuantizedRows &rows,
                     mlir::Value elements, Int32 place, Int32 lane, int64_t distance,
                     mlir::Value exists);

} // namespace fp4
