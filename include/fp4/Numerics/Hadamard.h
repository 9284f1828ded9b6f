//===- Hadamard.h - Randomized Hadamard transform of blocks ---------------===//
//
// y_j = scale * sum_i s_i x_i H_ij with H_ij = (-1)^popcount(i & j) (Sylvester order), applied to
// consecutive blocks of 16, 32, 64 or 128 values; s_i = -1 where bit i mod 16 of the sign mask is
// set. Computed in fp32 by butterflies (a + b, a - b); the order of the strides is part of the
// contract, because fp32 inputs round differently in either order (bf16 inputs do not, but for the
// last rounding).
//
// Sources: TransformerEngine's recipe (default mask 0xD7E8, 16 values, result rounded to bf16).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <span>

namespace fp4::numerics {

enum class ButterflyOrder : uint8_t { Ascending, Descending }; ///< strides 1, 2, 4, ... or n/2, ...

struct HadamardOptions {
  unsigned blockSize = 16;    ///< 16, 32, 64 or 128
  uint16_t signMask = 0xD7E8; ///< bit i set: s_i = -1; repeated every 16 values; 0: no signs
  ButterflyOrder order = ButterflyOrder::Ascending;
  bool roundToBF16 = true; ///< round every result to bf16 (and return it as float)
};

/// Transforms `values` in place. Fails where the block size is none of the four or does not divide
/// the count.
Status hadamard(std::span<float> values, const HadamardOptions &options = {});

} // namespace fp4::numerics
