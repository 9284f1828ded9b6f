//===- Formats.h - The block-scaled formats and their facts ---------------===//
//
// Formats.def has the table; nothing compares a format with another where it can ask for a fact.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp4::numerics {

enum class BlockFormat : uint8_t {
#define FP4_FORMAT(Enumerator, name, Element, block, Scale) Enumerator,
#include "fp4/Numerics/Formats.def"
};

/// The numbers of a format's elements.
struct ElementFormat {
  unsigned bits;
  unsigned mantissa;   ///< bits
  int bias;            ///< bias of the exponent
  float largest;       ///< finite
  int largestExponent; ///< floor(log2(largest))
};

namespace elements {
#define FP4_ELEMENT(Type, bits, mantissa, bias, largest, exponent)                                 \
  inline constexpr ElementFormat F##Type = {bits, mantissa, bias, largest, exponent};
#include "fp4/Numerics/Formats.def"
} // namespace elements

/// Storage format of scales.
enum class ScaleFormat : uint8_t { F8E4M3FN, F8E8M0FNU, F32 };

struct FormatFacts {
  std::string_view name;
  ElementFormat element;
  unsigned blockSize;
  ScaleFormat scale;
};

inline constexpr auto formatTable = std::to_array<FormatFacts>({
#define FP4_FORMAT(Enumerator, name, Element, block, Scale)                                        \
  {#name, elements::F##Element, block, ScaleFormat::F##Scale},
#include "fp4/Numerics/Formats.def"
});

constexpr const FormatFacts &factsOf(BlockFormat format) {
  return formatTable[static_cast<unsigned>(format)];
}

/// "nvfp4", "mxfp4", "mxfp6_e2m3", ...
constexpr std::string_view stringify(BlockFormat format) { return factsOf(format).name; }
std::optional<BlockFormat> parseBlockFormat(std::string_view text);

constexpr unsigned blockSizeOf(BlockFormat format) { return factsOf(format).blockSize; }
constexpr ElementFormat elementOf(BlockFormat format) { return factsOf(format).element; }
/// Blocks under a power of two, as those of OCP MX.
constexpr bool isMX(BlockFormat format) { return factsOf(format).scale == ScaleFormat::F8E8M0FNU; }
/// Blocks under an f8E4M3FN, and the tensor under an f32: NVFP4.
constexpr bool hasE4M3Scales(BlockFormat format) {
  return factsOf(format).scale == ScaleFormat::F8E4M3FN;
}
/// Blocks under an f32, of 1 x 128 or 128 x 128 elements.
constexpr bool hasF32Scales(BlockFormat format) { return factsOf(format).scale == ScaleFormat::F32; }
/// Elements of a row whose scales take 32 bits: four blocks, or one under an f32.
constexpr unsigned elementsOfScaleWord(BlockFormat format) {
  return (hasF32Scales(format) ? 1 : 4) * blockSizeOf(format);
}
/// Two codes per byte, or one code in the low bits of each byte.
constexpr bool isPacked(BlockFormat format) { return elementOf(format).bits == 4; }

} // namespace fp4::numerics
