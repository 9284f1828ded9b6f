//===- Hadamard.h - Randomized Hadamard transform of blocks ---------------===//
//
// y_j = scale * sum_i s_i x_i H_ij with H_ij = (-1)^popcount(i & j) (Sylvester order), applied to
// consecutive blocks of 16, 32, 64 or 128 values; s_i = -1 where bit i mod 16 of the sign mask is
// set; scale = fp32(n^-1/2).
//
// Two ways to compute it:
//
//   Butterfly  fp32, of x / n, stages of (a + b, a - b), n * scale last, so that nothing overflows
//              whose scaled sum does not: as on a tensor core, whose matrix has the scale in it.
//              x / n is exact for bf16. The order of the strides is part of
//              the contract, because fp32 inputs round differently in either order (bf16 inputs do
//              not, but for the last rounding). Kernels transform so in registers.
//   ExactSum   the sum exact, scaled, rounded once to fp32. A tensor core with bf16 operands
//              gives it, unless exponents in a block spread so far that its accumulator cuts.
//              Computed as a butterfly in fp64, which is exact for bf16 values of a block of 16
//              whose exponents differ by up to 41.
//
// With roundToBF16 the result makes a round trip through bf16, and the following steps (amax,
// quantizing) see the rounded values, as in TransformerEngine's recipe. Without it they see the
// fp32 values, as in torchao's fused kernel.
//
// Sources: TransformerEngine's recipe (default mask 0xD7E8, 16 values, result rounded to bf16);
// torchao pull request 4517 (fp32 butterfly).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Recipe.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <span>

namespace fp4::numerics {

enum class ButterflyOrder : uint8_t { Ascending, Descending }; ///< strides 1, 2, 4, ... or n/2, ...
enum class HadamardArithmetic : uint8_t { Butterfly, ExactSum };

struct HadamardOptions {
  unsigned blockSize = 16;    ///< 16, 32, 64 or 128
  uint16_t signMask = 0xD7E8; ///< bit i set: s_i = -1; repeated every 16 values; 0: no signs
  ButterflyOrder order = ButterflyOrder::Ascending;
  bool roundToBF16 = true; ///< round every result to bf16 (and return it as float)
  HadamardArithmetic arithmetic = HadamardArithmetic::Butterfly;
};

/// Transforms `values` in place. Fails if the block size is not one of the four or does not divide
/// the count.
Status hadamard(std::span<float> values, const HadamardOptions &options = {});

/// Transforms every row of a row-major matrix. Fails if the block does not divide a row.
Status hadamardRows(std::span<float> values, uint64_t rows, uint64_t columns,
                    const HadamardOptions &options = {});

/// The amax of a tensor and of its transform.
struct HadamardAmax {
  float before = 0.f, after = 0.f;
};

/// Computes both amaxes of a row-major matrix; the transform runs along the rows, or, `columnwise`,
/// down the columns, which is along the rows of the transposed matrix. Fails as hadamardRows does.
Expected<HadamardAmax> hadamardAmax(std::span<const float> values, uint64_t rows, uint64_t columns,
                                    bool columnwise, const HadamardOptions &options = {},
                                    NanPolicy policy = NanPolicy::Drop);

} // namespace fp4::numerics
