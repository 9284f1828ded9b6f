// Element and scale formats: every code, every rounding boundary with its neighbours, and dense
// sweeps.
//
// Sources: (1) the value tables of the OCP specifications, restated here with ldexp; nearest-even
// is found by searching them. For E2M1 also the comparison form of CUDA's documentation. (2) CUDA's
// own host implementations (cuda_fp4.hpp, cuda_fp8.hpp of toolkit 13.0), as hashes over a sweep of
// the fp32 bit patterns; oracles/cuda_format_hashes.cpp prints them. With its argument "all" and
// FP4_SWEEP_ALL set here, all 2^32 patterns were compared once, and agreed.
#include "TestData.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

float above(float x) { return std::nextafterf(x, INFINITY); }
float below(float x) { return std::nextafterf(x, -INFINITY); }
const float quietNaN = floatOf(0x7FC00000), negativeNaN = floatOf(0xFFC00000);

/// Checks an encoder at and around every boundary between adjacent codes lo and lo + 1 of the
/// non-negative half: the midpoint goes to the even code.
template <typename Encode, typename Decode>
void checkBoundaries(unsigned lastCode, Encode encode, Decode decode, unsigned signBit) {
  for (unsigned lo = 0; lo < lastCode; ++lo) {
    const float mid = static_cast<float>((double(decode(lo)) + double(decode(lo + 1))) / 2);
    const unsigned even = lo % 2 ? lo + 1 : lo;
    EXPECT_EQ(encode(mid), even) << lo;
    EXPECT_EQ(encode(above(mid)), lo + 1) << lo;
    EXPECT_EQ(encode(below(mid)), lo) << lo;
    EXPECT_EQ(encode(-mid), even | signBit) << lo;
    EXPECT_EQ(encode(below(-mid)), (lo + 1) | signBit) << lo;
    EXPECT_EQ(encode(above(-mid)), lo | signBit) << lo;
  }
}

//===--- E2M1 ------------------------------------------------------------===//

TEST(E2M1, values) {
  for (unsigned code = 0; code < 16; ++code) {
    const unsigned e = code >> 1 & 3, m = code & 1;
    const double v = e == 0 ? m * 0.5 : std::ldexp(1 + m * 0.5, int(e) - 1);
    EXPECT_EQ(bitsOf(decodeE2M1(code)), bitsOf(static_cast<float>(code & 8 ? -v : v)));
    EXPECT_EQ(encodeE2M1(decodeE2M1(code)), code);
  }
}

TEST(E2M1, boundaries) {
  checkBoundaries(
      7, [](float x) { return unsigned(encodeE2M1(x)); }, [](unsigned c) { return decodeE2M1(c); },
      8);
  EXPECT_EQ(encodeE2M1(5.f), 6);
  EXPECT_EQ(encodeE2M1(above(5.f)), 7);
}

TEST(E2M1, specials) {
  EXPECT_EQ(encodeE2M1(INFINITY), 7);
  EXPECT_EQ(encodeE2M1(-INFINITY), 15);
  EXPECT_EQ(encodeE2M1(FLT_MAX), 7);
  EXPECT_EQ(encodeE2M1(quietNaN), 7);
  EXPECT_EQ(encodeE2M1(negativeNaN), 7);
  EXPECT_EQ(encodeE2M1(0.f), 0);
  EXPECT_EQ(encodeE2M1(-0.f), 8);
  EXPECT_EQ(encodeE2M1(-1e-45f), 8);
}

unsigned byComparison(float x) {
  const float a = std::fabs(x);
  return (a > .25f) + (a >= .75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) +
         (a > 5.f) + (std::signbit(x) ? 8 : 0);
}

TEST(E2M1, equalsComparisonForm) {
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 251) {
    const float x = floatOf(static_cast<uint32_t>(bits));
    if (!std::isnan(x))
      ASSERT_EQ(encodeE2M1(x), byComparison(x)) << x;
  }
}

TEST(E2M1, packing) {
  const std::vector<uint8_t> codes = {1, 2, 3, 4, 15};
  std::vector<uint8_t> packed(3), back(5);
  packE2M1(codes, packed);
  EXPECT_EQ(packed, (std::vector<uint8_t>{0x21, 0x43, 0x0F}));
  unpackE2M1(packed, back);
  EXPECT_EQ(back, codes);
}

// The exhaustive 256-byte table of TransformerEngine's software rounding, and probes of B300.
TEST(E2M1, stochasticRoundsUpInProportion) {
  const struct {
    float x;
    int ups; // of 256
    unsigned low;
  } cases[] = {{0.25f, 128, 0}, {1.25f, 128, 2}, {2.5f, 128, 4}, {5.f, 128, 6},   {5.5f, 192, 6},
               {0.1f, 51, 0},   {3.f, 0, 5},     {0.f, 0, 0},    {5.999f, 255, 6}};
  for (const auto &c : cases)
    for (float sign : {1.f, -1.f}) {
      int ups = 0;
      for (unsigned r = 0; r < 256; ++r) {
        const uint8_t code = encodeE2M1Stochastic(sign * c.x, static_cast<uint8_t>(r));
        EXPECT_EQ(code >> 3, sign < 0);
        EXPECT_TRUE((code & 7) == c.low || (code & 7) == c.low + 1) << c.x;
        ups += (code & 7) == c.low + 1;
      }
      EXPECT_EQ(ups, c.ups) << c.x;
    }
  for (unsigned r = 0; r < 256; ++r) {
    for (unsigned code = 0; code < 16; ++code)
      EXPECT_EQ(encodeE2M1Stochastic(decodeE2M1(code), static_cast<uint8_t>(r)), code);
    EXPECT_EQ(encodeE2M1Stochastic(7.f, static_cast<uint8_t>(r)), 7);
    EXPECT_EQ(encodeE2M1Stochastic(quietNaN, static_cast<uint8_t>(r)), 7);
  }
}

TEST(E2M1, stochasticPacksInPtxOrder) {
  for (auto mapping : {StochasticMapping::Hardware, StochasticMapping::TransformerEngine})
    EXPECT_EQ(encodeE2M1x4Stochastic(6, -4, 0.5f, 1, 0x12345678, mapping), 0x7E12);
  // The byte of each position: 0.25 rounds up iff its byte is at least 128.
  const auto te = StochasticMapping::TransformerEngine;
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x00000080, te), 0x0001);
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x80000000, te), 0x1000);
  const auto hw = StochasticMapping::Hardware;
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x80000000, hw), 0x0100); // b
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x00800000, hw), 0x0001); // f
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x00000100, hw), 0x1000); // a, reversed
  EXPECT_EQ(encodeE2M1x4Stochastic(.25f, .25f, .25f, .25f, 0x00000001, hw), 0x0010); // e, reversed
}

//===--- E4M3 ------------------------------------------------------------===//

TEST(E4M3, values) {
  for (unsigned code = 0; code < 256; ++code) {
    const unsigned e = code >> 3 & 15, m = code & 7;
    const float got = decodeE4M3(static_cast<uint8_t>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(got));
      EXPECT_EQ(std::signbit(got), code == 0xFF);
      continue;
    }
    const double v = e == 0 ? std::ldexp(m, -9) : std::ldexp(1 + m / 8.0, int(e) - 7);
    EXPECT_EQ(bitsOf(got), bitsOf(static_cast<float>(code & 0x80 ? -v : v))) << code;
    EXPECT_EQ(encodeE4M3(got), code);
    EXPECT_EQ(encodeE4M3NonSaturating(got), code);
    EXPECT_EQ(decodeUE4M3(static_cast<uint8_t>(code)), static_cast<float>(v));
  }
}

TEST(E4M3, boundaries) {
  const auto decode = [](unsigned c) { return decodeE4M3(static_cast<uint8_t>(c)); };
  checkBoundaries(0x7E, [](float x) { return unsigned(encodeE4M3(x)); }, decode, 0x80);
  checkBoundaries(0x7E, [](float x) { return unsigned(encodeE4M3NonSaturating(x)); }, decode, 0x80);
}

TEST(E4M3, overflowAndNaN) {
  EXPECT_EQ(encodeE4M3(464.f), 0x7E);
  EXPECT_EQ(encodeE4M3(FLT_MAX), 0x7E);
  EXPECT_EQ(encodeE4M3(-INFINITY), 0xFE);
  EXPECT_EQ(encodeE4M3(quietNaN), 0x7F);
  EXPECT_EQ(encodeE4M3(negativeNaN), 0x7F);
  EXPECT_EQ(encodeE4M3NonSaturating(464.f), 0x7E); // the tie stays
  EXPECT_EQ(encodeE4M3NonSaturating(above(464.f)), 0x7F);
  EXPECT_EQ(encodeE4M3NonSaturating(-INFINITY), 0xFF);
  EXPECT_EQ(encodeE4M3NonSaturating(negativeNaN), 0xFF);
  EXPECT_EQ(encodeE4M3(0x1p-10f), 0); // tie to even
  EXPECT_EQ(encodeE4M3(above(0x1p-10f)), 1);
  EXPECT_EQ(encodeE4M3(-0.f), 0x80);
}

//===--- UE8M0 -----------------------------------------------------------===//

TEST(UE8M0, everyCodeAndItsNeighbours) {
  for (int code = 0; code < 255; ++code) {
    const float v = decodeUE8M0(static_cast<uint8_t>(code));
    EXPECT_EQ(double(v), std::ldexp(1.0, code - 127));
    for (float sign : {1.f, -1.f}) {
      EXPECT_EQ(encodeUE8M0Up(sign * v), code);
      EXPECT_EQ(encodeUE8M0TowardZero(sign * v), code);
      EXPECT_EQ(encodeUE8M0Up(sign * above(v)), std::min(code + 1, 254)) << code;
      EXPECT_EQ(encodeUE8M0TowardZero(sign * above(v)), code);
      if (code > 0) {
        EXPECT_EQ(encodeUE8M0Up(sign * below(v)), code) << code;
        EXPECT_EQ(encodeUE8M0TowardZero(sign * below(v)), code - 1) << code;
      }
    }
  }
  EXPECT_TRUE(std::isnan(decodeUE8M0(255)));
}

TEST(UE8M0, specials) { // numerics of CUDA's host code and of PyTorch, as they were run
  const struct {
    float x;
    uint8_t up, zero, nearest;
  } rows[] = {{0.f, 0, 0, 0},
              {-0.f, 0, 0, 0},
              {6.f, 0x82, 0x81, 0x82},
              {5.f, 0x82, 0x81, 0x81},
              {-6.f, 0x82, 0x81, 0x82},
              {INFINITY, 0xFE, 0xFE, 0xFF},
              {quietNaN, 0xFF, 0xFF, 0xFF},
              {3.4e38f, 0xFE, 0xFE, 0xFF},
              {0x1p-127f, 0, 0, 0},
              {0x1p-149f, 0, 0, 0}};
  for (const auto &r : rows) {
    EXPECT_EQ(encodeUE8M0Up(r.x), r.up) << r.x;
    EXPECT_EQ(encodeUE8M0TowardZero(r.x), r.zero) << r.x;
    EXPECT_EQ(encodeUE8M0Nearest(r.x), r.nearest) << r.x;
  }
}

//===--- CUDA's own conversions ------------------------------------------===//

TEST(Formats, equalCudaOverASweep) {
  const bool all = std::getenv("FP4_SWEEP_ALL") != nullptr;
  uint64_t hashes[5];
  std::fill(std::begin(hashes), std::end(hashes), test::fnvBasis);
  for (uint64_t bits = 0; bits < (1ull << 32); bits += all ? 1 : 2039) {
    const float x = floatOf(static_cast<uint32_t>(bits));
    test::fnv(hashes[0], encodeE2M1(x));
    test::fnv(hashes[1], encodeE4M3(x));
    test::fnv(hashes[2], std::isnan(x) ? 0x7F : encodeE4M3NonSaturating(x));
    test::fnv(hashes[3], encodeUE8M0Up(x));
    test::fnv(hashes[4], encodeUE8M0TowardZero(x));
  }
  if (all) { // compared by eye with the output of oracles/cuda_format_hashes.cpp all
    for (uint64_t hash : hashes)
      printf("%016llx\n", static_cast<unsigned long long>(hash));
    return;
  }
  EXPECT_EQ(hashes[0], 0xfd12dc844184dda5u) << "e2m1";
  EXPECT_EQ(hashes[1], 0x98ecadb8031d6c2au) << "e4m3";
  EXPECT_EQ(hashes[2], 0xd1a32808d860363au) << "e4m3, not saturating";
  EXPECT_EQ(hashes[3], 0x9bbe24960bf2bae6u) << "ue8m0, up";
  EXPECT_EQ(hashes[4], 0x727c8045b0c23f28u) << "ue8m0, toward zero";
}

//===--- bf16 and f16 ----------------------------------------------------===//

TEST(Float16, everyCodeRoundTripsAndEveryMidpointGoesToEven) {
  const struct {
    FloatType type;
    unsigned infinity;
  } types[] = {{FloatType::BF16, 0x7F80}, {FloatType::F16, 0x7C00}};
  for (const auto &[type, infinity] : types) {
    const auto decode = [type = type](unsigned c) {
      return type == FloatType::BF16 ? decodeBF16(c) : decodeF16(c);
    };
    const auto encode = [type = type](float x) {
      return unsigned(type == FloatType::BF16 ? encodeBF16(x) : encodeF16(x));
    };
    for (unsigned code = 0; code <= infinity; ++code) {
      EXPECT_EQ(encode(decode(code)), code);
      EXPECT_EQ(encode(-decode(code)), code | 0x8000);
    }
    checkBoundaries(infinity - 1, encode, decode, 0x8000);
    EXPECT_EQ(encode(quietNaN), 0x7FFFu);
    EXPECT_EQ(encode(negativeNaN), 0x7FFFu);
    EXPECT_TRUE(std::isnan(decode(0x7FFF)));
    EXPECT_EQ(encode(FLT_MAX), infinity);
  }
  EXPECT_EQ(encodeF16(65504.f), 0x7BFF);
  EXPECT_EQ(encodeF16(below(65520.f)), 0x7BFF);
  EXPECT_EQ(encodeF16(65520.f), 0x7C00);
  EXPECT_EQ(decodeF16(0x0001), 0x1p-24f);
}

TEST(Float16, arraysOfBytes) {
  const std::vector<float> values = {1.f, -0.f, 3.140625f, 65504.f};
  for (FloatType type : {FloatType::F32, FloatType::BF16, FloatType::F16}) {
    const auto bytes = encodeFloats(type, values);
    EXPECT_EQ(bytes.size(), 4 * sizeOf(type));
    const auto back = decodeFloats(type, bytes);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(bitsOf(back[i]), bitsOf(roundTo(type, values[i])));
    EXPECT_EQ(parseFloatType(stringify(type)), type);
  }
}

} // namespace
