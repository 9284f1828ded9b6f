// The named recipes: one row per library and version whose bits differ.
#include "fp4/Numerics/Recipe.h"
#include <array>
#include <string>

namespace fp4::numerics {
namespace {

using G = GlobalRule;
using S = ScaleSpelling;
using E = EncodeSpelling;
using F = FactorGuard;

constexpr std::array nvfp4Recipes = {
    Recipe{.name = "transformer_engine", .summary = "TransformerEngine 2.14 and later"},
    Recipe{.name = "transformer_engine_2_13",
           .summary = "TransformerEngine 2.8 to 2.13",
           .scale = S::DivideThenMultiply},
    Recipe{.name = "transformer_engine_fast",
           .summary = "TransformerEngine with NVTE_USE_FAST_MATH (bf16 factor)",
           .encode = E::BF16GlobalOverScale,
           .guard = F::None},
    Recipe{.name = "torchao",
           .summary = "torchao two-level, 0.17 and later, CPU",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeDivide,
           .scale = S::DivideTwice,
           .encode = E::ReciprocalOverScale,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeMultiply,
           .scale = S::MultiplyThenDivide,
           .encode = E::ReciprocalOverScale,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_0_16",
           .summary = "torchao two-level, 0.12 to 0.16, CPU",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeDivide,
           .scale = S::DivideTwice,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_0_16_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeMultiply,
           .scale = S::MultiplyThenDivide,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_1level",
           .summary = "torchao without a tensor scale, 0.18 and later",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::DivideThenMultiply,
           .encode = E::ReciprocalOfProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_1level_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::MultiplyThenMultiply,
           .encode = E::ReciprocalOfProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "torchao_1level_0_17",
           .summary = "torchao without a tensor scale, 0.12 to 0.17",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "pytorch_eager",
           .summary = "plain PyTorch, 2688 / amax as a Python scalar over a tensor",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Reciprocal,
           .scale = S::DivideThenMultiply,
           .encode = E::GlobalOverScale,
           .guard = F::EpsilonScale,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "flashinfer",
           .summary = "FlashInfer fast path with exact reciprocals",
           .global = G::Reciprocal,
           .scale = S::MultiplyThenMultiply,
           .guard = F::ZeroIfAmaxZero},
    Recipe{.name = "flashinfer_exact",
           .summary = "FlashInfer with fast math disabled and g = 2688 / amax",
           .global = G::Reciprocal,
           .scale = S::MultiplyFolded,
           .guard = F::ZeroIfAmaxZeroClamp},
    Recipe{.name = "vllm",
           .summary = "vLLM scaled_fp4_quant with exact reciprocals",
           .global = G::Reciprocal,
           .scale = S::MultiplyThenMultiply,
           .guard = F::ZeroIfScaleZero},
    Recipe{.name = "mslk",
           .summary = "MSLK (FBGEMM) Triton kernels, precise",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Divide,
           .scale = S::DivideThenMultiply,
           .encode = E::GlobalOverScale,
           .guard = F::None,
           .scaleFloor = 1.5258789e-05f},
    Recipe{.name = "modelopt",
           .summary = "ModelOpt NVFP4QTensor",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::DecodeDivide,
           .scale = S::DivideByProduct,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-9f,
           .scaleCast = ScaleCast::NonSaturating},
    Recipe{.name = "modelopt_static",
           .summary = "ModelOpt's static quantizer, 0.45 and later, with the amaxes it was given",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::DecodeDivide,
           .scale = S::RatioOfMaxima,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-9f},
    Recipe{.name = "compressed_tensors",
           .summary = "compressed-tensors and llm-compressor, bf16 weights",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::ReciprocalOrOne,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByQuotient,
           .guard = F::None,
           .zeroScale = 0.125f,
           .amaxArithmetic = AmaxArithmetic::BF16},
    Recipe{.name = "compressed_tensors_f32",
           .summary = "the same of f32 weights",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::ReciprocalOrOne,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByQuotient,
           .guard = F::None,
           .zeroScale = 0.125f},
    Recipe{.name = "ggml_nvfp4",
           .summary = "ggml (llama.cpp): nearest value of the code table, no tensor scale",
           .negativeZero = NegativeZero::Never,
           .ties = Ties::TowardZero,
           .nanElementIsZero = true,
           .global = G::One,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByProduct,
           .guard = F::ZeroIfScaleZero,
           .scaleCast = ScaleCast::HalfUp},
    Recipe{.name = "cutlass",
           .summary = "CUTLASS block-scaled output epilogue",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Divide,
           .scale = S::MultiplyFolded,
           .encode = E::GlobalTimesReciprocal,
           .guard = F::ClampKeepNaN},
    Recipe{.name = "four_over_six",
           .summary = "TransformerEngine's four-over-six, absolute error, scales up to 256",
           .scale = S::DivideThenMultiply,
           .e4m3Max = 256.f,
           .adaptive = Adaptive::FourOverSixAbsolute},
    Recipe{.name = "four_over_six_448",
           .summary = "the same with scales up to 448",
           .scale = S::DivideThenMultiply,
           .adaptive = Adaptive::FourOverSixAbsolute},
    Recipe{.name = "four_over_six_squared",
           .summary = "four-over-six by the sum of squared errors, scales up to 256",
           .scale = S::DivideThenMultiply,
           .e4m3Max = 256.f,
           .adaptive = Adaptive::FourOverSixSquared},
    Recipe{.name = "four_over_six_largest",
           .summary = "four-over-six by the largest error, scales up to 256",
           .scale = S::DivideThenMultiply,
           .e4m3Max = 256.f,
           .adaptive = Adaptive::FourOverSixLargest},
};

constexpr Recipe mx(std::string_view name, std::string_view summary, ExponentRule rule) {
  return {.name = name,
          .summary = summary,
          .format = BlockFormat::MXFP4,
          .amaxNaN = NanPolicy::Propagate,
          .global = G::One,
          .exponent = rule};
}

constexpr std::array mxfp4Recipes = {
    mx("ocp_floor", "OCP MX v1.0; torchao FLOOR", ExponentRule::Floor),
    mx("ocp_ceil", "torchao CEIL", ExponentRule::Ceil),
    mx("ocp_even", "torchao EVEN", ExponentRule::Even),
    mx("ocp_even_down", "MSLK's EVEN: the tie at 1.75 stays down", ExponentRule::EvenDown),
    mx("ocp_rceil", "NVIDIA round-up; torchao RCEIL", ExponentRule::RoundUp),
    mx("ocp_rceil_divide", "round-up of a true division", ExponentRule::RoundUpDivide),
    Recipe{.name = "mxfp4_flashinfer",
           .summary = "FlashInfer's MXFP4: round-up, infinity to 254, factor 1 at byte 0",
           .format = BlockFormat::MXFP4,
           .global = G::One,
           .exponent = ExponentRule::RoundUp,
           .nonFiniteIsNaN = false,
           .zeroByte = ZeroByteFactor::One},
    Recipe{.name = "mxfp4_vllm",
           .summary = "vLLM's MXFP4: even, no NaN byte, zeros at byte 0",
           .format = BlockFormat::MXFP4,
           .global = G::One,
           .exponent = ExponentRule::Even,
           .nonFiniteIsNaN = false,
           .zeroByte = ZeroByteFactor::Zero},
    Recipe{.name = "mxfp4_fouroversix",
           .summary = "fouroversix' MXFP4: round-up of a true division, zeros at byte 0",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .exponent = ExponentRule::RoundUpDivide,
           .zeroByte = ZeroByteFactor::Zero},
    Recipe{.name = "mxfp4_compressed_tensors",
           .summary = "compressed-tensors and llm-compressor: even",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::One,
           .exponent = ExponentRule::Even},
    Recipe{.name = "ggml_mxfp4",
           .summary = "ggml (llama.cpp): floor, nearest value of the code table",
           .format = BlockFormat::MXFP4,
           .negativeZero = NegativeZero::Never,
           .ties = Ties::TowardZero,
           .nanElementIsZero = true,
           .global = G::One,
           .exponent = ExponentRule::Floor,
           .nonFiniteIsNaN = false},
    Recipe{.name = "mxfp4_modelopt",
           .summary = "ModelOpt MXFP4QTensor: round-up of a true division, halves toward zero",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Always,
           .ties = Ties::TowardZero,
           .global = G::One,
           .exponent = ExponentRule::RoundUpDivide},
};

constexpr auto allRecipes = [] {
  std::array<Recipe, nvfp4Recipes.size() + mxfp4Recipes.size()> all;
  size_t i = 0;
  for (const Recipe &r : nvfp4Recipes)
    all[i++] = r;
  for (const Recipe &r : mxfp4Recipes)
    all[i++] = r;
  return all;
}();

} // namespace

std::span<const Recipe> recipes() { return allRecipes; }

const Recipe *lookupRecipe(std::string_view name) {
  for (const Recipe &recipe : allRecipes)
    if (recipe.name == name)
      return &recipe;
  return nullptr;
}

Expected<const Recipe *> requireRecipe(std::string_view name) {
  if (const Recipe *recipe = lookupRecipe(name))
    return recipe;
  std::string known;
  for (const Recipe &recipe : allRecipes)
    known += (known.empty() ? "" : ", ") + std::string(recipe.name);
  return makeError(ErrorKind::Usage, "unknown recipe '" + std::string(name) + "'",
                   "known recipes: " + known);
}

std::string_view stringify(BlockFormat format) {
  return format == BlockFormat::NVFP4 ? "nvfp4" : "mxfp4";
}

std::optional<BlockFormat> parseBlockFormat(std::string_view text) {
  if (text == "nvfp4")
    return BlockFormat::NVFP4;
  if (text == "mxfp4")
    return BlockFormat::MXFP4;
  return std::nullopt;
}

} // namespace fp4::numerics
