//===- CostModel.h - Columns of an output tile ----------------------------===//
//
// How many cycles a persistent GEMM takes with 128 x n output tiles, by n. Words in
// capitals are rates of the target (fp4/ISA/Rates.h). A k tile of 256 costs the larger of
//   four matrix instructions: their issue, 2 * 128 * n * 64 / FLOPS, or their operands from shared
//   memory, (128 + n) * 32 B / SHARED (which binds n < 128)
//   what the L2 cache delivers to one multiprocessor: ((128 + n) * 128 B + scales) / L2
// and an output tile costs
//   main = k tiles * that + FILL
//   epi  = EPILOGUE * n
// With two accumulators the two overlap, max(main, epi); with one (n = 256, where the second does
// not fit beside the scales) only partly: max(main + SERIAL * epi, epi). A kernel is
//   ceil(tiles / multiprocessors) * tile + TAIL + epi.
// The numbers rank tiles and predict nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"
#include <cstdint>

namespace fp4 {

/// Rows assumed where the number of rows is dynamic.
inline constexpr int64_t kAssumedRows = 4096;

/// An M x N x K multiplication, in elements; `block` of them share a scale.
struct MatmulSize {
  int64_t m, n, k, block;
};

/// Model cycles with 128 x `tileN` tiles on a target with tcgen05.
double matmulCycles(const MatmulSize &size, int64_t tileN, const hw::TargetModel &target);

/// Rows and depth of a tile, and the columns that it can have.
inline constexpr int64_t kProductTileM = 128, kProductTileK = 256;
inline constexpr int64_t kProductTileNs[] = {64, 128, 192, 256};

/// The cheapest of kProductTileNs; of equals, the fewest.
int64_t chooseTileN(const MatmulSize &size, const hw::TargetModel &target);

} // namespace fp4
