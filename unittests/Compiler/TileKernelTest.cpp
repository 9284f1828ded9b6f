//===- TileKernelTest.cpp - Both orientations against quantizeMatrix ------===//
//
// The kernels of fp4.quantize with outputs columnwise and both and with square blocks must equal
// numerics::quantizeMatrix bit for bit: codes, scales in either layout, and the bytes around them,
// which must stay as they were or be the zeros of a padding.
//
//===----------------------------------------------------------------------===//
#include "../Numerics/TestData.h"
#include "KernelRun.h"

#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/QuantizeMatrix.h"

#include <cmath>
#include <fmt/format.h>

using namespace fp4;
using fp4::numerics::BlockFormat;
using fp4::numerics::FloatType;
using fp4::test::Buffer;
using fp4::test::KernelRun;

namespace {

constexpr uint8_t kUntouched = 0xEE;

struct Case {
  std::string recipe = "transformer_engine";
  FloatType type = FloatType::BF16;
  uint64_t rows = 0, columns = 0;
  bool rowwise = true, columnwise = true, square = false, tiled = false;
  bool dynamicRows = false;
  unsigned hadamard = 0, columnwiseHadamard = 0; ///< sizes
  bool stochastic = false, blockwisePhilox = false, ownAmax = false;
  std::string target = "sm_100a";

  const numerics::Recipe &description() const { return *numerics::lookupRecipe(recipe); }
  bool hasTensorScale() const { return numerics::hasTensorScale(description()); }
  bool nvfp4() const { return description().format == BlockFormat::NVFP4; }
  uint64_t blockSize() const { return nvfp4() ? 16 : 32; }
  std::string name() const {
    return fmt::format("{} {} {} {}x{}{}{}{}{} hadamard {} {}{}{}", target, recipe,
                       numerics::stringify(type), rows, columns, rowwise ? " rowwise" : "",
                       columnwise ? " columnwise" : "", square ? " square" : "",
                       tiled ? " tiled" : "", hadamard, columnwiseHadamard,
                       stochastic ? " stochastic" : "", blockwisePhilox ? " blockwise" : "");
  }
};

std::string module(const Case &c) {
  auto data = [&](auto rows, auto columns) {
    return fmt::format("tensor<{}x{}xf4E2M1FN>", rows, columns);
  };
  auto scales = [&](auto rows, auto blocks) {
    return fmt::format("tensor<{}x{}x{}{}>", rows, blocks, c.nvfp4() ? "f8E4M3FN" : "f8E8M0FNU",
                       c.tiled ? ", #fp4.scale_layout<tiled_128x4>" : "");
  };
  std::string rows = c.dynamicRows ? "?" : std::to_string(c.rows), results;
  std::string blocks =
      c.dynamicRows ? "?" : std::to_string((c.rows + c.blockSize() - 1) / c.blockSize());
  if (c.rowwise)
    results += data(rows, c.columns) + ", " +
               scales(rows, (c.columns + c.blockSize() - 1) / c.blockSize());
  if (c.columnwise)
    results += (c.rowwise ? ", " : "") + data(c.columns, rows) + ", " + scales(c.columns, blocks);
  std::string outputs = !c.columnwise ? "rowwise" : c.rowwise ? "both" : "columnwise";
  std::string input = fmt::format("tensor<{}x{}x{}>", rows, c.columns, numerics::stringify(c.type));
  int count = c.rowwise && c.columnwise ? 4 : 2;
  std::string operands, types, attributes;
  if (c.hasTensorScale())
    operands += "amax %a ", types += ", tensor<f32>";
  if (c.ownAmax)
    operands += "columnwise_amax %b ", types += ", tensor<f32>";
  if (c.stochastic)
    operands += "rng %r ", types += ", tensor<2xi64>",
        attributes += ", rounding = #fp4.rounding<stochastic>";
  if (c.square)
    attributes += ", block = array<i64: 16, 16>";
  if (c.hadamard)
    attributes += fmt::format(", hadamard = #fp4.hadamard<size = {}>", c.hadamard);
  if (c.columnwiseHadamard)
    attributes +=
        fmt::format(", columnwise_hadamard = #fp4.hadamard<size = {}>", c.columnwiseHadamard);
  if (c.blockwisePhilox)
    attributes += ", philox = #fp4.philox<transformer_engine>";
  return fmt::format(
      "func.func @f(%x: {0}, %a: tensor<f32>, %b: tensor<f32>, %r: tensor<2xi64>) -> ({1}) {{\n"
      "  %q:{2} = fp4.quantize %x {3}{{format = #fp4.format<{4}>, recipe = #fp4.recipe<{5}>,\n"
      "      outputs = #fp4.outputs<{6}>{7}}} : ({0}{8}) -> ({1})\n"
      "  return {9} : {1}\n}}\n",
      input, results, count, operands, numerics::stringify(c.description().format), c.recipe,
      outputs, attributes, types, count == 4 ? "%q#0, %q#1, %q#2, %q#3" : "%q#0, %q#1");
}

/// Values of many magnitudes: normal rows, rows scaled to subnormal scales, exact ties, zeros.
std::vector<float> mixedValues(const Case &c) {
  test::Random random(c.rows + c.columns);
  std::vector<float> values(c.rows * c.columns);
  for (uint64_t i = 0; i < values.size(); ++i) {
    uint64_t block = i / 16;
    float tie = std::array{.25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.f, -0.f}[random.below(8)];
    float value = block % 4 == 1 ? tie : random.gaussian();
    value = std::ldexp(value, block % 7 == 3 ? -12 : block % 11 == 5 ? 9 : 0);
    values[i] = numerics::roundTo(c.type, block % 13 == 6 ? 0.f : value);
  }
  return values;
}

/// The device buffers of one output.
struct SideBuffers {
  uint64_t pitch;
  Buffer data, scales;

  SideBuffers(KernelRun &kernel, const numerics::QuantizedSide &side)
      : pitch((side.rowBytes() + 15) / 16 * 16),
        data(kernel.allocate(side.rows * pitch, kUntouched)),
        scales(kernel.allocate(side.scales.size(), kUntouched)) {}

  void expect(KernelRun &kernel, const numerics::QuantizedSide &side) {
    std::vector<uint8_t> got = kernel.download<uint8_t>(data);
    for (uint64_t row = 0; row < side.rows; ++row)
      for (uint64_t byte = 0; byte < side.rowBytes(); ++byte)
        ASSERT_EQ(got[row * pitch + byte], side.data[row * side.rowBytes() + byte])
            << "row " << row << ", byte " << byte;
    EXPECT_EQ(kernel.download<uint8_t>(scales), side.scales);
  }
};

void expectCase(const Case &c) {
  SCOPED_TRACE(c.name());
  std::vector<float> values = mixedValues(c);
  float amax = numerics::amax(values), columnwiseAmax = c.ownAmax ? amax * .75f : amax;
  constexpr uint64_t seed = 0x1234'5678'9ABC'DEF0, offset = 0xFFFF'FFFF;
  auto side = [&](float amax, unsigned hadamard) {
    numerics::SideOptions side;
    side.amax = amax;
    if (hadamard)
      side.hadamard = numerics::HadamardOptions{.blockSize = hadamard};
    if (c.stochastic)
      side.stochastic = {.seed = seed,
                         .offset = offset,
                         .mapping = c.blockwisePhilox
                                        ? numerics::PhiloxMapping::TransformerEngineBlockwise
                                        : numerics::PhiloxMapping::Element};
    return side;
  };
  numerics::QuantizeOptions options;
  options.rowwise.reset();
  if (c.rowwise)
    options.rowwise = side(amax, c.hadamard);
  if (c.columnwise)
    options.columnwise = side(columnwiseAmax, c.columnwiseHadamard);
  options.squareBlocks = c.square;
  options.layout = c.tiled ? numerics::ScaleLayout::Tiled128x4 : numerics::ScaleLayout::Linear;
  auto expected = numerics::quantizeMatrix(c.description(), values, c.rows, c.columns, options);
  ASSERT_TRUE(expected) << expected.error().message;

  KernelRun kernel(module(c), c.target);
  Buffer x = kernel.upload(numerics::encodeFloats(c.type, values));
  std::vector<Buffer> buffers = {x};
  if (c.hasTensorScale())
    buffers.push_back(kernel.upload(std::vector<float>{amax}));
  if (c.ownAmax)
    buffers.push_back(kernel.upload(std::vector<float>{columnwiseAmax}));
  if (c.stochastic)
    buffers.push_back(kernel.upload(std::vector<uint64_t>{seed, offset}));
  std::vector<SideBuffers> sides;
  std::vector<const numerics::QuantizedSide *> references;
  for (auto *reference : {&expected->rowwise, &expected->columnwise})
    if (*reference) {
      sides.emplace_back(kernel, **reference);
      references.push_back(&**reference);
      buffers.insert(buffers.end(), {sides.back().data, sides.back().scales});
    }
  uint64_t tileColumns = 256 / numerics::sizeOf(c.type);
  uint64_t grid = (c.columns + tileColumns - 1) / tileColumns;
  if (c.tiled && tileColumns == 64)
    grid += grid % 2;
  grid *= (c.rows + 127) / 128;
  kernel.launchBuffers("f_quantize_0", grid, buffers,
                       c.dynamicRows ? std::optional<int32_t>(c.rows) : std::nullopt);
  for (size_t i = 0; i < sides.size(); ++i) {
    SCOPED_TRACE(i == 0 && c.rowwise ? "rowwise" : "columnwise");
    sides[i].expect(kernel, *references[i]);
  }
}

void expectShapes(Case c, std::initializer_list<std::pair<uint64_t, uint64_t>> shapes) {
  for (auto [rows, columns] : shapes) {
    c.rows = rows;
    c.columns = columns;
    expectCase(c);
  }
}

} // namespace

/// Whole tiles, parts of one, one block, less than a block, several tiles with ragged ends.
const std::initializer_list<std::pair<uint64_t, uint64_t>> kShapes = {
    {128, 256}, {32, 48}, {16, 16}, {1, 1}, {5, 16}, {16, 3}, {131, 145}};

TEST(TileKernel, BothOrientations) {
  for (bool tiled : {false, true})
    expectShapes({.tiled = tiled}, kShapes);
}

TEST(TileKernel, Columnwise) {
  expectShapes({.rowwise = false}, {{48, 272}, {17, 33}});
  expectShapes({.rowwise = false, .tiled = true}, {{130, 80}});
}

TEST(TileKernel, DynamicRows) {
  for (bool tiled : {false, true})
    for (bool square : {false, true})
      expectShapes({.square = square, .tiled = tiled, .dynamicRows = true},
                   {{128, 144}, {131, 35}});
}

TEST(TileKernel, SquareBlocks) {
  for (bool tiled : {false, true}) {
    expectShapes({.square = true, .tiled = tiled}, kShapes);
    expectShapes({.rowwise = false, .square = true, .tiled = tiled}, {{17, 133}});
    expectShapes({.columnwise = false, .square = true, .tiled = tiled}, {{17, 133}});
  }
}

TEST(TileKernel, Types) {
  for (FloatType type : {FloatType::F16, FloatType::F32})
    for (bool square : {false, true})
      expectShapes({.type = type, .square = square, .tiled = !square},
                   {{144, 144}, {131, 71}, {40, 64}});
}

TEST(TileKernel, MXFP4) {
  for (FloatType type : {FloatType::BF16, FloatType::F16, FloatType::F32})
    expectShapes({.recipe = "ocp_rceil", .type = type, .tiled = type != FloatType::F16},
                 {{128, 128}, {160, 96}});
}

/// Square blocks combine values over threads: NaN that stays, and each way to add errors.
TEST(TileKernel, SquareRecipes) {
  for (const char *recipe : {"torchao", "torchao_1level", "four_over_six", "four_over_six_squared",
                             "four_over_six_largest"})
    expectShapes({.recipe = recipe, .square = true}, {{25, 41}});
}

TEST(TileKernel, WithoutConversionInstructions) {
  expectShapes({.target = "sm_90a"}, {{131, 145}});
  expectShapes({.square = true, .target = "sm_90a"}, {{131, 145}});
  expectShapes({.recipe = "ocp_floor", .target = "sm_90a"}, {{160, 96}});
}

//===----------------------------------------------------------------------===//
// Transforms, random bits
//===----------------------------------------------------------------------===//

/// TransformerEngine's training: activations and gradients.
TEST(TileKernel, TrainingRecipes) {
  for (const char *target : {"sm_100a", "sm_90a"}) {
    expectShapes({.tiled = true, .columnwiseHadamard = 16, .ownAmax = true, .target = target},
                 {{144, 80}, {64, 300}});
    expectShapes({.tiled = true,
                  .columnwiseHadamard = 16,
                  .stochastic = true,
                  .ownAmax = true,
                  .target = target},
                 {{144, 80}, {64, 300}});
  }
}

TEST(TileKernel, Transforms) {
  for (unsigned size : {32, 64, 128})
    expectShapes({.hadamard = size == 32 ? 0 : 64u, .columnwiseHadamard = size}, {{128, 192}});
  expectShapes({.hadamard = 16}, {{37, 144}}); // only the row-wise side
  expectShapes({.recipe = "ocp_rceil", .hadamard = 32, .columnwiseHadamard = 128}, {{128, 96}});
  expectShapes({.recipe = "ocp_rceil", .rowwise = false, .columnwiseHadamard = 64}, {{192, 64}});
}

TEST(TileKernel, StochasticRounding) {
  expectShapes({.stochastic = true}, {{131, 145}, {1, 1}});
  expectShapes({.stochastic = true, .blockwisePhilox = true}, {{272, 144}});
  expectShapes({.rowwise = false, .stochastic = true, .blockwisePhilox = true}, {{272, 144}});
  expectShapes({.type = FloatType::F32, .stochastic = true}, {{48, 80}});
  expectShapes({.recipe = "ocp_floor", .stochastic = true}, {{96, 160}});
  expectShapes({.dynamicRows = true, .stochastic = true}, {{131, 40}});
}

/// Codes of square blocks differ between the outputs only here.
TEST(TileKernel, StochasticSquareBlocks) {
  expectShapes({.square = true, .stochastic = true}, {{131, 145}});
  expectShapes({.rowwise = false, .square = true, .stochastic = true}, {{40, 24}});
  expectShapes({.columnwise = false, .square = true, .stochastic = true}, {{40, 24}});
}
