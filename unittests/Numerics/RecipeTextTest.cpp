// Recipes as text: what is spelled parses back, and what means nothing is refused with a reason.
#include "fp4/Numerics/Recipe.h"
#include "fp4/Numerics/RecipeProgram.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::numerics;

namespace {

std::string canonical(std::string_view text) {
  auto recipe = parseRecipe(text);
  return recipe ? spell(*recipe) : "error: " + recipe.error().message;
}

TEST(RecipeText, namesAreTheirOwnText) {
  for (const Recipe &recipe : recipes()) {
    EXPECT_EQ(spell(recipe), recipe.name);
    EXPECT_EQ(canonical(recipe.name), recipe.name);
    EXPECT_TRUE(checkRecipe(recipe)) << recipe.name;
    EXPECT_EQ(makeProgram(*parseRecipe(recipe.name)).code, makeProgram(recipe).code);
  }
}

TEST(RecipeText, overridesAreSpelledInOneOrderAndOnlyWhereTheyDiffer) {
  EXPECT_EQ(canonical("transformer_engine,scale_floor=0.015625 , guard = none"),
            "transformer_engine, guard = none, scale_floor = 0.015625");
  EXPECT_EQ(canonical("transformer_engine, guard = clamp_drop_nan, e4m3_max = 448.0"),
            "transformer_engine");
  EXPECT_EQ(canonical("modelopt, nan_element = zero, scale_floor = 0.0"),
            "modelopt, nan_element = zero, scale_floor = 0");
  EXPECT_EQ(canonical("ocp_rceil, non_finite = largest, nan_element = zero"),
            "ocp_rceil, nan_element = zero, non_finite = largest");
  EXPECT_EQ(canonical("mslk, scale_floor = 1.0e-05"), "mslk, scale_floor = 1.0e-05");
}

/// The name that a text starts with is no decision: the nearest is written, the first of several.
TEST(RecipeText, equalDecisionsHaveOneText) {
  EXPECT_EQ(canonical("ocp_floor, exponent = ceil"), "ocp_ceil");
  EXPECT_EQ(canonical("ocp_floor, exponent = ceil, nan_element = zero"),
            canonical("ocp_ceil, nan_element = zero"));
  EXPECT_EQ(canonical("ocp_floor, exponent = round_up, amax_nan = drop, non_finite = largest, "
                      "zero_byte = one, scale_decode = shifted"),
            "mxfp4_flashinfer");
  EXPECT_NE(canonical("ocp_floor, exponent = ceil"), canonical("ocp_floor, exponent = even"));
  EXPECT_TRUE(*parseRecipe("ocp_floor, exponent = ceil") == *lookupRecipe("ocp_ceil"));
  EXPECT_FALSE(*parseRecipe("ocp_floor, exponent = even") == *lookupRecipe("ocp_ceil"));
  EXPECT_FALSE(*lookupRecipe("ocp_floor") == *lookupRecipe("transformer_engine"));
  EXPECT_EQ(fp4::numerics::canonical(*parseRecipe("ocp_floor, exponent = ceil")).name, "ocp_ceil");
}

/// A decision that is written means what the member of that name means.
TEST(RecipeText, overridesAreTheDecisionsOfTheStruct) {
  const Recipe floor = *parseRecipe("transformer_engine_2_13, scale_floor = 0.015625, "
                                    "amax_nan = propagate, scale_cast = non_saturating, "
                                    "encode = global_over_scale");
  EXPECT_EQ(floor.scale, ScaleSpelling::DivideThenMultiply);
  EXPECT_EQ(floor.scaleFloor, 0x1p-6f);
  EXPECT_EQ(floor.amaxNaN, NanPolicy::Propagate);
  EXPECT_EQ(floor.scaleCast, ScaleCast::NonSaturating);
  EXPECT_EQ(floor.encode, EncodeSpelling::GlobalOverScale);
  const Recipe mx = *parseRecipe("ocp_floor, exponent = round_up_divide");
  EXPECT_EQ(makeProgram(mx).code, makeProgram(*lookupRecipe("ocp_rceil_divide")).code);
  EXPECT_EQ(parseRecipe("transformer_engine, tensor_scale = supplied")->global,
            GlobalRule::Supplied);
  EXPECT_EQ(parseRecipe("torchao, tensor_scale = supplied_decode")->global,
            GlobalRule::SuppliedDecode);
}

TEST(RecipeText, badTextIsRefused) {
  EXPECT_EQ(canonical("te"), "error: unknown recipe 'te'");
  EXPECT_EQ(canonical(""), "error: unknown recipe ''");
  EXPECT_EQ(canonical("ocp_floor, scale_floor = 1"),
            "error: recipe 'ocp_floor' of format mxfp4 has no decision 'scale_floor'");
  EXPECT_EQ(canonical("flashinfer, reciprocals = approximate"),
            "flashinfer, reciprocals = approximate");
  EXPECT_EQ(canonical("torchao, reciprocals = approximate"),
            "error: approximate reciprocals expect encode reciprocal_of_product, but got "
            "reciprocal_over_scale");
  EXPECT_EQ(canonical("vllm, dequantize = amax_times_inverse"),
            "vllm, dequantize = amax_times_inverse");
  EXPECT_EQ(canonical("torchao, dequantize = over_encode_scale"),
            "error: tensor_scale decode_divide, decode_multiply and supplied_decode have no encode "
            "scale, but the spellings of scale, encode, dequantize or alpha read it");
  EXPECT_EQ(canonical("torchao, exponent = floor"),
            "error: recipe 'torchao' of format nvfp4 has no decision 'exponent'");
  EXPECT_EQ(canonical("torchao, guard"),
            "error: a decision of recipe 'torchao' must be written NAME = VALUE, but got 'guard'");
  EXPECT_EQ(canonical("torchao, amax_nan = ignore"),
            "error: decision 'amax_nan' must be one of drop, propagate, but got 'ignore'");
  EXPECT_EQ(canonical("torchao, e4m3_max = many"),
            "error: decision 'e4m3_max' must be a number, but got 'many'");
  EXPECT_EQ(canonical("torchao, e4m3_max = 480"),
            "error: decision 'e4m3_max' must be a number from 2^-9 to 448, but got 480");
  EXPECT_EQ(canonical("torchao, scale_floor = nan"),
            "error: decision 'scale_floor' must be a number from 0 to 448, but got nan");
}

TEST(RecipeText, decisionsOfQuantizationPackages) {
  EXPECT_EQ(canonical("ggml_nvfp4, ties = even, negative_zero = always"),
            "ggml_nvfp4, negative_zero = always, ties = even");
  EXPECT_EQ(canonical("compressed_tensors, amax_arithmetic = f32"), "compressed_tensors_f32");
  EXPECT_EQ(makeProgram(*parseRecipe("compressed_tensors, amax_arithmetic = f32")).code,
            makeProgram(*lookupRecipe("compressed_tensors_f32")).code);
  EXPECT_EQ(canonical("compressed_tensors, zero_scale = 0.3"),
            "error: decision 'zero_scale' must be a number of e4m3 from 0 to 448, but got 0.3");
  EXPECT_EQ(canonical("compressed_tensors, zero_scale = 0.3125"),
            "compressed_tensors, zero_scale = 0.3125");
  EXPECT_EQ(canonical("compressed_tensors, guard = clamp_drop_nan"),
            "error: encode divide_by_quotient has no factor that a guard could bound");
  EXPECT_EQ(canonical("torchao_1level, scale = ratio_of_maxima"),
            "error: scale ratio_of_maxima expects a tensor scale that derives from an amax");
  EXPECT_EQ(canonical("flashinfer_four_over_six, e4m3_max = 256, candidate_value = amax_over_range"),
            "flashinfer_four_over_six, e4m3_max = 256, candidate_value = amax_over_range");
}

TEST(RecipeText, decisionsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(canonical("transformer_engine, tensor_scale = decode_divide").substr(0, 40),
            "error: tensor_scale decode_divide, decod");
  EXPECT_EQ(canonical("torchao, encode = global_over_scale").substr(0, 40),
            "error: tensor_scale decode_divide, decod");
  EXPECT_EQ(canonical("torchao_0_16, guard = clamp_drop_nan"),
            "error: encode divide_by_product has no factor that a guard could bound");
  EXPECT_EQ(canonical("four_over_six, scale_floor = 1"),
            "error: an adaptive recipe expects scale_floor = 0 and scale_cast = saturating");
  EXPECT_EQ(canonical("torchao_1level, adaptive = four_over_six_absolute"),
            "error: an adaptive recipe expects a tensor scale that derives from an amax");
}

} // namespace
