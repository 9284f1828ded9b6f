// Launches in a row, of which the later ones may begin before the earlier ones have ended: what the
// hazard checker knows of a launch behind the one before.
#include "Litmus.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

constexpr const char *wait = "  griddepcontrol.wait;\n";
constexpr const char *write = "  @%p0 st.global.b32 [%out], 7;\n";
constexpr const char *read = "  ld.global.b32 %v0, [%out];\n";

struct Launched {
  std::string body;
  bool dependent = true;
};

/// Runs kernels of 160 threads one after the other on 1024 bytes of `out`.
std::vector<HazardReport> run(const std::vector<Launched> &launches) {
  SimOptions options;
  const auto instruments = instrument("strict", options);
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(1024, "out");
  EXPECT_TRUE(simulator.memory().fill(out, 0, 1024));
  Params params;
  params.add(out);
  for (const Launched &launched : launches) {
    const auto program = Program::parse(litmus(launched.body), "test.ptx");
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    LaunchConfig config;
    config.block = {160, 1, 1};
    config.dependent = launched.dependent;
    const auto stats = simulator.launch(**program, "test", config, params.span());
    EXPECT_TRUE(stats) << (stats ? "" : stats.error().message);
  }
  return instruments->hazards();
}

testing::AssertionResult isReported(const std::vector<Launched> &launches) {
  const auto reports = run(launches);
  if (reports.empty())
    return testing::AssertionFailure() << "nothing is reported";
  for (const HazardReport &report : reports)
    if (report.rule != HazardRule::MissingGridWait ||
        report.remedy != "griddepcontrol.wait in every dependent launch between the two")
      return testing::AssertionFailure() << report.text();
  return testing::AssertionSuccess();
}

testing::AssertionResult isClean(const std::vector<Launched> &launches) {
  const auto reports = run(launches);
  if (reports.empty())
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << reports.front().text();
}

const std::string other = "  @%p0 st.global.b32 [%out+512], 7;\n";

TEST(DependentLaunches, WaitForTheOneBeforeAlone) {
  const Launched first{write, false}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, last}));
  EXPECT_TRUE(isClean({first, {wait}, last}));
  // One thread is enough: the launch has not ended before it has.
  EXPECT_TRUE(isClean({first, {std::string("  @%p0 griddepcontrol.wait;\n")}, last}));
  EXPECT_TRUE(isClean({first, {wait}, {wait + other}, last}));
}

TEST(DependentLaunches, KeepAllThatNobodyWaitedFor) {
  const Launched first{write, false}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, {""}, last}));
  EXPECT_TRUE(
      isClean({first, {""}, {""}, {wait + std::string("  ld.global.b32 %v0, [%out+4];\n")}}));
}

TEST(DependentLaunches, EndTheDoubtWithAnOrdinaryOne) {
  const Launched first{write, false}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, {wait}, last})); // that one waited for the second alone
  EXPECT_TRUE(isClean({first, {""}, {"", false}, last}));
}

TEST(DependentLaunches, DoNotWriteWhatEarlierOnesRead) {
  // Five warps read: more than a cell keeps records of.
  const Launched first{read, false};
  EXPECT_TRUE(isReported({first, {""}, {std::string(wait) + write}}));
  EXPECT_TRUE(isClean({first, {wait}, {std::string(wait) + write}}));
  // Other bytes of the same 32.
  EXPECT_TRUE(isClean({first, {""}, {std::string(wait) + "  @%p0 st.global.b32 [%out+4], 7;\n"}}));
  EXPECT_TRUE(isClean({first, {""}, {std::string(wait) + read}}));
}

/// Launches `body`, of which all but the first are dependent.
void launch(Simulator &simulator, const Program &program, uint64_t out, bool dependent) {
  Params params;
  params.add(out);
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dependent = dependent;
  const auto stats = simulator.launch(program, "test", config, params.span());
  ASSERT_TRUE(stats) << (stats ? "" : stats.error().message);
}

TEST(DependentLaunches, KeepWhatThousandsUseInBoundedMemory) {
  HazardChecker checker;
  SimOptions options;
  options.observer = &checker;
  Simulator simulator(options);
  constexpr uint64_t kBytes = 3 * 4096;
  const uint64_t out = simulator.memory().allocate(kBytes, "out");
  ASSERT_TRUE(simulator.memory().fill(out, 0, kBytes));
  const auto other = Program::parse(litmus("  @%p0 st.global.b32 [%out+512], 7;\n"), "other.ptx"),
             writer = Program::parse(litmus(write), "write.ptx"),
             reader = Program::parse(litmus(std::string(wait) + read), "read.ptx");
  ASSERT_TRUE(other && writer && reader);
  launch(simulator, **writer, out, false); // what nobody waits for, below thousands of others
  for (unsigned i = 0; i < 3000; ++i)
    launch(simulator, **other, out + 4096 * (i % 2) + 8 * (i % 64), true);
  EXPECT_LE(checker.keptPages(), kBytes / 4096 + 1);
  EXPECT_GE(checker.keptPages(), 2u);
  checker.clear(); // the others race with each other
  const uint64_t found = checker.found();
  launch(simulator, **reader, out + 4, true); // the twin: bytes beside those
  EXPECT_EQ(checker.found(), found);
  launch(simulator, **reader, out, true);
  ASSERT_EQ(checker.reports().size(), 1u);
  EXPECT_EQ(checker.reports()[0].rule, HazardRule::MissingGridWait);
  EXPECT_EQ(checker.reports()[0].kernel, "test");
  launch(simulator, **other, out, false); // an ordinary one ends the doubt
  EXPECT_EQ(checker.keptPages(), 0u);
}

TEST(DependentLaunches, UseATensorMapBehindTheWait) {
  const std::string place = "  add.u64 %rd5, %out, 512;\n", use = litmusInit +
                                                                  "  @!%p0 bra END;\n" + place +
                                                                  acquireMap + useMap() + "END:\n";
  const Launched make{
      "  @!%p0 bra END;\n" + place + makeMap("global", "%rd5") + releaseMap + "END:\n", false};
  EXPECT_TRUE(isClean({make, {wait + use}}));
  const auto reports = run({make, {use}});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports.front().rule, HazardRule::MissingGridWait);
}

} // namespace
