// Whole GEMMs: the MMA model step by step, and the fp64 reference with its bound. Model and
// reference run over tiles of the result; a tile decodes its rows and columns once.
#include "fp4/Numerics/BlockScaledGemm.h"
#include "GemmOperands.h"
#include "RecipeEvaluator.h"
#include "StepKernels.h"
#include "fp4/Support/Parallel.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>

namespace fp4::numerics {
namespace {

StepKind stepKindOf(BlockFormat f) {
  return {isMX(f) ? hw::ScaleType::UE8M0 : hw::ScaleType::UE4M3,
          blockSizeOf(f) == 16 ? hw::ScaleVector::X4 : hw::ScaleVector::X2};
}

//===--- Tiles of the result ---------------------------------------------===//

/// A piece of the result with its decoded operands, all of K.
struct Tile {
  uint64_t row = 0, rows = 0, column = 0, columns = 0, steps = 0;
  std::vector<StepRow> a;   ///< [row][step]
  std::vector<StepPanel> b; ///< [panel][step]

  const StepRow *rowSteps(uint64_t r) const { return &a[r * steps]; }
  const StepPanel *panelSteps(uint64_t first) const { return &b[first / panelColumns * steps]; }
  unsigned panelSize(uint64_t first) const {
    return static_cast<unsigned>(std::min<uint64_t>(panelColumns, columns - first));
  }
};

/// Rows and columns of a tile: many share decoded operands, which stay in a processor's caches.
uint64_t tileSize(uint64_t steps) {
  return std::clamp<uint64_t>(32768 / steps / panelColumns * panelColumns, panelColumns, 512);
}

void decodeTile(StepKind kind, const PaddedOperand &a, const PaddedOperand &b, Tile &tile) {
  tile.steps = a.steps;
  for (uint64_t r = tile.row; r < tile.row + tile.rows; ++r)
    for (uint64_t s = 0; s < a.steps; ++s)
      tile.a.push_back(decodeStepRow(kind, a.step(r, s)));
  tile.b.resize((tile.columns + panelColumns - 1) / panelColumns * a.steps);
  for (uint64_t first = 0; first < tile.columns; first += panelColumns)
    for (uint64_t s = 0; s < a.steps; ++s)
      decodeStepPanel(kind, b.step(tile.column + first, s), tile.panelSize(first),
                      tile.b[first / panelColumns * a.steps + s]);
}

/// Runs body(tile) for every tile of the result, on p.threads threads.
template <typename Body>
void forTiles(const GemmProblem &p, const PaddedOperand &a, const PaddedOperand &b,
              const Body &body) {
  const uint64_t size = tileSize(a.steps), tileColumns = (b.rows + size - 1) / size;
  const uint64_t tiles = (a.rows + size - 1) / size * tileColumns;
  std::mutex mutex;
  uint64_t done = 0;
  parallelFor(tiles, p.threads, [&](uint64_t i) {
    Tile tile;
    tile.row = i / tileColumns * size;
    tile.rows = std::min(size, a.rows - tile.row);
    tile.column = i % tileColumns * size;
    tile.columns = std::min(size, b.rows - tile.column);
    decodeTile(stepKindOf(p.format), a, b, tile);
    body(tile);
    if (p.progress) {
      const std::lock_guard lock(mutex);
      p.progress(done += tile.rows * tile.columns, a.rows * b.rows);
    }
  });
}

//===--- fp64 reference --------------------------------------------------===//

/// Adds the sum of a further split-K range in fp32, which rounds to nearest.
void addPart(const ReferenceState &part, ReferenceState &total) {
  for (unsigned j = 0; j < panelColumns; ++j) {
    total.sum[j] += part.sum[j];
    total.magnitude[j] += part.magnitude[j];
    const double error = total.error[j] + part.error[j];
    const double reach = std::fabs(total.sum[j]) + error;
    total.error[j] = error + reach * 0x1p-24 + 0x1p-150;
    total.reach[j] =
        std::max({total.reach[j], part.reach[j], std::fabs(total.sum[j]) + total.error[j]});
  }
}

/// An fp4 instruction cuts five terms at 2^-35 of the largest scale's exponent. Two instructions of
/// K = 96 cut seven terms each where three of K = 64 cut five: either lies within two of the three,
/// so 14 terms for each of the three bound them. One of K = 128 cuts nine terms at the largest
/// exponent of two of K = 64, so nine terms for each of the two bound them. Each of four
/// instructions of 16-bit floats cuts 17 terms at 2^-25 of the largest product's exponent. The unit
/// is at most the largest product itself, unless a factor is subnormal, which is below 2^-14 in f16
/// and 2^-126 in bf16 and whose partner is below 12 powers of its scale. The epilogue enlarges the
/// loss of a subnormal sum as it enlarges the sum. Without a tensor core, threads round to nearest,
/// a known number of times (finish); a scale block times one scale is finite with scales up to
/// 2^115.
StepRounding roundingOf(const GemmProblem &p) {
  constexpr std::array<int, 3> termsOfDepth = {5, 2 * 7, 9};
  if (p.core == TensorCore::None)
    return {.cut = 0, .align = 0, .product = 1, .largestScale = 115};
  if (p.core == TensorCore::BlockScaled)
    return {.cut = 0x1p-23,
            .align = termsOfDepth[static_cast<size_t>(p.mmaDepth)] * 0x1p-35,
            .product = 1};
  const int exponent = convertedExponent(p.format);
  const double smallest = std::ldexp(1, (isMX(p.format) ? -126 : -14) - exponent);
  return {.cut = 4 * 0x1p-23,
          .align = 4 * 17 * 0x1p-25,
          .factor = 12 * smallest,
          .least = std::ldexp(4 * 0x1p-148, -2 * exponent)};
}

/// Sums, bounds and possible overflows of one row and panel, from its state after the last step.
void finish(const GemmProblem &p, const EpilogueProgram &epilogue, const ReferenceState &r,
            bool mayOverflow, uint64_t row, uint64_t column, unsigned count,
            GemmReference &result) {
  const uint64_t at = row * p.b.rows + column;
  const double fp64 = static_cast<double>(p.depth) * 0x1p-52; // of the reference itself
  for (unsigned j = 0; j < count; ++j) {
    const float alpha = alphaAt(p, row, column + j).value_or(1.f);
    // Partial sums of lanes, and of converted operands in their order along K, differ from those of
    // the reference, but are no larger than the sum of all magnitudes.
    const bool hasLanes = p.core == TensorCore::None, isBlockScaled = p.core == TensorCore::BlockScaled;
    const double roundings = hasLanes ? static_cast<double>(fmaRoundings(p)) : 0;
    const double ofLanes = roundings * (0x1.01p-24 * r.magnitude[j] + 0x1p-150);
    const BoundedValue sum = {r.sum[j], r.error[j] + ofLanes + fp64 * r.magnitude[j]};
    const BoundedValue element = epilogue.bound(sum, alpha);
    result.values[at + j] = element.value;
    result.bounds[at + j] = element.error;
    const bool mayBeInfinite = mayOverflow ||
                               (isBlockScaled ? r.reach[j] : r.magnitude[j]) >= 0x1p127 * 2 ||
                               epilogue.mayOverflow(element, alpha);
    result.mayOverflow[at + j] = overflowOf(epilogue, mayBeInfinite);
  }
}

} // namespace

Expected<std::vector<float>> gemmMmaModel(const GemmProblem &p) {
  FP4_TRY(validate(p));
  if (hasF32Scales(p.format))
    return promotedModel(p);
  if (p.core == TensorCore::Converted)
    return convertedModel(p);
  if (isMXF8F6F4(p))
    return wideModel(p);
  if (p.core == TensorCore::None)
    return fmaModel(p);
  if (p.mmaDepth != hw::MmaDepth::Single)
    return longModel(p);
  const PaddedOperand a(p, p.a), b(p, p.b);
  const StepKind kind = stepKindOf(p.format);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(a.rows * b.rows);
  forTiles(p, a, b, [&](const Tile &tile) {
    for (uint64_t first = 0; first < tile.columns; first += panelColumns)
      for (uint64_t r = 0; r < tile.rows; ++r) {
        const unsigned count = tile.panelSize(first);
        const StepPanel *panels = tile.panelSteps(first);
        alignas(64) float sum[panelColumns] = {};
        forRangesAt(p, tile.row + r, tile.column + first, [&](uint64_t begin, uint64_t end) {
          alignas(64) float d[panelColumns] = {};
          for (uint64_t s = begin; s < end; ++s)
            addStep(kind, tile.rowSteps(r)[s], a.step(tile.row + r, s), panels[s],
                    b.step(tile.column + first, s), count, d);
          for (unsigned j = 0; j < count; ++j)
            sum[j] = begin == 0 ? d[j] : sum[j] + d[j];
        });
        float *out = &result[(tile.row + r) * b.rows + tile.column + first];
        for (unsigned j = 0; j < count; ++j)
          out[j] = epilogue.apply(
              sum[j], alphaAt(p, tile.row + r, tile.column + first + j).value_or(1.f));
      }
  });
  return result;
}

Expected<GemmReference> gemmReference(const GemmProblem &p) {
  FP4_TRY(validate(p));
  if (hasF32Scales(p.format))
    return promotedReference(p);
  if (p.floatA || (isMXF8F6F4(p) && p.core == TensorCore::Converted))
    return convertedReference(p);
  if (isMXF8F6F4(p))
    return wideReference(p);
  const PaddedOperand a(p, p.a), b(p, p.b);
  const StepKernels &kernels = stepKernels();
  const StepRounding rounding = roundingOf(p);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  GemmReference result = emptyReference(p);
  forTiles(p, a, b, [&](const Tile &tile) {
    for (uint64_t first = 0; first < tile.columns; first += panelColumns)
      for (uint64_t r = 0; r < tile.rows; ++r) {
        ReferenceState state;
        int top = 0; // exponent of the largest scale
        forRangesAt(p, tile.row + r, tile.column + first, [&](uint64_t begin, uint64_t end) {
          ReferenceState part;
          for (uint64_t s = begin; s < end; ++s) {
            const StepRow &left = tile.rowSteps(r)[s];
            const StepPanel &right = tile.panelSteps(first)[s];
            kernels.addReference(left, right, rounding, part);
            top = std::max({top, left.exponents.hi, right.exponents.hi});
          }
          if (begin == 0)
            state = part;
          else
            addPart(part, state);
        });
        finish(p, epilogue, state, top > rounding.largestScale, tile.row + r, tile.column + first,
               tile.panelSize(first), result);
      }
  });
  return result;
}

float alphaFactor(float e4m3MaxA, float e4m3MaxB) {
  return static_cast<float>(1.0 / (36.0 * double(e4m3MaxA) * double(e4m3MaxB)));
}

float matmulAlpha(float amaxA, float amaxB, float factor) { return amaxA * amaxB * factor; }

namespace {

std::vector<float> alphaTerms(const Recipe &recipe, std::span<const float> amaxes) {
  const RecipeProgram program = makeAlphaTerm(recipe);
  RecipeEvaluator evaluator(program);
  std::vector<float> terms;
  for (float amax : amaxes) {
    evaluator.setTensor(amax);
    terms.push_back(evaluator.valueOr(program.element, 1.f));
  }
  return terms;
}

} // namespace

std::vector<float> matmulAlpha(const Recipe &a, std::span<const float> amaxA, const Recipe &b,
                               std::span<const float> amaxB) {
  const std::vector<float> left = alphaTerms(a, amaxA), right = alphaTerms(b, amaxB);
  const float factor = alphaFactor(a.e4m3Max, b.e4m3Max);
  std::vector<float> alphas;
  for (size_t i = 0; i < (left.size() == 1 ? right : left).size(); ++i) {
    const float product = left[left.size() == 1 ? 0 : i] * right[right.size() == 1 ? 0 : i];
    const bool isQuotient = a.alpha == AlphaRule::OverEncodeScales;
    alphas.push_back(isQuotient                            ? 1.f / product
                     : a.alpha == AlphaRule::AmaxProduct ? product * factor
                                                           : product);
  }
  return alphas;
}

} // namespace fp4::numerics
