// Dependent launches that begin before those that they depend on have ended (PastWrites.h).
#include "../SimFixture.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

constexpr uint32_t kCtas = 300, kThreads = kCtas * 32;
constexpr const char *kTrigger = "griddepcontrol.launch_dependents;\n";
constexpr const char *kWait = "griddepcontrol.wait;\n";

/// %p0 and %p1 point to the words of the thread.
const std::string kPlaces = "mov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r2, %r1, 32, %lane;\n"
                            "mul.wide.u32 %rd1, %r2, 4;\nadd.u64 %p0, %p0, %rd1;\n"
                            "add.u64 %p1, %p1, %rd1;\n";
/// Writes 1 + the number of the thread, and counts the warps that have.
const std::string kWrite = kPlaces + kTrigger +
                           "add.u32 %r3, %r2, 1;\nst.global.u32 [%p0], %r3;\nbar.warp.sync -1;\n"
                           "setp.eq.u32 %pr1, %lane, 0;\n"
                           "@%pr1 red.release.gpu.global.add.u32 [%p2], 1;\n";
const std::string kCopy = "ld.global.u32 %r3, [%p0];\nst.global.u32 [%p1], %r3;\n";
/// Waits until all warps have written, which needs no griddepcontrol.wait.
const std::string kPoll = "AGAIN:\nld.acquire.gpu.global.u32 %r4, [%p2];\n"
                          "setp.lt.u32 %pr2, %r4, 300;\n@%pr2 bra AGAIN;\n";

class EarlyLaunches
    : public testing::TestWithParam<std::tuple<CompletionPolicy, uint64_t, uint32_t>> {
protected:
  /// A simulator with four arrays and a counter of zeros.
  void SetUp() override {
    last.reset();
    SimOptions options;
    std::tie(options.policy, options.seed, options.hostThreads) = GetParam();
    simulator = std::make_unique<Simulator>(options);
    for (uint64_t &array : arrays)
      array = upload(*simulator, std::vector<uint32_t>(kThreads));
    counter = upload(*simulator, std::vector<uint32_t>(1));
  }
  /// Each launch depends on the one before it.
  void runAll(const std::vector<std::pair<std::string, std::pair<int, int>>> &launches) {
    for (const auto &[body, places] : launches) {
      LaunchConfig config;
      config.grid = {kCtas, 1, 1};
      config.block = {32, 1, 1};
      if (last)
        config.dependence.on = {{last}};
      config.dependence.mark = last = std::make_shared<LaunchMark>();
      const auto ran = run(*simulator, kernel(body),
                           {arrays[places.first], arrays[places.second], counter}, config);
      ASSERT_TRUE(ran) << ran.error().message;
    }
  }
  bool isWritten(int array) {
    const auto words = download<uint32_t>(*simulator, arrays[array], kThreads);
    for (uint32_t i = 0; i < kThreads; ++i)
      if (words[i] != i + 1)
        return false;
    return true;
  }
  bool isZero(int array) {
    const auto words = download<uint32_t>(*simulator, arrays[array], kThreads);
    return std::ranges::all_of(words, [](uint32_t word) { return word == 0; });
  }
  bool lazy() const { return std::get<0>(GetParam()) == CompletionPolicy::Lazy; }
  std::unique_ptr<Simulator> simulator;
  uint64_t arrays[4], counter;
  LaunchRef last;
};

TEST_P(EarlyLaunches, SeeEverythingBehindTheWait) {
  runAll({{kWrite, {0, 0}},
          {kPlaces + kTrigger + kWait + kCopy, {0, 1}},
          {kPlaces + kTrigger + kWait + kCopy, {1, 2}}});
  EXPECT_TRUE(isWritten(0) && isWritten(1) && isWritten(2));
}

TEST_P(EarlyLaunches, SeeAFlagThatTheyPoll) {
  runAll({{kWrite, {0, 0}}, {kPlaces + kPoll + kCopy, {0, 1}}});
  EXPECT_TRUE(isWritten(0) && isWritten(1));
}

TEST_P(EarlyLaunches, SeeNothingWithoutAWait) {
  runAll({{kWrite, {0, 0}}, {kPlaces + kCopy, {0, 1}}});
  EXPECT_TRUE(isWritten(0)); // nothing is lost
  EXPECT_TRUE(isWritten(1) || isZero(1));
  if (lazy())
    EXPECT_TRUE(isZero(1));
}

TEST_P(EarlyLaunches, WaitForTheOneBeforeAlone) {
  const std::string waits = kPlaces + kWait + kCopy;
  runAll({{kWrite, {0, 0}}, {kPlaces + kTrigger, {2, 3}}, {waits, {0, 1}}, {waits, {1, 2}}});
  EXPECT_TRUE(isWritten(0));
  if (lazy())
    EXPECT_TRUE(isZero(1) && isZero(2));
}

/// Writes of launches beside the end of others stay, if the others write other bytes.
TEST_P(EarlyLaunches, KeepTheirOwnWrites) {
  const std::string half = "and.b32 %r5, %lane, 1;\nsetp.eq.u32 %pr3, %r5, 0;\n"
                           "add.u32 %r3, %r2, 1;\n";
  const std::string even = kPlaces + kTrigger + half + "@%pr3 st.global.u32 [%p0], %r3;\n",
                    odd = kPlaces + kTrigger + half + "@!%pr3 st.global.u32 [%p0], %r3;\n" + kWait;
  runAll({{even, {0, 0}}, {odd, {0, 0}}, {kPlaces + kWait + kCopy, {0, 1}}});
  EXPECT_TRUE(isWritten(0) && isWritten(1));
}

/// The host writes some words of a tensor that a launch has written; or it frees the tensor, and
/// has another one in its memory, which a launch may read before it waits.
TEST_P(EarlyLaunches, LeaveWhatTheHostWrites) {
  for (const bool frees : {false, true}) {
    SetUp();
    std::vector<uint32_t> tensor(kThreads);
    GlobalMemory &memory = simulator->memory();
    arrays[0] = reinterpret_cast<uint64_t>(tensor.data());
    ASSERT_TRUE(memory.lend(tensor.data(), 4 * kThreads, "first", true));
    runAll({{kWrite, {0, 0}}});
    EXPECT_TRUE(isWritten(0));
    if (frees) {
      ASSERT_TRUE(memory.free(arrays[0]));
      ASSERT_TRUE(memory.lend(tensor.data(), 4 * kThreads, "second", true));
    }
    for (uint32_t i = 0; i < kThreads; i += 2)
      tensor[i] = 7;
    runAll({{kPlaces + (frees ? "" : kWait) + kCopy, {0, 1}}});
    const auto copied = download<uint32_t>(*simulator, arrays[1], kThreads);
    for (uint32_t i = 0; i < kThreads; ++i)
      ASSERT_EQ(copied[i], i % 2 ? i + 1 : 7) << i << (frees ? " freed" : "");
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EarlyLaunches,
                         testing::Values(std::tuple(CompletionPolicy::Eager, 1, 4),
                                         std::tuple(CompletionPolicy::Lazy, 1, 1),
                                         std::tuple(CompletionPolicy::Lazy, 1, 4),
                                         std::tuple(CompletionPolicy::Random, 1, 4),
                                         std::tuple(CompletionPolicy::Random, 2, 4),
                                         std::tuple(CompletionPolicy::Random, 3, 1)));

} // namespace
