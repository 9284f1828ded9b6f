#include "fp4/Numerics/Hadamard.h"
#include "fp4/Numerics/Float16.h"
#include <bit>
#include <cmath>
#include <string>

namespace fp4::numerics {
namespace {

void butterfly(std::span<float> block, size_t stride) {
  for (size_t base = 0; base < block.size(); base += 2 * stride)
    for (size_t i = base; i < base + stride; ++i) {
      const float a = block[i], b = block[i + stride];
      block[i] = a + b;
      block[i + stride] = a - b;
    }
}

void transformBlock(std::span<float> block, const HadamardOptions &options) {
  for (size_t i = 0; i < block.size(); ++i)
    if (options.signMask >> (i % 16) & 1)
      block[i] = -block[i];
  const unsigned stages = static_cast<unsigned>(std::countr_zero(block.size()));
  for (unsigned s = 0; s < stages; ++s)
    butterfly(block,
              size_t(1) << (options.order == ButterflyOrder::Ascending ? s : stages - 1 - s));
  // Rounded to fp32 first: exact for 16 and 64, the nearest float for 32 and 128.
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.size())));
  for (float &value : block)
    value = options.roundToBF16 ? roundTo(FloatType::BF16, value * scale) : value * scale;
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

} // namespace fp4::numerics
