//===- ViewsTest.cpp - Operations that only move elements -----------------===//

#include "fp4/Reference/Reference.h"

#include <gmock/gmock.h>

#include <numeric>

namespace fp4::harness {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

/// One operation on a tensor whose bytes count from 0 on.
struct View {
  View(std::string name, Type from, Type to, std::map<std::string, std::string> attributes = {}) {
    Tensor tensor(from);
    std::iota(tensor.as<uint8_t>().begin(), tensor.as<uint8_t>().end(), uint8_t(0));
    arguments = {tensor};
    function.program = {{std::move(name), {"a0"}, {"v0"}, {to}, std::move(attributes)}};
    function.returns = {"v0"};
  }
  std::vector<uint8_t> bytes() {
    auto results = runReference(function, arguments, 1, data);
    EXPECT_TRUE(results) << format(results.error());
    if (!results)
      return {};
    auto span = (*results)[0].value.as<uint8_t>();
    return {span.begin(), span.end()};
  }
  std::string error() {
    auto results = runReference(function, arguments, 1, data);
    return results ? "ran" : results.error().message;
  }
  Function function;
  std::vector<Tensor> arguments;
  DataResolver data;
};

Type f4(std::vector<int64_t> shape) { return {std::move(shape), ElementType::F4E2M1FN}; }
Type scales(int64_t rows, Layout layout = Layout::Linear) {
  return {{rows, 3}, ElementType::F8E4M3FN, layout};
}
std::map<std::string, std::string> part(const char *offsets, const char *sizes) {
  return {{"static_offsets", offsets}, {"static_sizes", sizes}, {"static_strides", "1,1"}};
}

TEST(Views, ReshapesKeepTheBytesAndFindDynamicSizes) {
  View view("tensor.collapse_shape", f4({2, 3, 4}), f4({-1, 4}));
  EXPECT_THAT(view.bytes(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  auto results = runReference(view.function, view.arguments, 1);
  EXPECT_EQ((*results)[0].value.type.str(), "6x4xf4E2M1FN");
  EXPECT_EQ(View("tensor.expand_shape", f4({6, 4}), f4({2, 2, 4})).error(),
            "manifest: operation 'tensor.expand_shape' has a result of type 2x2x4xf4E2M1FN, which "
            "holds 8 bytes, but 12 were computed");
}

/// A gather or scatter of rows of a byte, by `rows`.
View moved(const char *name, Type from, Type to, std::vector<int64_t> rows, const char *dims) {
  View view(name, std::move(from), std::move(to), {{dims, "0"}});
  Tensor numbers({{int64_t(rows.size()), 1}, ElementType::I64});
  std::ranges::copy(rows, numbers.as<int64_t>().begin());
  view.arguments.push_back(numbers);
  view.function.program[0].operands.push_back("a1");
  return view;
}

TEST(Views, GathersReadRowsByNumber) {
  Type result{{-1, 3}, ElementType::F8E4M3FN};
  EXPECT_THAT(moved("tensor.gather", scales(4), result, {3, 0, 3}, "gather_dims").bytes(),
              ElementsAre(9, 10, 11, 0, 1, 2, 9, 10, 11));
  EXPECT_THAT(moved("tensor.gather", scales(4), result, {-1, 1}, "gather_dims").bytes(),
              ElementsAre(0, 0, 0, 3, 4, 5));
  EXPECT_EQ(moved("tensor.gather", scales(4), result, {4}, "gather_dims").error(),
            "'tensor.gather' reads row 4, but its source has 4 rows");
}

TEST(Views, ScattersWriteRowsByNumberAndLeaveTheOthers) {
  View view = moved("tensor.scatter", scales(3), scales(5), {4, -1, 1}, "scatter_dims");
  auto results = runReference(view.function, view.arguments, 1);
  ASSERT_TRUE(results) << format(results.error());
  EXPECT_THAT((*results)[0].value.as<uint8_t>(),
              ElementsAre(0, 0, 0, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2));
  std::vector<uint64_t> unspecified;
  for (const ByteRange &range : (*results)[0].unspecified)
    unspecified.push_back(range.begin);
  EXPECT_THAT(unspecified, ElementsAre(0, 6, 9));
  EXPECT_EQ(moved("tensor.scatter", scales(3), scales(5), {1, 1, 2}, "scatter_dims").error(),
            "'tensor.scatter' must write each row of 5 at most once, but row number 1 is 1");
  EXPECT_EQ(moved("tensor.scatter", scales(3), scales(5), {1, 5, 2}, "scatter_dims").error(),
            "'tensor.scatter' must write each row of 5 at most once, but row number 1 is 5");
}

TEST(Views, SlicesMayTakeTheRest) {
  EXPECT_THAT(
      View("tensor.extract_slice", scales(2), {{-1, 1}, ElementType::F8E4M3FN}, part("0,1", "-1,1"))
          .bytes(),
      ElementsAre(1, 4));
}

TEST(Views, ColumnsAreConcatenated) {
  View view("tensor.concat", scales(2), {{2, 6}, ElementType::F8E4M3FN}, {{"dim", "1"}});
  view.function.program[0].operands.push_back("a0");
  EXPECT_THAT(view.bytes(), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
}

TEST(Views, SlicesTakeRowsColumnsAndPairs) {
  EXPECT_THAT(View("tensor.extract_slice", scales(4), {{2, 2}, ElementType::F8E4M3FN},
                   part("1,1", "2,2"))
                  .bytes(),
              ElementsAre(4, 5, 7, 8));
  EXPECT_THAT(View("tensor.extract_slice", f4({3, 6}), f4({2, 4}), part("1,2", "2,4")).bytes(),
              ElementsAre(4, 5, 7, 8));
  EXPECT_EQ(View("tensor.extract_slice", scales(4), scales(4), part("1,0", "4,3")).error(),
            "manifest: operation 'tensor.extract_slice' must take a part of 4x3xf8E4M3FN");
  EXPECT_EQ(View("tensor.extract_slice", scales(4), scales(4), part("1,-1", "1,3")).error(),
            "manifest: operation 'tensor.extract_slice' expects numbers as 'static_offsets', but "
            "got '1,-1'");
  EXPECT_EQ(View("tensor.extract_slice", scales(4), scales(4), part("1", "4")).error(),
            "manifest: operation 'tensor.extract_slice' must take a part of 4x3xf8E4M3FN");
}

TEST(Views, SlicesOfTiledScalesAreTiles) {
  View view("tensor.extract_slice", scales(300, Layout::Tiled128x4),
            scales(172, Layout::Tiled128x4), part("128,0", "172,3"));
  auto tensor = view.arguments[0].as<uint8_t>();
  tensor[512] = 77, tensor[1535] = 88;
  EXPECT_THAT(view.bytes(), ElementsAreArray(tensor.subspan(512, 1024)));
}

TEST(Views, TransposesMoveWholeElements) {
  const Type from{{2, 3}, ElementType::BF16}, to{{3, 2}, ElementType::BF16};
  EXPECT_THAT(View("linalg.transpose", from, to, {{"permutation", "1,0"}}).bytes(),
              ElementsAre(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11));
  EXPECT_EQ(View("linalg.transpose", from, to, {{"permutation", "0,1"}}).error(),
            "manifest: operation 'linalg.transpose' cannot be computed for 2x3xbf16");
}

TEST(Views, ConstantsAreFoundByTheirSymbol) {
  View view("arith.constant", {{}, ElementType::F32}, {{3}, ElementType::F8E4M3FN}, {{"symbol", "w"}});
  EXPECT_EQ(view.error(), "manifest: operation 'arith.constant' has bytes that are not at hand");
  static constexpr uint8_t bytes[] = {5, 6, 7};
  view.data = [](const std::string &symbol) -> Expected<const void *> {
    EXPECT_EQ(symbol, "w");
    return bytes;
  };
  EXPECT_THAT(view.bytes(), ElementsAre(5, 6, 7));
}

} // namespace
} // namespace fp4::harness
