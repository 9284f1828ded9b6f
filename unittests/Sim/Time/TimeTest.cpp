//===- TimeTest.cpp - Predicted times of small kernels --------------------===//
//
// Each kernel does one thing, so that its time follows from one or two rates.
//
//===----------------------------------------------------------------------===//
#include "TimeHarness.h"
#include "fp4/Sim/Events/LaunchEvent.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// Cycles that `times` more of `line` take.
double cyclesOf(const std::string &before, const std::string &line, LaunchConfig config) {
  constexpr int few = 64, many = 192;
  const Timed a = runTimed(before + repeated(line, few) + store, config),
              b = runTimed(before + repeated(line, many) + store, config);
  return (b.time.cycles - a.time.cycles) / (many - few);
}

const LaunchConfig oneWarp{.grid = {1, 1, 1}, .block = {32, 1, 1}},
    manyWarps{.grid = {1, 1, 1}, .block = {512, 1, 1}};

TEST(Time, AChainCostsTheLatencyOfItsInstructions) {
  EXPECT_NEAR(cyclesOf("  mov.u32 %r1, %t;\n", "  prmt.b32 %r1, %r1, %t, 12816;\n", oneWarp),
              rate(TimingRate::AluLatency), 0.1);
  EXPECT_NEAR(cyclesOf("  mov.u32 %r1, %t;\n", "  ex2.approx.ftz.f32 %r1, %r1;\n", oneWarp),
              rate(TimingRate::MufuLatency), 0.1);
  EXPECT_NEAR(
      cyclesOf("  mov.u32 %r1, %t;\n", "  shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n", oneWarp),
      rate(TimingRate::ShuffleLatency) + rate(TimingRate::ShuffleInterval), 0.1);
  EXPECT_NEAR(cyclesOf("  mov.u32 %r1, %t;\n", "  shf.l.wrap.b32 %r1, %r1, %t, 3;\n", oneWarp),
              rate(TimingRate::AluLatency), 0.1);
}

TEST(Time, ManyWarpsShareTheUnitsOfTheirSchedulers) {
  const double warpsOfScheduler = 4;
  EXPECT_NEAR(cyclesOf("  mov.u32 %r1, %t;\n", "  prmt.b32 %r1, %r1, %t, 12816;\n", manyWarps),
              warpsOfScheduler * rate(TimingRate::AluInterval), 0.2);
  EXPECT_NEAR(cyclesOf("  mov.u32 %r1, %t;\n", "  ex2.approx.ftz.f32 %r1, %r1;\n", manyWarps),
              warpsOfScheduler * rate(TimingRate::MufuInterval), 0.2);
}

TEST(Time, WideMmasTakeLongerAndPipesInTurnDoNot) {
  const std::string start = "  mov.u32 %r1, %t;\n";
  constexpr double warpsOfScheduler = 4;
  const auto each = [&](const std::string &line) {
    return cyclesOf(start, line, manyWarps) / warpsOfScheduler;
  };
  EXPECT_NEAR(each("  mul.lo.u32 %r2, %t, %r1;\n"), rate(TimingRate::ImadInterval), 0.1);
  EXPECT_NEAR(each("  mul.hi.u32 %r2, %t, %r1;\n"), rate(TimingRate::WideInterval), 0.1);
  // beside them the integer pipe has less than half of its time
  const std::string logic = "  prmt.b32 %r2, %r1, %t, 12816;\n",
                    wide = "  mul.hi.u32 %r3, %t, %r1;\n";
  EXPECT_NEAR(each(wide + logic), 4, 0.2);
  EXPECT_NEAR(each(wide + logic + logic), 6, 0.2);
  EXPECT_NEAR(each(wide + logic + logic + logic), 8, 0.2);
  const std::string fp32 = "  fma.rn.f32 %r3, %r1, %r1, %r1;\n",
                    integers = "  prmt.b32 %r2, %r1, %t, 12816;\n";
  EXPECT_NEAR(each(fp32 + fp32), 2, 0.1);
  EXPECT_NEAR(each(fp32 + integers), 2, 0.1); // the cost is in the registers
}

TEST(Time, SchedulersIssueTheBlockThatBeganFirst) {
  constexpr unsigned sms = 132, blocks = 4, count = 256;
  std::string body = "  mov.u32 %r1, %t;\n";
  for (unsigned i = 0; i < count; ++i)
    body += fmt::format("  fma.rn.f32 %r{0}, %r{0}, %r1, %r1;\n", 8 + i % 8);
  for (int i = 1; i < 8; ++i) // needed, all of them
    body += fmt::format("  xor.b32 %r8, %r8, %r{};\n", 8 + i);
  body += "  setp.eq.u32 %p0, %r8, 77;\n  @%p0 trap;\n  mov.u32 %r1, %clock;\n"
          "  mov.u32 %t, %ctaid.x;\n";
  // one warp of each CTA for each scheduler
  const Timed timed = runTimed(body + store, {.grid = {sms * blocks, 1, 1}, .block = {128, 1, 1}});
  for (unsigned block = sms; block < sms * blocks; ++block) // behind the one before
    EXPECT_NEAR(timed.out[block] - timed.out[block - sms], count, 24) << block;
}

TEST(Time, UnitsBehindScoreboardsServeInOrder) {
  const std::string body = "  mov.u32 %r1, %t;\n" +
                           repeated("  ex2.approx.ftz.f32 %r1, %r1;\n", 32) +
                           "  mov.u32 %r1, %clock;\n";
  const Timed timed = runTimed(body + store, manyWarps);
  EXPECT_NEAR(timed.out[15 * 32], timed.out[0], 4 * rate(TimingRate::MufuInterval));
}

TEST(Time, ABranchAroundASlowPathHoldsTheWarp) {
  constexpr double instructions = 9, apart = 2;
  const double division = rate(TimingRate::MufuLatency) + rate(TimingRate::FmaLatency) +
                          (instructions - 1) * apart + rate(TimingRate::BranchCycles);
  const std::string start = "  mov.u32 %r1, %t;\n";
  EXPECT_NEAR(cyclesOf(start, "  div.rn.f32 %r2, %t, %r1;\n", oneWarp), division, 0.1);
  EXPECT_NEAR(cyclesOf(start, "  div.full.f32 %r2, %t, %r1;\n", oneWarp),
              4 * rate(TimingRate::MufuInterval), 0.1);
}

TEST(Time, ALoadThatFollowsALoadWaitsForMemory) {
  // each thread follows a chain of zeros: the same line, in L1 after the first
  const std::string chase = "  ld.global.b32 %r1, [%rd2];\n  cvt.u64.u32 %rd3, %r1;\n"
                            "  add.u64 %rd2, %rd2, %rd3;\n";
  const double l1 = cyclesOf("  mov.u64 %rd2, %out;\n", chase, oneWarp);
  EXPECT_NEAR(l1, rate(TimingRate::L1Latency) + 2 * rate(TimingRate::AluLatency), 6);
  const std::string beyond = "  ld.global.cg.b32 %r1, [%rd2];\n  cvt.u64.u32 %rd3, %r1;\n"
                             "  add.u64 %rd2, %rd2, %rd3;\n";
  const double l2 = cyclesOf("  mov.u64 %rd2, %out;\n", beyond, oneWarp);
  EXPECT_NEAR(l2, rate(TimingRate::L2Latency) + 2 * rate(TimingRate::AluLatency), 8);
}

TEST(Time, DeviceMemoryTakesItsTimeAtAnyClock) {
  const std::string body = std::string("  ld.global.b32 %r1, [%out];\n") + store;
  const KernelTime fast = runTimed(body, oneWarp).time,
                   slow = runTimed(body, oneWarp, 4096, CompletionPolicy::Timed, "sm_90a", 0,
                                   {.gigahertz = rate(TimingRate::Gigahertz) / 2})
                              .time;
  EXPECT_EQ(slow.gigahertz, fast.gigahertz / 2);
  const double behind = rate(TimingRate::MemoryLatency) - rate(TimingRate::L2Latency);
  // a line has a wait of its own
  EXPECT_NEAR(fast.cycles - slow.cycles, behind / 2, rate(TimingRate::MemorySpread) * behind / 2);
}

/// As ptxas makes them of a sector for each thread. Another store between them parts them.
TEST(Time, StoresOfAWarpToPartsOfTheSameSectorsGoToL2AsOne) {
  const auto bytes = [](const std::string &between) {
    return runTimed("  mul.wide.u32 %rd1, %t, 32;\n  add.u64 %rd1, %out, %rd1;\n"
                    "  st.global.v4.b32 [%rd1+16], {%t, %t, %t, %t};\n" +
                        between + "  st.global.v4.b32 [%rd1], {%t, %t, %t, %t};\n",
                    oneWarp)
        .time.l2Bytes;
  };
  constexpr double sectors = 32 * 32;
  EXPECT_EQ(bytes(""), sectors);
  EXPECT_EQ(bytes("  st.global.b32 [%rd1+8192], %t;\n"), 3 * sectors);
}

TEST(Time, BankConflictsSerialize) {
  const auto cycles = [](unsigned stride) {
    const std::string before = fmt::format(
        "  mov.u32 %r2, dynamic;\n  mad.lo.u32 %r2, %t, {}, %r2;\n  st.shared.b32 [%r2], %t;\n",
        4 * stride);
    const std::string line = "  st.shared.b32 [%r2], %t;\n";
    return cyclesOf(before + "  mov.u32 %r1, %t;\n", line,
                    {.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 8192});
  };
  EXPECT_NEAR(cycles(1), rate(TimingRate::HandOver), 0.1);
  EXPECT_NEAR(cycles(8), 8, 0.2);
}

TEST(Time, ASchedulerHandsOverAnAccessInFourCycles) {
  const auto cycles = [](unsigned warps, const std::string &line) {
    return cyclesOf("  mov.u32 %r3, dynamic;\n  mad.lo.u32 %r3, %t, 4, %r3;\n", line,
                    {.grid = {1, 1, 1}, .block = {32 * warps, 1, 1}, .dynamicSharedBytes = 16384});
  };
  const std::string line = "  st.shared.b32 [%r3], %t;\n";
  const double each = rate(TimingRate::HandOver);
  EXPECT_NEAR(cycles(1, line), each, 0.1);
  EXPECT_NEAR(cycles(4, line), each, 0.1); // one of each scheduler
  EXPECT_NEAR(cycles(8, line), 2 * each, 0.2);
  // A warp goes on while its accesses wait in the queue.
  const auto behind = [&](int stores) {
    const Timed timed =
        runTimed("  mov.u32 %r3, dynamic;\n  mov.u64 %rd4, %clock64;\n" +
                     repeated("  st.shared.b32 [%r3], %r3;\n", stores) +
                     "  mov.u64 %rd5, %clock64;\n  sub.u64 %rd4, %rd5, %rd4;\n"
                     "  cvt.u32.u64 %r1, %rd4;\n" +
                     store,
                 {.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 16384});
    return double(timed.out[0]);
  };
  EXPECT_LT(behind(8), 8 * 2);
  EXPECT_GT(behind(64), 64 * each - rate(TimingRate::FillQueue) - 8);
}

TEST(Time, TheClockReadsTheCyclesOfThePrediction) {
  const std::string body = "  mov.u64 %rd4, %clock64;\n  mov.u32 %r1, %t;\n" +
                           repeated("  prmt.b32 %r1, %r1, %t, 12816;\n", 100) +
                           "  add.u32 %r2, %r1, 0;\n  mov.u64 %rd5, %clock64;\n"
                           "  sub.u64 %rd4, %rd5, %rd4;\n  cvt.u32.u64 %r1, %rd4;\n" +
                           store;
  const Timed result = runTimed(body, oneWarp);
  const double thread = rate(TimingRate::SpecialLatency); // %t comes from %tid
  EXPECT_NEAR(result.out[0], thread + 100 * rate(TimingRate::AluLatency), 12);
}

TEST(Time, ResultsAreThoseOfOtherPolicies) {
  const std::string body = repeated("  mul.wide.u32 %rd1, %t, 4;\n  add.u64 %rd1, %out, %rd1;\n"
                                    "  ld.global.b32 %r1, [%rd1];\n  mad.lo.u32 %r1, %r1, 17, %t;\n"
                                    "  st.global.b32 [%rd1], %r1;\n  bar.sync 0;\n",
                                    5);
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {256, 1, 1}};
  EXPECT_EQ(runTimed(body, config).out, runTimed(body, config, 4096, CompletionPolicy::Random).out);
}

TEST(Time, ATargetWithoutRatesNamesThemAndStillComputes) {
  const Timed result = runTimed(std::string("  mov.u32 %r1, 7;\n") + store, oneWarp, 4096,
                                CompletionPolicy::Timed, "sm_110a");
  EXPECT_EQ(result.out[0], 7u);
  EXPECT_FALSE(result.time.missing.empty());
  EXPECT_EQ(result.time.microseconds, 0);
  EXPECT_NE(text(result.time).find("no prediction for sm_110a: unknown: Gigahertz"),
            std::string::npos)
      << text(result.time);
}

/// The times that an observer may take for accesses of global memory.
struct AccessTimes final : Observer {
  void onLaunch(const LaunchEvent &event) override { clock = event.nanoseconds; }
  void onMemory(const MemoryEvent &) override {
    times.push_back(clock ? *clock : std::numeric_limits<double>::quiet_NaN());
  }
  const double *clock = nullptr;
  std::vector<double> times;
};

TEST(Time, ObserversGetNoTimesWhereARateIsMissing) {
  const auto timesOn = [](const std::string &target) {
    AccessTimes observer;
    runTimed(std::string("  mov.u32 %r1, 7;\n") + store, oneWarp, 4096, CompletionPolicy::Timed,
             target, 0, {}, &observer);
    EXPECT_FALSE(observer.times.empty());
    return observer.times;
  };
  for (const double time : timesOn("sm_90a"))
    EXPECT_GT(time, 0);
  for (const double time : timesOn("sm_110a"))
    EXPECT_TRUE(std::isnan(time));
}

TEST(Time, ABarrierIsWhatTheFasterWarpWaitsFor) {
  const std::string body = "  setp.lt.u32 %p1, %t, 32;\n  mov.u32 %r1, %t;\n  @%p1 bra WAIT;\n" +
                           repeated("  ex2.approx.ftz.f32 %r1, %r1;\n", 100) +
                           "WAIT:\n  bar.sync 0;\n" + store;
  const Timed result = runTimed(body, {.grid = {1, 1, 1}, .block = {64, 1, 1}});
  ASSERT_EQ(result.time.roles.size(), 1u);
  EXPECT_GT(result.time.roles[0].share[size_t(Activity::Barrier)], 0.3);
}

/// Cycles of a kernel of clusters whose warps all arrive, and then all wait, `times` times.
double cyclesOfMeetings(const std::string &arrive, unsigned cluster, unsigned warps, int times,
                        std::string_view gpu = {}) {
  const LaunchConfig config{
      .grid = {cluster, 1, 1}, .block = {32 * warps, 1, 1}, .cluster = {cluster, 1, 1}};
  const std::string meet = "  barrier.cluster." + arrive + ";\n  barrier.cluster.wait.acquire.aligned;\n";
  return runTimed(repeated(meet, times), config, 4096, CompletionPolicy::Timed, "sm_90a", 0,
                  Predictor{.gpu = std::string(gpu)})
      .time.cycles;
}

TEST(Time, ABarrierOfAClusterTakesItsTimeAlthoughNoWarpFindsItClosed) {
  const auto each = [](const std::string &arrive, unsigned cluster, unsigned warps,
                       std::string_view gpu = {}) {
    return (cyclesOfMeetings(arrive, cluster, warps, 9, gpu) -
            cyclesOfMeetings(arrive, cluster, warps, 1, gpu)) /
           8;
  };
  const double barrier = rate(TimingRate::ClusterBarrierCycles),
               warp = rate(TimingRate::BarrierPerWarp), fence = rate(TimingRate::FenceDevice),
               next = rate(TimingRate::FenceInterval);
  EXPECT_NEAR(each("arrive.relaxed.aligned", 2, 1), barrier + warp, 3);
  EXPECT_NEAR(each("arrive.relaxed.aligned", 2, 12), barrier + 12 * warp, 8);
  EXPECT_NEAR(each("arrive.release.aligned", 2, 4), fence + barrier + 4 * warp, 5);
  EXPECT_NEAR(each("arrive.release.aligned", 2, 12), fence + 2 * next + barrier + 12 * warp, 10);
  // a cluster of one CTA has neither the fence nor the way to others
  EXPECT_NEAR(each("arrive.release.aligned", 1, 1), rate(TimingRate::BarrierCycles) + warp, 3);
  // H100: measured 750 and 1220 to 1320
  EXPECT_NEAR(each("arrive.release.aligned", 2, 4, "h100"), 750, 25);
  EXPECT_NEAR(each("arrive.release.aligned", 2, 12, "h100"), 1250, 50);
}

TEST(Time, RegistersChangeHandsInTheirTime) {
  const auto cycles = [](const std::string &line) {
    const std::string loaded = "  ld.global.b32 %r1, [%out];\n  add.u32 %r1, %r1, %t;\n";
    return runTimed(loaded + line + store, {.grid = {1, 1, 1}, .block = {128, 1, 1}}).time.cycles;
  };
  EXPECT_NEAR(cycles("  setmaxnreg.dec.sync.aligned.u32 40;\n") - cycles(""),
              rate(TimingRate::RegisterChange), 3);
}

TEST(Time, AMmaOfATargetHasItsOwnMemory) {
  const std::string body = "  mul.wide.u32 %rd1, %t, 16;\n  add.u64 %rd1, %out, %rd1;\n"
                           "  ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
                           "  st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r1};\n";
  const auto microseconds = [&](std::string_view gpu) {
    return runTimed(body, {.grid = {4096, 1, 1}, .block = {512, 1, 1}}, 4 << 10,
                    CompletionPolicy::Timed, "sm_90a", 0, Predictor{.gpu = std::string(gpu)})
        .time;
  };
  const auto table = microseconds(""), h200 = microseconds("h200"), h100 = microseconds("h100");
  EXPECT_EQ(h200.cycles, table.cycles); // the table of the target was measured on it
  EXPECT_NE(h100.cycles, table.cycles);
}

TEST(Time, AGridOfManyWavesIsTimedWholeOrByASample) {
  const std::string body = "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n"
                           "  mad.lo.u32 %t, %r2, %r3, %t;\n  mul.wide.u32 %rd1, %t, 4;\n"
                           "  add.u64 %rd1, %out, %rd1;\n  ld.global.b32 %r1, [%rd1];\n"
                           "  add.u32 %r1, %r1, 1;\n  st.global.b32 [%rd1], %r1;\n";
  const size_t words = 132 * 64 * 256;
  const Timed whole = runTimed(body, {.grid = {132 * 64, 1, 1}, .block = {256, 1, 1}}, words);
  EXPECT_FALSE(whole.time.sampled());
  EXPECT_EQ(whole.out, std::vector<uint32_t>(words, 1));

  const Timed sample = runTimed(body, {.grid = {132 * 64, 1, 1}, .block = {256, 1, 1}}, words,
                                CompletionPolicy::Timed, "sm_90a", 0, {.sampleAfter = 150000});
  EXPECT_TRUE(sample.time.sampled());
  EXPECT_EQ(sample.out, std::vector<uint32_t>(words, 1));
  EXPECT_NEAR(sample.time.cycles, whole.time.cycles, 0.03 * whole.time.cycles);
  EXPECT_NEAR(sample.time.memoryBytes, whole.time.memoryBytes, 0.03 * whole.time.memoryBytes);
}

TEST(Time, WithoutResultsOnlyTheSampleRuns) {
  const std::string body = "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n"
                           "  mad.lo.u32 %t, %r2, %r3, %t;\n  mov.u32 %r1, 1;\n" +
                           repeated("  ex2.approx.ftz.f32 %r4, %r1;\n", 8) + store;
  const size_t words = 132 * 64 * 256;
  const Timed sample =
      runTimed(body, {.grid = {132 * 64, 1, 1}, .block = {256, 1, 1}}, words,
               CompletionPolicy::Timed, "sm_90a", 0, {.timesOnly = true, .sampleAfter = 150000});
  EXPECT_TRUE(sample.time.sampled());
  EXPECT_LT(std::count(sample.out.begin(), sample.out.end(), 1u), ptrdiff_t(words / 2));
}

/// MMAs have a clock of their own on an H200, unless another is asked for.
TEST(Time, MmasHaveTheClockOfTheTensorCores) {
  const auto clockOf = [](const std::string &body, double asked) {
    return runTimed(operands(128) + body,
                    {.grid = {1, 1, 1}, .block = {128, 1, 1}, .dynamicSharedBytes = 16384}, 4096,
                    CompletionPolicy::Timed, "sm_90a", 0, {.gigahertz = asked})
        .time.gigahertz;
  };
  EXPECT_EQ(clockOf(products(8, 1), 0), rate(TimingRate::TensorGigahertz));
  EXPECT_EQ(clockOf(products(8, 1), 1.5), 1.5);
  EXPECT_EQ(clockOf("", 0), rate(TimingRate::Gigahertz));
}

/// CTAs that stay and take every 132nd of `tiles`; without results, so that a sample is taken.
KernelTime persistent(unsigned tiles, uint64_t sampleAfter) {
  const std::string body =
      operands(128) + "  mov.u32 %r2, %ctaid.x;\nTILE:\n" + products(8, 4) +
      repeated("  ex2.approx.ftz.f32 %r1, %r1;\n", 20) +
      fmt::format("  add.u32 %r2, %r2, 132;\n  setp.lt.u32 %p1, %r2, {};\n  @%p1 bra TILE;\n",
                  tiles);
  return runTimed(body, {.grid = {132, 1, 1}, .block = {128, 1, 1}, .dynamicSharedBytes = 16384},
                  4096, CompletionPolicy::Timed, "sm_90a", 0,
                  {.timesOnly = true, .sampleAfter = sampleAfter})
      .time;
}

TEST(Time, ASampleComputesWhatAPersistentGridDoesAlthoughTheFirstBlocksDoMore) {
  for (unsigned tiles : {132 * 8 - 60, 132 * 8}) { // the last 60 CTAs have a tile less, or none
    const KernelTime whole = persistent(tiles, 0), sample = persistent(tiles, 60000);
    ASSERT_TRUE(sample.sampled() && !whole.sampled());
    EXPECT_EQ(whole.flops, tiles * 4 * 2.0 * 64 * 8 * 16);
    EXPECT_NEAR(sample.flops, whole.flops, 0.001 * whole.flops) << tiles;
    EXPECT_NEAR(sample.cycles, whole.cycles, 0.03 * whole.cycles) << tiles;
  }
}

TEST(Time, MmasWhoseSumsNobodyUsesTakeNoTime) {
  const auto time = [](int times, bool stored) {
    return runTimed(operands(128) + products(64, times, stored),
                    {.grid = {1, 1, 1}, .block = {128, 1, 1}, .dynamicSharedBytes = 16384})
        .time;
  };
  constexpr double flops = 2.0 * 64 * 64 * 16;
  const double interval = flops / rate(TimingRate::HalfFlops);
  EXPECT_NEAR(time(200, true).cycles - time(100, true).cycles, 100 * interval, 10);
  EXPECT_NEAR(time(200, false).cycles - time(100, false).cycles, 0, 10);
  EXPECT_EQ(time(100, true).flops, 100 * flops);
  EXPECT_EQ(time(100, false).flops, 0);
}

TEST(Time, DeviceMemoryDeliversSectorsOrPairsOfThem) {
  const std::string body = "  mul.wide.u32 %rd1, %t, 128;\n  add.u64 %rd1, %out, %rd1;\n"
                           "  ld.global.b32 %r1, [%rd1];\n  add.u32 %r2, %r1, 1;\n";
  for (const std::string target : {"sm_90a", "sm_100a"}) {
    const KernelTime time = runTimed(body, oneWarp, 4096, CompletionPolicy::Timed, target).time;
    EXPECT_EQ(time.memoryBytes, 32 * rate(TimingRate::MemoryGranule, target)) << target;
  }
}

TEST(Time, ClustersOfFourFindRoomOnFewerSms) {
  const auto slots = [&](unsigned cluster) {
    return runTimed("  mov.u32 %r1, %t;\n",
                    {.grid = {148, 1, 1}, .block = {32, 1, 1}, .cluster = {cluster, 1, 1}}, 4096,
                    CompletionPolicy::Timed, "sm_100a")
        .time.sample.sms;
  };
  EXPECT_EQ(slots(2), 148u);
  EXPECT_EQ(slots(4), uint32_t(rate(TimingRate::ClustersOfFour, "sm_100a")));
}

/// As `benchmarks/micro/run.py --only residency` measures it on an H200: a scheduler has registers
/// for five warps with 96 each, so that no third CTA of seven warps finds room, although the SM has
/// 65536 registers and 21 such warps need 64512.
TEST(Time, ABlockNeedsRegistersOfTheSchedulersOfItsWarps) {
  const auto blocks = [](unsigned registers, unsigned warps) {
    std::string text = kernelText("  mov.u32 %r1, %t;\n", "", "sm_90a");
    text.insert(text.find("\n{"), fmt::format(" .maxnreg {}", registers));
    return runText(text, {.grid = {132, 1, 1}, .block = {32 * warps, 1, 1}}).time.ctasPerSm;
  };
  EXPECT_EQ(blocks(96, 7), 2u);
  EXPECT_EQ(blocks(96, 4), 5u);
  EXPECT_EQ(blocks(88, 7), 2u);
  EXPECT_EQ(blocks(80, 7), 3u);
}

/// H200, micro: conversions: 24.1 clk each on one accumulator, and 31 with a LOP3 between them.
TEST(Time, AMmaHasTheSumsOfAnotherSoonerThanArithmeticHas) {
  const auto interval = [](const std::string &between) {
    std::string begin;
    for (int i = 0; i < 4; ++i)
      begin += fmt::format("  mov.b32 %v{}, 0;\n", i);
    const std::string line =
        "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%v0, %v1, %v2, "
        "%v3}, {%r4, %t, %t, %t}, {%t, %t}, {%v0, %v1, %v2, %v3};\n" +
        between;
    const auto cycles = [&](int times) {
      return runTimed(begin + "  mov.b32 %r4, 0;\n" + repeated(line, times) +
                          "  mov.b32 %r1, %v0;\n" + store,
                      {.grid = {1, 1, 1}, .block = {32, 1, 1}})
          .time.cycles;
    };
    return (cycles(48) - cycles(16)) / 32;
  };
  EXPECT_NEAR(interval(""), rate(TimingRate::MmaSyncChain), 0.5);
  EXPECT_NEAR(interval("  lop3.b32 %r4, %v0, %t, %t, 0x1e;\n"), 31, 0.5);
}

TEST(Time, MmasWithScalesHaveTheirOwnRate) {
  const auto interval = [](const std::string &form, const std::string &rest) {
    const std::string line = "  mma.sync.aligned." + form +
                             "{%v0, %v1, %v2, %v3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, "
                             "{%v0, %v1, %v2, %v3}" +
                             rest + ";\n";
    std::string begin;
    for (int i = 0; i < 4; ++i)
      begin += fmt::format("  mov.b32 %v{}, 0;\n", i);
    for (int i = 4; i < 12; ++i)
      begin += fmt::format("  mov.b32 %r{}, 0;\n", i);
    const auto cycles = [&](int times) {
      return runTimed(begin + "  .reg .b16 %zero;\n  mov.b16 %zero, 0;\n" + repeated(line, times) +
                          "  mov.b32 %r1, %v0;\n" + store,
                      {.grid = {1, 1, 1}, .block = {512, 1, 1}}, 4096, CompletionPolicy::Timed,
                      "sm_120a")
          .time.cycles;
    };
    return (cycles(96) - cycles(32)) / 64;
  };
  const std::string scales = ", {%r10}, {%zero, %zero}, {%r11}, {%zero, %zero}";
  constexpr double warpsOfScheduler = 4, flops = 2.0 * 16 * 8 * 32, quarter = 4;
  const auto expected = [&](TimingRate which, double k) {
    return warpsOfScheduler * flops * k / 32 / (rate(which, "sm_120a") / quarter);
  };
  EXPECT_NEAR(
      interval("kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 ",
               scales),
      expected(TimingRate::Fp4Flops, 64), 1);
  EXPECT_NEAR(
      interval("kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 ",
               scales),
      expected(TimingRate::ScaledQuarterFlops, 32), 1);
  EXPECT_NEAR(interval("m16n8k32.row.col.f32.e4m3.e4m3.f32 ", ""),
              expected(TimingRate::QuarterFlops, 32), 1);
}

TEST(Time, BlocksBeginOneWarpAfterTheOther) {
  const auto cycles = [](uint32_t threads) {
    return runTimed("  mov.u32 %r1, %t;\n", {.grid = {2 * 132, 1, 1}, .block = {threads, 1, 1}})
        .time.cycles;
  };
  EXPECT_NEAR(cycles(1024) - cycles(32), 31 * rate(TimingRate::WarpStart), 40);
}

TEST(Time, FirstLoadsOfALaunchWaitForThoseBehindThem) {
  constexpr unsigned blocks = 8 * 132, threads = 128, chain = 256;
  const std::string body = "  mov.u32 %r1, %ctaid.x;\n  mad.lo.u32 %r1, %r1, 128, %t;\n"
                           "  mul.wide.u32 %rd1, %r1, 32;\n  add.u64 %rd1, %out, %rd1;\n"
                           "  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd1];\n"
                           "  ld.global.v4.b32 {%v4, %v5, %v6, %v7}, [%rd1+16];\n";
  std::string arithmetic;
  for (unsigned i = 0; i < chain; ++i)
    arithmetic +=
        "  fma.rn.f32 %v" + std::to_string(i % 8) + ", %v" + std::to_string(i % 8) + ", %t, %t;\n";
  const double cycles =
      runTimed(body + arithmetic, {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}},
               8 * blocks * threads)
          .time.cycles;
  // Eight warps of a scheduler do nothing else once they have what half of the bytes before them
  // took.
  const double service = 32.0 * blocks * threads * rate(TimingRate::Gigahertz) /
                         (rate(TimingRate::MemoryTerabytes) * 1e3),
               issue = 8 * chain,
               others = rate(TimingRate::FirstCtas) + rate(TimingRate::MemoryLatency);
  EXPECT_GT(cycles, others + rate(TimingRate::MemoryDisorder) * service + issue - 100);
  constexpr double pieces = 50; // a warp waits for the last of two
  EXPECT_LT(cycles, others + service + issue + pieces);
}

/// CTAs of 1024 threads, of which `first` fill all SMs and the others follow.
constexpr unsigned first = 2 * 132, ctaThreads = 1024;
double cyclesOfCtas(const std::string &body, unsigned blocks, size_t words) {
  return runTimed(body, {.grid = {blocks, 1, 1}, .block = {ctaThreads, 1, 1}}, words).time.cycles;
}

/// %rd1 is `bytes` times the number of the thread in the grid, behind %out.
std::string placeOfThread(unsigned bytes) {
  return "  mov.u32 %r1, %ctaid.x;\n  mad.lo.u32 %r1, %r1, 1024, %t;\n  mul.wide.u32 %rd1, %r1, " +
         std::to_string(bytes) + ";\n  add.u64 %rd1, %out, %rd1;\n";
}

TEST(Time, AWarpWaitsLongerThanOthersOnlyForWhatIsBehind) {
  // Each warp loads a line, and its cycles go there: those of the last CTA are all there is.
  const std::string body = placeOfThread(4) +
                           "  mov.u64 %rd4, %clock64;\n  ld.global.b32 %r2, [%rd1];\n"
                           "  xor.b32 %r3, %r2, %r2;\n  cvt.u64.u32 %rd6, %r3;\n"
                           "  mov.u64 %rd5, %clock64;\n  sub.u64 %rd4, %rd5, %rd4;\n"
                           "  add.u64 %rd4, %rd4, %rd6;\n"
                           "  cvt.u32.u64 %r1, %rd4;\n  st.global.b32 [%rd1], %r1;\n";
  const Timed result = runTimed(body, {.grid = {first + 1, 1, 1}, .block = {ctaThreads, 1, 1}},
                                (first + 1) * ctaThreads);
  const std::span<const uint32_t> last = std::span(result.out).last(ctaThreads);
  const auto [least, most] = std::ranges::minmax(last);
  const double mean = rate(TimingRate::MemoryLatency) + 60; // wait of a read alone
  EXPECT_LT(least, mean - 150);
  EXPECT_LT(most, mean + 80);
}

TEST(Time, ASuccessorDoesNotWaitForStores) {
  const std::string body = placeOfThread(4) + "  st.global.b32 [%rd1], %r1;\n";
  constexpr unsigned few = 4 * first, many = 12 * first;
  const double turn =
      (cyclesOfCtas(body, many, many * ctaThreads) - cyclesOfCtas(body, few, few * ctaThreads)) / 8;
  const double starts = ctaThreads / 32 * rate(TimingRate::WarpStart),
               computes = rate(TimingRate::SpecialLatency) + 40;
  EXPECT_LT(turn, starts + computes + rate(TimingRate::CtaReplace) + 60);
}

TEST(Time, BlocksThatFollowEachOtherReadInOrder) {
  const std::string body = placeOfThread(64) +
                           "  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd1];\n"
                           "  ld.global.v4.b32 {%v4, %v5, %v6, %v7}, [%rd1+16];\n"
                           "  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd1+32];\n"
                           "  ld.global.v4.b32 {%v4, %v5, %v6, %v7}, [%rd1+48];\n";
  constexpr unsigned few = 4 * first, many = 8 * first;
  const double cycles = cyclesOfCtas(body, many, 16 * many * ctaThreads) -
                        cyclesOfCtas(body, few, 16 * many * ctaThreads);
  const double bytes = 64.0 * (many - few) * ctaThreads,
               service =
                   bytes * rate(TimingRate::Gigahertz) / (rate(TimingRate::MemoryTerabytes) * 1e3);
  EXPECT_NEAR(service / cycles, 1 + rate(TimingRate::MemoryInOrder), 0.02);
}

} // namespace
