//===- MmaTimeTest.cpp - Predicted times of MMAs and their scales -----===//
//
// tcgen05.cp and tcgen05.mma begin in the order in which they come. An MMA whose scales are copied
// right before it waits for them, and one whose scales were copied earlier does not.
//
//===----------------------------------------------------------------------===//
#include "../Async/KernelHarness.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Sim/Predictor.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using hw::TimingRate;

namespace {

constexpr unsigned rows = 128, depth = 64;

double rate(TimingRate which) { return hw::timingRate("sm_100a", which)->value; }

/// Cycles that one CTA takes for `steps` steps. In each it copies scales to four columns from
/// `copied` on if `copies`, and multiplies `products` times with scales from column `scales` on.
/// Behind all of them come `commits`.
double cyclesOf(unsigned steps, unsigned columns, unsigned products, bool copies, unsigned scales,
                unsigned copied = 256, std::string *error = nullptr,
                hw::MmaDepth mmaDepth = hw::MmaDepth::Single, unsigned commits = 1) {
  hw::BlockScaledInstrDesc descriptor;
  descriptor.kind = hw::MmaKind::MXF4NVF4;
  descriptor.m = rows;
  descriptor.n = columns;
  descriptor.scaleType = hw::ScaleType::UE4M3;
  descriptor.depth = mmaDepth;
  const std::string target = mmaDepth == hw::MmaDepth::Double ? "sm_107a" : "sm_100a";
  const auto tile = hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::None, 1024).encode();
  const auto block = hw::SmemDescriptor::scaleFactorBlock(1024).encode();
  std::string text = fmt::format(
      "  mov.u32 %r9, slot;\n  mov.u32 %r1, bar;\n"
      "  setp.ne.u32 %p5, %t, 0;\n  setp.eq.u32 %p6, %t, 0;\n"
      "  @%p6 mbarrier.init.shared::cta.b64 [%r1], {};\n  bar.warp.sync -1;\n"
      "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 512;\n"
      "  ld.shared.b32 %r10, [%r9];\n"
      "  add.u32 %r31, %r10, {};\n  add.u32 %r32, %r10, {};\n"
      "  mov.b64 %rd3, {:#x};\n  mov.b64 %rd4, {:#x};\n  mov.b32 %r8, {:#x};\n  @%p5 bra WAIT;\n",
      commits, copied, scales, block, tile, *descriptor.encode());
  for (unsigned step = 0; step < steps; ++step) {
    if (copies)
      text += "  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r31], %rd3;\n";
    for (unsigned product = 0; product < products; ++product)
      text += "  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r10], %rd4, "
              "%rd4, %r8, [%r32], [%r32], %p6;\n";
  }
  for (unsigned commit = 0; commit < commits; ++commit)
    text += "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];\n";
  text += "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\n  @!%p1 bra WAIT;\n"
          "  bar.warp.sync -1;\n  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;\n";
  KernelTime time;
  SimOptions options;
  options.policy = CompletionPolicy::Timed;
  options.target = target;
  Predictor predictor{.timesOnly = true};
  predictor.receive = [&](KernelTime received, std::string) { time = std::move(received); };
  options.predicted = predictor;
  Simulator simulator(options);
  const std::string variables = "  .shared .align 8 .b64 bar;\n  .shared .align 4 .b32 slot;\n";
  auto program = parse(kernelText(text, variables, target));
  const uint64_t out = simulator.memory().allocate(256, "out");
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 32768};
  auto stats = simulator.launch(*program, "test", config, Params().add(out).span());
  if (error && !stats)
    *error = stats.error().message;
  else
    EXPECT_TRUE(stats) << stats.error().message;
  return time.cycles;
}

/// Cycles that a step adds.
double stepOf(unsigned columns, unsigned products, bool copies, unsigned scales = 256) {
  constexpr unsigned few = 8, many = 40;
  return (cyclesOf(many, columns, products, copies, scales) -
          cyclesOf(few, columns, products, copies, scales)) /
         (many - few);
}

TEST(MmaTime, MmasInARowTakeTheRateOfTheTensorCore) {
  constexpr double flops = 2.0 * rows * 256 * depth;
  EXPECT_NEAR(stepOf(256, 4, false), 4 * flops / rate(TimingRate::Fp4Flops), 1);
}

// A commit waits for MMAs, and not for the way of an earlier arrival to its mbarrier.
TEST(MmaTime, CommitsInARowArriveTogether) {
  const auto cycles = [](unsigned commits) {
    return cyclesOf(8, 256, 4, false, 256, 256, nullptr, hw::MmaDepth::Single, commits);
  };
  EXPECT_NEAR(cycles(4), cycles(1), 10);
}

// The double K takes as long as the usual one for its arithmetic, and reads twice the bytes.
TEST(MmaTime, TheDoubleKHasTwiceTheRate) {
  constexpr unsigned few = 8, many = 40;
  const auto stepOfDouble = [](unsigned columns) {
    const auto cycles = [&](unsigned steps) {
      return cyclesOf(steps, columns, 4, false, 256, 256, nullptr, hw::MmaDepth::Double);
    };
    return (cycles(many) - cycles(few)) / (many - few);
  };
  const double bytes = hw::timingRate("sm_107a", TimingRate::SharedBytes)->value;
  EXPECT_NEAR(stepOfDouble(256), 4 * (rows + 256) * 64 / bytes, 1);
  EXPECT_LT(stepOfDouble(256), 2 * stepOf(256, 4, false));
}

TEST(MmaTime, AMmaWaitsForTheScalesThatAreCopiedRightBeforeIt) {
  const double latency = rate(TimingRate::ScaleCopyLatency);
  const double wide = 2.0 * rows * 256 * depth / rate(TimingRate::Fp4Flops);
  // the copy begins with the last MMA of the step before, which hides a part of it
  EXPECT_NEAR(stepOf(256, 4, true), 3 * wide + std::max(wide, latency), 1);
  EXPECT_NEAR(stepOf(256, 1, true), latency, 1);
  EXPECT_GT(stepOf(64, 4, true), stepOf(64, 4, false) + 100);
}

TEST(MmaTime, AMmaDoesNotWaitForScalesOfOthers) {
  EXPECT_NEAR(stepOf(256, 4, true, 384), stepOf(256, 4, false), 1);
}

/// A prediction executes copies of scales and no MMAs, which thus read nothing.
TEST(MmaTime, ColumnsThatDoNotExistAreAnErrorOfACopy) {
  for (unsigned column : {510u, 60000u}) {
    std::string error;
    cyclesOf(1, 256, 1, true, 256, column, &error);
    EXPECT_THAT(error, testing::HasSubstr("column")) << column;
    EXPECT_GT(cyclesOf(1, 256, 1, true, column), 0) << column;
  }
}

} // namespace
