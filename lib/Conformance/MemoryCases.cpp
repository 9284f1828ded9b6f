//===- MemoryCases.cpp - Allocations, copies and fills --------------------===//

#include "DeviceUnderTest.h"

namespace fp4::cts {
namespace {

TEST(CtsMemory, CopiesRoundTrip) {
  for (size_t size : {1u, 3u, 255u, 256u, 4097u, 1u << 20}) {
    Bytes contents = patternBytes(size, uint32_t(size));
    Buffer buffer(contents);
    EXPECT_EQ(buffer.read(), contents) << size;
  }
}

TEST(CtsMemory, AllocationsAreAlignedTo256BytesAndDistinct) {
  Buffer a(1), b(1), empty(0);
  EXPECT_EQ(a.address() % 256, 0u);
  EXPECT_EQ(b.address() % 256, 0u);
  EXPECT_NE(a.address(), b.address());
  EXPECT_NE(empty.address(), 0u);
}

TEST(CtsMemory, PartialCopiesTouchOnlyTheirRange) {
  Buffer buffer(64, 0x11);
  FP4_ASSERT_OK(device()->copyToDevice(buffer.address() + 5, patternBytes(7, 1)));
  Bytes expected(64, std::byte(0x11));
  Bytes piece = patternBytes(7, 1);
  std::copy(piece.begin(), piece.end(), expected.begin() + 5);
  EXPECT_EQ(buffer.read(), expected);
}

TEST(CtsMemory, MemsetFillsOnlyItsRange) {
  Buffer buffer(64, 0x22);
  FP4_ASSERT_OK(device()->memset(buffer.address() + 3, 0xab, 9));
  FP4_ASSERT_OK(device()->memset(buffer.address(), 0xff, 0));
  Bytes expected(64, std::byte(0x22));
  std::fill_n(expected.begin() + 3, 9, std::byte(0xab));
  EXPECT_EQ(buffer.read(), expected);
}

// The repack of a dense row into the 16-byte pitch that TMA wants, and back.
TEST(CtsMemory, Copy2DChangesThePitch) {
  constexpr size_t rows = 5, width = 17, pitch = 32;
  Bytes dense = patternBytes(rows * width, 7);
  Buffer source(dense), padded(rows * pitch, 0x33), back(rows * width, 0);
  FP4_ASSERT_OK(device()->copy2D({padded.address(), pitch, source.address(), width, width, rows}));
  FP4_ASSERT_OK(device()->copy2D({back.address(), width, padded.address(), pitch, width, rows}));
  Bytes image = padded.read();
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < pitch; ++column)
      EXPECT_EQ(image[row * pitch + column],
                column < width ? dense[row * width + column] : std::byte(0x33));
  EXPECT_EQ(back.read(), dense);
}

TEST(CtsMemory, Copy2DOfNothingIsNothing) {
  Buffer buffer(16, 0x44);
  FP4_ASSERT_OK(device()->copy2D({buffer.address(), 16, buffer.address(), 16, 0, 4}));
  FP4_ASSERT_OK(device()->copy2D({buffer.address(), 16, buffer.address(), 16, 4, 0}));
  EXPECT_EQ(buffer.read(), Bytes(16, std::byte(0x44)));
}

TEST(CtsMemory, FreeingWhatWasNotAllocatedIsAnError) {
  Buffer buffer(16);
  Status status = device()->free(buffer.address() + 8);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::Device);
}

TEST(CtsMemory, AllocatingTooMuchIsAnError) {
  auto address = device()->allocate(uint64_t(1) << 50);
  ASSERT_FALSE(address.has_value());
  EXPECT_EQ(address.error().kind, ErrorKind::Device);
}

TEST(CtsMemory, EventsMeasureElapsedTime) {
  auto begin = device()->recordEvent(), end = device()->recordEvent();
  FP4_ASSERT_OK(begin);
  FP4_ASSERT_OK(end);
  auto milliseconds = device()->elapsedMs(*begin, *end);
  FP4_ASSERT_OK(milliseconds);
  EXPECT_GE(*milliseconds, 0);
}

} // namespace
} // namespace fp4::cts
