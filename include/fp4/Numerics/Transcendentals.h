//===- Transcendentals.h - exp, log, pow, tanh and erf in fp32 operations -===//
//
// Activations need functions that no target has as an exact instruction, and that differ between
// targets where they are approximated. The functions here are programs of correctly rounded fp32
// operations, so that a kernel, its reference and the simulator agree on every bit. The programs
// are templates over the kind of number: lib/Numerics evaluates them with floats (Elementwise.cpp),
// and kernels emit them on vectors (Float32 of KernelArithmetic).
//
// A kind of number F has +, -, * and /, and found by its arguments
//
//   fma(F, F, F), minimum(F, F), maximum(F, F)   a NaN stays one
//   like(F, float)                               a constant
//   bitsOf(F) -> I, floatOf(I) -> F              I has + and - of an int and of an I, &, |, with an
//                                                I the arithmetic >> and << of an int
//   selectLess(F x, F y, F then, F otherwise)    x < y, false for NaN
//
// Trigonometry.h and Remainder.h have more of them.
//
// Polynomials: weighted least squares in Chebyshev nodes, fp64, rounded to fp32. Errors, measured
// in unittests/Numerics/ElementwiseTest.cpp: below 2 units in the last place of the result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <utility>

namespace fp4::numerics {

/// ((c[n-1] * x + ...) * x + c[0]) in fused steps.
template <typename F, unsigned n> F polynomial(F x, const float (&c)[n]) {
  F sum = like(x, c[n - 1]);
  for (unsigned i = n - 1; i-- > 0;)
    sum = fma(sum, x, like(x, c[i]));
  return sum;
}

/// 2^n of the integer n.
template <typename F, typename I> F powerOfTwo(F, I n) { return floatOf((n + 127) << 23); }

/// p * 2^n. 2^n may be no fp32 number, but halves of n give two that are. Only the last product
/// rounds.
template <typename F, typename I> F timesPowerOfTwo(F p, I n) {
  auto half = n >> 1;
  return p * powerOfTwo(p, half) * powerOfTwo(p, n - half);
}

/// x = n ln 2 + r, |r| up to ln(2) / 2. `n` is that integer.
template <typename F> struct ExponentParts {
  F shifted, r; ///< bits of 1.5 * 2^23 + n: 0x4B400000 + n

  explicit ExponentParts(F x) : shifted(x), r(x) {
    constexpr float log2e = 0x1.715476p+0f, magic = 0x1.8p+23f;
    constexpr float ln2High = 0x1.62e400p-1f, ln2Low = 0x1.7f7d1cp-20f;
    shifted = fma(x, like(x, log2e), like(x, magic));
    F n = shifted - like(x, magic);
    r = fma(n, like(x, -ln2Low), fma(n, like(x, -ln2High), x));
  }
  auto n() const { return bitsOf(shifted) - 0x4B400000; }
};

/// e^r - 1 of a small r.
template <typename F> F exponentialOfRest(F r) {
  constexpr float tail[] = {0.5f, 0x1.55548ap-3f, 0x1.55547cp-5f, 0x1.123dc0p-7f, 0x1.6d994ep-10f};
  return fma(r * r, polynomial(r, tail), r);
}

/// e^x. Overflows to infinity, keeps subnormal results.
template <typename F> F exponential(F x) {
  x = minimum(maximum(x, like(x, -104.f)), like(x, 89.f)); // 0 and infinity are beyond
  ExponentParts<F> parts(x);
  return timesPowerOfTwo(exponentialOfRest(parts.r) + like(x, 1.f), parts.n());
}

/// e^x of |x| up to 87, where 2^n is an fp32 number: the same bits in fewer instructions.
template <typename F> F exponentialOfModest(F x) {
  ExponentParts<F> parts(x);
  return (exponentialOfRest(parts.r) + like(x, 1.f)) * powerOfTwo(x, parts.n());
}

/// e^x of |x| up to 86: the same bits, in fewer instructions again, because a sum of exponents
/// multiplies by 2^n.
template <typename F> F exponentialOfSmall(F x) {
  ExponentParts<F> parts(x);
  F p = exponentialOfRest(parts.r) + like(x, 1.f);
  return floatOf(bitsOf(p) + (parts.n() << 23));
}

/// 2^r of |r| up to 1/2.
template <typename F> F powerOfRest(F r) {
  constexpr float tail[] = {0x1.62e430p-1f, 0x1.ebfbdcp-3f,  0x1.c6aed6p-5f,
                            0x1.3b2cc4p-7f, 0x1.5f44dcp-10f, 0x1.4258d8p-13f}; // (2^r - 1) / r
  return fma(r, polynomial(r, tail), like(r, 1.f));
}

/// 2^x. Overflows to infinity, keeps subnormal results, exact for integers.
template <typename F> F exponentialOfTwo(F x) {
  F magic = like(x, 0x1.8p+23f);
  x = minimum(maximum(x, like(x, -151.f)), like(x, 129.f)); // 0 and infinity are beyond
  F shifted = x + magic;
  F r = x - (shifted - magic);
  return timesPowerOfTwo(powerOfRest(r), bitsOf(shifted) - 0x4B400000);
}

/// The sign of `sign` on the magnitude of `x`.
template <typename F> F withSignOf(F x, F sign) {
  return floatOf((bitsOf(x) & 0x7FFFFFFF) | (bitsOf(sign) & int(0x80000000)));
}

template <typename F> F magnitude(F x) { return floatOf(bitsOf(x) & 0x7FFFFFFF); }

/// e^x - 1. Small x keep their bits.
template <typename F> F exponentialMinusOne(F x) {
  constexpr float tail[] = {0.5f,           0x1.555556p-3f,  0x1.5554aep-5f,
                            0x1.111172p-7f, 0x1.6d7462p-10f, 0x1.a0516cp-13f}; // (e^r - 1 - r) / r^2
  F a = minimum(maximum(x, like(x, -30.f)), like(x, 89.f)); // -1 and infinity are beyond
  ExponentParts<F> parts(a);
  F r = parts.r, p = fma(r * r, polynomial(r, tail), r);
  // 2^n p + 2^n - 1, of which the half is finite where the whole overflows.
  F half = powerOfTwo(x, parts.n() - 1);
  F sum = fma(p, half, half - like(x, 0.5f));
  return selectLess(magnitude(x), like(x, 0x1p-25f), x, sum + sum); // no half of subnormal numbers
}

/// x = m * 2^e, m from sqrt(1/2) to sqrt(2). `rest` is what the logarithm of m has beside m - 1.
template <typename F> struct Logarithm {
  F e, f, rest;

  explicit Logarithm(F x) : e(x), f(x), rest(x) {
    constexpr float tail[] = {0x1.555564p-2f,  -0x1.00023cp-2f, 0x1.9998b0p-3f,  -0x1.5467dap-3f,
                              0x1.235f0ep-3f,  -0x1.0e610cp-3f, 0x1.0276dcp-3f,  -0x1.2d9544p-4f};
    F least = like(x, 0x1p-126f), one = like(x, 1.f); // subnormal numbers become normal ones
    F normal = selectLess(x, least, x * like(x, 0x1p+23f), x);
    auto exponent = (bitsOf(normal) - 0x3F3504F3) >> 23;
    f = floatOf(bitsOf(normal) - (exponent << 23)) - one;
    // The bits of 2^23 + 2^22 + n end with n.
    F n = floatOf(exponent + 0x4B400000) - like(x, 0x1.8p+23f);
    e = selectLess(x, least, n - like(x, 23.f), n);
    rest = f * f * fma(f, polynomial(f, tail), like(x, -0.5f));
  }
};

/// `y`, which is the logarithm of `x` where that is positive and finite, for all numbers.
template <typename F> F logarithmOrLimit(F y, F x) {
  F zero = like(x, 0.f), minusInfinity = like(x, -1.f) / zero;
  y = y + x * zero; // NaN for NaN
  y = selectLess(like(x, 0x1.fffffep+127f), x, x, y);
  y = selectLess(x, like(x, 0x1p-149f), minusInfinity, y);
  return selectLess(x, zero, zero / zero, y);
}

template <typename F> F finiteLogarithm(F x) {
  constexpr float ln2High = 0x1.62e400p-1f, ln2Low = 0x1.7f7d1cp-20f;
  Logarithm<F> parts(x);
  return fma(parts.e, like(x, ln2High), parts.f + fma(parts.e, like(x, ln2Low), parts.rest));
}

template <typename F> F logarithm(F x) { return logarithmOrLimit(finiteLogarithm(x), x); }

template <typename F> F logarithmOfTwo(F x) {
  constexpr float log2eHigh = 0x1.715476p+0f, log2eLow = 0x1.4ae0c0p-26f;
  Logarithm<F> parts(x);
  F low = fma(parts.rest, like(x, log2eHigh), parts.f * like(x, log2eLow));
  return logarithmOrLimit(parts.e + fma(parts.f, like(x, log2eHigh), low), x);
}

/// The logarithm of 1 + x. The bits that the sum lost come back as a first-order term.
template <typename F> F logarithmOfOnePlus(F x) {
  F one = like(x, 1.f), sum = x + one;
  F lost = x - (sum - one);
  F y = logarithmOrLimit(finiteLogarithm(sum), sum);
  y = selectLess(like(x, -1.f), x, selectLess(x, like(x, 0x1p+24f), y + lost / sum, y), y);
  return withSignOf(y, x); // also for -0
}

template <typename F> F hyperbolicTangent(F x) {
  constexpr float tail[] = {-0x1.555536p-2f, 0x1.1107c4p-3f, -0x1.b84e64p-5f, 0x1.529024p-6f,
                            -0x1.778f9cp-8f};
  F a = magnitude(x), square = x * x, one = like(x, 1.f);
  F small = fma(square * x, polynomial(square, tail), x);
  F large = one - like(x, 2.f) / (exponentialOfModest(minimum(a + a, like(x, 80.f))) + one);
  return withSignOf(selectLess(a, like(x, 0.625f), small, large), x); // also for -0
}

/// erf of |x| up to 0.9375.
template <typename F> F errorFunctionNearZero(F x) {
  constexpr float near[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e2cp-4f, -0x1.b810b4p-6f,
                            0x1.54d6fep-8f, -0x1.aa9f74p-11f, 0x1.5db412p-14f}; // erf(x) / x - 1
  return fma(x, polynomial(x * x, near), x);
}

template <typename F> F errorFunction(F x) {
  constexpr float far[] = {-0x1.ba959ap-13f, -0x1.20ab4ep+0f, -0x1.4649f2p-1f, -0x1.a95b0ep-4f,
                           0x1.6b864ep-6f,   -0x1.8da970p-9f, 0x1.990c12p-13f}; // ln(1 - erf)
  F a = magnitude(x);
  F small = errorFunctionNearZero(x);
  F large = like(x, 1.f) - exponentialOfModest(polynomial(minimum(a, like(x, 4.f)), far));
  return withSignOf(selectLess(a, like(x, 0.9375f), small, large), x);
}

/// The sum of two numbers, of which none is lost. |x| is at least |y|, or x is 0.
template <typename F> struct ExactSum {
  F high, low;
  ExactSum(F x, F y) : high(x + y), low(y - (high - x)) {}
};

/// erfc(a) of a from 1/2 on: t p(t) e^(-a^2) with t = 1 / (1 + a). The rounding errors of the
/// factors are kept, as the result has their relative errors. Keeps subnormal results.
template <typename F> F complementFarFromZero(F a) {
  constexpr float middle = 0x1.9ap-2f; // p is of t - middle
  constexpr float first = 0x1.9bbd18p-1f;
  constexpr float others[] = {0x1.17c802p-1f,  -0x1.49b936p-2f, -0x1.3328bcp-2f, 0x1.0d7348p-1f,
                              -0x1.03affap-3f, -0x1.282650p-1f, 0x1.e954d2p-1f,  -0x1.753ea4p-2f,
                              -0x1.49ddbcp+0f, 0x1.f6b99ep+0f};
  F one = like(a, 1.f);
  a = minimum(a, like(a, 10.25f)); // 0 is beyond
  F d = a + one, lost = a - (d - one), t = one / d;
  F tLow = t * fma(like(a, 0.f) - t, lost, fma(like(a, 0.f) - d, t, one));
  F minusSquare = a * (like(a, 0.f) - a);
  ExponentParts<F> parts(minusSquare);
  F r = parts.r - fma(a, a, minusSquare);
  F u = t - like(a, middle);
  ExactSum<F> p(like(a, first), u * polynomial(u, others));
  ExactSum<F> product(p.high, fma(p.high, exponentialOfRest(r), p.low));
  F rest = fma(t, product.low, tLow * product.high);
  return timesPowerOfTwo(fma(t, product.high, rest), parts.n());
}

/// 1 - erf(x), to the last bits where that is small.
template <typename F> F complementOfErrorFunction(F x) {
  F a = magnitude(x), far = complementFarFromZero(a);
  F large = selectLess(x, like(x, 0.f), like(x, 2.f) - far, far);
  return selectLess(a, like(x, 0.5f), like(x, 1.f) - errorFunctionNearZero(x), large);
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// The logarithm of a positive finite number to base 2, to about 2^-40 of it.
template <typename F> struct LongLogarithm {
  F high, low;

  explicit LongLogarithm(F x) : high(x), low(x) {
    Logarithm<F> parts(x);
    // s = f / (2 + f) of m = 1 + f, whose logarithm is the sum of 2 s^(2 k + 1) / (2 k + 1).
    F d = like(x, 2.f) + parts.f, lost = parts.f - (d - like(x, 2.f)), s = parts.f / d;
    F minusS = like(x, 0.f) - s;
    F sLow = fma(minusS, lost, fma(minusS, d, parts.f)) / d;
    F z = s * s, zLow = fma(s, s, like(x, 0.f) - z) + (s + s) * sLow;
    ExactSum<F> c = ratio(z, zLow);
    F product = s * c.high;
    F rest = fma(s, c.high, like(x, 0.f) - product) + fma(s, c.low, sLow * c.high);
    ExactSum<F> sum(parts.e, product);
    high = sum.high + (sum.low + rest);
    low = (sum.high - high) + (sum.low + rest);
  }

private:
  /// The logarithm over s, of z = s^2.
  static ExactSum<F> ratio(F z, F zLow) {
    constexpr float c0 = 0x1.715476p+1f, c0Low = 0x1.4ae0c0p-25f;
    constexpr float c1 = 0x1.ec709ep-1f, c1Low = -0x1.e2fe02p-28f;
    constexpr float tail[] = {0x1.2776c4p-1f, 0x1.a61946p-2f, 0x1.47b4b0p-2f, 0x1.202d38p-2f};
    ExactSum<F> inner(like(z, c1), fma(z, polynomial(z, tail), like(z, c1Low)));
    F product = z * inner.high;
    F rest = fma(z, inner.high, like(z, 0.f) - product) + fma(z, inner.low, zLow * inner.high);
    ExactSum<F> sum(like(z, c0), product);
    return {sum.high, sum.low + (rest + like(z, c0Low))};
  }
};

/// Distance of a magnitude from the integer below or above it; no number for infinity.
template <typename F> F distanceToInteger(F a) {
  F integer = selectLess(a, like(a, 0x1p+23f), (a + like(a, 0x1p+23f)) - like(a, 0x1p+23f), a);
  return magnitude(a - integer);
}

/// a^y of a positive finite a.
template <typename F> F powerOfPositive(F a, F y) {
  y = minimum(maximum(y, like(y, -0x1p+60f)), like(y, 0x1p+60f)); // infinite powers of 1 are 1
  LongLogarithm<F> logarithm(a);
  F t = y * logarithm.high;
  F low = fma(y, logarithm.high, like(a, 0.f) - t) + y * logarithm.low;
  low = selectLess(magnitude(t), like(a, 256.f), low, like(a, 0.f));
  t = minimum(maximum(t, like(a, -152.f)), like(a, 129.f)); // 0 and infinity are beyond
  F magic = like(a, 0x1.8p+23f), shifted = t + magic;
  F r = (t - (shifted - magic)) + low;
  return timesPowerOfTwo(powerOfRest(r), bitsOf(shifted) - 0x4B400000);
}

/// x^y with the special cases of IEEE 754: x^0 and 1^y are 1, of NaN too; powers of negative
/// numbers exist for integers y.
template <typename F> F power(F x, F y) {
  F zero = like(x, 0.f), one = like(x, 1.f), infinity = one / zero, tiny = like(x, 0x1p-149f);
  F a = magnitude(x), b = magnitude(y), most = like(x, 0x1.fffffep+127f);
  F result = powerOfPositive(a, y);
  result = selectLess(a, tiny, selectLess(y, zero, infinity, zero), result);
  result = selectLess(most, a, selectLess(y, zero, zero, infinity), result);
  result = result + minimum(a, one) * zero + minimum(b, one) * zero; // NaN for NaN
  // Odd numbers are integers whose halves are none.
  F fraction = distanceToInteger(b), half = distanceToInteger(b * like(x, 0.5f));
  F odd = selectLess(zero, fraction, zero, selectLess(zero, half, one, zero));
  F isNegative = selectLess(zero, odd, withSignOf(result, x), result);
  F noNumber = selectLess(most, a, isNegative, selectLess(x, zero, zero / zero, isNegative));
  result = selectLess(zero, fraction, noNumber, isNegative);
  result = selectLess(b, tiny, one, result);
  return selectLess(magnitude(x - one), tiny, one, result);
}

} // namespace fp4::numerics
