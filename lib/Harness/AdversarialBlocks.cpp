//===- AdversarialBlocks.cpp - Scale blocks at which quantizers disagree --===//

#include "AdversarialBlocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fp4::harness {

// clang-format off
const std::vector<AdversarialBlock> kNvfp4Blocks = {
    {"N01", {0}},
    {"N02", {0x80000000}},
    {"N04", {0x40C00000, 0x80000000, 0xBDCCCCCD, 0xBE800000, 0xBE7FFFFF, 0xBE800001, 0x3DCCCCCD,
            0x3E800000, 0x3E800001, 0}},
    {"N04", {0x45280000, 0}},
    {"N05", {0x3F800000}},
    {"N06", {0xBF800000}},
    {"N07", {0, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000, 0x40800000, 0x40C00000,
            0, 0xBF000000, 0xBF800000, 0xBFC00000, 0xC0000000, 0xC0400000, 0xC0800000, 0xC0C00000}},
    {"N08", {0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000, 0x40A00000,
            0x40C00000, 0xBE800000, 0xBF400000, 0xBFA00000, 0xBFE00000, 0xC0200000, 0xC0600000,
            0xC0A00000, 0xC0C00000}},
    {"N09", {0x3E800001, 0x3F400001, 0x3FA00001, 0x3FE00001, 0x40200001, 0x40600001, 0x40A00001,
            0x40C00000, 0xBE800001, 0xBF400001, 0xBFA00001, 0xBFE00001, 0xC0200001, 0xC0600001,
            0xC0A00001, 0xC0C00000}},
    {"N10", {0x3E7FFFFF, 0x3F3FFFFF, 0x3F9FFFFF, 0x3FDFFFFF, 0x401FFFFF, 0x405FFFFF, 0x409FFFFF,
            0x40C00000, 0xBE7FFFFF, 0xBF3FFFFF, 0xBF9FFFFF, 0xBFDFFFFF, 0xC01FFFFF, 0xC05FFFFF,
            0xC09FFFFF, 0xC0C00000}},
    {"N11", {0x40CC0000, 0x40AA0000, 0xBF880000, 0}},
    {"N12", {0x40E40000, 0x40BE0000, 0xBF980000, 0}},
    {"N13", {0x40CB851F, 0x40A00000, 0x40A9EB85, 0}},
    {"N14", {0x40BCCCCD, 0xC09CCCCD, 0x40A00000, 0}},
    {"N15", {0x3DC00000, 0xBD400000, 0}},
    {"N16", {0x3D400000, 0xBCC00000, 0}},
    {"N17", {0x3C400000, 0x3BC00000, 0xBB000000, 0}},
    {"N18", {0x3C900000, 0x3BC00000, 0xBB000000, 0}},
    {"N19", {0x3BC00000, 0xBA800000, 0}},
    {"N20", {0x3BC00001, 0xBA800000, 0}},
    {"N21", {0x38D1B717, 0xB727C5AC, 0, 0x80000000, 0}},
    {"N22", {0x45280000, 0xC4A80000, 0x43E00000, 0xC2E00000, 0}},
    {"N23", {0x41200000, 0xBF800000, 0x3F000000, 0x3A83126F, 0}},
    {"N24", {0x3F800000, 0xBF000000, 0x3E800000, 0x3DCCCCCD, 0}},
    {"N25", {0x3AC30000, 0}},
    {"N25", {0x3F820000, 0}},
    {"N26", {0x38AA0000, 0}},
    {"N26", {0x3F8C0000, 0}},
    {"N27", {0x37800000, 0}},
    {"N27", {0x3F800000, 0}},
    {"N28", {0x3B5B6DB7, 0x3A800000, 0xBA800000, 0x3B000000, 0}},
    {"N29", {0x7F800000, 0x3F800000, 0xBF800000, 0}},
    {"N30", {0xFF800000, 0x3F800000, 0xBF800000, 0}},
    {"N31", {0x3F800000, 0x7FC00000, 0xBF800000, 0x3F000000, 0}},
    {"N32", {0x7FC00000}},
    {"N33", {0x7F800000, 0x7FC00000, 0x3F800000, 0}},
    {"N34", {0x3F800000, 0x7FC00000, 0xBF800000, 0}},
    {"N34", {0x40C00000, 0x40400000, 0xC0000000, 0}},
    {"N35", {0x7F7F0000, 0xFEFF0000, 0x7E967699, 0}},
    {"N36", {0x7F7FFFFF, 0xFEFFFFFF, 0}},
    {"N37", {0x00000001, 0x80000001, 0}},
    {"N38", {0x00800000, 0x80400000, 0}},
    {"N39", {0x006CE3EE, 0x803671F7, 0x001B38FC, 0}},
    {"N40", {0x052803B1, 0x84AA2425, 0}},
    {"N41", {0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000,
            0x3F800000, 0}},
    {"N42", {0x40400000, 0x40300000, 0xBFC00000, 0x3EC00000, 0}},
    {"N42", {0x3FC00000, 0x3F400000, 0}},
};

const std::vector<AdversarialBlock> kMxfp4Blocks = {
    {"M01", {0}},
    {"M02", {0x80000000}},
    {"M03", {0x3F800000}},
    {"M04", {0x40C00000, 0x40A00000, 0xC0600000, 0x40200000, 0x3FA00000, 0}},
    {"M05", {0x40800000, 0x40400000, 0xBFE00000, 0x3E800000, 0}},
    {"M06", {0x40600000, 0x40200000, 0xBFA00000, 0}},
    {"M07", {0x40E00000, 0x40C00000, 0x40A00000, 0xC0E00000, 0}},
    {"M08", {0x40FE0000, 0x40D00000, 0xC0A00000, 0}},
    {"M09", {0x40A00000, 0x40900000, 0xBF800000, 0}},
    {"M10", {0x40C00001, 0x40400000, 0xBFC00000, 0}},
    {"M11", {0x40FFFFFF, 0x40800000, 0xC0000000, 0}},
    {"M12", {0x41000000, 0x40800000, 0xC0000000, 0}},
    {"M13", {0x3FE00000, 0x3F800000, 0xBF000000, 0}},
    {"M14", {0x3FDFFFFF, 0x3F800000, 0xBF000000, 0}},
    {"M15", {0x3FC00000, 0x3F400000, 0xBE800000, 0}},
    {"M16", {0x3FC00001, 0x3F400000, 0xBE800000, 0}},
    {"M17", {0x7F800000, 0x3F800000, 0xBF800000, 0}},
    {"M18", {0x3F800000, 0x7FC00000, 0xBF800000, 0}},
    {"M19", {0x7FC00000, 0x7F800000, 0x3F800000, 0}},
    {"M20", {0x7F7FFFFF, 0xFE7FFFFF, 0}},
    {"M21", {0x7F7F0000, 0x7E967699, 0}},
    {"M22", {0x00800000, 0x80400000, 0}},
    {"M23", {0x00000001, 0}},
    {"M24", {0x00400000, 0x00200000, 0}},
    {"M25", {0x01400000, 0x80800000, 0}},
    {"M26", {0x01400000, 0x80400000, 0}},
    {"M27", {0x40800000, 0x80000000, 0xBDCCCCCD, 0x3DCCCCCD, 0}},
    {"M28", {0x40C00000, 0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000,
            0x40A00000, 0xBE800000, 0xBF400000, 0xBFA00000, 0xBFE00000, 0xC0200000, 0xC0600000,
            0xC0A00000, 0xC0C00000, 0}},
};
// clang-format on

namespace {

/// Largest magnitudes: of the scale blocks' own tests, of the guards of encode scales, and not
/// finite.
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kPeaks[] = {2688.f,
                            1.f,
                            1.015625f,
                            1.09375f,
                            3.f,
                            1000.f,
                            0x1.fep127f,
                            7.9e-36f,
                            1e-38f,
                            kInfinity,
                            std::numeric_limits<float>::quiet_NaN()};

/// The values of a scale block: the last is repeated to its end.
std::vector<float> valuesOf(const AdversarialBlock &block, size_t size) {
  std::vector<float> values;
  for (size_t i = 0; i < size; ++i)
    values.push_back(std::bit_cast<float>(block.bits[std::min(i, block.bits.size() - 1)]));
  return values;
}

/// The scale blocks whose values may stand in a tensor with this largest magnitude.
std::vector<std::vector<float>> pool(const std::vector<AdversarialBlock> &blocks, size_t size,
                                     float peak) {
  std::vector<std::vector<float>> fitting;
  for (const AdversarialBlock &block : blocks) {
    std::vector<float> values = valuesOf(block, size);
    if (std::isnan(peak) ||
        std::all_of(values.begin(), values.end(), [&](float v) { return std::fabs(v) <= peak; }))
      fitting.push_back(std::move(values));
  }
  return fitting;
}

} // namespace

std::vector<float> adversarialMatrix(Random &random, uint64_t seed, uint64_t rows,
                                     uint64_t columns) {
  constexpr uint64_t side = 32;
  const float peak = kPeaks[seed % std::size(kPeaks)];
  const auto sixteen = pool(kNvfp4Blocks, 16, peak), thirtyTwo = pool(kMxfp4Blocks, side, peak);
  auto pick = [&](const auto &blocks) { return blocks[random.below(uint32_t(blocks.size()))]; };
  std::vector<float> values(rows * columns);
  for (uint64_t row = 0; row < rows; row += side)
    for (uint64_t column = 0; column < columns; column += side) {
      const bool down = random.below(2);
      for (uint64_t line = 0; line < side; ++line) {
        std::vector<float> blocks = pick(thirtyTwo);
        if (random.below(2))
          for (uint64_t half : {0, 16})
            std::ranges::copy(pick(sixteen), blocks.begin() + long(half));
        for (uint64_t i = 0; i < side; ++i) {
          const uint64_t r = row + (down ? i : line), c = column + (down ? line : i);
          if (r < rows && c < columns)
            values[r * columns + c] = blocks[i];
        }
      }
    }
  if (!values.empty())
    values[0] = peak;
  return values;
}

} // namespace fp4::harness
