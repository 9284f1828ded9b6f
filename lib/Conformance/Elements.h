//===- Elements.h - Elements of the matrices that the cases multiply ------===//
//
// The matrix tests have three sets of data. Exact: small integers, whose sums a test can check.
// Moderate: random signs, fractions and a few exponents, which show how an accumulator rounds.
// Bits: any bits, NaN and infinities included, and 32-bit integers next to their limits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DeviceUnderTest.h"

#include <array>
#include <string_view>

namespace fp4::cts {

enum class Data { Exact, Moderate, Bits };
constexpr std::pair<Data, const char *> kAllData[] = {
    {Data::Exact, "_exact"}, {Data::Moderate, "_moderate"}, {Data::Bits, "_bits"}};

/// An element type: its PTX name, and the codes of 0, 1, 2, -1, -2 (unsigned types: 0 to 4).
struct Element {
  const char *name;
  unsigned bits;
  std::array<uint64_t, 5> codes;
  uint64_t moderate; ///< bits that a "moderate" value keeps of a random one
  uint64_t bias;     ///< bits that are set in a moderate value

  unsigned bytes() const { return bits / 8; }
  bool integer() const { return codes[1] == 1; }
  bool is(std::string_view text) const { return text == name; }
  uint64_t mask() const { return ~uint64_t(0) >> (64 - bits); }
  /// The value of one of `codes`.
  int valueOf(uint64_t code) const;
  /// The value of any code of f16, f32, f64 and s32, the types of results.
  double decode(uint64_t code) const;
};

inline const Element kF16{"f16", 16, {0, 0x3C00, 0x4000, 0xBC00, 0xC000}, 0x8FFF, 0x3000};
inline const Element kBF16{"bf16", 16, {0, 0x3F80, 0x4000, 0xBF80, 0xC000}, 0x83FF, 0x3C00};
inline const Element kTF32{
    "tf32", 32, {0, 0x3F800000, 0x40000000, 0xBF800000, 0xC0000000}, 0x83FFFFFF, 0x3C000000};
inline const Element kF32{
    "f32", 32, {0, 0x3F800000, 0x40000000, 0xBF800000, 0xC0000000}, 0x83FFFFFF, 0x3C000000};
inline const Element kF64{
    "f64",
    64,
    {0, 0x3FF0000000000000, 0x4000000000000000, 0xBFF0000000000000, 0xC000000000000000},
    0x807FFFFFFFFFFFFF,
    0x3F80000000000000};
inline const Element kE4M3{"e4m3", 8, {0, 0x38, 0x40, 0xB8, 0xC0}, 0xBF, 0};
inline const Element kE5M2{"e5m2", 8, {0, 0x3C, 0x40, 0xBC, 0xC0}, 0x9F, 0x20};
inline const Element kS32{"s32", 32, {0, 1, 2, 0xFFFFFFFF, 0xFFFFFFFE}, 0xFFFFFFFF, 0};
inline const Element kS8{"s8", 8, {0, 1, 2, 0xFF, 0xFE}, 0xFF, 0};
inline const Element kU8{"u8", 8, {0, 1, 2, 3, 4}, 0xFF, 0};
inline const Element kS4{"s4", 4, {0, 1, 2, 15, 14}, 15, 0};
inline const Element kU4{"u4", 4, {0, 1, 2, 3, 4}, 15, 0};
inline const Element kB1{"b1", 1, {0, 1, 0, 1, 1}, 1, 0};

/// Random codes of a set of data.
std::vector<uint64_t> makeCodes(const Element &e, size_t count, Data data, uint32_t seed);

/// Elements of `bits` bits in memory; `at` counts bits.
uint64_t getBits(const Bytes &bytes, size_t at, unsigned bits);
void setBits(Bytes &bytes, size_t at, unsigned bits, uint64_t value);

/// A list of registers, "{PREFIX0, PREFIX1, ...}".
std::string registerList(const char *prefix, unsigned count);

} // namespace fp4::cts
