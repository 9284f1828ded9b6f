//===- TargetsTest.cpp - Every row of the table of targets ----------------===//
//
// Claims of a row, checked by those who know: the compiler builds every example and benchmark for
// it, and ptxas assembles what it has and nothing else. A new row is tested without an edit here.
//
//===----------------------------------------------------------------------===//

#include "fp4/Compiler/Compiler.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Target/Ptxas.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

using namespace fp4;
using hw::TargetFeatures;
using hw::TargetModel;

namespace {

class TargetsTest : public testing::TestWithParam<const TargetModel *> {
protected:
  const TargetModel &target = *GetParam();
  Expected<Ptxas> ptxas = findPtxas();

  /// The usual assembler or, for a target that it does not know, the later one of the tests.
  Expected<Ptxas> findPtxas() const {
    Expected<Ptxas> usual = Ptxas::find("");
    if (!usual || usual->supports(target.name, target.ptxFeature))
      return usual;
    Expected<Ptxas> later = Ptxas::find(FP4_BINARY_DIR "/toolchain/ptxas-later");
    return later ? later
                 : tl::make_unexpected(usual->supports(target.name, target.ptxFeature).error());
  }
};

/// The examples, and the benchmarks, whose quantizers need no tcgen05.
std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> files;
  for (const char *folder : {FP4_SOURCE_DIR "/examples", FP4_SOURCE_DIR "/benchmarks"})
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".mlir")
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// "+ptx88" -> "8.8".
std::string ptxVersion(const TargetModel &target) {
  std::string digits(target.ptxFeature.substr(4));
  return digits.substr(0, digits.size() - 1) + "." + digits.back();
}

/// A kernel whose text begins with `directives` and whose body is `body`.
std::string kernel(const TargetModel &target, std::string_view directives, std::string_view body) {
  return fmt::format(".version {}\n.target {}\n.address_size 64\n"
                     ".visible .entry k() {} {{\n"
                     "  .reg .b32 %r<5>;\n  .reg .b64 %rd<5>;\n  .reg .f32 %f<5>;\n"
                     "  .reg .pred %p<2>;\n  .reg .b16 %h<2>;\n  .reg .b8 %b;\n"
                     "  {}\n  ret;\n}}\n",
                     ptxVersion(target), target.name, directives, body);
}

struct Fact {
  const char *name;
  bool TargetFeatures::*has;
  const char *instruction;
};

constexpr const char *kTensorCopy =
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
    "[%r1], [%rd1, {%r2, %r3}], [%r2];";

const std::vector<Fact> &facts() {
  static const std::vector<Fact> table = {
      {"tcgen05", &TargetFeatures::hasTcgen05,
       "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
       "[%r1], %rd1, %rd1, %r2, [%r3], [%r3], %p1;"},
      {"CTA pairs", &TargetFeatures::hasCtaPairs,
       "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 "
       "[%r1], %rd1, %rd1, %r2, [%r3], [%r3], %p1;"},
      {"wgmma", &TargetFeatures::hasWgmma, "wgmma.fence.sync.aligned;"},
      {"block-scaled mma.sync", &TargetFeatures::hasMmaBlockScale,
       "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32."
       "ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%f1, %f2, %f3, %f4}, "
       "%r1, {0, 0}, %r2, {0, 0};"},
      {"TMA", &TargetFeatures::hasTma, kTensorCopy},
      {"cluster launch control", &TargetFeatures::hasClusterLaunchControl,
       "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
       "[%r1], [%r2];"},
      {"fp4 conversion", &TargetFeatures::hasFp4Convert,
       "cvt.rn.satfinite.e2m1x2.f32 %b, %f1, %f2;"},
      {"ue8m0 conversion", &TargetFeatures::hasFp4Convert,
       "cvt.rp.satfinite.ue8m0x2.f32 %h1, %f1, %f2;"},
      {"stochastic conversion", &TargetFeatures::hasStochasticConvert,
       "cvt.rs.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f3, %f4}, %r1;"},
      {"mixed fma", &TargetFeatures::hasMixedFma, "fma.rn.f32.f16 %f1, %h1, %h1, %f2;"},
      {"tcgen05 of integers", &TargetFeatures::hasTcgen05Int8,
       "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd1, %r2, %p1;"},
      {"ue5m3 conversion", &TargetFeatures::hasUE5M3,
       "cvt.rn.satfinite.ue5m3x2.f32 %h1, %f1, %f2;"},
  };
  return table;
}

/// Returns true when a row before this one has the same instructions: the compiler makes the same
/// kernels of the larger programs then, and the smaller ones show LLVM and ptxas the name.
bool hasInstructionsOfEarlierRow(const TargetModel &target) {
  for (const TargetModel &row : hw::targets()) {
    if (&row == &target)
      return false;
    const hw::TargetFeatures &earlier = row.features, &own = target.features;
    bool isEqual = earlier.hasFp8MmaSync == own.hasFp8MmaSync &&
                   earlier.hasFp4K96 == own.hasFp4K96 && earlier.hasDoubleK == own.hasDoubleK &&
                   earlier.hasPackedTensorMaps == own.hasPackedTensorMaps;
    for (const Fact &fact : facts())
      isEqual &= earlier.*fact.has == own.*fact.has;
    if (isEqual)
      return true;
  }
  return false;
}

} // namespace

/// A fact that a row has wrong ends this test in an error of LLVM or of ptxas.
TEST_P(TargetsTest, CompilesEveryProgram) {
  const bool isLikeAnother = hasInstructionsOfEarlierRow(target);
  for (const std::filesystem::path &file : programs()) {
    const bool isExample = file.parent_path().filename() == "examples"; // others take ptxas long
    const bool isModel = file.filename().string().starts_with("mlp");   // of the others' kernels
    if (isLikeAnother && (!isExample || isModel))
      continue;
    SCOPED_TRACE(file.filename());
    std::stringstream diagnostics;
    CompilerOptions options;
    options.target = target.name;
    options.diagnostics = &diagnostics;
    const bool assembles = ptxas && isExample && !isModel;
    if (assembles)
      options.ptxas = ptxas->path();
    Compiler compiler(options);
    ASSERT_TRUE(compiler.loadFile(file));
    Status status = compiler.compileTo(assembles ? Phase::Cubin : Phase::Ptx);
    EXPECT_TRUE(bool(status)) << diagnostics.str();
    EXPECT_FALSE(compiler.kernels().empty());
  }
}

TEST_P(TargetsTest, HasTheInstructionsThatPtxasAssembles) {
  if (!ptxas)
    GTEST_SKIP() << "without ptxas nobody knows: " << ptxas.error().message;
  for (const Fact &fact : facts()) {
    auto assembly = ptxas->assemble(kernel(target, "", fact.instruction), target.name);
    EXPECT_EQ(target.features.*fact.has, bool(assembly))
        << fact.name << (assembly ? "" : ": " + assembly.error().message);
  }
}

TEST_P(TargetsTest, HasTheCapacitiesThatPtxasAllows) {
  if (!ptxas)
    GTEST_SKIP() << "without ptxas nobody knows: " << ptxas.error().message;
  auto warnings = [&](unsigned threads, unsigned blocks) {
    auto assembly = ptxas->assemble(
        kernel(target, fmt::format(".maxntid {} .minnctapersm {}", threads, blocks), ""),
        target.name);
    EXPECT_TRUE(assembly) << assembly.error().message;
    return assembly ? assembly->warnings.size() : 0;
  };
  unsigned blocks = target.limits.maxThreadsPerSM / 256;
  EXPECT_EQ(warnings(256, blocks), 0u);
  EXPECT_EQ(warnings(256, blocks + 1), 1u);
  EXPECT_EQ(warnings(32, target.limits.maxCtasPerSM), 0u);
  EXPECT_EQ(warnings(32, target.limits.maxCtasPerSM + 1), 1u);
  auto assembles = [&](unsigned bytes) {
    std::string body = fmt::format(".shared .b8 s[{}];\n  mov.u32 %r1, s;\n"
                                   "  st.shared.b32 [%r1], %r1;",
                                   bytes);
    return bool(ptxas->assemble(kernel(target, "", body), target.name));
  };
  EXPECT_TRUE(assembles(target.limits.sharedBytesPerCta));
  EXPECT_FALSE(assembles(target.limits.sharedBytesPerCta + 16));
}

namespace {

std::vector<const TargetModel *> allTargets() {
  std::vector<const TargetModel *> rows;
  for (const TargetModel &row : hw::targets())
    rows.push_back(&row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Row, TargetsTest, testing::ValuesIn(allTargets()),
                         [](const auto &info) { return std::string(info.param->name); });

} // namespace
