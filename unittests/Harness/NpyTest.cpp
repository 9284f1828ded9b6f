//===- NpyTest.cpp - .npy files, good and malformed -----------------------===//

#include "fp4/Harness/TensorNpy.h"
#include "fp4/ISA/ScaleLayout.h"

#include <cmath>
#include <gmock/gmock.h>

#include <cstdio>
#include <tuple>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fp4::harness {
namespace {

using testing::HasSubstr;

std::vector<std::byte> file(const std::string &header, size_t dataBytes, char version = 1) {
  std::string padded = header;
  size_t prefix = version == 1 ? 10 : 12;
  padded.append((64 - (prefix + padded.size() + 1) % 64) % 64, ' ');
  padded += '\n';
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += char(padded.size() & 255);
  text += char(padded.size() >> 8);
  if (version > 1)
    text += std::string(2, '\0');
  text += padded + std::string(dataBytes, '\x01');
  auto *bytes = reinterpret_cast<const std::byte *>(text.data());
  return {bytes, bytes + text.size()};
}

std::string errorOf(const std::vector<std::byte> &bytes) {
  auto array = parseNpy(bytes, "x.npy");
  if (array)
    return "parsed";
  EXPECT_EQ(array.error().kind, ErrorKind::Usage);
  return array.error().message;
}

const char *const kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

TEST(Npy, ReadsWhatNumpyWrites) {
  for (char version : {1, 2, 3}) {
    auto array = parseNpy(file(kGood, 24, version), "x.npy");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->descr, "<f4");
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array->data.size(), 24u);
  }
  auto scalar = parseNpy(file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4), "s");
  ASSERT_TRUE(scalar) << scalar.error().message;
  EXPECT_TRUE(scalar->shape.empty());
  auto vector = parseNpy(file("{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }", 7), "v");
  ASSERT_TRUE(vector) << vector.error().message;
  EXPECT_EQ(vector->shape, (std::vector<int64_t>{7}));
}

TEST(Npy, MalformedFilesAreLocatedErrors) {
  EXPECT_THAT(errorOf({}), HasSubstr("must start with the .npy magic string"));
  auto cut = file(kGood, 24);
  cut.resize(9);
  EXPECT_THAT(errorOf(cut), HasSubstr("ends inside the header, after 9 bytes"));
  cut = file(kGood, 24);
  cut.resize(40);
  EXPECT_THAT(errorOf(cut), HasSubstr("but the file ends after 30"));
  EXPECT_THAT(errorOf(file(kGood, 23)),
              HasSubstr("(2, 3) of '<f4' must hold 24 bytes of data, but got 23"));
  for (char version : {0, 4, 9})
    EXPECT_THAT(errorOf(file(kGood, 24, version)),
                HasSubstr("expects format version 1 to 3, but got " + std::to_string(version)));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8)),
              HasSubstr("expects C order, but got fortran_order True"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'shape': (2,), }", 8)),
              HasSubstr("expects the keys descr, fortran_order and shape"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4' 'shape': (2,), }", 8)),
              HasSubstr("header offset 16: expects ',' or '}'"));
  EXPECT_THAT(errorOf(file("{'descr': [('a', '<f4')], }", 8)),
              HasSubstr("structured arrays are not supported"));
  EXPECT_THAT(errorOf(file("{'descr': 'xyz', 'fortran_order': False, 'shape': (), }", 8)),
              HasSubstr("unknown element type 'xyz'"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 8)),
              HasSubstr("expects a size"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': "
                           "(99999999999999999999,), }",
                           8)),
              HasSubstr("expects sizes below 2^40"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': "
                           "(1099511627776, 1099511627776, 4), }",
                           8)),
              HasSubstr("more elements than a file can hold"));
}

// A file that cannot get its name is an error, and leaves nothing beside it.
TEST(Npy, ATargetThatCannotBeReplaced) {
  const std::string folder = testing::TempDir() + "fp4_npy_target", path = folder + "/y.npy";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(path + "/taken");
  const NpyArray array{"|u1", {3}, std::vector<std::byte>(3)};
  const auto entries = [&] {
    std::filesystem::directory_iterator begin(folder), end;
    return std::distance(begin, end);
  };
  Status status = writeNpy(path, array);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Usage);
  EXPECT_THAT(status.error().message, HasSubstr("'" + path + "'"));
  EXPECT_EQ(entries(), 1);
  std::filesystem::remove_all(path);
  EXPECT_TRUE(writeNpy(path, array));
  EXPECT_EQ(entries(), 1);
  std::filesystem::remove_all(folder);
}

// The length of a header has two bytes, and four from version 2 on.
TEST(Npy, LongHeaders) {
  const std::string header = std::string(kGood) + std::string(300, ' ');
  for (char version : {1, 2}) {
    auto array = parseNpy(file(header, 24, version), "x.npy");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
  }
}

// No prefix of a good file may read outside it or be accepted.
TEST(Npy, EveryTruncationIsAnError) {
  auto whole = file(kGood, 24);
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + ptrdiff_t(size));
    EXPECT_FALSE(parseNpy(cut, "x.npy").has_value()) << size;
  }
}

// Damaged headers are errors or other arrays, never reads out of bounds (the asan preset looks).
TEST(Npy, DamagedHeadersAreHarmless) {
  auto whole = file(kGood, 24);
  uint32_t state = 1;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (int i = 0; i < 5000; ++i) {
    auto damaged = whole;
    for (int flips = 0; flips < 3; ++flips)
      damaged[next() % 80] = std::byte(next());
    if (auto array = parseNpy(damaged, "x.npy"))
      EXPECT_EQ(array->data.size(), 24u);
  }
}

TEST(Npy, WritesAtomicallyAndReadsBack) {
  auto folder = std::filesystem::temp_directory_path() / "fp4_npy_test";
  std::filesystem::create_directories(folder);
  std::string path = (folder / "a.npy").string();
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {5}, {2, 3}, {2, 3, 4}}) {
    NpyArray array{"<u2", shape, {}};
    size_t count = 1;
    for (int64_t dim : shape)
      count *= size_t(dim);
    for (size_t i = 0; i < count * 2; ++i)
      array.data.push_back(std::byte(i));
    Status written = writeNpy(path, array);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(std::filesystem::file_size(path) % 64, array.data.size() % 64);
    auto back = readNpy(path);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(back->data, array.data);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
  Status status = writeNpy(path, {"<u2", {}, std::vector<std::byte>(2)});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("cannot write '" + path + "': No such file"));
  auto absent = readNpy(path);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("cannot read '" + path + "': No such file"));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

NpyArray floats(std::vector<int64_t> shape, std::vector<float> values) {
  NpyArray array{"<f4", std::move(shape), {}};
  array.data.resize(values.size() * 4);
  if (!values.empty())
    std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

TEST(TensorNpy, Bf16RoundsFloatsToNearestEven) {
  Type type{{1, 4}, ElementType::BF16, Layout::Linear};
  auto tensor = fromNpy(floats({1, 4}, {1.0f, 1.00390625f, 1.01171875f, -2.5f}), type, "x");
  ASSERT_TRUE(tensor) << tensor.error().message;
  auto bits = tensor->as<uint16_t>();
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_EQ(bits[1], 0x3f80); // 1 + 2^-8: the tie goes to even
  EXPECT_EQ(bits[2], 0x3f82); // 1 + 3 * 2^-8
  EXPECT_EQ(bits[3], 0xc020);
  NpyArray back = toNpy(*tensor);
  EXPECT_EQ(back.descr, "<f4");
  EXPECT_EQ(reinterpret_cast<const float *>(back.data.data())[2], 1.015625f);
}

TEST(TensorNpy, Bf16BitsComeAsU2OrV2) {
  Type type{{-1, 2}, ElementType::BF16, Layout::Linear};
  for (const char *descr : {"<u2", "<V2", "|V2"}) {
    NpyArray array{descr, {3, 2}, std::vector<std::byte>(12, std::byte(0x3f))};
    auto tensor = fromNpy(array, type, "x");
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(tensor->type.shape, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(tensor->bytes, array.data);
  }
}

template <typename T> NpyArray arrayOf(std::string descr, std::vector<T> values) {
  NpyArray array{std::move(descr), {1, int64_t(values.size())}, {}};
  array.data.resize(values.size() * sizeof(T));
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

template <typename T> std::vector<T> read(const NpyArray &array, ElementType element) {
  auto tensor = fromNpy(array, {{1, -1}, element, Layout::Linear}, "x");
  EXPECT_TRUE(tensor) << tensor.error().message;
  auto values = tensor ? tensor->as<T>() : std::span<T>();
  return {values.begin(), values.end()};
}

/// A double is rounded once: by way of fp32 the third would be a tie, and go down.
TEST(TensorNpy, DoublesRoundOnce) {
  const double aboveTie = 1 + 0x1p-8 + 0x1p-40;
  const NpyArray doubles = arrayOf<double>(
      "<f8", {1, 1 + 0x1p-8, aboveTie, -aboveTie, 1e39, -3.4e38, 0x1p-134 + 0x1p-160, 1e-60});
  EXPECT_EQ(read<uint16_t>(doubles, ElementType::BF16),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f81, 0xbf81, 0x7f80, 0xff80, 0x0001, 0}));
  EXPECT_EQ(read<float>(doubles, ElementType::F32),
            (std::vector<float>{1, 1.00390625f, 1.00390625f, -1.00390625f,
                                std::numeric_limits<float>::infinity(), -3.4e38f, 0x1p-134f, 0}));
  const NpyArray halves = arrayOf<double>(
      "<f8", {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 65519.999999, 65520, 0x1p-25, 0x1p-25 + 0x1p-70});
  EXPECT_EQ(read<uint16_t>(halves, ElementType::F16),
            (std::vector<uint16_t>{0x3c00, 0x3c01, 0x7bff, 0x7c00, 0, 1}));
  EXPECT_EQ(read<uint16_t>(arrayOf<double>("<f8", {std::nan("")}), ElementType::BF16),
            std::vector<uint16_t>{0x7fff});
}

TEST(TensorNpy, HalvesAndBf16AreExactInFp32) {
  const NpyArray halves = arrayOf<uint16_t>("<f2", {0x3c01, 0x0001, 0xfc00});
  EXPECT_EQ(read<float>(halves, ElementType::F32),
            (std::vector<float>{1.0009765625f, 0x1p-24f, -std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(read<uint16_t>(halves, ElementType::BF16),
            (std::vector<uint16_t>{0x3f80, 0x3380, 0xff80}));
  EXPECT_EQ(read<float>(arrayOf<uint16_t>("<V2", {0x3f80, 0xc020}), ElementType::F32),
            (std::vector<float>{1, -2.5f}));
}

/// Files of ml_dtypes 0.6: '<V1', one element per byte, a code of 4 bits in the low nibble.
TEST(TensorNpy, BytesOfMlDtypes) {
  for (const char *descr : {"<V1", "|V1"}) {
    const NpyArray codes{descr,
                         {2, 4},
                         {std::byte(1), std::byte(11), std::byte(7), std::byte(8), std::byte(0),
                          std::byte(2), std::byte(15), std::byte(3)}};
    auto packed = fromNpy(codes, {{-1, 4}, ElementType::F4E2M1FN, Layout::Linear}, "q");
    ASSERT_TRUE(packed) << packed.error().message;
    EXPECT_EQ(packed->type.shape, (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(packed->bytes, (std::vector<std::byte>{std::byte(0xb1), std::byte(0x87),
                                                     std::byte(0x20), std::byte(0x3f)}));
    for (ElementType element : {ElementType::F8E4M3FN, ElementType::F8E8M0FNU})
      EXPECT_EQ(fromNpy(codes, {{2, -1}, element, Layout::Linear}, "s")->bytes, codes.data);
    EXPECT_EQ(valuesOf(codes, "f4E2M1FN", "q").value(),
              (std::vector<float>{0.5f, -1.5f, 6, -0.f, 0, 1, -6, 1.5f}));
    EXPECT_EQ(valuesOf(codes, "", "q").error().note.substr(0, 6), "--type");
  }
  const NpyArray wide{"<V1", {1, 2}, {std::byte(3), std::byte(0x30)}};
  EXPECT_EQ(fromNpy(wide, {{1, 2}, ElementType::F4E2M1FN, Layout::Linear}, "q").error().message,
            "input 'q' expects codes from 0 to 15 for 1x2xf4E2M1FN, but got 48 in row 0, column 1");
  const NpyArray e5m2{"<f1", {1, 2}, std::vector<std::byte>(2)};
  EXPECT_THAT(fromNpy(e5m2, {{1, 2}, ElementType::F8E4M3FN, Layout::Linear}, "q").error().message,
              HasSubstr("expects element type '|u1' or '<V1' or '|V1' for 1x2xf8E4M3FN, but got"));
}

TEST(TensorNpy, PackedAndTiledBuffersHaveTheirBufferShape) {
  Type codes{{4, 64}, ElementType::F4E2M1FN, Layout::Linear};
  EXPECT_TRUE(fromNpy({"|u1", {4, 32}, std::vector<std::byte>(128)}, codes, "q"));
  Type tiled{{130, 5}, ElementType::F8E4M3FN, Layout::Tiled128x4};
  EXPECT_TRUE(fromNpy({"|u1", {2, 2, 512}, std::vector<std::byte>(2048)}, tiled, "s"));
  auto wrong = fromNpy({"|u1", {4, 64}, std::vector<std::byte>(256)}, codes, "q");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "input 'q' expects an array of shape (4, 32) for 4x64xf4E2M1FN, "
                                   "but got (4, 64) of '|u1'");
}

TEST(TensorNpy, ScalesBehindTheLastBlockOfARowAreZero) {
  Type tiled{{130, 5}, ElementType::F8E4M3FN, Layout::Tiled128x4};
  NpyArray file{"|u1", {2, 2, 512}, std::vector<std::byte>(2048)};
  file.data[hw::tiled128x4Offset(131, 0, 5)] = std::byte{127}; // no row of the tensor
  file.data[hw::tiled128x4Offset(129, 4, 5)] = std::byte{127}; // the last scale
  EXPECT_TRUE(fromNpy(file, tiled, "s"));
  file.data[hw::tiled128x4Offset(129, 5, 5)] = std::byte{127};
  auto wrong = fromNpy(file, tiled, "s");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "input 's' expects zeros behind the 5 scales of a row for 130x5xf8E4M3FN, "
            "tiled_128x4, but got 127 in row 129, place 5");
  EXPECT_EQ(wrong.error().note, "fill the padding of tiled scales with zeros");
}

TEST(TensorNpy, TilesSayHowTheirSizesAreGiven) {
  NpyArray file{"|u1", {1, 2, 512}, std::vector<std::byte>(1024)};
  Type tiled{{-1, -1}, ElementType::F8E4M3FN, Layout::Tiled128x4};
  EXPECT_EQ(fromNpy(file, tiled, "s").error().note,
            "tiles do not say their sizes: give M, N and K with --shape, or those of 's' by the "
            "names of fp4.dims with --dim");
  tiled.shape = {4, 4};
  EXPECT_EQ(fromNpy(file, tiled, "s").error().note,
            "swizzle linear scales first: docs/reference/fp4-attributes.md, the layout tiled_128x4");
}

TEST(TensorNpy, WrongTypesAndShapesNameBothSides) {
  Type type{{-1, 4}, ElementType::BF16, Layout::Linear};
  auto wrongType = fromNpy({"<i4", {1, 4}, std::vector<std::byte>(16)}, type, "x");
  ASSERT_FALSE(wrongType);
  EXPECT_EQ(wrongType.error().message, "input 'x' expects element type '<f4' or '<f2' or '<f8' or "
                                       "'<u2' or '<V2' or '|V2' for ?x4xbf16, but got (1, 4) of "
                                       "'<i4'");
  auto wrongShape = fromNpy(floats({1, 5}, {1, 2, 3, 4, 5}), type, "x");
  ASSERT_FALSE(wrongShape);
  EXPECT_EQ(wrongShape.error().message,
            "input 'x' expects an array of shape (any, 4) for ?x4xbf16, but got (1, 5) of '<f4'");
  auto empty = fromNpy(floats({0, 4}, {}), type, "x");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->type.str(), "0x4xbf16");
  EXPECT_FALSE(fromNpy(floats({0, 5}, {}), type, "x"));
}

// fp32 files become what the argument is, each by its own rounding.
TEST(TensorNpy, Fp32BecomesHalves) {
  NpyArray array{"<f4", {1, 2}, std::vector<std::byte>(8)};
  const float values[2] = {1.5f, 3.25f};
  std::memcpy(array.data.data(), values, sizeof values);
  for (auto [element, first, second] : {std::tuple(ElementType::F16, 0x3E00, 0x4280),
                                        {ElementType::BF16, 0x3FC0, 0x4050}}) {
    auto tensor = fromNpy(array, {{1, 2}, element, Layout::Linear}, "x");
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(tensor->as<uint16_t>()[0], first);
    EXPECT_EQ(tensor->as<uint16_t>()[1], second);
  }
}

// Two codes to a byte, so twice as many columns as bytes.
TEST(TensorNpy, PackedColumnsCountTwice) {
  const NpyArray array{"|u1", {3, 4}, std::vector<std::byte>(12)};
  auto columns = fromNpy(array, {{3, -1}, ElementType::F4E2M1FN, Layout::Linear}, "q");
  ASSERT_TRUE(columns) << columns.error().message;
  EXPECT_EQ(columns->type.shape, (std::vector<int64_t>{3, 8}));
  auto rows = fromNpy(array, {{-1, 8}, ElementType::F4E2M1FN, Layout::Linear}, "q");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->type.shape, (std::vector<int64_t>{3, 8}));
}

} // namespace
} // namespace fp4::harness
