//===- Random.h - The random numbers of inputs ----------------------------===//
#pragma once

#include <cstdint>

namespace fp4::harness {

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere, unlike <random>'s
/// distributions.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// [0, 1) with 53 bits.
  double unit() { return double(next() >> 11) * 0x1p-53; }
  uint32_t below(uint32_t bound) { return uint32_t((next() >> 32) * bound >> 32); }
  /// Normal(0, 1): the sum of 12 uniforms less 6. The tails end at 6 sigma, and no libm is needed,
  /// so that every machine makes the same bits.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += unit();
    return sum;
  }

private:
  uint64_t state_;
};

} // namespace fp4::harness
