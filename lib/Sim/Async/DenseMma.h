//===- DenseMma.h - Arithmetic of tcgen05.mma besides fp4 block scaling ---===//
//
// Kinds f16, tf32, f8f6f4 and mxf8f6f4 (K of 16, 8, 32, 32): a truncated fused dot product, as
// MMA-Sim (arXiv 2511.10909) verified it on hardware. Every product is aligned for itself:
//
//   e_k  = exponent(a_k) + exponent(b_k) (+ both scale exponents), -133 for a zero product
//   emax = max over k of e_k, and exponent(C) (-133 for C = 0)
//   D    = RZ_fp32(2^emax * sum of truncate(term * 2^-emax, 2^-25));  RNE to fp16 for a D of fp16
//
// NaN in an operand, 0 * inf and inf - inf give 0x7FFFFFFF. kind::i8 is exact integer arithmetic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include <array>
#include <cstdint>
#include <span>

namespace fp4::sim {

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

/// The elements of one 32-byte operand row. Types below 8 bits lie in shared memory as 16 packed
/// elements at the start of every 16 bytes; `unpacked`: one per byte, as in tensor memory (fp4 in
/// bits 5:2).
void decodeFactors(hw::MmaType type, const uint8_t *row, bool unpacked, bool negate,
                   FactorRow &out);

/// One element of D as the 32 bits of its cell. `bits` are fraction bits of a product, `scale` the
/// sum of the scale exponents.
uint32_t denseElement(std::span<const Factor> a, std::span<const Factor> b, unsigned bits,
                      int scale, hw::AccumulatorType dType, uint32_t c);

/// One element of kind::i8.
uint32_t integerElement(const uint8_t *a, const uint8_t *b, bool aSigned, bool bSigned,
                        bool saturate, uint32_t c);

constexpr uint32_t denseNaN = 0x7FFFFFFFu;

} // namespace fp4::sim
