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

/// A launch depends on those that are so many before it.
struct Launched {
  std::string body;
  std::vector<size_t> on{1};
  bool triggers = true; ///< what they do; false: it may begin as soon as they have
};
const std::vector<size_t> ordinary;

/// Runs kernels of 160 threads one after the other on 1024 bytes of `out`.
std::vector<HazardReport> run(const std::vector<Launched> &launches) {
  SimOptions options;
  const auto instruments = instrument("strict", options);
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(1024, "out");
  EXPECT_TRUE(simulator.memory().fill(out, 0, 1024));
  Params params;
  params.add(out);
  std::vector<LaunchRef> marks;
  for (const Launched &launched : launches) {
    const auto program = Program::parse(litmus(launched.body), "test.ptx");
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    LaunchConfig config;
    config.block = {160, 1, 1};
    for (const size_t distance : launched.on)
      config.dependence.on.push_back({marks[marks.size() - distance], launched.triggers});
    config.dependence.by = "an attribute";
    config.dependence.mark = marks.emplace_back(std::make_shared<LaunchMark>());
    const auto stats = simulator.launch(**program, "test", config, params.span());
    EXPECT_TRUE(stats) << (stats ? "" : stats.error().message);
  }
  return instruments->hazards();
}

constexpr const char *inBetween = "griddepcontrol.wait in every dependent launch between the two";
constexpr const char *before = "griddepcontrol.wait before the first access to what the launch "
                               "before writes and the first write of what it reads";

testing::AssertionResult isReported(const std::vector<Launched> &launches,
                                    const char *remedy = inBetween, const char *detail = "") {
  const auto reports = run(launches);
  if (reports.empty())
    return testing::AssertionFailure() << "nothing is reported";
  for (const HazardReport &report : reports)
    if (report.rule != HazardRule::MissingGridWait || report.remedy != remedy ||
        report.detail.find("by an attribute the launch may ") != 0 ||
        report.detail.find(detail) == std::string::npos)
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
  const Launched first{write, ordinary}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, last}));
  EXPECT_TRUE(isClean({first, {wait}, last}));
  // One thread is enough: the launch has not ended before it has.
  EXPECT_TRUE(isClean({first, {std::string("  @%p0 griddepcontrol.wait;\n")}, last}));
  EXPECT_TRUE(isClean({first, {wait}, {wait + other}, last}));
}

TEST(DependentLaunches, KeepAllThatNobodyWaitedFor) {
  const Launched first{write, ordinary}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, {""}, last}));
  EXPECT_TRUE(
      isClean({first, {""}, {""}, {wait + std::string("  ld.global.b32 %v0, [%out+4];\n")}}));
}

TEST(DependentLaunches, EndTheDoubtWithAnOrdinaryOne) {
  const Launched first{write, ordinary}, last{std::string(wait) + read};
  EXPECT_TRUE(isReported({first, {""}, {wait}, last})); // that one waited for the second alone
  EXPECT_TRUE(isClean({first, {""}, {"", ordinary}, last}));
}

TEST(DependentLaunches, DoNotWriteWhatEarlierOnesRead) {
  // Five warps read: more than a cell keeps records of.
  const Launched first{read, ordinary};
  EXPECT_TRUE(isReported({first, {""}, {std::string(wait) + write}}));
  EXPECT_TRUE(isClean({first, {wait}, {std::string(wait) + write}}));
  // Other bytes of the same 32.
  EXPECT_TRUE(isClean({first, {""}, {std::string(wait) + "  @%p0 st.global.b32 [%out+4], 7;\n"}}));
  EXPECT_TRUE(isClean({first, {""}, {std::string(wait) + read}}));
}

constexpr const char *trigger = "  griddepcontrol.launch_dependents;\n";

/// The next one begins when every CTA has triggered or ended: behind the wait of one of them.
TEST(DependentLaunches, BeginBehindATriggerBehindTheWait) {
  const Launched first{write, ordinary}, last{read};
  const char *others = "the one before it may not have waited for them by then";
  EXPECT_TRUE(isReported({first, {std::string(trigger) + wait}, last}, before, others));
  EXPECT_TRUE(isReported({first, {trigger}, last}, before, others));
  EXPECT_TRUE(isClean({first, {std::string(wait) + trigger}, last}));
  EXPECT_TRUE(isClean({first, {wait}, last})); // it triggers when it ends
  EXPECT_TRUE(isReported({first, {wait}, {read, {1}, false}}, before, others));
  // One thread waits, and the thread that triggers has not synchronized with it, or it has.
  const std::string waits = "  @%p0 griddepcontrol.wait;\n",
                    triggers = "  setp.eq.u32 %p1, %t, 159;\n"
                               "  @%p1 griddepcontrol.launch_dependents;\n";
  EXPECT_TRUE(isReported({first, {waits + triggers}, last}, before, others));
  EXPECT_TRUE(isClean({first, {waits + "  bar.sync 0;\n" + triggers}, last}));
}

/// Weights that no launch writes are fetched before the wait, however many depend on each other.
TEST(DependentLaunches, ReadEarlyWhatNobodyWrites) {
  const std::string fetch = "  ld.global.b32 %v0, [%out+256];\n";
  const Launched first{write, ordinary}, next{trigger + fetch + wait + other};
  EXPECT_TRUE(isClean({first, next, {trigger + fetch + wait}}));
  const Launched makes{"  @%p0 st.global.b32 [%out+256], 7;\n", ordinary};
  EXPECT_TRUE(isReported({makes, {trigger + std::string(wait)}, {trigger + fetch + wait}}, before));
  EXPECT_TRUE(
      isReported({makes, {fetch + wait}}, before, "the launch may begin before 'test' has ended"));
}

TEST(DependentLaunches, DependOnSeveral) {
  const Launched first{write, ordinary}, second{other, ordinary};
  const std::string both = std::string(read) + "  ld.global.b32 %v1, [%out+512];\n";
  EXPECT_TRUE(isClean({first, second, {wait + both, {1, 2}}}));
  EXPECT_TRUE(isReported({first, second, {read, {1, 2}}}, before));
  EXPECT_TRUE(isReported({second, first, {read, {1, 2}}}, before));
  EXPECT_TRUE(isClean({first, second, {read, {1}}})); // the first has ended
  // The second does not wait for the first, but the third waits for both.
  EXPECT_TRUE(isClean({first, {other}, {wait + both, {1, 2}}}));
  EXPECT_TRUE(isReported({first, {other}, {wait + both, {1}}}));
}

/// A launch of another stream comes between the two.
TEST(DependentLaunches, DependOnOneThatIsNotTheLast) {
  const Launched first{write, ordinary}, between{other, ordinary};
  EXPECT_TRUE(isReported({first, between, {read, {2}}}, before));
  EXPECT_TRUE(isClean({first, between, {std::string(wait) + read, {2}}}));
  EXPECT_TRUE(isClean({first, between, {"  ld.global.b32 %v0, [%out+512];\n", {2}}}));
}

void launch(Simulator &simulator, const Program &program, uint64_t out, bool dependent) {
  static LaunchRef last;
  Params params;
  params.add(out);
  LaunchConfig config;
  config.block = {32, 1, 1};
  if (dependent)
    config.dependence.on = {{last}};
  config.dependence.mark = last = std::make_shared<LaunchMark>();
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
  launch(simulator, **writer, out, false); // nobody waits for this one, and thousands follow
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
      "  @!%p0 bra END;\n" + place + makeMap("global", "%rd5") + releaseMap + "END:\n", ordinary};
  EXPECT_TRUE(isClean({make, {wait + use}}));
  const auto reports = run({make, {use}});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports.front().rule, HazardRule::MissingGridWait);
}

} // namespace
