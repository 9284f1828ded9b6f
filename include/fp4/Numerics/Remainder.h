//===- Remainder.h - The remainder of a division, exactly -----------------===//
//
// A program as those of Transcendentals.h, which rounds nowhere.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Transcendentals.h"

namespace fp4::numerics {

/// A positive finite number as m * 2^e, m from 1 to 2.
template <typename F> struct Scaled {
  using I = decltype(bitsOf(std::declval<F>()));
  F m;
  I exponent;

  explicit Scaled(F a) : m(a), exponent(bitsOf(a)) {
    F least = like(a, 0x1p-126f); // subnormal numbers become normal ones
    F normal = selectLess(a, least, a * like(a, 0x1p+23f), a);
    I bits = bitsOf(normal);
    m = floatOf((bits & 0x7FFFFF) + 0x3F800000);
    exponent = selectLess(a, least, (bits >> 23) - 150, (bits >> 23) - 127);
  }
};

/// r * factor less a multiple of b, of r up to 2 b and a factor of 2^20 at most. `factorOverB` is
/// the factor over b to nearest, so that the quotient is wrong by 0.63 at most: what is left is
/// below b, a multiple of the last place of b, and exact.
template <typename F> F divideStep(F r, F b, F factor, F factorOverB) {
  F magic = like(r, 0x1.8p+23f);
  F quotient = fma(r, factorOverB, magic) - magic;
  return fma(like(r, 0.f) - quotient, b, r * factor);
}

/// a mod b of finite numbers, 0 < b <= a: a long division with 20 bits to a step. Exponents of fp32
/// differ by 276 at most.
template <typename F> F remainderOfMagnitudes(F a, F b) {
  Scaled<F> x(a), y(b);
  F reciprocal = like(a, 1.f) / y.m, r = x.m;
  F magic = like(a, 0x1.8p+23f);
  F gap = floatOf((x.exponent - y.exponent) + 0x4B400000) - magic, left = gap;
  F factor = like(a, 0x1p+20f), factorOverB = reciprocal * factor;
  for (int bits = 20; bits <= 260; bits += 20) {
    F needed = like(a, static_cast<float>(bits));
    r = selectLess(gap, needed, r, divideStep(r, y.m, factor, factorOverB));
    left = selectLess(gap, needed, left, gap - needed);
  }
  F last = powerOfTwo(a, bitsOf(left + magic) - 0x4B400000);
  r = divideStep(r, y.m, last, reciprocal * last);
  r = selectLess(r, like(a, 0.f), r + y.m, r);
  return timesPowerOfTwo(r, y.exponent);
}

/// x - n y, n the quotient without its fraction: with the sign of x, as C's fmod.
template <typename F> F remainder(F x, F y) {
  F a = magnitude(x), b = magnitude(y), zero = like(x, 0.f);
  F result = selectLess(a, b, a, remainderOfMagnitudes(a, b));
  F noNumber = (a - a) + minimum(b, like(x, 1.f)) * zero; // NaN for infinity and NaN
  result = selectLess(b, like(x, 0x1p-149f), zero / zero, result + noNumber);
  return withSignOf(result, x);
}

} // namespace fp4::numerics
