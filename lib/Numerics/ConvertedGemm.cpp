// The model of a product whose operands are converted for a tensor core of 16-bit floats: one
// instruction of K = 16 after the other, each a truncated fused dot product (DenseMma.h).
#include "GemmOperands.h"
#include "fp4/Numerics/DenseRow.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Support/Parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

namespace fp4::numerics {
namespace {

constexpr unsigned instructionK = 16, instructionsPerStep = fp4MmaK / instructionK;
/// Columns that are handled at once: those of the widest instruction.
constexpr uint64_t pieceColumns = 256;

/// The 16 factors of each instruction of a step, of one row.
using StepFactors = std::array<FactorRow, instructionsPerStep>;

hw::MmaType factorType(BlockFormat format) {
  return isMX(format) ? hw::MmaType::BF16 : hw::MmaType::F16;
}

StepFactors decodeStep(BlockFormat format, const Fp4MmaOperand &row) {
  std::array<uint16_t, fp4MmaK> codes;
  for (unsigned k = 0; k < fp4MmaK; ++k) {
    const uint8_t code = row.data[k / 2] >> (k % 2 * 4) & 15;
    codes[k] = convertElement(format, code, row.scales[k / blockSizeOf(format)]);
  }
  StepFactors factors;
  for (unsigned i = 0; i < instructionsPerStep; ++i)
    decodeFactors(factorType(format), reinterpret_cast<const uint8_t *>(&codes[i * instructionK]),
                  false, false, factors[i]);
  return factors;
}

/// Columns of B by instruction.
std::vector<DenseColumns> decodePanel(const GemmProblem &p, const PaddedOperand &b, uint64_t first,
                                      uint64_t count) {
  std::vector<DenseColumns> panel;
  for (uint64_t s = 0; s < b.steps; ++s) {
    std::array<std::vector<FactorRow>, instructionsPerStep> columns;
    for (uint64_t j = 0; j < count; ++j) {
      const StepFactors factors = decodeStep(p.format, b.step(first + j, s));
      for (unsigned i = 0; i < instructionsPerStep; ++i)
        columns[i].push_back(factors[i]);
    }
    for (auto &rows : columns)
      panel.emplace_back(std::move(rows), instructionK);
  }
  return panel;
}

/// The accumulators of row `row` against a panel.
void multiplyRow(const GemmProblem &p, const PaddedOperand &a, uint64_t row,
                 const std::vector<DenseColumns> &panel, std::span<uint32_t> sums) {
  const unsigned fraction = fractionBits(factorType(p.format));
  const DenseRowOptions options{2 * fraction, hw::AccumulatorType::F32, {}};
  const std::vector<int32_t> unscaled(sums.size());
  for (uint64_t s = 0; s < a.steps; ++s) {
    const StepFactors factors = decodeStep(p.format, a.step(row, s));
    for (unsigned i = 0; i < instructionsPerStep; ++i)
      denseRow(factors[i], panel[s * instructionsPerStep + i], unscaled, sums, options);
  }
}

} // namespace

TensorCore tensorCoreOf(const hw::TargetModel &target) {
  return target.hasTcgen05 || target.hasMmaBlockScale ? TensorCore::BlockScaled
                                                      : TensorCore::Converted;
}

uint16_t convertElement(BlockFormat format, uint8_t code, uint8_t scale) {
  const float value = decodeE2M1(code);
  if (isMX(format))
    return encodeBF16(value * decodeUE8M0(scale));
  return encodeF16(std::ldexp(value * decodeUE4M3(scale), convertedExponent(format)));
}

std::vector<float> convertedModel(const GemmProblem &p) {
  const PaddedOperand a(p, p.a), b(p, p.b);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  const int restored = -2 * convertedExponent(p.format);
  std::vector<float> result(a.rows * b.rows);
  std::mutex mutex;
  uint64_t done = 0;
  parallelFor((b.rows + pieceColumns - 1) / pieceColumns, p.threads, [&](uint64_t piece) {
    const uint64_t first = piece * pieceColumns;
    const uint64_t count = std::min(pieceColumns, b.rows - first);
    const std::vector<DenseColumns> panel = decodePanel(p, b, first, count);
    std::vector<uint32_t> sums(count);
    for (uint64_t row = 0; row < a.rows; ++row) {
      std::fill(sums.begin(), sums.end(), 0);
      multiplyRow(p, a, row, panel, sums);
      for (uint64_t j = 0; j < count; ++j)
        result[row * b.rows + first + j] = epilogue.apply(std::ldexp(floatOf(sums[j]), restored),
                                                          alphaAt(p, row, first + j).value_or(1.f));
    }
    const std::lock_guard lock(mutex);
    if (p.progress)
      p.progress(done += a.rows * count, a.rows * b.rows);
  });
  return result;
}

} // namespace fp4::numerics
