// E4M3 conversions by integer arithmetic on the fp32 bits.
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"

namespace fp4::numerics {
namespace {

/// Magnitude code of a finite |x| rounded to nearest even, with 0x7F and beyond for overflow.
uint32_t roundMagnitude(uint32_t a) {
  if (a < bitsOf(0x1p-6f)) // multiples of 2^-9, which is the ulp of 2^14
    return bitsOf(floatOf(a) + 0x1p14f) - bitsOf(0x1p14f);
  return ((a + 0x7FFFF + ((a >> 20) & 1)) >> 20) - (120u << 3);
}

} // namespace

float decodeE4M3(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t exponent = (code >> 3) & 15, mantissa = code & 7;
  if ((code & 0x7F) == 0x7F)
    return floatOf(sign | 0x7FC00000);
  if (exponent == 0)
    return floatOf(sign | bitsOf(static_cast<float>(mantissa) * 0x1p-9f));
  return floatOf(sign | (exponent + 120) << 23 | mantissa << 20);
}

uint8_t encodeE4M3(float x) {
  const uint32_t u = bitsOf(x), a = u & 0x7FFFFFFF;
  if (a > 0x7F800000)
    return 0x7F;
  const uint32_t code = roundMagnitude(a);
  return static_cast<uint8_t>((u >> 31 << 7) | (code > 0x7E ? 0x7E : code));
}

uint8_t encodeE4M3NonSaturating(float x) {
  const uint32_t u = bitsOf(x), a = u & 0x7FFFFFFF;
  const uint32_t code = a > 0x7F800000 ? 0x7F : roundMagnitude(a);
  return static_cast<uint8_t>((u >> 31 << 7) | (code > 0x7E ? 0x7F : code));
}

} // namespace fp4::numerics
