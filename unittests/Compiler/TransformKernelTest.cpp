//===- TransformKernelTest.cpp - Transform and quantization on tensor cores ===//
//
// The kernels of a columnwise fp4.quantize with a transform of arithmetic tensor_core: of tcgen05,
// launched with fewer CTAs than it has strips, so that every ring wraps, and of mma.sync (sm_90a):
//  - equals lib/Numerics bit for bit, whenever asynchronous operations complete; padding is zero
//    and what is behind the outputs untouched; the hazard checker has nothing to report;
//  - where exponents spread so far that the tensor core cuts, it equals the model of the tensor
//    core.
// test/Target/mutations-transform.mlir checks that none of its synchronization can be left out.
//
//===----------------------------------------------------------------------===//
#include "fp4/Numerics/DenseMma.h"

#include "fp4/Compiler/Compiler.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Simulator.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace fp4;
using numerics::FloatType;
using sim::CompletionPolicy;
using sim::SimOptions;

namespace {

constexpr uint8_t kUntouched = 0xEE;

struct Case {
  uint64_t m = 192, k = 136;
  bool tiled = true;
  std::string recipe = "transformer_engine";
  bool stochastic = false;
  numerics::PhiloxMapping mapping = numerics::PhiloxMapping::Element;
  bool warps = false; ///< sm_90a

  uint64_t blocks() const { return (m + 15) / 16; }
  uint64_t pitch() const { return (m / 2 + 15) / 16 * 16; }
  std::string text() const {
    std::string scales = fmt::format("tensor<{}x{}xf8E4M3FN{}>", k, blocks(),
                                     tiled ? ", #fp4.scale_layout<tiled_128x4>" : "");
    std::string codes = fmt::format("tensor<{}x{}xf4E2M1FN>", k, m);
    std::string random =
        mapping == numerics::PhiloxMapping::Element ? "element" : "transformer_engine";
    std::string rounding =
        fmt::format(", rounding = #fp4.rounding<stochastic>, philox = #fp4.philox<{}>", random);
    return fmt::format("func.func @f(%x: tensor<{0}x{1}xbf16>, %a: tensor<f32>, %r: tensor<2xi64>) "
                       "-> ({2}, {3}) {{\n"
                       "  %q, %s = fp4.quantize %x amax %a {4} {{format = #fp4.format<nvfp4>, "
                       "recipe = #fp4.recipe<{5}>, outputs = #fp4.outputs<columnwise>,\n"
                       "    columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>{6}}}\n"
                       "    : (tensor<{0}x{1}xbf16>, tensor<f32>{7}) -> ({2}, {3})\n"
                       "  return %q, %s : {2}, {3}\n}}\n",
                       m, k, codes, scales, stochastic ? "rng %r" : "", recipe,
                       stochastic ? rounding : "", stochastic ? ", tensor<2xi64>" : "");
  }
};

std::string compile(const Case &c) {
  CompilerOptions options;
  if (c.warps)
    options.target = "sm_90a";
  std::ostringstream diagnostics;
  options.diagnostics = &diagnostics;
  Compiler compiler(options);
  Status status = compiler.loadText(c.text(), "transform.mlir");
  if (status)
    status = compiler.compileTo(Phase::Ptx);
  EXPECT_TRUE(status) << status.error().message << "\n" << diagnostics.str();
  for (const KernelCode &kernel : compiler.kernels())
    if (kernel.module == (c.warps ? "f_quantize_0" : "f_transform_0"))
      return kernel.ptx;
  ADD_FAILURE() << "there is no module of the transform";
  return "";
}

/// Random bf16 values, in bits; some rows are zero, some columns large.
std::vector<uint16_t> input(const Case &c) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> x(c.m * c.k);
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t row = i / c.k, column = i % c.k;
    const float value = row % 48 < 2 ? 0.0f : normal(rng) * (column % 32 == 5 ? 300.0f : 1.0f);
    x[i] = numerics::encodeBF16(value);
  }
  return x;
}

std::vector<float> widen(const std::vector<uint16_t> &x) {
  std::vector<float> values;
  for (uint16_t bits : x)
    values.push_back(std::bit_cast<float>(uint32_t(bits) << 16));
  return values;
}

struct Result {
  std::string error;
  std::vector<uint8_t> codes, scales; ///< with a guard of 64 bytes behind each
};

constexpr uint64_t kSeed = 0x123456789abcdef, kOffset = 42;

/// Launches `ptx` with `grid` CTAs, or where warps transform, with one for each tile.
Result run(const Case &c, const std::string &ptx, const std::vector<uint16_t> &x, float amax,
           uint32_t grid, const SimOptions &options) {
  auto program = sim::Program::parse(ptx, "transform.ptx");
  if (!program)
    return {program.error().message, {}, {}};
  sim::Simulator simulator(options);
  auto &memory = simulator.memory();
  const size_t scaleBytes =
      c.tiled ? hw::tiled128x4Bytes(c.k, c.blocks()) : size_t(c.k * c.blocks());
  Result result{"", std::vector<uint8_t>(c.k * c.pitch() + 64),
                std::vector<uint8_t>(scaleBytes + 64)};
  const auto upload = [&](const void *data, size_t bytes) {
    const uint64_t address = memory.allocate(bytes, "input");
    EXPECT_TRUE(memory.write(address, data, bytes));
    return address;
  };
  const auto output = [&](size_t bytes) {
    const uint64_t address = memory.allocate(bytes, "output");
    EXPECT_TRUE(memory.fill(address, kUntouched, bytes));
    return address;
  };
  hw::TensorMap map;
  map.elementType = hw::TensorMapType::BFloat16;
  map.address = upload(x.data(), 2 * x.size());
  map.dims = {c.k, c.m};
  map.strides = {2 * c.k};
  map.box = {64, 64};
  map.swizzle = hw::SwizzleMode::B128;
  const uint64_t scalar = upload(&amax, 4), seeds[] = {kSeed, kOffset};
  const uint64_t rng = upload(seeds, 16);
  const uint64_t codes = output(result.codes.size()), scales = output(result.scales.size());

  auto encoded = map.encode();
  EXPECT_TRUE(encoded) << encoded.error().message;
  std::vector<std::byte> params;
  if (!c.warps)
    params.assign(encoded->begin(), encoded->end());
  const auto add = [&](uint64_t address) {
    params.resize(params.size() + 8);
    std::memcpy(params.data() + params.size() - 8, &address, 8);
  };
  if (c.warps)
    add(map.address);
  add(scalar);
  if (c.stochastic)
    add(rng);
  add(codes);
  add(scales);
  sim::LaunchConfig config;
  const uint64_t tilesOfRows = (c.m + 127) / 128, tilesOfColumns = (c.k + 127) / 128;
  config.grid = {c.warps ? uint32_t(tilesOfRows * tilesOfColumns) : grid, 1, 1};
  config.block = {c.warps ? 256u : 192u, 1, 1};
  config.dynamicSharedBytes = c.warps ? 0 : 160 * 1024;
  if (auto stats = simulator.launch(**program, "kernel", config, params); !stats)
    return {stats.error().message, {}, {}};
  EXPECT_TRUE(memory.read(codes, result.codes.data(), result.codes.size()));
  EXPECT_TRUE(memory.read(scales, result.scales.data(), result.scales.size()));
  return result;
}

/// The result by lib/Numerics: rows of m / 2 bytes, scales in the case's layout.
numerics::QuantizedSide reference(const Case &c, const std::vector<float> &values, float amax,
                                  numerics::HadamardArithmetic arithmetic) {
  numerics::QuantizeOptions options;
  options.rowwise.reset();
  numerics::SideOptions side;
  side.hadamard = numerics::HadamardOptions{};
  side.hadamard->arithmetic = arithmetic;
  side.amax = amax;
  if (c.stochastic)
    side.stochastic =
        numerics::StochasticRounding{.seed = kSeed, .offset = kOffset, .mapping = c.mapping};
  options.columnwise = side;
  options.layout = c.tiled ? numerics::ScaleLayout::Tiled128x4 : numerics::ScaleLayout::Linear;
  auto pair =
      numerics::quantizeMatrix(*numerics::lookupRecipe(c.recipe), values, c.m, c.k, options);
  EXPECT_TRUE(pair) << pair.error().message;
  return pair ? *pair->columnwise : numerics::QuantizedSide{};
}

/// The first difference between a result and what it must be, or nothing.
std::string compare(const Case &c, const Result &result, const numerics::QuantizedSide &want) {
  if (!result.error.empty())
    return result.error;
  for (uint64_t row = 0; row < c.k; ++row)
    for (uint64_t byte = 0; byte < c.m / 2; ++byte)
      if (result.codes[row * c.pitch() + byte] != want.data[row * (c.m / 2) + byte])
        return fmt::format("codes differ in row {}, byte {}", row, byte);
  for (size_t i = 0; i < want.scales.size(); ++i)
    if (result.scales[i] != want.scales[i])
      return fmt::format("scales differ at byte {}", i);
  for (const auto *bytes : {&result.codes, &result.scales})
    if (std::any_of(bytes->end() - 64, bytes->end(), [](uint8_t b) { return b != kUntouched; }))
      return "bytes behind an output were written";
  return "";
}

std::vector<SimOptions> schedules(unsigned seeds) {
  std::vector<SimOptions> all(3 + seeds);
  all[1].policy = CompletionPolicy::Lazy;
  all[2].policy = CompletionPolicy::Delay;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    all[3 + seed].policy = CompletionPolicy::Random;
    all[3 + seed].seed = seed + 1;
  }
  for (SimOptions &options : all) {
    options.hostThreads = 1;
    options.instructionLimit = 20'000'000;
  }
  return all;
}

void expectEqual(const Case &c, uint32_t grid, unsigned seeds = 2) {
  const std::string ptx = compile(c);
  const std::vector<uint16_t> x = input(c);
  const float amax = 1234.0f;
  const auto want = reference(c, widen(x), amax, numerics::HadamardArithmetic::ExactSum);
  for (const SimOptions &options : schedules(seeds))
    EXPECT_EQ(compare(c, run(c, ptx, x, amax, grid, options), want), "")
        << c.m << " x " << c.k << ", policy " << int(options.policy) << ", seed " << options.seed;
}

TEST(TransformKernel, EqualsTheReferenceUnderEverySchedule) {
  expectEqual({.m = 832, .k = 136}, 1); // 26 tiles in one CTA: each ring of 8 wraps thrice
  expectEqual({.m = 832, .k = 136, .tiled = false}, 3);
  expectEqual({.m = 16, .k = 8}, 1);
  expectEqual({.m = 112, .k = 256}, 2);
  expectEqual({.m = 336, .k = 64, .recipe = "torchao"}, 2);
  expectEqual({.m = 64, .k = 128, .recipe = "four_over_six"}, 1);
  expectEqual({.m = 64, .k = 128, .recipe = "flashinfer"}, 1);
}

TEST(TransformKernel, OfWarpsEqualsTheReference) {
  expectEqual({.m = 272, .k = 136, .warps = true}, 0);
  expectEqual({.m = 272, .k = 136, .tiled = false, .warps = true}, 0);
  expectEqual({.m = 16, .k = 24, .warps = true}, 0);
  expectEqual({.m = 128, .k = 64, .recipe = "four_over_six", .warps = true}, 0);
  expectEqual({.m = 144, .k = 72, .recipe = "torchao", .stochastic = true, .warps = true}, 0);
}

TEST(TransformKernel, RoundsStochastically) {
  expectEqual({.m = 192, .k = 136, .stochastic = true}, 2);
  expectEqual({.m = 144,
               .k = 256,
               .tiled = false,
               .stochastic = true,
               .mapping = numerics::PhiloxMapping::TransformerEngineBlockwise},
              1);
}

void expectNoHazards(const Case &c) {
  sim::HazardChecker checker;
  SimOptions options;
  options.policy = CompletionPolicy::Random;
  options.seed = 5;
  options.observer = &checker;
  EXPECT_EQ(run(c, compile(c), input(c), 1.0f, 1, options).error, "");
  for (const sim::HazardReport &report : checker.reports())
    ADD_FAILURE() << report.text();
}

TEST(TransformKernel, HasNoHazards) {
  expectNoHazards({.m = 832, .k = 128});
  expectNoHazards({.m = 272, .k = 136, .warps = true});
}

/// The transform of 16 values as the model of tcgen05 kind::f16 and of mma.sync computes it,
/// rounded to bf16.
std::array<float, 16> tensorCoreTransform(std::span<const uint16_t> x) {
  const numerics::HadamardOptions transform;
  std::vector<uint8_t> a(32);
  std::memcpy(a.data(), x.data(), 32);
  numerics::FactorRow values;
  decodeFactors(hw::MmaType::BF16, a.data(), false, false, values);
  std::array<float, 16> result;
  for (unsigned j = 0; j < 16; ++j) {
    std::array<uint16_t, 16> row;
    for (unsigned i = 0; i < 16; ++i)
      row[i] = 0x3E80 | ((std::popcount(i & j) ^ (transform.signMask >> i)) & 1) << 15;
    numerics::FactorRow matrix;
    decodeFactors(hw::MmaType::BF16, reinterpret_cast<const uint8_t *>(row.data()), false, false,
                  matrix);
    const uint32_t sum =
        numerics::denseElement({values.data(), 16}, {matrix.data(), 16},
                          2 * numerics::fractionBits(hw::MmaType::BF16), 0, hw::AccumulatorType::F32, 0);
    result[j] = numerics::roundTo(FloatType::BF16, std::bit_cast<float>(sum));
  }
  return result;
}

// 4 (1 + 2^-8) + 4 * 3 * 2^-25: the exact sum rounds up to fp32 and then up to bf16; the tensor
// core cuts to fp32, which leaves a tie that goes to even. Such blocks equal the model and not the
// exact sum; all others of the matrix equal both.
void expectCuts(const Case &c) {
  std::vector<uint16_t> x = input(c);
  for (uint64_t row = 0; row < 16; ++row)
    x[row * c.k + 3] = numerics::encodeBF16(row == 0   ? 4.0f
                                            : row == 1 ? 0x1p-6f
                                            : row == 2 ? 3 * 0x1p-23f
                                                       : 0.0f);
  const float amax = 64.0f;
  const std::vector<float> values = widen(x);
  const Result result = run(c, compile(c), x, amax, 1, SimOptions{});
  ASSERT_EQ(result.error, "");

  // The model's values, row-major K x M, quantized as they are.
  std::vector<float> transformed(c.k * c.m);
  for (uint64_t column = 0; column < c.k; ++column)
    for (uint64_t first = 0; first < c.m; first += 16) {
      std::array<uint16_t, 16> block;
      for (uint64_t i = 0; i < 16; ++i)
        block[i] = x[(first + i) * c.k + column];
      const auto sums = tensorCoreTransform(block);
      std::copy(sums.begin(), sums.end(), transformed.begin() + column * c.m + first);
    }
  numerics::QuantizeOptions options;
  options.rowwise = numerics::SideOptions{};
  options.rowwise->amax = amax;
  auto model =
      numerics::quantizeMatrix(*numerics::lookupRecipe(c.recipe), transformed, c.k, c.m, options);
  ASSERT_TRUE(model);
  EXPECT_EQ(compare(c, result, *model->rowwise), "");
  std::vector<float> exact(c.k * c.m);
  for (uint64_t i = 0; i < exact.size(); ++i)
    exact[i] = values[i % c.m * c.k + i / c.m];
  numerics::HadamardOptions sum;
  sum.arithmetic = numerics::HadamardArithmetic::ExactSum;
  ASSERT_TRUE(numerics::hadamardRows(exact, c.k, c.m, sum));
  unsigned different = 0;
  for (uint64_t i = 0; i < exact.size(); ++i) {
    const bool inBlock = i / c.m == 3 && i % c.m < 16;
    different += exact[i] != transformed[i];
    EXPECT_TRUE(inBlock || exact[i] == transformed[i]) << i;
  }
  EXPECT_GT(different, 0u);
}

TEST(TransformKernel, CutsLikeATensorCore) {
  expectCuts({.m = 64, .k = 8, .tiled = false});
  expectCuts({.m = 64, .k = 8, .tiled = false, .warps = true});
}

} // namespace
