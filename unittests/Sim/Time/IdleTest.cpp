//===- IdleTest.cpp - What --time-only leaves out, and the calendar -------===//
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

Result run(const std::string &body, bool timesOnly) {
  Result result;
  SimOptions options;
  options.policy = CompletionPolicy::Timed;
  options.target = "sm_90a";
  options.predicted =
      Predictor{.timesOnly = timesOnly,
                .receive = [&](KernelTime time, std::string) { result.time = std::move(time); }};
  Simulator simulator(options);
  auto program = parse(kernelText(body, "", "sm_90a"));
  const uint64_t out = simulator.memory().allocate(4 * words, "out");
  result.out.resize(words);
  EXPECT_TRUE(simulator.memory().write(out, result.out.data(), 4 * words));
  const auto stats = simulator.launch(
      *program, "test", {.grid = {1, 1, 1}, .block = {threads, 1, 1}, .dynamicSharedBytes = 16384},
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

/// As many products as shared memory says, whose A is computed, and results that follow from them.
const std::string productsOfRegisters = R"(
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

TEST(Idle, WhatOnlyProductsAndResultsNeedTakesItsTimeAndIsNotExecuted) {
  const Result all = run(setUp + productsOfRegisters, false),
               only = run(setUp + productsOfRegisters, true);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  EXPECT_EQ(only.time.flops, all.time.flops);
  EXPECT_EQ(all.time.flops, 5 * 2.0 * 64 * 8 * 16); // the loop's count was loaded
  for (unsigned t = 0; t < threads; ++t) {
    EXPECT_EQ(all.out[t], 0x3F800000u);
    EXPECT_NE(only.out[t], 0x3F800000u);     // follows from a product
    EXPECT_EQ(only.out[threads + t], 3 + t); // a flag, say
  }
}

TEST(Idle, AKernelWithoutProductsIsExecuted) {
  const std::string body = "  add.u32 %r1, %t, 7;\n  mul.wide.u32 %rd1, %t, 4;\n"
                           "  add.u64 %rd1, %out, %rd1;\n  st.global.b32 [%rd1], %r1;\n";
  const Result all = run(body, false), only = run(body, true);
  EXPECT_EQ(only.time.cycles, all.time.cycles);
  EXPECT_EQ(only.out, all.out);
}

/// The same kernel, but a predicate depends on what it computes for the products.
TEST(Idle, WhatABranchDependsOnIsExecuted) {
  const std::string body = setUp + productsOfRegisters +
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
