// Boxes of tensor maps against an element-by-element definition.
#include "Sim/Async/TensorBox.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using hw::TensorMap;

namespace {

constexpr uint64_t base = 0x1000'0000;

struct Tensor {
  TensorMap map;
  std::vector<std::byte> bytes;

  GlobalResolver resolver() {
    return [this](uint64_t address, uint64_t count) -> Expected<std::byte *> {
      if (address < base || address + count > base + bytes.size())
        return makeError(ErrorKind::Usage, "out of bounds");
      return bytes.data() + (address - base);
    };
  }
};

Tensor randomTensor(std::mt19937 &rng, hw::SwizzleMode swizzle) {
  Tensor t;
  TensorMap &map = t.map;
  static constexpr hw::TensorMapType types[] = {
      hw::TensorMapType::UInt8, hw::TensorMapType::UInt16, hw::TensorMapType::UInt32,
      hw::TensorMapType::UInt64, hw::TensorMapType::U4Align8};
  map.elementType = types[rng() % 5];
  map.address = base;
  map.swizzle = swizzle;
  map.rank = 1 + rng() % 5;
  const unsigned bits = tensorMapTypeBits(map.elementType);
  const uint32_t width = hw::swizzleWidthBytes(swizzle);
  const uint32_t row = swizzle == hw::SwizzleMode::None ? 16 * (1 + rng() % 4) : width;
  map.box[0] = row * 8 / bits;
  map.dims[0] = (1 + rng() % 200) * (bits == 4 ? 2 : 1);
  uint64_t stride = (map.dims[0] * bits / 8 + 15) / 16 * 16;
  for (unsigned d = 1; d < map.rank; ++d) {
    map.strides[d - 1] = stride;
    map.dims[d] = 1 + rng() % 6;
    map.box[d] = 1 + rng() % (d == 1 ? 12 : 3);
    map.elementStrides[d] = rng() % 4 ? 1 : 2;
    stride *= map.dims[d];
  }
  t.bytes.resize(stride);
  for (auto &byte : t.bytes)
    byte = std::byte(rng());
  return t;
}

Coordinates randomCoordinates(std::mt19937 &rng, const TensorMap &map, bool negative) {
  Coordinates at{};
  for (unsigned d = 0; d < map.rank; ++d)
    at[d] = int(rng() % (map.dims[d] + 2)) - (negative ? 2 : 0);
  const int unit = 128 / int(tensorMapTypeBits(map.elementType));
  at[0] = (at[0] / unit - (negative && rng() % 2)) * unit;
  return at;
}

/// Calls f(shared byte index, global byte index or -1) for every byte of the box, by definition:
/// element (i0, i1, ...) at ((i2 * B1 + i1) * B0 + i0), then the swizzle. A store also writes the
/// rest of the last 16 bytes of a row (H200).
template <typename F>
void forEachByte(const TensorMap &map, const Coordinates &at, uint32_t shared, bool store, F &&f) {
  const unsigned bits = tensorMapTypeBits(map.elementType);
  const int64_t tensorRow = int64_t(map.dims[0] * bits / 8);
  const int64_t rowEnd = store ? (tensorRow + 15) / 16 * 16 : tensorRow;
  const uint64_t rowBytes = map.box[0] * bits / 8;
  uint64_t rows = 1;
  for (unsigned d = 1; d < map.rank; ++d)
    rows *= (map.box[d] + map.elementStrides[d] - 1) / map.elementStrides[d];
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t byte = 0; byte < rowBytes; ++byte) {
      uint64_t rest = row;
      int64_t global = int64_t(at[0]) * bits / 8 + int64_t(byte);
      bool inside = global >= 0 && global < rowEnd;
      for (unsigned d = 1; d < map.rank; ++d) {
        const uint64_t steps = (map.box[d] + map.elementStrides[d] - 1) / map.elementStrides[d];
        const int64_t x = at[d] + int64_t(rest % steps) * map.elementStrides[d];
        rest /= steps;
        inside &= x >= 0 && x < int64_t(map.dims[d]);
        global += x * int64_t(map.strides[d - 1]);
      }
      const auto linear = uint32_t(row * rowBytes + byte);
      f(hw::swizzleAddress(map.swizzle, shared + linear) - shared, inside ? global : -1);
    }
}

const hw::SwizzleMode modes[] = {hw::SwizzleMode::None, hw::SwizzleMode::B32, hw::SwizzleMode::B64,
                                 hw::SwizzleMode::B128, hw::SwizzleMode::B128Atom32};

TEST(TensorBox, LoadsEqualTheDefinition) {
  std::mt19937 rng(1);
  for (int i = 0; i < 200; ++i) {
    Tensor t = randomTensor(rng, modes[i % 5]);
    ASSERT_TRUE(t.map.validate()) << t.map.validate().error().message;
    const Coordinates at = randomCoordinates(rng, t.map, true);
    const uint32_t shared = 0x400 + 128 * (rng() % 16);
    ASSERT_TRUE(checkBox(t.map, at, shared, false)) << i;
    auto data = readBox(t.map, at, t.resolver(), [](uint64_t, uint32_t) {});
    ASSERT_TRUE(data) << data.error().message;
    std::vector<std::byte> image(t.map.boxSharedBytes() + 256, std::byte{0xEE}), want = image;
    swizzleInto(t.map, shared, image.data(), *data);
    forEachByte(t.map, at, shared, false, [&](uint32_t to, int64_t from) {
      want[to] = from < 0 ? std::byte{0} : t.bytes[uint64_t(from)];
    });
    EXPECT_EQ(std::memcmp(image.data(), want.data(), image.size()), 0) << "case " << i;
    EXPECT_EQ(unswizzle(t.map, shared, image.data()), *data) << "case " << i;
  }
}

TEST(TensorBox, StoresWriteOnlyTheTensor) {
  std::mt19937 rng(2);
  for (int i = 0; i < 200; ++i) {
    Tensor t = randomTensor(rng, modes[i % 5]);
    const Coordinates at = randomCoordinates(rng, t.map, false);
    std::vector<std::byte> image(t.map.boxSharedBytes());
    for (auto &byte : image)
      byte = std::byte(rng());
    std::vector<std::byte> want = t.bytes;
    forEachByte(t.map, at, 0x400, true, [&](uint32_t from, int64_t to) {
      if (to >= 0)
        want[uint64_t(to)] = image[from];
    });
    const auto dense = unswizzle(t.map, 0x400, image.data());
    ASSERT_TRUE(writeBox(
        t.map, at, dense, t.resolver(), [](uint64_t, uint32_t) {},
        [](std::byte *to, const std::byte *from, size_t bytes) { std::memcpy(to, from, bytes); }));
    EXPECT_EQ(t.bytes, want) << "case " << i;
  }
}

TensorMap plainMap() {
  TensorMap map;
  map.address = base;
  map.dims = {64, 16};
  map.strides = {64};
  map.box = {16, 4};
  return map;
}

TEST(TensorBox, NarrowRowsAreASwizzleWidthApart) {
  TensorMap map = plainMap();
  map.swizzle = hw::SwizzleMode::B64;
  EXPECT_EQ(sharedRowPitch(map), 64u);
  EXPECT_EQ(sharedExtent(map), 256u);
  std::vector<std::byte> data(64, std::byte{1}), image(256, std::byte{0xEE});
  swizzleInto(map, 0x400, image.data(), data);
  // Row 2 begins at 128: bit 4 is flipped there.
  EXPECT_EQ(image[128], std::byte{0xEE});
  EXPECT_EQ(image[128 + 16], std::byte{1});
  EXPECT_EQ(std::count(image.begin(), image.end(), std::byte{1}), 64);
}

TEST(TensorBox, Rules) {
  const TensorMap map = plainMap();
  EXPECT_TRUE(checkBox(map, {16, -1}, 0x480, false));
  EXPECT_FALSE(checkBox(map, {16, -1}, 0x440, false)) << "shared address";
  EXPECT_FALSE(checkBox(map, {8, 0}, 0x480, false)) << "first coordinate";
  EXPECT_FALSE(checkBox(map, {16, -1}, 0x480, true)) << "store";
  TensorMap padded = map;
  padded.elementType = hw::TensorMapType::U4Align16;
  padded.box[0] = 128;
  EXPECT_TRUE(checkBox(padded, {128, 0}, 0x480, false));
  EXPECT_FALSE(checkBox(padded, {64, 0}, 0x480, false)) << "half a run";
  EXPECT_FALSE(checkBox(padded, {128, 0}, 0x480, true)) << "loads only";
  TensorMap interleaved = map;
  interleaved.interleave = hw::TensorMapInterleave::B16;
  EXPECT_FALSE(checkBox(interleaved, {16, -1}, 0x480, false));
}

// Two images of 4 x 3 pixels of 16 bytes, a filter of 2 x 2 without padding: its corner goes over 3
// x 2 places. fp4-cts has the cases that a GPU runs too.
TEST(TensorBox, ColumnsOfPixels) {
  Tensor t;
  t.map.address = base;
  t.map.rank = 4;
  t.map.dims = {16, 4, 3, 2, 1};
  t.map.strides = {16, 64, 192};
  t.map.box = {16, 9, 1, 1, 1};
  t.map.pixels = TensorMap::PixelBox{{0, 0}, {-1, -1}};
  t.bytes.resize(384);
  for (size_t i = 0; i < t.bytes.size(); ++i)
    t.bytes[i] = std::byte(i / 16); // the number of the pixel
  const auto column = [&](Coordinates at, PixelOffsets offsets) {
    auto data = readBox(t.map, at, t.resolver(), [](uint64_t, uint32_t) {}, offsets);
    EXPECT_TRUE(data);
    std::vector<int> pixels;
    for (size_t i = 0; i < data->size(); i += 16)
      pixels.push_back(int((*data)[i]));
    return pixels;
  };
  EXPECT_EQ(column({0, 0, 0, 0}, {0, 0}), (std::vector{0, 1, 2, 4, 5, 6, 12, 13, 14}));
  EXPECT_EQ(column({0, 0, 0, 0}, {1, 1}), (std::vector{5, 6, 7, 9, 10, 11, 17, 18, 19}));
  EXPECT_EQ(column({0, 2, 1, 1}, {0, 0}), (std::vector{18, 0, 0, 0, 0, 0, 0, 0, 0})) << "the end";
  EXPECT_TRUE(checkBox(t.map, {0, 2, 1, 7}, 0x480, false));
  EXPECT_FALSE(checkBox(t.map, {0, 3, 1, 0}, 0x480, false)) << "outside the pixel box";
  EXPECT_FALSE(checkBox(t.map, {0, -1, 1, 0}, 0x480, false)) << "outside the pixel box";
}

TEST(TensorBox, PaddedTypesPutSixteenElementsInSixteenBytes) {
  for (auto [type, group] : {std::pair{hw::TensorMapType::U4Align16, 8u},
                             std::pair{hw::TensorMapType::U6Align16, 12u}}) {
    TensorMap map;
    map.elementType = type;
    map.address = base;
    map.dims = {256, 3};
    map.strides = {32 * group}; // two runs of 8 groups, and as much that is not the tensor's
    map.box = {128, 2};
    ASSERT_TRUE(map.validate());
    Tensor t{map, std::vector<std::byte>(3 * 32 * group)};
    for (size_t i = 0; i < t.bytes.size(); ++i)
      t.bytes[i] = std::byte(i % 251);
    auto data = readBox(map, {128, 2}, t.resolver(), [](uint64_t, uint32_t) {});
    ASSERT_TRUE(data);
    ASSERT_EQ(data->size(), 256u);
    const std::byte *source = &t.bytes[2 * 32 * group + 8 * group];
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(std::memcmp(data->data() + 16 * i, source + group * i, group), 0) << i;
    EXPECT_EQ(std::to_integer<int>((*data)[128]), 0) << "row 3 is outside";
    EXPECT_EQ(map.transactionBytes(), 2 * 8 * group);
  }
}

/// Four numbers, loaded as `type`.
std::vector<uint32_t> loaded(hw::TensorMapType type, const std::vector<uint32_t> &numbers) {
  TensorMap map = plainMap();
  map.elementType = type;
  map.dims = {4, 1};
  map.box = {4, 1};
  Tensor t{map, std::vector<std::byte>(16)};
  std::memcpy(t.bytes.data(), numbers.data(), 16);
  auto data = readBox(map, {0, 0}, t.resolver(), [](uint64_t, uint32_t) {});
  std::vector<uint32_t> result(4);
  if (data)
    std::memcpy(result.data(), data->data(), 16);
  return result;
}

TEST(TensorBox, LoadsRoundToTf32AndFlush) {
  using Type = hw::TensorMapType;
  using Words = std::vector<uint32_t>;
  const Words fractions = {0x3F800FFF, 0x3F801000, 0x3F801FFF, 0xBF803000};
  EXPECT_EQ(loaded(Type::Float32, fractions), fractions);
  EXPECT_EQ(loaded(Type::TFloat32, fractions),
            (Words{0x3F800000, 0x3F802000, 0x3F802000, 0xBF804000}));
  const Words extremes = {0x7F800000, 0x7F800001, 0x80001000, 0x007FF000};
  EXPECT_EQ(loaded(Type::TFloat32, extremes),
            (Words{0x7F800000, 0x7F800001, 0x80002000, 0x00800000}));
  EXPECT_EQ(loaded(Type::Float32Ftz, extremes),
            (Words{0x7F800000, 0x7F800001, 0x80000000, 0x00000000}));
}

TEST(TensorBox, NaNFill) {
  TensorMap map = plainMap();
  map.elementType = hw::TensorMapType::Float32;
  map.dims = {16, 16};
  map.box = {4, 1};
  map.oobFill = hw::TensorMapOobFill::NanRequestZeroFma;
  Tensor t{map, std::vector<std::byte>(1024)};
  auto data = readBox(map, {16, 0}, t.resolver(), [](uint64_t, uint32_t) {});
  ASSERT_TRUE(data);
  uint32_t bits;
  std::memcpy(&bits, data->data(), 4);
  EXPECT_EQ(bits, 0x7FF77FF7u);
}

} // namespace
