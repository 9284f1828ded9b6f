//===- E2M1.h - The 4-bit element format ----------------------------------===//
//
// E2M1: sign, two exponent bits (bias 1), one mantissa bit; no infinity, no NaN.
//
//   code     0   1    2   3    4   5   6   7      bit 3 is the sign, 8 is -0
//   value    0   0.5  1   1.5  2   3   4   6
//
// Sources: OCP MX specification; PTX ISA cvt to .e2m1x2 / .e2m1x4; cuda_fp4.hpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace fp4::numerics {

inline constexpr std::array<float, 16> e2m1Values = {
    0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f, -0.f, -0.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
inline constexpr float e2m1Max = 6.f;

/// Value of a code; only the low four bits count.
constexpr float decodeE2M1(uint8_t code) { return e2m1Values[code & 15]; }

/// cvt.rn.satfinite.e2m1: nearest, ties to the even code, saturating at +-6, -0 and underflow keep
/// their sign, NaN gives +6 (7).
uint8_t encodeE2M1(float x);

/// Assignment of the bytes of the 32 random bits to the operands of cvt.rs.satfinite.e2m1x4
/// {a,b,e,f}. [uncertain] PTX only assigns halves to pairs; the hardware's order comes from probes
/// of B300. No test of the compiler may depend on it.
enum class StochasticMapping : uint8_t {
  Hardware,         ///< a: rev(bits 15:8), b: bits 31:24, e: rev(bits 7:0), f: bits 23:16
  TransformerEngine ///< software fallback: f, e, b, a take bits 7:0, 15:8, 23:16, 31:24
};

/// The four bytes of `randomBits` by operand, in the order f, e, b, a: of elements 0, 1, 2, 3 where
/// element 0 goes to the low nibble.
std::array<uint8_t, 4> stochasticBytes(uint32_t randomBits, StochasticMapping mapping);

/// Arithmetic of stochastic rounding. The two agree except where an addition in fp32 rounds up to
/// a grid point, which no bf16 value does.
enum class StochasticArithmetic : uint8_t {
  Truncate, ///< model of the instruction: away from zero iff floor(256 * frac) + random >= 256,
            ///< frac the position of |x| between its neighbours
  FusedAdd  ///< TransformerEngine's fallback: fma(random / 256, step, |x|), then down to the grid
};

/// Stochastic rounding with 8 random bits. Values on the grid never move; saturates; NaN gives +6.
uint8_t encodeE2M1Stochastic(float x, uint8_t random,
                             StochasticArithmetic arithmetic = StochasticArithmetic::Truncate);

/// cvt.rs.satfinite.e2m1x4: a in bits 15:12, b in 11:8, e in 7:4, f in 3:0.
uint16_t encodeE2M1x4Stochastic(float a, float b, float e, float f, uint32_t randomBits,
                                StochasticMapping mapping = StochasticMapping::Hardware);

/// Two codes per byte, the even element in the low nibble. `packed` has (codes.size() + 1) / 2
/// bytes; the high nibble behind an odd count is 0.
void packE2M1(std::span<const uint8_t> codes, std::span<uint8_t> packed);
void unpackE2M1(std::span<const uint8_t> packed, std::span<uint8_t> codes);

} // namespace fp4::numerics
