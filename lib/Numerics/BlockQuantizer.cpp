// Candidates, errors and their folds.
#include "BlockQuantizer.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Quantize.h"
#include <algorithm>
#include <cmath>

namespace fp4::numerics {
namespace {

/// Errors of one tile. Within a row they are added in element order; the rows are then added in a
/// tree of strides 8, 4, 2, 1, as TransformerEngine's square blocks add them.
class ErrorFold {
public:
  explicit ErrorFold(bool largest) : largest(largest) {}
  void add(size_t row, float error) { rows[row] = combine(rows[row], error); }
  float total() {
    for (size_t stride = 8; stride > 0; stride /= 2)
      for (size_t r = 0; r < stride; ++r)
        rows[r] = combine(rows[r], rows[r + stride]);
    return rows[0];
  }

private:
  /// A NaN stays in a sum and in a maximum.
  float combine(float a, float b) const {
    if (!largest)
      return a + b;
    return b > a || std::isnan(b) ? b : a;
  }

  std::array<float, 16> rows{};
  bool largest;
};

} // namespace

float BlockQuantizer::encode(std::span<const float> values, std::span<uint8_t> codes, size_t width,
                             const ElementRounding &rounding) {
  const bool adaptive = evaluator.program().error != noValue;
  const bool isWide = evaluator.program().elementCode != noValue;
  ErrorFold fold(evaluator.program().errorIsLargest);
  for (size_t i = 0; i < values.size(); ++i) {
    if (isWide) {
      codes[i] = evaluator.elementCode(values[i]);
      continue;
    }
    const float y = evaluator.element(values[i]);
    codes[i] = rounding.bytes.empty()
                   ? encodeE2M1(y)
                   : encodeE2M1Stochastic(y, rounding.bytes[i], rounding.arithmetic);
    if (adaptive)
      fold.add(i / width, evaluator.error(decodeE2M1(codes[i])));
  }
  return fold.total();
}

uint8_t BlockQuantizer::quantize(std::span<const float> values, std::span<uint8_t> codes,
                                 size_t width, const ElementRounding &rounding) {
  const RecipeProgram &program = evaluator.program();
  width = width ? width : std::max<size_t>(values.size(), 1);
  const float blockAmax = amax(values, program.amaxNaN);
  uint8_t best = 0;
  float bestError = 0.f;
  std::array<uint8_t, maxTile> candidate;
  for (size_t c = 0; c < program.candidates.size(); ++c) {
    const auto byte = static_cast<uint8_t>(evaluator.setBlock(blockAmax, program.candidates[c]));
    const float error = encode(values, candidate, width, rounding);
    if (c > 0 && !(error < bestError))
      continue;
    best = byte;
    bestError = error;
    std::copy_n(candidate.begin(), values.size(), codes.begin());
  }
  return best;
}

} // namespace fp4::numerics
