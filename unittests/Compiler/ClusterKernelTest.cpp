//===- ClusterKernelTest.cpp - GEMMs of several CTAs, bit by bit ----------===//
//
// The hand-written kernels of cluster-gemms.mlir, overlapped-gemm.mlir,
// preferred-gemm.mlir and two-consumers.mlir in test/Dialect/Pipe, launched with fewer clusters
// than they have tiles, so that every ring wraps: pairs of CTAs, clusters that load operands
// together, accumulators with common columns, and stages that two roles use. Results equal the
// model of the tensor core bit for bit, whenever asynchronous operations complete, and the hazard
// checker has nothing to report by the letter of the PTX text.
//
//===----------------------------------------------------------------------===//
#include "../Numerics/TestData.h"

#include "fp4/Compiler/Compiler.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/ScaleMatrix.h"
#include "fp4/Sim/Instruments.h"

#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace fp4;
using numerics::FloatType;

namespace {

constexpr uint64_t kRows = 512, kDepth = 1024; ///< of B; columns of A and B
constexpr float kAlpha = 0.37f;
constexpr uint16_t kUntouched = 0xEEEE;

/// Arguments that the host passes to a kernel.
struct Kernel {
  std::string name;
  std::array<uint32_t, 3> grid;
  std::string file = "cluster-gemms.mlir";
  uint32_t boxA = 128, boxB = 128; ///< rows of the boxes of A and B
  std::array<uint32_t, 3> cluster{},
      preferredCluster{};          ///< of the launch; zeros: the kernel says it
  bool scaleMaps = true;           ///< scales come through tensor maps, else through pointers
};

/// Random codes with tiled scales; the scales of some rows are far from those of others.
struct Matrix {
  uint64_t rows;
  std::vector<uint8_t> codes, linear, tiled;

  Matrix(uint64_t rows, uint64_t seed) : rows(rows) {
    test::Random random(seed);
    for (uint64_t i = 0; i < rows * kDepth / 2; ++i)
      codes.push_back(uint8_t(random.below(256)));
    for (uint64_t i = 0; i < rows * kDepth / 16; ++i)
      linear.push_back(uint8_t(random.below(0x70) + 4));
    tiled = *numerics::layOutScales(linear, rows, kDepth / 16, numerics::ScaleLayout::Tiled128x4);
  }
  numerics::GemmOperand operand() const {
    return {codes.data(), linear.data(), rows, kDepth / 2, 0};
  }
};

std::string compile(const std::string &file, const std::string &name) {
  std::ostringstream diagnostics;
  CompilerOptions options;
  options.diagnostics = &diagnostics;
  Compiler compiler(options);
  Status status = compiler.loadFile(FP4_SOURCE_DIR "/test/Dialect/Pipe/" + file);
  if (status)
    status = compiler.compileTo(Phase::Ptx);
  EXPECT_TRUE(status) << status.error().message << "\n" << diagnostics.str();
  for (const KernelCode &kernel : compiler.kernels())
    if (kernel.module == name)
      return kernel.ptx;
  ADD_FAILURE() << "there is no module " << name;
  return "";
}

/// The bytes of a kernel's parameters, each aligned to its own size; tensor maps to 64.
class Parameters {
public:
  template <typename T> void add(const T &value, size_t alignment = sizeof(T)) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    const auto *first = reinterpret_cast<const std::byte *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(T));
  }
  void add(const hw::TensorMap &map) {
    auto encoded = map.encode();
    ASSERT_TRUE(encoded) << encoded.error().message;
    add(*encoded, 64);
  }
  std::vector<std::byte> bytes;
};

hw::TensorMap dataMap(uint64_t address, uint64_t rows, uint32_t box) {
  hw::TensorMap map;
  map.address = address;
  map.dims = {kDepth / 2, rows};
  map.strides = {kDepth / 2};
  map.box = {128, box};
  map.swizzle = hw::SwizzleMode::B128;
  return map;
}

/// As pipe.make_tensor_map makes it of blocks of scales.
hw::TensorMap scaleMap(uint64_t address, uint64_t rows) {
  constexpr uint64_t blocks = kDepth / 64;
  hw::TensorMap map;
  map.elementType = hw::TensorMapType::UInt32;
  map.rank = 3;
  map.address = address;
  map.dims = {128, blocks, (rows + 127) / 128};
  map.strides = {512, 512 * blocks};
  map.box = {128, 4, 1};
  return map;
}

/// Runs kernels on one simulator.
class ClusterRun {
public:
  explicit ClusterRun(const sim::SimulationOptions &options) {
    auto made = sim::settingsOf(options);
    EXPECT_TRUE(made);
    settings = *made;
    instruments = std::move(*sim::Instruments::create(options, settings));
    simulator.emplace(settings);
  }

  uint64_t upload(const std::vector<uint8_t> &bytes) {
    uint64_t address = simulator->memory().allocate(bytes.size(), "operand");
    EXPECT_TRUE(simulator->memory().write(address, bytes.data(), bytes.size()));
    return address;
  }

  /// The result, bf16 in bits, with a row that the kernel must not touch behind it.
  std::vector<uint16_t> product(const Kernel &kernel, const std::string &ptx, const Matrix &a,
                                const Matrix &b) {
    std::vector<uint16_t> result((a.rows + 1) * kRows);
    uint64_t y = simulator->memory().allocate(2 * result.size(), "result");
    EXPECT_TRUE(simulator->memory().fill(y, kUntouched & 0xFF, 2 * result.size()));
    std::vector<uint8_t> alpha(4);
    std::memcpy(alpha.data(), &kAlpha, 4);
    Parameters parameters;
    parameters.add(dataMap(upload(a.codes), a.rows, kernel.boxA));
    parameters.add(dataMap(upload(b.codes), b.rows, kernel.boxB));
    for (const Matrix *matrix : {&a, &b})
      if (kernel.scaleMaps)
        parameters.add(scaleMap(upload(matrix->tiled), matrix->rows));
      else
        parameters.add(upload(matrix->tiled));
    parameters.add(upload(alpha));
    parameters.add(y);
    parameters.add(int32_t(a.rows));
    auto program = sim::Program::parse(ptx, kernel.name);
    EXPECT_TRUE(program) << program.error().message;
    sim::LaunchConfig config;
    config.grid = kernel.grid;
    config.block = {192, 1, 1};
    config.cluster = kernel.cluster;
    config.preferredCluster = kernel.preferredCluster;
    config.dynamicSharedBytes = 227 * 1024;
    auto stats = simulator->launch(**program, kernel.name, config, parameters.bytes);
    EXPECT_TRUE(stats) << stats.error().message << "\n" << stats.error().note;
    EXPECT_TRUE(simulator->memory().read(y, result.data(), 2 * result.size()));
    return result;
  }

  std::vector<sim::HazardReport> hazards() const { return instruments->hazards(); }

private:
  sim::SimOptions settings;
  std::unique_ptr<sim::Instruments> instruments;
  std::optional<sim::Simulator> simulator;
};

std::vector<sim::SimulationOptions> schedules() {
  std::vector<sim::SimulationOptions> all;
  for (const char *policy : {"eager", "lazy", "delay", "random", "random"}) {
    sim::SimulationOptions options;
    options.policy = policy;
    options.seed = all.size();
    options.check = "strict";
    options.hostThreads = 1;
    all.push_back(options);
  }
  return all;
}

/// The first difference between a result and the model, or nothing.
std::string difference(const std::vector<uint16_t> &result, const std::vector<float> &model) {
  for (size_t i = 0; i < model.size(); ++i)
    if (result[i] != numerics::encodeBF16(model[i]))
      return fmt::format("element ({}, {}) is {:#x}, but must be {:#x}", i / kRows, i % kRows,
                         result[i], numerics::encodeBF16(model[i]));
  for (size_t i = model.size(); i < result.size(); ++i)
    if (result[i] != kUntouched)
      return "a row behind the result was written";
  return "";
}

/// `rows` of A; the kernel's grid has fewer clusters than there are tiles.
void expectGemm(const Kernel &kernel, uint64_t rows, const std::string &clusters = "mixed") {
  SCOPED_TRACE(kernel.name);
  const Matrix a(rows, 1), b(kRows, 2);
  numerics::GemmProblem problem;
  problem.a = a.operand();
  problem.b = b.operand();
  problem.depth = kDepth;
  problem.alpha = kAlpha;
  problem.output = FloatType::BF16;
  auto model = numerics::gemmMmaModel(problem);
  ASSERT_TRUE(model) << model.error().message;
  const std::string ptx = compile(kernel.file, kernel.name);
  for (sim::SimulationOptions options : schedules()) {
    options.clusters = clusters;
    ClusterRun run(options);
    EXPECT_EQ(difference(run.product(kernel, ptx, a, b), *model), "")
        << options.policy << ", seed " << options.seed;
    for (const sim::HazardReport &report : run.hazards())
      ADD_FAILURE() << report.text();
  }
}

TEST(ClusterKernel, PairOfBlocks) {
  expectGemm({.name = "pair", .grid = {2, 1, 1}}, 600);
  expectGemm({.name = "pair", .grid = {4, 1, 1}}, 129);
}

TEST(ClusterKernel, AccumulatorsThatOverlap) {
  expectGemm({.name = "overlapped", .grid = {2, 1, 1}, .file = "overlapped-gemm.mlir"}, 600);
}

TEST(ClusterKernel, TwoRolesUseEachStage) {
  expectGemm({.name = "two_consumers",
              .grid = {2, 1, 1},
              .file = "two-consumers.mlir",
              .scaleMaps = false},
             300);
}

TEST(ClusterKernel, PairsThatShareAnOperand) {
  expectGemm({.name = "pair_2x2", .grid = {2, 2, 1}, .boxA = 64, .boxB = 64}, 400);
}

/// Pairs that share an operand are in one cluster, in clusters of their own, and some of them in
/// either.
TEST(ClusterKernel, PairsThatShareWhereTheyFindRoom) {
  for (const char *clusters : {"mixed", "preferred", "fallback"})
    expectGemm({.name = "two_sizes",
                .grid = {4, 2, 1},
                .file = "preferred-gemm.mlir",
                .boxA = 64,
                .boxB = 64,
                .cluster = {2, 1, 1},
                .preferredCluster = {2, 2, 1}},
               600, clusters);
}

TEST(ClusterKernel, BlocksThatShareOperands) {
  expectGemm({.name = "shared_2x2", .grid = {2, 2, 1}, .boxA = 64, .boxB = 64, .scaleMaps = false},
             400);
}

} // namespace
