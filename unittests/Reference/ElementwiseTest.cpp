//===- ElementwiseTest.cpp - Elementwise operations of a manifest ---------===//

#include "fp4/Reference/Reference.h"

#include <gmock/gmock.h>

#include <bit>

namespace fp4::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor numbers(std::vector<int64_t> shape, std::vector<float> values) {
  Tensor tensor({std::move(shape), ElementType::F32});
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

/// One elementwise operation on tensors of f32.
struct Elementwise {
  Elementwise(std::vector<Tensor> inputs, std::vector<Type> types, std::string program,
              std::string dimensions)
      : arguments(std::move(inputs)) {
    ProgramOp op{"linalg.generic", {}, {}, std::move(types), {}};
    op.attributes = {{"program", std::move(program)}, {"dimensions", std::move(dimensions)}};
    for (size_t i = 0; i < arguments.size(); ++i)
      op.operands.push_back("a" + std::to_string(i));
    for (size_t i = 0; i < op.resultTypes.size(); ++i)
      op.results.push_back("v" + std::to_string(i));
    function.returns = op.results;
    function.program = {std::move(op)};
  }
  std::vector<float> run(size_t result = 0) {
    auto results = runReference(function, arguments, 1);
    EXPECT_TRUE(results) << format(results.error());
    if (!results)
      return {};
    auto span = (*results)[result].value.as<float>();
    return {span.begin(), span.end()};
  }
  std::string error() {
    auto results = runReference(function, arguments, 1);
    return results ? "ran" : results.error().message;
  }
  std::string error(const char *attribute, std::string value) {
    std::swap(function.program[0].attributes[attribute], value);
    std::string message = error();
    std::swap(function.program[0].attributes[attribute], value);
    return message;
  }
  Function function;
  std::vector<Tensor> arguments;
};

const Type kMatrix{{2, 3}, ElementType::F32};

} // namespace

TEST(Elementwise, OperandsAreIndexedByDimensionsOfTheResult) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6}), numbers({3}, {10, 20, 30}),
                  numbers({2}, {100, 200}), numbers({}, {1000})},
                 {kMatrix, kMatrix},
                 "4: add f32 0 1; add f32 4 2; add f32 5 3; negate f32 0 -> 6 7", "0,1 1 0 -");
  EXPECT_THAT(op.run(), ElementsAre(1111, 1122, 1133, 1214, 1225, 1236));
  EXPECT_THAT(op.run(1), ElementsAre(-1, -2, -3, -4, -5, -6));
}

TEST(Elementwise, DynamicSizesFollowFromOperands) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6})}, {{{-1, 3}, ElementType::F32}},
                 "1: negate f32 0 -> 1", "0,1");
  EXPECT_THAT(op.run(), ElementsAre(-1, -2, -3, -4, -5, -6));
}

TEST(Elementwise, ExpressionsReadOtherRowsAndColumns) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6}), numbers({1, 2}, {10, 20})}, {kMatrix},
                 "2: add f32 0 1 -> 2", "0,((d1+1)%3) (d0/2),(d1/2)");
  EXPECT_THAT(op.run(), ElementsAre(12, 13, 21, 15, 16, 24));
  EXPECT_THAT(op.error("dimensions", "0,((d1+1)%3) (d0/2),d1"),
              HasSubstr("the sizes of its result"));
  EXPECT_THAT(
      op.error("dimensions", "0,(d1+1) (d0/2),(d1/2)"),
      HasSubstr("must have an index '(d1+1)' below 3, the size of an operand, but has 3 for "
                "index 2 of the result"));
  for (const char *wrong : {"(d1+1", "(d1+1))", "(d1?1)", "((d1+-2)/2)", "(d7+1)", "(1+1)"})
    EXPECT_THAT(op.error("dimensions", std::string("0,") + wrong + " (d0/2),(d1/2)"),
                HasSubstr("index '"))
        << wrong;
}

TEST(Elementwise, ProgramsReadIndicesOfTheResult) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6})}, {kMatrix},
                 "3: from_unsigned f32 1; from_unsigned f32 2; add f32 3 4 -> 5", "0,1 i0 i1");
  EXPECT_THAT(op.run(), ElementsAre(0, 1, 2, 1, 2, 3));
  EXPECT_THAT(op.error("dimensions", "0,1 i0 i7"),
              HasSubstr("reads an index that its result does not have"));
  EXPECT_THAT(op.error("dimensions", "0,1 i0"), HasSubstr("has no operand 1"));
}

TEST(Elementwise, DimensionsOfOneAreTheSameForAll) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6}), numbers({2, 1}, {10, 20}),
                  numbers({1, 3}, {100, 200, 300})},
                 {kMatrix}, "3: add f32 0 1; add f32 3 2 -> 4", "0,1 0,x x,1");
  EXPECT_THAT(op.run(), ElementsAre(111, 212, 313, 124, 225, 326));
  EXPECT_THAT(op.error("dimensions", "x,1 0,x x,1"), HasSubstr("must have operand 0 of the sizes"));
}

TEST(Elementwise, OperandsAreReadAtOtherRowsAndColumns) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6}), numbers({1, 3}, {10, 20, 30}),
                  numbers({2}, {100, 200})},
                 {kMatrix}, "3: add f32 0 1; add f32 3 2 -> 4", "0,((d1+1)%3) (d0/2),1 (d1/2)");
  EXPECT_THAT(op.run(), ElementsAre(112, 123, 231, 115, 126, 234));
}

TEST(Elementwise, ExpressionsFollowDynamicSizes) {
  Elementwise op({numbers({3, 2}, {1, 2, 3, 4, 5, 6}), numbers({2, 2}, {10, 20, 30, 40})},
                 {{{-1, 2}, ElementType::F32}}, "2: add f32 0 1 -> 2", "0,1 (d0%2),((d1*-1)+1)");
  EXPECT_THAT(op.run(), ElementsAre(21, 12, 43, 34, 25, 16));
}

TEST(Elementwise, ProgramsReadTheIndicesOfTheirElement) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6})}, {kMatrix, kMatrix}, "3: -> 1 2",
                 "0,1 i0 i1");
  std::vector<uint32_t> rows, columns;
  for (float value : op.run())
    rows.push_back(std::bit_cast<uint32_t>(value));
  for (float value : op.run(1))
    columns.push_back(std::bit_cast<uint32_t>(value));
  EXPECT_THAT(rows, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(columns, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Elementwise, NothingAndOneNumber) {
  EXPECT_THAT(Elementwise({numbers({}, {2})}, {{{}, ElementType::F32}}, "1: -> 0", "-").run(),
              ElementsAre(2));
  EXPECT_THAT(
      Elementwise({numbers({0, 3}, {})}, {{{0, 3}, ElementType::F32}}, "1: -> 0", "0,1").run(),
      ElementsAre());
}

TEST(Elementwise, ManifestsThatMakeNoSenseAreErrors) {
  Elementwise op({numbers({2, 3}, {1, 2, 3, 4, 5, 6})}, {kMatrix}, "1: negate f32 0 -> 1", "0,1");
  EXPECT_EQ(op.error(), "ran");
  EXPECT_THAT(op.error("program", "1: frob f32 0 -> 1"),
              HasSubstr("expects an elementwise program"));
  EXPECT_THAT(op.error("program", "2: add f32 0 1 -> 2"), HasSubstr("has no operand 1"));
  EXPECT_THAT(op.error("program", "1: negate f32 0 -> 1 0"), HasSubstr("must have 2 results"));
  EXPECT_THAT(op.error("program", "0: constant f32 0 -> 0"),
              HasSubstr("has 1 operands, but a program for 0"));
  EXPECT_THAT(op.error("dimensions", "0"), HasSubstr("has 1 dimensions for operand 0"));
  EXPECT_THAT(op.error("dimensions", "0,7"),
              HasSubstr("must have operand 0 of the sizes of its result 2x3xf32, but got 2x3xf32"));
  EXPECT_THAT(op.error("dimensions", "1,0"), HasSubstr("must have operand 0 of the sizes"));
  EXPECT_THAT(
      op.error("dimensions", "0,(d1+1)"),
      HasSubstr("must have an index '(d1+1)' below 3, the size of an operand, but has 3 for "
                "index 2 of the result"));
  EXPECT_THAT(op.error("dimensions", "0,(d1+-1)"), HasSubstr("but has -1 for index 0"));
  EXPECT_THAT(op.error("dimensions", "0,(d1/0)"), HasSubstr("but has -1 for index 0"));
  EXPECT_THAT(op.error("dimensions", "0,(d1+1"), HasSubstr("but has -1 for index 0"));
  EXPECT_THAT(op.error("dimensions", "0,(d7+1)"),
              HasSubstr("has the index '(d7+1)' of an operand"));
  EXPECT_THAT(op.error("dimensions", "0,(x)"), HasSubstr("has the index '(x)' of an operand"));
  EXPECT_THAT(op.error("dimensions", "0,1 i1"), HasSubstr("has 2 operands, but a program for 1"));
  op.function.program[0].attributes["program"] = "2: -> 1";
  EXPECT_EQ(op.error("dimensions", "0,1 i1"), "ran");
  EXPECT_THAT(op.error("dimensions", "0,1 i2"),
              HasSubstr("reads an index that its result does not have"));
  op.function.program[0].attributes["program"] = "1: negate f32 0 -> 1";
  op.arguments[0] = Tensor({{2, 3}, ElementType::F8E5M2});
  EXPECT_THAT(op.error(), HasSubstr("must have operand 0 of f32, bf16, f16 or f8E4M3FN"));
}

} // namespace fp4::harness
