// Tensor maps. Sources: cuda.h (enum values and the rules at cuTensorMapEncodeTiled), PTX ISA
// "Tensors". That our rules accept exactly what the driver accepts is checked on a GPU by the
// device tests; the cases here are cuda.h's, one violation per case next to the valid map.
#include "fp4/ISA/TensorMap.h"
#include <functional>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::hw;

namespace {

/// 300 x 1024 fp4 as bytes, a box of 128 rows of 128 bytes.
TensorMap packedFp4() {
  TensorMap map;
  map.elementType = TensorMapType::UInt8;
  map.rank = 2;
  map.address = 0x7000000000;
  map.dims = {512, 300};
  map.strides = {512};
  map.box = {128, 128};
  map.swizzle = SwizzleMode::B128;
  return map;
}

TensorMap nativeFp4(TensorMapType type) {
  TensorMap map = packedFp4();
  map.elementType = type;
  map.dims[0] = 1024;
  map.box[0] = type == TensorMapType::U4Align8 ? 256 : 128;
  return map;
}

std::string errorOf(const TensorMap &map) {
  const Status s = map.validate();
  return s ? "" : s.error().message;
}

TEST(TensorMap, enumsAreThoseOfCudaH) {
  EXPECT_EQ(unsigned(TensorMapType::UInt8), 0u);
  EXPECT_EQ(unsigned(TensorMapType::Float16), 6u);
  EXPECT_EQ(unsigned(TensorMapType::BFloat16), 9u);
  EXPECT_EQ(unsigned(TensorMapType::U4Align8), 13u);
  EXPECT_EQ(unsigned(TensorMapType::U4Align16), 14u);
  EXPECT_EQ(unsigned(TensorMapType::U6Align16), 15u);
  EXPECT_EQ(unsigned(TensorMapInterleave::B32), 2u);
  EXPECT_EQ(unsigned(TensorMapOobFill::NanRequestZeroFma), 1u);
}

TEST(TensorMap, sizes) {
  EXPECT_EQ(packedFp4().boxRowBytes(), 128u);
  EXPECT_EQ(packedFp4().boxSharedBytes(), 16384u);
  EXPECT_EQ(packedFp4().transactionBytes(), 16384u);
  const TensorMap packed = nativeFp4(TensorMapType::U4Align8);
  EXPECT_EQ(packed.boxSharedBytes(), 16384u);
  EXPECT_EQ(packed.transactionBytes(), 16384u);
  const TensorMap padded = nativeFp4(TensorMapType::U4Align16);
  EXPECT_EQ(padded.boxSharedBytes(), 16384u);
  EXPECT_EQ(padded.transactionBytes(), 8192u);
  EXPECT_EQ(errorOf(packed), "");
  EXPECT_EQ(errorOf(padded), "");
}

TEST(TensorMap, interleavedTensorsAreRefusedWhenEncodedForTheSimulator) {
  TensorMap map;
  map.elementType = TensorMapType::UInt8;
  map.rank = 3;
  map.address = 0x7000000000;
  map.dims = {16, 8, 8};
  map.strides = {16, 128};
  map.box = {16, 8, 8};
  EXPECT_TRUE(map.encodeSimulator());
  map.interleave = TensorMapInterleave::B16;
  ASSERT_TRUE(map.validate());
  EXPECT_EQ(map.encodeSimulator().error().message,
            "tensor map: the simulator does not model interleaved tensors");
}

TEST(TensorMap, oneViolationAtATime) {
  ASSERT_EQ(errorOf(packedFp4()), "");
  const struct {
    std::function<void(TensorMap &)> change;
    const char *message;
  } cases[] = {
      {[](TensorMap &m) { m.rank = 0; }, "tensor map: rank must be 1..5, but got 0"},
      {[](TensorMap &m) { m.rank = 6; }, "tensor map: rank must be 1..5, but got 6"},
      {[](TensorMap &m) { m.interleave = TensorMapInterleave::B16; },
       "tensor map: rank must be 3..5, but got 2"},
      {[](TensorMap &m) { m.address += 8; },
       "tensor map: address must be a multiple of 16, but got 0x7000000008"},
      {[](TensorMap &m) { m.dims[1] = 0; }, "tensor map: dimension 1 must be 1..2^32, but got 0"},
      {[](TensorMap &m) { m.dims[0] = (1ull << 32) + 1; },
       "tensor map: dimension 0 must be 1..2^32, but got 4294967297"},
      {[](TensorMap &m) { m.strides[0] = 136; },
       "tensor map: stride of dimension 1 must be a multiple of 16 bytes below 2^40, but got 136"},
      {[](TensorMap &m) { m.strides[0] = 1ull << 40; },
       "tensor map: stride of dimension 1 must be a multiple of 16 bytes below 2^40, but got "
       "1099511627776"},
      {[](TensorMap &m) { m.box[1] = 257; },
       "tensor map: box dimension 1 must be 1..256 elements, but got 257"},
      {[](TensorMap &m) { m.box[0] = 24; },
       "tensor map: box dimension 0 must span a multiple of 16 bytes, but got 24 uint8 = 24 bytes"},
      {[](TensorMap &m) { m.box[0] = 144; },
       "tensor map: box dimension 0 must span at most 128 bytes with swizzle_128B, but got 144"},
      {[](TensorMap &m) { m.elementStrides[1] = 9; },
       "tensor map: element stride 1 must be 1..8, but got 9"},
      {[](TensorMap &m) { m.oobFill = TensorMapOobFill::NanRequestZeroFma; },
       "tensor map: NaN fill expects a floating-point type, but got uint8"},
  };
  for (const auto &c : cases) {
    TensorMap map = packedFp4();
    c.change(map);
    EXPECT_EQ(errorOf(map), c.message);
    EXPECT_FALSE(map.encodeSimulator());
  }
}

TEST(TensorMap, rulesOfPaddedSubByteTypes) {
  TensorMap map = nativeFp4(TensorMapType::U4Align16);
  map.address += 16;
  EXPECT_EQ(errorOf(map), "tensor map: address must be a multiple of 32, but got 0x7000000010");
  map = nativeFp4(TensorMapType::U4Align16);
  map.dims[0] = 1000;
  EXPECT_EQ(errorOf(map),
            "tensor map: dimension 0 must be a multiple of 128 for 16u4_align16b, but "
            "got 1000");
  map = nativeFp4(TensorMapType::U4Align16);
  map.box[0] = 64;
  EXPECT_EQ(errorOf(map), "tensor map: box dimension 0 must be 128 for 16u4_align16b, but got 64");
  map = nativeFp4(TensorMapType::U4Align16);
  map.swizzle = SwizzleMode::B64;
  EXPECT_EQ(errorOf(map),
            "tensor map: 16u4_align16b expects no swizzle or a 128-byte one, but got swizzle_64B");
  map = nativeFp4(TensorMapType::U4Align8);
  map.dims[0] = 1023;
  EXPECT_EQ(errorOf(map),
            "tensor map: dimension 0 must be a multiple of 2 for 16u4_align8b, but got 1023");
}

TEST(TensorMap, simulatorEncodingRoundTrips) {
  TensorMap map = packedFp4();
  map.rank = 5;
  map.dims = {1ull << 32, 3, 4, 5, 6};
  map.strides = {512, 1024, 4096, (1ull << 40) - 16};
  map.box = {64, 8, 2, 1, 256};
  map.elementStrides = {1, 2, 1, 1, 8};
  map.swizzle = SwizzleMode::B128Atom32;
  const auto bytes = map.encodeSimulator();
  ASSERT_TRUE(bytes) << format(bytes.error());
  const auto back = TensorMap::decodeSimulator(*bytes);
  ASSERT_TRUE(back) << format(back.error());
  EXPECT_EQ(*back, map);
}

/// 3x3 filter, one pixel of padding.
TensorMap columns() {
  TensorMap map;
  map.elementType = TensorMapType::Float16;
  map.rank = 4;
  map.address = 0x7000000000;
  map.dims = {64, 9, 6, 2, 1};
  map.strides = {128, 1152, 6912};
  map.box = {64, 1024, 1, 1, 1};
  map.pixels = TensorMap::PixelBox{{-1, -1}, {-1, -1}};
  return map;
}

TEST(TensorMap, columnsOfPixels) {
  const TensorMap map = columns();
  EXPECT_EQ(map.boxRowBytes(), 128u);
  EXPECT_EQ(map.transactionBytes(), 128u * 1024);
  const auto bytes = map.encodeSimulator();
  ASSERT_TRUE(bytes) << format(bytes.error());
  EXPECT_EQ(*TensorMap::decodeSimulator(*bytes), map);
  const auto error = [](auto change) {
    TensorMap map = columns();
    change(map);
    return errorOf(map);
  };
  EXPECT_EQ(error([](TensorMap &m) { m.elementStrides[1] = 2; }), "");
  EXPECT_EQ(error([](TensorMap &m) { m.box[1] = 1025; }),
            "tensor map: a column must have 1..1024 pixels, but got 1025");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->lower[1] = -129; }),
            "tensor map: corners of the pixel box must be -128..127 with rank 4, but got -129");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[0] = 65536; }),
            "tensor map: corners of the pixel box must be -128..127 with rank 4, but got 65536");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[0] = 0; }), "");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[1] = -7; }),
            "tensor map: the pixel box is empty in dimension 2: from -1 to -7 of 6");
  EXPECT_EQ(error([](TensorMap &m) { m.rank = 2; }),
            "tensor map: im2col mode expects a rank of 3..5, but got 2");
}

TEST(TensorMap, editedBitsAreRefused) {
  TensorMap map = packedFp4();
  map.address = 0x10'0020'0000; // has bit 21
  const auto bytes = map.encodeSimulator();
  ASSERT_TRUE(bytes) << format(bytes.error());
  for (size_t byte = 0; byte < 120; ++byte) {
    TensorMap::Encoded edited = *bytes;
    edited[byte] ^= std::byte(0x20);
    const auto back = TensorMap::decodeSimulator(edited);
    const bool secondWord = byte >= 8 && byte < 16; // where CUTLASS clears bit 21
    EXPECT_EQ(back.has_value(), secondWord) << byte;
    if (back)
      EXPECT_EQ(*back, map);
  }
}

TEST(TensorMap, foreignBytesAreRefused) {
  TensorMap::Encoded bytes{};
  const auto map = TensorMap::decodeSimulator(bytes);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().message, "tensor map operand does not hold a tensor map of this simulator");
}

} // namespace
