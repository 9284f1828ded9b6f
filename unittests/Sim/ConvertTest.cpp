//===- ConvertTest.cpp - cvt, bit for bit ---------------------------------===//
//
// Narrow formats are compared with lib/Numerics (itself checked against outside goldens) and with
// searches in their value lists; the rest with the host's conversions in each rounding mode.
//
//===----------------------------------------------------------------------===//
#include "Lanewise.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/UE8M0.h"
#include <cfenv>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

template <typename T, typename F> T withMode(int mode, F &&f) {
  std::fesetround(mode);
  volatile T result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST(Convert, IntegersExtendAndTruncate) {
  auto s16 = integers<int16_t>(0);
  auto u32 = integers<uint32_t>(0);
  auto s64 = integers<int64_t>(0);
  expectLanes<int32_t>("cvt.s32.s16 %d, %a;", [](int16_t x) { return int32_t(x); }, s16);
  expectLanes<uint32_t>(
      "cvt.u32.u16 %d, %a;", [](int16_t x) { return uint32_t(uint16_t(x)); }, s16);
  expectLanes<int64_t>("cvt.s64.s32 %d, %a;", [](uint32_t x) { return int64_t(int32_t(x)); }, u32);
  expectLanes<uint64_t>("cvt.u64.u32 %d, %a;", [](uint32_t x) { return uint64_t(x); }, u32);
  expectLanes<uint16_t>("cvt.u16.u32 %d, %a;", [](uint32_t x) { return uint16_t(x); }, u32);
  // Registers wider than the type: the low bits count; results are extended to the register.
  expectLanes<uint32_t>(
      "cvt.s8.s32 %d, %a;", [](uint32_t x) { return uint32_t(int32_t(int8_t(x))); }, u32);
  expectLanes<uint32_t>("cvt.u32.u8 %d, %a;", [](uint32_t x) { return x & 0xFF; }, u32);
  expectLanes<int32_t>(
      "cvt.sat.s32.s64 %d, %a;",
      [](int64_t x) {
        return int32_t(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
      },
      s64);
  expectLanes<uint32_t>(
      "cvt.sat.u8.s64 %r0, %a;\nmov.b32 %d, %r0;",
      [](int64_t x) { return uint32_t(x < 0     ? 0
                                      : x > 255 ? 255
                                                : x); }, s64);
}

TEST(Convert, IntegersToFloats) {
  auto s64 = integers<int64_t>(0);
  auto u64 = integers<uint64_t>(0);
  const std::pair<const char *, int> modes[] = {
      {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (auto [text, mode] : modes) {
    std::string prefix = std::string("cvt.") + text;
    expectLanes<float>(
        prefix + ".f32.s64 %d, %a;",
        [m = mode](int64_t x) { return withMode<float>(m, [&] { return float(x); }); }, s64);
    expectLanes<float>(
        prefix + ".f32.u64 %d, %a;",
        [m = mode](uint64_t x) {
          // Through the 64-bit mantissa of long double, which is exact.
          return withMode<float>(m,
                                 [&] { return static_cast<float>(static_cast<long double>(x)); });
        },
        u64);
    expectLanes<double>(
        prefix + ".f64.s64 %d, %a;",
        [m = mode](int64_t x) { return withMode<double>(m, [&] { return double(x); }); }, s64);
  }
}

TEST(Convert, FloatsToIntegers) {
  auto a = floats(0, 4096);
  auto clamp = [](double x, double low, double high) {
    return x != x ? 0.0 : x < low ? low : x > high ? high : x;
  };
  expectLanes<int32_t>(
      "cvt.rzi.s32.f32 %d, %a;",
      [&](float x) { return int32_t(std::trunc(clamp(x, INT32_MIN, INT32_MAX))); }, a);
  expectLanes<int32_t>(
      "cvt.rni.s32.f32 %d, %a;",
      [&](float x) { return int32_t(std::nearbyint(clamp(x, INT32_MIN, INT32_MAX))); }, a);
  expectLanes<uint32_t>(
      "cvt.rmi.u32.f32 %d, %a;",
      [&](float x) { return uint32_t(clamp(std::floor(x), 0, UINT32_MAX)); }, a);
  expectLanes<uint32_t>(
      "cvt.rpi.u32.f32 %d, %a;",
      [&](float x) { return uint32_t(clamp(std::ceil(x), 0, UINT32_MAX)); }, a);
  expectLanes<float>(
      "cvt.rni.f32.f32 %d, %a;",
      [](float x) { return x == x ? std::nearbyint(x) : std::bit_cast<float>(0x7FFFFFFFu); }, a);
  expectLanes<uint32_t>(
      "cvt.rzi.s16.f32 %rs0, %a;\ncvt.u32.u16 %d, %rs0;",
      [&](float x) { return uint32_t(uint16_t(int16_t(std::trunc(clamp(x, -32768, 32767))))); }, a);
}

TEST(Convert, BetweenFloats) {
  auto a = floats(0, 4096);
  auto d = doubles(0, 4096);
  expectLanes<uint16_t>(
      "cvt.rn.bf16.f32 %d, %a;", [](float x) { return numerics::encodeBF16(x); }, a);
  expectLanes<uint16_t>(
      "cvt.rn.f16.f32 %d, %a;", [](float x) { return numerics::encodeF16(x); }, a);
  expectLanes<uint16_t>(
      "cvt.rz.bf16.f32 %d, %a;",
      [](float x) {
        return x == x ? uint16_t(std::bit_cast<uint32_t>(x) >> 16) : uint16_t(0x7FFF);
      },
      a);
  expectLanes<uint32_t>(
      "cvt.rz.f16x2.f32 %d, %a, 0f3F800000;",
      [](float x) {
        uint16_t half = numerics::encodeF16(x);
        if (std::fabs(numerics::decodeF16(half)) > std::fabs(x))
          --half; // the neighbour nearer to zero; below infinity, the largest
        return uint32_t(x == x ? half : 0x7FFF) << 16 | 0x3C00;
      },
      a);
  auto canonical = [](float x) {
    return x == x ? x : std::bit_cast<float>(std::signbit(x) ? 0x7FFFFFFFu : 0x7FFFFFFFu);
  };
  expectLanes<float>("cvt.rn.f32.f64 %d, %a;", [&](double x) { return canonical(float(x)); }, d);
  expectLanes<float>(
      "cvt.rm.f32.f64 %d, %a;",
      [&](double x) { return canonical(withMode<float>(FE_DOWNWARD, [&] { return float(x); })); },
      d);
  expectLanes<float>(
      "cvt.rz.f32.f64 %d, %a;",
      [&](double x) { return canonical(withMode<float>(FE_TOWARDZERO, [&] { return float(x); })); },
      d);
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  std::string canon = "\nsetp.nan.f32 %pr0, %d, %d;\n@%pr0 mov.b32 %d, 0x7FFFFFFF;";
  expectLanes<float>(
      "cvt.f32.f16 %d, %a;" + canon, [&](uint16_t x) { return canonical(numerics::decodeF16(x)); },
      all);
  expectLanes<float>(
      "cvt.f32.bf16 %d, %a;" + canon,
      [&](uint16_t x) { return canonical(numerics::decodeBF16(x)); }, all);
  expectLanes<uint32_t>(
      "cvt.rna.tf32.f32 %d, %a;",
      [](float x) {
        uint32_t bits = std::bit_cast<uint32_t>(x);
        if (x != x)
          return 0x7FFFFFFFu;
        return std::isinf(x) ? bits : (bits + 0x1000) & ~0x1FFFu;
      },
      a);
  expectLanes<float>(
      "cvt.sat.f32.f32 %d, %a;", [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; }, a);
}

TEST(Convert, PairsOfHalves) {
  auto a = floats(0), b = floats(1);
  expectLanes<uint32_t>(
      "cvt.rn.bf16x2.f32 %d, %a, %b;",
      [](float x, float y) {
        return uint32_t(numerics::encodeBF16(x)) << 16 | numerics::encodeBF16(y);
      },
      a, b);
  expectLanes<uint32_t>(
      "cvt.rn.f16x2.f32 %d, %a, %b;",
      [](float x, float y) {
        return uint32_t(numerics::encodeF16(x)) << 16 | numerics::encodeF16(y);
      },
      a, b);
  expectLanes<uint32_t>(
      "cvt.rn.relu.bf16x2.f32 %d, %a, %b;",
      [](float x, float y) {
        auto relu = [](float v) { return v <= 0 ? 0.0f : v; };
        return uint32_t(numerics::encodeBF16(relu(x))) << 16 | numerics::encodeBF16(relu(y));
      },
      a, b);
}

TEST(Convert, Fp4AndFp8) {
  auto a = floats(0, 8192), b = floats(1, 8192);
  expectLanes<uint16_t>(
      "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;",
      [](float x, float y) {
        return uint16_t(numerics::encodeE4M3(x) << 8 | numerics::encodeE4M3(y));
      },
      a, b);
  // As compilers emit it: an 8-bit register in a scope of its own.
  expectLanes<uint16_t>(
      "{ .reg .b8 t;\ncvt.rn.satfinite.e2m1x2.f32 t, %a, %b;\ncvt.u16.u8 %d, t; }",
      [](float x, float y) {
        return uint16_t(numerics::encodeE2M1(x) << 4 | numerics::encodeE2M1(y));
      },
      a, b);
  expectLanes<uint32_t>(
      "{ .reg .b8 t, z;\ncvt.rn.satfinite.e2m1x2.f32 t, %a, %b;\nmov.b32 %d, {t, t, t, t}; }",
      [](float x, float y) {
        return 0x01010101u * uint32_t(numerics::encodeE2M1(x) << 4 | numerics::encodeE2M1(y));
      },
      a, b);
  expectLanes<uint16_t>(
      "cvt.rp.satfinite.ue8m0x2.f32 %d, %a, %b;",
      [](float x, float y) {
        return uint16_t(numerics::encodeUE8M0Up(x) << 8 | numerics::encodeUE8M0Up(y));
      },
      a, b);
  expectLanes<uint16_t>(
      "cvt.rz.satfinite.ue8m0x2.f32 %d, %a, %b;",
      [](float x, float y) {
        return uint16_t(numerics::encodeUE8M0TowardZero(x) << 8 |
                        numerics::encodeUE8M0TowardZero(y));
      },
      a, b);
}

TEST(Convert, NarrowToHalfDecodesEveryCode) {
  std::vector<uint16_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint16_t>(i | (255 - i) << 8);
  auto half = [](float x) { return x == x ? numerics::encodeF16(x) : uint16_t(0x7FFF); };
  auto clean = [](uint32_t pair) { // NaN without its sign
    for (int s : {0, 16})
      if ((pair >> s & 0x7FFF) > 0x7C00)
        pair = (pair & ~(0xFFFFu << s)) | 0x7FFFu << s;
    return pair;
  };
  std::vector<uint32_t> e4m3 = evaluate<uint32_t>("cvt.rn.f16x2.e4m3x2 %d, %a;", codes);
  std::vector<uint32_t> e2m1 =
      evaluate<uint32_t>("{ .reg .b8 t;\ncvt.u8.u16 t, %a;\ncvt.rn.f16x2.e2m1x2 %d, t; }", codes);
  std::vector<uint32_t> scale = evaluate<uint32_t>("cvt.rn.bf16x2.ue8m0x2 %d, %a;", codes);
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t upper = 255 - i;
    EXPECT_EQ(clean(e4m3[i]), uint32_t(half(numerics::decodeE4M3(uint8_t(upper)))) << 16 |
                                  half(numerics::decodeE4M3(uint8_t(i))));
    EXPECT_EQ(e2m1[i], uint32_t(half(numerics::decodeE2M1(uint8_t(i >> 4)))) << 16 |
                           half(numerics::decodeE2M1(uint8_t(i & 15))));
    auto brain = [](float x) { return x == x ? numerics::encodeBF16(x) : uint16_t(0x7FFF); };
    EXPECT_EQ(scale[i] & 0x7FFF7FFF, uint32_t(brain(numerics::decodeUE8M0(uint8_t(upper)))) << 16 |
                                         brain(numerics::decodeUE8M0(uint8_t(i))));
  }
}

/// Nearest value of a list whose index is the code, ties to even codes, saturating.
uint8_t nearestCode(const std::vector<double> &values, float x) {
  double magnitude = std::min(std::fabs(double(x)), values.back());
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    double now = std::fabs(values[i] - magnitude), before = std::fabs(values[best] - magnitude);
    if (now < before || (now == before && i % 2 == 0))
      best = i;
  }
  return static_cast<uint8_t>(best);
}

TEST(Convert, OtherNarrowFormats) {
  struct Case {
    const char *type;
    int exponentBits, mantissaBits, bias, codes;
  };
  auto a = floats(0, 4096);
  std::erase_if(a, [](float x) { return !std::isfinite(x); });
  a.resize(a.size() / 32 * 32);
  for (const Case &c : {Case{"e5m2x2", 5, 2, 15, 0x7C}, Case{"e2m3x2", 2, 3, 1, 0x20},
                        Case{"e3m2x2", 3, 2, 3, 0x20}}) {
    std::vector<double> values;
    for (int code = 0; code < c.codes; ++code) {
      int e = code >> c.mantissaBits, m = code & ((1 << c.mantissaBits) - 1);
      values.push_back(e ? std::ldexp((1 << c.mantissaBits) + m, e - c.bias - c.mantissaBits)
                         : std::ldexp(m, 1 - c.bias - c.mantissaBits));
    }
    int sign = 1 << (c.exponentBits + c.mantissaBits);
    expectLanes<uint16_t>(
        std::string("cvt.rn.satfinite.") + c.type + ".f32 %d, %a, 0f3F800000;",
        [&](float x) {
          int code = nearestCode(values, x) | (std::signbit(x) ? sign : 0);
          return uint16_t(code << 8 | nearestCode(values, 1.0f));
        },
        a);
  }
}

TEST(Convert, StochasticRoundingBrackets) {
  // 1 + 2^-9 in bf16: frac = 0.5, so random below half stays, from half on goes up.
  std::vector<float> x(32, 1.0f + 0x1p-8f);
  std::vector<uint32_t> low(32, 0x7FFF7FFF), high(32, 0x80008000);
  EXPECT_EQ(evaluate<uint32_t>("cvt.rs.bf16x2.f32 %d, %a, %a, %b;", x, low)[0], 0x3F803F80u);
  EXPECT_EQ(evaluate<uint32_t>("cvt.rs.bf16x2.f32 %d, %a, %a, %b;", x, high)[0], 0x3F813F81u);
  std::vector<float> exact(32, 1.5f);
  std::vector<uint32_t> ones(32, 0xFFFFFFFF);
  EXPECT_EQ(
      evaluate<uint16_t>("cvt.rs.satfinite.e2m1x4.f32 %d, {%a, %a, %a, %a}, %b;", exact, ones)[0],
      0x3333);
  EXPECT_EQ(
      evaluate<uint32_t>("cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %a, %a, %a}, %b;", exact, ones)[0],
      0x3C3C3C3Cu);
}

/// Operands a, b, e, f land in bits 15:12, 11:8, 7:4, 3:0; each has 8 random bits: a and b the
/// upper bytes of the halves, e and f the lower ones, the first of a pair bit-reversed.
TEST(Convert, StochasticE2M1TakesFourOperandsAndTheirBytes) {
  const double grid[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  auto code = [&](float x, uint32_t random) -> uint32_t {
    if (x != x)
      return 7;
    double a = std::fabs(double(x));
    uint32_t low = 0;
    while (low < 7 && grid[low + 1] <= a)
      ++low;
    if (low < 7)
      low += std::floor((a - grid[low]) / (grid[low + 1] - grid[low]) * 256) + random >= 256;
    return low | (std::signbit(x) ? 8 : 0);
  };
  auto reversed = [](uint32_t byte) {
    uint32_t result = 0;
    for (int i = 0; i < 8; ++i)
      result |= (byte >> i & 1) << (7 - i);
    return result;
  };
  auto a = floats(0, 8192), b = floats(1, 8192), f = floats(2, 8192);
  for (size_t i = 0; i < a.size(); i += 2) // in range, of every exponent that matters
    for (std::vector<float> *values : {&a, &b, &f})
      (*values)[i] = std::ldexp(float(i % 977) / 488.f, int(i % 13) - 9) * (i % 4 ? 1.f : -1.f);
  std::vector<uint32_t> random(a.size());
  for (size_t i = 0; i < random.size(); ++i)
    random[i] = static_cast<uint32_t>(i * 0x9E3779B9u);
  auto got =
      evaluate<uint16_t>("cvt.rs.satfinite.e2m1x4.f32 %d, {%a, %b, %c, %a}, %e;", a, b, f, random);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t r = random[i];
    uint32_t expected = code(a[i], reversed(r >> 8 & 255)) << 12 | code(b[i], r >> 24) << 8 |
                        code(f[i], reversed(r & 255)) << 4 | code(a[i], r >> 16 & 255);
    ASSERT_EQ(got[i], expected) << a[i] << " " << b[i] << " " << f[i] << " " << r;
  }
}

TEST(Convert, RefusesWhatPtxHasNot) {
  auto refused = [](const std::string &line) {
    return messageOf(Program::parse(kernel(line), "t.ptx"));
  };
  EXPECT_NE(refused("cvt.s32.f32 %r1, %f1;").find("expects .rni, .rzi, .rmi or .rpi"),
            std::string::npos);
  EXPECT_NE(refused("cvt.bf16.f32 %rs1, %f1;").find("expects .rn, .rz, .rm or .rp"),
            std::string::npos);
  EXPECT_NE(refused("cvt.rn.e4m3x2.f32 %rs1, %f1, %f2;").find("expects .satfinite"),
            std::string::npos);
  EXPECT_NE(refused("cvt.rp.satfinite.e4m3x2.f32 %rs1, %f1, %f2;").find("not work with .rp"),
            std::string::npos);
  EXPECT_NE(refused("cvt.rn.satfinite.scaled::n2::ue8m0.e4m3x2.f32 %rs1, %f1, %f2, %rs2;")
                .find("takes .scaled::n1::ue8m0"),
            std::string::npos);
  EXPECT_NE(refused("cvt.rn.satfinite.ue8m0x2.f32 %rs1, %f1, %f2;").find("expects .rz or .rp"),
            std::string::npos);
}

/// Without .satfinite what is above 2^127 is NaN, with it 2^127.
TEST(Convert, ScalesThatOverflow) {
  const std::vector<float> values(32, 0x1.8p127f);
  for (const bool satfinite : {false, true}) {
    const std::string suffix =
        std::string(satfinite ? ".satfinite" : "") + ".ue8m0x2.f32 %d, %a, %a;";
    EXPECT_EQ(evaluate<uint16_t>("cvt.rp" + suffix, values)[0], satfinite ? 0xFEFE : 0xFFFF);
    EXPECT_EQ(evaluate<uint16_t>("cvt.rz" + suffix, values)[0], 0xFEFE);
  }
}

} // namespace
