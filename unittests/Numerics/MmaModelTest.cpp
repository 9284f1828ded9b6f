// The FP4 MMA model.
//
// Sources: MMA-Sim (arXiv 2511.10909; the model and its hardware-checked constants G = 16, F = 35),
// and PTX ISA's description of the block-scaled MMA for the exact cases. data/mma_golden.json is
// written by oracles/mma_oracle.py, which computes the formula in exact rationals and shares no code
// with the library.
#include "Numerics/StepKernels.h"
#include "TestData.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Compare.h"
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

/// The distribution of the random cases.
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

TEST(MmaStep, kernelsAgree) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (Spread spread : {Spread::Ordinary, Spread::AnyBits, Spread::Extremes}) {
      test::Random random(seed * 4 + unsigned(spread));
      const StepKind kind = {seed % 2 ? ScaleType::UE4M3 : ScaleType::UE8M0, ScaleVector::X4};
      const Operands o = randomOperands(random, kind.type, spread);
      const StepRow row = decodeStepRow(kind, {o.a.data(), 32, o.sa.data(), 4});
      StepPanel panel;
      decodeStepPanel(kind, {o.b.data(), 32, o.sb.data(), 4}, panelColumns, panel);
      float sums[panelColumns];
      std::copy_n(o.c.begin(), panelColumns, sums);
      ReferenceState state;
      const StepRounding rounding = {.cut = 0x1p-23, .align = 0x1p-33, .product = 1, .factor = 0x1p-4};
      const StepKernels &portable = allStepKernels().back();
      const uint32_t inexact = portable.addExactly(row, panel, sums);
      portable.addReference(row, panel, rounding, state);
      for (const StepKernels &kernel : allStepKernels()) {
        if (!kernel.supported())
          continue;
        SCOPED_TRACE(std::string(kernel.name) + ", seed " + std::to_string(seed));
        float got[panelColumns];
        std::copy_n(o.c.begin(), panelColumns, got);
        EXPECT_EQ(kernel.addExactly(row, panel, got), inexact);
        EXPECT_EQ(std::memcmp(got, sums, sizeof got), 0);
        ReferenceState other;
        kernel.addReference(row, panel, rounding, other);
        EXPECT_EQ(std::memcmp(&other, &state, sizeof other), 0);
      }
    }
}

// Products that cancel keep their exponent, and cut what an accumulator has below 2^-35 of it.
TEST(MmaStep, smallAccumulatorsAreCutBesideProductsThatCancel) {
  std::array<uint8_t, 32> a{}, b{};
  const std::array<uint8_t, 4> ones = {0x38, 0x38, 0x38, 0x38};
  a[0] = 0x22; // 1, 1
  b[0] = 0xA2; // 1, -1
  for (auto [c, want] : {std::pair(0x1.000002p-15f, 0x1p-15f), {0x1.000002p-12f, 0x1.000002p-12f}}) {
    float d = c;
    fp4MmaStep(ScaleType::UE4M3, ScaleVector::X4, 1, 1, {a.data(), 32, ones.data(), 4},
               {b.data(), 32, ones.data(), 4}, &d, 1, true);
    EXPECT_EQ(bitsOf(d), bitsOf(want)) << c;
  }
}

// Accumulators beside products that are all zero come back as they are; NaN is the canonical one.
TEST(MmaStep, accumulatorsOfEveryKind) {
  const std::array<uint8_t, 32> zeros{};
  const std::array<uint8_t, 4> ones = {0x38, 0x38, 0x38, 0x38}, bad = {0x38, 0x7F, 0x38, 0x38};
  const auto step = [&](float c, const std::array<uint8_t, 4> &scales) {
    return fp4MmaElement(ScaleType::UE4M3, ScaleVector::X4, zeros.data(), scales.data(),
                         zeros.data(), ones.data(), c);
  };
  for (float c : {INFINITY, -INFINITY, 0x1p-149f, -0x1p-149f, 0x1.8p-127f, -0x1.fffffcp-127f,
                  0x1p-126f, 0x1.fffffep127f, -1.f}) {
    EXPECT_EQ(bitsOf(step(c, ones)), bitsOf(c)) << c;
    EXPECT_EQ(bitsOf(step(c, bad)), 0x7FFFFFFFu) << c;
  }
  EXPECT_EQ(bitsOf(step(floatOf(0x7FC00001), ones)), 0x7FFFFFFFu);
  EXPECT_EQ(bitsOf(step(0.f, ones)), 0u);
}

std::vector<uint8_t> fromHex(const std::string &text) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return out;
}
float floatFromHex(const std::string &text) {
  return floatOf(static_cast<uint32_t>(std::stoul(text, nullptr, 16)));
}

TEST(MmaStep, equalsExactRationals) {
  const auto golden = test::readJson("mma_golden.json");
  ASSERT_EQ(golden.size(), 380u);
  for (const auto &entry : golden) {
    const auto type = entry[0] == "ue4m3" ? ScaleType::UE4M3 : ScaleType::UE8M0;
    const auto vector = entry[1] == 4 ? ScaleVector::X4 : ScaleVector::X2;
    const auto a = fromHex(entry[2]), sa = fromHex(entry[3]), b = fromHex(entry[4]),
               sb = fromHex(entry[5]);
    const float c = floatFromHex(entry[6]), want = floatFromHex(entry[7]);
    const float d = fp4MmaElement(type, vector, a.data(), sa.data(), b.data(), sb.data(), c);
    EXPECT_EQ(bitsOf(d), bitsOf(want)) << entry;
    float fast = c;
    fp4MmaStep(type, vector, 1, 1, {a.data(), 32, sa.data(), 4}, {b.data(), 32, sb.data(), 4},
               &fast, 1, true);
    EXPECT_EQ(bitsOf(fast), bitsOf(want)) << entry;
  }
}

} // namespace
