//===- OperandIndicesTest.cpp - Expressions of indices in manifests -------===//

#include "OperandIndices.h"

#include "fp4/Reference/ProgramTypes.h"

#include <gmock/gmock.h>

namespace fp4::harness {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

ProgramOp withDimensions(std::string dimensions) {
  ProgramOp op{"linalg.generic", {}, {}, {}, {}};
  op.attributes = {{"dimensions", std::move(dimensions)}};
  return op;
}

TEST(OperandIndices, AreTextsOfEachDimension) {
  const ProgramOp op = withDimensions("0,1 (d0/4),((d1+64)%128) x,1 - i1");
  EXPECT_THAT(operandIndices(op),
              ElementsAre(ElementsAre("0", "1"), ElementsAre("(d0/4)", "((d1+64)%128)"),
                          ElementsAre("x", "1"), IsEmpty()));
  EXPECT_THAT(loopInputs(op), ElementsAre(1));
}

TEST(OperandIndices, OfLoopsAreBehindTheOperands) {
  EXPECT_THAT(loopInputs(withDimensions("0,1 i0 i1")), ElementsAre(0, 1));
  EXPECT_THAT(loopInputs(withDimensions("0,1")), IsEmpty());
  EXPECT_THAT(loopInputs(withDimensions("0,1 i ix i12")), IsEmpty());
  EXPECT_THAT(operandIndices(ProgramOp{"linalg.generic", {}, {}, {}, {}}), IsEmpty());
}

TEST(OperandIndices, OfExpressionsAreOfOneDimension) {
  EXPECT_THAT(dimensionOf("(d0/4)"), Optional(0u));
  EXPECT_THAT(dimensionOf("((d1+64)%128)"), Optional(1u));
  EXPECT_EQ(dimensionOf("d1"), std::nullopt);
  EXPECT_EQ(dimensionOf("64"), std::nullopt);
  EXPECT_EQ(dimensionOf("(64)"), std::nullopt);
  EXPECT_EQ(dimensionOf("(dx+1)"), std::nullopt);
  EXPECT_EQ(dimensionOf("(d"), std::nullopt);
  EXPECT_EQ(dimensionOf(""), std::nullopt);
}

TEST(OperandIndices, AreEvaluated) {
  EXPECT_THAT(evaluateIndex("d1", 7), Optional(7));
  EXPECT_THAT(evaluateIndex("64", 7), Optional(64));
  EXPECT_THAT(evaluateIndex("((d1+64)%128)", 63), Optional(127));
  EXPECT_THAT(evaluateIndex("((d1+64)%128)", 64), Optional(0));
  EXPECT_THAT(evaluateIndex("(d0/4)", 11), Optional(2));
  EXPECT_THAT(evaluateIndex("((d1+1)+((d1%2)*-2))", 4), Optional(5));
  EXPECT_THAT(evaluateIndex("((d1+1)+((d1%2)*-2))", 5), Optional(4));
  EXPECT_THAT(evaluateIndex("(((d1/128)*128)+(((d1%128)+64)%128))", 300), Optional(364));
  EXPECT_THAT(evaluateIndex("((d1*-1)+127)", 120), Optional(7));
}

TEST(OperandIndices, OfNegativeNumbersAreNotDivided) {
  EXPECT_THAT(evaluateIndex("(d1+-5)", 3), Optional(-2));
  EXPECT_EQ(evaluateIndex("((d1+-5)/2)", 3), std::nullopt);
  EXPECT_EQ(evaluateIndex("((d1+-5)%2)", 3), std::nullopt);
  EXPECT_THAT(evaluateIndex("((d1+-5)%2)", 6), Optional(1));
  EXPECT_EQ(evaluateIndex("(d1/0)", 3), std::nullopt);
  EXPECT_EQ(evaluateIndex("(d1%0)", 3), std::nullopt);
  EXPECT_EQ(evaluateIndex("(d1/-2)", 3), std::nullopt);
}

TEST(OperandIndices, ThatMakeNoSenseHaveNoValue) {
  for (const char *text : {"", "d", "dx", "x", "(d1+64", "(d1+64))", "(d1-64)", "(d1)", "()", "(",
                           "(d1+)", "(+d1)", "(d1 + 64)", "d1+64", "64d", "((d1+1)", "(d1+1)2"})
    EXPECT_EQ(evaluateIndex(text, 3), std::nullopt) << text;
}

} // namespace
} // namespace fp4::harness
