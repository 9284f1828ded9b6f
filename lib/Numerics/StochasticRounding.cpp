#include "fp4/Numerics/StochasticRounding.h"
#include "fp4/Numerics/Philox.h"
#include <algorithm>

namespace fp4::numerics {
namespace {

/// A Philox counter.
struct Draw {
  uint64_t subsequence, offset;
};

Draw elementDraw(const RandomDomain &domain, uint64_t row, uint64_t group) {
  const uint64_t groupsPerRow = (domain.columns + 15) / 16;
  const uint64_t index = domain.firstGroup + row * groupsPerRow + group;
  return {index | (domain.columnwise ? uint64_t(1) << 63 : 0), 0};
}

/// TransformerEngine's tile is 128 x 128 elements of the input, its grid X tiles wide.
Draw blockwiseDraw(const RandomDomain &domain, uint64_t row, uint64_t group, uint64_t tilesX) {
  constexpr uint64_t threads = 256;
  uint64_t x = group / 8, y = row / 128, slot = row % 32, draw = row % 128 / 32;
  if (domain.columnwise) {
    std::swap(x, y);
    slot = row % 128 / 2 % 32;
    draw = (domain.afterRowwise ? 4 : 0) + row % 128 / 64 * 2 + row % 2;
  }
  return {slot * 8 + group % 8 + threads * (x + tilesX * y), draw};
}

} // namespace

std::array<uint8_t, 16> randomBytes(const StochasticRounding &rounding, const RandomDomain &domain,
                                    uint64_t row, uint64_t group) {
  const Draw draw = rounding.mapping == PhiloxMapping::Element
                        ? elementDraw(domain, row, group)
                        : blockwiseDraw(domain, row, group, (domain.inputColumns() + 127) / 128);
  const auto words =
      philox4x32(rounding.seed, draw.subsequence, rounding.offset + draw.offset, rounding.rounds);
  std::array<uint8_t, 16> bytes;
  for (unsigned q = 0; q < 4; ++q) {
    const auto four = stochasticBytes(words[q], rounding.bytes);
    std::copy(four.begin(), four.end(), bytes.begin() + 4 * q);
  }
  return bytes;
}

} // namespace fp4::numerics
