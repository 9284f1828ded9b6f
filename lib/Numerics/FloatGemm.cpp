// The fp64 reference, with its bound, of a GEMM on a tensor core of 16-bit floats. One operand has
// floats and the other scaled fp4 elements, or at least one has scaled elements of 8 bits.
//
// One instruction of wgmma cuts its 16 products and the accumulator, 17 terms, at 2^-25 of the
// largest one's exponent, and the sum toward zero at 2^-23 of itself. The largest term is at most
// the sum of magnitudes up to the end of what its instructions share: 16 elements in the order of
// memory, or a k tile where converted operands have an order of their own. A product with a
// subnormal factor counts with the exponent of the smallest normal number in its place. A subnormal
// factor of 8 bits, or of MXFP4 in f16, has been rounded besides.
#include "GemmOperands.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Support/Parallel.h"

#include <cmath>
#include <mutex>

namespace fp4::numerics {
namespace {

constexpr uint64_t instructionK = hw::convertedInstructionK;

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

/// Weights become f16, which does not have all their exponents: scales from `leastInfinite` on are
/// infinite.
bool areHalves(const GemmProblem &p, BlockFormat format) {
  return p.floatA == FloatType::F16 && isMX(format);
}
constexpr double leastInfinite = 0x1p9;

/// Elements without the factor that their conversion multiplies by.
Line scaledLine(const GemmProblem &p, const GemmOperand &operand, BlockFormat format, uint64_t row) {
  Line line;
  for (uint64_t k = 0; k < p.depth; ++k) {
    const ScaledCode element = scaledCode(p, operand, format, row, k);
    const double scale = isMX(format) ? decodeUE8M0(element.scale) : decodeUE4M3(element.scale);
    line.add(decodeElement(format, element.code) * scale);
    line.isFinite = line.isFinite && !(areHalves(p, format) && scale >= leastInfinite);
  }
  return line;
}

/// The losses of an operand's factors, in units of its elements.
struct Loss {
  double smallest; ///< normal number
  double rounding; ///< rounding of a smaller number
};

Loss lossOf(const GemmProblem &p, bool isA) {
  const BlockFormat format = isA ? p.format : formatOfB(p);
  const double smallest = p.floatA == FloatType::F16 ? 0x1p-14 : 0x1p-126;
  if (isA && p.floatA)
    return {smallest, 0};
  const int exponent = p.floatA ? convertedExponent(format, *p.floatA) : convertedExponent(format);
  // The f16 of a scale is zero up to 2^-32, beside a code of at most 6.
  const double rounding = areHalves(p, format) ? 6 * 0x1p-32 : isPacked(format) ? 0 : 0x1p-134;
  return {std::ldexp(smallest, -exponent), rounding};
}

/// The rounding of instructions.
struct Rounding {
  uint64_t together; ///< elements that instructions share
  double absolute;   ///< the most that one loses of products with subnormal factors
  double least;      ///< the most that one loses of a subnormal sum
};

Rounding roundingOf(const GemmProblem &p, const Line &a, const Line &b) {
  const Loss x = lossOf(p, true), y = lossOf(p, false);
  const double cut = 17 * 0x1p-25 * (x.smallest * b.largest + y.smallest * a.largest);
  const double rounded =
      16 * (x.rounding * b.largest + y.rounding * a.largest + x.rounding * y.rounding);
  return {p.floatA ? instructionK : hw::convertedTileK, cut + rounded,
          std::ldexp(0x1p-149, -convertedExponent(p))};
}

/// Returns true when a converted element may be infinite where the elements of a line are finite.
/// Elements of 4 bits always fit bf16.
bool hasInfinities(const GemmProblem &p, BlockFormat format, const Line &line) {
  return areHalves(p, format) ? line.largest >= leastInfinite / 2
                              : !isPacked(format) && line.largest >= 0x1p127;
}

struct Sum {
  double value = 0, error = 0, magnitude = 0, reach = 0;
};

/// The sum over k from `first` to `end`.
Sum sumOf(const Line &a, const Line &b, uint64_t first, uint64_t end, const Rounding &rounding) {
  Sum sum;
  for (uint64_t at = first; at < end; at += rounding.together) {
    for (uint64_t k = at; k < std::min(at + rounding.together, end); ++k) {
      const double product = a.values[k] * b.values[k];
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
    for (uint64_t i = 0; i < rounding.together; i += instructionK) {
      const double largest = sum.magnitude + sum.error;
      sum.error += largest * (17 * 0x1p-25 + 0x1p-23) + rounding.absolute + rounding.least;
      sum.reach = std::max(sum.reach, largest + sum.error);
    }
  }
  sum.error += sum.magnitude * double(end - first) * 0x1p-52;
  return sum;
}

/// Adds a further split-K range in fp32, which rounds to nearest.
void addRange(const Sum &part, Sum &total) {
  total.value += part.value;
  total.error += part.error;
  total.magnitude += part.magnitude;
  total.error += (std::fabs(total.value) + total.error) * 0x1p-24 + 0x1p-150;
  total.reach = std::max({total.reach, part.reach, std::fabs(total.value) + total.error});
}

struct Place {
  uint64_t row, column;
};

Sum sumOfRanges(const GemmProblem &p, Place at, const Line &a, const Line &b) {
  const Rounding rounding = roundingOf(p, a, b);
  Sum total;
  forRangesAt(p, at.row, at.column, [&](uint64_t begin, uint64_t end) {
    const Sum part = sumOf(a, b, begin * fp4MmaK, std::min<uint64_t>(end * fp4MmaK, p.depth), rounding);
    if (begin == 0)
      total = part;
    else
      addRange(part, total);
  });
  return total;
}

} // namespace

GemmReference convertedReference(const GemmProblem &p) {
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<Line> rows;
  for (uint64_t row = 0; row < p.a.rows; ++row)
    rows.push_back(p.floatA ? floatLine(p, row) : scaledLine(p, p.a, p.format, row));
  GemmReference result = emptyReference(p);
  parallelFor(p.b.rows, p.threads, [&](uint64_t column) {
    const Line b = scaledLine(p, p.b, formatOfB(p), column);
    const bool mayBeInfinite = !b.isFinite || hasInfinities(p, formatOfB(p), b);
    for (uint64_t row = 0; row < p.a.rows; ++row) {
      const Sum sum = sumOfRanges(p, {row, column}, rows[row], b);
      const float alpha = alphaAt(p, row, column).value_or(1.f);
      const BoundedValue element = epilogue.bound({sum.value, sum.error}, alpha);
      const uint64_t at = row * p.b.rows + column;
      result.values[at] = element.value;
      result.bounds[at] = element.error;
      result.mayOverflow[at] =
          overflowOf(epilogue, mayBeInfinite || !rows[row].isFinite ||
                                   (!p.floatA && hasInfinities(p, p.format, rows[row])) ||
                                   sum.reach >= 0x1p127 || epilogue.mayOverflow(element, alpha));
    }
  });
  return result;
}

} // namespace fp4::numerics
