// The truncated fused dot product of the kinds f16, tf32, f8f6f4, mxf8f6f4, and integers.
#include "fp4/Numerics/DenseRow.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace fp4;
using namespace fp4::numerics;
using hw::AccumulatorType;
using hw::MmaType;

namespace {

/// The value of a code by the textbook, with a double.
double valueOf(MmaType type, uint32_t code) {
  struct Shape {
    MmaType type;
    int exponentBits, fractionBits;
  };
  static const Shape shapes[] = {
      {MmaType::F16, 5, 10}, {MmaType::BF16, 8, 7}, {MmaType::E4M3, 4, 3}, {MmaType::E5M2, 5, 2},
      {MmaType::E2M3, 2, 3}, {MmaType::E3M2, 3, 2}, {MmaType::E2M1, 2, 1}};
  for (const Shape &s : shapes)
    if (s.type == type) {
      const int bias = (1 << (s.exponentBits - 1)) - 1;
      const int fraction = int(code) & ((1 << s.fractionBits) - 1);
      const int field = int(code >> s.fractionBits) & ((1 << s.exponentBits) - 1);
      const double sign = code >> (s.exponentBits + s.fractionBits) & 1 ? -1 : 1;
      return sign * std::ldexp(field ? (1 << s.fractionBits) + fraction : fraction,
                               std::max(field, 1) - bias - s.fractionBits);
    }
  return 0;
}

uint32_t element(MmaType type, const std::vector<uint8_t> &a, const std::vector<uint8_t> &b,
                 unsigned k, uint32_t c, AccumulatorType d = AccumulatorType::F32, int scale = 0) {
  FactorRow fa, fb;
  decodeFactors(type, a.data(), false, false, fa);
  decodeFactors(type, b.data(), false, false, fb);
  return denseElement({fa.data(), k}, {fb.data(), k}, 2 * fractionBits(type), scale, d, c);
}

float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Rounds a double toward zero to fp32.
float towardZero(double x) {
  float f = float(x);
  if (std::abs(double(f)) > std::abs(x))
    f = std::nextafterf(f, 0.0f);
  return f;
}

TEST(DenseMma, DecodesEveryByteCode) {
  for (MmaType type : {MmaType::E4M3, MmaType::E5M2})
    for (uint32_t code = 0; code < 256; ++code) {
      std::vector<uint8_t> row(32, uint8_t(code));
      FactorRow out;
      decodeFactors(type, row.data(), false, false, out);
      if (out[7].kind != Factor::Finite)
        continue;
      EXPECT_EQ(std::ldexp(out[7].significand, out[7].exponent - int(fractionBits(type))),
                valueOf(type, code));
    }
}

TEST(DenseMma, SixBitAndFourBitTypesArePackedInSixteenByteHalves) {
  std::mt19937 rng(1);
  for (MmaType type : {MmaType::E2M3, MmaType::E3M2, MmaType::E2M1}) {
    const unsigned bits = type == MmaType::E2M1 ? 4 : 6;
    std::vector<uint8_t> row(32, 0);
    std::vector<uint32_t> codes(32);
    for (unsigned k = 0; k < 32; ++k) {
      codes[k] = rng() % (1u << bits);
      for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned at = k % 16 * bits + bit;
        row[k / 16 * 16 + at / 8] |= uint8_t((codes[k] >> bit & 1) << (at % 8));
      }
    }
    FactorRow out;
    decodeFactors(type, row.data(), false, false, out);
    for (unsigned k = 0; k < 32; ++k)
      EXPECT_EQ(std::ldexp(out[k].significand, out[k].exponent - int(fractionBits(type))),
                valueOf(type, codes[k]))
          << k;
  }
}

TEST(DenseMma, ExactSumsRoundTowardZero) {
  // Small e4m3 values: no product is truncated, so the sum is the real one, cut to fp32.
  std::mt19937 rng(2);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> a(32), b(32);
    double sum = 0;
    for (int k = 0; k < 32; ++k) {
      a[k] = uint8_t(rng() % 0x50 | (rng() & 0x80));
      b[k] = uint8_t(rng() % 0x50 | (rng() & 0x80));
      sum += valueOf(MmaType::E4M3, a[k]) * valueOf(MmaType::E4M3, b[k]);
    }
    const float c = float(int(rng() % 2000) - 1000) / 8;
    const double exact = sum + double(c);
    // Multiples of 2^-18, and emax <= 10: aligned at 2^-15 at the coarsest for the largest.
    const float got = asFloat(element(MmaType::E4M3, a, b, 32, std::bit_cast<uint32_t>(c)));
    EXPECT_NEAR(got, towardZero(exact), 33 * std::ldexp(1.0, 10 - 25));
  }
}

TEST(DenseMma, KnownSums) {
  const auto half = [](float x) { return std::bit_cast<uint16_t>(_Float16(x)); };
  std::vector<uint8_t> a(32), b(32);
  for (int k = 0; k < 16; ++k) {
    const uint16_t x = half(float(k)), y = half(0.5f);
    std::memcpy(&a[2 * k], &x, 2);
    std::memcpy(&b[2 * k], &y, 2);
  }
  EXPECT_EQ(asFloat(element(MmaType::F16, a, b, 16, 0)), 60.0f);
  EXPECT_EQ(asFloat(element(MmaType::F16, a, b, 16, std::bit_cast<uint32_t>(-60.0f))), 0.0f);
  EXPECT_EQ(element(MmaType::F16, a, b, 16, half(1.0f), AccumulatorType::F16), half(61.0f));
  EXPECT_EQ(asFloat(element(MmaType::F16, a, b, 16, 0, AccumulatorType::F32, 3)), 480.0f);
}

TEST(DenseMma, ProductsBelow25BitsAreCut) {
  const auto half = [](float x) { return std::bit_cast<uint16_t>(_Float16(x)); };
  std::vector<uint8_t> a(32, 0), b(32, 0);
  const uint16_t one = half(1.0f), small = half(std::ldexp(1.0f, -13));
  std::memcpy(&a[0], &one, 2);
  std::memcpy(&b[0], &one, 2);
  std::memcpy(&a[2], &small, 2);
  std::memcpy(&b[2], &small, 2); // 2^-26 beside 1.0: below 2^-25
  const uint32_t c = std::bit_cast<uint32_t>(-1.0f);
  EXPECT_EQ(asFloat(element(MmaType::F16, a, b, 16, c)), 0.0f);
  const uint16_t bigger = half(std::ldexp(1.0f, -12)); // 2^-25 is kept
  std::memcpy(&a[2], &bigger, 2);
  EXPECT_EQ(asFloat(element(MmaType::F16, a, b, 16, c)), std::ldexp(1.0f, -25));
}

TEST(DenseMma, SpecialValues) {
  std::vector<uint8_t> a(32, 0), b(32, 0);
  const auto put = [](std::vector<uint8_t> &row, int k, uint16_t bits) {
    std::memcpy(&row[2 * k], &bits, 2);
  };
  put(a, 0, 0x7C00);
  put(b, 0, 0x3C00);
  EXPECT_EQ(element(MmaType::F16, a, b, 16, 0), 0x7F800000u) << "inf * 1";
  put(b, 0, 0xBC00);
  EXPECT_EQ(element(MmaType::F16, a, b, 16, 0), 0xFF800000u) << "inf * -1";
  EXPECT_EQ(element(MmaType::F16, a, b, 16, 0x7F800000u), denseNaN) << "-inf + inf";
  put(b, 0, 0);
  EXPECT_EQ(element(MmaType::F16, a, b, 16, 0), denseNaN) << "inf * 0";
  put(a, 0, 0x7E00);
  EXPECT_EQ(element(MmaType::F16, a, b, 16, 0), denseNaN);
}

TEST(DenseMma, Integers) {
  std::vector<uint8_t> a(32, 0xFF), b(32, 2);
  EXPECT_EQ(integerElement(a.data(), b.data(), false, false, false, 1), 32u * 255 * 2 + 1);
  EXPECT_EQ(int32_t(integerElement(a.data(), b.data(), true, true, false, 0)), -64);
  EXPECT_EQ(int32_t(integerElement(a.data(), b.data(), false, false, true, 0x7FFFFFF0)),
            0x7FFFFFFF);
}

/// 32 bytes of random codes: all bits, or exponents and signs that seldom meet infinities.
std::vector<uint8_t> randomRow(std::mt19937 &rng, MmaType type, bool moderate) {
  std::vector<uint8_t> row(32);
  for (uint8_t &byte : row)
    byte = uint8_t(rng());
  const size_t size = type == MmaType::TF32                           ? 4
                      : type == MmaType::F16 || type == MmaType::BF16 ? 2
                                                                      : 1;
  for (size_t i = size - 1; moderate && i < 32; i += size) // exponents around the middle
    row[i] = size == 1 ? (row[i] & 0x9F) | 0x20 : (row[i] & 0x87) | 0x38;
  return row;
}

/// All of them must give the same bits.
std::vector<const DenseRowMethod *> supportedMethods() {
  std::vector<const DenseRowMethod *> methods;
  for (const DenseRowMethod &method : denseRowMethods())
    if (method.supported())
      methods.push_back(&method);
  return methods;
}

TEST(DenseMma, RowsEqualTheDefinition) {
  std::mt19937 rng(7);
  const std::pair<MmaType, unsigned> types[] = {{MmaType::F16, 16},  {MmaType::BF16, 16},
                                                {MmaType::TF32, 8},  {MmaType::E4M3, 32},
                                                {MmaType::E5M2, 32}, {MmaType::E2M1, 32}};
  for (const auto &[type, k] : types)
    for (int pass = 0; pass < 48; ++pass) {
      const bool moderate = pass % 4 != 0;
      const auto dType = pass % 3 == 1 ? AccumulatorType::F16 : AccumulatorType::F32;
      const DensePrecision precision = pass % 5 == 2 ? hopperFP8 : DensePrecision{};
      const unsigned bits = 2 * fractionBits(type);
      if (int(bits) > precision.align)
        continue;
      FactorRow a;
      decodeFactors(type, randomRow(rng, type, moderate).data(), false, false, a);
      std::vector<FactorRow> columns(40);
      std::vector<int32_t> scales(columns.size());
      std::vector<uint32_t> d(columns.size()), expected;
      for (size_t j = 0; j < columns.size(); ++j) {
        decodeFactors(type, randomRow(rng, type, moderate).data(), false, pass & 1, columns[j]);
        scales[j] = pass % 7 == 3 ? int(rng() % 254) - 127 : 0;
        d[j] = pass % 6 == 5 ? 0 : moderate ? (rng() & 0x87FFFFFF) | 0x38000000 : rng();
        if (dType == AccumulatorType::F16)
          d[j] &= 0xFFFF;
        expected.push_back(denseElement({a.data(), k}, {columns[j].data(), k}, bits, scales[j],
                                        dType, d[j], precision));
      }
      for (const DenseRowMethod *method : supportedMethods()) {
        std::vector<uint32_t> results = d;
        const DenseRow row{results.data(), scales.data()};
        method->run(DenseRows({&a, 1}, k), DenseColumns(columns, k), {&row, 1},
                    {bits, dType, precision});
        EXPECT_EQ(results, expected) << method->name << " " << stringify(type) << " pass " << pass;
      }
      denseRow(a, DenseColumns(columns, k), scales, d, {bits, dType, precision});
      EXPECT_EQ(d, expected) << stringify(type) << " pass " << pass;
    }
}

/// A code of 16 bits that makes sums difficult: zeros, subnormals, the largest, exponents far
/// apart, and seldom an infinity or NaN.
uint16_t difficultHalf(std::mt19937 &rng, MmaType type) {
  const unsigned fraction = fractionBits(type), top = (1u << (15 - fraction)) - 1;
  const uint16_t sign = uint16_t(rng() & 0x8000), low = uint16_t(rng() & ((1u << fraction) - 1));
  switch (rng() % 8) {
  case 0:
    return sign;
  case 1:
    return sign | low; // subnormal
  case 2:
    return sign | uint16_t(((top - 1) << fraction) | ((1u << fraction) - 1));
  case 3:
    return rng() % 64 ? sign | low : sign | uint16_t(top << fraction) | (rng() % 2 ? low : 0);
  default: // within the range of fp32 when multiplied
    return sign | uint16_t((top / 4 + rng() % (top / 2)) << fraction) | low;
  }
}

TEST(DenseMma, DifficultSumsEqualTheDefinition) {
  std::mt19937 rng(11);
  constexpr unsigned k = 16, m = 8, n = 45; // not a multiple of what is done at a time
  for (int pass = 0; pass < 60; ++pass) {
    const MmaType type = pass % 2 ? MmaType::BF16 : MmaType::F16;
    const auto dType = pass % 5 == 4 ? AccumulatorType::F16 : AccumulatorType::F32;
    std::vector<uint16_t> codesA(m * k), codesB(n * k);
    for (uint16_t &code : codesA)
      code = difficultHalf(rng, type);
    for (unsigned i = 0; i < n * k; ++i) // some columns repeat a row with other signs
      codesB[i] = i / k % 3 ? difficultHalf(rng, type) : codesA[i % k] ^ (i % 2 ? 0x8000 : 0);
    const auto *bytesA = reinterpret_cast<const uint8_t *>(codesA.data());
    const auto *bytesB = reinterpret_cast<const uint8_t *>(codesB.data());
    const bool negate = pass % 7 == 0;
    const DenseRows a(type, {bytesA, 32 * m}, false, false);
    const DenseColumns b(type, {bytesB, 32 * n}, 32, false, negate);
    std::vector<uint32_t> d(m * n), expected(m * n);
    std::vector<DenseRow> rows(m);
    for (unsigned i = 0; i < m * n; ++i) {
      const uint32_t bits = rng();
      d[i] = dType == AccumulatorType::F16 ? bits & 0xFFFF : bits % 4 ? bits : bits & 0x80000000;
      FactorRow ofA, ofB;
      decodeFactors(type, bytesA + i / n * 32, false, false, ofA);
      decodeFactors(type, bytesB + i % n * 32, false, negate, ofB);
      expected[i] =
          denseElement({ofA.data(), k}, {ofB.data(), k}, 2 * fractionBits(type), 0, dType, d[i]);
    }
    for (const DenseRowMethod *method : supportedMethods()) {
      std::vector<uint32_t> results = d;
      for (unsigned row = 0; row < m; ++row)
        rows[row].d = &results[row * n];
      method->run(a, b, rows, {2 * fractionBits(type), dType, {}});
      EXPECT_EQ(results, expected) << method->name << " " << stringify(type) << " pass " << pass;
    }
  }
}

/// Effects of one element of C and a few of a product on the choice of emax: every exponent of
/// both, also those whose products fp32 cannot hold, beside zeros.
TEST(DenseMma, EveryExponentEqualsTheDefinition) {
  constexpr unsigned k = 16, n = 256;
  for (int eighth = 0; eighth < 32; ++eighth)
    for (const auto dType : {AccumulatorType::F32, AccumulatorType::F16}) {
      std::vector<uint16_t> codesA(k), codesB(n * k);
      codesA[3] = uint16_t(eighth << 10 | 0x55);
      codesA[7] = uint16_t(0x8000 | eighth << 10 | 0x2A);
      std::vector<uint32_t> d(n), expected(n);
      const auto *bytesA = reinterpret_cast<const uint8_t *>(codesA.data());
      const auto *bytesB = reinterpret_cast<const uint8_t *>(codesB.data());
      FactorRow ofA, ofB;
      decodeFactors(MmaType::BF16, bytesA, false, false, ofA);
      for (unsigned j = 0; j < n; ++j) {
        codesB[j * k + 3] = uint16_t(j << 7 | 0x33);
        codesB[j * k + 7] = uint16_t(j % 3 ? (j * 37 & 0xFF) << 7 : 0);
        d[j] = dType == AccumulatorType::F16 ? (j * 0x2F1 & 0xFFFF) : j * 0x01F35A71u;
        decodeFactors(MmaType::BF16, bytesB + j * 32, false, false, ofB);
        expected[j] = denseElement({ofA.data(), k}, {ofB.data(), k}, 14, 0, dType, d[j]);
      }
      const DenseRows a(MmaType::BF16, {bytesA, 32}, false, false);
      const DenseColumns b(MmaType::BF16, {bytesB, 32 * n}, 32, false, false);
      for (const DenseRowMethod *method : supportedMethods()) {
        std::vector<uint32_t> results = d;
        const DenseRow row{results.data()};
        method->run(a, b, {&row, 1}, {14, dType, {}});
        EXPECT_EQ(results, expected) << method->name << " exponent " << eighth;
      }
    }
}

/// Selections of a sparse A, columns of 64 bytes, scales far apart and a C that counts less.
TEST(DenseMma, SparseAndScaledRowsAreAlike) {
  std::mt19937 rng(13);
  constexpr unsigned m = 4, n = 37;
  for (int pass = 0; pass < 24; ++pass) {
    const bool sparse = pass % 2;
    const unsigned columnBytes = sparse ? 64 : 32;
    std::vector<uint8_t> bytesA, bytesB;
    const auto append = [&](std::vector<uint8_t> &to) {
      const std::vector<uint8_t> row = randomRow(rng, MmaType::E5M2, pass % 3 != 0);
      to.insert(to.end(), row.begin(), row.end());
    };
    while (bytesA.size() < 32 * m)
      append(bytesA);
    while (bytesB.size() < columnBytes * n)
      append(bytesB);
    std::vector<int32_t> scales(m * n);
    std::vector<uint32_t> d(m * n), expected;
    std::vector<uint8_t> selection(32);
    for (unsigned i = 0; i < 32; ++i)
      selection[i] = uint8_t(2 * i + rng() % 2);
    for (unsigned i = 0; i < m * n; ++i) {
      scales[i] = int(rng() % 508) - 254;
      d[i] = rng();
    }
    const DenseRows a(MmaType::E5M2, bytesA, false, false);
    const DenseColumns b(MmaType::E5M2, bytesB, columnBytes, false, false);
    const DenseRowOptions options{4, AccumulatorType::F32, {}, pass % 5};
    for (const DenseRowMethod *method : supportedMethods()) {
      std::vector<uint32_t> results = d;
      std::vector<DenseRow> rows(m);
      for (unsigned row = 0; row < m; ++row)
        rows[row] = {&results[row * n], pass % 3 ? &scales[row * n] : nullptr,
                     sparse ? selection.data() : nullptr};
      method->run(a, b, rows, options);
      if (expected.empty())
        expected = results;
      EXPECT_EQ(results, expected) << method->name << " pass " << pass;
    }
  }
}

TEST(DenseMma, LargestSumsDoNotOverflow) {
  // Sixteen products of the largest significands and C of the same exponent: 2^31 and more units.
  const std::vector<uint16_t> largest(16, 0x3FFF);
  const auto *bytes = reinterpret_cast<const uint8_t *>(largest.data());
  for (bool negate : {false, true})
    for (float c : {1.9999999f, -1.9999999f, 0.0f}) {
      const DenseRows a(MmaType::F16, {bytes, 32}, false, false);
      const DenseColumns b(MmaType::F16, {bytes, 32}, 32, false, negate);
      uint32_t d = std::bit_cast<uint32_t>(c);
      FactorRow ofA, ofB;
      decodeFactors(MmaType::F16, bytes, false, false, ofA);
      decodeFactors(MmaType::F16, bytes, false, negate, ofB);
      const uint32_t expected =
          denseElement({ofA.data(), 16}, {ofB.data(), 16}, 20, 0, AccumulatorType::F32, d);
      for (const DenseRowMethod *method : supportedMethods()) {
        uint32_t result = d;
        const DenseRow row{&result};
        method->run(a, b, {&row, 1}, {20, AccumulatorType::F32, {}});
        EXPECT_EQ(result, expected) << method->name << " " << c;
      }
      const DenseRow row{&d};
      denseRows(a, b, {&row, 1}, {20, AccumulatorType::F32, {}});
      EXPECT_GT(std::abs(asFloat(d)), 50.0f);
    }
}

} // namespace
