// Codes of 6 bits one after the other, the first in the lowest bits.
#include "fp4/ISA/PackedSixBits.h"
#include <gtest/gtest.h>

namespace fp4::hw {
namespace {

TEST(PackedSixBits, groupsAreDense) {
  std::array<uint32_t, 4> words = {};
  for (unsigned i = 0; i < unsigned(sixBitGroup); ++i)
    words[i / 4] |= (0xC0u | (i * 37 + 5) % 64)
                    << 8 * (i % 4); // the two highest bits have no meaning
  const auto packed = packSixBitGroup<uint32_t>(words);
  for (unsigned i = 0; i < unsigned(sixBitGroup); ++i) {
    unsigned code = 0;
    for (unsigned bit = 0; bit < 6; ++bit)
      code |= (packed[(6 * i + bit) / 32] >> (6 * i + bit) % 32 & 1) << bit;
    EXPECT_EQ(code, (i * 37 + 5) % 64) << i;
  }
}

} // namespace
} // namespace fp4::hw
