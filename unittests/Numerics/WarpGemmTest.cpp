//===- WarpGemmTest.cpp - mma.sync as registers have it ----------------===//
#include "fp4/Numerics/WarpGemm.h"
#include "fp4/Numerics/DenseMma.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>

using namespace fp4::numerics;
using fp4::hw::AccumulatorType;
using fp4::hw::MmaType;

namespace {

using Register = std::array<uint32_t, 32>;

struct Fragments {
  std::array<Register, 4> a{}, c{}, d{};
  std::array<Register, 2> b{};
  WarpGemm product(MmaType aType, MmaType bType, unsigned k) {
    WarpGemm p{aType, bType, k, {}, {}, {}, {}};
    for (unsigned i = 0; i < 4; ++i)
      p.a[i] = a[i].data(), p.c[i] = c[i].data(), p.d[i] = d[i].data();
    for (unsigned i = 0; i < 2; ++i)
      p.b[i] = b[i].data();
    return p;
  }
};

bool isNarrow(MmaType type) { return type == MmaType::E4M3 || type == MmaType::E5M2; }

/// The factor of row `r` of A, or of column `r` of B (`ofB`): PTX ISA, "Matrix Fragments".
Factor factorAt(const Fragments &f, MmaType type, bool ofB, unsigned r, unsigned k) {
  const unsigned bytes = isNarrow(type) ? 1 : 2, at = k * bytes;
  const Register &reg = ofB ? f.b[at / 16] : f.a[at / 16 * 2 + r / 8];
  uint8_t row[32] = {};
  const uint32_t word = reg[r % 8 * 4 + at % 16 / 4] >> (8 * (at % 4));
  std::memcpy(row, &word, bytes);
  FactorRow out;
  decodeFactors(type, row, false, false, out);
  if (isNarrow(type)) { // as f16 has it
    out[0].significand *= 1 << (10 - fractionBits(type));
    while (out[0].significand && std::abs(out[0].significand) < 1024 && out[0].exponent > -14)
      out[0].significand *= 2, --out[0].exponent;
  }
  return out[0];
}

uint32_t expectedElement(const Fragments &f, MmaType aType, MmaType bType, unsigned k, unsigned row,
                         unsigned column) {
  const uint32_t c = f.c[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
  const bool narrow = isNarrow(aType);
  uint32_t sum = narrow ? 0 : c;
  for (unsigned part = 0; part < (narrow ? 2u : 1u); ++part) {
    std::vector<Factor> a, b;
    for (unsigned i = 0; i < k; ++i)
      if (!narrow || i / 2 % 2 == part) {
        a.push_back(factorAt(f, aType, false, row, i));
        b.push_back(factorAt(f, bType, true, column, i));
      }
    sum = denseElement(a, b, narrow ? 20 : 2 * fractionBits(aType), 0, AccumulatorType::F32, sum);
  }
  if (!narrow)
    return sum;
  return std::bit_cast<uint32_t>(std::bit_cast<float>(c) + std::bit_cast<float>(sum));
}

/// Codes of moderate exponents, zeros and subnormals; with `any`, all codes.
uint32_t randomWord(std::mt19937 &rng, MmaType type, bool any) {
  uint32_t word = rng();
  if (any)
    return word;
  const unsigned bits = isNarrow(type) ? 8 : 16, fraction = fractionBits(type);
  const uint32_t top = (1u << (bits - 1 - fraction)) - 1, span = std::min(top / 2, 60u);
  for (unsigned at = 0; at < 32; at += bits) {
    const uint32_t field = rng() % 9 ? top / 2 - span / 2 + rng() % span : 0;
    word &= ~(top << (at + fraction));
    word |= field << (at + fraction);
    if (rng() % 7 == 0)
      word &= ~(((1u << (bits - 1)) - 1) << at); // zero
  }
  return word;
}

void fill(Fragments &f, std::mt19937 &rng, MmaType aType, MmaType bType, bool any) {
  for (Register &reg : f.a)
    for (uint32_t &word : reg)
      word = randomWord(rng, aType, any);
  for (Register &reg : f.b)
    for (uint32_t &word : reg)
      word = randomWord(rng, bType, any);
  for (Register &reg : f.c)
    for (uint32_t &word : reg)
      word = any ? rng() : rng() % 5 ? (rng() & 0x87FFFFFF) | 0x38000000 : 0;
}

unsigned multiplyAndCompare(Fragments &f, MmaType aType, MmaType bType, unsigned k,
                            const std::string &what) {
  if (!multiplyWarp(f.product(aType, bType, k)))
    return 0;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column)
      EXPECT_EQ(f.d[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2],
                expectedElement(f, aType, bType, k, row, column))
          << what << " row " << row << " column " << column;
  return 1;
}

TEST(WarpGemm, EqualsTheDefinition) {
  std::mt19937 rng(17);
  const std::tuple<MmaType, MmaType, unsigned> kinds[] = {
      {MmaType::F16, MmaType::F16, 16},   {MmaType::F16, MmaType::F16, 8},
      {MmaType::BF16, MmaType::BF16, 16}, {MmaType::BF16, MmaType::BF16, 8},
      {MmaType::E4M3, MmaType::E4M3, 32}, {MmaType::E4M3, MmaType::E5M2, 32},
      {MmaType::E5M2, MmaType::E4M3, 16}};
  Fragments probe;
  if (!multiplyWarp(probe.product(MmaType::F16, MmaType::F16, 16)))
    GTEST_SKIP() << "this processor has no AVX-512";
  for (const auto &[a, b, k] : kinds) {
    unsigned done = 0;
    for (int pass = 0; pass < 40; ++pass) {
      Fragments f;
      fill(f, rng, a, b, pass % 8 == 7);
      done += multiplyAndCompare(f, a, b, k,
                                 std::string(stringify(a)) + " pass " + std::to_string(pass));
    }
    EXPECT_GT(done, 30u) << stringify(a);
  }
}

/// The operands of multiplyTiles: rows of A, columns of B, and four registers of D for each tile.
struct Tiles {
  static constexpr unsigned rowBytes = 32;
  std::vector<uint8_t> a, b;
  std::vector<Register> d;
  bool accumulate = true;

  Tiles(std::mt19937 &rng, MmaType aType, MmaType bType, unsigned tiles)
      : a(16 * rowBytes), b(8 * rowBytes * tiles) {
    for (auto &[type, bytes] : {std::pair(aType, &a), std::pair(bType, &b)})
      for (size_t at = 0; at < bytes->size(); at += 4) {
        const uint32_t word = randomWord(rng, type, false);
        std::memcpy(&(*bytes)[at], &word, 4);
      }
    for (unsigned tile = 0; tile < tiles; ++tile) {
      Fragments f;
      fill(f, rng, aType, bType, false);
      d.insert(d.end(), f.c.begin(), f.c.end());
    }
  }
  bool multiply(MmaType aType, MmaType bType) {
    std::vector<uint32_t *> registers;
    for (Register &reg : d)
      registers.push_back(reg.data());
    return multiplyTiles({aType, bType, a, b, accumulate, registers});
  }
  uint32_t cell(unsigned row, unsigned column) const {
    return d[column / 8 * 4 + row / 8 * 2 + column % 2][row % 8 * 4 + column % 8 / 2];
  }
  /// The result of wgmma, whose fp8 is no f16.
  uint32_t expected(MmaType aType, MmaType bType, unsigned row, unsigned column) const {
    const unsigned k = isNarrow(aType) ? 32 : 16;
    FactorRow ofA, ofB;
    decodeFactors(aType, &a[row * rowBytes], false, false, ofA);
    decodeFactors(bType, &b[column * rowBytes], false, false, ofB);
    return denseElement({ofA.data(), k}, {ofB.data(), k}, fractionBits(aType) + fractionBits(bType),
                        0, AccumulatorType::F32, accumulate ? cell(row, column) : 0,
                        isNarrow(aType) ? hopperFP8 : DensePrecision());
  }
};

TEST(WarpGemm, TilesEqualTheDefinition) {
  Fragments probe;
  if (!multiplyWarp(probe.product(MmaType::F16, MmaType::F16, 16)))
    GTEST_SKIP() << "this processor has no AVX-512";
  std::mt19937 rng(23);
  for (const auto &[aType, bType] : {std::pair(MmaType::F16, MmaType::F16),
                                     {MmaType::BF16, MmaType::BF16},
                                     {MmaType::E4M3, MmaType::E4M3},
                                     {MmaType::E5M2, MmaType::E4M3},
                                     {MmaType::E5M2, MmaType::E5M2}})
    for (unsigned tiles : {1u, 3u, 32u})
      for (bool accumulate : {false, true}) {
        Tiles before(rng, aType, bType, tiles);
        before.accumulate = accumulate;
        Tiles after = before;
        ASSERT_TRUE(after.multiply(aType, bType)) << stringify(aType);
        for (unsigned row = 0; row < 16; ++row)
          for (unsigned column = 0; column < 8 * tiles; ++column)
            ASSERT_EQ(after.cell(row, column), before.expected(aType, bType, row, column))
                << stringify(aType) << " x " << stringify(bType) << " row " << row << " column "
                << column << " of " << tiles;
      }
}

/// One NaN in the last tile, and all tiles are as they were.
TEST(WarpGemm, TilesLeaveSpecialValues) {
  std::mt19937 rng(29);
  Tiles tiles(rng, MmaType::E4M3, MmaType::E4M3, 4);
  tiles.b.back() = 0x7F;
  const std::vector<Register> before = tiles.d;
  EXPECT_FALSE(tiles.multiply(MmaType::E4M3, MmaType::E4M3));
  EXPECT_EQ(tiles.d, before);
}

/// Infinity, NaN and what is beyond fp32 is left to others, and D is as it was.
TEST(WarpGemm, LeavesSpecialValues) {
  for (const auto &[type, code] : {std::pair{MmaType::F16, 0x7C00u},
                                   {MmaType::BF16, 0xFF80u},
                                   {MmaType::BF16, 0x7F7Fu},
                                   {MmaType::E4M3, 0xFFu},
                                   {MmaType::E5M2, 0x7Du}}) {
    Fragments f;
    f.a[0][5] = code;
    f.b[0].fill(code == 0x7F7F ? 0x7F7F7F7F : 0x01010101);
    f.d[1].fill(7);
    EXPECT_FALSE(multiplyWarp(f.product(type, type, isNarrow(type) ? 32 : 16))) << stringify(type);
    EXPECT_EQ(f.d[1][3], 7u);
  }
}

} // namespace
