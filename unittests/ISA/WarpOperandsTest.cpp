// The order of lanes against the tables of PTX ISA, "Matrix Fragments for mma.m16n8k64" and "Block
// Scaling for mma.sync".
#include "fp4/ISA/WarpOperands.h"
#include <gtest/gtest.h>

namespace fp4::hw {
namespace {

/// The origin of the four bytes of a register: ldmatrix gives lane l of register i four bytes of
/// the line that lane 8 i + l / 4 names.
template <typename LineOf> MatrixLine<unsigned> sourceOf(LineOf lineOf, unsigned lane, unsigned i) {
  MatrixLine<unsigned> line = lineOf(8 * i + lane / 4);
  return {line.row, line.byte + 4 * (lane % 4)};
}

TEST(WarpOperands, matricesAreTheFragmentsOfA) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const auto source = sourceOf(matrixLineOfA<unsigned>, lane, i);
      EXPECT_EQ(source.row, lane / 4 + 8 * (i % 2)) << lane << " " << i;
      EXPECT_EQ(source.byte, 4 * (lane % 4) + 16 * (i / 2)) << lane << " " << i;
    }
}

TEST(WarpOperands, matricesAreTheFragmentsOfTwoB) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const auto source = sourceOf(matrixLineOfB<unsigned>, lane, i);
      EXPECT_EQ(source.row, lane / 4 + 8 * (i / 2)) << lane << " " << i;
      EXPECT_EQ(source.byte, 4 * (lane % 4) + 16 * (i % 2)) << lane << " " << i;
    }
}

// Elements of 4 bits and those beside them have one order of k in their registers, which has every element once.
TEST(WarpOperands, codesAndWhatIsBesideThemHaveOneOrder) {
  for (unsigned row = 0; row < 8; ++row) {
    uint32_t seen = 0;
    for (unsigned lane = 4 * row; lane < 4 * row + 4; ++lane)
      for (unsigned i = 0; i < 2; ++i)
        for (unsigned j = 0; j < 4; ++j) {
          const auto codes = sourceOf(matrixLineOfCodes<unsigned>, lane, 0);
          const auto bytes = lineBesideCodes<unsigned>(lane);
          EXPECT_EQ(codes.row, row);
          EXPECT_EQ(bytes.row, row);
          const unsigned bit = 8 * j + 2 - unsigned(codeShift(i)); // of the word, that lands in bit 2 of byte j
          const unsigned element = 2 * codes.byte + bit / 4;
          EXPECT_EQ(bit % 4, 0u);
          EXPECT_EQ(element, bytes.byte + (besideCodes(i) >> 4 * j & 7));
          seen |= 1u << element;
        }
    EXPECT_EQ(seen, ~0u);
  }
  EXPECT_EQ(codeMask, 0x3Cu * 0x01010101u);
}

TEST(WarpOperands, scalesAreWhereAnInstructionLooks) {
  for (unsigned thread = 0; thread < 2; ++thread)
    for (unsigned row = 0; row < warpRowsA; ++row)
      EXPECT_EQ(scaleRowOfA(4 * (row % 8) + 2 * thread + row / 8), 16 * thread + row);
  for (unsigned row = 0; row < warpRowsA; ++row)
    EXPECT_EQ(scaleRowOfShortA(4 * (row % 8) + row / 8), row);
  for (unsigned thread = 0; thread < 4; ++thread)
    for (unsigned row = 0; row < warpRowsB; ++row)
      EXPECT_EQ(scaleRowOfB(4 * row + thread), 8 * thread + row);
}

} // namespace
} // namespace fp4::hw
