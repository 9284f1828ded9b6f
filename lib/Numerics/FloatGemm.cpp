// The fp64 reference of a product of 16-bit floats and scaled fp4 elements, with its bound.
//
// One instruction of wgmma cuts its 16 products and the accumulator, 17 terms, at 2^-25 of the largest
// one's exponent, and the sum toward zero at 2^-23 of itself. The largest term is at most the sum of
// magnitudes so far. A product with a subnormal factor counts with the exponent of the smallest
// normal number in its place.
#include "GemmOperands.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Support/Parallel.h"

#include <cmath>
#include <mutex>

namespace fp4::numerics {
namespace {

constexpr uint64_t instructionK = 16;

/// A row of either operand: its elements, and the largest magnitude of them.
struct Line {
  std::vector<double> values;
  double largest = 0;
  bool isFinite = true;

  void add(double value) {
    values.push_back(value);
    largest = std::max(largest, std::fabs(value));
    isFinite = isFinite && std::isfinite(value);
  }
};

Line floatLine(const GemmProblem &p, uint64_t row) {
  Line line;
  for (uint64_t k = 0; k < p.depth; ++k) {
    const uint16_t bits = floatBits(p, row, k);
    line.add(*p.floatA == FloatType::BF16 ? decodeBF16(bits) : decodeF16(bits));
  }
  return line;
}

/// Elements as they are, without what their conversion multiplies by.
Line scaledLine(const GemmProblem &p, uint64_t row) {
  const unsigned block = blockSizeOf(p.format);
  const uint8_t *data = p.b.data + row * (p.b.dataPitch ? p.b.dataPitch : p.depth / 2);
  const uint8_t *scales = p.b.scales + row * (p.b.scalePitch ? p.b.scalePitch : p.depth / block);
  Line line;
  for (uint64_t k = 0; k < p.depth; ++k) {
    const uint8_t scale = scales[k / block];
    line.add(decodeE2M1(data[k / 2] >> (k % 2 * 4) & 15) *
             double(isMX(p.format) ? decodeUE8M0(scale) : decodeUE4M3(scale)));
  }
  return line;
}

double smallestNormal(FloatType type) { return type == FloatType::F16 ? 0x1p-14 : 0x1p-126; }

struct Sum {
  double value = 0, error = 0, magnitude = 0, reach = 0;
};

/// The sum over k from `first` to `end`. `absolute` is the most that an instruction cuts of products
/// with a subnormal factor.
Sum sumOf(const Line &a, const Line &b, uint64_t first, uint64_t end, double absolute) {
  Sum sum;
  for (uint64_t at = first; at < end; at += instructionK) {
    for (uint64_t k = at; k < std::min(at + instructionK, end); ++k) {
      const double product = a.values[k] * b.values[k];
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
    const double largest = sum.magnitude + sum.error;
    sum.error += largest * (17 * 0x1p-25 + 0x1p-23) + absolute + 0x1p-149;
    sum.reach = std::max(sum.reach, largest + sum.error);
  }
  sum.error += sum.magnitude * double(end - first) * 0x1p-52;
  return sum;
}

/// Adds a further range of K in fp32, which rounds to nearest.
void addRange(const Sum &part, Sum &total) {
  total.value += part.value;
  total.error += part.error;
  total.magnitude += part.magnitude;
  total.error += (std::fabs(total.value) + total.error) * 0x1p-24 + 0x1p-150;
  total.reach = std::max({total.reach, part.reach, std::fabs(total.value) + total.error});
}

Sum sumOfRanges(const GemmProblem &p, const Line &a, const Line &b) {
  const double factor = std::ldexp(1, -convertedExponent(p.format, /*besideFloats=*/true));
  const double absolute =
      17 * 0x1p-25 * smallestNormal(*p.floatA) * (b.largest + factor * a.largest);
  Sum total;
  forRanges(p, [&](uint64_t begin, uint64_t end) {
    const Sum part = sumOf(a, b, begin * fp4MmaK, std::min<uint64_t>(end * fp4MmaK, p.depth), absolute);
    if (begin == 0)
      total = part;
    else
      addRange(part, total);
  });
  return total;
}

} // namespace

GemmReference floatReference(const GemmProblem &p) {
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<Line> rows;
  for (uint64_t row = 0; row < p.a.rows; ++row)
    rows.push_back(floatLine(p, row));
  GemmReference result = emptyReference(p);
  parallelFor(p.b.rows, p.threads, [&](uint64_t column) {
    const Line b = scaledLine(p, column);
    for (uint64_t row = 0; row < p.a.rows; ++row) {
      const Sum sum = sumOfRanges(p, rows[row], b);
      const float alpha = alphaAt(p, row, column).value_or(1.f);
      const BoundedValue element = epilogue.bound({sum.value, sum.error}, alpha);
      const uint64_t at = row * p.b.rows + column;
      result.values[at] = element.value;
      result.bounds[at] = element.error;
      result.mayOverflow[at] = !rows[row].isFinite || !b.isFinite || b.largest >= 0x1p127 ||
                               sum.reach >= 0x1p127 || epilogue.mayOverflow(element, alpha);
    }
  });
  return result;
}

} // namespace fp4::numerics
