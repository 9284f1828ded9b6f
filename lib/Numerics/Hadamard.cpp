#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Quantize.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace fp4::numerics {
namespace {

template <typename T> void butterfly(std::span<T> block, size_t stride) {
  for (size_t base = 0; base < block.size(); base += 2 * stride)
    for (size_t i = base; i < base + stride; ++i) {
      const T a = block[i], b = block[i + stride];
      block[i] = a + b;
      block[i + stride] = a - b;
    }
}

template <typename T> void butterflies(std::span<T> block, ButterflyOrder order) {
  const unsigned stages = static_cast<unsigned>(std::countr_zero(block.size()));
  for (unsigned s = 0; s < stages; ++s)
    butterfly(block, size_t(1) << (order == ButterflyOrder::Ascending ? s : stages - 1 - s));
}

/// A sum of zeros is +0, as a sum that begins with 0 is.
void exactSums(std::span<float> block, ButterflyOrder order, float scale) {
  std::vector<double> sums(block.begin(), block.end());
  butterflies(std::span<double>(sums), order);
  for (size_t j = 0; j < sums.size(); ++j)
    block[j] = static_cast<float>((sums[j] + 0.0) * static_cast<double>(scale));
}

void transformBlock(std::span<float> block, const HadamardOptions &options) {
  for (size_t i = 0; i < block.size(); ++i)
    if (options.signMask >> (i % 16) & 1)
      block[i] = -block[i];
  // The scale is rounded to fp32 first: exact for 16 and 64, the nearest float for 32 and 128.
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.size())));
  if (options.arithmetic == HadamardArithmetic::ExactSum) {
    exactSums(block, options.order, scale);
  } else {
    const float size = static_cast<float>(block.size());
    for (float &value : block)
      value *= 1.f / size;
    butterflies(block, options.order);
    for (float &value : block)
      value *= scale * size;
  }
  if (options.roundToBF16)
    for (float &value : block)
      value = roundTo(FloatType::BF16, value);
}

} // namespace

Status hadamard(std::span<float> values, const HadamardOptions &options) {
  const unsigned n = options.blockSize;
  if (n != 16 && n != 32 && n != 64 && n != 128)
    return makeError(ErrorKind::Usage,
                     "hadamard block size must be 16, 32, 64 or 128, but got " + std::to_string(n));
  if (values.size() % n)
    return makeError(ErrorKind::Usage, "hadamard expects a multiple of " + std::to_string(n) +
                                           " values, but got " + std::to_string(values.size()));
  for (size_t i = 0; i < values.size(); i += n)
    transformBlock(values.subspan(i, n), options);
  return {};
}

Status hadamardRows(std::span<float> values, uint64_t rows, uint64_t columns,
                    const HadamardOptions &options) {
  if (options.blockSize && columns % options.blockSize)
    return makeError(ErrorKind::Usage,
                     "rows to transform must be multiples of " + std::to_string(options.blockSize) +
                         " long, but got " + std::to_string(columns),
                     "pad the matrix with zeros or take a smaller hadamard block");
  for (uint64_t r = 0; r < rows; ++r)
    FP4_TRY(hadamard(values.subspan(r * columns, columns), options));
  return {};
}

Expected<HadamardAmax> hadamardAmax(std::span<const float> values, uint64_t rows, uint64_t columns,
                                    bool columnwise, const HadamardOptions &options,
                                    NanPolicy policy) {
  if (values.size() != rows * columns)
    return makeError(ErrorKind::Usage, "values must have " + std::to_string(rows * columns) +
                                           " elements, but got " + std::to_string(values.size()));
  std::vector<float> turned(values.begin(), values.end());
  if (columnwise) {
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t c = 0; c < columns; ++c)
        turned[c * rows + r] = values[r * columns + c];
    std::swap(rows, columns);
  }
  FP4_TRY(hadamardRows(turned, rows, columns, options));
  return HadamardAmax{amax(values, policy), amax(turned, policy)};
}

} // namespace fp4::numerics
