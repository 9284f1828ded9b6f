//===- FloatTest.cpp - Floating-point arithmetic, bit for bit -------------===//
//
// References are independent of the implementation: the host's rounding modes for f32 and f64, and
// for half precision a search in the sorted list of all values of the format, from an exact
// quadruple-precision result.
//
//===----------------------------------------------------------------------===//
#include "Lanewise.h"
#include "fp4/Numerics/PowerOfTwo.h"
#include "fp4/Numerics/Reciprocal.h"
#include "fp4/Numerics/SquareRoot.h"
#include <algorithm>
#include <cfenv>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

#ifdef __aarch64__
using Quad = long double; // of quadruple precision there
#else
using Quad = __float128;
#endif

float canonical(float x) { return x == x ? x : std::bit_cast<float>(0x7FFFFFFFu); }

template <typename T, typename F> T withMode(int mode, F &&f) {
  std::fesetround(mode);
  volatile T result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

struct Mode {
  const char *text;
  int host;
};
const Mode kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

TEST(Float, F32InEveryRoundingMode) {
  auto a = floats(0), b = floats(1), c = floats(2);
  for (const Mode &mode : kModes) {
    auto check = [&](const std::string &op, auto f) {
      expectLanes<float>(
          op + "." + mode.text + ".f32 %d, %a, %b;",
          [&](float x, float y) {
            return canonical(withMode<float>(mode.host, [&] { return f(x, y); }));
          },
          a, b);
    };
    check("add", [](float x, float y) { return x + y; });
    check("sub", [](float x, float y) { return x - y; });
    check("mul", [](float x, float y) { return x * y; });
    check("div", [](float x, float y) { return x / y; });
    expectLanes<float>(
        std::string("fma.") + mode.text + ".f32 %d, %a, %b, %c;",
        [&](float x, float y, float z) {
          return canonical(withMode<float>(mode.host, [&] { return std::fma(x, y, z); }));
        },
        a, b, c);
    expectLanes<float>(
        std::string("sqrt.") + mode.text + ".f32 %d, %a;",
        [&](float x) {
          return canonical(withMode<float>(mode.host, [&] { return std::sqrt(x); }));
        },
        a);
    expectLanes<float>(
        std::string("rcp.") + mode.text + ".f32 %d, %a;",
        [&](float x) { return canonical(withMode<float>(mode.host, [&] { return 1.0f / x; })); },
        a);
  }
}

TEST(Float, F64InEveryRoundingMode) {
  auto a = doubles(0), b = doubles(1), c = doubles(2);
  auto same = [](double x) { return x == x ? x : std::nan(""); };
  // NaN payloads are not specified: make them one.
  std::string canon = "\nsetp.nan.f64 %pr0, %d, %d;\n@%pr0 mov.b64 %d, 0x7FF8000000000000;";
  for (const Mode &mode : kModes) {
    auto check = [&](const std::string &op, auto f) {
      expectLanes<double>(
          op + "." + mode.text + ".f64 %d, %a, %b;" + canon,
          [&](double x, double y) {
            return same(withMode<double>(mode.host, [&] { return f(x, y); }));
          },
          a, b);
    };
    check("add", [](double x, double y) { return x + y; });
    check("mul", [](double x, double y) { return x * y; });
    check("div", [](double x, double y) { return x / y; });
    expectLanes<double>(
        std::string("fma.") + mode.text + ".f64 %d, %a, %b, %c;" + canon,
        [&](double x, double y, double z) {
          return same(withMode<double>(mode.host, [&] { return std::fma(x, y, z); }));
        },
        a, b, c);
  }
}

/// An H200's NaN, whatever the host's are: that of an invalid operation has the sign set, and of
/// two operands that are NaN the first gives its bits, also where the second is a signalling one.
TEST(Float, NaNOfF64) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto of = [](uint64_t bits) { return std::bit_cast<double>(bits); };
  const auto expect = [](const std::string &instruction, uint64_t wanted, double a, double b,
                         double c = 0) {
    const auto lanes = [](double x) { return std::vector<double>(32, x); };
    EXPECT_EQ(
        std::bit_cast<uint64_t>(evaluate<double>(instruction, lanes(a), lanes(b), lanes(c))[0]),
        wanted)
        << instruction << " of " << a << ", " << b << ", " << c;
  };
  constexpr uint64_t invalid = 0xFFF8000000000000;
  const double quiet = of(0x7FF8000000000123), signalling = of(0xFFF0000000000456);
  expect("add.rn.f64 %d, %a, %b;", invalid, infinity, -infinity);
  expect("add.rz.f64 %d, %a, %b;", invalid, infinity, -infinity);
  expect("sub.rn.f64 %d, %a, %b;", invalid, infinity, infinity);
  expect("mul.rn.f64 %d, %a, %b;", invalid, 0, infinity);
  expect("div.rn.f64 %d, %a, %b;", invalid, 0, 0);
  expect("sqrt.rn.f64 %d, %a;", invalid, -1, 0);
  expect("fma.rn.f64 %d, %a, %b, %c;", invalid, infinity, 0, 1);
  expect("add.rn.f64 %d, %a, %b;", 0x7FF8000000000123, quiet, signalling);
  expect("add.rn.f64 %d, %a, %b;", 0xFFF8000000000456, signalling, quiet);
  expect("div.rn.f64 %d, %a, %b;", 0xFFF8000000000456, 1, signalling);
  expect("fma.rn.f64 %d, %a, %b, %c;", 0xFFF8000000000456, quiet, 1, signalling);
  expect("add.rn.f64 %d, %a, %b;", std::bit_cast<uint64_t>(infinity), infinity, 1);
}

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

TEST(Float, FlushAndSaturate) {
  auto a = floats(0), b = floats(1), c = floats(2);
  expectLanes<float>(
      "add.ftz.f32 %d, %a, %b;",
      [](float x, float y) { return canonical(flush(flush(x) + flush(y))); }, a, b);
  expectLanes<float>(
      "mul.rn.ftz.f32 %d, %a, %b;",
      [](float x, float y) { return canonical(flush(flush(x) * flush(y))); }, a, b);
  expectLanes<float>(
      "fma.rn.ftz.f32 %d, %a, %b, %c;",
      [](float x, float y, float z) {
        return canonical(flush(std::fma(flush(x), flush(y), flush(z))));
      },
      a, b, c);
  auto sat = [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; };
  expectLanes<float>("add.sat.f32 %d, %a, %b;", [&](float x, float y) { return sat(x + y); }, a, b);
  expectLanes<float>(
      "fma.rz.sat.f32 %d, %a, %b, 0f3F000000;",
      [&](float x, float y) {
        return sat(withMode<float>(FE_TOWARDZERO, [&] { return std::fma(x, y, 0.5f); }));
      },
      a, b);
}

TEST(Float, PackedF32x2) {
  std::vector<uint64_t> a, b, c;
  auto p = floats(0), q = floats(1), r = floats(2);
  auto bits = [](float x) { return uint64_t(std::bit_cast<uint32_t>(x)); };
  for (size_t i = 0; i < p.size(); i += 2) {
    a.push_back(bits(p[i]) | bits(p[i + 1]) << 32);
    b.push_back(bits(q[i]) | bits(q[i + 1]) << 32);
    c.push_back(bits(r[i]) | bits(r[i + 1]) << 32);
  }
  auto each = [&](auto f, uint64_t x, uint64_t y, uint64_t z) {
    auto half = [&](int s) {
      auto at = [&](uint64_t v) { return std::bit_cast<float>(uint32_t(v >> s)); };
      return bits(canonical(f(at(x), at(y), at(z)))) << s;
    };
    return half(0) | half(32);
  };
  expectLanes<uint64_t>(
      "add.rn.f32x2 %d, %a, %b;",
      [&](uint64_t x, uint64_t y) {
        return each([](float u, float v, float) { return u + v; }, x, y, 0);
      },
      a, b);
  expectLanes<uint64_t>(
      "fma.rn.f32x2 %d, %a, %b, %c;",
      [&](uint64_t x, uint64_t y, uint64_t z) {
        return each([](float u, float v, float w) { return std::fma(u, v, w); }, x, y, z);
      },
      a, b, c);
}

float minimum(float x, float y) {
  if (x != x)
    return canonical(y);
  if (y != y)
    return x;
  return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
}
float maximum(float x, float y) {
  return x != x || y != y ? (x != x ? canonical(y) : x) : -minimum(-x, -y);
}

TEST(Float, MinMax) {
  auto a = floats(0), b = floats(1), c = floats(2);
  expectLanes<float>("min.f32 %d, %a, %b;", [](float x, float y) { return minimum(x, y); }, a, b);
  expectLanes<float>("max.f32 %d, %a, %b;", [](float x, float y) { return maximum(x, y); }, a, b);
  expectLanes<float>(
      "max.NaN.f32 %d, %a, %b;",
      [](float x, float y) { return x != x || y != y ? canonical(NAN) : maximum(x, y); }, a, b);
  expectLanes<float>(
      "max.f32 %d, %a, %b, %c;",
      [](float x, float y, float z) { return maximum(maximum(x, y), z); }, a, b, c);
  expectLanes<float>(
      "min.ftz.f32 %d, %a, %b;",
      [](float x, float y) { return flush(minimum(flush(x), flush(y))); }, a, b);
  expectLanes<float>(
      "max.xorsign.abs.f32 %d, %a, %b;",
      [](float x, float y) {
        float m = maximum(std::fabs(x), std::fabs(y));
        if (m != m)
          return canonical(m);
        return std::signbit(x) != std::signbit(y) ? -m : m;
      },
      a, b);
}

TEST(Float, SignsAndTests) {
  auto a = floats(0), b = floats(1);
  expectLanes<uint32_t>(
      "abs.f32 %d, %a;",
      [](uint32_t x) {
        uint32_t magnitude = x & 0x7FFFFFFF;
        return magnitude > 0x7F800000 ? 0x7FFFFFFFu : magnitude; // NaN: canonical, as an H200 gives
      },
      integers<uint32_t>(0));
  expectLanes<uint32_t>(
      "neg.f16x2 %d, %a;", [](uint32_t x) { return x ^ 0x80008000; }, integers<uint32_t>(0));
  expectLanes<float>(
      "copysign.f32 %d, %a, %b;", [](float x, float y) { return std::copysign(y, x); }, a, b);
  auto check = [&](const char *cmp, auto f) {
    expectLanes<uint32_t>(
        std::string("setp.") + cmp + ".f32 %pr0, %a, %b;\nselp.b32 %d, 1, 0, %pr0;",
        [&](float x, float y) { return f(x, y) ? 1u : 0u; }, a, b);
  };
  auto nan = [](float x, float y) { return x != x || y != y; };
  check("eq", [](float x, float y) { return x == y; });
  check("ne", [&](float x, float y) { return x != y && !nan(x, y); });
  check("lt", [](float x, float y) { return x < y; });
  check("ge", [](float x, float y) { return x >= y; });
  check("equ", [&](float x, float y) { return x == y || nan(x, y); });
  check("neu", [](float x, float y) { return x != y; });
  check("ltu", [&](float x, float y) { return x < y || nan(x, y); });
  check("leu", [&](float x, float y) { return x <= y || nan(x, y); });
  check("gtu", [&](float x, float y) { return x > y || nan(x, y); });
  check("geu", [&](float x, float y) { return x >= y || nan(x, y); });
  check("num", [&](float x, float y) { return !nan(x, y); });
  check("nan", nan);
}

/// All finite non-negative values of a 16-bit format, ascending; index = code.
struct Half {
  explicit Half(bool brain) : brain(brain) {
    for (unsigned code = 0; code < (brain ? 0x7F80u : 0x7C00u); ++code)
      values.push_back(value(static_cast<uint16_t>(code)));
  }
  float value(uint16_t code) const {
    if (brain)
      return std::bit_cast<float>(uint32_t(code) << 16);
    int exponent = code >> 10 & 31, mantissa = code & 1023;
    float magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                      : exponent     ? std::ldexp(float(1024 + mantissa), exponent - 25)
                                     : std::ldexp(float(mantissa), -24);
    return code & 0x8000 ? -magnitude : magnitude;
  }
  /// Nearest, ties to the even code, overflow half a step above the largest value.
  uint16_t nearest(Quad x) const {
    if (x != x)
      return 0x7FFF;
    bool negative = x < 0 || (x == 0 && __builtin_signbit(static_cast<double>(x)));
    Quad magnitude = x < 0 ? -x : x;
    Quad top = values.back(), step = top - values[values.size() - 2];
    uint16_t code;
    if (magnitude >= top + step / 2) {
      code = static_cast<uint16_t>(values.size());
    } else {
      auto above = std::lower_bound(values.begin(), values.end(), magnitude,
                                    [](float v, Quad m) { return Quad(v) < m; });
      code = static_cast<uint16_t>(
          std::min<ptrdiff_t>(above - values.begin(), ptrdiff_t(values.size()) - 1));
      if (code > 0) {
        Quad up = Quad(values[code]) - magnitude, down = magnitude - Quad(values[code - 1]);
        if (down < up || (down == up && (code & 1)))
          --code;
      }
    }
    return negative ? code | 0x8000 : code;
  }
  bool brain;
  std::vector<float> values;
};

TEST(Float, HalfPrecisionIsRoundedOnce) {
  for (bool brain : {false, true}) {
    Half half(brain);
    std::string type = brain ? "bf16" : "f16";
    auto a = integers<uint16_t>(0, 4096), b = integers<uint16_t>(1, 4096),
         c = integers<uint16_t>(2, 4096);
    std::mt19937 random(5);
    if (brain) // keep the exponents within what quadruple precision adds exactly
      for (auto *v : {&a, &b, &c})
        for (uint16_t &x : *v)
          x = static_cast<uint16_t>((x & 0x807F) | (100 + random() % 50) << 7);
    auto v = [&](uint16_t x) { return Quad(half.value(x)); };
    expectLanes<uint16_t>(
        "add.rn." + type + " %d, %a, %b;",
        [&](uint16_t x, uint16_t y) { return half.nearest(v(x) + v(y)); }, a, b);
    expectLanes<uint16_t>(
        "sub.rn." + type + " %d, %a, %b;",
        [&](uint16_t x, uint16_t y) { return half.nearest(v(x) - v(y)); }, a, b);
    expectLanes<uint16_t>(
        "mul.rn." + type + " %d, %a, %b;",
        [&](uint16_t x, uint16_t y) { return half.nearest(v(x) * v(y)); }, a, b);
    expectLanes<uint16_t>(
        "fma.rn." + type + " %d, %a, %b, %c;",
        [&](uint16_t x, uint16_t y, uint16_t z) { return half.nearest(v(x) * v(y) + v(z)); }, a, b,
        c);
  }
}

TEST(Float, MixedPrecisionIsRoundedOnce) {
  auto c = floats(2, 4096);
  for (bool brain : {false, true}) {
    Half half(brain);
    std::string type = std::string(".f32.") + (brain ? "bf16" : "f16");
    auto a = integers<uint16_t>(0, 4096), b = integers<uint16_t>(1, 4096);
    for (const Mode &mode : kModes) {
      auto in = [&](auto &&f) { return canonical(withMode<float>(mode.host, f)); };
      expectLanes<float>(
          std::string("add.") + mode.text + type + " %d, %a, %b;",
          [&](uint16_t x, float y) { return in([&] { return half.value(x) + y; }); }, a, c);
      expectLanes<float>(
          std::string("sub.") + mode.text + type + " %d, %a, %b;",
          [&](uint16_t x, float y) { return in([&] { return half.value(x) - y; }); }, a, c);
      expectLanes<float>(
          std::string("fma.") + mode.text + type + " %d, %a, %b, %c;",
          [&](uint16_t x, uint16_t y, float z) {
            return in([&] { return std::fma(half.value(x), half.value(y), z); });
          },
          a, b, c);
    }
    auto saturated = [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; };
    expectLanes<float>(
        "add.sat" + type + " %d, %a, %b;",
        [&](uint16_t x, float y) { return saturated(half.value(x) + y); }, a, c);
  }
}

/// .approx.ftz.f64 sees and gives upper words; subnormals are zeros.
TEST(Float, CoarseF64) {
  constexpr uint64_t upper = 0xFFFFFFFF00000000;
  auto coarse = [](uint64_t bits, auto f) {
    double a = std::bit_cast<double>(bits & upper);
    double x = f(std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a);
    if (std::isnan(x))
      return uint64_t(0x7FFFFFFF) << 32;
    return std::bit_cast<uint64_t>(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x) &
           upper;
  };
  auto a = integers<uint64_t>();
  for (uint64_t high : {0x0ull, 0x80000000ull, 0x7FF00000ull, 0xFFF00000ull, 0x7FF80000ull,
                        0x00000001ull, 0x7FE00000ull, 0xBFF00000ull, 0x3FF00000ull})
    a[high % 31] = high << 32 | 5;
  expectLanes<uint64_t>(
      "rcp.approx.ftz.f64 %d, %a;",
      [&](uint64_t x) { return coarse(x, [](double v) { return 1 / v; }); }, a);
  expectLanes<uint64_t>(
      "rsqrt.approx.ftz.f64 %d, %a;",
      [&](uint64_t x) {
        return coarse(x, [](double v) { return v == 0 ? 1 / v : 1 / std::sqrt(v); });
      },
      a);
}

TEST(Float, HalfPrecisionFmaNearTies) {
  // bf16: 1.5 * 1 + tiny must not round as if tiny were lost in a wider intermediate first.
  std::vector<uint16_t> a(32, 0x3F81), b(32, 0x3F80), c(32, 0x0001);
  // (1 + 2^-7) * (1 + 2^-7) = 1 + 2^-6 + 2^-14: above the tie by less than f32 + tiny would see.
  std::fill(b.begin(), b.end(), uint16_t(0x3F81));
  auto d = evaluate<uint16_t>("fma.rn.bf16 %d, %a, %b, %c;", a, b, c);
  EXPECT_EQ(d[0], 0x3F82);
  // An exact tie (1 + 2^-7) * 1.5 = 1.5 + 3 * 2^-8 nudged up by a subnormal goes up.
  std::vector<uint16_t> e(32, 0x3F81), f(32, 0x3FC0), tiny(32, 0x0001), minusTiny(32, 0x8001);
  EXPECT_EQ(evaluate<uint16_t>("fma.rn.bf16 %d, %a, %b, %c;", e, f, tiny)[0], 0x3FC2);
  EXPECT_EQ(evaluate<uint16_t>("fma.rn.bf16 %d, %a, %b, %c;", e, f, minusTiny)[0], 0x3FC1);
}

TEST(Float, ApproximationsAreClose) {
  std::vector<float> a;
  for (int i = 0; i < 1024; ++i)
    a.push_back(0.01f * float(i + 1));
  auto near = [&](const std::string &op, auto f) {
    auto d = evaluate<float>(op + " %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(d[i], f(double(a[i])), 1e-6 * std::max(1.0, std::fabs(f(double(a[i])))))
          << op << " " << a[i];
  };
  near("ex2.approx.ftz.f32", [](double x) { return std::exp2(x); });
  near("lg2.approx.ftz.f32", [](double x) { return std::log2(x); });
  near("rsqrt.approx.ftz.f32", [](double x) { return 1 / std::sqrt(x); });
  near("rcp.approx.ftz.f32", [](double x) { return 1 / x; });
  near("sin.approx.f32", [](double x) { return std::sin(x); });
  near("tanh.approx.f32", [](double x) { return std::tanh(x); });
}

/// lib/Numerics has what a GPU gives, which is not the correctly rounded one.
TEST(Float, ApproximateReciprocalIsTheMeasuredOne) {
  auto a = floats(0);
  a.front() = 1.003f;
  expectLanes<float>("rcp.approx.ftz.f32 %d, %a;", fp4::numerics::approximateReciprocal, a);
  EXPECT_NE(fp4::numerics::approximateReciprocal(1.003f), 1 / 1.003f);
}

TEST(Float, ApproximateSquareRootsAreTheMeasuredOnes) {
  using namespace fp4::numerics;
  auto a = floats(0);
  a.front() = 2.f;
  expectLanes<float>("sqrt.approx.ftz.f32 %d, %a;", approximateSquareRoot, a);
  expectLanes<float>("rsqrt.approx.ftz.f32 %d, %a;", approximateReciprocalSquareRoot, a);
  EXPECT_NE(approximateReciprocalSquareRoot(2), 1 / std::sqrt(2.f));
}

TEST(Float, ApproximatePowersOfTwoAreTheMeasuredOnes) {
  using namespace fp4::numerics;
  auto a = floats(0);
  a[0] = 0.3f, a[1] = -126.5f;
  expectLanes<float>("ex2.approx.ftz.f32 %d, %a;", approximatePowerOfTwo, a);
  expectLanes<float>("ex2.approx.f32 %d, %a;", approximateSmallPowerOfTwo, a);
  EXPECT_NE(approximatePowerOfTwo(0x1.000004p0f), float(std::exp2(0x1.000004p0)));
}

TEST(Float, RefusesWhatPtxHasNot) {
  auto refused = [](const std::string &line) {
    return messageOf(Program::parse(kernel(line), "t.ptx"));
  };
  EXPECT_NE(refused("fma.f32 %f1, %f2, %f3, %f4;").find("expects .rn, .rz, .rm, .rp"),
            std::string::npos);
  EXPECT_NE(refused("add.rz.bf16 %rs1, %rs2, %rs3;").find("rounds to nearest only"),
            std::string::npos);
  EXPECT_NE(refused("add.sat.f64 %fd1, %fd2, %fd3;").find("'.sat' does not work on .f64"),
            std::string::npos);
  EXPECT_NE(refused("add.ftz.f64 %fd1, %fd2, %fd3;").find("'.ftz' does not work on .f64"),
            std::string::npos);
}

TEST(Float, ThreeMagnitudes) {
  auto a = floats(0), b = floats(1), c = floats(2);
  auto fold = [](float x, float y, float z, auto f) {
    return canonical(f(f(std::fabs(x), std::fabs(y)), std::fabs(z)));
  };
  expectLanes<float>(
      "max.abs.f32 %d, %a, %b, %c;",
      [&](float x, float y, float z) {
        return fold(x, y, z, [](float u, float v) {
          return u != u ? v : v != v ? u : std::max(u, v);
        });
      },
      a, b, c);
  expectLanes<float>(
      "min.NaN.abs.f32 %d, %a, %b, %c;",
      [&](float x, float y, float z) {
        return fold(x, y, z,
                    [](float u, float v) { return u != u || v != v ? NAN : std::fmin(u, v); });
      },
      a, b, c);
}

} // namespace
