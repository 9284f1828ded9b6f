// The fp4 block-scaled MMA: every vector kernel of this machine against the scalar definition, and
// the definition against the independent one of lib/Numerics, bit for bit.
#include "Sim/Async/BlockScaledMma.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace fp4;
using namespace fp4::sim;

namespace {

enum class Scales { Ordinary, Any, Zeros, Extreme };

struct Problem {
  int rows = 128, columns = 128, groups = 4;
  hw::ScaleType format = hw::ScaleType::UE4M3;
  bool block32 = false;
  std::vector<uint8_t> a, b, scalesA, scalesB;
  std::vector<float> d;

  Problem(int rows, int columns, hw::ScaleType format, Scales scales, uint32_t seed, int groups = 4)
      : rows(rows), columns(columns), groups(groups), format(format),
        block32(format == hw::ScaleType::UE8M0) {
    std::mt19937 rng(seed);
    const auto codes = [&](std::vector<uint8_t> &to, int count) {
      for (int i = 0; i < 8 * groups * count; ++i)
        to.push_back(rng() % 8 ? uint8_t(rng()) : 0);
      for (int i = 0; i < count; i += 5) // a group of zeros, whose scale does not count
        std::fill_n(to.begin() + 8 * (groups * i + i / 5 % groups), 8, i % 2 ? 0x80 : 0);
    };
    codes(a, rows);
    codes(b, columns);
    for (int i = 0; i < groups * rows; ++i)
      scalesA.push_back(i % 2 && block32 ? scalesA.back() : draw(rng, scales));
    for (int i = 0; i < groups * columns; ++i)
      scalesB.push_back(i % 2 && block32 ? scalesB.back() : draw(rng, scales));
    for (int i = 0; i < rows * columns; ++i)
      d.push_back(accumulator(rng, scales));
  }

  uint8_t draw(std::mt19937 &rng, Scales scales) const {
    const bool ue4m3 = format == hw::ScaleType::UE4M3;
    switch (scales) {
    case Scales::Ordinary:
      return uint8_t(ue4m3 ? 0x48 + rng() % 0x30 : 120 + rng() % 12);
    case Scales::Zeros:
      return uint8_t(rng() % 3 ? 0x38 : 0);
    case Scales::Extreme:
      return uint8_t(ue4m3 ? (rng() % 2 ? 0x7E : rng() % 10) : (rng() % 2 ? 254 : rng() % 3));
    default:
      return uint8_t(rng());
    }
  }
  static float accumulator(std::mt19937 &rng, Scales scales) {
    if (scales == Scales::Any || scales == Scales::Extreme)
      return std::bit_cast<float>(uint32_t(rng()));
    if (rng() % 8 == 0)
      return rng() % 2 ? 0.0f : -0.0f;
    return std::ldexp(float(int32_t(rng())), int(rng() % 40) - 40);
  }

  BlockScaledOperands operands() {
    BlockScaledOperands o;
    o.rows = rows;
    o.columns = columns;
    o.groups = groups;
    o.a = a.data();
    o.b = b.data();
    o.scalesA = scalesA.data();
    o.scalesB = scalesB.data();
    o.format = format;
    o.d = d.data();
    o.pitch = size_t(columns);
    return o;
  }
  std::vector<float> reference(bool negate, bool accumulate) const {
    std::vector<float> out(d.size());
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < columns; ++n)
        out[m * columns + n] =
            blockScaledElement(&a[8 * groups * m], &b[8 * groups * n], &scalesA[groups * m],
                               &scalesB[groups * n], format, negate,
                               accumulate ? d[m * columns + n] : 0.0f, groups);
    return out;
  }
};

/// Number of elements that differ in any bit.
int differences(const std::vector<float> &x, const std::vector<float> &y) {
  int count = 0;
  for (size_t i = 0; i < x.size(); ++i)
    count += std::memcmp(&x[i], &y[i], 4) != 0;
  return count;
}

struct Case {
  hw::ScaleType format;
  Scales scales;
};
const Case cases[] = {
    {hw::ScaleType::UE4M3, Scales::Ordinary}, {hw::ScaleType::UE4M3, Scales::Any},
    {hw::ScaleType::UE4M3, Scales::Zeros},    {hw::ScaleType::UE4M3, Scales::Extreme},
    {hw::ScaleType::UE8M0, Scales::Ordinary}, {hw::ScaleType::UE8M0, Scales::Any},
    {hw::ScaleType::UE8M0, Scales::Zeros},    {hw::ScaleType::UE8M0, Scales::Extreme},
};

TEST(BlockScaledMma, EveryKernelEqualsTheDefinition) {
  size_t count;
  const BlockScaledKernel *kernels = blockScaledKernels(count);
  for (size_t k = 0; k < count; ++k) {
    if (!kernels[k].supported())
      continue;
    uint32_t seed = 1;
    for (const Case &c : cases)
      for (auto [columns, groups] : {std::pair(8, 4), {24, 4}, {64, 4}, {24, 6}, {64, 6}}) {
        Problem p(32, columns, c.format, c.scales, ++seed, groups);
        const auto want = p.reference(false, true);
        kernels[k].run(p.operands());
        EXPECT_EQ(differences(p.d, want), 0) << kernels[k].name << ", case " << &c - cases << ", N "
                                             << columns << ", groups " << groups << ", seed " << seed;
      }
  }
}

TEST(BlockScaledMma, NegationAndOverwriting) {
  size_t count;
  const BlockScaledKernel *kernels = blockScaledKernels(count);
  for (size_t k = 0; k < count; ++k) {
    if (!kernels[k].supported())
      continue;
    for (const Case &c : cases) {
      Problem p(16, 32, c.format, c.scales, 99);
      const auto want = p.reference(true, false);
      BlockScaledOperands o = p.operands();
      o.negateB = true;
      o.accumulate = false;
      kernels[k].run(o);
      EXPECT_EQ(differences(p.d, want), 0) << kernels[k].name << ", case " << &c - cases;
    }
  }
}

TEST(BlockScaledMma, DefinitionEqualsNumerics) {
  uint32_t seed = 500;
  for (const Case &c : cases)
    for (int groups : {4, 4, 6, 6}) {
      Problem p(16, 64, c.format, c.scales, ++seed, groups);
      const auto ours = p.reference(false, true);
      std::vector<float> theirs(p.d.size());
      for (int m = 0; m < p.rows; ++m)
        for (int n = 0; n < p.columns; ++n)
          theirs[m * p.columns + n] = numerics::fp4MmaElement(
              c.format == hw::ScaleType::UE4M3 ? hw::ScaleType::UE4M3 : hw::ScaleType::UE8M0,
              hw::ScaleVector::X4, &p.a[8 * groups * m], &p.scalesA[groups * m],
              &p.b[8 * groups * n], &p.scalesB[groups * n], p.d[m * p.columns + n],
              16 * unsigned(groups));
      EXPECT_EQ(differences(ours, theirs), 0)
          << "case " << &c - cases << ", groups " << groups << ", seed " << seed;
    }
}

/// One row, one column: all products are `code`^2, all scales 1.0, accumulator `c`.
float uniformElement(uint8_t code, float c) {
  std::vector<uint8_t> row(32, uint8_t(code | code << 4)), scales(4, 0x38);
  return blockScaledElement(row.data(), row.data(), scales.data(), scales.data(),
                            hw::ScaleType::UE4M3, false, c);
}

TEST(BlockScaledMma, KnownValues) {
  EXPECT_EQ(uniformElement(2, 0.0f), 64.0f);                    // 64 * 1 * 1
  EXPECT_EQ(uniformElement(7, 1.0f), 64 * 36.0f + 1);           // 64 * 6 * 6 + 1
  EXPECT_EQ(uniformElement(0, 2.5f), 2.5f);                     // C unchanged
  EXPECT_TRUE(std::signbit(uniformElement(0, -0.0f)) == false); // exact zero sums are +0
  // C loses its bits below 2^(emax - 35) = 2^-35: 1 + 2^-40 is not seen, and rounding is toward 0.
  EXPECT_EQ(uniformElement(2, std::ldexp(1.0f, -40)), 64.0f);
  EXPECT_EQ(uniformElement(2, -std::ldexp(1.0f, -30)), std::nextafterf(64.0f, 0.0f));
  EXPECT_EQ(uniformElement(2, std::ldexp(1.0f, -30)), 64.0f);
}

TEST(BlockScaledMma, NaN) {
  Problem p(1, 8, hw::ScaleType::UE4M3, Scales::Ordinary, 3);
  p.scalesA[2] = 0x7F;
  blockScaledMma(p.operands());
  for (float x : p.d)
    EXPECT_EQ(std::bit_cast<uint32_t>(x), 0x7FFFFFFFu);
}

} // namespace
