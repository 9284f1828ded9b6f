// Every litmus kernel is clean, and with one change it is reported with its rule, under schedules
// that make the race visible and under those that do not; in both modes, where they agree.
#include "Litmus.h"

#include <algorithm>
#include <iterator>
#include <set>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

std::string fp4::sim::test::replaced(std::string text, const std::string &from,
                                     const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string Judged::text() const {
  std::string all = error;
  for (const HazardReport &report : reports)
    all += report.text();
  return all;
}

/// A launch that writes the first 512 bytes of `out`, and reads four that are 768 behind it.
static void launchBefore(Simulator &simulator, const Params &params, const LaunchRef &mark) {
  const auto program = Program::parse(
      litmus(
          "  mul.wide.u32 %rd5, %t, 8;\n  add.u64 %rd5, %rd5, %out;\n  st.global.b64 [%rd5], 0;\n"
          "  ld.global.b32 %v0, [%out+768];\n"),
      "before.ptx");
  ASSERT_TRUE(program) << program.error().message;
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.dependence.mark = mark;
  const auto stats = simulator.launch(**program, "test", config, params.span());
  ASSERT_TRUE(stats) << stats.error().message;
}

Judged fp4::sim::test::judge(const std::string &text, SimOptions options, const Litmus &test,
                             bool strict) {
  constexpr size_t bytes = 1024;
  const auto instruments = instrument(strict ? "strict" : "default", options);
  options.uninitializedReads = UninitializedReads::Ignore;
  const auto program = Program::parse(text, "test.ptx");
  if (!program)
    return {{}, program.error().message};
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(bytes, "out");
  if (!test.uninitialized)
    EXPECT_TRUE(simulator.memory().fill(out, 0, bytes));
  if (test.polled)
    simulator.memory().markPolled(out);
  Params params;
  params.add(out);
  LaunchConfig config;
  config.block = {test.threads, 1, 1};
  config.cluster = {test.cluster, 1, 1};
  config.grid = {test.cluster * test.clusters, 1, 1};
  const auto before = std::make_shared<LaunchMark>();
  if (test.dependent) {
    config.dependence.on = {{before}};
    launchBefore(simulator, params, before);
  }
  const auto stats = simulator.launch(**program, "test", config, params.span());
  const auto &orders = instruments->orders();
  return {instruments->hazards(), stats ? "" : stats.error().message,
          orders.empty() ? 0 : orders.back().orders};
}

std::vector<Litmus> fp4::sim::test::allLitmus() {
  std::vector<Litmus> all = sharedMemoryLitmus();
  for (auto *more : {globalMemoryLitmus, tensorMemoryLitmus, laneLitmus})
    std::ranges::move(more(), std::back_inserter(all));
  return all;
}

namespace {

bool finds(const Judged &judged, const Litmus &test) {
  return std::any_of(judged.reports.begin(), judged.reports.end(), [&](const HazardReport &report) {
    return report.rule == test.rule && report.remedy.find(test.words) != std::string::npos;
  });
}

TEST(Litmus, PassingTwinsAreClean) {
  for (const Litmus &test : allLitmus())
    for (const bool strict : {false, true})
      for (const SimOptions &options : schedules(3))
        EXPECT_EQ(judge(test.text, options, test, strict).text(), "")
            << test.name << ", strict " << strict << ", " << describe(options);
}

TEST(Litmus, RacingTwinsAreReported) {
  for (const Litmus &test : allLitmus())
    for (const bool strict : {false, true})
      for (CompletionPolicy policy :
           {CompletionPolicy::Eager, CompletionPolicy::Lazy, CompletionPolicy::Random}) {
        const SimOptions options = schedules(1)[size_t(policy)];
        const std::string text = racing(test);
        const Judged judged = judge(text, options, test, strict);
        if (test.strictOnly && !strict) {
          EXPECT_EQ(judged.text(), "") << test.name << " is accepted, " << describe(options);
          continue;
        }
        // In some orders the program fails before there is a second access to compare.
        const bool failed = policy != CompletionPolicy::Eager && test.error &&
                            judged.error.find(test.error) != std::string::npos;
        EXPECT_TRUE(failed || finds(judged, test))
            << test.name << " should be " << stringify(test.rule) << ", strict " << strict << ", "
            << describe(options) << ":\n"
            << judged.text() << text;
      }
}

/// The second order of a launch is no launch of its own, and work before it stays before it. The
/// result of the atomic operation is used, so that its order makes a difference.
TEST(Litmus, ADependentLaunchFollowsTheSameLaunchInEveryOrder) {
  const auto reading = [](unsigned at) {
    return litmus(fmt::format("  ld.global.b32 %v0, [%out+{}];\n  griddepcontrol.wait;\n"
                              "  atom.global.add.u32 %v1, [%out], %t;\n"
                              "  add.u32 %v1, %v1, %v0;\n",
                              at));
  };
  Litmus test{};
  test.rule = HazardRule::MissingGridWait;
  test.words = "what the launch before writes";
  test.dependent = true;
  SimOptions options = schedules(0)[0];
  options.policy = CompletionPolicy::Exhaustive;
  for (const bool strict : {false, true}) {
    const Judged judged = judge(reading(512), options, test, strict);
    EXPECT_EQ(judged.text(), "");
    EXPECT_GT(judged.orders, 1u);
    EXPECT_TRUE(finds(judge(reading(508), options, test, strict), test));
  }
}

TEST(Litmus, EveryRuleHasOne) {
  std::set<HazardRule> tested;
  for (const Litmus &test : allLitmus())
    tested.insert(test.rule);
  for (const HazardRule rule : hazardRules())
    EXPECT_TRUE(tested.contains(rule)) << "no litmus test for " << stringify(rule);
}

} // namespace
