//===- LaterPtxTest.cpp - Scalar instructions of PTX 9.1 to 9.5, bit for bit ----===//
//
// References are the host's arithmetic and searches in lists of values, which have nothing in
// common with the simulator's encoders.
//
//===----------------------------------------------------------------------===//
#include "Lanewise.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// A word of four bytes, each of them f of the bytes of a and b.
template <typename T, typename F> auto bytes(F f) {
  return [f](uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (int at = 0; at < 32; at += 8)
      result |= uint32_t(uint8_t(f(int(T(a >> at)), int(T(b >> at))))) << at;
    return result;
  };
}

TEST(LaterPtx, PackedBytes) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1);
  const auto clamp = [](int x, int low, int high) { return std::clamp(x, low, high); };
  expectLanes<uint32_t>("add.u8x4 %d, %a, %b;", bytes<uint8_t>([](int x, int y) { return x + y; }),
                        a, b);
  expectLanes<uint32_t>("sub.s8x4 %d, %a, %b;", bytes<int8_t>([](int x, int y) { return x - y; }),
                        a, b);
  expectLanes<uint32_t>("min.u8x4 %d, %a, %b;",
                        bytes<uint8_t>([](int x, int y) { return std::min(x, y); }), a, b);
  expectLanes<uint32_t>("max.s8x4 %d, %a, %b;",
                        bytes<int8_t>([](int x, int y) { return std::max(x, y); }), a, b);
  expectLanes<uint32_t>("min.relu.s8x4 %d, %a, %b;",
                        bytes<int8_t>([](int x, int y) { return std::max(std::min(x, y), 0); }), a,
                        b);
  expectLanes<uint32_t>("add.sat.s8x4 %d, %a, %b;",
                        bytes<int8_t>([=](int x, int y) { return clamp(x + y, -128, 127); }), a, b);
  expectLanes<uint32_t>("add.sat.u8x4 %d, %a, %b;",
                        bytes<uint8_t>([=](int x, int y) { return clamp(x + y, 0, 255); }), a, b);
  expectLanes<uint32_t>(
      "neg.s8x4 %d, %a;",
      [](uint32_t x) { return bytes<int8_t>([](int y, int) { return -y; })(x, 0); }, a);
  expectLanes<uint32_t>(
      "add.sat.u32 %d, %a, %b;",
      [](uint32_t x, uint32_t y) { return uint32_t(std::min<uint64_t>(uint64_t(x) + y, ~0u)); }, a,
      b);
  expectLanes<uint32_t>(
      "add.sat.u16x2 %d, %a, %b;",
      [](uint32_t x, uint32_t y) {
        return std::min((x & 0xFFFF) + (y & 0xFFFF), 0xFFFFu) |
               std::min((x >> 16) + (y >> 16), 0xFFFFu) << 16;
      },
      a, b);
}

TEST(LaterPtx, ComparisonsOfParts) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1);
  expectLanes<uint32_t>("set.lt.u8x4 %d, %a, %b;",
                        bytes<uint8_t>([](int x, int y) { return x < y ? 255 : 0; }), a, b);
  expectLanes<uint32_t>("set.ge.s8x4 %d, %a, %b;",
                        bytes<int8_t>([](int x, int y) { return x >= y ? 255 : 0; }), a, b);
  expectLanes<uint32_t>(
      "set.le.s16x2 %d, %a, %b;",
      [](uint32_t x, uint32_t y) {
        return (int16_t(x) <= int16_t(y) ? 0xFFFFu : 0) |
               (int16_t(x >> 16) <= int16_t(y >> 16) ? 0xFFFF0000u : 0);
      },
      a, b);
}

TEST(LaterPtx, CarrylessProducts) {
  auto a = integers<uint64_t>(0), b = integers<uint64_t>(1), c = integers<uint64_t>(2);
  const auto product = [](uint64_t x, uint64_t y, bool high) { // column by column
    uint64_t result = 0;
    for (int column = 0; column < 64; ++column) {
      int bit = 0;
      for (int i = 0; i < 64; ++i)
        if (const int j = column + (high ? 64 : 0) - i; j >= 0 && j < 64)
          bit ^= int(x >> i & 1) & int(y >> j & 1);
      result |= uint64_t(bit) << column;
    }
    return result;
  };
  expectLanes<uint64_t>(
      "clmad.lo.u64 %d, %a, %b, %c;",
      [&](uint64_t x, uint64_t y, uint64_t z) { return product(x, y, false) ^ z; }, a, b, c);
  expectLanes<uint64_t>(
      "clmad.hi.u64 %d, %a, %b, %c;",
      [&](uint64_t x, uint64_t y, uint64_t z) { return product(x, y, true) ^ z; }, a, b, c);
}

/// All 65,536 pairs of codes, and scales beside them.
std::vector<uint16_t> pairs() {
  std::vector<uint16_t> all;
  for (uint32_t code = 0; code < 0x10000; ++code)
    all.push_back(uint16_t(code));
  return all;
}
std::vector<uint16_t> scalePairs() {
  std::vector<uint16_t> all;
  for (uint32_t i = 0; i < 0x10000; ++i)
    all.push_back(uint16_t((i * 40503u >> 3) & 0xFFFF));
  return all;
}

float scaleOf(uint8_t code) { return code == 255 ? NAN : std::ldexp(1.0f, int(code) - 127); }
uint16_t brain(double x) {
  if (std::isnan(x))
    return 0x7FFF;
  // 8 bits of significand, to nearest even, by the host's double.
  if (x == 0 || std::isinf(x))
    return uint16_t((std::signbit(x) ? 0x8000 : 0) | (x == 0 ? 0 : 0x7F80));
  const int exponent = std::max(std::ilogb(x), -126);
  const double unit = std::ldexp(1.0, exponent - 7), rounded = std::nearbyint(x / unit) * unit;
  return uint16_t(std::bit_cast<uint32_t>(float(rounded)) >> 16);
}

/// UE5M3 by its definition: bias 15, no infinity, one NaN.
double ue5m3(uint8_t code) {
  if (code == 0xFF)
    return NAN;
  return code < 8 ? std::ldexp(code, -17) : std::ldexp(8 + (code & 7), (code >> 3) - 15 - 3);
}
double s2f6(uint8_t code) { return int8_t(code) / 64.0; }

TEST(LaterPtx, NarrowToBF16) {
  const struct {
    const char *name;
    double (*value)(uint8_t);
  } formats[] = {{"e4m3x2", [](uint8_t c) -> double { return numerics::decodeE4M3(c); }},
                 {"ue5m3x2", ue5m3},
                 {"s2f6x2", s2f6}};
  const auto codes = pairs(), scales = scalePairs();
  for (const auto &[name, value] : formats) {
    const std::string cvt = "cvt.rn.bf16x2." + std::string(name) + " %d, %a;";
    expectLanes<uint32_t>(
        cvt,
        [&](uint16_t c) {
          return brain(value(uint8_t(c))) | uint32_t(brain(value(uint8_t(c >> 8)))) << 16;
        },
        codes);
    expectLanes<uint32_t>(
        "cvt.rn.scaled::n2::ue8m0.bf16x2." + std::string(name) + " %d, %a, %b;",
        [&](uint16_t c, uint16_t s) {
          return brain(value(uint8_t(c)) * scaleOf(uint8_t(s))) |
                 uint32_t(brain(value(uint8_t(c >> 8)) * scaleOf(uint8_t(s >> 8)))) << 16;
        },
        codes, scales);
  }
}

/// The code of the value nearest to `x` of a format without sign, ties to the even code; with
/// `down` or `up` the neighbour in that direction.
template <typename Value> uint8_t nearest(double x, Value value, unsigned codes, char mode) {
  unsigned best = 0;
  for (unsigned code = 0; code < codes; ++code)
    if (value(uint8_t(code)) <= x)
      best = code;
  const double low = value(uint8_t(best));
  if (low == x || best + 1 == codes || mode == 'z')
    return uint8_t(best);
  const double middle = (low + value(uint8_t(best + 1))) / 2;
  return uint8_t(mode == 'p' || x > middle || (x == middle && best % 2) ? best + 1 : best);
}

TEST(LaterPtx, FloatsToUE5M3) {
  auto a = floats(0), b = floats(1);
  for (size_t i = 0; i < a.size(); i += 2)
    a[i] = float(std::ldexp(1.0 + double(i) / double(a.size()), int(i % 40) - 22)); // in its range
  for (const char *mode : {"rn", "rz", "rp"}) {
    const auto one = [&](float x) -> uint8_t {
      if (std::isnan(x))
        return 0xFF;
      return std::fabs(x) >= 114688 ? 0xFE : nearest(std::fabs(x), ue5m3, 0xFF, mode[1]);
    };
    expectLanes<uint16_t>(
        "cvt." + std::string(mode) + ".satfinite.ue5m3x2.f32 %d, %a, %b;",
        [&](float x, float y) { return uint16_t(one(x) << 8 | one(y)); }, a, b);
  }
}

TEST(LaterPtx, FloatsToFixedPoint) {
  auto a = floats(0), b = floats(1);
  for (size_t i = 0; i < a.size(); i += 2)
    a[i] = (float(i) - 1000) / 511; // about -2 to 2
  const auto one = [](double x) {
    if (std::isnan(x))
      return uint8_t(127);
    return uint8_t(
        int8_t(std::clamp(std::nearbyint(std::clamp(x, -4.0, 4.0) * 64), -128.0, 127.0)));
  };
  expectLanes<uint16_t>(
      "cvt.rn.satfinite.s2f6x2.f32 %d, %a, %b;",
      [&](float x, float y) { return uint16_t(one(x) << 8 | one(y)); }, a, b);
  expectLanes<uint16_t>(
      "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %d, %a, %b, 0x8280;",
      [&](float x, float y) { return uint16_t(one(double(x) / 8) << 8 | one(double(y) / 2)); }, a,
      b);
}

TEST(LaterPtx, OneScaleDividesAndFlushes) {
  auto a = floats(0), b = floats(1);
  const auto divided = [](float x) {
    return float(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : double(x) / 4);
  };
  expectLanes<uint16_t>(
      "cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32 %d, %a, %b, 0x81;",
      [&](float x, float y) {
        return uint16_t(numerics::encodeE4M3(divided(x)) << 8 | numerics::encodeE4M3(divided(y)));
      },
      a, b);
}

TEST(LaterPtx, NegativeZerosAndTruncation) {
  auto a = floats(0), b = floats(1);
  const auto positive = [](uint8_t code) { return code == 0x80 ? uint8_t(0) : code; };
  expectLanes<uint16_t>(
      "cvt.rn.satfinite.pzo.e4m3x2.f32 %d, %a, %b;",
      [&](float x, float y) {
        return uint16_t(positive(numerics::encodeE4M3(x)) << 8 | positive(numerics::encodeE4M3(y)));
      },
      a, b);
  const auto truncated = [](float x) -> uint8_t { // the e2m1 code of the next magnitude below
    if (std::isnan(x))
      return 7;
    uint8_t code = 0;
    for (uint8_t c = 0; c < 8; ++c)
      if (numerics::decodeE2M1(c) <= std::fabs(x))
        code = c;
    return uint8_t(code | (std::signbit(x) ? 8 : 0));
  };
  expectLanes<uint8_t>(
      "cvt.rz.satfinite.e2m1x2.f32 %d, %a, %b;",
      [&](float x, float y) { return uint8_t(truncated(x) << 4 | truncated(y)); }, a, b);
}

float half(uint32_t bits) { return numerics::decodeF16(uint16_t(bits)); }
uint64_t pairOf(float low, float high) {
  const auto bits = [](float x) { return x == x ? std::bit_cast<uint32_t>(x) : 0x7FFFFFFFu; };
  return bits(low) | uint64_t(bits(high)) << 32;
}
float part(uint64_t x, int at) { return std::bit_cast<float>(uint32_t(x >> (32 * at))); }

TEST(LaterPtx, MixedPairs) {
  auto a = integers<uint32_t>(0), h = integers<uint32_t>(1);
  std::vector<uint64_t> b, c;
  auto x = floats(0, a.size()), y = floats(1, a.size()), z = floats(2, a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    b.push_back(pairOf(x[i], y[i]));
    c.push_back(pairOf(z[i], x[a.size() - 1 - i]));
  }
  expectLanes<uint64_t>(
      "fma.rn.f32x2.f16x2.f32x2.f32x2 %d, %a, %b, %c;",
      [](uint32_t p, uint64_t q, uint64_t r) {
        return pairOf(std::fmaf(half(p), part(q, 0), part(r, 0)),
                      std::fmaf(half(p >> 16), part(q, 1), part(r, 1)));
      },
      a, b, c);
  expectLanes<uint64_t>(
      "add.rn.f32x2.bf16x2.f32x2 %d, %a, %b;",
      [](uint32_t p, uint64_t q) {
        return pairOf(std::bit_cast<float>(p << 16) + part(q, 0),
                      std::bit_cast<float>(p & 0xFFFF0000) + part(q, 1));
      },
      a, b);
  expectLanes<uint32_t>(
      "sub.bf16x2.f32x2.f32x2 %d, %a, %b;",
      [](uint64_t q, uint64_t r) {
        const auto one = [&](int at) { // exact in double where exponents are near; else the larger
          const double exact = double(part(q, at)) - double(part(r, at));
          return exact == 0 && part(q, at) == 0 && part(r, at) == 0 && std::signbit(part(q, at)) &&
                         !std::signbit(part(r, at))
                     ? uint16_t(0x8000)
                     : brain(exact);
        };
        return one(0) | uint32_t(one(1)) << 16;
      },
      b, c);
}

TEST(LaterPtx, QuadsOfFP8) {
  auto a = integers<uint16_t>(0), unused = integers<uint16_t>(1);
  auto c = integers<uint32_t>(1);
  for (uint32_t &quad : c) // no NaN, whose code is not specified
    for (int at = 0; at < 32; at += 8)
      if ((quad >> at & 0x7F) == 0x7F)
        quad ^= 1u << at;
  expectLanes<uint32_t>(
      "add.rn.satfinite.e4m3x4.e2m1x4 %d, %a, %b;",
      [](uint16_t fours, uint32_t eights) {
        uint32_t result = 0;
        for (int e = 0; e < 4; ++e) {
          const float sum = numerics::decodeE2M1(uint8_t(fours >> (4 * e) & 15)) +
                            numerics::decodeE4M3(uint8_t(eights >> (8 * e)));
          result |= uint32_t(numerics::encodeE4M3(sum)) << (8 * e);
        }
        return result;
      },
      a, c);
}

TEST(LaterPtx, AnglesInTurns) {
  std::vector<float> quarters, turns;
  for (int i = -64; i < 64; ++i)
    quarters.push_back(float(i) / 4);
  const auto sine = [](float x) { return float((const float[]){0, 1, 0, -1}[int(x * 4) & 3]); };
  expectLanes<float>(
      "sin.approx.ftz.2pi.f32 %d, %a;\nabs.f32 %d, %d;",
      [&](float x) { return std::fabs(sine(x)); }, quarters);
  expectLanes<float>(
      "cos.approx.ftz.2pi.f32 %d, %a;\nadd.f32 %d, %d, 0f00000000;",
      [&](float x) { return sine(x + 0.25f) + 0.0f; }, quarters);
  for (int i = 0; i < 1024; ++i)
    turns.push_back(float(i - 512) / 333 + 0.001f);
  expectLanes<float>(
      "sin.approx.ftz.2pi.f32 %d, %a;",
      [](float x) { return float(std::sin(6.283185307179586476925 * double(x))); }, turns);
}

/// Directives that say where a function comes from change nothing.
TEST(LaterPtx, DirectivesOfSources) {
  const auto parse = [](const std::string &behind, const std::string &body) {
    return Program::parse(".version 9.5\n.target sm_100a\n.address_size 64\n"
                          ".visible .entry k()" +
                              behind + " {\n" + body + "  ret;\n}\n",
                          "test.ptx");
  };
  const std::string places = "  .loc 1 71 0\n  .loc_intermediate 2 23 6\n";
  for (const char *behind : {"", " .language \"nvvm\"", " .language \"ptx\", \"cuda c++\", 0x7",
                             " .minperctamemory 2048", " .maxntid 32 .language 4"})
    EXPECT_TRUE(parse(behind, places)) << behind;
  for (const char *behind : {" .language", " .language nvvm", " .minperctamemory"})
    EXPECT_FALSE(parse(behind, "")) << behind;
  EXPECT_FALSE(parse("", "  .loc_intermediate 2 23\n"));
}

} // namespace
