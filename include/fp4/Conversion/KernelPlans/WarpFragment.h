//===- WarpFragment.h - Fragments of a tile that warps share --------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace fp4 {

/// Rows and columns of the fragment that each of `warps` warps has of a tile of m x n, where
/// mma.sync multiplies: of those that share the tile evenly, the one for which a warp reads the
/// least; of equals, the widest. None where no fragment has 16 rows or a multiple of 32, a multiple
/// of 32 columns, and at most 128 sums in a thread.
std::optional<std::array<int64_t, 2>> warpFragment(int64_t m, int64_t n, int64_t warps);

} // namespace fp4
