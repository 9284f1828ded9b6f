//===- Inputs.h - Seeded inputs of a function -----------------------------===//
#pragma once

#include "fp4/Reference/Tensor.h"

namespace fp4::harness {

/// Row numbers of a gather from `rows` rows.
Tensor makeRowNumbers(const Type &type, int64_t rows, uint64_t seed, unsigned index);
/// Different row numbers of a scatter into `rows` rows; every seventh, and what has no row, is -1.
Tensor makeSlots(const Type &type, int64_t rows, uint64_t seed, unsigned index);

/// Seeded inputs. A (distribution, seed, index, type) has the same bytes on every machine.
///   gaussian  normal(0, 1)
///   layer     gaussian, with prepacked weights 2^-6 times as large: a row of some thousand columns
///             times them has results of order 10, of which exponentials are finite
///   large     gaussian, with block scales 2^5 times as large
///   uniform   [-1, 1)
///   bf16      normal, of 8 significant bits whatever the type, blocks over nine binades, the first
///             element the largest and no power of two: what tells quantizers apart
///   adversarial  the blocks N01-N42 and M01-M28 of numerics_vectors in random places, along rows
///             and columns, under a largest magnitude that the seed chooses of 11 (the last two
///             infinity and NaN); block scales any byte
///   exact     E2M1 values with a 6 in every block of 16, so that quantization is exact and every
///             partial sum of a block-scaled GEMM fits 24 bits
///   ones, zeros
///   arange    0, 1, 2, .. modulo 256, in row-major order
/// A tensor of f8E4M3FN is one of block scales, or, with `isFactor`, numbers of the distribution,
/// rounded. Block scales are powers of two from 1/8 to 8 (gaussian, layer, uniform, bf16), or 1;
/// scalars are 1 (or 0). i32 tensors have numbers from -1 to 63. i64 tensors are
/// states of a random number generator: the seed, then `index`, its offset. `index` is the number
/// of the argument: it separates the streams of two arguments.
Expected<Tensor> makeInput(const Type &type, std::string_view distribution, uint64_t seed,
                           unsigned index, bool isFactor = false);
/// Ascending rows of groups, of 0 to `rows` rows: `type` is that of an operand 'offsets'. Some rows
/// are of no group, and some groups may have none.
Tensor makeOffsets(const Type &type, int64_t rows, uint64_t seed, unsigned index);
/// Zeroes the padding of a list of tiles of scales, in whose rows `blocks` scales exist. The type
/// of the list does not tell it.
void clearTilePadding(Tensor &tensor, uint64_t blocks);
/// The distributions, for messages and --help.
extern const std::vector<std::string> kDistributions;

} // namespace fp4::harness
