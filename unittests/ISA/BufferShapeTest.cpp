// Buffers of tensors: what users pass, and what the compiler allocates.
#include "fp4/ISA/BufferShape.h"
#include <array>
#include <gtest/gtest.h>

using namespace fp4::hw;
using Sizes = std::vector<int64_t>;

TEST(BufferShape, rowsOfPackedElements) {
  for (auto [columns, dense, padded] : {std::array<int64_t, 3>{1, 1, 16},
                                        {31, 16, 16},
                                        {32, 16, 16},
                                        {33, 17, 32},
                                        {1024, 512, 512}}) {
    EXPECT_EQ(denseRowBytes(columns), dense);
    EXPECT_EQ(paddedRowBytes(columns), padded);
    const Sizes shape = {3, columns};
    EXPECT_EQ(bufferShape({shape, 4}, RowPitch::Dense), (Sizes{3, dense}));
    EXPECT_EQ(bufferShape({shape, 4}, RowPitch::Padded), (Sizes{3, padded}));
    EXPECT_EQ(bufferShape({shape, 8}, RowPitch::Padded), shape);
  }
}

TEST(BufferShape, tilesOfScales) {
  const Sizes shape = {129, 5}, dynamic = {-1, 4};
  EXPECT_EQ(bufferShape({shape, 8, true}, RowPitch::Dense), (Sizes{2, 2, 512}));
  EXPECT_EQ(bufferShape({shape, 8, false}, RowPitch::Dense), shape);
  EXPECT_EQ(bufferShape({dynamic, 8, true}, RowPitch::Padded), (Sizes{-1, 1, 512}));
}

TEST(BufferShape, dynamicSizesStayAsTheyAre) {
  const Sizes shape = {-1, -1}, huge = {INT64_MAX, INT64_MAX}, none = {};
  EXPECT_EQ(bufferShape({shape, 4}, RowPitch::Padded), shape);
  EXPECT_EQ(bufferShape({huge, 4}, RowPitch::Dense), (Sizes{INT64_MAX, INT64_MAX / 2 + 1}));
  EXPECT_EQ(bufferShape({none, 4}, RowPitch::Dense), none);
}
