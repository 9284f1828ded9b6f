// The block quantizers. Every expression here is one order of fp32 operations that some library
// fixed; the library is compiled with -ffp-contract=off so that none is fused.
#include "fp4/Numerics/Quantize.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/UE8M0.h"
#include <array>
#include <cfloat>
#include <cmath>
#include <string>

namespace fp4::numerics {
namespace {

constexpr float oneSixth = 0x1.555556p-3f; // fp32(1/6), 0x3E2AAAAB
constexpr size_t maxBlock = 32;

/// Upper bound that NaN passes through.
float clampKeepNaN(float x, float upper) { return x > upper ? upper : x; }
/// Upper bound that NaN takes (fminf).
float clampDropNaN(float x, float upper) { return x < upper ? x : upper; }
/// Lower bound that NaN passes through.
float floorKeepNaN(float x, float lower) { return x < lower ? lower : x; }

float spellScale(const Recipe &recipe, const GlobalScale &g, float blockAmax) {
  switch (recipe.scale) {
  case ScaleSpelling::MultiplyFolded:
    return blockAmax * (g.encode * oneSixth);
  case ScaleSpelling::DivideThenMultiply:
    return blockAmax / 6.f * g.encode;
  case ScaleSpelling::MultiplyThenMultiply:
    return g.encode * (blockAmax * oneSixth);
  case ScaleSpelling::DivideTwice:
    return blockAmax / 6.f / g.decode;
  case ScaleSpelling::DivideByProduct: {
    const float s = blockAmax / (6.f * g.decode);
    return s == 0.f ? 1.f : s;
  }
  }
  return 0.f;
}

uint8_t castScale(const Recipe &recipe, float s) {
  if (recipe.scaleFloor > 0)
    s = floorKeepNaN(s, recipe.scaleFloor);
  if (std::isnan(s))
    return 0x7F; // the sign of a NaN is the platform's, not the recipe's
  // The recipes that use a non-saturating cast clamp first; ModelOpt does not, and reaches NaN
  // above 464.
  if (recipe.saturatingScaleCast)
    return encodeE4M3(s);
  if (recipe.scale != ScaleSpelling::DivideByProduct)
    s = clampKeepNaN(s, e4m3Max);
  return encodeE4M3NonSaturating(s);
}

float spellFactor(const Recipe &recipe, const GlobalScale &g, float f) {
  switch (recipe.encode) {
  case EncodeSpelling::ReciprocalOfProduct:
    return 1.f / (f * g.decode);
  case EncodeSpelling::GlobalOverScale:
    return g.encode / f;
  case EncodeSpelling::ReciprocalOverScale:
    return 1.f / g.decode / f;
  case EncodeSpelling::GlobalTimesReciprocal:
    return g.encode * (1.f / f);
  case EncodeSpelling::DivideByProduct:
    return g.decode * f; // the divisor
  case EncodeSpelling::BF16GlobalOverScale: {
    const float bf16Max = decodeBF16(0x7F7F);
    return roundTo(FloatType::BF16, clampDropNaN(g.encode / f, bf16Max));
  }
  }
  return 0.f;
}

float encodeFactor(const Recipe &recipe, const GlobalScale &g, float blockAmax, float f) {
  if (recipe.guard == FactorGuard::EpsilonScale)
    f = floorKeepNaN(f, 1e-12f);
  const float factor = spellFactor(recipe, g, f);
  switch (recipe.guard) {
  case FactorGuard::ClampDropNaN:
    return clampDropNaN(factor, FLT_MAX);
  case FactorGuard::ClampKeepNaN:
    return clampKeepNaN(factor, FLT_MAX);
  case FactorGuard::ZeroIfAmaxZero:
    return blockAmax != 0.f ? factor : 0.f;
  case FactorGuard::ZeroIfAmaxZeroClamp:
    return blockAmax != 0.f ? clampDropNaN(factor, FLT_MAX) : 0.f;
  case FactorGuard::ZeroIfScaleZero:
    return f != 0.f ? factor : 0.f;
  case FactorGuard::EpsilonScale:
  case FactorGuard::None:
    break;
  }
  return factor;
}

void encodeElements(const Recipe &recipe, float factor, std::span<const float> block,
                    std::span<uint8_t> codes) {
  for (size_t i = 0; i < block.size(); ++i) {
    const bool divides = recipe.encode == EncodeSpelling::DivideByProduct;
    float y = divides ? block[i] / factor : block[i] * factor;
    if (recipe.encode == EncodeSpelling::BF16GlobalOverScale)
      y = roundTo(FloatType::BF16, y);
    codes[i] = encodeE2M1(y);
    if (!recipe.keepNegativeZero && y == 0.f)
      codes[i] = 0;
  }
}

struct Candidate {
  uint8_t scale = 0;
  std::array<uint8_t, maxBlock> codes{};
  float error = 0.f;
};

/// Four-over-six: the block scaled so that its amax maps to 6 / stretch, with the sum of absolute
/// errors in element order (fp32, as TransformerEngine accumulates it).
Candidate quantizeStretched(const Recipe &recipe, const GlobalScale &g,
                            std::span<const float> block, float blockAmax, float stretch) {
  Candidate c;
  c.scale = encodeE4M3(clampDropNaN(spellScale(recipe, g, blockAmax) * stretch, e4m3Max));
  const float f = decodeE4M3(c.scale);
  encodeElements(recipe, encodeFactor(recipe, g, blockAmax, f), block, c.codes);
  for (size_t i = 0; i < block.size(); ++i) {
    const float back = decodeE2M1(c.codes[i]) * f * g.amax / (6.f * recipe.e4m3Max);
    c.error += std::fabs(back - block[i]);
  }
  return c;
}

uint8_t quantizeFourOverSix(const Recipe &recipe, const GlobalScale &g,
                            std::span<const float> block, std::span<uint8_t> codes,
                            float blockAmax) {
  const Candidate four = quantizeStretched(recipe, g, block, blockAmax, 1.5f);
  const Candidate six = quantizeStretched(recipe, g, block, blockAmax, 1.f);
  const Candidate &best = four.error < six.error ? four : six;
  std::copy_n(best.codes.begin(), block.size(), codes.begin());
  return best.scale;
}

uint8_t exponentByte(ExponentRule rule, float blockAmax) {
  const uint32_t u = bitsOf(blockAmax);
  const int exponent = static_cast<int>(u >> 23), mantissa = static_cast<int>(u & 0x7FFFFF);
  if (exponent == 0xFF)
    return ue8m0NaN;
  int byte = exponent - 2;
  switch (rule) {
  case ExponentRule::Floor:
    break;
  case ExponentRule::Ceil:
    byte += mantissa != 0;
    break;
  case ExponentRule::Even:
    if (u + (1u << 21) >= 0x7F800000)
      return ue8m0NaN;
    byte = static_cast<int>((u + (1u << 21)) >> 23) - 2;
    break;
  case ExponentRule::EvenDown:
    byte = static_cast<int>((u + (1u << 21) - 1) >> 23) - 2;
    break;
  case ExponentRule::RoundUp:
    return encodeUE8M0Up(blockAmax * oneSixth);
  case ExponentRule::RoundUpDivide:
    return encodeUE8M0Up(blockAmax / 6.f);
  }
  return static_cast<uint8_t>(byte < 0 ? 0 : byte > 254 ? 254 : byte);
}

/// 2^(127 - byte): exact, a subnormal for 254, NaN for 255.
float exponentFactor(uint8_t byte) {
  return byte == ue8m0NaN ? decodeUE8M0(ue8m0NaN)
                          : static_cast<float>(std::ldexp(1.0, 127 - static_cast<int>(byte)));
}

Status checkSize(std::string_view what, size_t got, uint64_t expected) {
  if (got == expected)
    return {};
  return makeError(ErrorKind::Usage, std::string(what) + " must have " + std::to_string(expected) +
                                         " elements, but got " + std::to_string(got));
}

Status checkColumns(BlockFormat format, uint64_t columns) {
  const unsigned block = blockSizeOf(format);
  if (columns % block == 0)
    return {};
  return makeError(ErrorKind::Usage,
                   "columns must be a multiple of " + std::to_string(block) + " for " +
                       std::string(stringify(format)) + ", but got " + std::to_string(columns),
                   "pad the rows with zeros");
}

} // namespace

float amax(std::span<const float> values, NanPolicy policy) {
  uint32_t most = 0; // magnitudes order as integers, NaN above infinity
  for (float x : values) {
    const uint32_t a = bitsOf(x) & 0x7FFFFFFF;
    if (a > 0x7F800000 && policy == NanPolicy::Drop)
      continue;
    most = a > most ? a : most;
  }
  return most > 0x7F800000 ? floatOf(0x7FC00000) : floatOf(most);
}

GlobalScale globalScale(const Recipe &recipe, float tensorAmax) {
  const float full = 6.f * recipe.e4m3Max;
  GlobalScale g;
  g.amax = tensorAmax;
  switch (recipe.global) {
  case GlobalRule::One:
    return g;
  case GlobalRule::GuardedDivide:
    g.encode = clampDropNaN(full / tensorAmax, FLT_MAX);
    if (tensorAmax == 0.f || g.encode == 0.f)
      g.encode = 1.f;
    break;
  case GlobalRule::Divide:
    g.encode = full / tensorAmax;
    break;
  case GlobalRule::Reciprocal:
    g.encode = full * (1.f / tensorAmax);
    break;
  case GlobalRule::DecodeDivide:
    g.decode = tensorAmax / full;
    return g;
  }
  g.decode = 1.f / g.encode;
  return g;
}

uint8_t quantizeBlock(const Recipe &recipe, const GlobalScale &global, std::span<const float> block,
                      std::span<uint8_t> codes) {
  const float blockAmax = amax(block, recipe.amaxNaN);
  if (recipe.format == BlockFormat::MXFP4) {
    const uint8_t byte = exponentByte(recipe.exponent, blockAmax);
    encodeElements(recipe, exponentFactor(byte), block, codes);
    return byte;
  }
  if (recipe.fourOverSix)
    return quantizeFourOverSix(recipe, global, block, codes, blockAmax);
  const uint8_t byte = castScale(recipe, spellScale(recipe, global, blockAmax));
  encodeElements(recipe, encodeFactor(recipe, global, blockAmax, decodeE4M3(byte)), block, codes);
  return byte;
}

Expected<QuantizedMatrix> quantizeRows(const Recipe &recipe, std::span<const float> values,
                                       uint64_t rows, uint64_t columns,
                                       std::optional<float> tensorAmax) {
  FP4_TRY(checkColumns(recipe.format, columns));
  FP4_TRY(checkSize("values", values.size(), rows * columns));
  const unsigned block = blockSizeOf(recipe.format);
  QuantizedMatrix out{rows, columns, std::vector<uint8_t>(rows * columns / 2),
                      std::vector<uint8_t>(rows * columns / block), 0.f};
  if (recipe.format == BlockFormat::NVFP4)
    out.tensorAmax = tensorAmax ? *tensorAmax : amax(values, recipe.amaxNaN);
  const GlobalScale global = globalScale(recipe, out.tensorAmax);
  std::array<uint8_t, maxBlock> codes;
  for (size_t i = 0; i < out.scales.size(); ++i) {
    out.scales[i] = quantizeBlock(recipe, global, values.subspan(i * block, block), codes);
    packE2M1({codes.data(), block}, std::span(out.data).subspan(i * block / 2, block / 2));
  }
  return out;
}

Expected<std::vector<float>> dequantizeRows(BlockFormat format, std::span<const uint8_t> data,
                                            std::span<const uint8_t> scales, uint64_t rows,
                                            uint64_t columns, float tensorAmax, float e4m3Limit) {
  FP4_TRY(checkColumns(format, columns));
  const unsigned block = blockSizeOf(format);
  FP4_TRY(checkSize("data", data.size(), rows * columns / 2));
  FP4_TRY(checkSize("scales", scales.size(), rows * columns / block));
  const float inverse = static_cast<float>(1.0 / (6.0 * static_cast<double>(e4m3Limit)));
  std::vector<float> out(rows * columns);
  for (size_t b = 0; b < scales.size(); ++b) {
    const float f = format == BlockFormat::NVFP4 ? decodeE4M3(scales[b]) * tensorAmax * inverse
                                                 : decodeUE8M0(scales[b]);
    for (size_t i = b * block; i < (b + 1) * block; ++i)
      out[i] = decodeE2M1(static_cast<uint8_t>(data[i / 2] >> (i % 2 * 4))) * f;
  }
  return out;
}

Expected<std::vector<uint8_t>> swizzleScales(std::span<const uint8_t> scales, uint64_t rows,
                                             uint64_t blocks) {
  FP4_TRY(checkSize("scales", scales.size(), rows * blocks));
  std::vector<uint8_t> tiled(hw::tiled128x4Bytes(rows, blocks));
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      tiled[hw::tiled128x4Offset(r, b, blocks)] = scales[r * blocks + b];
  return tiled;
}

Expected<std::vector<uint8_t>> unswizzleScales(std::span<const uint8_t> tiled, uint64_t rows,
                                               uint64_t blocks) {
  FP4_TRY(checkSize("tiled scales", tiled.size(), hw::tiled128x4Bytes(rows, blocks)));
  std::vector<uint8_t> scales(rows * blocks);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t b = 0; b < blocks; ++b)
      scales[r * blocks + b] = tiled[hw::tiled128x4Offset(r, b, blocks)];
  return scales;
}

} // namespace fp4::numerics
