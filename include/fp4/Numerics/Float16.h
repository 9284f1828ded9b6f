//===- Float16.h - bf16, f16 and f32 storage ------------------------------===//
//
// Conversions between fp32 and the 16-bit floats, as PTX cvt.rn does them: round to nearest even,
// subnormals kept, overflow to infinity, NaN becomes the canonical 0x7FFF.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fp4::numerics {

inline uint32_t bitsOf(float x) { return std::bit_cast<uint32_t>(x); }
inline float floatOf(uint32_t bits) { return std::bit_cast<float>(bits); }

uint16_t encodeBF16(float x);
inline float decodeBF16(uint16_t bits) { return floatOf(static_cast<uint32_t>(bits) << 16); }

uint16_t encodeF16(float x);
float decodeF16(uint16_t bits);

/// fp32 with the last bit set where `x` lies between two values, of which it is the one toward
/// zero: encoding it rounds as if from `x` itself, once.
float stickyFloat(double x);

/// The plain element types of inputs and results. E4M3 is a type of results alone, and has no
/// infinity: rounding saturates.
enum class FloatType : uint8_t { F32, BF16, F16, E4M3 };

std::string_view stringify(FloatType type); ///< "f32", "bf16", "f16", "f8E4M3FN"
std::optional<FloatType> parseFloatType(std::string_view text);
constexpr size_t sizeOf(FloatType type) {
  return type == FloatType::F32 ? 4 : type == FloatType::E4M3 ? 1 : 2;
}

/// `x` rounded once to `type`, as a float.
float roundTo(FloatType type, float x);

/// Bytes (little endian) to floats and back. A trailing partial element is ignored.
std::vector<float> decodeFloats(FloatType type, std::span<const std::byte> bytes);
std::vector<std::byte> encodeFloats(FloatType type, std::span<const float> values);

} // namespace fp4::numerics
