// The recipes as programs: well formed, hoisted, and as the documentation prints them. RecipeTest
// and QuantizeTest check that they compute the right bits.
#include "fp4/Numerics/RecipeProgram.h"
#include <gtest/gtest.h>
#include <set>

using namespace fp4;
using namespace fp4::numerics;

namespace {

void expectType(const RecipeProgram &p, Value v, unsigned operand, ValueType type) {
  EXPECT_EQ(p.typeOf(p.code[v].operands[operand]), type) << p.text();
}

ValueType operandType(Op op, unsigned operand) {
  switch (op) {
  case Op::IntEqual:
  case Op::IntAtLeast:
  case Op::FloatOf:
  case Op::Add:
  case Op::SubtractInt:
  case Op::ShiftLeft:
  case Op::ShiftRight:
  case Op::MinSigned:
  case Op::MaxSigned:
  case Op::FromE4M3:
    return ValueType::I32;
  default:
    return ValueType::F32;
  }
}

void expectWellFormed(const RecipeProgram &p) {
  for (Value v = 0; v < p.code.size(); ++v) {
    const Instruction &in = p.code[v];
    EXPECT_FALSE(stringify(in.op).empty());
    EXPECT_TRUE(v == 0 || p.code[v - 1].stage <= in.stage) << p.text();
    for (unsigned i = 0; i < operandCount(in.op); ++i) {
      ASSERT_LT(in.operands[i], v) << p.text();
      if (in.op != Op::Select)
        expectType(p, v, i, operandType(in.op, i));
    }
    if (in.op == Op::Select) {
      expectType(p, v, 0, ValueType::I1);
      expectType(p, v, 2, p.typeOf(v));
    }
    for (Value w = 0; w < v; ++w)
      EXPECT_FALSE(p.code[w] == in) << p.text();
  }
}

TEST(RecipeProgram, everyRecipeIsWellFormed) {
  for (const Recipe &recipe : recipes()) {
    const RecipeProgram p = makeProgram(recipe);
    SCOPED_TRACE(recipe.name);
    expectWellFormed(p);
    expectWellFormed(makeDequantizer(recipe));
    EXPECT_EQ(p.typeOf(p.scaleByte), ValueType::I32);
    EXPECT_EQ(p.code[p.scaleByte].stage, Stage::Block);
    EXPECT_EQ(p.typeOf(p.element), ValueType::F32);
    EXPECT_EQ(p.code[p.element].stage, Stage::Element);
    EXPECT_EQ(p.candidates.size() > 1, p.error != noValue);
    EXPECT_EQ(p.elementCode == noValue, isPacked(recipe.format));
    expectWellFormed(makeDequantizer(recipe));
  }
}

TEST(RecipeProgram, nvfp4ReadsAsDocumented) {
  EXPECT_EQ(makeProgram(*lookupRecipe("transformer_engine")).text(),
            "amax drops nan\n"
            "tensor:\n"
            "  %0 = constant 2688\n"
            "  %1 = constant 1\n"
            "  %2 = tensor_amax\n"
            "  %3 = divide %0, %2\n"
            "  %4 = constant 3.40282347e+38\n"
            "  %5 = min_drop_nan %3, %4\n"
            "  %6 = constant 0\n"
            "  %7 = float_equal %5, %6\n"
            "  %8 = select %7, %1, %5\n"
            "  %9 = float_equal %2, %6\n"
            "  %10 = select %9, %1, %8\n"
            "  %11 = divide %1, %10\n"
            "  %12 = constant 0.166666672\n"
            "  %13 = multiply %10, %12\n"
            "block:\n"
            "  %14 = block_amax\n"
            "  %15 = multiply %14, %13\n"
            "  %16 = to_e4m3 %15\n"
            "  %17 = from_e4m3 %16\n"
            "  %18 = multiply %17, %11\n"
            "  %19 = divide %1, %18\n"
            "  %20 = min_drop_nan %19, %4\n"
            "element:\n"
            "  %21 = element\n"
            "  %22 = multiply %21, %20\n"
            "scale byte %16\n"
            "element %22\n");
}

TEST(RecipeProgram, mxfp4ReadsAsDocumented) {
  EXPECT_EQ(makeProgram(*lookupRecipe("ocp_rceil")).text(), "amax keeps nan\n"
                                                            "tensor:\n"
                                                            "  %0 = integer 0x7f800000\n"
                                                            "  %1 = constant 0.166666672\n"
                                                            "  %2 = integer 0x0\n"
                                                            "  %3 = integer 0xfe\n"
                                                            "  %4 = integer 0xff\n"
                                                            "  %5 = integer 0x17\n"
                                                            "  %6 = integer 0x400000\n"
                                                            "  %7 = integer 0x7fffffff\n"
                                                            "block:\n"
                                                            "  %8 = block_amax\n"
                                                            "  %9 = bits_of %8\n"
                                                            "  %10 = int_at_least %9, %0\n"
                                                            "  %11 = multiply %8, %1\n"
                                                            "  %12 = to_ue8m0_up %11\n"
                                                            "  %13 = max_signed %12, %2\n"
                                                            "  %14 = min_signed %13, %3\n"
                                                            "  %15 = select %10, %4, %14\n"
                                                            "  %16 = subtract_int %3, %15\n"
                                                            "  %17 = shift_left %16, %5\n"
                                                            "  %18 = int_equal %16, %2\n"
                                                            "  %19 = select %18, %6, %17\n"
                                                            "  %20 = select %10, %7, %19\n"
                                                            "  %21 = float_of %20\n"
                                                            "element:\n"
                                                            "  %22 = element\n"
                                                            "  %23 = multiply %22, %21\n"
                                                            "scale byte %15\n"
                                                            "element %23\n");
}

TEST(RecipeProgram, adaptiveRecipesMeasureTheirErrors) {
  const std::string text = makeProgram(*lookupRecipe("four_over_six_squared")).text();
  EXPECT_NE(text.find("error:\n"
                      "  %25 = decoded\n"
                      "  %26 = multiply %25, %19\n"
                      "  %27 = multiply %26, %2\n"
                      "  %28 = divide %27, %0\n"
                      "  %29 = subtract %28, %23\n"
                      "  %30 = absolute %29\n"
                      "  %31 = multiply %30, %30\n"
                      "scale byte %18\n"
                      "element %24\n"
                      "error %31\n"
                      "candidates 1, 1.5 by summed error\n"),
            std::string::npos)
      << text;
}

TEST(RecipeProgram, differentRecipesAreDifferentPrograms) {
  std::set<std::pair<unsigned, std::string>> programs; // of blocks of one size
  for (const Recipe &recipe : recipes()) {
    EXPECT_TRUE(programs.emplace(blockSizeOf(recipe.format), makeProgram(recipe).text()).second)
        << recipe.name << " equals an earlier one";
  }
}

} // namespace
