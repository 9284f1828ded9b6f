//===- IdleTest.cpp - Code that --time-only leaves out; the calendar ------===//
#include "../Async/KernelHarness.h"
#include "Sim/Time/Calendar.h"
#include "fp4/Sim/Predictor.h"
#include <algorithm>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

struct Result {
  KernelTime time;
  std::vector<uint32_t> out;
};

constexpr unsigned threads = 128, words = 1024;
constexpr unsigned counts = 1000, count = 3; ///< place and value of four words that are not zero

Result run(const std::string &body, bool timesOnly, unsigned blocks = 1) {
  Result result;
  SimOptions options;
  options.policy = CompletionPolicy::Timed;
  options.target = "sm_90a";
  options.spinLimit = 1 << 18; // one that polls for ever fails at once
  options.predicted =
      Predictor{.timesOnly = timesOnly,
                .receive = [&](KernelTime time, std::string) { result.time = std::move(time); }};
  Simulator simulator(options);
  auto program = parse(kernelText(body, "", "sm_90a"));
  const uint64_t out = simulator.memory().allocate(4 * words, "out");
  result.out.resize(words);
  std::fill_n(result.out.begin() + counts, 4, count);
  EXPECT_TRUE(simulator.memory().write(out, result.out.data(), 4 * words));
  const auto stats = simulator.launch(
      *program, "test",
      {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .dynamicSharedBytes = 16384},
      Params().add(out).span());
  EXPECT_TRUE(stats) << stats.error().message;
  EXPECT_TRUE(simulator.memory().read(out, result.out.data(), 4 * words));
  return result;
}

/// Zeros in shared memory behind the first 8 KiB but for two words, a descriptor of them in %rd4,
/// and what is needed from before setmaxnreg on: addresses.
const std::string setUp = R"(
  mov.u32 %r2, dynamic;
  mad.lo.u32 %r3, %t, 16, %r2;
  mov.u32 %r4, 0;
  mov.u32 %r5, 5;
  st.shared.v4.b32 [%r3+8192], {%r4, %r4, %r4, %r4};
  st.shared.v4.b32 [%r3+10240], {%r4, %r4, %r4, %r4};
  st.shared.b32 [dynamic], %r5;
  fence.proxy.async;
  shr.u32 %r2, %r2, 4;
  cvt.u64.u32 %rd4, %r2;
  or.b64 %rd4, %rd4, 0x4000004000010200;
  mul.wide.u32 %rd1, %t, 4;
  add.u64 %rd1, %out, %rd1;
  setmaxnreg.dec.sync.aligned.u32 64;
  bar.sync 0;
)";

/// As many MMAs as shared memory says, whose A is computed, and results that follow from them.
const std::string mmasOfRegisters = R"(
  ld.shared.b32 %r6, [dynamic];
  mov.u32 %r10, %t;
LOOP:
  mad.lo.u32 %r10, %r10, 17, %t;
  and.b32 %r11, %r10, 0x3c003c00;
  mov.u32 %r12, %r11;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0,%v1,%v2,%v3}, {%r11,%r12,%r11,%r12}, %rd4, 1, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  sub.u32 %r6, %r6, 1;
  setp.ne.u32 %p1, %r6, 0;
  @%p1 bra LOOP;
  add.f32 %v4, %v0, 0f3F800000;
  st.global.b32 [%rd1], %v4;
  mov.u32 %r7, 3;
  add.u32 %r8, %r7, %t;
  st.global.b32 [%rd1+512], %r8;
)";

TEST(Idle, WhatOnlyMmasAndResultsNeedTakesItsTimeAndIsNotExecuted) {
  const Result all = run(setUp + mmasOfRegisters, false), only = run(setUp + mmasOfRegisters, true);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  EXPECT_EQ(only.time.flops, all.time.flops);
  EXPECT_EQ(all.time.flops, 5 * 2.0 * 64 * 8 * 16); // the loop's count was loaded
  for (unsigned t = 0; t < threads; ++t) {
    EXPECT_EQ(all.out[t], 0x3F800000u);
    EXPECT_NE(only.out[t], 0x3F800000u);     // follows from an MMA
    EXPECT_EQ(only.out[threads + t], 3 + t); // a flag, say
  }
}

TEST(Idle, AKernelWithoutMmasIsExecuted) {
  const std::string body = "  add.u32 %r1, %t, 7;\n  mul.wide.u32 %rd1, %t, 4;\n"
                           "  add.u64 %rd1, %out, %rd1;\n  st.global.b32 [%rd1], %r1;\n";
  const Result all = run(body, false), only = run(body, true);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  EXPECT_EQ(only.out, all.out);
}

/// A kernel in which a predicate depends on the operands that it computes for the MMAs.
TEST(Idle, WhatABranchDependsOnIsExecuted) {
  const std::string body = setUp + mmasOfRegisters +
                           "  setp.lt.u32 %p2, %r10, 2000000;\n  @%p2 bra END;\n  st.global.b32 "
                           "[%rd1+1024], %r7;\nEND:\n";
  const Result all = run(body, false), only = run(body, true);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  const auto stored = [](const Result &o) {
    return std::vector<uint32_t>(o.out.begin() + 2 * threads, o.out.begin() + 3 * threads);
  };
  EXPECT_EQ(stored(only), stored(all));
  EXPECT_EQ(std::ranges::count(stored(all), 3u) % threads == 0, false); // some lanes, not all
}

/// Expects one predicted time with and without what --time-only leaves out. Returns both results.
std::pair<Result, Result> runBoth(const std::string &body, unsigned blocks = 1) {
  const Result all = run(body, false, blocks), only = run(body, true, blocks);
  EXPECT_GT(all.time.cycles, 0);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  return {all, only};
}

const std::string oneMma = R"(
  cvt.rn.f32.u32 %r11, %t;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0,%v1,%v2,%v3}, {%r11,%r11,%r11,%r11}, %rd4, 1, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  add.f32 %v4, %v0, 0f3F800000;
  st.global.b32 [%rd1], %v4;
)";

/// As many turns as %r6 says, so that the time depends on it.
const std::string countDown = R"(
COUNT:
  setp.eq.u32 %p5, %r6, 0;
  @%p5 bra COUNTED;
  sub.u32 %r6, %r6, 1;
  bra COUNT;
COUNTED:
)";

/// A sum that nobody uses but for its carry, on which a count depends.
TEST(Idle, WhatOnlyACarryIsNeededOfIsExecuted) {
  const auto [all, only] = runBoth(setUp + oneMma + R"(
  mov.u32 %r6, -1;
  add.cc.u32 %r7, %r6, 1;
  addc.u32 %r6, 400, 0;
  st.global.b32 [%rd1+512], %r6;
)" + countDown);
  for (const Result &result : {all, only})
    for (unsigned t = 0; t < threads; ++t)
      EXPECT_EQ(result.out[threads + t], 401u);
}

/// CTA 1 polls a counter in global memory, which CTA 0 raises by an asynchronous operation.
TEST(Idle, CountersThatOthersPollRise) {
  const auto body = [&](const std::string &raise) {
    return setUp + oneMma + R"(
  mov.u32 %r20, %ctaid.x;
  mov.u32 %r22, 1;
  add.u64 %rd5, %out, 2048;
  mov.u32 %r23, dynamic;
  add.u32 %r23, %r23, 16;
  st.shared.v4.b32 [%r23], {%r22, %r4, %r4, %r4};
  fence.proxy.async;
  bar.sync 0;
  setp.eq.u32 %p4, %t, 0;
  setp.eq.and.u32 %p4, %r20, 0, %p4;
)" + raise +
           R"(
  setp.eq.u32 %p3, %r20, 0;
  @%p3 bra END;
POLL:
  ld.acquire.gpu.global.b32 %r21, [%rd5];
  setp.eq.u32 %p5, %r21, 0;
  @%p5 bra POLL;
END:
)";
  };
  const std::string wait = "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n";
  for (const std::string &raise :
       {std::string("  @%p4 red.async.release.gpu.global.add.u32 [%rd5], %r22;\n"),
        "  @%p4 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd5], [%r23], 16;\n" +
            wait,
        "  @%p4 cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r23], 16;\n" + wait}) {
    SCOPED_TRACE(raise);
    const auto [all, only] = runBoth(body(raise), 2);
    EXPECT_EQ(all.out[512], 1u);
    EXPECT_EQ(only.out[512], 1u);
  }
}

/// A register that held a result holds a number of a tile later: it is stored and loaded again.
TEST(Idle, WhatFollowsAResultInItsRegisterIsExecuted) {
  const auto [all, only] = runBoth(setUp + oneMma + R"(
  mov.b32 %v4, %r5;
  st.global.b32 [%rd1+512], %v4;
  st.shared.b32 [dynamic+64], %v4;
  bar.sync 0;
  ld.shared.b32 %r6, [dynamic+64];
  st.global.b32 [%rd1+1024], %r6;
)" + countDown);
  for (const Result &result : {all, only})
    for (unsigned t = 0; t < threads; ++t) {
      EXPECT_EQ(result.out[threads + t], 5u);
      EXPECT_EQ(result.out[2 * threads + t], 5u);
    }
}

/// Shared memory that is loaded at unknown places may hold anything, though it follows from
/// results.
TEST(Idle, SharedMemoryThatIsLoadedAnywhereIsStored) {
  const auto [all, only] = runBoth(setUp + oneMma + R"(
  and.b32 %r24, %v4, 0;
  add.u32 %r24, %r24, 500;
  st.shared.b32 [%r3], %r24;
  ld.shared.b32 %r6, [%r3];
  st.global.b32 [%rd1+512], %r6;
)" + countDown);
  for (unsigned t = 0; t < threads; ++t) {
    EXPECT_EQ(all.out[threads + t], 500u);
    EXPECT_EQ(only.out[threads + t], 500u);
  }
}

/// A copy brings a count to 4096 bytes behind `dynamic`: in %r28, of thread `t` in %r29.
const std::string bringCount = R"(
  mov.u32 %r26, dynamic;
  add.u32 %r27, %r26, 64;
  add.u32 %r28, %r26, 4096;
  and.b32 %r29, %t, 3;
  mad.lo.u32 %r29, %r29, 4, %r28;
  add.u64 %rd6, %out, 4000;
  setp.eq.u32 %p3, %t, 0;
  @%p3 mbarrier.init.shared.b64 [%r27], 1;
  fence.proxy.async;
  @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r27], 16;
  @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r28], [%rd6], 16, [%r27];
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r27], 0;
  @!%p4 bra WAIT;
  mov.b64 %rd7, 0x0000100000000040;
  mov.b64 {%r30, %r31}, %rd7;
  add.u32 %r31, %r26, %r31;
  mov.b64 {%r32, %r33}, %rd7;
  add.u32 %r34, %r26, %r33;
)";

TEST(Idle, CopiesOfWhatABranchDependsOnAreExecuted) {
  for (const char *load : {"  ld.shared.b32 %r6, [dynamic+4096];\n", // known where
                           "  ld.shared.b32 %r6, [%r29];\n",         // of each thread
                           "  ld.shared.b32 %r6, [%r34];\n"}) {      // the upper half of a constant
    SCOPED_TRACE(load);
    const auto [all, only] = runBoth(setUp + oneMma + bringCount + load +
                                     "  st.global.b32 [%rd1+512], %r6;\n" + countDown);
    for (unsigned t = 0; t < threads; ++t) {
      EXPECT_EQ(all.out[threads + t], count);
      EXPECT_EQ(only.out[threads + t], count);
    }
  }
}

TEST(Idle, AMmaThatABranchDependsOnIsExecuted) {
  const auto [all, only] = runBoth(R"(
  mov.u32 %r11, 0x3c003c00;
  mov.b32 %v0, 0;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%v0,%v1,%v2,%v3}, {%r11,%r11,%r11,%r11}, {%r11,%r11}, {%v0,%v0,%v0,%v0};
  cvt.rzi.u32.f32 %r6, %v0;
  mul.wide.u32 %rd1, %t, 4;
  add.u64 %rd1, %out, %rd1;
  st.global.b32 [%rd1], %r6;
)" + countDown);
  EXPECT_EQ(all.out[0], 16u);
  EXPECT_EQ(only.out[0], 16u);
}

TEST(Calendar, GivesEventsInTheOrderOfTheirTimesAndThenOfTheirComing) {
  std::mt19937 rng(7);
  Calendar calendar;
  std::vector<TimedEvent> sorted; // the last is the next
  uint64_t order = 0;
  for (int step = 0; step < 20000; ++step) {
    ASSERT_EQ(calendar.empty(), sorted.empty());
    if (!sorted.empty() && rng() % 2) {
      ASSERT_EQ(calendar.top().order, sorted.back().order);
      ASSERT_EQ(calendar.take().order, sorted.back().order);
      sorted.pop_back();
    }
    for (unsigned n = rng() % 3; n > 0; --n) {
      const TimedEvent event{double(rng() % 16), order++, 0, 0, 0};
      calendar.push(event);
      const auto later = [](const TimedEvent &a, const TimedEvent &b) { return b.before(a); };
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), event, later), event);
    }
  }
}

} // namespace
