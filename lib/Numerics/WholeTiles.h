//===- WholeTiles.h - Matrices of bytes that fill whole tiles -------------===//
//
// Prepacked weights have whole tiles. Their codes and scales are matrices of bytes, to which rows
// and columns are added before tiles are made of them, and from which they are taken afterwards.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace fp4::numerics {

/// Rows and bytes of a row.
struct ByteShape {
  uint64_t rows, bytes;

  uint64_t size() const { return rows * bytes; }
};

/// The matrix `from` with the shape `to`: its rows and columns that both shapes have, and `fill`.
inline std::vector<uint8_t> resizeMatrix(std::span<const uint8_t> matrix, ByteShape from,
                                         ByteShape to, uint8_t fill) {
  std::vector<uint8_t> result(to.size(), fill);
  for (uint64_t row = 0; row < std::min(from.rows, to.rows); ++row)
    std::copy_n(matrix.begin() + int64_t(row * from.bytes), std::min(from.bytes, to.bytes),
                result.begin() + int64_t(row * to.bytes));
  return result;
}

} // namespace fp4::numerics
