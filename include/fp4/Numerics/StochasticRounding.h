//===- StochasticRounding.h - Random bits of every element ----------------===//
//
// Stochastic rounding to E2M1 uses 8 random bits per element. The bits come from Philox4x32-10,
// keyed by the seed. The mapping says which counter serves which element.
//
// PhiloxMapping::Element (the default) depends on nothing but the element's place in the output
// matrix, so every kernel, tiling and machine gives the same codes. With R rows and K columns of
// the *output* (column-wise output: the transposed matrix) and G = ceil(K / 16) groups per row:
//
//   group(r, k)  = first + r * G + k / 16      first: groups of the matrices before it (grouped
//                                              quantizing), else 0
//   subsequence  = group + 2^63 if the output is column-wise
//   counter      = (offset low, offset high, subsequence low, subsequence high)
//   word(r, k)   = word (k % 16) / 4 of the Philox block at that counter
//   byte(r, k)   = of that word, as cvt.rs.e2m1x4 {x[q+3], x[q+2], x[q+1], x[q]} hands it to its
//                  four operands (StochasticMapping), q = k rounded down to a multiple of 4
//
// A block of 16 uses one Philox block, and a block of 32 (MXFP4) uses two. One quantization uses
// one value of `offset`: the caller adds 1 for the next.
//
// PhiloxMapping::TransformerEngineBlockwise is that of TransformerEngine's vector-blockwise kernel:
// 256 threads per 128 x 128 tile of the input, tiles numbered (x, y) over X tile columns, and
//
//   row-wise     block (r, b), b = k / 16:  x = b / 8, y = r / 128,
//                thread = r % 32 * 8 + b % 8,           draw = r % 128 / 32
//   column-wise  block (k, b), b = m / 16:  x = k / 128, y = b / 8,
//                thread = k % 128 / 2 % 32 * 8 + b % 8, draw = first + k % 128 / 64 * 2 + k % 2,
//                first = 4 where the same launch wrote the row-wise output, else 0
//   subsequence  = thread + 256 * x + 256 * X * y;  counter offset = offset + draw
//
// Sources: PTX ISA cvt.rs; Salmon et al., SC 2011; TransformerEngine
// common/transpose/quantize_transpose_vector_blockwise_fp4.cu.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/E2M1.h"
#include <array>
#include <cstdint>
#include <span>

namespace fp4::numerics {

enum class PhiloxMapping : uint8_t { Element, TransformerEngineBlockwise };

struct StochasticRounding {
  uint64_t seed = 0, offset = 0;
  unsigned rounds = 10;
  PhiloxMapping mapping = PhiloxMapping::Element;
  StochasticMapping bytes = StochasticMapping::Hardware;
  StochasticArithmetic arithmetic = StochasticArithmetic::Truncate;
};

/// The output matrix whose elements are rounded.
struct RandomDomain {
  uint64_t rows = 0, columns = 0; ///< extents of the output
  bool columnwise = false;        ///< the output is the transposed input
  bool afterRowwise = false; ///< column-wise, written by the launch that wrote the row-wise output
  uint64_t firstGroup = 0;   ///< groups of 16 before this matrix

  uint64_t inputColumns() const { return columnwise ? rows : columns; }
};

/// The random bytes of the 16 elements (row, 16 * group) .. (row, 16 * group + 15) of the output.
std::array<uint8_t, 16> randomBytes(const StochasticRounding &rounding, const RandomDomain &domain,
                                    uint64_t row, uint64_t group);

} // namespace fp4::numerics
