// The model of a GEMM whose operands are converted for a tensor core of 16-bit floats: one
// instruction of K = 16 after the other, each a truncated fused dot product (DenseMma.h). The order
// of converted operands says which elements come together (FragmentLayout.h); beside an operand of
// floats, which keeps the order of memory, neighbours in K come together.
#include "ColumnPieces.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/Numerics/DenseRow.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fp4::numerics {
namespace {

constexpr unsigned instructionK = hw::convertedInstructionK, tileK = hw::convertedTileK;
constexpr unsigned instructionsPerTile = tileK / instructionK, stepsPerTile = tileK / fp4MmaK;

/// The 16 factors of each instruction of a k tile, of one row.
using TileFactors = std::array<FactorRow, instructionsPerTile>;

/// The elements of a k tile, of one row; zeros where K has ended.
using TileElements = std::array<uint16_t, tileK>;

/// The type of both factors: that of the operand without scales, if there is one.
FloatType elementOf(const GemmProblem &p) {
  return p.floatA.value_or(isMX(p.format) ? FloatType::BF16 : FloatType::F16);
}
hw::MmaType factorType(const GemmProblem &p) {
  return elementOf(p) == FloatType::BF16 ? hw::MmaType::BF16 : hw::MmaType::F16;
}

/// K tiles of `steps` steps.
uint64_t tilesOf(uint64_t steps) { return (steps + stepsPerTile - 1) / stepsPerTile; }

TileElements convertTile(const GemmProblem &p, const GemmOperand &operand, BlockFormat format,
                         uint64_t row, uint64_t tile) {
  TileElements elements{};
  const uint64_t first = tile * tileK, end = std::min<uint64_t>(first + tileK, p.depth);
  for (uint64_t k = first; k < end; ++k) {
    const ScaledCode element = scaledCode(p, operand, format, row, k);
    elements[k - first] = p.floatA
                              ? convertElement(format, elementOf(p), element.code, element.scale)
                              : convertElement(format, element.code, element.scale);
  }
  return elements;
}

/// The elements of a k tile of A, which are floats.
TileElements floatTile(const GemmProblem &p, uint64_t row, uint64_t tile) {
  TileElements elements{};
  const uint64_t first = tile * tileK, end = std::min<uint64_t>(first + tileK, p.depth);
  for (uint64_t k = first; k < end; ++k)
    elements[k - first] = floatBits(p, row, k);
  return elements;
}

TileFactors factorsOf(const GemmProblem &p, const TileElements &elements) {
  TileFactors factors;
  for (unsigned i = 0; i < instructionsPerTile; ++i) {
    std::array<uint16_t, instructionK> together;
    for (unsigned n = 0; n < instructionK; ++n)
      together[n] = elements[p.floatA ? i * instructionK + n : hw::convertedElementOf(i, n)];
    decodeFactors(factorType(p), reinterpret_cast<const uint8_t *>(together.data()), false,
                  false, factors[i]);
  }
  return factors;
}

/// Decodes columns of B, one DenseColumns for each instruction.
std::vector<DenseColumns> decodePanel(const GemmProblem &p, uint64_t first, uint64_t count) {
  std::vector<DenseColumns> panel;
  for (uint64_t tile = 0; tile < tilesOf(stepsOf(p)); ++tile) {
    std::array<std::vector<FactorRow>, instructionsPerTile> columns;
    for (uint64_t j = 0; j < count; ++j) {
      const TileFactors factors = factorsOf(p, convertTile(p, p.b, formatOfB(p), first + j, tile));
      for (unsigned i = 0; i < instructionsPerTile; ++i)
        columns[i].push_back(factors[i]);
    }
    for (auto &rows : columns)
      panel.emplace_back(std::move(rows), instructionK);
  }
  return panel;
}

TileFactors factorsOfRow(const GemmProblem &p, uint64_t row, uint64_t tile) {
  return factorsOf(p, p.floatA ? floatTile(p, row, tile) : convertTile(p, p.a, p.format, row, tile));
}

/// Instructions of k tile `tile`: those of elements of K, and those that multiply zeros behind K.
unsigned instructionsOf(const GemmProblem &p, uint64_t tile) {
  const uint64_t unit = p.filledK ? p.filledK : tileK;
  const uint64_t end = (p.depth + unit - 1) / unit * unit;
  return unsigned(std::min<uint64_t>(end - tile * tileK, tileK) / instructionK);
}

/// The sums of row `row` against a panel, whose first column is `column`. The sums of split-K
/// ranges are added from the first range on.
void multiplyRow(const GemmProblem &p, uint64_t row, uint64_t column,
                 const std::vector<DenseColumns> &panel, std::span<float> sums) {
  const unsigned fraction = fractionBits(factorType(p));
  const DenseRowOptions options{2 * fraction, hw::AccumulatorType::F32, {}};
  const std::vector<int32_t> unscaled(sums.size());
  // Ranges count steps; each begins with a k tile.
  forRangesAt(p, row, column, [&](uint64_t begin, uint64_t end) {
    std::vector<uint32_t> part(sums.size());
    for (uint64_t tile = tilesOf(begin); tile < tilesOf(end); ++tile) {
      const TileFactors factors = factorsOfRow(p, row, tile);
      for (unsigned i = 0; i < instructionsOf(p, tile); ++i)
        denseRow(factors[i], panel[tile * instructionsPerTile + i], unscaled, part, options);
    }
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] = begin == 0 ? floatOf(part[j]) : sums[j] + floatOf(part[j]);
  });
}

} // namespace

uint16_t convertElement(BlockFormat format, FloatType type, uint8_t code, uint8_t scale) {
  const double factor = std::ldexp(isMX(format) ? decodeUE8M0(scale) : decodeUE4M3(scale),
                                   convertedExponent(format, type));
  const bool areHalves = isMX(format) && type == FloatType::F16;
  const double rounded = areHalves ? double(decodeF16(encodeF16(float(factor)))) : factor;
  const auto scaled = static_cast<float>(decodeElement(format, code) * rounded);
  return type == FloatType::BF16 ? encodeBF16(scaled) : encodeF16(scaled);
}

uint16_t convertElement(BlockFormat format, uint8_t code, uint8_t scale) {
  return convertElement(format, isMX(format) ? FloatType::BF16 : FloatType::F16, code, scale);
}

std::vector<float> convertedModel(const GemmProblem &p) {
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  const int restored = -convertedExponent(p);
  std::vector<float> result(p.a.rows * p.b.rows);
  forPieces(p, [&](uint64_t first, uint64_t count) {
    const std::vector<DenseColumns> panel = decodePanel(p, first, count);
    std::vector<float> sums(count);
    for (uint64_t row = 0; row < p.a.rows; ++row) {
      multiplyRow(p, row, first, panel, sums);
      for (uint64_t j = 0; j < count; ++j)
        result[row * p.b.rows + first + j] = epilogue.apply(
            std::ldexp(sums[j], restored), alphaAt(p, row, first + j).value_or(1.f));
    }
  });
  return result;
}

} // namespace fp4::numerics
