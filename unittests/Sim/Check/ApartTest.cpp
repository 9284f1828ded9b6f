// Clusters that are checked at the same time: the reports, and what is in memory, are those of one
// host thread.
#include "Litmus.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr uint32_t kCtas = 12, kBytes = 8192;

struct Ran {
  std::string text; ///< all reports and counts, and errors
  std::vector<std::byte> memory;
  bool mayRunApart = false; ///< so would a next launch of the last kernel
};

/// Runs kernels one after the other, each of which may begin before the last has ended.
Ran run(const std::vector<std::string> &texts, uint32_t threads, SimOptions options = {},
        size_t maxReports = 64, const LaunchConfig &shape = {{kCtas, 1, 1}, {64, 1, 1}}) {
  HazardChecker checker({.maxReports = maxReports});
  options.hostThreads = threads;
  options.observer = &checker;
  options.judgement = Judgement::Practice;
  options.instructionLimit = 20'000'000;
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(kBytes, "out");
  EXPECT_TRUE(simulator.memory().fill(out, 0, kBytes));
  Params params;
  params.add(out);
  Ran ran;
  LaunchRef last;
  for (const std::string &text : texts) {
    const auto program = parse(text);
    LaunchConfig config = shape;
    if (last)
      config.dependence.on = {{last}};
    config.dependence.mark = last = std::make_shared<LaunchMark>();
    const auto stats = simulator.launch(*program, "test", config, params.span());
    ran.text += stats ? fmt::format("{} CTAs\n", stats->ctas)
                      : stats.error().message + stats.error().note + "\n";
  }
  ran.mayRunApart = checker.beginApart();
  for (const HazardReport &report : checker.reports())
    ran.text += report.text() + fmt::format("{} of cluster {}, last {}\n", report.count,
                                            report.second.actor.cluster, report.last);
  ran.text += fmt::format("found {}\n", checker.found());
  ran.memory.resize(kBytes);
  EXPECT_TRUE(simulator.memory().read(out, ran.memory.data(), kBytes));
  return ran;
}

/// %r5: the CTA; %rd1: its 128 bytes; %rd2: the word of the thread, of the first warp.
std::string kernel(const std::string &body) {
  return litmus("  mov.u32 %r5, %ctaid.x;\n  mul.wide.u32 %rd1, %r5, 128;\n"
                "  add.u64 %rd1, %out, %rd1;\n  mul.wide.u32 %rd2, %t, 4;\n"
                "  add.u64 %rd2, %rd1, %rd2;\n" +
                body);
}

/// Each CTA counts in words of its own.
const std::string counting = "  @!%p1 ld.global.b32 %v1, [%rd2];\n  add.u32 %v1, %v1, 1;\n"
                             "  @!%p1 st.global.b32 [%rd2], %v1;\n";
/// Warps of each CTA race, those of CTAs 5 and 9 in other lines first.
const std::string inside = "  setp.eq.u32 %p2, %r5, 5;\n  setp.eq.u32 %p3, %r5, 9;\n"
                           "  or.pred %p4, %p2, %p3;\n"
                           "  @%p4 st.shared.b32 [%r0+512], %t;\n"
                           "  @%p4 ld.shared.b32 %v0, [%r1+512];\n"
                           "  @%p3 ld.shared.b32 %v0, [%r1+516];\n"
                           "  st.shared.b32 [%r0], %t;\n  ld.shared.b32 %v0, [%r1];\n";
const std::string between = "  @%p0 st.global.b32 [%out+4096], %r5;\n";

TEST(Apart, HazardsInsideClusters) {
  const std::string text = kernel(counting + inside);
  const Ran one = run({text}, 1);
  EXPECT_THAT(one.text, AllOf(HasSubstr("[shared-race]"), HasSubstr("of cluster 5, last"),
                              HasSubstr("of cluster 9, last"), Not(HasSubstr("[global-race]"))));
  for (const uint32_t threads : {2, 3, 4}) {
    const Ran several = run({text}, threads);
    EXPECT_EQ(several.text, one.text);
    EXPECT_EQ(several.memory, one.memory);
    EXPECT_TRUE(several.mayRunApart);
  }
  const Ran right = run({kernel(counting)}, 4);
  EXPECT_EQ(right.text, "12 CTAs\nfound 0\n");
  EXPECT_EQ(right.memory, one.memory);
}

/// The clusters run a second time, and have counted once.
TEST(Apart, HazardsBetweenClusters) {
  const std::string text = kernel(counting + inside + between);
  const Ran one = run({text}, 1);
  EXPECT_THAT(one.text, AllOf(HasSubstr("[shared-race]"), HasSubstr("[global-race]")));
  EXPECT_TRUE(one.mayRunApart) << "nothing has shown yet that it may not";
  for (const uint32_t threads : {2, 4}) {
    const Ran several = run({text}, threads);
    EXPECT_EQ(several.text, one.text);
    EXPECT_EQ(several.memory, one.memory);
    EXPECT_FALSE(several.mayRunApart);
  }
}

/// Each cluster reads what the one before it has written, which is in other bytes of the same 32,
/// too.
TEST(Apart, ClustersThatUseEachOther) {
  const std::string neighbour = "  setp.gt.u32 %p2, %r5, 0;\n  and.pred %p2, %p2, %p0;\n"
                                "  mov.b32 %v1, 0;\n  @%p2 ld.global.b32 %v1, [%rd1+-128];\n"
                                "  add.u32 %v1, %v1, 1;\n  @%p0 st.global.b32 [%rd1], %v1;\n",
                    cell = "  mul.wide.u32 %rd3, %r5, 4;\n  add.u64 %rd3, %out, %rd3;\n"
                           "  @%p0 st.global.b32 [%rd3], %r5;\n";
  for (const std::string &body : {neighbour, cell}) {
    const Ran one = run({kernel(body)}, 1), several = run({kernel(body)}, 4);
    EXPECT_EQ(several.text, one.text);
    EXPECT_EQ(several.memory, one.memory);
    EXPECT_FALSE(several.mayRunApart);
  }
}

/// A kernel with atomic operations is not even tried.
TEST(Apart, ClustersThatCount) {
  const std::string text = kernel("  @%p0 atom.global.add.u32 %v0, [%out+4096], 1;\n"
                                  "  @%p0 st.global.b32 [%rd1], %v0;\n");
  const Ran one = run({text}, 1), several = run({text}, 4);
  EXPECT_EQ(several.text, one.text);
  EXPECT_EQ(several.memory, one.memory);
  EXPECT_TRUE(several.mayRunApart) << "nothing was tried";
}

/// The error is that of the lowest cluster, behind what it wrote.
TEST(Apart, ClustersThatFail) {
  const std::string text = kernel(counting + "  setp.ge.u32 %p2, %r5, 3;\n"
                                             "  @%p2 st.shared.b32 [%r1+1048576], %t;\n");
  const Ran one = run({text}, 1), several = run({text}, 4);
  EXPECT_THAT(one.text, HasSubstr("out of bounds"));
  EXPECT_EQ(several.text, one.text);
}

TEST(Apart, ALaterLaunchMeetsWhatClustersUsed) {
  const std::string first = kernel(counting), last = kernel("  ld.global.b32 %v0, [%out+128];\n"),
                    right = kernel("  griddepcontrol.wait;\n  ld.global.b32 %v0, [%out+128];\n");
  const Ran one = run({first, last}, 1);
  EXPECT_THAT(one.text, HasSubstr("[missing-grid-wait]"));
  EXPECT_EQ(run({first, last}, 4).text, one.text);
  EXPECT_EQ(run({first, right}, 4).text, "12 CTAs\n12 CTAs\nfound 0\n");
}

TEST(Apart, ThereIsRoomForAsManyReports) {
  const std::string text = kernel(counting + inside);
  for (const size_t most : {0, 1, 2})
    EXPECT_EQ(run({text}, 4, {}, most).text, run({text}, 1, {}, most).text);
}

/// Every kernel with a hazard, in every schedule.
TEST(Apart, AllLitmus) {
  unsigned apart = 0;
  for (const Litmus &test : allLitmus())
    for (const std::string &text : {test.text, racing(test)})
      for (const SimOptions &options : schedules(1)) {
        const uint32_t ctas = 6 * test.cluster;
        const LaunchConfig shape{{ctas, 1, 1}, {test.threads, 1, 1}, {test.cluster, 1, 1}};
        const Ran one = run({text}, 1, options, 64, shape),
                  several = run({text}, 4, options, 64, shape);
        EXPECT_EQ(several.text, one.text) << test.name << ", " << describe(options);
        EXPECT_EQ(several.memory, one.memory) << test.name << ", " << describe(options);
        apart += several.mayRunApart && one.text.find("[") != std::string::npos;
      }
  EXPECT_GT(apart, 10u);
}

} // namespace
