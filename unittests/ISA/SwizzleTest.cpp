// Swizzle modes over their full repeats.
//
// Sources: (1) PTX ISA, "Swizzling modes", whose tables are transcribed below: row r of a table is
// the r-th 128-byte line of the pattern, entry c the 16-byte chunk of the source that lies at chunk
// c. (2) CUTLASS' Swizzle<B, M, S> functors (mma_sm100_desc.hpp, mma_traits_sm100.hpp): bits
// [M, M+B) ^= bits [M+S, M+S+B), with <1,4,3>, <2,4,3>, <3,4,3> and <2,5,2>.
#include "fp4/ISA/Swizzle.h"
#include <gtest/gtest.h>
#include <set>
#include <vector>

using namespace fp4::hw;

namespace {

using Table = std::vector<std::vector<unsigned>>;

const Table table32 = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
const Table table64 = {{0, 1, 2, 3, 4, 5, 6, 7},
                       {1, 0, 3, 2, 5, 4, 7, 6},
                       {2, 3, 0, 1, 6, 7, 4, 5},
                       {3, 2, 1, 0, 7, 6, 5, 4}};
const Table table128 = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                        {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                        {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                        {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
const Table table128Atom32 = {{0, 1, 2, 3, 4, 5, 6, 7},
                              {2, 3, 0, 1, 6, 7, 4, 5},
                              {4, 5, 6, 7, 0, 1, 2, 3},
                              {6, 7, 4, 5, 2, 3, 0, 1}};

struct Case {
  SwizzleMode mode;
  const Table *table;
  unsigned bits, base, shift; // Swizzle<B, M, S>
};
const Case cases[] = {{SwizzleMode::B32, &table32, 1, 4, 3},
                      {SwizzleMode::B64, &table64, 2, 4, 3},
                      {SwizzleMode::B128, &table128, 3, 4, 3},
                      {SwizzleMode::B128Atom32, &table128Atom32, 2, 5, 2}};

TEST(Swizzle, equalsPtxTablesOverTwoRepeats) {
  for (const Case &c : cases)
    for (uint32_t line = 0; line < 2 * c.table->size(); ++line)
      for (uint32_t chunk = 0; chunk < 8; ++chunk) {
        const uint32_t source = (*c.table)[line % c.table->size()][chunk];
        for (uint32_t byte = 0; byte < 16; ++byte)
          EXPECT_EQ(swizzleAddress(c.mode, line * 128 + source * 16 + byte),
                    line * 128 + chunk * 16 + byte)
              << stringify(c.mode);
      }
}

TEST(Swizzle, equalsCutlassFunctorsOverShared) {
  for (const Case &c : cases)
    for (uint32_t x = 0; x < 228 * 1024; x += 16) {
      const uint32_t mask = ((1u << c.bits) - 1) << (c.base + c.shift);
      ASSERT_EQ(swizzleAddress(c.mode, x), x ^ ((x & mask) >> c.shift)) << stringify(c.mode);
    }
}

TEST(Swizzle, isAnInvolutionThatRepeats) {
  for (const Case &c : cases) {
    const uint32_t repeat = swizzleRepeatBytes(c.mode);
    EXPECT_EQ(repeat, c.table->size() * 128);
    std::set<uint32_t> image;
    for (uint32_t x = 0; x < repeat; ++x) {
      const uint32_t y = swizzleAddress(c.mode, x);
      image.insert(y);
      ASSERT_EQ(swizzleAddress(c.mode, y), x);
      ASSERT_EQ(swizzleAddress(c.mode, x + 5 * repeat), y + 5 * repeat);
    }
    EXPECT_EQ(image.size(), repeat);
    EXPECT_EQ(*image.rbegin(), repeat - 1);
  }
  EXPECT_EQ(swizzleAddress(SwizzleMode::None, 0x12345), 0x12345u);
}

// Descriptor codes: PTX ISA, table "Shared memory descriptor layout"; tensor map codes: cuda.h.
TEST(Swizzle, codesAndNames) {
  const struct {
    SwizzleMode mode;
    unsigned descriptor, tensorMap;
    const char *name;
  } rows[] = {{SwizzleMode::None, 0, 0, "none"},
              {SwizzleMode::B32, 6, 1, "swizzle_32B"},
              {SwizzleMode::B64, 4, 2, "swizzle_64B"},
              {SwizzleMode::B128, 2, 3, "swizzle_128B"},
              {SwizzleMode::B128Atom32, 1, 4, "swizzle_128B_atom_32B"}};
  for (const auto &row : rows) {
    EXPECT_EQ(descriptorSwizzleCode(row.mode), row.descriptor);
    EXPECT_EQ(swizzleFromDescriptorCode(row.descriptor), row.mode);
    EXPECT_EQ(tensorMapSwizzleCode(row.mode), row.tensorMap);
    EXPECT_EQ(swizzleFromTensorMapCode(row.tensorMap), row.mode);
    EXPECT_EQ(stringify(row.mode), row.name);
    EXPECT_EQ(parseSwizzleMode(row.name), row.mode);
  }
  for (unsigned bad : {3u, 5u, 7u, 8u})
    EXPECT_FALSE(swizzleFromDescriptorCode(bad)) << bad;
  EXPECT_FALSE(parseSwizzleMode("128B"));
}

} // namespace
