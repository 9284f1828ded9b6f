//===- Compare.h - Results against references -----------------------------===//
//
// Compares bit by bit (one value of every type is one bit pattern; if asked, any NaN equals any
// NaN), or within a bound per element. The two comparisons report the count, the first mismatches
// with their indices, and the largest distance in units in the last place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Float16.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fp4::numerics {

/// Results that are right besides a value within its bound.
enum Overflow : uint8_t {
  CannotOverflow,
  MayBeInfinite, ///< infinity, what the type has in its place, and NaN
  MayBeZero      ///< zero besides: a step of the epilogue makes it of an infinity
};

struct Mismatch {
  uint64_t row = 0, column = 0;
  double got = 0, expected = 0;
  double bound = 0;  ///< allowed distance; 0 in a bit comparison
  uint64_t ulps = 0; ///< distance in units of the element type; 2^64-1 where only one is NaN
};

struct CompareReport {
  uint64_t elements = 0;
  uint64_t mismatches = 0;
  uint64_t maxUlps = 0;        ///< over all elements
  double maxError = 0;         ///< largest |got - expected| over all elements
  double maxErrorOfBound = 0;  ///< largest |got - expected| / bound
  std::vector<Mismatch> first; ///< the first few mismatches in row-major order

  bool ok() const { return mismatches == 0; }
  bool withinBounds = false; ///< true for a result of compareWithin
  /// "all 131072 elements equal", or the count and a line for each first mismatch.
  std::string text() const;
};

struct CompareOptions {
  FloatType type = FloatType::F32; ///< type of the values; sets the unit in the last place
  uint64_t columns = 1;            ///< columns of a row, to turn positions into (row, column)
  unsigned keep = 8;               ///< mismatches to list
  bool nanEqual = true;            ///< all NaN bit patterns are one value
};

/// Distance of two values of `type` in representable steps; -0 and +0 are one step apart.
uint64_t ulpDistance(FloatType type, float a, float b);

/// `got` and `expected` bit by bit; both hold values representable in options.type. Sizes must be
/// equal: a missing or surplus element counts as a mismatch.
CompareReport compareBits(std::span<const float> got, std::span<const float> expected,
                          const CompareOptions &options);
/// Compares bytes (codes, scales): ulps are the difference of the byte values.
CompareReport compareBytes(std::span<const uint8_t> got, std::span<const uint8_t> expected,
                           const CompareOptions &options);
/// |got - expected| <= bound, element by element. NaN matches only NaN, and infinity only itself.
/// Without `mayOverflow` nothing may overflow.
CompareReport compareWithin(std::span<const float> got, std::span<const double> expected,
                            std::span<const double> bound, std::span<const Overflow> mayOverflow,
                            const CompareOptions &options);

} // namespace fp4::numerics
