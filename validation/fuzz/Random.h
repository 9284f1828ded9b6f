//===- Random.h - The random numbers of the fuzzers -----------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp4::fuzz {

/// splitmix64: a case is a function of the seed and its number alone.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Below `bound`, which is not 0.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <typename T> const T &of(const std::vector<T> &values) {
    return values[below(values.size())];
  }

private:
  uint64_t state;
};

} // namespace fp4::fuzz
