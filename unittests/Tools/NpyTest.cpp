//===- NpyTest.cpp - .npy files, good and malformed -----------------------===//

#include "fp4/Tools/Npy.h"
#include "fp4/Tools/Tensor.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <tuple>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fp4::tools {
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

// What cannot get its name is an error, and leaves nothing beside it.
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
  EXPECT_THAT(status.error().message, HasSubstr("cannot create '" + path + "': No such file"));
  auto absent = readNpy(path);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("cannot open '" + path + "': No such file"));
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

TEST(TensorNpy, WrongTypesAndShapesNameBothSides) {
  Type type{{-1, 4}, ElementType::BF16, Layout::Linear};
  auto wrongType = fromNpy({"<f8", {1, 4}, std::vector<std::byte>(32)}, type, "x");
  ASSERT_FALSE(wrongType);
  EXPECT_EQ(wrongType.error().message, "input 'x' expects element type '<f4' or '<u2' or '<V2' or "
                                       "'|V2' for ?x4xbf16, but got (1, 4) of '<f8'");
  auto wrongShape = fromNpy(floats({1, 5}, {1, 2, 3, 4, 5}), type, "x");
  ASSERT_FALSE(wrongShape);
  EXPECT_EQ(wrongShape.error().message,
            "input 'x' expects an array of shape (any, 4) for ?x4xbf16, but got (1, 5) of '<f4'");
  auto empty = fromNpy(floats({0, 4}, {}), type, "x");
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("must not be empty"));
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
} // namespace fp4::tools
