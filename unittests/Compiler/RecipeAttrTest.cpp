//===- RecipeAttrTest.cpp - Recipes as attributes, from C++ ---------------===//

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace fp4;

namespace {

class RecipeAttrTest : public testing::Test {
protected:
  RecipeAttrTest() { context.loadDialect<Fp4Dialect>(); }

  RecipeAttr make(std::string_view text) {
    return RecipeAttr::get(&context, *numerics::parseRecipe(text));
  }

  mlir::MLIRContext context;
};

} // namespace

TEST_F(RecipeAttrTest, AreEqualWhereTheirDecisionsAre) {
  EXPECT_EQ(make("ocp_floor, exponent = ceil"), make("ocp_ceil"));
  EXPECT_EQ(make("ocp_floor, exponent = ceil").getText(), "ocp_ceil");
  EXPECT_NE(make("ocp_floor, exponent = even"), make("ocp_ceil"));
  EXPECT_EQ(make("ocp_ceil").getDecisions().exponent, numerics::ExponentRule::Ceil);
}

TEST_F(RecipeAttrTest, RefuseDecisionsThatContradictEachOther) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto emitError = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
  numerics::Recipe recipe = *numerics::lookupRecipe("vllm");
  EXPECT_TRUE(RecipeAttr::getChecked(emitError, &context, recipe));
  recipe.scaleFloor = -0.5f;
  EXPECT_FALSE(RecipeAttr::getChecked(emitError, &context, recipe));
  EXPECT_EQ(message, "decision 'scale_floor' must be a number from 0 to 448, but got -0.5");
}
