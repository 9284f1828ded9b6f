//===- NaN.h - The NaN of a GPU, on every host ----------------------------===//
//
// Hosts give other NaN than a GPU, and than one another: an invalid operation has its sign set on
// x86-64 and not on Arm, and Arm prefers signalling operands. Arithmetic of the simulator that may
// give NaN ends with one of these functions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>

namespace fp4::sim {

inline constexpr uint32_t kNaN32 = 0x7FFFFFFF; ///< the NaN GPU arithmetic produces
inline constexpr uint16_t kNaN16 = 0x7FFF;     ///< the NaN above in f16 and bf16

inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(kNaN32); }

/// The result `x` of an f64 operation. A NaN is the first of the operands that are NaN, made quiet;
/// without one the operation is invalid, and its NaN has the sign set (H200).
template <typename... Operands> double withNaN64(double x, Operands... operands) {
  if (x == x)
    return x;
  constexpr uint64_t quiet = 0x0008000000000000, invalid = 0xFFF8000000000000;
  for (double operand : {operands...})
    if (operand != operand)
      return std::bit_cast<double>(std::bit_cast<uint64_t>(operand) | quiet);
  return std::bit_cast<double>(invalid);
}

inline double add64(double a, double b) { return withNaN64(a + b, a, b); }

} // namespace fp4::sim
