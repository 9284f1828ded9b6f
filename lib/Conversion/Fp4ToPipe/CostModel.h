//===- CostModel.h - Columns of an output tile ----------------------------===//
//
// How many cycles a persistent GEMM takes with 128 x n output tiles, by n. A k tile of 256 costs
// the larger of
//   4 * max(n/2, (128 + n) * 32/128)           four matrix instructions: their issue, or operands
//                                              from shared memory at 128 B/cycle (binds n < 128)
//   (128 + n) * 128 B + scales, at 72 B/cycle  what the L2 cache delivers to one multiprocessor
// and an output tile costs
//   main = k tiles * that + 1020           fill of the ring and drain of the last instructions
//   epi  = 18.5 * n                        reading, converting and storing the accumulator
// With two accumulators the two overlap, max(main, epi); with one (n = 256, where the second does
// not fit beside the scales) only partly: max(main + 0.77 * epi, epi). A kernel is
//   ceil(tiles / multiprocessors) * tile + 1700 + epi.
// The constants come from a fit to public B200 measurements; they rank tiles and predict nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4 {

/// Rows assumed where the number of rows is dynamic.
inline constexpr int64_t kAssumedRows = 4096;

/// Model cycles of an M x N x K multiplication with 128 x `tileN` tiles. Sizes in elements; `block`
/// is the number of elements per scale.
double matmulCycles(int64_t m, int64_t n, int64_t k, int64_t block, int64_t tileN,
                    unsigned multiprocessors);

/// The cheapest of 64, 128, 192 and 256 columns; of equals, the fewest.
int64_t chooseTileN(int64_t m, int64_t n, int64_t k, int64_t block, unsigned multiprocessors);

} // namespace fp4
