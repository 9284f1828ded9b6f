//===- IntegerTest.cpp - Integer, bit and comparison instructions ---------===//
#include "Lanewise.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

template <typename T> const char *name() {
  if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 2 ? "s16" : sizeof(T) == 4 ? "s32" : "s64";
  else
    return sizeof(T) == 2 ? "u16" : sizeof(T) == 4 ? "u32" : "u64";
}

template <typename T> class IntegerOps : public testing::Test {};
using IntegerTypes = testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(IntegerOps, IntegerTypes);

using Big = __int128;

TYPED_TEST(IntegerOps, Arithmetic) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  std::string t = std::string(".") + name<T>() + " ";
  auto a = integers<T>(0), b = integers<T>(1), c = integers<T>(2);
  constexpr unsigned bits = 8 * sizeof(T);
  auto wrap = [](Big x) { return static_cast<T>(static_cast<U>(x)); };
  expectLanes<T>("add" + t + "%d, %a, %b;", [&](T x, T y) { return wrap(Big(x) + y); }, a, b);
  expectLanes<T>("sub" + t + "%d, %a, %b;", [&](T x, T y) { return wrap(Big(x) - y); }, a, b);
  expectLanes<T>(
      "mul.lo" + t + "%d, %a, %b;",
      [&](T x, T y) { return wrap(Big((unsigned __int128)x * (unsigned __int128)y)); }, a, b);
  if (bits < 64)
    expectLanes<T>(
        "mul.hi" + t + "%d, %a, %b;", [&](T x, T y) { return wrap((Big(x) * y) >> bits); }, a, b);
  expectLanes<T>(
      "mad.lo" + t + "%d, %a, %b, %c;",
      [&](T x, T y, T z) {
        return wrap(Big((unsigned __int128)x * (unsigned __int128)y + (unsigned __int128)z));
      },
      a, b, c);
  expectLanes<T>("min" + t + "%d, %a, %b;", [](T x, T y) { return std::min(x, y); }, a, b);
  expectLanes<T>("max" + t + "%d, %a, %b;", [](T x, T y) { return std::max(x, y); }, a, b);
  auto nonzero = b;
  for (T &y : nonzero)
    y = y == 0 ? 3 : y;
  expectLanes<T>("div" + t + "%d, %a, %b;", [&](T x, T y) { return wrap(Big(x) / y); }, a, nonzero);
  expectLanes<T>("rem" + t + "%d, %a, %b;", [&](T x, T y) { return wrap(Big(x) % y); }, a, nonzero);
  expectLanes<T>(
      "sad" + t + "%d, %a, %b, %c;",
      [&](T x, T y, T z) { return wrap((x > y ? Big(x) - y : Big(y) - x) + z); }, a, b, c);
}

TYPED_TEST(IntegerOps, Shifts) {
  using T = TypeParam;
  constexpr unsigned bits = 8 * sizeof(T);
  std::string width = std::to_string(bits);
  auto a = integers<T>(0);
  auto n = integers<uint32_t>(1);
  expectLanes<T>(
      "shl.b" + width + " %d, %a, %b;",
      [&](T x, uint32_t s) { return s >= bits ? T(0) : static_cast<T>(uint64_t(x) << s); }, a, n);
  expectLanes<T>(
      std::string("shr.") + name<T>() + " %d, %a, %b;",
      [&](T x, uint32_t s) { return static_cast<T>(s >= bits ? (x < 0 ? T(-1) : T(0)) : x >> s); },
      a, n);
}

TYPED_TEST(IntegerOps, Comparisons) {
  using T = TypeParam;
  auto a = integers<T>(0), b = integers<T>(1);
  auto check = [&](const char *cmp, auto f) {
    expectLanes<uint32_t>(
        std::string("setp.") + cmp + "." + name<T>() + " %pr0, %a, %b;\nselp.b32 %d, 7, 9, %pr0;",
        [&](T x, T y) { return f(x, y) ? 7u : 9u; }, a, b);
  };
  check("eq", [](T x, T y) { return x == y; });
  check("ne", [](T x, T y) { return x != y; });
  check("lt", [](T x, T y) { return x < y; });
  check("le", [](T x, T y) { return x <= y; });
  check("gt", [](T x, T y) { return x > y; });
  check("ge", [](T x, T y) { return x >= y; });
  if (std::is_unsigned_v<T>)
    check("hi", [](T x, T y) { return x > y; });
}

TEST(Integer, WideProducts) {
  auto a = integers<int32_t>(0), b = integers<int32_t>(1);
  auto c = integers<int64_t>(2);
  expectLanes<int64_t>(
      "mul.wide.s32 %d, %a, %b;", [](int32_t x, int32_t y) { return int64_t(x) * y; }, a, b);
  expectLanes<int64_t>(
      "mad.wide.s32 %d, %a, %b, %c;",
      [](int32_t x, int32_t y, int64_t z) {
        return static_cast<int64_t>(uint64_t(int64_t(x) * y) + uint64_t(z));
      },
      a, b, c);
  auto h = integers<uint16_t>(0), k = integers<uint16_t>(1);
  expectLanes<uint32_t>(
      "mul.wide.u16 %d, %a, %b;", [](uint16_t x, uint16_t y) { return uint32_t(x) * y; }, h, k);
  auto u = integers<uint64_t>(0), v = integers<uint64_t>(1);
  expectLanes<uint64_t>(
      "mul.hi.u64 %d, %a, %b;",
      [](uint64_t x, uint64_t y) {
        return static_cast<uint64_t>(((unsigned __int128)x * y) >> 64);
      },
      u, v);
}

TEST(Integer, Saturation) {
  auto a = integers<int32_t>(0), b = integers<int32_t>(1);
  auto clamp = [](int64_t x) {
    return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
  };
  expectLanes<int32_t>(
      "add.sat.s32 %d, %a, %b;", [&](int32_t x, int32_t y) { return clamp(int64_t(x) + y); }, a, b);
  expectLanes<int32_t>(
      "sub.sat.s32 %d, %a, %b;", [&](int32_t x, int32_t y) { return clamp(int64_t(x) - y); }, a, b);
}

TEST(Integer, PackedHalves) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1);
  auto each = [](uint32_t x, uint32_t y, auto f) {
    return uint32_t(uint16_t(f(uint16_t(x), uint16_t(y)))) |
           uint32_t(uint16_t(f(uint16_t(x >> 16), uint16_t(y >> 16)))) << 16;
  };
  expectLanes<uint32_t>(
      "add.u16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) {
        return each(x, y, [](uint16_t p, uint16_t q) { return p + q; });
      },
      a, b);
  expectLanes<uint32_t>(
      "max.s16x2 %d, %a, %b;",
      [&](uint32_t x, uint32_t y) {
        return each(x, y, [](uint16_t p, uint16_t q) { return std::max(int16_t(p), int16_t(q)); });
      },
      a, b);
}

TEST(Bits, LogicAndTables) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1), c = integers<uint32_t>(2);
  expectLanes<uint32_t>("and.b32 %d, %a, %b;", [](uint32_t x, uint32_t y) { return x & y; }, a, b);
  expectLanes<uint32_t>("not.b32 %d, %a;", [](uint32_t x) { return ~x; }, a);
  expectLanes<uint32_t>("cnot.b32 %d, %a;", [](uint32_t x) { return x == 0 ? 1u : 0u; }, a);
  for (unsigned table : {0x00u, 0x80u, 0xFEu, 0x96u, 0xE8u, 0xCAu, 0x1Bu, 0xFFu})
    expectLanes<uint32_t>(
        "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";",
        [&](uint32_t x, uint32_t y, uint32_t z) {
          uint32_t result = 0;
          for (int i = 0; i < 32; ++i)
            result |= (table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i;
          return result;
        },
        a, b, c);
}

TEST(Bits, Counts) {
  auto a = integers<uint32_t>(0);
  auto w = integers<uint64_t>(0);
  expectLanes<uint32_t>(
      "popc.b32 %d, %a;", [](uint32_t x) { return uint32_t(std::popcount(x)); }, a);
  expectLanes<uint32_t>(
      "popc.b64 %d, %a;", [](uint64_t x) { return uint32_t(std::popcount(x)); }, w);
  expectLanes<uint32_t>(
      "clz.b32 %d, %a;", [](uint32_t x) { return uint32_t(std::countl_zero(x)); }, a);
  expectLanes<uint32_t>(
      "clz.b64 %d, %a;", [](uint64_t x) { return uint32_t(std::countl_zero(x)); }, w);
  expectLanes<uint32_t>(
      "bfind.u32 %d, %a;", [](uint32_t x) { return x ? 31u - uint32_t(std::countl_zero(x)) : ~0u; },
      a);
  expectLanes<uint32_t>(
      "bfind.s32 %d, %a;",
      [](uint32_t x) {
        x = int32_t(x) < 0 ? ~x : x;
        return x ? 31u - uint32_t(std::countl_zero(x)) : ~0u;
      },
      a);
  expectLanes<uint32_t>(
      "brev.b32 %d, %a;",
      [](uint32_t x) {
        uint32_t r = 0;
        for (int i = 0; i < 32; ++i)
          r |= (x >> i & 1) << (31 - i);
        return r;
      },
      a);
}

TEST(Bits, Fields) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1);
  std::vector<uint32_t> position, length;
  for (uint32_t i = 0; i < 1024; ++i) {
    position.push_back(i % 40);
    length.push_back(i / 40 % 36);
  }
  auto extract = [](uint32_t x, uint32_t pos, uint32_t len, bool isSigned) {
    uint32_t sign = isSigned && len ? x >> std::min(pos + len - 1, 31u) & 1 : 0, d = 0;
    for (uint32_t i = 0; i < 32; ++i)
      d |= (i < len && pos + i < 32 ? x >> (pos + i) & 1 : sign) << i;
    return d;
  };
  expectLanes<uint32_t>(
      "bfe.u32 %d, %a, %b, %c;",
      [&](uint32_t x, uint32_t p, uint32_t l) { return extract(x, p, l, false); }, a, position,
      length);
  expectLanes<uint32_t>(
      "bfe.s32 %d, %a, %b, %c;",
      [&](uint32_t x, uint32_t p, uint32_t l) { return extract(x, p, l, true); }, a, position,
      length);
  expectLanes<uint32_t>(
      "bfi.b32 %d, %a, %b, %c, %e;\n",
      [](uint32_t x, uint32_t y, uint32_t p, uint32_t l) {
        for (uint32_t i = 0; i < l && p + i < 32; ++i)
          y = (y & ~(1u << (p + i))) | (x >> i & 1) << (p + i);
        return y;
      },
      a, b, position, length);
}

TEST(Bits, FunnelShiftAndPermute) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1), c = integers<uint32_t>(2);
  expectLanes<uint32_t>(
      "shf.l.wrap.b32 %d, %a, %b, %c;",
      [](uint32_t x, uint32_t y, uint32_t n) {
        n &= 31;
        return n ? y << n | x >> (32 - n) : y;
      },
      a, b, c);
  expectLanes<uint32_t>(
      "shf.r.wrap.b32 %d, %a, %b, %c;",
      [](uint32_t x, uint32_t y, uint32_t n) {
        n &= 31;
        return n ? y << (32 - n) | x >> n : x;
      },
      a, b, c);
  expectLanes<uint32_t>(
      "shf.r.clamp.b32 %d, %a, %b, %c;",
      [](uint32_t x, uint32_t y, uint32_t n) {
        return n >= 32 ? y : n ? y << (32 - n) | x >> n : x;
      },
      a, b, c);
  expectLanes<uint32_t>(
      "prmt.b32 %d, %a, %b, %c;",
      [](uint32_t x, uint32_t y, uint32_t s) {
        uint64_t both = uint64_t(y) << 32 | x;
        uint32_t d = 0;
        for (int i = 0; i < 4; ++i) {
          uint32_t byte = both >> (8 * (s >> (4 * i) & 7)) & 0xFF;
          d |= (s >> (4 * i) & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << (8 * i);
        }
        return d;
      },
      a, b, c);
}

TEST(Compare, CombinesWithAPredicateAndSetsThePair) {
  auto a = integers<int32_t>(0), b = integers<int32_t>(1);
  expectLanes<uint32_t>(
      "setp.lt.s32 %pr1, %a, 0;\nsetp.gt.and.s32 %pr2|%pr3, %a, %b, !%pr1;\n"
      "selp.b32 %r1, 1, 0, %pr2;\nselp.b32 %r2, 2, 0, %pr3;\nadd.u32 %d, %r1, %r2;",
      [](int32_t x, int32_t y) {
        bool c = x >= 0;
        return (x > y && c ? 1u : 0u) + (!(x > y) && c ? 2u : 0u);
      },
      a, b);
  expectLanes<uint32_t>(
      "set.le.u32.s32 %d, %a, %b;", [](int32_t x, int32_t y) { return x <= y ? ~0u : 0u; }, a, b);
  expectLanes<float>(
      "set.le.f32.s32 %d, %a, %b;", [](int32_t x, int32_t y) { return x <= y ? 1.0f : 0.0f; }, a,
      b);
}

TEST(Integer, RefusesWhatPtxHasNot) {
  auto refused = [](const std::string &line) {
    return messageOf(Program::parse(kernel(line), "t.ptx"));
  };
  EXPECT_NE(refused("sub.sat.u16x2 %r1, %r2, %r3;").find("'.sat' works on .s32 and"),
            std::string::npos);
  EXPECT_NE(refused("add.sat.s64 %rd1, %rd2, %rd3;").find("'.sat' works on 32 bits"),
            std::string::npos);
  EXPECT_NE(refused("neg.u8x4 %r1, %r2;").find("does not work on .u8x4"), std::string::npos);
  EXPECT_NE(refused("mul.u32 %r1, %r2, %r3;").find("expects .lo, .hi or .wide"), std::string::npos);
  EXPECT_NE(refused("and.u32 %r1, %r2, %r3;").find("does not work on .u32"), std::string::npos);
  EXPECT_NE(refused("setp.lo.s32 %pr1, %r2, %r3;").find("'.lo' does not work on .s32"),
            std::string::npos);
  EXPECT_NE(refused("add.b32 %r1, %r2, %r3;").find("does not work on .b32"), std::string::npos);
}

TEST(Integer, MmasOfHalvesAndBytes) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1), c = integers<uint32_t>(2);
  for (bool high : {false, true})
    for (bool as : {false, true})
      for (bool bs : {false, true})
        expectLanes<uint32_t>(
            std::string("dp2a.") + (high ? "hi" : "lo") + (as ? ".s32" : ".u32") +
                (bs ? ".s32" : ".u32") + " %d, %a, %b, %c;",
            [&](uint32_t x, uint32_t y, uint32_t z) {
              int64_t sum = z;
              for (unsigned i = 0; i < 2; ++i) {
                auto half = static_cast<uint16_t>(x >> (16 * i));
                auto byte = static_cast<uint8_t>(y >> (8 * (i + (high ? 2 : 0))));
                sum += int64_t(as ? int16_t(half) : int(half)) * (bs ? int8_t(byte) : int(byte));
              }
              return static_cast<uint32_t>(sum);
            },
            a, b, c);
}

TEST(Integer, PlaceOfTheNthBit) {
  // The definition, as PTX gives it.
  auto place = [](uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0)
      return mask >> base & 1 ? base : ~0u;
    int64_t count = std::abs(int64_t(offset)) - 1;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
      if (mask >> at & 1 && count-- == 0)
        return static_cast<uint32_t>(at);
    return ~0u;
  };
  auto mask = integers<uint32_t>(0), base = integers<uint32_t>(1);
  auto offset = integers<int32_t>(2);
  for (size_t i = 0; i < base.size(); ++i) {
    base[i] &= 31;
    offset[i] = i % 4 ? offset[i] % 12 : offset[i];
  }
  expectLanes<uint32_t>("fns.b32 %d, %a, %b, %c;", place, mask, base, offset);
}

TEST(Integer, MinimaAndMaximaAboveZero) {
  auto a = integers<int32_t>(0), b = integers<int32_t>(1);
  auto halves = [](int32_t x, int32_t y, auto f) {
    uint32_t low = static_cast<uint16_t>(f(int16_t(x), int16_t(y)));
    return static_cast<int32_t>(low | uint32_t(uint16_t(f(int16_t(x >> 16), int16_t(y >> 16))))
                                          << 16);
  };
  auto min = [](auto x, auto y) { return std::max(decltype(x)(0), std::min(x, y)); };
  auto max = [](auto x, auto y) { return std::max(decltype(x)(0), std::max(x, y)); };
  expectLanes<int32_t>("min.relu.s32 %d, %a, %b;", min, a, b);
  expectLanes<int32_t>("max.relu.s32 %d, %a, %b;", max, a, b);
  expectLanes<int32_t>(
      "min.relu.s16x2 %d, %a, %b;", [&](int32_t x, int32_t y) { return halves(x, y, min); }, a, b);
  expectLanes<int32_t>(
      "max.relu.s16x2 %d, %a, %b;", [&](int32_t x, int32_t y) { return halves(x, y, max); }, a, b);
}

TEST(Integer, LogicOfThreeAndAPredicate) {
  auto a = integers<uint32_t>(0), b = integers<uint32_t>(1), c = integers<uint32_t>(2);
  for (const bool both : {false, true})
    expectLanes<uint32_t>(
        std::string("setp.lt.u32 %pr1, %a, %b;\nlop3.") + (both ? "and" : "or") +
            ".b32 %r1|%pr2, %a, %b, %c, 0x80, %pr1;\nlop3." + (both ? "and" : "or") +
            ".b32 _|%pr3, %a, %b, %c, 0x80, !%pr1;\nselp.b32 %r2, 1, 0, %pr2;\n"
            "selp.b32 %r3, 2, 0, %pr3;\nadd.u32 %r1, %r1, %r2;\nadd.u32 %d, %r1, %r3;",
        [&](uint32_t x, uint32_t y, uint32_t z) {
          const uint32_t all = x & y & z;
          const bool q = x < y, any = all != 0;
          const bool p = both ? any && q : any || q, n = both ? any && !q : any || !q;
          return all + (p ? 1 : 0) + (n ? 2 : 0);
        },
        a, b, c);
}

TEST(Integer, Mad24Saturates) {
  auto a = integers<int32_t>(0), b = integers<int32_t>(1), c = integers<int32_t>(2);
  expectLanes<int32_t>(
      "mad24.hi.sat.s32 %d, %a, %b, %c;",
      [](int32_t x, int32_t y, int32_t z) {
        auto low = [](int32_t v) { return int64_t(v & 0xFFFFFF) - ((v & 0x800000) ? 1 << 24 : 0); };
        const int64_t high = static_cast<int32_t>(low(x) * low(y) >> 16);
        return static_cast<int32_t>(std::clamp<int64_t>(high + z, INT32_MIN, INT32_MAX));
      },
      a, b, c);
}

} // namespace

// Results of GPUs: all ones and the dividend.
TEST(Integer, DivisionByZero) {
  EXPECT_EQ(perThread("mov.u32 %r1, 0;\nadd.u32 %r2, %lane, 7;\ndiv.u32 %r3, %r2, %r1;\n"
                      "rem.u32 %r4, %r2, %r1;\nsub.u32 %r4, %r4, %r2;\nadd.u32 %r0, %r3, %r4;"),
            std::vector<uint32_t>(32, ~0u));
}

// Bits 16 to 47 of the product of the low 24 bits.
TEST(Integer, UpperPartOf24BitProducts) {
  EXPECT_EQ(perThread("mov.u32 %r1, 0xFF123456;\nmov.u32 %r2, 0x11FEDCBA;\n"
                      "mul24.hi.u32 %r0, %r1, %r2;"),
            std::vector<uint32_t>(32, uint32_t((0x123456ull * 0xFEDCBAull) >> 16)));
  EXPECT_EQ(perThread("mov.u32 %r1, 0x00123456;\nmov.u32 %r2, 0x00FEDCBA;\n"
                      "mul24.hi.s32 %r0, %r1, %r2;"),
            std::vector<uint32_t>(32, uint32_t((0x123456ll * -0x12346ll) >> 16)));
}
