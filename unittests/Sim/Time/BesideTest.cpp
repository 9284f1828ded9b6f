//===- BesideTest.cpp - Warps beside others that multiply or copy ---------===//
#include "TimeHarness.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// The second warpgroup executes `line` so many times while the first executes `before`.
constexpr int besideTimes = 64;
Timed runBeside(const std::string &before, const std::string &line) {
  constexpr int times = besideTimes, bytes = 40960; // that m64n256 reads
  std::string work;
  for (int i = 0; i < times; ++i)
    work += fmt::format(fmt::runtime(line), i % 8);
  const std::string body =
      operands(256, bytes) + "  setp.ge.u32 %p1, %t, 128;\n  @%p1 bra OTHERS;\n" + before +
      "  bra.uni END;\nOTHERS:\n" + repeated("  ex2.approx.ftz.f32 %r20, %r20;\n", 20) +
      "  mov.u64 %rd5, %clock64;\n" + work +
      "  cp.async.wait_all;\n  add.u32 %r21, %r10, %r17;\n  mov.u64 %rd6, %clock64;\n  sub.u64 %rd6, %rd6, %rd5;\n"
      "  cvt.u32.u64 %r1, %rd6;\n" +
      store + "END:\n";
  return runTimed(body, {.grid = {1, 1, 1}, .block = {256, 1, 1}, .dynamicSharedBytes = bytes});
}

/// Cycles of one of them.
double cyclesBeside(const std::string &before, const std::string &line) {
  return double(runBeside(before, line).out[128]) / besideTimes;
}

TEST(BesideTime, ArithmeticBesideMmasIsSlower) {
  const std::string wide = products(64, 40);
  const std::string logic = "  prmt.b32 %r1{0}, %r1{0}, %t, 12816;\n",
                    multiply = "  mad.lo.u32 %r1{0}, %r1{0}, %t, 3;\n",
                    load = "  ld.shared.b32 %r1{0}, [dynamic];\n";
  const double beside = rate(TimingRate::BesideShared64);
  EXPECT_NEAR(cyclesBeside("", logic), rate(TimingRate::AluInterval), 0.2);
  EXPECT_NEAR(cyclesBeside(wide, logic), beside, 0.2);
  EXPECT_NEAR(cyclesBeside("", multiply), rate(TimingRate::ImadInterval), 0.2);
  EXPECT_NEAR(cyclesBeside(wide, multiply), beside, 0.2);
  // Four warps load, and the MMAs of 64 columns read all the time. The latency of the last load is
  // two thirds of a cycle of each.
  EXPECT_NEAR(cyclesBeside("", load), rate(TimingRate::HandOver), 0.7);
  EXPECT_GT(cyclesBeside(wide, load), 8);
  // B of m64n256 takes two thirds of the way of loads (H200, micro: beside), and none of a fill's
  const std::string fill = "  cp.async.cg.shared.global [dynamic+12288], [%out], 16;\n";
  EXPECT_GT(cyclesBeside(products(256, 10), load), 10);
  EXPECT_LT(runBeside(wide, fill).time.cycles, runBeside(wide, "").time.cycles + 300);
}

/// A of a small MMA takes longer to read than its arithmetic does. The next MMA waits for that, and
/// who waits for the last one does not.
TEST(BesideTime, AWaitForMmasEndsBehindTheirArithmetic) {
  const auto cycles = [](unsigned columns, int times) {
    return runTimed(operands(128) + products(columns, times),
                    {.grid = {1, 1, 1}, .block = {128, 1, 1}, .dynamicSharedBytes = 16384})
        .time.cycles;
  };
  EXPECT_NEAR(cycles(128, 1) - cycles(8, 1), 60, 1.5); // half a clock for each column
  EXPECT_NEAR(cycles(8, 5) - cycles(8, 1), 4 * 18, 1.5);
  EXPECT_NEAR(cycles(128, 5) - cycles(128, 1), 4 * 64, 1.5);
}

/// A warp's own special functions wait for what it has between them, and those beside MMAs for
/// longer. Two warps of a scheduler fill the pause.
TEST(BesideTime, SpecialFunctionsAmongOthersAndBesideMmasAreSlower) {
  const std::string special = "  ex2.approx.ftz.f32 %r1{0}, %r1{0};\n",
                    one = special + "  add.f32 %r2{0}, %r2{0}, %t;\n",
                    three = one + "  mul.f32 %r3{0}, %r3{0}, %t;\n  max.f32 %r2{0}, %r2{0}, %t;\n",
                    wide = products(128, 60);
  const double alone = rate(TimingRate::MufuInterval), among = rate(TimingRate::MufuAmong),
               beside = rate(TimingRate::MufuBeside);
  EXPECT_NEAR(cyclesBeside("", special), alone, 0.3);
  EXPECT_NEAR(cyclesBeside("", one), alone + among, 0.3);
  EXPECT_NEAR(cyclesBeside("", three), alone + 2 * among, 0.3);
  EXPECT_NEAR(cyclesBeside(wide, special), beside, 0.3);
  EXPECT_NEAR(cyclesBeside(wide, three), beside + 2 * among, 0.3);
}

/// The clock behind the `issued`-th of some MMAs of each of `groups` warpgroups, since the first.
double cyclesToIssue(unsigned groups, unsigned issued) {
  std::string body = operands(128 * groups) + "  bar.sync 0;\n  wgmma.fence.sync.aligned;\n"
                                              "  mov.u32 %r30, %clock;\n";
  for (unsigned i = 0; i < issued; ++i)
    body += product(128);
  body += "  mov.u32 %r31, %clock;\n  sub.u32 %r1, %r31, %r30;\n"
          "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n"
          "  st.shared.b32 [dynamic+16380], %v0;\n";
  const Timed timed =
      runTimed(body + store,
               {.grid = {1, 1, 1}, .block = {128 * groups, 1, 1}, .dynamicSharedBytes = 16384});
  return *std::max_element(timed.out.begin(), timed.out.begin() + 128 * groups);
}

TEST(BesideTime, AWarpWaitsUntilTheTensorCoreTakesItsMma) {
  const auto room = unsigned(rate(TimingRate::WgmmaQueue));
  constexpr double each = 64; // of m64n128
  EXPECT_LT(cyclesToIssue(1, room), each);
  EXPECT_NEAR(cyclesToIssue(1, room + 8) - cyclesToIssue(1, room + 4), 4 * each, 2);
  // Two take turns: neither waits for all that the other one has.
  EXPECT_LT(cyclesToIssue(2, room / 2), each);
  EXPECT_NEAR(cyclesToIssue(2, room + 8) - cyclesToIssue(2, room + 4), 8 * each, 2);
}

TEST(BesideTime, WideMmasBesideOthersTakeLongerAndDelayThem) {
  const std::string wide = "  mul.hi.u32 %r1{0}, %r1{0}, %t;\n";
  EXPECT_NEAR(cyclesBeside(products(16, 100), wide), rate(TimingRate::WideBeside16), 0.3);
  EXPECT_NEAR(cyclesBeside(products(64, 100), wide), rate(TimingRate::WideBeside64), 0.3);
  // a part of the delay hides where a group of MMAs ends
  const std::string others = repeated(products(256, 4), 4);
  const double delay = runBeside(others, wide).time.cycles - runBeside(others, "").time.cycles;
  EXPECT_GT(delay, 0.4 * besideTimes * rate(TimingRate::WideDelay));
  EXPECT_LT(delay, 1.1 * besideTimes * rate(TimingRate::WideDelay));
}

/// A few wait in a queue, and then the warps behind it.
TEST(BesideTime, WarpsWaitUntilSharedMemoryHasTakenTheirCopies) {
  const auto issued = [](int copies) {
    const std::string copy = "  cp.async.cg.shared.global [%r2], [%rd5], 16;\n";
    const std::string body = "  mov.u32 %r2, dynamic;\n  mad.lo.u32 %r2, %t, 16, %r2;\n"
                             "  mov.u64 %rd5, %out;\n  bar.sync 0;\n  mov.u32 %r3, %clock;\n" +
                             repeated(copy, copies) +
                             "  mov.u32 %r4, %clock;\n  sub.u32 %r1, %r4, %r3;\n"
                             "  cp.async.wait_all;\n  bar.sync 0;\n" + store;
    const Timed timed =
        runTimed(body, {.grid = {1, 1, 1}, .block = {512, 1, 1}, .dynamicSharedBytes = 16384});
    return double(*std::max_element(timed.out.begin(), timed.out.begin() + 512));
  };
  constexpr double warps = 16;
  EXPECT_NEAR(issued(12) - issued(8), 4 * warps, 8);
  EXPECT_LT(issued(4), 4 * warps - rate(TimingRate::FillQueue) + 30);
}

} // namespace
