//===- FetchTest.cpp - Instructions that are not near ---------------------===//
#include "Sim/Time/Machine.h"
#include "TimeHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// Cycles of each instruction of the second time through `length` that do not wait for each other.
double cyclesOfCode(int length) {
  const auto cycles = [&](int times) {
    std::string body = "  mov.u32 %r1, " + std::to_string(times) + ";\nAGAIN:\n";
    for (int i = 0; i < length; ++i)
      body += "  fma.rn.f32 %v" + std::to_string(i % 8) + ", %t, %t, %t;\n";
    body += "  sub.u32 %r1, %r1, 1;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra AGAIN;\n";
    return runTimed(body, {.grid = {1, 1, 1}, .block = {32, 1, 1}}).time.cycles;
  };
  return (cycles(3) - cycles(2)) / length;
}

/// Lines of parameters come one after the other to the warp that asks first, and others wait for
/// those that are on their way.
TEST(Fetch, ALineOfParametersComesOnce) {
  ParameterLines lines;
  EXPECT_EQ(lines.bring(0, 50, 60), 50);
  EXPECT_EQ(lines.bring(0b101, 100, 60), 220);
  EXPECT_EQ(lines.bring(0b001, 120, 60), 160);
  EXPECT_EQ(lines.bring(0b100, 300, 60), 300);
  EXPECT_EQ(lines.bring(0b010, 300, 60), 360);
}

TEST(Fetch, CodeThatTheNearestCacheDoesNotHoldComesSlowly) {
  const int held = int(rate(TimingRate::FetchInstructions));
  EXPECT_NEAR(cyclesOfCode(held / 2), 1, 0.1);
  EXPECT_NEAR(cyclesOfCode(2 * held), rate(TimingRate::FetchInterval), 0.1);
}

/// The code of a launch that fits was there, since the same launch ran before; of other code the
/// nearest cache had once every line at first.
TEST(Fetch, CodeThatDoesNotFitComesSlowlyInItsFirstPassToo) {
  const auto cycles = [](int length) {
    std::string body;
    for (int i = 0; i < length; ++i)
      body += "  fma.rn.f32 %v" + std::to_string(i % 8) + ", %t, %t, %t;\n";
    return runTimed(body, {.grid = {1, 1, 1}, .block = {32, 1, 1}}).time.cycles;
  };
  const int held = int(rate(TimingRate::FetchInstructions));
  EXPECT_NEAR((cycles(held / 2) - cycles(held / 4)) / (held / 4), 1, 0.1);
  EXPECT_NEAR((cycles(3 * held) - cycles(2 * held)) / held, rate(TimingRate::FetchInterval), 0.1);
}

/// Cycles of an instruction of the second time through `length`, of which each of two warps of two
/// schedulers has its own.
double cyclesOfTwoCodes(int length) {
  const auto cycles = [&](int times) {
    std::string body = "  mov.u32 %r1, " + std::to_string(times) +
                       ";\n"
                       "  setp.lt.u32 %p2, %t, 32;\n  @%p2 bra SECOND;\n";
    for (const char *label : {"FIRST", "SECOND"}) {
      body += std::string(label) + ":\n";
      for (int i = 0; i < length; ++i)
        body += "  fma.rn.f32 %v" + std::to_string(i % 8) + ", %t, %t, %t;\n";
      body += "  bar.sync 0;\n  sub.u32 %r1, %r1, 1;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra " +
              std::string(label) + ";\n  ret;\n";
    }
    return runTimed(body, {.grid = {1, 1, 1}, .block = {64, 1, 1}}).time.cycles;
  };
  return (cycles(3) - cycles(2)) / length;
}

/// Each scheduler had once a cache and a way of its own.
TEST(Fetch, SchedulersShareTheNearestCodeAndTheWayToTheRest) {
  const int held = int(rate(TimingRate::FetchInstructions));
  EXPECT_NEAR(cyclesOfTwoCodes(3 * held / 8), 1, 0.15);
  EXPECT_NEAR(cyclesOfTwoCodes(3 * held / 4), 2 * rate(TimingRate::FetchTogether), 0.2);
}

} // namespace
