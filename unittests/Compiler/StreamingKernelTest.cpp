//===- StreamingKernelTest.cpp - Emitted kernels against the recipes ------===//
//
// Every streaming kernel, compiled and executed, must equal lib/Numerics bit for bit, and the
// quantizers must equal the golden vectors of unittests/Numerics/data without lib/Numerics.
// Grids are smaller than the work, so that loops take more than one step.
//
//===----------------------------------------------------------------------===//
#include "../Numerics/TestData.h"
#include "KernelRun.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"

#include <bit>
#include <fmt/format.h>
#include <limits>

using namespace fp4;
using fp4::numerics::BlockFormat;
using fp4::numerics::FloatType;
using fp4::test::Buffer;
using fp4::test::KernelRun;

namespace {

constexpr uint8_t kUntouched = 0xEE;

struct QuantizeCase {
  std::string recipe;
  FloatType type = FloatType::BF16;
  uint64_t columns = 16;
  bool tiled = false;
  std::string target = "sm_100a";

  const numerics::Recipe &description() const { return *numerics::lookupRecipe(recipe); }
  bool isNVFP4() const { return description().format == BlockFormat::NVFP4; }
  bool hasAmax() const { return isNVFP4() && description().global != numerics::GlobalRule::One; }
  uint64_t blockSize() const { return numerics::blockSizeOf(description().format); }
  uint64_t blocksPerRow() const { return (columns + blockSize() - 1) / blockSize(); }
  /// Codes of 4 bits lie in pairs, the others in a byte each.
  uint64_t codeBytes(uint64_t count) const {
    return numerics::isPacked(description().format) ? (count + 1) / 2 : count;
  }
  uint64_t pitch() const { return (codeBytes(columns) + 15) / 16 * 16; }
  uint64_t scaleBytes(uint64_t rows) const {
    return tiled ? hw::tiled128x4Bytes(rows, blocksPerRow()) : rows * blocksPerRow();
  }
};

const char *elementName(BlockFormat format) {
  switch (format) {
  case BlockFormat::NVFP4:
  case BlockFormat::MXFP4:
    return "f4E2M1FN";
  case BlockFormat::MXFP6E2M3:
    return "f6E2M3FN";
  case BlockFormat::MXFP6E3M2:
    return "f6E3M2FN";
  case BlockFormat::FP8Block128:
  case BlockFormat::MXFP8E4M3:
    return "f8E4M3FN";
  case BlockFormat::MXFP8E5M2:
    return "f8E5M2";
  }
  return "";
}

std::string quantizeModule(const QuantizeCase &c) {
  std::string format(numerics::stringify(c.description().format));
  std::string amax = c.hasAmax() ? "amax %a " : "";
  std::string data =
      fmt::format("tensor<?x{}x{}>", c.columns, elementName(c.description().format));
  std::string scales =
      fmt::format("tensor<?x{}x{}{}>", c.blocksPerRow(), c.isNVFP4() ? "f8E4M3FN" : "f8E8M0FNU",
                  c.tiled ? ", #fp4.scale_layout<tiled_128x4>" : "");
  std::string input = fmt::format("tensor<?x{}x{}>", c.columns, numerics::stringify(c.type));
  return fmt::format(
      "func.func @f(%x: {}, %a: tensor<f32>) -> ({}, {}) {{\n"
      "  %q, %s = fp4.quantize %x {}{{format = #fp4.format<{}>, recipe = #fp4.recipe<{}>,\n"
      "      fp4.plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>}}\n"
      "      : ({}{}) -> ({}, {})\n"
      "  return %q, %s : {}, {}\n}}\n",
      input, data, scales, amax, format, c.recipe, input, c.hasAmax() ? ", tensor<f32>" : "", data,
      scales, data, scales);
}

struct Quantized {
  std::vector<uint8_t> data, scales; ///< data rows have the padded pitch
};

/// Runs the quantizer of `kernel` on values that are exact in the type of `c`.
Quantized runQuantize(KernelRun &kernel, const QuantizeCase &c, const std::vector<float> &values,
                      float amax) {
  uint64_t rows = values.size() / c.columns;
  uint64_t blocks = c.tiled ? c.scaleBytes(rows) : rows * c.blocksPerRow();
  Buffer x = kernel.upload(numerics::encodeFloats(c.type, values));
  Buffer data = kernel.allocate(rows * c.pitch(), kUntouched);
  Buffer scales = kernel.allocate(c.scaleBytes(rows), kUntouched);
  auto grid = static_cast<uint32_t>((blocks + 255) / 256);
  if (c.hasAmax())
    kernel.launch("f_quantize_0", grid, x, kernel.upload(std::vector<float>{amax}), data, scales,
                  static_cast<int32_t>(rows));
  else
    kernel.launch("f_quantize_0", grid, x, data, scales, static_cast<int32_t>(rows));
  return {kernel.download<uint8_t>(data), kernel.download<uint8_t>(scales)};
}

/// "SS:codes SS:codes", the notation of the golden vectors, for rows of one block.
std::string notation(const Quantized &quantized, uint64_t blockSize) {
  std::string text;
  size_t pitch = quantized.data.size() / quantized.scales.size();
  for (size_t block = 0; block < quantized.scales.size(); ++block) {
    text += fmt::format("{}{:02x}:", block ? " " : "", quantized.scales[block]);
    for (size_t i = 0; i < blockSize; ++i) {
      uint8_t byte = quantized.data[block * pitch + i / 2];
      text += fmt::format("{:x}", i % 2 ? byte >> 4 : byte & 15);
    }
  }
  return text;
}

std::vector<float> valuesOf(const nlohmann::json &hex) {
  std::vector<float> values;
  for (const auto &entry : hex)
    if (entry.is_array())
      for (float value : valuesOf(entry))
        values.push_back(value);
    else
      values.push_back(std::bit_cast<float>(
          static_cast<uint32_t>(std::stoul(entry.get<std::string>(), nullptr, 16))));
  return values;
}

/// Values of many magnitudes: normal rows, rows scaled to subnormal scales, exact ties, zeros.
std::vector<float> mixedValues(uint64_t count, FloatType type, uint64_t seed) {
  test::Random random(seed);
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t block = i / 16;
    float tie = std::array{.25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.f, -0.f}[random.below(8)];
    float value = block % 4 == 1 ? tie : random.gaussian();
    value = std::ldexp(value, block % 7 == 3 ? -12 : block % 11 == 5 ? 9 : 0);
    values[i] = numerics::roundTo(type, block % 13 == 6 ? 0.f : value);
  }
  return values;
}

/// mixedValues with every special value in some block.
std::vector<float> specialValues(uint64_t count, FloatType type, uint64_t seed) {
  std::vector<float> values = mixedValues(count, type, seed);
  const float inf = std::numeric_limits<float>::infinity(), least = std::ldexp(1.f, -133);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array specials = {nan, -nan, inf, -inf, -0.f, least, -least, 3e38f};
  for (uint64_t i = 5; i < count; i += 37)
    values[i] = numerics::roundTo(type, specials[i / 37 % specials.size()]);
  return values;
}

void expectEqual(KernelRun &kernel, const QuantizeCase &c, const std::vector<float> &values,
                 float amax) {
  uint64_t rows = values.size() / c.columns;
  SCOPED_TRACE(fmt::format("{} {} {} {}x{}{} {}", c.target, c.recipe, numerics::stringify(c.type),
                           rows, c.columns, c.tiled ? " tiled" : "", amax));
  Quantized got = runQuantize(kernel, c, values, amax);
  numerics::QuantizeOptions options;
  options.rowwise->amax = amax;
  if (c.tiled)
    options.layout = numerics::ScaleLayout::Tiled128x4;
  auto pair = numerics::quantizeMatrix(c.description(), values, rows, c.columns, options);
  ASSERT_TRUE(pair);
  const numerics::QuantizedSide &expected = *pair->rowwise;
  EXPECT_EQ(got.scales, expected.scales);
  uint64_t dense = c.codeBytes(c.columns);
  uint64_t written = c.codeBytes(c.blocksPerRow() * c.blockSize());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t byte = 0; byte < c.pitch(); ++byte) {
      uint8_t want = byte < dense     ? expected.data[row * dense + byte]
                     : byte < written ? 0
                                      : kUntouched;
      ASSERT_EQ(got.data[row * c.pitch() + byte], want) << "row " << row << ", byte " << byte;
    }
}

void expectEqual(const QuantizeCase &c, const std::vector<float> &values, float amax) {
  KernelRun kernel(quantizeModule(c), c.target);
  expectEqual(kernel, c, values, amax);
}

void expectRecipe(const QuantizeCase &c, uint64_t rows) {
  std::vector<float> values = mixedValues(rows * c.columns, c.type, rows + c.columns);
  expectEqual(c, values, numerics::amax(values));
}

} // namespace

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

TEST(Quantize, GoldenVectorsNVFP4) {
  nlohmann::json vectors = test::readJson("numerics_vectors.json");
  ASSERT_FALSE(vectors.is_discarded());
  for (auto [recipe, key] :
       {std::pair("transformer_engine", "te214"), std::pair("transformer_engine_2_13", "te213")}) {
    QuantizeCase c{recipe, FloatType::F32, 16};
    KernelRun kernel(quantizeModule(c));
    for (const auto &vector : vectors["nv"]) {
      SCOPED_TRACE(vector["name"].get<std::string>());
      std::vector<float> values = valuesOf(vector["x_fp32_hex"]);
      const auto &given = vector["tensor_amax_override"];
      float amax = given.is_null() ? numerics::amax(values) : given.get<float>();
      Quantized got = runQuantize(kernel, c, values, amax);
      EXPECT_EQ(notation(got, 16), vector["model"][key].get<std::string>()) << recipe;
    }
  }
}

TEST(Quantize, GoldenVectorsMXFP4) {
  nlohmann::json vectors = test::readJson("numerics_vectors.json");
  for (auto [recipe, key] : {std::pair("ocp_floor", "floor"), std::pair("ocp_ceil", "ceil"),
                             std::pair("ocp_even", "even"), std::pair("ocp_rceil", "rceil")}) {
    QuantizeCase c{recipe, FloatType::F32, 32};
    KernelRun kernel(quantizeModule(c));
    for (const auto &vector : vectors["mx"]) {
      SCOPED_TRACE(vector["name"].get<std::string>());
      Quantized got = runQuantize(kernel, c, valuesOf(vector["x_fp32_hex"]), 0);
      std::string expected = vector["model"][key].get<std::string>();
      // A NaN scale makes every element NaN, whose code is the platform's: 7 on ours.
      if (expected.starts_with("ff:"))
        expected = "ff:" + std::string(32, '7');
      EXPECT_EQ(notation(got, 32), expected) << recipe;
    }
  }
}

TEST(Quantize, EveryRecipe) {
  for (const numerics::Recipe &recipe : numerics::recipes()) {
    if (numerics::hasF32Scales(recipe.format)) // test/Runner/Quantize/fp8-quantize.mlir
      continue;
    for (const char *target : {"sm_90a", "sm_100a"}) {
      QuantizeCase c{std::string(recipe.name), FloatType::BF16, 96, false, target};
      expectRecipe(c, 5);
      // A tensor amax that belongs to other values, and specials among the elements.
      expectEqual(c, specialValues(40 * 96, FloatType::BF16, 7), 1000.f);
    }
  }
}

TEST(Quantize, EveryType) {
  for (const char *recipe : {"transformer_engine", "torchao", "four_over_six", "ocp_rceil"})
    for (FloatType type : {FloatType::F16, FloatType::F32})
      for (const char *target : {"sm_90a", "sm_100a"}) {
        QuantizeCase c{recipe, type, 96, false, target};
        expectRecipe(c, 5);
        expectEqual(c, specialValues(40 * 96, type, 3), 77.f);
      }
}

TEST(Quantize, AmaxOfAnyKind) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char *recipe : {"transformer_engine", "torchao", "cutlass"})
    for (float amax : {0.f, 1e-38f, 7.9e-36f, 3e38f, inf, nan})
      expectEqual({recipe, FloatType::F32, 16}, mixedValues(33 * 16, FloatType::F32, 5), amax);
}

/// Blocks whose factor or products overflow, or are subnormal, at the ends of what bf16 has.
TEST(Quantize, ExtremeBlocks) {
  for (const char *recipe : {"transformer_engine", "torchao", "flashinfer", "pytorch_eager",
                             "four_over_six", "four_over_six_largest"}) {
    QuantizeCase c{recipe, FloatType::BF16, 16, false, "sm_90a"};
    KernelRun kernel(quantizeModule(c), c.target);
    std::vector<float> values = mixedValues(40 * 16, FloatType::BF16, 5);
    for (int exponent : {-125, -110, -60, 0, 60, 110, 123}) {
      std::vector<float> scaled = values;
      for (float &value : scaled)
        value = numerics::roundTo(FloatType::BF16, std::ldexp(value, exponent));
      float own = numerics::amax(scaled);
      for (float amax : {own, own * 0x1p-20f, own * 0x1p20f, 1.f})
        expectEqual(kernel, c, scaled, amax);
    }
  }
}

/// Elements that become halfway values: the quotient by 21 = 2688 / 128 is a short number for some
/// amaxes, and all significands occur.
TEST(Quantize, TiesOfEveryFactor) {
  test::Random random(3);
  std::vector<float> values(16 * 1024);
  for (float &value : values) {
    int exponent = static_cast<int>(random.below(7));
    value = std::ldexp(static_cast<float>(128 + random.below(128)), -exponent);
    value = random.below(2) ? -value : value;
  }
  for (FloatType type : {FloatType::BF16, FloatType::F16})
    for (const char *recipe : {"transformer_engine", "flashinfer"}) {
      QuantizeCase c{recipe, type, 1024, false, "sm_90a"};
      KernelRun kernel(quantizeModule(c), c.target);
      for (float amax : {129.f, 147.f, 168.f, 175.f, 189.f, 225.f, 240.f, 252.f, 255.f, 256.f})
        expectEqual(kernel, c, values, amax);
    }
}

TEST(Quantize, Shapes) {
  expectRecipe({"transformer_engine", FloatType::BF16, 16}, 1);
  expectRecipe({"transformer_engine", FloatType::BF16, 80}, 129); // pitch 48, 40 dense bytes
  expectRecipe({"transformer_engine", FloatType::BF16, 272}, 33);
  expectRecipe({"transformer_engine", FloatType::BF16, 4096}, 2);
  expectRecipe({"ocp_floor", FloatType::BF16, 64}, 300);
}

/// Rows that end in a shorter block, of every alignment.
TEST(Quantize, Remainders) {
  for (FloatType type : {FloatType::BF16, FloatType::F16, FloatType::F32})
    for (uint64_t columns : {1, 7, 8, 17, 24, 28, 31, 50, 108})
      expectRecipe({"transformer_engine", type, columns, false, "sm_90a"}, 19);
  expectRecipe({"transformer_engine", FloatType::BF16, 31}, 19);
  // Zeros behind the end meet an infinite factor: their codes are zero all the same.
  expectRecipe({"mslk_1_3", FloatType::BF16, 21}, 70);
}

/// Scales where a GEMM reads them, padding zero.
TEST(Quantize, TiledScales) {
  for (auto [rows, columns] : {std::pair<uint64_t, uint64_t>(1, 16),
                               {128, 64},
                               {130, 96},
                               {300, 272},
                               {33, 1024},
                               {129, 40}}) {
    expectRecipe({"transformer_engine", FloatType::BF16, columns, true, "sm_90a"}, rows);
    expectRecipe({"transformer_engine", FloatType::BF16, columns, true}, rows);
  }
  expectRecipe({"ocp_rceil", FloatType::BF16, 96, true}, 140);
}

//===----------------------------------------------------------------------===//
// amax, matmul_alpha, dequantize
//===----------------------------------------------------------------------===//

TEST(Amax, SkipsNaNAndCoversTails) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (FloatType type : {FloatType::BF16, FloatType::F16, FloatType::F32})
    for (uint64_t columns : {1, 7, 16, 33}) {
      SCOPED_TRACE(fmt::format("{} {}", numerics::stringify(type), columns));
      KernelRun kernel(fmt::format("func.func @f(%x: tensor<?x{0}x{1}>) -> tensor<f32> {{\n"
                                   "  %0 = fp4.amax %x : tensor<?x{0}x{1}> -> tensor<f32>\n"
                                   "  return %0 : tensor<f32>\n}}\n",
                                   columns, numerics::stringify(type)));
      Buffer words = kernel.allocate(8, 0); // of all launches, each of which leaves them zero
      auto amax = [&](const std::vector<float> &values) {
        uint64_t perChunk = 32 / numerics::sizeOf(type);
        int32_t chunks = values.size() / perChunk, tail = values.size() % perChunk;
        Buffer x = kernel.upload(numerics::encodeFloats(type, values));
        Buffer result = kernel.allocate(4);
        if (columns % perChunk != 0)
          kernel.launch("f_amax_0", 2, x, result, chunks, tail, words);
        else
          kernel.launch("f_amax_0", 2, x, result, chunks, words);
        EXPECT_EQ(kernel.download<uint64_t>(words)[0], 0u);
        return kernel.download<float>(result)[0];
      };
      for (uint64_t rows : {1, 3, 700}) {
        std::vector<float> values = mixedValues(rows * columns, type, rows);
        EXPECT_EQ(amax(values), numerics::amax(values)) << rows;
        values.back() = -32768; // the last element of the residue
        EXPECT_EQ(amax(values), 32768) << rows;
        values.front() = nan;
        EXPECT_EQ(amax(values), rows * columns == 1 ? 0 : 32768) << rows;
        values.back() = -inf;
        EXPECT_EQ(amax(values), inf) << rows;
        EXPECT_EQ(amax(std::vector<float>(values.size(), nan)), 0) << rows;
        EXPECT_EQ(std::bit_cast<uint32_t>(amax(std::vector<float>(values.size(), -0.f))), 0u);
      }
    }
}

TEST(Amax, KeepsNaNWhereAsked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (FloatType type : {FloatType::BF16, FloatType::F32})
    for (uint64_t at : {0, 40, 98}) { // 98: in the residue
      std::string input = fmt::format("tensor<3x33x{}>", numerics::stringify(type));
      KernelRun kernel(
          fmt::format("func.func @f(%x: {0}) -> tensor<f32> {{\n"
                      "  %0 = fp4.amax %x {{nan = #fp4.nan_policy<propagate>}} : {0} -> "
                      "tensor<f32>\n  return %0 : tensor<f32>\n}}\n",
                      input));
      std::vector<float> values = mixedValues(99, type, at);
      auto amax = [&] {
        int32_t perChunk = 32 / numerics::sizeOf(type);
        Buffer x = kernel.upload(numerics::encodeFloats(type, values));
        Buffer result = kernel.allocate(4), words = kernel.allocate(8, 0);
        kernel.launch("f_amax_0", 1, x, result, 99 / perChunk, 99 % perChunk, words);
        return std::bit_cast<uint32_t>(kernel.download<float>(result)[0]);
      };
      EXPECT_EQ(amax(), std::bit_cast<uint32_t>(numerics::amax(values)));
      values[at] = -nan;
      EXPECT_EQ(amax(),
                std::bit_cast<uint32_t>(numerics::amax(values, numerics::NanPolicy::Propagate)));
    }
}

TEST(MatmulAlpha, IsTransformerEngines) {
  KernelRun kernel("func.func @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n"
                   "  %0 = fp4.matmul_alpha %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>\n"
                   "  return %0 : tensor<f32>\n}\n");
  test::Random random(1);
  for (int i = 0; i < 50; ++i) {
    float a = random.gaussian(), b = random.gaussian();
    Buffer result = kernel.allocate(4);
    kernel.launch("f_matmul_alpha_0", 1, kernel.upload(std::vector{a}),
                  kernel.upload(std::vector{b}), result);
    volatile float product = a * b; // rounded before the second multiplication
    EXPECT_EQ(kernel.download<float>(result)[0], product * (1.0f / 7225344.0f));
  }
}

/// One recipe of each formula; the amaxes of rows make an alpha each.
TEST(MatmulAlpha, IsTheRecipes) {
  for (const char *name : {"modelopt", "vllm", "compressed_tensors"}) {
    const std::string type = fmt::format("#fp4.recipe<{}>", name);
    KernelRun kernel(fmt::format(
        "func.func @f(%a: tensor<?xf32>, %b: tensor<f32>) -> tensor<?x1xf32> {{\n"
        "  %0 = fp4.matmul_alpha %a, %b {{lhs_recipe = {0}, rhs_recipe = {0}}}\n"
        "    : tensor<?xf32>, tensor<f32> -> tensor<?x1xf32>\n"
        "  return %0 : tensor<?x1xf32>\n}}\n", type));
    test::Random random(3);
    std::vector<float> amaxes(300), other = {0.7f};
    for (float &amax : amaxes)
      amax = std::fabs(random.gaussian());
    amaxes[0] = 0;
    Buffer result = kernel.allocate(4 * amaxes.size());
    kernel.launch("f_matmul_alpha_0", 1, kernel.upload(amaxes), kernel.upload(other), result,
                  static_cast<int32_t>(amaxes.size()));
    const numerics::Recipe &recipe = *numerics::lookupRecipe(name);
    const auto expected = numerics::matmulAlpha(recipe, amaxes, recipe, other);
    const auto got = kernel.download<float>(result);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
          << name << " " << amaxes[i];
  }
}

/// One recipe of each formula.
TEST(Dequantize, EveryCodeAndScale) {
  for (const char *name : {"transformer_engine", "torchao", "torchao_cuda", "flashinfer", "vllm",
                           "ocp_floor", "mxfp4_flashinfer"})
    for (FloatType type : {FloatType::BF16, FloatType::F16, FloatType::F32}) {
      const numerics::Recipe &recipe = *numerics::lookupRecipe(name);
      bool nvfp4 = recipe.format == BlockFormat::NVFP4;
      SCOPED_TRACE(fmt::format("{} {}", name, numerics::stringify(type)));
      // Every scale byte has a row of its own. 32 columns are 16 bytes: rows without padding.
      uint64_t rows = 256, columns = 32, blocksPerRow = nvfp4 ? 2 : 1;
      std::string q = fmt::format("tensor<?x{}xf4E2M1FN>", columns);
      std::string s = nvfp4 ? "tensor<?x2xf8E4M3FN>" : "tensor<?x1xf8E8M0FNU>";
      std::string y = fmt::format("tensor<?x{}x{}>", columns, numerics::stringify(type));
      KernelRun kernel(
          fmt::format("func.func @f(%q: {0}, %s: {1}, %a: tensor<f32>) -> {2} {{\n"
                      "  %0 = fp4.dequantize %q scaled %s {3}{{format = #fp4.format<{4}>, "
                      "recipe = #fp4.recipe<{6}>}}\n"
                      "      : ({0}, {1}{5}) -> {2}\n"
                      "  return %0 : {2}\n}}\n",
                      q, s, y, nvfp4 ? "amax %a " : "", numerics::stringify(recipe.format),
                      nvfp4 ? ", tensor<f32>" : "", name));
      std::vector<uint8_t> data, scales;
      for (uint64_t row = 0; row < rows; ++row) {
        scales.insert(scales.end(), blocksPerRow, row);
        for (uint64_t byte = 0; byte < columns / 2; ++byte)
          data.push_back((byte * 2 % 16) | ((byte * 2 + 1) % 16) << 4);
      }
      float amax = 3.14f;
      Buffer result = kernel.allocate(rows * columns * numerics::sizeOf(type));
      auto run = [&](auto... scalars) {
        kernel.launch("f_dequantize_0", 2, kernel.upload(data), kernel.upload(scales), scalars...,
                      result, static_cast<int32_t>(rows));
      };
      if (nvfp4)
        run(kernel.upload(std::vector{amax}));
      else
        run();
      auto expected = numerics::dequantizeRows(recipe, data, scales, rows, columns, amax);
      ASSERT_TRUE(expected);
      auto got = kernel.download<std::byte>(result);
      std::vector<float> values = numerics::decodeFloats(type, got);
      for (uint64_t i = 0; i < values.size(); ++i) {
        float want = numerics::roundTo(type, (*expected)[i]);
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(values[i])) << i;
        else
          EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(want)) << i;
      }
    }
}

//===----------------------------------------------------------------------===//
// swizzle_scales, unswizzle_scales
//===----------------------------------------------------------------------===//

TEST(Scales, SwizzleAndBack) {
  const std::string tiled = ", #fp4.scale_layout<tiled_128x4>>";
  for (auto [rows, blocks] :
       {std::pair<uint64_t, uint64_t>(1, 1), {128, 4}, {130, 6}, {300, 17}, {127, 64}, {33, 3}}) {
    SCOPED_TRACE(fmt::format("{}x{}", rows, blocks));
    std::string shape = fmt::format("tensor<{}x{}xf8E4M3FN", rows, blocks);
    KernelRun kernel(fmt::format("func.func @f(%s: {0}>, %t: {0}{1}) -> ({0}{1}, {0}>) {{\n"
                                 "  %0 = fp4.swizzle_scales %s : {0}> -> {0}{1}\n"
                                 "  %1 = fp4.unswizzle_scales %t : {0}{1} -> {0}>\n"
                                 "  return %0, %1 : {0}{1}, {0}>\n}}\n",
                                 shape, tiled));
    test::Random random(rows * blocks);
    std::vector<uint8_t> linear(rows * blocks);
    for (uint8_t &byte : linear)
      byte = random.byte();
    std::vector<uint8_t> expected(hw::tiled128x4Bytes(rows, blocks), 0);
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t block = 0; block < blocks; ++block)
        expected[hw::tiled128x4Offset(row, block, blocks)] = linear[row * blocks + block];

    Buffer swizzled = kernel.allocate(expected.size(), kUntouched);
    int32_t items = expected.size() / 16;
    kernel.launch("f_swizzle_scales_0", 1, kernel.upload(linear), swizzled,
                  static_cast<int32_t>(rows), items);
    EXPECT_EQ(kernel.download<uint8_t>(swizzled), expected);

    Buffer back = kernel.allocate(linear.size(), kUntouched);
    items = rows * ((blocks + 3) / 4);
    kernel.launch("f_unswizzle_scales_0", 1, swizzled, back, items);
    EXPECT_EQ(kernel.download<uint8_t>(back), linear);
  }
}
