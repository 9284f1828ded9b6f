//===- DenseMma.h - Arithmetic of matrix units besides fp4 block scaling --===//
//
// tcgen05.mma of kinds f16, tf32, f8f6f4 and mxf8f6f4 (K of 16, 8, 32, 32) and wgmma: a truncated
// fused dot product, as MMA-Sim (arXiv 2511.10909) verified it on hardware. [uncertain] The double
// K of sm_107a is taken to be one such sum of twice as many terms. Every product is aligned for
// itself:
//
//   e_k  = exponent(a_k) + exponent(b_k) (+ both scale exponents), -133 for a zero product
//   emax = max over k of e_k, and exponent(C) (-133 for C = 0)
//   D    = RZ_fp32(2^emax * sum of truncate(term * 2^-emax, 2^-25));  RNE to fp16 for a D of fp16
//
// Hopper's wgmma keeps 13 bits instead of 25 where the factors are fp8, and 13 fraction bits of an
// fp32 result. NaN in an operand, 0 * inf and inf - inf give 0x7FFFFFFF. Integers are exact.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include <array>
#include <cstdint>
#include <span>

namespace fp4::numerics {

/// One factor: value = significand * 2^(exponent - fraction bits of its type).
struct Factor {
  int32_t significand = 0;
  int16_t exponent = 0;
  enum Class : uint8_t { Finite, Infinite, NaN } kind = Finite;
};

constexpr unsigned maxDenseK = 32;
using FactorRow = std::array<Factor, maxDenseK>;

/// Fraction bits of the significands of a type.
unsigned fractionBits(hw::MmaType type);
/// Elements in the 32 bytes of an operand row: 8, 16 or 32.
unsigned factorsPerRow(hw::MmaType type);

/// The elements of one 32-byte operand row. Types below 8 bits lie in shared memory as 16 packed
/// elements at the start of every 16 bytes; `unpacked`: one per byte, as in tensor memory (fp4 in
/// bits 5:2).
void decodeFactors(hw::MmaType type, const uint8_t *row, bool unpacked, bool negate,
                   FactorRow &out);

/// Fraction bits of aligned terms, and of an fp32 result.
struct DensePrecision {
  int align = 25, result = 23;
};
constexpr DensePrecision hopperFP8 = {13, 13};

/// One element of D as the 32 bits of its cell. `bits` are fraction bits of a product, `scale` the
/// sum of the scale exponents; C counts 2^-addendShift of itself.
uint32_t denseElement(std::span<const Factor> a, std::span<const Factor> b, unsigned bits,
                      int scale, hw::AccumulatorType dType, uint32_t c,
                      DensePrecision precision = {}, int addendShift = 0);

/// One element of 32 products of bytes (kind::i8, wgmma on .s8 and .u8).
uint32_t integerElement(const uint8_t *a, const uint8_t *b, bool aSigned, bool bSigned,
                        bool saturate, uint32_t c);

/// Adds 64 products of 4-bit elements to c, the low half of a byte first.
uint32_t nibbleElement(const uint8_t *a, const uint8_t *b, bool aSigned, bool bSigned,
                       bool saturate, uint32_t c);
/// c + the number of bits of 32 bytes that are 1 in a AND b, or a XOR b. Wraps.
uint32_t bitElement(const uint8_t *a, const uint8_t *b, bool exclusive, uint32_t c);

constexpr uint32_t denseNaN = 0x7FFFFFFFu;

} // namespace fp4::numerics
