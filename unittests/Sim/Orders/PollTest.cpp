// Warps that wait in a loop for a value in memory: a pass that finds nothing is no step of an
// order.
#include "OrderHarness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

//===--- A barrier of all, made of a counter ------------------------------===//

struct Meeting {
  std::string store = "  st.global.b32 [%rd1+32], %r1;\n"; ///< the others read it
  std::string count = "  atom.acq_rel.gpu.global.add.u32 %r4, [%out], 1;\n";
  std::string look = "ld.acquire.gpu.global.b32";
  std::string between = {}; ///< after the count, before the loop
};

/// Each of `warps` warps stores a word, counts, waits until all have, and copies its neighbour's
/// word.
std::string meetingKernel(uint32_t warps, const Meeting &parts) {
  return oneLane(fmt::format("  mul.wide.u32 %rd1, %r1, 4;\n  add.u64 %rd1, %rd1, %out;\n"
                             "  add.u32 %r2, %r1, 1;\n  rem.u32 %r2, %r2, {0};\n"
                             "  mul.wide.u32 %rd2, %r2, 4;\n  add.u64 %rd2, %rd2, %out;\n"
                             "{1}{2}{3}SPIN:\n  {4} %r5, [%out];\n"
                             "  setp.lo.u32 %p1, %r5, {0};\n  @%p1 bra SPIN;\n"
                             "  ld.global.b32 %r6, [%rd2+32];\n  st.global.b32 [%rd1+64], %r6;\n",
                             warps, parts.store, parts.count, parts.between, parts.look));
}

TEST(Polls, ABarrierOfAllHasTheOrdersOfItsCounts) {
  for (const uint32_t warps : {2, 3, 4}) {
    const Explored found = explore(meetingKernel(warps, {}), {.warps = warps, .words = 32});
    EXPECT_EQ(found.run.error + found.run.note, "");
    EXPECT_TRUE(found.report.complete);
    EXPECT_EQ(found.report.orders, warps == 2 ? 2u : warps == 3 ? 6u : 24u);
    EXPECT_EQ(found.run.out[16], 1u);
  }
}

TEST(Polls, ABarrierOfAllThatPublishesNothing) {
  Meeting relaxed;
  relaxed.count = "  atom.relaxed.gpu.global.add.u32 %r4, [%out], 1;\n";
  EXPECT_THAT(explore(meetingKernel(3, relaxed), {.warps = 3, .words = 32}).run.note,
              HasSubstr("race"));
  Meeting fenced = relaxed;
  fenced.count = "  fence.acq_rel.gpu;\n" + relaxed.count;
  EXPECT_EQ(explore(meetingKernel(3, fenced), {.warps = 3, .words = 32}).run.note, "");
  Meeting blind;
  blind.look = "ld.relaxed.gpu.global.b32";
  EXPECT_THAT(explore(meetingKernel(3, blind), {.warps = 3, .words = 32}).run.note,
              HasSubstr("relaxed-sync"));
}

TEST(Polls, ABarrierOfAllThatCountsTooEarly) {
  Meeting early;
  std::swap(early.store, early.between);
  const Explored found =
      explore(meetingKernel(2, early), {.warps = 2, .words = 32, .check = "off"});
  EXPECT_THAT(found.run.error, HasSubstr("the result depends on the order"));
  EXPECT_THAT(explore(meetingKernel(2, early), {.warps = 2, .words = 32}).run.note,
              HasSubstr("race"));
}

//===--- Flags that come and go -------------------------------------------===//

/// Warp 0 waits for a flag that warp 1 sets; warp `resets` takes it back.
std::string flagKernel(uint32_t resets, const std::string &loop) {
  return oneLane(
      fmt::format("  mov.u32 %r3, 1;\n  mov.u32 %r4, 0;\n  setp.eq.u32 %p1, %r1, 1;\n"
                  "  @%p1 bra SET;\n  setp.eq.u32 %p1, %r1, 2;\n  @%p1 bra THIRD;\n{}"
                  "  st.relaxed.gpu.global.b32 [%out+4], %r3;\n"
                  "{}  bra END;\n"
                  "SET:\n  st.relaxed.gpu.global.b32 [%out], %r3;\n  bra END;\nTHIRD:\n{}",
                  loop, resets == 0 ? "  st.relaxed.gpu.global.b32 [%out], %r4;\n" : "",
                  resets == 2 ? "  st.relaxed.gpu.global.b32 [%out], %r4;\n" : ""));
}

const std::string kLoop = "SPIN:\n  ld.relaxed.gpu.global.b32 %r2, [%out];\n"
                          "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n";

TEST(Polls, AFlagThatIsTakenBackTooEarlyIsFound) {
  EXPECT_THAT(explore(flagKernel(2, kLoop), {.warps = 3}).run.error, HasSubstr("livelock"));
  const Explored own = explore(flagKernel(0, kLoop), {.warps = 3});
  EXPECT_EQ(own.run.error + own.run.note, "");
  EXPECT_TRUE(own.report.complete);
  EXPECT_EQ(own.report.orders, 1u);
}

TEST(Polls, ALoopMaySleepAndLeaveInTheMiddle) {
  const std::string loop = "SPIN:\n  ld.relaxed.gpu.global.b32 %r2, [%out];\n"
                           "  setp.ne.u32 %p2, %r2, 0;\n  @%p2 bra OUT;\n  nanosleep.u32 20;\n"
                           "  bra SPIN;\nOUT:\n";
  const Explored found = explore(flagKernel(0, loop), {.warps = 3});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_EQ(found.report.orders, 1u);
}

/// A loop whose computed value is used behind it: each pass is a step.
TEST(Polls, ALoopThatKeepsSomethingIsNoWait) {
  const std::string change = "  xor.b32 %r6, %r6, %r7;\n";
  const auto text = [&](const std::string &inside) {
    return flagKernel(0, "  mov.u32 %r6, 0;\n  mov.u32 %r7, 1;\nSPIN:\n"
                         "  ld.relaxed.gpu.global.b32 %r2, [%out];\n" +
                             inside +
                             "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n"
                             "  st.global.b32 [%out+8], %r6;\n");
  };
  const auto after = [&] {
    return flagKernel(0, "  mov.u32 %r6, 0;\n  mov.u32 %r7, 1;\n" + kLoop + change +
                             "  st.global.b32 [%out+8], %r6;\n");
  };
  const Explored keeps = explore(text(change), {.warps = 3, .results = true, .check = "off"});
  EXPECT_EQ(keeps.results.size(), 2u); // passes are even, or odd
  EXPECT_EQ(explore(after(), {.warps = 3, .results = true, .check = "off"}).results.size(), 1u);
}

/// Each lane waits for a word of its own: they leave the loop one after the other.
TEST(Polls, LanesLeaveALoopOneByOne) {
  for (const char *back : {"  setp.eq.u32 %p3, %r2, 0;\n  @%p3 bra SPIN;\n",
                           "  setp.ne.u32 %p3, %r2, 0;\n  @%p3 bra OUT;\n  bra SPIN;\nOUT:\n"}) {
    const std::string text = kernelText(
        "  and.b32 %r0, %t, 31;\n  setp.gt.u32 %p0, %r0, 1;\n  @%p0 bra END;\n"
        "  mul.wide.u32 %rd1, %r0, 4;\n  add.u64 %rd1, %rd1, %out;\n  mov.u32 %r3, 5;\n"
        "  setp.lt.u32 %p1, %t, 32;\n  @%p1 bra SPIN;\n  setp.ne.u32 %p2, %r0, 0;\n"
        "  @%p2 bra END;\n  st.relaxed.gpu.global.b32 [%out], %r3;\n"
        "WAIT:\n  ld.relaxed.gpu.global.b32 %r4, [%out+16];\n  setp.eq.u32 %p2, %r4, 0;\n"
        "  @%p2 bra WAIT;\n  st.relaxed.gpu.global.b32 [%out+4], %r3;\n  bra END;\n"
        "SPIN:\n  ld.relaxed.gpu.global.b32 %r2, [%rd1];\n" +
        std::string(back) + "  st.relaxed.gpu.global.b32 [%rd1+16], %r2;\nEND:\n");
    const Explored found = explore(text, {.warps = 2});
    EXPECT_EQ(found.run.error + found.run.note, "");
    EXPECT_TRUE(found.report.complete);
    EXPECT_LE(found.report.orders, 4u);
    EXPECT_EQ(found.run.out[4], 5u);
    EXPECT_EQ(found.run.out[5], 5u);
  }
}

/// Lane 0 waits in a loop for what lane 1 stores when warp 1 has arrived at a barrier.
TEST(Polls, OtherLanesGoOnWhenTheyNoLongerWait) {
  const std::string text = kernelText(
      "  and.b32 %r0, %t, 31;\n  mov.u32 %r2, bar;\n  mov.u32 %r3, 7;\n"
      "  setp.eq.u32 %p0, %t, 0;\n  @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\n  bar.sync 0;\n"
      "  setp.gt.u32 %p0, %r0, 1;\n  @%p0 bra END;\n  setp.ge.u32 %p1, %t, 32;\n"
      "  @%p1 bra SECOND;\n  setp.eq.u32 %p1, %t, 1;\n  @%p1 bra W;\n"
      "SPIN:\n  ld.relaxed.gpu.global.b32 %r4, [%out];\n  setp.eq.u32 %p2, %r4, 0;\n"
      "  @%p2 bra SPIN;\n  st.global.b32 [%out+4], %r4;\n  bra END;\n"
      "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;\n  @!%p3 bra W;\n"
      "  st.relaxed.gpu.global.b32 [%out], %r3;\n  bra END;\n"
      "SECOND:\n  setp.ne.u32 %p1, %r0, 0;\n"
      "  @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];\nEND:\n",
      "  .shared .align 8 .b64 bar;\n");
  const Explored found = explore(text, {.warps = 2});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_TRUE(found.report.complete);
  EXPECT_EQ(found.run.out[1], 7u);
}

TEST(Polls, ALoopThatMayNotReadIsAnError) {
  const std::string loop = "  mov.u64 %rd1, 64;\nSPIN:\n  ld.relaxed.gpu.global.b32 %r2, [%rd1];\n"
                           "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n";
  const Explored found = explore(oneLane(loop), {.warps = 2});
  EXPECT_THAT(found.run.error, HasSubstr("test.ptx"));
  EXPECT_THAT(found.report.order, HasSubstr("0.0.0"));
}

//===--- Orders that are left out -----------------------------------------===//

/// Random instructions of two or three warps on two words, of which loops wait for odd values.
std::string randomKernel(std::mt19937 &random, uint32_t warps) {
  static const std::string loop = "SPIN{1}:\n  ld.acquire.gpu.global.b32 %r8, [%out+{0}];\n"
                                  "  and.b32 %r10, %r8, 1;\n  setp.eq.u32 %p2, %r10, 0;\n"
                                  "  @%p2 bra SPIN{1};\n";
  static const std::string kinds[] = {"  st.relaxed.gpu.global.b32 [%out+{0}], %r8;\n",
                                      "  atom.global.exch.b32 %r8, [%out+{0}], %r8;\n",
                                      "  red.global.add.u32 [%out+{0}], 5;\n",
                                      "  ld.relaxed.gpu.global.b32 %r8, [%out+{0}];\n", loop};
  uint32_t label = 0;
  return warpByWarp(warps, [&](uint32_t) {
    std::string lines;
    for (size_t i = 0, count = 1 + random() % (warps == 2 ? 3 : 2); i < count; ++i)
      lines +=
          fmt::format(fmt::runtime(kinds[random() % std::size(kinds)]), random() % 2 * 4, label++);
    return lines;
  });
}

TEST(Polls, EveryResultOfEveryInterleavingIsFound) {
  std::mt19937 random(5);
  uint64_t whole = 0, stuck = 0, several = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const uint32_t warps = 2 + trial % 4 / 3;
    const std::string text = randomKernel(random, warps);
    Wanted wanted{.warps = warps, .results = true, .most = 4000, .check = "off"};
    wanted.reduce = false;
    const Explored brute = explore(text, wanted);
    wanted.reduce = true;
    const Explored reduced = explore(text, wanted);
    if (brute.run.error.empty() && !brute.report.complete)
      continue; // too many
    ASSERT_EQ(reduced.run.error.empty(), brute.run.error.empty()) << text << brute.run.error;
    ++(brute.run.error.empty() ? whole : stuck);
    if (!brute.run.error.empty())
      continue;
    EXPECT_EQ(reduced.results, brute.results) << text;
    EXPECT_TRUE(reduced.report.complete);
    several += reduced.results.size() > 1;
  }
  EXPECT_GT(whole, 15u);
  EXPECT_GT(stuck, 5u);
  EXPECT_GT(several, 5u);
}

} // namespace
