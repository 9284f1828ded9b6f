// Reading of unittests/Numerics/data and random data shared by the tests of this directory.
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Philox.h"
#include "fp4/Numerics/Recipe.h"
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fp4::test {

inline nlohmann::json readJson(const std::string &name) {
  std::ifstream file(FP4_SOURCE_DIR "/unittests/Numerics/data/" + name);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

/// Models of oracles/quantizers that are not named after the recipe that they describe.
inline const std::map<std::string, std::string> recipeOfModel = {
    {"te213", "transformer_engine_2_13"},
    {"te214", "transformer_engine"},
    {"te_fast", "transformer_engine_fast"},
    {"ao1", "torchao_1level"},
    {"ao1old", "torchao_1level_0_17"},
    {"ao2", "torchao"},
    {"ao2old", "torchao_0_16"},
    {"eager", "pytorch_eager"},
    {"fi", "flashinfer"},
    {"fi_exact", "flashinfer_exact"},
    {"mslk", "mslk_1_3"},
    {"mslk_2026", "mslk"},
    {"modelopt_044", "modelopt_0_44"},
    {"te46", "four_over_six"},
    {"te46_448", "four_over_six_448"},
    {"te46_squared", "four_over_six_squared"},
    {"te46_largest", "four_over_six_largest"},
    {"fos", "fouroversix"},
    {"fos_mae", "fouroversix_mae"},
    {"fos_abs_max", "fouroversix_abs_max"},
    {"ao2_cuda", "torchao_cuda"},
    {"ao2old_cuda", "torchao_0_16_cuda"},
    {"ao1_cuda", "torchao_1level_cuda"},
    {"fi_mx", "mxfp4_flashinfer"},
    {"vllm_mx", "mxfp4_vllm"},
    {"fos_mx", "mxfp4_fouroversix"},
    {"floor", "ocp_floor"},
    {"ceil", "ocp_ceil"},
    {"even", "ocp_even"},
    {"even_mslk", "ocp_even_down"},
    {"rceil", "ocp_rceil"},
    {"rceil_div", "ocp_rceil_divide"},
};

/// The recipe that a model describes.
inline const numerics::Recipe &recipeOf(const std::string &model) {
  const auto named = recipeOfModel.find(model);
  return *numerics::lookupRecipe(named == recipeOfModel.end() ? model : named->second);
}

/// FNV-1a, as the golden scripts in oracles/ compute it.
inline constexpr uint64_t fnvBasis = 0xCBF29CE484222325;
inline void fnv(uint64_t &hash, uint8_t byte) { hash = (hash ^ byte) * 0x100000001B3; }

/// Philox as a stream of 32-bit words.
class Random {
public:
  explicit Random(uint64_t seed) : seed(seed) {}
  uint32_t word() {
    if (at % 4 == 0)
      block = numerics::philox4x32(seed, 0, at / 4);
    return block[at++ % 4];
  }
  uint8_t byte() { return static_cast<uint8_t>(word() >> 24); }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t(word()) * n >> 32); }
  float uniform() { return static_cast<float>(word() >> 8) * 0x1p-24f; }
  float gaussian() {
    const float u = (static_cast<float>(word() >> 8) + 0.5f) * 0x1p-24f, v = uniform();
    return std::sqrt(-2.f * std::log(u)) * std::cos(6.2831853f * v);
  }

private:
  uint64_t seed, at = 0;
  std::array<uint32_t, 4> block{};
};

} // namespace fp4::test
