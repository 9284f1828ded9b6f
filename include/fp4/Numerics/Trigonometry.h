//===- Trigonometry.h - sin, cos and atan in fp32 operations --------------===//
//
// Programs as those of Transcendentals.h. The angle of a sine is reduced exactly, however large it
// is: 2 / pi is a table of bits, of which 96 from the place that the exponent says are multiplied
// by the significand in integers. Whole turns wrap around. The integer type I therefore also has,
// for unsigned numbers,
//
//   I * I                                        the low word of the product
//   highProduct(I, I)                            its high word
//   funnel(I high, I low, I n)                   the high word of (high, low) << (n mod 32)
//   like(I, unsigned)                            a constant
//   realOf(I) -> F                               of a signed number, to nearest even
//   selectLess(F, F, I, I)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Transcendentals.h"

namespace fp4::numerics {

/// x = quadrant * pi / 2 + r + low, |r| up to pi / 4; for x up to pi / 4 it is r. No number of fp32
/// is closer than 2^-30 to a multiple of pi / 2, and the product is exact to 2^-55 of a quadrant.
template <typename F> struct Angle {
  using I = decltype(bitsOf(std::declval<F>()));
  F r, low;
  I quadrant;

  explicit Angle(F a) : r(a), low(a), quadrant(bitsOf(a)) {
    I bits = bitsOf(a), m = (bits & 0x7FFFFF) + 0x800000;
    I window[4] = {wordOf(a, 0), wordOf(a, 1), wordOf(a, 2), wordOf(a, 3)};
    I n = (bits >> 23) + 8; // the exponent + 7, modulo 32
    I first = funnel(window[0], window[1], n), second = funnel(window[1], window[2], n);
    I third = funnel(window[2], window[3], n);
    // The word below these two is added in fp32, so that no sum of words carries.
    I high = m * first + highProduct(m, second), middle = m * second;
    setFraction(a, funnel(high, middle, like(bits, 2)), middle << 2, highProduct(m, third));
    F quarter = like(a, 0x1.921fb6p-1f); // pi / 4
    quadrant = selectLess(quarter, a, (high + 0x20000000) >> 30, like(bits, 0));
    r = selectLess(quarter, a, r, a);
    low = selectLess(quarter, a, low, like(a, 0.f));
  }

private:
  /// Word `number` of the bits that the exponent of `a` selects. 32 zeros are before those of 2 /
  /// pi.
  static I wordOf(F a, unsigned number) {
    constexpr unsigned twoOverPi[] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1,
                                      0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB};
    constexpr float least[] = {0x1p+25f, 0x1p+57f, 0x1p+89f, 0x1p+121f};
    I word = like(bitsOf(a), twoOverPi[number + 4]);
    for (unsigned i = 4; i-- > 0;)
      word = selectLess(a, like(a, least[i]), like(bitsOf(a), twoOverPi[number + i]), word);
    return word;
  }

  /// r = (high * 2^-32 + middle * 2^-64 + last * 2^-62) * pi / 2, of a signed `high`.
  void setFraction(F a, I high, I middle, I last) {
    constexpr float halfPi = 0x1.921fb6p+0f, halfPiLow = -0x1.777a5cp-25f;
    F x = realOf(high & ~0xFF) * like(a, 0x1p-32f);
    F rest = realOf(funnel(high, middle, like(high, 23)) & 0x7FFFFFFF) * like(a, 0x1p-55f);
    rest = fma(realOf(last), like(a, 0x1p-62f), rest);
    F product = x * like(a, halfPi), lost = fma(x, like(a, halfPi), like(a, 0.f) - product);
    rest = fma(rest, like(a, halfPi), fma(x, like(a, halfPiLow), lost));
    r = product + rest;
    low = rest - (r - product);
  }
};

/// The sine of a + turn * pi / 2, a from 0 on; infinity has none.
template <typename F> F sineFrom(F a, int turn) {
  constexpr float sine[] = {-0x1.555546p-3f, 0x1.11077ap-7f, -0x1.9954a8p-13f};
  constexpr float cosine[] = {0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e818p-16f};
  Angle<F> angle(a);
  F r = angle.r, z = r * r, one = like(a, 1.f);
  F s = r + fma(z * r, polynomial(z, sine), angle.low);
  F c = fma(z * z, polynomial(z, cosine), like(a, 0.f) - r * angle.low);
  c = one + fma(z, like(a, -0.5f), c);
  auto quadrant = angle.quadrant + turn;
  // 2.0 where the quadrant is odd, and the sign bit from the third on
  F y = selectLess(floatOf((quadrant & 1) << 30), one, s, c);
  y = floatOf(bitsOf(y) - ((quadrant & 2) << 30));
  return selectLess(a, like(a, 0x1.fffffep+127f), y, y + (a - a));
}

/// sin(-x) = -sin(x). Small x keep their bits.
template <typename F> F sine(F x) {
  F y = sineFrom(magnitude(x), 0);
  return floatOf(bitsOf(y) - (bitsOf(x) & int(0x80000000)));
}

template <typename F> F cosine(F x) { return sineFrom(magnitude(x), 1); }

/// atan of |x| = atan(t) + base with |t| up to tan(pi / 8).
template <typename F> F arcTangent(F x) {
  constexpr float tail[] = {-0x1.555548p-2f, 0x1.999124p-3f, -0x1.23addep-3f, 0x1.b18bb4p-4f,
                            -0x1.f02bacp-5f};
  F a = magnitude(x), one = like(x, 1.f), zero = like(x, 0.f);
  F near = like(x, 0x1.a8279ap-2f), far = like(x, 0x1.3504f4p+1f); // tan(pi / 8), tan(3 pi / 8)
  auto choose = [&](F first, F second, F third) {
    return selectLess(a, near, first, selectLess(far, a, third, second));
  };
  F t = choose(a, a - one, like(x, -1.f)) / choose(one, a + one, a);
  F base = choose(zero, like(x, 0x1.921fb6p-1f), like(x, 0x1.921fb6p+0f));
  F baseLow = choose(zero, like(x, -0x1.777a5cp-26f), like(x, -0x1.777a5cp-25f));
  F square = t * t;
  F rest = fma(square * t, polynomial(square, tail), baseLow);
  return withSignOf(base + (t + rest), x);
}

} // namespace fp4::numerics
