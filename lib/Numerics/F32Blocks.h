//===- F32Blocks.h - Matrices of scale blocks under an f32 ----------------===//
#pragma once

#include "RecipeEvaluator.h"
#include "fp4/Numerics/QuantizeMatrix.h"

namespace fp4::numerics {

/// Rows and columns of the elements that share a scale.
struct BlockExtent {
  uint64_t rows, columns;
};

/// Quantizes a row-major matrix in such blocks; the last ones of a row and of a column may be
/// smaller. Scales are row-major and have 4 bytes.
QuantizedSide quantizeF32Blocks(const RecipeProgram &program, std::span<const float> values,
                                uint64_t rows, uint64_t columns, BlockExtent extent);

} // namespace fp4::numerics
