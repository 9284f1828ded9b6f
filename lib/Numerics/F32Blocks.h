//===- F32Blocks.h - Matrices of blocks under an f32 ----------------------===//
#pragma once

#include "RecipeEvaluator.h"
#include "fp4/Numerics/QuantizeMatrix.h"

namespace fp4::numerics {

/// Quantizes a row-major matrix of blocks of 1 x 128 elements, or 128 x 128 where they are square;
/// the last ones of a row and of a column may be smaller. Scales are row-major and have 4 bytes.
QuantizedSide quantizeF32Blocks(const RecipeProgram &program, std::span<const float> values,
                                uint64_t rows, uint64_t columns, bool squareBlocks);

} // namespace fp4::numerics
