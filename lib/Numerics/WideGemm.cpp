// GEMMs of elements of at most 8 bits under scales of f8E8M0FNU: the model of kind mxf8f6f4 of
// tcgen05.mma and mma.sync, and the fp64 reference with its bound.
//
// An instruction has 32 elements of K, which are one scale block of both operands, and so one scale
// for each row; or 64 and two of the double K. The products of an instruction and the accumulator,
// 33 or 65 terms, are cut at 2^-25 of the largest one's exponent, and the sum toward zero at 2^-23
// of itself (DenseMma.h).
#include "ColumnPieces.h"
#include "fp4/Numerics/DenseRow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fp4::numerics {
namespace {

constexpr unsigned blockK = 32, blocksPerStep = fp4MmaK / blockK;
constexpr uint8_t nanScale = 0xFF;

/// Scale blocks of an instruction.
unsigned blocksOf(const GemmProblem &p) { return p.mmaDepth == hw::MmaDepth::Double ? 2 : 1; }

hw::MmaType typeOf(BlockFormat format) {
  const ElementFormat element = elementOf(format);
  if (element.bits == 4)
    return hw::MmaType::E2M1;
  if (element.bits == 6)
    return element.mantissa == 3 ? hw::MmaType::E2M3 : hw::MmaType::E3M2;
  return element.mantissa == 3 ? hw::MmaType::E4M3 : hw::MmaType::E5M2;
}

/// An operand by scale block, of whole instructions; blocks behind K are zero.
struct WideOperand {
  hw::MmaType type;
  ElementFormat element;
  uint64_t rows, blocks;
  std::vector<FactorRow> factors; ///< [row][block]
  std::vector<uint8_t> scales;    ///< [row][block]

  WideOperand(const GemmProblem &p, const GemmOperand &o, BlockFormat format)
      : type(typeOf(format)), element(elementOf(format)), rows(o.rows),
        blocks((p.depth / blockK + blocksOf(p) - 1) / blocksOf(p) * blocksOf(p)),
        factors(rows * blocks), scales(rows * blocks) {
    const uint64_t present = p.depth / blockK;
    const uint64_t dataPitch = o.dataPitch ? o.dataPitch : p.depth * (isPacked(format) ? 4 : 8) / 8;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : present;
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t i = 0; i < present; ++i) {
        decode(o.data + r * dataPitch, i, isPacked(format), factors[r * blocks + i]);
        scales[r * blocks + i] = o.scales[r * scalePitch + i];
      }
  }

  const FactorRow &row(uint64_t r, uint64_t i) const { return factors[r * blocks + i]; }
  uint8_t scale(uint64_t r, uint64_t i) const { return scales[r * blocks + i]; }

  /// The value of a factor, NaN and infinities as such.
  double value(const Factor &factor) const {
    if (factor.kind == Factor::NaN)
      return std::numeric_limits<double>::quiet_NaN();
    if (factor.kind == Factor::Infinite)
      return std::copysign(std::numeric_limits<double>::infinity(), factor.significand);
    return std::ldexp(factor.significand, factor.exponent - int(fractionBits(type)));
  }
  /// Returns at least the power of two that the hardware aligns a factor by: subnormals have that
  /// of the smallest normal number.
  double power(double value) const {
    return value == 0 ? 0 : std::max(std::fabs(value), std::ldexp(1, 1 - element.bias));
  }

private:
  /// A byte for each element, 4-bit ones in bits 5 to 2, as they are in tensor memory.
  void decode(const uint8_t *from, uint64_t i, bool packed, FactorRow &out) const {
    uint8_t bytes[blockK];
    for (unsigned k = 0; k < blockK; ++k) {
      const uint64_t at = i * blockK + k;
      bytes[k] = packed ? uint8_t((from[at / 2] >> (at % 2 * 4) & 15) << 2) : from[at];
    }
    decodeFactors(type, bytes, /*unpacked=*/true, /*negate=*/false, out);
  }
};

struct WideProduct {
  WideOperand a, b;
  explicit WideProduct(const GemmProblem &p)
      : a(p, p.a, p.format), b(p, p.b, formatOfB(p)) {}
};

/// Runs body(first block, end) for every split-K range of the elements of `row` from `first` on.
template <typename Body>
void forWideRanges(const GemmProblem &p, uint64_t row, uint64_t first, const Body &body) {
  forRangesAt(p, row, first, [&](uint64_t begin, uint64_t end) {
    body(begin * blocksPerStep, std::min(end * blocksPerStep, p.depth / blockK));
  });
}

//===--- Model -----------------------------------------------------------===//

/// Exponents of the scales of `blocks` blocks from `first` on, of some rows, row by row.
std::vector<int32_t> scaleExponents(const WideOperand &operand, uint64_t row, uint64_t rows,
                                    uint64_t first, unsigned blocks) {
  std::vector<int32_t> exponents;
  for (uint64_t r = row; r < row + rows; ++r)
    for (unsigned i = 0; i < blocks; ++i)
      exponents.push_back(int(operand.scale(r, first + i)) - 127);
  return exponents;
}

/// Decodes columns of B, one DenseColumns for each instruction of `blocks` blocks.
std::vector<DenseColumns> decodePanel(const WideOperand &b, uint64_t first, uint64_t count,
                                      unsigned blocks) {
  std::vector<DenseColumns> panel;
  for (uint64_t i = 0; i < b.blocks; i += blocks) {
    std::vector<FactorRow> columns;
    for (uint64_t j = first; j < first + count; ++j)
      columns.insert(columns.end(), &b.row(j, i), &b.row(j, i) + blocks);
    panel.emplace_back(columns, blocks * blockK);
    if (blocks > 1)
      panel.back().scaleBlocks(scaleExponents(b, first, count, i, blocks));
  }
  return panel;
}

/// Returns true when one of the scales of an instruction is NaN.
bool hasNaN(const WideOperand &operand, uint64_t row, uint64_t first, unsigned blocks) {
  const uint8_t *scales = &operand.scales[row * operand.blocks + first];
  return std::count(scales, scales + blocks, nanScale);
}

/// The instruction of `blocks` blocks from `i` on of row `row` against a panel; a scale that is NaN
/// makes NaN.
void addInstruction(const WideProduct &product, uint64_t row, uint64_t first, uint64_t i,
                    unsigned blocks, const DenseColumns &columns, std::span<uint32_t> sums) {
  const unsigned bits = fractionBits(product.a.type) + fractionBits(product.b.type);
  const DenseRowOptions options{bits, hw::AccumulatorType::F32, {}};
  DenseRows rows({&product.a.row(row, i), blocks}, blocks * blockK);
  std::vector<int32_t> exponents(sums.size());
  if (blocks > 1)
    rows.scaleBlocks(scaleExponents(product.a, row, 1, i, blocks));
  else
    for (size_t j = 0; j < sums.size(); ++j)
      exponents[j] = int(product.a.scale(row, i)) + int(product.b.scale(first + j, i)) - 2 * 127;
  const DenseRow ofD{sums.data(), exponents.data()};
  denseRows(rows, columns, {&ofD, 1}, options);
  for (size_t j = 0; j < sums.size(); ++j)
    if (hasNaN(product.a, row, i, blocks) || hasNaN(product.b, first + j, i, blocks))
      sums[j] = denseNaN;
}

/// The sum after an instruction behind K: C plus products of zeros.
float plusZeros(float sum) { return sum + 0.f; }

/// The sums of row `row`. The sums of split-K ranges are added from the first range on.
void multiplyRow(const GemmProblem &p, const WideProduct &product, uint64_t row, uint64_t first,
                 const std::vector<DenseColumns> &panel, std::span<float> sums) {
  const unsigned blocks = blocksOf(p);
  forWideRanges(p, row, first, [&](uint64_t begin, uint64_t end) {
    const bool isFilled = p.filledK && end * blockK % p.filledK != 0;
    std::vector<uint32_t> part(sums.size());
    for (uint64_t i = begin; i < end; i += blocks)
      addInstruction(product, row, first, i, blocks, panel[i / blocks], part);
    for (size_t j = 0; j < sums.size(); ++j) {
      const float sum = isFilled ? plusZeros(floatOf(part[j])) : floatOf(part[j]);
      sums[j] = begin == 0 ? sum : sums[j] + sum;
    }
  });
}

//===--- fp64 reference --------------------------------------------------===//

/// The columns of a piece as numbers, scaled: by k, then by column. `powers` bound the powers of
/// two of factors.
struct ScaledColumns {
  uint64_t count;
  std::vector<double> values, powers;

  ScaledColumns(const WideOperand &b, uint64_t first, uint64_t count)
      : count(count), values(b.blocks * blockK * count), powers(values.size()) {
    for (uint64_t j = 0; j < count; ++j)
      for (uint64_t k = 0; k < b.blocks * blockK; ++k) {
        const uint64_t i = k / blockK;
        const double value = b.value(b.row(first + j, i)[k % blockK]);
        values[k * count + j] = value * scaleOf(b, first + j, i);
        powers[k * count + j] = b.power(value) * scaleOf(b, first + j, i);
      }
  }

  static double scaleOf(const WideOperand &operand, uint64_t row, uint64_t i) {
    const uint8_t code = operand.scale(row, i);
    return code == nanScale ? std::numeric_limits<double>::quiet_NaN()
                            : std::ldexp(1, int(code) - 127);
  }
};

/// The numbers of a row against the columns of a piece, over one split-K range or over several.
struct WideSums {
  std::vector<double> sum, magnitude, error, reach;
  unsigned terms; ///< terms that an instruction adds up

  WideSums(uint64_t count, unsigned blocks)
      : sum(count), magnitude(count), error(count), reach(count), terms(blocks * blockK + 1) {}

  /// Adds one block. Each term of its instruction loses less than 2^-25 of the largest power among
  /// them, which is that of one of its blocks, or of the least there is, and the result less than
  /// 2^-23 of itself.
  void addBlock(const WideOperand &a, uint64_t row, const ScaledColumns &b, uint64_t i) {
    std::vector<double> largest(sum.size());
    for (size_t j = 0; j < sum.size(); ++j)
      largest[j] = std::fabs(sum[j]) + error[j];
    const double scale = ScaledColumns::scaleOf(a, row, i);
    for (unsigned k = 0; k < blockK; ++k) {
      const double x = a.value(a.row(row, i)[k]) * scale, power = a.power(x / scale) * scale;
      const double *values = &b.values[(i * blockK + k) * b.count];
      const double *powers = &b.powers[(i * blockK + k) * b.count];
      for (size_t j = 0; j < sum.size(); ++j) {
        sum[j] += x * values[j];
        magnitude[j] += std::fabs(x * values[j]);
        largest[j] = std::max(largest[j], power * powers[j]);
      }
    }
    for (size_t j = 0; j < sum.size(); ++j) {
      error[j] += terms * 0x1p-25 * std::max(largest[j], 0x1p-133);
      error[j] += (std::fabs(sum[j]) + error[j]) * 0x1p-23 + 0x1p-149;
      reach[j] = std::max(reach[j], std::fabs(sum[j]) + error[j]);
      if (std::isnan(sum[j]))
        reach[j] = sum[j];
    }
  }

  /// Adds a further split-K range in fp32, which rounds to nearest.
  void addRange(const WideSums &part) {
    for (size_t j = 0; j < sum.size(); ++j) {
      sum[j] += part.sum[j];
      magnitude[j] += part.magnitude[j];
      error[j] += part.error[j];
      error[j] += (std::fabs(sum[j]) + error[j]) * 0x1p-24 + 0x1p-150;
      const double most = std::max({part.reach[j], std::fabs(sum[j]) + error[j]});
      reach[j] = std::isnan(most) || std::isnan(reach[j]) ? sum[j] : std::max(reach[j], most);
    }
  }
};

WideSums sumsOf(const GemmProblem &p, const WideProduct &product, uint64_t row, uint64_t first,
                const ScaledColumns &columns) {
  WideSums total(columns.count, blocksOf(p));
  forWideRanges(p, row, first, [&](uint64_t begin, uint64_t end) {
    WideSums part(columns.count, blocksOf(p));
    for (uint64_t i = begin; i < end; ++i)
      part.addBlock(product.a, row, columns, i);
    if (begin == 0)
      total = std::move(part);
    else
      total.addRange(part);
  });
  return total;
}

} // namespace

std::vector<float> wideModel(const GemmProblem &p) {
  const WideProduct product(p);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(product.a.rows * product.b.rows);
  forPieces(p, [&](uint64_t first, uint64_t count) {
    const std::vector<DenseColumns> panel = decodePanel(product.b, first, count, blocksOf(p));
    std::vector<float> sums(count);
    for (uint64_t row = 0; row < product.a.rows; ++row) {
      multiplyRow(p, product, row, first, panel, sums);
      for (uint64_t j = 0; j < count; ++j)
        result[row * product.b.rows + first + j] =
            epilogue.apply(sums[j], alphaAt(p, row, first + j).value_or(1.f));
    }
  });
  return result;
}

GemmReference wideReference(const GemmProblem &p) {
  const WideProduct product(p);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  GemmReference result = emptyReference(p);
  forPieces(p, [&](uint64_t first, uint64_t count) {
    const ScaledColumns columns(product.b, first, count);
    for (uint64_t row = 0; row < product.a.rows; ++row) {
      const WideSums sums = sumsOf(p, product, row, first, columns);
      setElements(p, epilogue, sums, row, first, result);
    }
  });
  return result;
}

} // namespace fp4::numerics
