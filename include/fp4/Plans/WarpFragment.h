//===- WarpFragment.h - Fragments of a tile that warps share --------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace fp4 {

/// Rows and columns of the fragment that each of `warps` warps has of an m x n tile, for mma.sync.
/// Fragments share the tile evenly. The one for which a warp reads the least is taken and, among
/// equals, the widest. A fragment has 16 rows or a multiple of 32, a multiple of 32 columns, and at
/// most 128 sums in a thread; None if there is no such fragment.
std::optional<std::array<int64_t, 2>> warpFragment(int64_t m, int64_t n, int64_t warps);

/// Rows of a tile whose elements threads quantize, each those of a row (pipe.gather_rows).
inline constexpr int64_t kGatheredRows = 128;
/// Columns of a row that each of `threads` threads gets of such a tile of `columns` columns: as
/// many as a thread has sums, but at least 32 and at most 64 at a time.
inline int64_t gatheredColumns(int64_t columns, int64_t threads) {
  constexpr int64_t fewest = 32, most = 64;
  return std::clamp(columns * kGatheredRows / threads, fewest, most);
}

} // namespace fp4
