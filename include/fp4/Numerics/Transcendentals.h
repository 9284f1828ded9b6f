//===- Transcendentals.h - exp, tanh and erf in fp32 operations -----------===//
//
// Activations need functions that no target has as an exact instruction, and that differ between
// targets where they are approximated. These are programs of correctly rounded fp32 operations, so
// that a kernel, its reference and the simulator agree on every bit. They are templates over the
// kind of number: lib/Numerics evaluates them with floats (Elementwise.cpp), and kernels emit them
// on vectors (Float32 of KernelArithmetic).
//
// A kind of number F has +, -, * and /, and found by its arguments
//
//   fma(F, F, F), minimum(F, F), maximum(F, F)   a NaN stays one
//   like(F, float)                               a constant
//   bitsOf(F) -> I, floatOf(I) -> F              I has + and - of an int and of an I, &, |, with an
//                                                I the arithmetic >> and << of an int
//   selectLess(F x, F y, F then, F otherwise)    x < y, false for NaN
//
// Polynomials: weighted least squares in Chebyshev nodes, fp64, rounded to fp32. Errors, measured
// in unittests/Numerics/ElementwiseTest.cpp: below 2 units in the last place of the result.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace fp4::numerics {

/// ((c[n-1] * x + ...) * x + c[0]) in fused steps.
template <typename F, unsigned n> F polynomial(F x, const float (&c)[n]) {
  F sum = like(x, c[n - 1]);
  for (unsigned i = n - 1; i-- > 0;)
    sum = fma(sum, x, like(x, c[i]));
  return sum;
}

/// e^x. Overflows to infinity, keeps subnormal results.
template <typename F> F exponential(F x) {
  constexpr float log2e = 0x1.715476p+0f, magic = 0x1.8p+23f; // bits of magic + n: 0x4B400000 + n
  constexpr float ln2High = 0x1.62e400p-1f, ln2Low = 0x1.7f7d1cp-20f;
  constexpr float tail[] = {0.5f, 0x1.55548ap-3f, 0x1.55547cp-5f, 0x1.123dc0p-7f, 0x1.6d994ep-10f};
  x = minimum(maximum(x, like(x, -104.f)), like(x, 89.f)); // 0 and infinity are beyond
  F shifted = fma(x, like(x, log2e), like(x, magic));
  F n = shifted - like(x, magic);
  F r = fma(n, like(x, -ln2Low), fma(n, like(x, -ln2High), x));
  F p = fma(r * r, polynomial(r, tail), r) + like(x, 1.f);
  // 2^n may be no fp32 number, but halves of n give two that are. Only the last product rounds.
  auto exponent = bitsOf(shifted) - 0x4B400000;
  auto half = exponent >> 1;
  auto power = [](auto e) { return floatOf((e + 127) << 23); };
  return p * power(half) * power(exponent - half);
}

/// The sign of `sign` on the magnitude of `x`.
template <typename F> F withSignOf(F x, F sign) {
  return floatOf((bitsOf(x) & 0x7FFFFFFF) | (bitsOf(sign) & int(0x80000000)));
}

template <typename F> F magnitude(F x) { return floatOf(bitsOf(x) & 0x7FFFFFFF); }

template <typename F> F hyperbolicTangent(F x) {
  constexpr float tail[] = {-0x1.555536p-2f, 0x1.1107c4p-3f, -0x1.b84e64p-5f, 0x1.529024p-6f,
                            -0x1.778f9cp-8f};
  F a = magnitude(x), square = x * x, one = like(x, 1.f);
  F small = fma(square * x, polynomial(square, tail), x);
  F large = one - like(x, 2.f) / (exponential(a + a) + one);
  return withSignOf(selectLess(a, like(x, 0.625f), small, large), x); // of -0 too
}

template <typename F> F errorFunction(F x) {
  constexpr float near[] = {0x1.06eba8p-3f, -0x1.812744p-2f,  0x1.ce2e2cp-4f, -0x1.b810b4p-6f,
                            0x1.54d6fep-8f, -0x1.aa9f74p-11f, 0x1.5db412p-14f}; // erf(x) / x - 1
  constexpr float far[] = {-0x1.ba959ap-13f, -0x1.20ab4ep+0f, -0x1.4649f2p-1f, -0x1.a95b0ep-4f,
                           0x1.6b864ep-6f,   -0x1.8da970p-9f, 0x1.990c12p-13f}; // ln(1 - erf)
  F a = magnitude(x);
  F small = fma(x, polynomial(x * x, near), x);
  F large = like(x, 1.f) - exponential(polynomial(minimum(a, like(x, 4.f)), far));
  return withSignOf(selectLess(a, like(x, 0.9375f), small, large), x);
}

} // namespace fp4::numerics
