//===- DenseMma.cpp - Arithmetic of matrix units besides fp4 block scaling ===//
#include "fp4/Numerics/DenseMma.h"
#include "FactorDecoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fp4::numerics {
namespace {

constexpr int zeroExponent = -133;

int64_t alignTerm(int64_t value, int shift) {
  if (shift >= 0)
    return value << shift;
  if (shift <= -63)
    return 0;
  const int64_t magnitude = (value < 0 ? -value : value) >> -shift;
  return value < 0 ? -magnitude : magnitude;
}

/// sum * 2^exponent toward zero.
float roundTowardZero(int64_t sum, int exponent) {
  if (sum == 0)
    return 0.0f;
  const uint64_t magnitude = sum < 0 ? -uint64_t(sum) : uint64_t(sum);
  const int bits = 64 - std::countl_zero(magnitude);
  const int drop = std::max(bits - 24, -149 - exponent);
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  if (drop >= 64)
    return std::bit_cast<float>(sign);
  const uint32_t significand = uint32_t(drop >= 0 ? magnitude >> drop : magnitude << -drop);
  const int biased = exponent + drop + 150;
  if (!(significand >> 23))
    return std::bit_cast<float>(sign | significand);
  if (biased >= 255)
    return std::bit_cast<float>(sign | 0x7F800000u);
  return std::bit_cast<float>(sign | uint32_t(biased) << 23 | (significand & 0x7FFFFFu));
}

} // namespace

uint32_t denseElement(std::span<const Factor> a, std::span<const Factor> b, unsigned bits,
                      int scale, hw::AccumulatorType dType, uint32_t c, DensePrecision precision,
                      int addendShift) {
  const bool half = dType == hw::AccumulatorType::F16;
  const Factor addend = half ? decodeFactor(binary16, c & 0xFFFF, false)
                             : decodeFactor(binary32, c, false);
  const unsigned addendBits = half ? 10 : 23;
  bool nan = addend.kind == Factor::NaN, plusInf = false, minusInf = false;
  const auto infinity = [&](bool negative) { (negative ? minusInf : plusInf) = true; };
  if (addend.kind == Factor::Infinite)
    infinity(addend.significand < 0);
  const int addendExponent = addend.significand ? addend.exponent - addendShift : zeroExponent;
  int emax = addendExponent;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].kind | b[k].kind) {
      nan |= a[k].kind == Factor::NaN || b[k].kind == Factor::NaN || !a[k].significand ||
             !b[k].significand;
      infinity((a[k].significand < 0) != (b[k].significand < 0));
    }
    if (a[k].significand && b[k].significand)
      emax = std::max(emax, a[k].exponent + b[k].exponent + scale);
  }
  if (nan || (plusInf && minusInf))
    return half ? 0x7FFF : denseNaN;
  if (plusInf || minusInf)
    return half ? (plusInf ? 0x7C00 : 0xFC00) : (plusInf ? 0x7F800000u : 0xFF800000u);
  emax = std::max(emax, zeroExponent);
  int64_t sum =
      alignTerm(addend.significand, addendExponent - emax + precision.align - int(addendBits));
  for (size_t k = 0; k < a.size(); ++k)
    sum += alignTerm(int64_t(a[k].significand) * b[k].significand,
                     a[k].exponent + b[k].exponent + scale - emax + precision.align - int(bits));
  if (!half)
    return std::bit_cast<uint32_t>(roundTowardZero(sum, emax - precision.align)) >>
           (23 - precision.result) << (23 - precision.result);
  const double exact = std::ldexp(double(sum), emax - precision.align);
  return std::bit_cast<uint16_t>(static_cast<_Float16>(exact));
}

namespace {

uint32_t finishInteger(int64_t sum, bool saturate) {
  return uint32_t(saturate ? std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                                 std::numeric_limits<int32_t>::max())
                           : sum);
}

int nibble(uint8_t bits, bool isSigned) { return isSigned && bits & 8 ? int(bits) - 16 : bits; }

} // namespace

uint32_t integerElement(const uint8_t *a, const uint8_t *b, bool aSigned, bool bSigned,
                        bool saturate, uint32_t c) {
  int64_t sum = int32_t(c);
  for (unsigned k = 0; k < 32; ++k)
    sum += int64_t(aSigned ? int8_t(a[k]) : a[k]) * (bSigned ? int8_t(b[k]) : b[k]);
  return finishInteger(sum, saturate);
}

uint32_t nibbleElement(const uint8_t *a, const uint8_t *b, bool aSigned, bool bSigned,
                       bool saturate, uint32_t c) {
  int64_t sum = int32_t(c);
  for (unsigned k = 0; k < 32; ++k)
    sum += nibble(a[k] & 15, aSigned) * nibble(b[k] & 15, bSigned) +
           nibble(a[k] >> 4, aSigned) * nibble(b[k] >> 4, bSigned);
  return finishInteger(sum, saturate);
}

uint32_t bitElement(const uint8_t *a, const uint8_t *b, bool exclusive, uint32_t c) {
  for (unsigned k = 0; k < 32; ++k)
    c += unsigned(std::popcount(uint8_t(exclusive ? a[k] ^ b[k] : a[k] & b[k])));
  return c;
}

} // namespace fp4::numerics
