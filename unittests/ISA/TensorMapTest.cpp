// Tensor maps. Sources: cuda.h (enum values and the rules at cuTensorMapEncodeTiled), PTX ISA
// "Tensors": one violation per case next to the valid map; and data/tensormaps_h200.txt, what an
// H200 and its driver did. TensorMapCases.cpp of lib/Conformance compares thousands more with the
// driver that is there.
#include "fp4/ISA/TensorMap.h"
#include "TensorMapCall.h"
#include <cstring>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>

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

std::span<const std::byte, TensorMap::usedBytes> used(const TensorMap::Encoded &bytes) {
  return std::span(bytes).first<TensorMap::usedBytes>();
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
      {[](TensorMap &m) {
         m.box[1] = 256;
         m.rank = 3;
         m.dims[2] = 8;
         m.strides[1] = 1 << 20;
         m.box[2] = 8;
       },
       "tensor map: the box must have at most 233472 bytes, but got 262144"},
      {[](TensorMap &m) { m.promotion = TensorMapL2Promotion(4); },
       "tensor map: L2 promotion must be 0..3, but got 4"},
      {[](TensorMap &m) { m.oobFill = TensorMapOobFill(2); },
       "tensor map: fill of elements outside must be 0 or 1, but got 2"},
      {[](TensorMap &m) { m.elementStrides[1] = 9; },
       "tensor map: element stride 1 must be 1..8, but got 9"},
      {[](TensorMap &m) { m.oobFill = TensorMapOobFill::NanRequestZeroFma; },
       "tensor map: NaN fill expects a floating-point type, but got uint8"},
  };
  for (const auto &c : cases) {
    TensorMap map = packedFp4();
    c.change(map);
    EXPECT_EQ(errorOf(map), c.message);
    EXPECT_FALSE(map.encode());
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

TEST(TensorMap, encodingRoundTrips) {
  TensorMap map = packedFp4();
  map.rank = 5;
  map.dims = {1ull << 32, 3, 4, 5, 6};
  map.strides = {512, 1024, 4096, (1ull << 40) - 16};
  map.box = {64, 8, 2, 1, 256};
  map.elementStrides = {1, 2, 1, 1, 8};
  map.swizzle = SwizzleMode::B128Atom32;
  const auto bytes = map.encode();
  ASSERT_TRUE(bytes) << format(bytes.error());
  const auto back = TensorMap::decode(used(*bytes));
  ASSERT_TRUE(back) << format(back.error());
  EXPECT_EQ(*back, map);
}

/// 3x3 filter, one pixel of padding.
TensorMap columns() {
  TensorMap map;
  map.elementType = TensorMapType::Float16;
  map.rank = 4;
  map.address = 0x7000000000;
  map.dims = {64, 9, 6, 2};
  map.strides = {128, 1152, 6912};
  map.box = {64, 1024, 1, 1, 1};
  map.pixels = TensorMap::PixelBox{{-1, -1}, {-1, -1}};
  return map;
}

/// Coordinates may lead back from an address before the tensor, of which 57 bits are written.
TEST(TensorMap, addressesHave57Bits) {
  for (const uint64_t address : {uint64_t(0x7F0000001000), -uint64_t(0x6000000000)}) {
    TensorMap map = packedFp4();
    map.address = address;
    auto bytes = *map.encode();
    bytes[7] &= std::byte(1);
    EXPECT_EQ(TensorMap::decode(used(bytes))->address, address);
  }
}

TEST(TensorMap, columnsOfPixels) {
  const TensorMap map = columns();
  EXPECT_EQ(map.boxRowBytes(), 128u);
  EXPECT_EQ(map.transactionBytes(), 128u * 1024);
  const auto bytes = map.encode();
  ASSERT_TRUE(bytes) << format(bytes.error());
  EXPECT_EQ(*TensorMap::decode(used(*bytes)), map);
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
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[0] = 127; }), "");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[0] = 128; }),
            "tensor map: corners of the pixel box must be -128..127 with rank 4, but got 128");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->lower[1] = -128; }), "");
  EXPECT_EQ(error([](TensorMap &m) { m.pixels->upper[1] = -7; }),
            "tensor map: the pixel box is empty in dimension 2: from -1 to -7 of 6");
  EXPECT_EQ(error([](TensorMap &m) { m.rank = 2; }),
            "tensor map: im2col mode expects a rank of 3..5, but got 2");
}

TEST(TensorMap, blackwellsTypesAndAtoms) {
  const TargetModel &hopper = *lookupTarget("sm_90a"), &blackwell = *lookupTarget("sm_100a");
  const auto error = [](const TensorMap &map, const TargetModel &target) {
    const Status s = map.validateFor(target);
    return s ? "" : s.error().message;
  };
  EXPECT_EQ(error(packedFp4(), hopper), "");
  const TensorMap native = nativeFp4(TensorMapType::U4Align8);
  EXPECT_EQ(error(native, hopper), "tensor map: target 'sm_90a' has no element type 16u4_align8b");
  EXPECT_EQ(error(native, blackwell), "");
  TensorMap atoms = packedFp4();
  atoms.swizzle = SwizzleMode::B128Atom32;
  EXPECT_EQ(error(atoms, hopper), "tensor map: target 'sm_90a' has no swizzle_128B_atom_32B");
  EXPECT_EQ(error(atoms, blackwell), "");
}

//===----------------------------------------------------------------------===//
// Observations of an H200 and its driver
//===----------------------------------------------------------------------===//

/// The numbers behind `kind` of each line of the file that begins with it.
std::vector<std::vector<uint64_t>> recordsOf(const std::string &kind) {
  std::ifstream file(FP4_SOURCE_DIR "/unittests/ISA/data/tensormaps_h200.txt");
  std::vector<std::vector<uint64_t>> records;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != kind)
      continue;
    records.emplace_back();
    while (words >> word)
      records.back().push_back(word[0] == '-' ? 0 - std::stoull(word.substr(1), nullptr, 16)
                                              : std::stoull(word, nullptr, 16));
  }
  return records;
}

constexpr size_t argumentCount = 35;

test::TensorMapCall callOf(const std::vector<uint64_t> &record) {
  size_t at = 0;
  const auto next = [&](auto &...fields) {
    ((fields = static_cast<std::remove_reference_t<decltype(fields)>>(record[at++])), ...);
  };
  test::TensorMapCall c;
  next(c.im2col, c.type, c.rank, c.interleave, c.swizzle, c.promotion, c.fill, c.address);
  const auto all = [&](auto &list) {
    for (auto &element : list)
      next(element);
  };
  all(c.dims), all(c.strides), all(c.box), all(c.steps), all(c.lower), all(c.upper);
  next(c.channels, c.pixels);
  return c;
}

template <size_t N> std::array<std::byte, N> bytesOf(std::span<const uint64_t> words) {
  std::array<std::byte, N> bytes{};
  for (size_t i = 0; i < words.size(); ++i) {
    const auto word = static_cast<uint32_t>(words[i]);
    std::memcpy(bytes.data() + 4 * i, &word, 4);
  }
  return bytes;
}

TEST(TensorMap, theDriversMapsAndErrors) {
  const TargetModel &hopper = *lookupTarget("sm_90a");
  unsigned made = 0, refused = 0;
  for (const auto &record : recordsOf("map")) {
    ASSERT_GT(record.size(), argumentCount);
    const auto map = callOf(record).map();
    const bool driverTookIt = record[argumentCount] == 0;
    const Status valid = map ? map->validateFor(hopper) : Status();
    SCOPED_TRACE(testing::Message()
                 << "map " << made + refused << (valid ? "" : ": " + valid.error().message));
    ASSERT_EQ(map && valid, driverTookIt);
    ++(driverTookIt ? made : refused);
    if (!driverTookIt)
      continue;
    const auto expected = bytesOf<TensorMap::encodedBytes>(
        std::span(record).subspan(argumentCount + 1)); // words 17 and 19.. are zero
    EXPECT_EQ(*map->encode(), expected);
    EXPECT_EQ(*TensorMap::decode(used(expected)), *map);
  }
  EXPECT_EQ(made, 121u);
  EXPECT_EQ(refused, 152u);
}

TEST(TensorMap, tensormapReplaceOfAnH200) {
  unsigned edits = 0;
  for (const auto &record : recordsOf("edit")) {
    ASSERT_EQ(record.size(), 3u + 16 + 16);
    auto map = bytesOf<TensorMap::usedBytes>(std::span(record).subspan(3, 16));
    EXPECT_TRUE(TensorMap::replace(map, TensorMapField(record[0]), unsigned(record[1]), record[2]));
    EXPECT_EQ(map, bytesOf<TensorMap::usedBytes>(std::span(record).subspan(19, 16)))
        << "edit " << edits << ": field " << record[0] << ", value " << record[2];
    ++edits;
  }
  EXPECT_EQ(edits, 111u);
}

TEST(TensorMap, fieldsHaveLimits) {
  const auto bytes = packedFp4().pack();
  const auto takes = [&](TensorMapField field, unsigned ordinal, uint64_t value) {
    auto edited = bytes;
    return TensorMap::replace(std::span(edited).first<TensorMap::usedBytes>(), field, ordinal,
                              value);
  };
  const struct {
    TensorMapField field;
    uint64_t last, beyond;
  } limits[] = {{TensorMapField::Rank, 4, 5},
                {TensorMapField::BoxDim, 256, 257},
                {TensorMapField::BoxDim, 1, 0},
                {TensorMapField::GlobalStride, (1ull << 40) - 16, 1ull << 40},
                {TensorMapField::GlobalStride, 32, 40},
                {TensorMapField::ElementStride, 8, 9},
                {TensorMapField::ElementType, 15, 16},
                {TensorMapField::InterleaveLayout, 2, 3},
                {TensorMapField::SwizzleMode, 3, 4},
                {TensorMapField::SwizzleAtomicity, 3, 4},
                {TensorMapField::FillMode, 1, 2}};
  for (const auto &limit : limits) {
    EXPECT_TRUE(takes(limit.field, 0, limit.last)) << int(limit.field);
    EXPECT_FALSE(takes(limit.field, 0, limit.beyond)) << int(limit.field);
  }
}

/// In a map for im2col the bits of the other box dimensions are corners.
TEST(TensorMap, columnsHaveOneBoxDimension) {
  auto bytes = columns().pack();
  const auto map = std::span(bytes).first<TensorMap::usedBytes>();
  EXPECT_FALSE(TensorMap::replace(map, TensorMapField::BoxDim, 1, 16));
  EXPECT_TRUE(TensorMap::replace(map, TensorMapField::BoxDim, 0, 16));
  EXPECT_EQ(TensorMap::unpack(used(bytes))->box[0], 16u);
}

TEST(TensorMap, bitsOfDriversForOtherDevicesAreNotLookedAt) {
  const TensorMap map = packedFp4();
  auto bytes = map.pack();
  bytes[8] = std::byte(2 | std::to_integer<int>(bytes[8])); // the mode of host code for sm_100
  bytes[10] |= std::byte(0x20);                             // bit 21 of word 2
  EXPECT_EQ(*TensorMap::decode(used(bytes)), map);
  bytes[8] |= std::byte(1);
  EXPECT_FALSE(TensorMap::decode(used(bytes))) << "mode 3";
}

TEST(TensorMap, whatIsNoMapIsRefused) {
  TensorMap::Encoded bytes{};
  const auto nothing = TensorMap::decode(used(bytes));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().message, "tensor map operand does not hold a tensor map");
  bytes.fill(std::byte(0xCD)); // memory that nobody wrote
  EXPECT_EQ(TensorMap::decode(used(bytes)).error().message, nothing.error().message);
}

} // namespace
