// The named recipes: one row per library and version whose bits differ.
#include "fp4/Numerics/Recipe.h"
#include <algorithm>
#include <array>
#include <string>

namespace fp4::numerics {
namespace {

using G = GlobalRule;
using S = ScaleSpelling;
using E = EncodeSpelling;
using F = FactorGuard;

constexpr Recipe fouroversix(std::string_view name, std::string_view summary, Adaptive adaptive) {
  return {.name = name,
          .summary = summary,
          .amaxNaN = NanPolicy::Propagate,
          .negativeZero = NegativeZero::Drop,
          .global = G::DivideUnlessZero,
          .scale = S::DivideThenMultiply,
          .guard = F::ZeroIfScaleZero,
          .e4m3Max = 256.f,
          .adaptive = adaptive};
}

constexpr std::array nvfp4Recipes = {
    Recipe{.name = "transformer_engine", .summary = "TransformerEngine 2.14 and later"},
    Recipe{.name = "transformer_engine_2_13",
           .summary = "TransformerEngine 2.8 to 2.13",
           .scale = S::DivideThenMultiply},
    Recipe{.name = "transformer_engine_fast",
           .summary = "TransformerEngine with NVTE_USE_FAST_MATH (bf16 factor)",
           .encode = E::BF16GlobalOverScale,
           .guard = F::None},
    Recipe{.name = "transformer_engine_transform",
           .summary = "TransformerEngine 2.14 and later, kernels that transform and quantize",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::PositiveDivide,
           .guard = F::ClampKeepNaN},
    Recipe{.name = "transformer_engine_transform_fast",
           .summary = "the same with NVTE_USE_FAST_MATH; without the rounding to bf16 before",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::PositiveDivide,
           .reciprocals = Reciprocals::ApproximateFactor,
           .guard = F::ClampKeepNaN},
    Recipe{.name = "torchao",
           .summary = "torchao two-level, 0.17 and later, CPU",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeDivide,
           .scale = S::DivideTwice,
           .encode = E::ReciprocalOverScale,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "torchao_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeMultiply,
           .scale = S::MultiplyThenDivide,
           .encode = E::ReciprocalOverScale,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "torchao_0_16",
           .summary = "torchao two-level, 0.12 to 0.16, CPU",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeDivide,
           .scale = S::DivideTwice,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "torchao_0_16_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::DecodeMultiply,
           .scale = S::MultiplyThenDivide,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "torchao_1level",
           .summary = "torchao without a tensor scale, 0.18 and later",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::DivideThenMultiply,
           .encode = E::ReciprocalOfProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f},
    Recipe{.name = "torchao_1level_cuda",
           .summary = "the same as PyTorch computes it on CUDA",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::MultiplyThenMultiply,
           .encode = E::ReciprocalOfProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f},
    Recipe{.name = "torchao_1level_0_17",
           .summary = "torchao without a tensor scale, 0.12 to 0.17",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-6f},
    Recipe{.name = "pytorch_eager",
           .summary = "plain PyTorch, 2688 / amax as a Python scalar over a tensor",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Reciprocal,
           .scale = S::DivideThenMultiply,
           .encode = E::GlobalOverScale,
           .guard = F::EpsilonScale},
    Recipe{.name = "flashinfer",
           .summary = "FlashInfer fast path with exact reciprocals",
           .global = G::Reciprocal,
           .scale = S::MultiplyThenMultiply,
           .guard = F::ZeroIfAmaxZero,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "flashinfer_exact",
           .summary = "FlashInfer with fast math disabled and g = 2688 / amax",
           .global = G::Reciprocal,
           .scale = S::MultiplyFolded,
           .guard = F::ZeroIfAmaxZeroClamp,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "vllm",
           .summary = "vLLM scaled_fp4_quant with exact reciprocals",
           .global = G::Reciprocal,
           .scale = S::MultiplyThenMultiply,
           .guard = F::ZeroIfScaleZero,
           .dequantize = DequantizeRule::OverEncodeScale},
    Recipe{.name = "mslk",
           .summary = "MSLK (FBGEMM) Triton kernels, precise, since 2026-08-13",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Divide,
           .scale = S::DivideThenMultiply,
           .encode = E::GlobalOverScale,
           .guard = F::None,
           .scaleFloor = 0x1p-9f,
           .dequantize = DequantizeRule::OverEncodeScale},
    Recipe{.name = "mslk_1_3",
           .summary = "the same up to 1.3.0rc1, whose floor rounds to 0",
           .amaxNaN = NanPolicy::Propagate,
           .global = G::Divide,
           .scale = S::DivideThenMultiply,
           .encode = E::GlobalOverScale,
           .guard = F::None,
           .scaleFloor = 1.5258789e-05f,
           .dequantize = DequantizeRule::OverEncodeScale},
    Recipe{.name = "modelopt",
           .summary = "ModelOpt NVFP4QTensor, 0.45 and later",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::DecodeDivide,
           .scale = S::DivideByProduct,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-9f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "modelopt_0_44",
           .summary = "ModelOpt NVFP4QTensor up to 0.44, over a PyTorch before 2.13",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::DecodeDivide,
           .scale = S::DivideByProduct,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleCast = ScaleCast::NonSaturating,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "modelopt_static",
           .summary = "ModelOpt's static quantizer, 0.45 and later, with the amaxes it was given",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::DecodeDivide,
           .scale = S::RatioOfMaxima,
           .encode = E::DivideByProduct,
           .guard = F::None,
           .scaleFloor = 0x1p-9f,
           .dequantize = DequantizeRule::DecodeScale},
    Recipe{.name = "compressed_tensors",
           .summary = "compressed-tensors and llm-compressor, bf16 weights",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::ReciprocalOrOne,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByQuotient,
           .guard = F::None,
           .zeroScale = 0.125f,
           .amaxArithmetic = AmaxArithmetic::BF16,
           .dequantize = DequantizeRule::OverEncodeScale},
    Recipe{.name = "compressed_tensors_f32",
           .summary = "the same of f32 weights",
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .global = G::ReciprocalOrOne,
           .scale = S::DivideThenMultiply,
           .encode = E::DivideByQuotient,
           .guard = F::None,
           .zeroScale = 0.125f,
           .dequantize = DequantizeRule::OverEncodeScale},
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
    Recipe{.name = "flashinfer_four_over_six",
           .summary = "FlashInfer's 4over6, exact reciprocals, absolute error, scales up to 448",
           .global = G::Reciprocal,
           .scale = S::MultiplyThenMultiply,
           .guard = F::ZeroBlockIfAmaxZero,
           .adaptive = Adaptive::FourOverSixAbsolute,
           .candidateValue = CandidateValue::DecodeScale},
    Recipe{.name = "flashinfer_four_over_six_exact",
           .summary = "the same with fast math disabled",
           .global = G::Reciprocal,
           .scale = S::DivideThenMultiply,
           .guard = F::ZeroBlockIfAmaxZero,
           .adaptive = Adaptive::FourOverSixAbsolute,
           .candidateValue = CandidateValue::DecodeScale},
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
    fouroversix("fouroversix", "fouroversix 1.1, PyTorch, by squared errors (its default)",
                Adaptive::FourOverSixSquared),
    fouroversix("fouroversix_mae", "the same by absolute errors", Adaptive::FourOverSixAbsolute),
    fouroversix("fouroversix_abs_max", "the same by the largest error",
                Adaptive::FourOverSixLargest),
};

constexpr Recipe mx(std::string_view name, std::string_view summary, ExponentRule rule,
                    BlockFormat format = BlockFormat::MXFP4) {
  return {.name = name,
          .summary = summary,
          .format = format,
          .amaxNaN = NanPolicy::Propagate,
          .global = G::One,
          .exponent = rule};
}

/// torchao 0.18.0: infinity has the byte of the rule, a NaN's finite neighbours become zeros.
constexpr Recipe torchao018(std::string_view name, std::string_view summary, ExponentRule rule) {
  Recipe recipe = mx(name, summary, rule);
  recipe.nonFinite = NonFinite::NaNAlone;
  recipe.zeroByte = ZeroByteFactor::LeastNormal;
  recipe.nanByte = NaNByteFactor::Zero;
  return recipe;
}

/// triton_kernels masks patterns: a scale of 0 and one of infinity have the factor 0.
constexpr Recipe triton(std::string_view name, std::string_view summary, ExponentRule rule,
                        NonFinite nonFinite) {
  Recipe recipe = mx(name, summary, rule);
  recipe.nonFinite = nonFinite;
  recipe.zeroByte = ZeroByteFactor::Zero;
  recipe.nanByte = NaNByteFactor::Zero;
  return recipe;
}

constexpr std::array mxfp4Recipes = {
    mx("ocp_floor", "OCP MX v1.0; torchao after 0.18, FLOOR", ExponentRule::Floor),
    mx("ocp_ceil", "torchao after 0.18, CEIL", ExponentRule::Ceil),
    mx("ocp_even", "torchao after 0.18, EVEN", ExponentRule::Even),
    mx("ocp_even_down", "EVEN whose tie at 1.75 stays down", ExponentRule::EvenDown),
    mx("ocp_rceil", "NVIDIA round-up; torchao after 0.18, RCEIL", ExponentRule::RoundUp),
    mx("ocp_rceil_divide", "round-up of a true division", ExponentRule::RoundUpDivide),
    torchao018("torchao_0_18_floor", "torchao 0.18.0, FLOOR", ExponentRule::Floor),
    torchao018("torchao_0_18_ceil", "torchao 0.18.0, CEIL", ExponentRule::Ceil),
    torchao018("torchao_0_18_even", "torchao 0.18.0, EVEN", ExponentRule::Even),
    Recipe{.name = "torchao_0_18_rceil",
           .summary = "torchao 0.18.0, RCEIL, eager on a CPU",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .global = G::One,
           .exponent = ExponentRule::RoundUpLog2,
           .nonFinite = NonFinite::NaNAlone,
           .zeroByte = ZeroByteFactor::One},
    Recipe{.name = "mxfp4_flashinfer",
           .summary = "FlashInfer's MXFP4: round-up, infinity to 254, factor 1 at byte 0",
           .format = BlockFormat::MXFP4,
           .global = G::One,
           .exponent = ExponentRule::RoundUp,
           .nonFinite = NonFinite::Largest,
           .zeroByte = ZeroByteFactor::One,
           .scaleDecode = ScaleDecode::Shifted},
    Recipe{.name = "mxfp4_vllm",
           .summary = "vLLM's MXFP4: even, no NaN byte, zeros at byte 0",
           .format = BlockFormat::MXFP4,
           .global = G::One,
           .exponent = ExponentRule::Even,
           .nonFinite = NonFinite::Largest,
           .zeroByte = ZeroByteFactor::Zero},
    Recipe{.name = "mxfp4_fouroversix",
           .summary = "fouroversix 1.1, MXFP4, PyTorch: up on any mantissa bit, zeros at byte 0",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Drop,
           .nanElementIsZero = true,
           .global = G::One,
           .exponent = ExponentRule::RoundUpBits,
           .nonFinite = NonFinite::Wrap,
           .zeroByte = ZeroByteFactor::Zero,
           .nanByte = NaNByteFactor::Zero},
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
           .nonFinite = NonFinite::Largest},
    Recipe{.name = "mxfp4_modelopt",
           .summary = "ModelOpt MXFP4QTensor: round-up of a true division, halves toward zero",
           .format = BlockFormat::MXFP4,
           .amaxNaN = NanPolicy::Propagate,
           .negativeZero = NegativeZero::Always,
           .ties = Ties::TowardZero,
           .global = G::One,
           .exponent = ExponentRule::RoundUpLog2},
    triton("mxfp4_triton_up", "triton_kernels ROUND_UP, its reference in PyTorch",
           ExponentRule::RoundUpBits, NonFinite::Wrap),
    triton("mxfp4_triton_down", "triton_kernels ROUND_DOWN, of a_b / 4", ExponentRule::Floor,
           NonFinite::NaN),
    triton("mxfp4_triton_down_6", "triton_kernels ROUND_DOWN as it was first, of a_b / 6",
           ExponentRule::FloorDivide, NonFinite::NaN),
    mx("mxfp6_e2m3_floor", "OCP MX v1.0; torchao FLOOR", ExponentRule::Floor,
       BlockFormat::MXFP6E2M3),
    mx("mxfp6_e2m3_rceil", "torchao RCEIL", ExponentRule::RoundUpDivide, BlockFormat::MXFP6E2M3),
    mx("mxfp6_e3m2_floor", "OCP MX v1.0; torchao FLOOR", ExponentRule::Floor,
       BlockFormat::MXFP6E3M2),
    mx("mxfp6_e3m2_rceil", "torchao RCEIL", ExponentRule::RoundUpDivide, BlockFormat::MXFP6E3M2),
    mx("mxfp8_e4m3_floor", "OCP MX v1.0; torchao FLOOR", ExponentRule::Floor,
       BlockFormat::MXFP8E4M3),
    mx("mxfp8_e4m3_rceil", "torchao RCEIL; NVIDIA's", ExponentRule::RoundUpDivide,
       BlockFormat::MXFP8E4M3),
    mx("mxfp8_e5m2_floor", "OCP MX v1.0; torchao FLOOR", ExponentRule::Floor,
       BlockFormat::MXFP8E5M2),
    mx("mxfp8_e5m2_rceil", "torchao RCEIL", ExponentRule::RoundUpDivide, BlockFormat::MXFP8E5M2),
};

constexpr std::array<std::string_view, 6> formatNames = {
    "nvfp4", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"};

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

const Recipe &defaultRecipe(BlockFormat format) {
  return *std::ranges::find(allRecipes, format, &Recipe::format);
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
  return formatNames[static_cast<size_t>(format)];
}

std::optional<BlockFormat> parseBlockFormat(std::string_view text) {
  const auto found = std::ranges::find(formatNames, text);
  if (found == formatNames.end())
    return std::nullopt;
  return static_cast<BlockFormat>(found - formatNames.begin());
}

} // namespace fp4::numerics
