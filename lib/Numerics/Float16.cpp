// bf16 and f16 by integer arithmetic on the fp32 bits.
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/E4M3.h"
#include <cmath>
#include <cstring>

namespace fp4::numerics {

uint16_t encodeBF16(float x) {
  const uint32_t u = bitsOf(x);
  if ((u & 0x7FFFFFFF) > 0x7F800000)
    return 0x7FFF;
  return static_cast<uint16_t>((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

uint16_t encodeF16(float x) {
  const uint32_t u = bitsOf(x), a = u & 0x7FFFFFFF;
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
  if (a > 0x7F800000)
    return 0x7FFF;
  if (a >= 0x477FF000) // 65520 and above round to infinity
    return sign | 0x7C00;
  if (a < 0x38800000) { // below 2^-14: multiples of 2^-24, which is the ulp of 0.5
    const float shifted = floatOf(a) + 0.5f;
    return static_cast<uint16_t>(sign | (bitsOf(shifted) - bitsOf(0.5f)));
  }
  const uint32_t rounded = a + 0xFFF + ((a >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

float decodeF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3FF;
  if (exponent == 31)
    return floatOf(sign | 0x7F800000 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return floatOf(sign | (exponent + 112) << 23 | mantissa << 13);
}

float stickyFloat(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || x != x)
    return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(x);
  return floatOf((bitsOf(nearest) - (away ? 1 : 0)) | 1);
}

std::string_view stringify(FloatType type) {
  switch (type) {
  case FloatType::BF16:
    return "bf16";
  case FloatType::F16:
    return "f16";
  case FloatType::E4M3:
    return "f8E4M3FN";
  case FloatType::F32:
    break;
  }
  return "f32";
}

std::optional<FloatType> parseFloatType(std::string_view text) {
  for (FloatType type : {FloatType::F32, FloatType::BF16, FloatType::F16, FloatType::E4M3})
    if (stringify(type) == text)
      return type;
  return std::nullopt;
}

float roundTo(FloatType type, float x) {
  switch (type) {
  case FloatType::BF16:
    return decodeBF16(encodeBF16(x));
  case FloatType::F16:
    return decodeF16(encodeF16(x));
  case FloatType::E4M3:
    return decodeE4M3(encodeE4M3(x));
  case FloatType::F32:
    break;
  }
  return x;
}

std::vector<float> decodeFloats(FloatType type, std::span<const std::byte> bytes) {
  std::vector<float> out(bytes.size() / sizeOf(type));
  if (type == FloatType::F32) {
    std::memcpy(out.data(), bytes.data(), out.size() * 4);
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (type == FloatType::E4M3) {
      out[i] = decodeE4M3(static_cast<uint8_t>(bytes[i]));
      continue;
    }
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    out[i] = type == FloatType::BF16 ? decodeBF16(half) : decodeF16(half);
  }
  return out;
}

std::vector<std::byte> encodeFloats(FloatType type, std::span<const float> values) {
  std::vector<std::byte> out(values.size() * sizeOf(type));
  if (type == FloatType::F32) {
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == FloatType::E4M3) {
      out[i] = static_cast<std::byte>(encodeE4M3(values[i]));
      continue;
    }
    const uint16_t half = type == FloatType::BF16 ? encodeBF16(values[i]) : encodeF16(values[i]);
    std::memcpy(out.data() + 2 * i, &half, 2);
  }
  return out;
}

} // namespace fp4::numerics
