// MXFP4 weights for activations of e4m3: the place of every code, the exponents of blocks, the
// range that is exact, and the model of their GEMM.
#include "fp4/Numerics/ByteWeights.h"
#include "TestData.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/DenseMma.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr uint64_t rows = 256, columns = 384, elements = rows * columns;

/// Scales of a row of a tile are at most 2^`spread` apart.
struct Weights {
  std::vector<uint8_t> codes, scales;
  explicit Weights(unsigned spread, unsigned least = 100)
      : codes(elements / 2), scales(elements / 32) {
    test::Random random(17);
    for (uint8_t &byte : codes)
      byte = uint8_t(random.word());
    for (uint8_t &byte : scales)
      byte = uint8_t(least + random.word() % (spread + 1));
  }
  double value(uint64_t i) const {
    return decodeE2M1(codes[i / 2] >> (i % 2 * 4) & 15) * double(decodeUE8M0(scales[i / 32]));
  }
};

TEST(ByteWeights, EveryPlaceOfATileIsTakenOnce) {
  std::set<std::pair<unsigned, unsigned>> places;
  std::set<unsigned> words;
  for (unsigned i = 0; i < hw::byteWords; ++i)
    for (unsigned n = 0; n < 8; ++n)
      places.insert({hw::byteWord(i).row, hw::byteWord(i).column + n % 4 + n / 4 * 16});
  for (unsigned row = 0; row < 128; ++row)
    words.insert(hw::byteRowWord(row));
  EXPECT_EQ(places.size(), 128u * 128);
  EXPECT_EQ(words.size(), 128u);
  EXPECT_EQ(*words.begin(), unsigned(hw::byteCodeBytes));
  EXPECT_EQ(*words.rbegin(), unsigned(hw::byteTileBytes - 4));
}

TEST(ByteWeights, EveryMagnitudeOfEveryExponentIsANormalE4M3) {
  for (unsigned exponent = 0; exponent <= unsigned(hw::byteMostExponent); ++exponent)
    for (unsigned code = 0; code < 8; ++code) {
      const uint32_t word =
          hw::byteMagnitudes[code / 4] + exponent * hw::byteExponentSteps[code / 4];
      const uint8_t byte = uint8_t(word >> code % 4 * 8);
      EXPECT_EQ(double(decodeE4M3(byte)),
                std::ldexp(decodeE2M1(uint8_t(code)), int(exponent) - hw::byteExponentBias));
      EXPECT_TRUE(code == 0 || byte >= 8) << "normal";
    }
}

TEST(ByteWeights, TheConversionIsExactAndUnpackIsTheInverse) {
  for (unsigned least : {0u, 1u, 100u, 243u}) { // up to 2^127
    const Weights weights(11, least);
    const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns);
    ASSERT_TRUE(tiles);
    EXPECT_EQ(tiles->size(), 2u * 3 * hw::byteTileBytes);
    const auto bytes = decodeByteWeights(*tiles, rows, columns);
    ASSERT_TRUE(bytes);
    for (uint64_t i = 0; i < elements; ++i)
      ASSERT_EQ(double(decodeE4M3(bytes->elements[i])) * bytes->powers[i / 128], weights.value(i));
    const auto back = unpackByteWeights(*tiles, rows, columns);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->codes, weights.codes);
    EXPECT_EQ(back->scales, weights.scales);
    EXPECT_FALSE(findFarScales(weights.codes, weights.scales, rows, columns));
  }
}

TEST(ByteWeights, ScalesThatAreTooFarApartMakeTheRowNaNThere) {
  Weights weights(0);
  const uint64_t block = (130 * columns + 128) / 32; // row 130, the second tile
  weights.scales[block] = 111;                       // 2^11 above the others
  auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns);
  EXPECT_FALSE(std::isnan(decodeByteWeights(*tiles, rows, columns)->powers[130 * 3 + 1]));
  EXPECT_FALSE(findFarScales(weights.codes, weights.scales, rows, columns));
  weights.scales[block] = 112;
  tiles = packByteWeights(weights.codes, weights.scales, rows, columns);
  const auto powers = decodeByteWeights(*tiles, rows, columns)->powers;
  for (uint64_t i = 0; i < powers.size(); ++i)
    EXPECT_EQ(std::isnan(powers[i]), i == 130 * 3 + 1);
  const auto back = unpackByteWeights(*tiles, rows, columns);
  for (uint64_t j = 0; j < 4; ++j)
    EXPECT_EQ(back->scales[block + j], 0xFF);
  EXPECT_EQ(back->codes, weights.codes);
  const auto far = findFarScales(weights.codes, weights.scales, rows, columns);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->row, 130u);
  EXPECT_EQ(far->column, 128u);
  EXPECT_EQ(far->smallest, 100);
  EXPECT_EQ(far->largest, 112);
}

TEST(ByteWeights, ABlockOfZerosHasNoScale) {
  Weights weights(0);
  weights.scales[5] = 0;
  for (uint64_t byte = 5 * 16; byte < 6 * 16; ++byte)
    weights.codes[byte] &= 0x88; // zeros of either sign
  const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns);
  EXPECT_FALSE(findFarScales(weights.codes, weights.scales, rows, columns));
  const auto bytes = decodeByteWeights(*tiles, rows, columns);
  for (uint64_t i = 0; i < elements; ++i)
    ASSERT_EQ(double(decodeE4M3(bytes->elements[i])) * bytes->powers[i / 128], weights.value(i));
  EXPECT_EQ(unpackByteWeights(*tiles, rows, columns)->codes, weights.codes);
}

TEST(ByteWeights, ANaNScaleMakesTheRowNaNThere) {
  Weights weights(3);
  weights.scales[2] = 0xFF;
  const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns);
  EXPECT_TRUE(std::isnan(decodeByteWeights(*tiles, rows, columns)->powers[0]));
  EXPECT_FALSE(std::isnan(decodeByteWeights(*tiles, rows, columns)->powers[1]));
}

TEST(ByteWeights, ZerosFillTheLastTiles) {
  const uint64_t n = 201, k = 288;
  const Weights weights(11, 100);
  std::vector<uint8_t> codes, scales;
  for (uint64_t row = 0; row < n; ++row) {
    const auto ofCodes = weights.codes.begin() + int64_t(row * columns / 2);
    const auto ofScales = weights.scales.begin() + int64_t(row * columns / 32);
    codes.insert(codes.end(), ofCodes, ofCodes + int64_t(k / 2));
    scales.insert(scales.end(), ofScales, ofScales + int64_t(k / 32));
  }
  for (PowersOf powers : {PowersOf::Tiles, PowersOf::Rows}) {
    const auto tiles = packByteWeights(codes, scales, n, k, powers);
    ASSERT_TRUE(tiles);
    EXPECT_EQ(tiles->size(), 2u * 3 * hw::byteTileBytes);
    const auto bytes = decodeByteWeights(*tiles, n, k);
    ASSERT_TRUE(bytes);
    for (uint64_t i = 0; i < n * k; ++i)
      ASSERT_EQ(double(decodeE4M3(bytes->elements[i])) * bytes->powers[i / k * 3 + i % k / 128],
                weights.value(i / k * columns + i % k));
    const auto all = decodeByteWeights(*tiles, rows, columns);
    for (uint64_t i = 0; i < elements; ++i)
      if (i / columns >= n || i % columns >= k)
        ASSERT_EQ(all->elements[i], 0);
    EXPECT_EQ(unpackByteWeights(*tiles, n, k)->codes, codes);
    EXPECT_FALSE(findFarScales(codes, scales, n, k, powers));
  }
}

TEST(ByteWeights, PartsOfABlockAreAnError) {
  const std::vector<uint8_t> codes(128 * 200 / 2), scales(128 * 6);
  const auto tiles = packByteWeights(codes, scales, 128, 200);
  ASSERT_FALSE(tiles);
  EXPECT_EQ(tiles.error().message,
            "prepacked weights for e4m3 must have whole scale blocks of mxfp4, with their tiles, "
            "but got 128 x 200");
}

/// The problem of a GEMM of `x`, m x columns e4m3, and of the first n rows of weights.
GemmProblem problemOf(const std::vector<uint8_t> &x, const ByteWeights &weights, uint64_t n) {
  GemmProblem p;
  p.format = BlockFormat::FP8Block128;
  p.rowsPerScaleB = 1;
  p.core = TensorCore::Converted;
  p.a = {x.data(), nullptr, x.size() / columns, 0, 0};
  p.b = {weights.elements.data(), reinterpret_cast<const uint8_t *>(weights.powers.data()), n, 0,
         0};
  p.depth = columns;
  return p;
}

/// Sums of small integers have few bits, and so are exact.
TEST(ByteWeights, ExactSumsAreExact) {
  const uint64_t m = 3, n = 9;
  const Weights weights(1);
  const auto bytes = decodeByteWeights(
      *packByteWeights(weights.codes, weights.scales, rows, columns), rows, columns);
  std::vector<uint8_t> x(m * columns);
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = encodeE4M3(i % 16 == i / columns ? 1.f : 0.f);
  GemmProblem p = problemOf(x, *bytes, n);
  for (uint64_t splits : {1, 2}) {
    p.splits = splits;
    const auto model = gemmMmaModel(p);
    const auto reference = gemmReference(p);
    ASSERT_TRUE(model && reference);
    for (uint64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (uint64_t k = 0; k < columns; ++k)
        sum += double(decodeE4M3(x[i / n * columns + k])) * weights.value(i % n * columns + k);
      EXPECT_EQ(double((*model)[i]), sum);
      EXPECT_EQ(reference->values[i], sum);
    }
  }
}

TEST(ByteWeights, TheModelIsWithinTheBound) {
  const uint64_t m = 4, n = 12;
  const Weights weights(11);
  const auto bytes = decodeByteWeights(
      *packByteWeights(weights.codes, weights.scales, rows, columns), rows, columns);
  test::Random random(5);
  std::vector<uint8_t> x(m * columns);
  for (uint8_t &code : x)
    code = uint8_t(random.word() % 0x7F | (random.word() & 0x80));
  GemmProblem p = problemOf(x, *bytes, n);
  p.splits = 2;
  std::vector<float> scales(m, 0.37f);
  p.rowAlpha = scales;
  const auto model = gemmMmaModel(p);
  const auto reference = gemmReference(p);
  ASSERT_TRUE(model && reference);
  for (uint64_t i = 0; i < m * n; ++i)
    EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]);
}

//===--- Powers of rows --------------------------------------------------===//

TEST(ByteWeights, ARowHasOnePowerInAllTiles) {
  Weights weights(5);
  for (uint64_t j = 0; j < 4; ++j) // the largest scale of row 0 is in its first tile
    weights.scales[j] = 111;
  const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns, PowersOf::Rows);
  ASSERT_TRUE(tiles);
  const auto bytes = decodeByteWeights(*tiles, rows, columns);
  for (uint64_t i = 0; i < elements; ++i) {
    ASSERT_EQ(bytes->powers[i / 128], bytes->powers[i / columns * 3]);
    ASSERT_EQ(double(decodeE4M3(bytes->elements[i])) * bytes->powers[i / 128], weights.value(i));
  }
  EXPECT_EQ(bytes->powers[0], float(decodeUE8M0(105)));
  const auto back = unpackByteWeights(*tiles, rows, columns);
  EXPECT_EQ(back->codes, weights.codes);
  EXPECT_EQ(back->scales, weights.scales);
}

TEST(ByteWeights, ABlockThatIsTooFarMakesTheWholeRowNaN) {
  Weights weights(0);
  const uint64_t block = (130 * columns + 128) / 32; // row 130, the second tile
  std::fill_n(&weights.scales[block], 4, uint8_t(112));
  const auto rowsAreNaN = [&](PowersOf powers) {
    const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns, powers);
    const auto bytes = decodeByteWeights(*tiles, rows, columns);
    for (uint64_t i = 0; i < bytes->powers.size(); ++i)
      EXPECT_EQ(std::isnan(bytes->powers[i]), powers == PowersOf::Rows && i / 3 == 130);
    return findFarScales(weights.codes, weights.scales, rows, columns, powers);
  };
  EXPECT_FALSE(rowsAreNaN(PowersOf::Tiles)); // of which each is exact
  const auto far = rowsAreNaN(PowersOf::Rows);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->row, 130u);
  EXPECT_EQ(far->column, 0u);
  EXPECT_EQ(far->smallest, 100);
  EXPECT_EQ(far->largest, 112);
  weights.scales[block] = 0xFF;
  EXPECT_FALSE(findFarScales(weights.codes, weights.scales, rows, columns, PowersOf::Rows));
  const auto tiles = packByteWeights(weights.codes, weights.scales, rows, columns, PowersOf::Rows);
  EXPECT_TRUE(std::isnan(decodeByteWeights(*tiles, rows, columns)->powers[130 * 3]));
}

/// Every instruction adds to the accumulator of the one before; k slices are added, and then
/// the power of the row multiplies.
TEST(ByteWeights, FastAccumulationIsThatOfTheInstructions) {
  const uint64_t m = 2, n = 5;
  const Weights weights(7);
  const auto bytes = decodeByteWeights(
      *packByteWeights(weights.codes, weights.scales, rows, columns, PowersOf::Rows), rows,
      columns);
  test::Random random(5);
  std::vector<uint8_t> x(m * columns);
  for (uint8_t &code : x)
    code = uint8_t(random.word() % 0x7F | (random.word() & 0x80));
  GemmProblem p = problemOf(x, *bytes, n);
  p.accumulatesFast = true;
  const auto rangeOf = [&](uint64_t row, uint64_t column, uint64_t begin, uint64_t end) {
    uint32_t acc = 0;
    for (uint64_t k = begin; k < end; k += 32) {
      FactorRow a, b;
      decodeFactors(hw::MmaType::E4M3, &x[row * columns + k], false, false, a);
      decodeFactors(hw::MmaType::E4M3, &bytes->elements[column * columns + k], false, false, b);
      acc = denseElement(a, b, 2 * fractionBits(hw::MmaType::E4M3), 0, hw::AccumulatorType::F32,
                         acc, hopperFP8);
    }
    return std::bit_cast<float>(acc);
  };
  bool differs = false;
  for (uint64_t splits : {1, 2}) {
    p.splits = splits;
    const auto model = gemmMmaModel(p), promoted = [&] {
      GemmProblem other = p;
      other.accumulatesFast = false;
      return gemmMmaModel(other);
    }();
    const auto reference = gemmReference(p);
    ASSERT_TRUE(model && promoted && reference);
    for (uint64_t i = 0; i < m * n; ++i) {
      const uint64_t row = i / n, column = i % n, half = splits == 2 ? 256 : columns;
      float sum = rangeOf(row, column, 0, half);
      if (splits == 2)
        sum += rangeOf(row, column, half, columns);
      EXPECT_EQ((*model)[i], sum * bytes->powers[column * 3]);
      EXPECT_LE(std::fabs((*model)[i] - reference->values[i]), reference->bounds[i]);
      differs |= (*model)[i] != (*promoted)[i];
    }
  }
  EXPECT_TRUE(differs);
}

TEST(ByteWeights, WorkersShareTilesOfPromotedAndOfFastSums) {
  const Weights weights(1);
  const auto bytes = decodeByteWeights(
      *packByteWeights(weights.codes, weights.scales, rows, columns, PowersOf::Rows), rows,
      columns);
  const std::vector<uint8_t> x(3 * columns, encodeE4M3(1.f));
  GemmProblem p = problemOf(x, *bytes, 32);
  p.streamK = StreamK{2, 16, 16};
  EXPECT_TRUE(gemmMmaModel(p));
  p.accumulatesFast = true;
  EXPECT_TRUE(gemmMmaModel(p));
  p.splits = 2;
  EXPECT_FALSE(gemmMmaModel(p));
}

} // namespace
