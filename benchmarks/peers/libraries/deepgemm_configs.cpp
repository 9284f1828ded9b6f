// deepgemm_configs.cpp: asks DeepGEMM's own heuristics which kernel they choose, without torch and without a GPU.
//
//   deepgemm_configs TYPE M N K GROUPS EXPECTED_M     TYPE is 0 (dense), 1 (contiguous groups) or 2 (masked groups)
//
// Prints one line of numbers: block m, block n, swizzle of a, b and d, stages, threads that copy, threads that
// multiply, CTAs of a cluster, whether a is the operand that they share, and bytes of shared memory.
//
// deepgemm.py compiles it against a folder in which DeepGEMM's four files of heuristics have empty files for
// neighbours; what those neighbours and torch would declare is below.
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define DG_HOST_ASSERT(condition)                                                                                      \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      throw std::runtime_error(#condition);                                                                            \
  } while (0)
#define DG_HOST_UNREACHABLE(text) throw std::runtime_error(text)

namespace c10 {
enum class ScalarType { BFloat16, Float, Float8_e4m3fn, Char };
inline size_t elementSize(ScalarType type) {
  return type == ScalarType::BFloat16 ? 2 : type == ScalarType::Float ? 4 : 1;
}
inline const char *toString(ScalarType) { return ""; }
} // namespace c10

namespace at {
using c10::ScalarType;
}

namespace torch {
using c10::ScalarType;
constexpr auto kBFloat16 = ScalarType::BFloat16, kFloat = ScalarType::Float,
               kFloat8_e4m3fn = ScalarType::Float8_e4m3fn, kInt8 = ScalarType::Char;
} // namespace torch

namespace deep_gemm {
constexpr auto kPackedFP4 = torch::kInt8;

template <typename T>
T ceil_div(const T &a, const T &b) {
  return (a + b - 1) / b;
}
template <typename T>
T align(const T &a, const T &b) {
  return ceil_div(a, b) * b;
}
template <typename T>
T get_env(const char *) {
  return T();
}

/// The settings of a fresh process.
struct Settings {
  int get_mk_alignment_for_contiguous_layout() const { return 128; }
  int get_block_n_multiple_of() const { return 1; }
};
static const Settings settings;
static const Settings *const heuristics_runtime = &settings;
} // namespace deep_gemm

#include "csrc/jit_kernels/heuristics/sm90.hpp"

int main(int argc, char **argv) {
  if (argc != 7)
    return 2;
  auto number = [&](int i) { return std::atoi(argv[i]); };
  deep_gemm::GemmDesc desc{};
  desc.gemm_type = static_cast<deep_gemm::GemmType>(number(1));
  desc.kernel_type = deep_gemm::KernelType::Kernel1D2D;
  desc.m = number(2), desc.n = number(3), desc.k = number(4), desc.num_groups = number(5);
  desc.a_dtype = desc.b_dtype = torch::kFloat8_e4m3fn;
  desc.cd_dtype = torch::kBFloat16;
  desc.major_a = desc.major_b = cute::UMMA::Major::K;
  desc.num_sms = 132, desc.tc_util = 100;
  desc.expected_m = number(6), desc.expected_n = desc.n, desc.expected_k = desc.k;
  desc.expected_num_groups = number(1) == 2 ? desc.num_groups : 1;
  auto config = deep_gemm::get_best_config<deep_gemm::SM90ArchSpec>(desc);
  const auto &layout = config.layout;
  const auto &storage = config.storage_config;
  std::cout << layout.block_m << ' ' << layout.block_n << ' ' << storage.swizzle_a_mode << ' '
            << storage.swizzle_b_mode << ' ' << storage.swizzle_cd_mode << ' ' << config.pipeline_config.num_stages
            << ' ' << config.launch_config.num_tma_threads << ' ' << config.launch_config.num_math_threads << ' '
            << layout.get_cluster_size() << ' ' << (layout.cluster_n > 1) << ' ' << config.pipeline_config.smem_size
            << '\n';
}
