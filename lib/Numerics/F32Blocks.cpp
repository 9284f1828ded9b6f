// Scale blocks whose scale is an f32.
#include "F32Blocks.h"
#include "fp4/Numerics/Quantize.h"

#include <algorithm>
#include <cstring>

namespace fp4::numerics {
namespace {

/// The rows and columns of one scale block.
struct Range {
  uint64_t row, rowEnd, column, columnEnd;
};

/// Quantizes one scale block: its codes, and the bits of its scale.
uint32_t quantizeRange(RecipeEvaluator &evaluator, std::span<const float> values, uint64_t pitch,
                       const Range &block, std::vector<uint8_t> &codes) {
  std::vector<float> elements;
  for (uint64_t r = block.row; r < block.rowEnd; ++r)
    elements.insert(elements.end(), values.begin() + int64_t(r * pitch + block.column),
                    values.begin() + int64_t(r * pitch + block.columnEnd));
  const uint32_t scale =
      evaluator.setBlock(amax(elements, evaluator.program().amaxNaN));
  for (uint64_t r = block.row; r < block.rowEnd; ++r)
    for (uint64_t c = block.column; c < block.columnEnd; ++c)
      codes[r * pitch + c] = evaluator.elementCode(values[r * pitch + c]);
  return scale;
}

} // namespace

QuantizedSide quantizeF32Blocks(const RecipeProgram &program, std::span<const float> values,
                                uint64_t rows, uint64_t columns, BlockExtent extent) {
  QuantizedSide out;
  out.rows = rows;
  out.columns = columns;
  out.blocks = (columns + extent.columns - 1) / extent.columns;
  out.packed = false;
  out.data.resize(rows * columns);
  RecipeEvaluator evaluator(program);
  evaluator.setTensor(0.f); // constants
  for (uint64_t r = 0; r < rows; r += extent.rows)
    for (uint64_t c = 0; c < columns; c += extent.columns) {
      const Range block = {r, std::min(r + extent.rows, rows), c,
                           std::min(c + extent.columns, columns)};
      const uint32_t scale = quantizeRange(evaluator, values, columns, block, out.data);
      const auto *bytes = reinterpret_cast<const uint8_t *>(&scale);
      out.scales.insert(out.scales.end(), bytes, bytes + sizeof scale);
    }
  return out;
}

} // namespace fp4::numerics
