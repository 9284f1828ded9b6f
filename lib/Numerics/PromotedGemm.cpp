// GEMMs of FP8 with f32 scales, or with powers of two for rows of weights: the model of a tensor
// core whose sums of 128 elements are promoted to fp32, and the fp64 reference with its bound.
#include "ColumnPieces.h"
#include "fp4/Numerics/DenseRow.h"
#include "fp4/Numerics/E4M3.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace fp4::numerics {
namespace {

constexpr unsigned partK = 32, blockK = 128;

/// Elements of K of an instruction: a part, or two of the double K.
unsigned instructionK(const GemmProblem &p) {
  return hw::mmaK(hw::MmaKind::F8F6F4, /*sparse=*/false, p.mmaDepth);
}

/// An operand with rows of whole scale blocks, zero behind K.
struct Fp8Operand {
  uint64_t rows, blocks, rowsPerScale;
  std::vector<uint8_t> codes;
  std::vector<float> scales;

  Fp8Operand(const GemmProblem &p, const GemmOperand &o, uint64_t rowsPerScale)
      : rows(o.rows), blocks((p.depth + blockK - 1) / blockK), rowsPerScale(rowsPerScale),
        codes(rows * blocks * blockK), scales((rows + rowsPerScale - 1) / rowsPerScale * blocks, 1.f) {
    const uint64_t pitch = o.dataPitch ? o.dataPitch : p.depth;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : blocks * sizeof(float);
    for (uint64_t r = 0; r < rows; ++r)
      std::memcpy(&codes[r * blocks * blockK], o.data + r * pitch, p.depth);
    for (uint64_t r = 0; o.scales && r < scales.size() / blocks; ++r)
      std::memcpy(&scales[r * blocks], o.scales + r * scalePitch, blocks * sizeof(float));
  }

  const uint8_t *block(uint64_t row, uint64_t b) const {
    return &codes[(row * blocks + b) * blockK];
  }
  float scale(uint64_t row, uint64_t b) const { return scales[row / rowsPerScale * blocks + b]; }
};

//===--- Model -----------------------------------------------------------===//

/// Block-scaled tensor cores multiply e4m3 in kind f8f6f4, which has the precision of the other
/// kinds.
DensePrecision precisionOf(const GemmProblem &p) {
  return p.core == TensorCore::Converted ? hopperFP8 : DensePrecision{};
}

/// Appends the factors of `k` codes, part by part.
void appendFactors(const uint8_t *codes, unsigned k, std::vector<FactorRow> &factors) {
  for (unsigned i = 0; i < k; i += partK)
    decodeFactors(hw::MmaType::E4M3, codes + i, false, false, factors.emplace_back());
}

/// Decodes columns of B, one DenseColumns for each instruction of `depth` elements.
std::vector<DenseColumns> decodePanel(const Fp8Operand &b, uint64_t first, uint64_t count,
                                      unsigned depth) {
  std::vector<DenseColumns> panel;
  for (uint64_t k = 0; k < b.blocks * blockK; k += depth) {
    std::vector<FactorRow> columns;
    for (uint64_t j = first; j < first + count; ++j)
      appendFactors(b.block(j, 0) + k, depth, columns);
    panel.emplace_back(columns, depth);
  }
  return panel;
}

/// Runs body(scale blocks of K) for every split-K range, of whole slices, of the elements of `row`
/// from `first` on.
template <typename Body>
void forRangesOfBlocks(const GemmProblem &p, uint64_t row, uint64_t first, uint64_t blocks,
                       const Body &body) {
  constexpr uint64_t stepsOfBlock = blockK / fp4MmaK;
  forRangesAt(p, row, first, [&](uint64_t begin, uint64_t end) {
    body(SplitRange{begin / stepsOfBlock, std::min((end + 1) / stepsOfBlock, blocks)});
  });
}

/// Instructions of row `row` against a panel, over some scale blocks of K, whose results add up in
/// `sums`.
struct RowGemm {
  const Fp8Operand &a;
  uint64_t row;
  const std::vector<DenseColumns> &panel;
  DenseRowOptions options;
  unsigned depth; ///< elements of K of an instruction
  uint64_t count; ///< columns

  RowGemm(const GemmProblem &p, const Fp8Operand &a, uint64_t row,
          const std::vector<DenseColumns> &panel, uint64_t count)
      : a(a), row(row), panel(panel),
        options{2 * fractionBits(hw::MmaType::E4M3), hw::AccumulatorType::F32, precisionOf(p)},
        depth(instructionK(p)), count(count) {}

  void addBlock(uint64_t k, std::vector<uint32_t> &sums) const {
    const DenseRow ofD{sums.data()};
    for (unsigned i = 0; i < blockK; i += depth) {
      std::vector<FactorRow> factors;
      appendFactors(a.block(row, k) + i, depth, factors);
      denseRows(DenseRows(factors, depth), panel[(k * blockK + i) / depth], {&ofD, 1}, options);
    }
  }
};

/// The promoted sums of a row against a panel whose first column is `first`, over some scale blocks
/// of K.
std::vector<float> promoteRow(const RowGemm &product, const Fp8Operand &b, uint64_t first,
                              SplitRange blocks) {
  std::vector<float> acc(product.count);
  for (uint64_t k = blocks.begin; k < blocks.end; ++k) {
    std::vector<uint32_t> sums(acc.size());
    product.addBlock(k, sums);
    for (uint64_t j = 0; j < acc.size(); ++j)
      acc[j] = std::fma(floatOf(sums[j]), product.a.scale(product.row, k) * b.scale(first + j, k),
                        acc[j]);
  }
  return acc;
}

/// The sums of a row against a panel without promotion, as the tensor core has them in the end.
std::vector<float> accumulateRow(const RowGemm &product, SplitRange blocks) {
  std::vector<uint32_t> sums(product.count);
  for (uint64_t k = blocks.begin; k < blocks.end; ++k)
    product.addBlock(k, sums);
  std::vector<float> acc(sums.size());
  std::ranges::transform(sums, acc.begin(), floatOf);
  return acc;
}

/// The sums of all split-K ranges, added from the first to the last.
std::vector<float> sumsOfRow(const GemmProblem &p, const Fp8Operand &a, const Fp8Operand &b,
                             uint64_t row, uint64_t first, const std::vector<DenseColumns> &panel,
                             uint64_t count) {
  const RowGemm product(p, a, row, panel, count);
  std::vector<float> all(count);
  forRangesOfBlocks(p, row, first, a.blocks, [&](SplitRange blocks) {
    const std::vector<float> acc =
        p.accumulatesFast ? accumulateRow(product, blocks) : promoteRow(product, b, first, blocks);
    for (uint64_t j = 0; j < count; ++j)
      all[j] = blocks.begin ? all[j] + acc[j] : acc[j];
  });
  for (uint64_t j = 0; p.accumulatesFast && j < count; ++j)
    all[j] *= b.scale(first + j, 0);
  return all;
}

//===--- fp64 reference --------------------------------------------------===//

/// A piece of B as numbers: by k, then by column. `powers` bound the powers of two of factors.
struct Fp8Columns {
  uint64_t count;
  std::vector<double> values, powers;

  Fp8Columns(const Fp8Operand &b, uint64_t first, uint64_t count)
      : count(count), values(b.blocks * blockK * count), powers(values.size()) {
    for (uint64_t j = 0; j < count; ++j)
      for (uint64_t k = 0; k < b.blocks * blockK; ++k) {
        values[k * count + j] = decodeE4M3(b.block(first + j, 0)[k]);
        powers[k * count + j] = power(values[k * count + j]);
      }
  }

  /// The exponent of a subnormal code is that of the least normal one, 2^-6.
  static double power(double value) { return value == 0 ? 0 : std::max(std::fabs(value), 0x1p-6); }
};

/// The numbers of a row against the columns of a piece.
struct Fp8Sums {
  std::vector<double> sum, magnitude, error, reach; ///< numbers of the result
  /// Numbers of a scale block, and of an instruction.
  std::vector<double> part, partMagnitude, partError, largest;
  double cut, resultCut; ///< relative loss of a term, against the largest one, and of a result
  unsigned terms;        ///< terms that an instruction adds up

  Fp8Sums(uint64_t count, DensePrecision precision, unsigned depth)
      : sum(count), magnitude(count), error(count), reach(count), part(count), partMagnitude(count),
        partError(count), largest(count), cut(std::ldexp(1, -precision.align)),
        resultCut(std::ldexp(1, -precision.result)), terms(depth + 1) {}

  /// Adds one part. Each term of its instruction loses less than `cut` of the largest power among
  /// them, which is that of one of its parts, or of the least there is, and the result less than
  /// `resultCut` of itself.
  void addPart(const uint8_t *codes, const Fp8Columns &b, uint64_t firstK) {
    for (size_t j = 0; j < part.size(); ++j)
      largest[j] = std::fabs(part[j]) + partError[j];
    for (unsigned i = 0; i < partK; ++i) {
      const double x = decodeE4M3(codes[i]), power = Fp8Columns::power(x);
      const double *values = &b.values[(firstK + i) * b.count];
      const double *powers = &b.powers[(firstK + i) * b.count];
      for (size_t j = 0; j < part.size(); ++j) {
        part[j] += x * values[j];
        partMagnitude[j] += std::fabs(x * values[j]);
        largest[j] = std::max(largest[j], power * powers[j]);
      }
    }
    for (size_t j = 0; j < part.size(); ++j) {
      partError[j] += terms * cut * std::max(largest[j], 0x1p-133);
      partError[j] += (std::fabs(part[j]) + partError[j]) * resultCut;
    }
  }

  /// Promotes partial sums: a product of scales, and a fused multiply-add, each rounded once.
  void promote(float scaleA, const Fp8Operand &b, uint64_t first, uint64_t k) {
    for (size_t j = 0; j < sum.size(); ++j) {
      const double scale = double(scaleA) * b.scale(first + j, k), least = 0x1p-150;
      const double rounding = std::fabs(scale) * 0x1p-24 + least;
      error[j] += partError[j] * (std::fabs(scale) + rounding) + std::fabs(part[j]) * rounding;
      sum[j] += part[j] * scale;
      magnitude[j] += partMagnitude[j] * std::fabs(scale);
      const double most = std::fabs(sum[j]) + error[j];
      error[j] += most * 0x1p-24 + least;
      reach[j] = std::max({reach[j], most + error[j], std::fabs(scale)});
    }
    for (auto *numbers : {&part, &partMagnitude, &partError})
      std::fill(numbers->begin(), numbers->end(), 0.0);
  }

  /// Adds the sums of the next split-K range, rounded once.
  void join(const Fp8Sums &range) {
    for (size_t j = 0; j < sum.size(); ++j) {
      sum[j] += range.sum[j];
      magnitude[j] += range.magnitude[j];
      error[j] += range.error[j];
      const double most = std::fabs(sum[j]) + error[j];
      error[j] += most * 0x1p-24 + 0x1p-150;
      reach[j] = std::max({reach[j], range.reach[j], most + error[j]});
    }
  }
};

/// Adds to `sums` the products of row `row` and the columns from `first` on, over some scale blocks
/// of K. Sums that are promoted once are bounded as if the power multiplied those of each range.
void addBlocks(const Fp8Operand &a, const Fp8Operand &b, uint64_t row, uint64_t first,
               SplitRange blocks, const Fp8Columns &columns, bool promotesOnce, Fp8Sums &sums) {
  for (uint64_t k = blocks.begin; k < blocks.end; ++k) {
    for (unsigned i = 0; i < blockK; i += partK)
      sums.addPart(a.block(row, k) + i, columns, k * blockK + i);
    if (!promotesOnce || k + 1 == blocks.end)
      sums.promote(a.scale(row, k), b, first, k);
  }
}

} // namespace

std::vector<float> promotedModel(const GemmProblem &p) {
  const Fp8Operand a(p, p.a, 1), b(p, p.b, p.rowsPerScaleB);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(a.rows * b.rows);
  forPieces(p, [&](uint64_t first, uint64_t count) {
    const std::vector<DenseColumns> panel = decodePanel(b, first, count, instructionK(p));
    for (uint64_t row = 0; row < a.rows; ++row) {
      const std::vector<float> acc = sumsOfRow(p, a, b, row, first, panel, count);
      for (uint64_t j = 0; j < count; ++j)
        result[row * b.rows + first + j] =
            epilogue.apply(acc[j], alphaAt(p, row, first + j).value_or(1.f));
    }
  });
  return result;
}

GemmReference promotedReference(const GemmProblem &p) {
  const Fp8Operand a(p, p.a, 1), b(p, p.b, p.rowsPerScaleB);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  GemmReference result = emptyReference(p);
  forPieces(p, [&](uint64_t first, uint64_t count) {
    const Fp8Columns columns(b, first, count);
    for (uint64_t row = 0; row < a.rows; ++row) {
      Fp8Sums sums(count, precisionOf(p), instructionK(p));
      forRangesOfBlocks(p, row, first, a.blocks, [&](SplitRange blocks) {
        Fp8Sums range(count, precisionOf(p), instructionK(p));
        addBlocks(a, b, row, first, blocks, columns, p.accumulatesFast, range);
        sums.join(range);
      });
      setElements(p, epilogue, sums, row, first, result);
    }
  });
  return result;
}

} // namespace fp4::numerics
