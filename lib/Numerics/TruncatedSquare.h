//===- TruncatedSquare.h - The square of an interpolation in fixed point --===//
//
// The squarer of the special function unit leaves out the partial products of little weight, so
// that its square is below z^2.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::numerics {

/// The square of z, a number of `width` bits, without the lowest `dropped` bits of each partial
/// product: z_i with itself at 2^2i, with a higher z_j at 2^(i+j+1).
constexpr int64_t truncatedSquare(uint64_t z, unsigned width, unsigned dropped) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < width; ++i)
    if (z >> i & 1)
      sum += ((z >> (i + 1) << (2 * i + 2)) | uint64_t(1) << (2 * i)) >> dropped;
  return static_cast<int64_t>(sum);
}

} // namespace fp4::numerics
