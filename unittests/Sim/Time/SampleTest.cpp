//===- SampleTest.cpp - Launches that a sample stands for, and others -----===//
//
// Each launch is predicted whole and with a sample. The two may differ by 5 %, or the sample is
// refused.
//
//===----------------------------------------------------------------------===//
#include "TimeHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

constexpr unsigned kProcessors = 132;

/// Two CTAs of one warp on an SM: shared memory has no room for more.
LaunchConfig grid(unsigned blocks) {
  return {.grid = {blocks, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 100 << 10};
}

KernelTime predict(const std::string &body, unsigned blocks, uint64_t sampleAfter) {
  return runTimed(body, grid(blocks), 1 << 16, CompletionPolicy::Timed, "sm_90a", 0,
                  {.timesOnly = true, .sampleAfter = sampleAfter})
      .time;
}

struct Both {
  KernelTime whole, sample;
};

Both both(const std::string &body, unsigned blocks, uint64_t sampleAfter = 40000) {
  const Both times{predict(body, blocks, 0), predict(body, blocks, sampleAfter)};
  EXPECT_FALSE(times.whole.sampled());
  EXPECT_THAT(times.whole.sample.whole, IsEmpty());
  for (const KernelTime *time : {&times.whole, &times.sample})
    for (const ResourceTime &resource : time->resources)
      EXPECT_LE(resource.busy, 1.0) << resource.name;
  return times;
}

/// Work that %r5 turns of a loop take.
const std::string work = "WORK:\n  ex2.approx.ftz.f32 %r1, %r1;\n  sub.u32 %r5, %r5, 1;\n"
                         "  setp.ne.u32 %p5, %r5, 0;\n  @%p5 bra WORK;\n";

/// CTAs that stay do tiles from that of their index on.
std::string tiles(unsigned count, const std::string &turns, const std::string &next) {
  return "  mov.u32 %r2, %ctaid.x;\nTILE:\n" + turns + work + next +
         fmt::format("  setp.lt.u32 %p1, %r2, {};\n  @%p1 bra TILE;\n", count);
}

/// Each takes the next one from a counter in %out, by its first thread.
const std::string counted = "  setp.ne.u32 %p2, %t, 0;\n  mov.u32 %r3, dynamic;\n"
                            "  @%p2 bra TAKEN;\n"
                            "  atom.global.add.u32 %r4, [%out], 1;\n  add.u32 %r4, %r4, 132;\n"
                            "  st.shared.b32 [%r3], %r4;\nTAKEN:\n  bar.sync 0;\n"
                            "  ld.shared.b32 %r2, [%r3];\n  bar.sync 0;\n";
const std::string fixed = "  add.u32 %r2, %r2, 132;\n";
const std::string even = "  mov.u32 %r5, 50;\n";

void expectClose(const Both &times) {
  ASSERT_TRUE(times.sample.sampled()) << times.sample.sample.whole;
  EXPECT_NEAR(times.sample.cycles, times.whole.cycles, 0.05 * times.whole.cycles);
}

void expectWhole(const Both &times, const char *why) {
  EXPECT_FALSE(times.sample.sampled());
  EXPECT_EQ(times.sample.cycles, times.whole.cycles);
  EXPECT_THAT(times.sample.sample.whole, HasSubstr(why));
  EXPECT_THAT(text(times.sample), HasSubstr("not sampled: "));
}

/// A sample took all tiles: its time was that of the whole launch times 66.
TEST(Sample, BlocksThatTakeWorkFromACounterAreSimulatedWhole) {
  expectWhole(both(tiles(2000, even, counted), kProcessors), "take work from a counter");
  expectClose(both(tiles(2000, even, fixed), kProcessors));
}

TEST(Sample, TilesOfDifferentWorkInBlocksThatStayAreSimulatedWhole) {
  const std::string uneven = "  and.b32 %r5, %r2, 7;\n  mad.lo.u32 %r5, %r5, 20, 20;\n";
  expectWhole(both(tiles(2000, uneven, fixed), kProcessors), "CTAs may differ in work (line ");
  const std::string loaded = "  ld.global.u32 %r5, [%out];\n  add.u32 %r5, %r5, 50;\n";
  expectWhole(both(tiles(2000, loaded, fixed), kProcessors), "CTAs may differ in work (line ");
}

/// The first two CTAs, which are the sample, have less to do than the others.
TEST(Sample, ProbesFindBlocksThatDoMoreThanTheSample) {
  const std::string limit = "  mov.u32 %r6, 4000;\n  setp.lt.u32 %p3, %r2, LIMIT;\n"
                            "  @%p3 mov.u32 %r6, 1500;\n";
  const auto predicted = [&](const std::string &first) {
    std::string body = "  mov.u32 %r2, %ctaid.x;\n" + limit + "TILE:\n" + even + work + fixed +
                       "  setp.lt.u32 %p1, %r2, %r6;\n  @%p1 bra TILE;\n";
    body.replace(body.find("LIMIT"), 5, first);
    return predict(body, kProcessors, 40000);
  };
  EXPECT_THAT(predicted("2").missing,
              ::testing::ElementsAre(HasSubstr("times the work of a sample's; --sample-after 0")));
  EXPECT_THAT(predicted("0").missing, IsEmpty());
}

/// A kernel whose CTAs do work by their index.
std::string byIndex(const std::string &turns) {
  return "  mov.u32 %r2, %ctaid.x;\n" + turns + work;
}

/// Every 132nd CTA and its seven neighbours were the sample.
TEST(Sample, BlocksOfASampleHaveNoPropertyOfTheirOwn) {
  const std::string longFirst = "  rem.u32 %r5, %r2, 132;\n  setp.lt.u32 %p1, %r5, 8;\n"
                                "  selp.u32 %r5, 75, 50, %p1;\n";
  expectClose(both(byIndex(longFirst), kProcessors * 40));
  expectClose(both(byIndex(even), kProcessors * 40));
}

TEST(Sample, BlocksThatDifferMuchAreSimulatedWholeUnlessTheyAreMany) {
  const std::string causal = "  rem.u32 %r5, %r2, 16;\n  mad.lo.u32 %r5, %r5, 8, 8;\n";
  expectWhole(both(byIndex(causal), kProcessors * 12), "CTAs differ in work by ");
  const std::string little = "  rem.u32 %r5, %r2, 16;\n  add.u32 %r5, %r5, 40;\n";
  expectClose(both(byIndex(little), kProcessors * 40));
}

/// A CTA waits for its predecessor, as those of a decoupled look-back do.
TEST(Sample, BlocksThatWaitForOthersAreSimulatedWhole) {
  const std::string place = "  mov.u32 %r2, %ctaid.x;\n  mul.wide.u32 %rd1, %r2, 4;\n"
                            "  add.u64 %rd1, %out, %rd1;\n";
  const std::string wait = "LOOK:\n  ld.acquire.gpu.global.u32 %r6, [%rd1];\n"
                           "  setp.ne.u32 %p1, %r6, %r2;\n  @%p1 bra LOOK;\n";
  const std::string tell = "  add.u32 %r7, %r2, 1;\n  st.release.gpu.global.u32 [%rd1+4], %r7;\n";
  expectWhole(both(place + even + work + wait + tell, kProcessors * 12), "wait for others (line ");
  expectClose(both(place + even + work + tell, kProcessors * 24));
}

TEST(Sample, AnAtomicOperationTellsABlockSomethingIfItsResultIsUsed) {
  const auto adds = [](const std::string &first, const std::string &then) {
    return both(even + work + first + then, kProcessors * 24);
  };
  const std::string last = "  setp.eq.u32 %p1, %r2, 77;\n  @%p1 st.global.u32 [%out+4], %r2;\n";
  expectWhole(adds("  atom.global.add.u32 %r2, [%out], 1;\n", last), "take work from a counter");
  expectClose(adds("  atom.global.add.u32 %r2, [%out], 1;\n", ""));
  expectClose(adds("  red.global.add.u32 [%out], 1;\n", ""));
}

/// No CTA of the first ones counts, so that the sample begins.
TEST(Sample, ABlockOfTheSampleThatCountsWithOthersEndsThePrediction) {
  const std::string body = byIndex(even) + "  setp.lt.u32 %p1, %r2, 2000;\n  @%p1 ret;\n"
                                           "  atom.global.add.u32 %r3, [%out], 1;\n"
                                           "  st.global.u32 [%out+8], %r3;\n";
  EXPECT_THAT(predict(body, kProcessors * 40, 40000).missing,
              ::testing::ElementsAre(HasSubstr("which count or store, on those in it (line ")));
  EXPECT_THAT(predict(body, kProcessors * 40, 0).missing, IsEmpty());
}

} // namespace
