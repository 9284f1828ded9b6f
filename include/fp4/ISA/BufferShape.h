//===- BufferShape.h - The shape of a tensor in memory --------------------===//
//
// The form of a logical tensor in device memory. The buffer types of the compiler, the global types
// of kernels and the types of manifests come from here.
//
//   tensor                            buffer                             bytes per row
//   R x K of elements of 8 to 64 bits R x K of them                      K * sizeof(element)
//   R x K of 4-bit elements           R x P bytes, even k in low nibbles P
//   scales, tiled_128x4               ceil(R/128) x ceil(B/4) x 512      (ScaleLayout.h)
//
// Users have dense rows of 4-bit elements, P = ceil(K/2). The compiler's own buffers have rows of
// whole units of TMA, P rounded up to 16; nobody reads the bytes between.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/ScaleLayout.h"
#include <cstdint>
#include <span>
#include <vector>

namespace fp4::hw {

/// TMA's unit of pitch, in bytes.
inline constexpr int64_t pitchUnitBytes = 16;

/// size / n, rounded up; for all sizes without overflow.
constexpr int64_t quotientUp(int64_t size, int64_t n) { return size / n + (size % n != 0); }

/// Bytes of a row of `columns` packed 4-bit elements, as users store it.
constexpr int64_t denseRowBytes(int64_t columns) { return quotientUp(columns, 2); }

/// Bytes from one row of packed 4-bit elements to the next in a buffer that the compiler owns. A
/// template, so that kernels emit it (Int32 of KernelArithmetic) where columns are dynamic.
template <typename Int> constexpr Int paddedRowBytes(Int columns) {
  return (columns + (2 * pitchUnitBytes - 1)) / (2 * pitchUnitBytes) * pitchUnitBytes;
}

enum class RowPitch : uint8_t { Dense, Padded };

/// A tensor as its buffer sees it. Negative sizes are dynamic.
struct LogicalShape {
  std::span<const int64_t> sizes;
  unsigned elementBits = 0;
  bool tiledScales = false; ///< true for a matrix in layout tiled_128x4
};

/// The buffer's sizes, in bytes where elements have 4 bits or scales are tiled, else in elements.
/// Dynamic sizes are handed on as they are.
std::vector<int64_t> bufferShape(const LogicalShape &tensor, RowPitch pitch);

} // namespace fp4::hw
