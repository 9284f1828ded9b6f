// The model of a product whose operands are converted for a tensor core of 16-bit floats: one
// instruction of K = 16 after the other, each a truncated fused dot product (DenseMma.h) of
// elements that the order of converted operands brings together (FragmentLayout.h).
#include "GemmOperands.h"
#include "fp4/ISA/FragmentLayout.h"
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

constexpr unsigned instructionK = hw::convertedInstructionK, tileK = hw::convertedTileK;
constexpr unsigned instructionsPerTile = tileK / instructionK, stepsPerTile = tileK / fp4MmaK;
/// Columns that are handled at once: those of the widest instruction.
constexpr uint64_t pieceColumns = 256;

/// The 16 factors of each instruction of a k tile, of one row.
using TileFactors = std::array<FactorRow, instructionsPerTile>;

hw::MmaType factorType(BlockFormat format) {
  return isMX(format) ? hw::MmaType::BF16 : hw::MmaType::F16;
}

uint64_t tilesOf(const PaddedOperand &operand) {
  return (operand.steps + stepsPerTile - 1) / stepsPerTile;
}

/// Elements of a k tile, zeros where K has ended.
std::array<uint16_t, tileK> convertTile(BlockFormat format, const PaddedOperand &operand,
                                        uint64_t row, uint64_t tile) {
  std::array<uint16_t, tileK> elements{};
  for (unsigned k = 0; k < tileK; ++k) {
    const uint64_t step = tile * stepsPerTile + k / fp4MmaK;
    const unsigned inStep = k % fp4MmaK;
    if (step >= operand.steps)
      break;
    const Fp4MmaOperand part = operand.step(row, step);
    const uint8_t code = part.data[inStep / 2] >> (inStep % 2 * 4) & 15;
    elements[k] = convertElement(format, code, part.scales[inStep / blockSizeOf(format)]);
  }
  return elements;
}

TileFactors decodeTile(BlockFormat format, const PaddedOperand &operand, uint64_t row,
                       uint64_t tile) {
  const std::array<uint16_t, tileK> elements = convertTile(format, operand, row, tile);
  TileFactors factors;
  for (unsigned i = 0; i < instructionsPerTile; ++i) {
    std::array<uint16_t, instructionK> together;
    for (unsigned n = 0; n < instructionK; ++n)
      together[n] = elements[hw::convertedElementOf(i, n)];
    decodeFactors(factorType(format), reinterpret_cast<const uint8_t *>(together.data()), false,
                  false, factors[i]);
  }
  return factors;
}

/// Columns of B by instruction.
std::vector<DenseColumns> decodePanel(const GemmProblem &p, const PaddedOperand &b, uint64_t first,
                                      uint64_t count) {
  std::vector<DenseColumns> panel;
  for (uint64_t tile = 0; tile < tilesOf(b); ++tile) {
    std::array<std::vector<FactorRow>, instructionsPerTile> columns;
    for (uint64_t j = 0; j < count; ++j) {
      const TileFactors factors = decodeTile(p.format, b, first + j, tile);
      for (unsigned i = 0; i < instructionsPerTile; ++i)
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
  for (uint64_t tile = 0; tile < tilesOf(a); ++tile) {
    const TileFactors factors = decodeTile(p.format, a, row, tile);
    for (unsigned i = 0; i < instructionsPerTile; ++i)
      denseRow(factors[i], panel[tile * instructionsPerTile + i], unscaled, sums, options);
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
