// UE8M0 conversions: the exponent field of fp32, with a rounding rule for the mantissa.
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Numerics/Float16.h"

namespace fp4::numerics {
namespace {

struct Fields {
  uint32_t magnitude, exponent, mantissa;
  explicit Fields(float x)
      : magnitude(bitsOf(x) & 0x7FFFFFFF), exponent(magnitude >> 23),
        mantissa(magnitude & 0x7FFFFF) {}
  bool isNaN() const { return magnitude > 0x7F800000; }
};

constexpr uint8_t maxCode = 0xFE;

} // namespace

float decodeUE8M0(uint8_t code) {
  if (code == ue8m0NaN)
    return floatOf(0x7FC00000);
  return floatOf(code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

uint8_t encodeUE8M0Up(float x) {
  const Fields f(x);
  if (f.isNaN())
    return ue8m0NaN;
  if (f.exponent >= maxCode)
    return maxCode;
  const bool up = f.exponent == 0 ? f.mantissa > 0x400000 : f.mantissa != 0;
  return static_cast<uint8_t>(f.exponent + up);
}

uint8_t encodeUE8M0TowardZero(float x) {
  const Fields f(x);
  if (f.isNaN())
    return ue8m0NaN;
  return static_cast<uint8_t>(f.exponent > maxCode ? maxCode : f.exponent);
}

uint8_t encodeUE8M0Nearest(float x) {
  const Fields f(x);
  if (f.exponent == 0xFF)
    return ue8m0NaN;
  const bool up = f.exponent == 0 ? f.mantissa > 0x400000 : f.mantissa >= 0x400000;
  return static_cast<uint8_t>(f.exponent + up); // 254 rounded up is 255, NaN
}

} // namespace fp4::numerics
