// One K = 64 step of tcgen05.mma kind::mxf4 / mxf4nvf4.
//
// fp4MmaElement is the definition: five terms in integers of weight 2^(emax - 35), cut toward zero,
// added exactly, and the sum cut to 24 bits.
//
// fp4MmaStep gives the same bits faster. Call a row's or column's smallest and largest nonzero
// scale exponent over its groups lo and hi. For an element with accumulator exponent eC and
//   hi - lo <= 27,  hi - eC <= 12,  eC - lo <= 27   (sums of row and column; the last two if C !=
//   0)
// no term is cut in the alignment: a group term is a multiple of 2^(lo - 8) (two 4-bit significands
// and a sum of quarters) and C one of 2^(eC - 23). Terms and C lie below 2^(max(hi + 14, eC + 2)),
// at most 49 bits above the smallest weight, so the sum in fp64 is exact in any order, and clearing
// its low 29 bits rounds it toward zero. Elements that miss a condition (NaN scales among them)
// take the definition.
#include "StepKernels.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE5M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace fp4::numerics {
namespace {

constexpr int fractionBits = 35;
constexpr int zeroTermExponent = -139; ///< exponent of a term that is zero
constexpr float mmaNaN = std::bit_cast<float>(0x7FFFFFFFu);

/// A scale as significand / 8 * 2^exponent; significand 8..15, less for subnormal E4M3 and E5M3.
struct ScaleParts {
  int significand = 0, exponent = 0;
  bool nan = false;
};

ScaleParts scaleParts(hw::ScaleType type, uint8_t byte) {
  if (type == hw::ScaleType::UE8M0)
    return {8, static_cast<int>(byte) - 127, byte == ue8m0NaN};
  if (type == hw::ScaleType::UE5M3) {
    const int exponent = byte >> 3, mantissa = byte & 7;
    return {exponent ? 8 + mantissa : mantissa, std::max(exponent, 1) - 15, byte == ue5m3NaN};
  }
  const int exponent = (byte >> 3) & 15, mantissa = byte & 7;
  if (exponent == 0)
    return {mantissa, -6, false};
  return {8 + mantissa, exponent - 7, (byte & 0x7F) == 0x7F};
}

/// Byte of a row's scales that group `g` uses.
unsigned scaleIndex(hw::ScaleVector vector, unsigned g) {
  return vector == hw::ScaleVector::X4 ? g : g / 2;
}

/// Twice the value of an element: an integer.
int halves(const uint8_t *row, unsigned k) {
  return static_cast<int>(2.f * decodeE2M1(static_cast<uint8_t>(row[k / 2] >> (k % 2 * 4))));
}

/// A term `value` * 2^(exponent - weight), cut toward zero to a multiple of 2^(emax - 35).
struct Term {
  int64_t value = 0;
  int weight = 0; ///< fractional bits of value
  int exponent = zeroTermExponent;
};

int64_t align(const Term &t, int emax) {
  const int shift = t.exponent - emax + fractionBits - t.weight;
  if (shift >= 0)
    return t.value << shift; // at most 20 bits << 27 or 24 bits << 12
  if (shift <= -63)
    return 0;
  return t.value < 0 ? -(-t.value >> -shift) : t.value >> -shift;
}

/// sum * 2^(emax - 35) cut to fp32 toward zero; infinity from 2^128 up. Every zero is +0.
float cutToFloat(int64_t sum, int emax) {
  if (sum == 0)
    return 0.f;
  const bool negative = sum < 0;
  uint64_t magnitude = negative ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  int exponent = emax - fractionBits; // of the unit of `magnitude`
  const int top = 63 - std::countl_zero(magnitude);
  const int unit = std::max(exponent + top - 23, -149); // unit of the result
  if (exponent + top >= 128)
    return negative ? -INFINITY : INFINITY;
  const int drop = unit - exponent;
  magnitude = drop >= 64 ? 0 : drop >= 0 ? magnitude >> drop : magnitude << -drop;
  const float result = static_cast<float>(std::ldexp(static_cast<double>(magnitude), unit));
  return negative && result > 0.f ? -result : result;
}

Term groupTerm(hw::ScaleType type, const uint8_t *a, const uint8_t *b, const ScaleParts &sa,
               const ScaleParts &sb, unsigned g) {
  int sum = 0;
  bool allZero = true;
  for (unsigned k = g * groupSize; k < (g + 1) * groupSize; ++k) {
    const int product = halves(a, k) * halves(b, k);
    sum += product;
    allZero &= product == 0;
  }
  const int significand = sa.significand * sb.significand;
  // [uncertain] A group whose products are all zero gives up its exponent, and a group that cancels
  // keeps it, as in mmasim since 2.0.2. Random tests on hardware reach only groups that cancel
  // (docs/reference/numerics.md).
  if (allZero || significand == 0)
    return {};
  return {static_cast<int64_t>(sum) * significand, 8, sa.exponent + sb.exponent};
}

Term accumulatorTerm(float c) {
  const uint32_t u = bitsOf(c), exponent = (u >> 23) & 255;
  if (c == 0.f)
    return {};
  const int64_t significand = (u & 0x7FFFFF) | (exponent ? 0x800000 : 0);
  return {u >> 31 ? -significand : significand, 23, exponent ? int(exponent) - 127 : -126};
}

} // namespace

float fp4MmaElement(hw::ScaleType scaleType, hw::ScaleVector vector, const uint8_t *a,
                    const uint8_t *aScales, const uint8_t *b, const uint8_t *bScales, float c,
                    unsigned k) {
  constexpr unsigned mostGroups = 8;
  const unsigned groups = k / groupSize;
  std::array<Term, mostGroups + 1> terms = {};
  for (unsigned g = 0; g < groups; ++g) {
    const unsigned i = scaleIndex(vector, g);
    const ScaleParts sa = scaleParts(scaleType, aScales[i]), sb = scaleParts(scaleType, bScales[i]);
    if (sa.nan || sb.nan)
      return mmaNaN;
    terms[g] = groupTerm(scaleType, a, b, sa, sb, g);
  }
  if (std::isnan(c))
    return mmaNaN;
  if (std::isinf(c))
    return c;
  terms[groups] = accumulatorTerm(c);
  int emax = zeroTermExponent;
  for (const Term &t : terms)
    emax = std::max(emax, t.exponent);
  int64_t sum = 0;
  for (const Term &t : terms)
    sum += align(t, emax);
  // [uncertain] A negative sum that the last cut takes to zero is +0, as in mmasim since 2.1.0.
  return cutToFloat(sum, emax);
}

//===--- The fast form ---------------------------------------------------===//

void addStep(StepKind kind, const StepRow &row, const Fp4MmaOperand &a, const StepPanel &panel,
             const Fp4MmaOperand &b, unsigned columns, float *d) {
  uint32_t inexact = stepKernels().addExactly(row, panel, d);
  for (inexact &= (uint64_t(1) << columns) - 1; inexact; inexact &= inexact - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(inexact));
    d[j] = fp4MmaElement(kind.type, kind.vector, a.data, a.scales, b.from(j).data,
                         b.from(j).scales, d[j]);
  }
}

void fp4MmaStep(hw::ScaleType scaleType, hw::ScaleVector vector, unsigned m, unsigned n,
                const Fp4MmaOperand &a, const Fp4MmaOperand &b, float *d, size_t dPitch,
                bool accumulate) {
  const StepKind kind = {scaleType, vector};
  std::vector<StepRow> rows;
  for (unsigned row = 0; row < m; ++row)
    rows.push_back(decodeStepRow(kind, a.from(row)));
  StepPanel panel;
  for (unsigned first = 0; first < n; first += panelColumns) {
    const unsigned count = std::min(panelColumns, n - first);
    decodeStepPanel(kind, b.from(first), count, panel);
    for (unsigned row = 0; row < m; ++row) {
      float *out = d + row * dPitch + first;
      float c[panelColumns] = {};
      if (accumulate)
        std::copy_n(out, count, c);
      addStep(kind, rows[row], a.from(row), panel, b.from(first), count, c);
      std::copy_n(c, count, out);
    }
  }
}

} // namespace fp4::numerics
