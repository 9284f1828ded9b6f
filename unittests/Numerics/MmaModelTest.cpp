// The FP4 MMA model.
//
// Sources: MMA-Sim (arXiv 2511.10909; the model and its hardware-checked constants G = 16, F = 35),
// and PTX ISA's description of the block-scaled MMA for the exact cases. The exact-rational check
// below is written from the formula with arbitrary-precision integers and shares no code with the
// library.
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Compare.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;
using hw::ScaleType;
using hw::ScaleVector;

namespace {

struct Operands {
  unsigned m, n;
  std::vector<uint8_t> a, b, sa, sb;
  std::vector<float> c;

  Operands(unsigned m, unsigned n)
      : m(m), n(n), a(m * 32), b(n * 32), sa(m * 4), sb(n * 4), c(m * n) {}

  std::vector<float> fast(ScaleType type, ScaleVector vector) const {
    std::vector<float> d = c;
    fp4MmaStep(type, vector, m, n, {a.data(), 32, sa.data(), 4}, {b.data(), 32, sb.data(), 4},
               d.data(), n, true);
    return d;
  }
  std::vector<float> exact(ScaleType type, ScaleVector vector) const {
    std::vector<float> d(c.size());
    for (unsigned i = 0; i < m; ++i)
      for (unsigned j = 0; j < n; ++j)
        d[i * n + j] = fp4MmaElement(type, vector, &a[i * 32], &sa[i * 4], &b[j * 32], &sb[j * 4],
                                     c[i * n + j]);
    return d;
  }
};

/// How the random cases are drawn.
enum class Spread { Ordinary, AnyBits, Extremes };

uint8_t randomScale(test::Random &random, ScaleType type, Spread spread) {
  if (spread == Spread::AnyBits)
    return random.byte();
  if (type == ScaleType::UE4M3)
    return spread == Spread::Ordinary ? static_cast<uint8_t>(0x28 + random.below(0x30))
                                      : static_cast<uint8_t>(random.below(0x7F));
  const uint32_t around = spread == Spread::Ordinary ? 6 : 40;
  return static_cast<uint8_t>(127 - around / 2 + random.below(around));
}

float randomC(test::Random &random, Spread spread) {
  if (spread == Spread::AnyBits)
    return floatOf(random.word());
  if (random.below(8) == 0)
    return random.below(2) ? 0.f : -0.f;
  const int e = spread == Spread::Ordinary ? int(random.below(12)) - 2 : int(random.below(90)) - 45;
  return std::ldexp(random.gaussian(), e);
}

Operands randomOperands(test::Random &random, ScaleType type, Spread spread) {
  Operands o(16, 40);
  for (auto *codes : {&o.a, &o.b})
    for (uint8_t &byte : *codes)
      byte = random.byte();
  // Whole groups of zeros, which random codes practically never give.
  for (unsigned i = 0; i < 8; ++i)
    std::fill_n(o.a.begin() + random.below(o.m) * 32 + random.below(4) * 8, 8,
                static_cast<uint8_t>(random.below(2) ? 0x00 : 0x80));
  for (auto *scales : {&o.sa, &o.sb})
    for (uint8_t &byte : *scales)
      byte = randomScale(random, type, spread);
  for (float &c : o.c)
    c = randomC(random, spread);
  return o;
}

TEST(MmaStep, fastFormEqualsDefinition) {
  const std::pair<ScaleType, ScaleVector> kinds[] = {{ScaleType::UE4M3, ScaleVector::X4},
                                                     {ScaleType::UE8M0, ScaleVector::X4},
                                                     {ScaleType::UE8M0, ScaleVector::X2}};
  for (uint64_t seed = 0; seed < 120; ++seed)
    for (const auto &[type, vector] : kinds)
      for (Spread spread : {Spread::Ordinary, Spread::AnyBits, Spread::Extremes}) {
        test::Random random(seed * 16 + unsigned(spread) * 4 + unsigned(vector) + unsigned(type));
        const Operands o = randomOperands(random, type, spread);
        const CompareReport report = compareBits(o.fast(type, vector), o.exact(type, vector),
                                                 {.columns = o.n, .nanEqual = false});
        ASSERT_TRUE(report.ok()) << "seed " << seed << "\n" << report.text();
      }
}

} // namespace
