// Meanings of SimulationOptions, for everything that simulates.
#include "fp4/Sim/Instruments.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

SimulationOptions checked(const char *mode) {
  SimulationOptions options;
  options.check = mode;
  return options;
}

/// The settings with the instruments of these options, which stay alive in `kept`.
SimOptions settle(const SimulationOptions &options, std::unique_ptr<Instruments> &kept) {
  auto settings = settingsOf(options);
  EXPECT_TRUE(settings);
  auto instruments = Instruments::create(options, *settings);
  EXPECT_TRUE(instruments);
  kept = std::move(*instruments);
  return *settings;
}

TEST(Instruments, TheModeOfTheCheckDecidesObserverAndRules) {
  std::unique_ptr<Instruments> kept;
  const SimOptions off = settle(checked("off"), kept);
  EXPECT_EQ(off.observer, nullptr);
  EXPECT_EQ(off.judgement, Judgement::Practice); // as with default
  EXPECT_FALSE(off.trackWrites);
  for (const char *mode : {"default", ""}) {
    const SimOptions usual = settle(checked(mode), kept);
    EXPECT_NE(usual.observer, nullptr) << mode;
    EXPECT_EQ(usual.judgement, Judgement::Practice) << mode;
    EXPECT_FALSE(usual.trackWrites) << mode;
  }
  const SimOptions strict = settle(checked("strict"), kept);
  EXPECT_NE(strict.observer, nullptr);
  EXPECT_EQ(strict.judgement, Judgement::Letter);
  EXPECT_TRUE(strict.trackWrites);
}

TEST(Instruments, CountersObserveWithoutTheCheck) {
  SimulationOptions options = checked("off");
  std::unique_ptr<Instruments> kept;
  (void)settle(options, kept);
  EXPECT_FALSE(kept->counts());
  options.statistics = true;
  EXPECT_NE(settle(options, kept).observer, nullptr);
  EXPECT_TRUE(kept->counts());
  EXPECT_TRUE(kept->hazards().empty());
  EXPECT_TRUE(kept->wasteful().empty());
}

TEST(Instruments, SettingsComeFromTheOptions) {
  SimulationOptions options;
  options.policy = "delay";
  options.seed = 7;
  options.unwritten = "ignore";
  options.target = "sm_90a";
  options.hostThreads = 3;
  options.spinLimit = 99;
  const auto settings = settingsOf(options);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->policy, CompletionPolicy::Delay);
  EXPECT_EQ(settings->seed, 7u);
  EXPECT_EQ(settings->uninitializedReads, UninitializedReads::Ignore);
  EXPECT_EQ(settings->target, "sm_90a");
  EXPECT_EQ(settings->hostThreads, 3u);
  EXPECT_EQ(settings->spinLimit, 99u);
}

TEST(Instruments, WrongValuesAreUsageErrorsThatNameThem) {
  SimulationOptions options;
  options.policy = "hasty";
  EXPECT_EQ(settingsOf(options).error().message, "unknown simulation policy 'hasty'");
  options.policy = "eager";
  options.unwritten = "maybe";
  EXPECT_EQ(settingsOf(options).error().message, "unknown mode 'maybe' of --unwritten");
  SimOptions settings;
  const auto lenient = Instruments::create(checked("lenient"), settings);
  ASSERT_FALSE(lenient);
  EXPECT_EQ(lenient.error().kind, ErrorKind::Usage);
  EXPECT_EQ(lenient.error().message, "unknown mode 'lenient' of --check");
}

TEST(Instruments, ATimelineHasItsNameAtTheEnd) {
  SimulationOptions options = checked("off");
  options.timeline = testing::TempDir() + "fp4_instruments.json";
  std::filesystem::remove(options.timeline);
  std::unique_ptr<Instruments> kept;
  EXPECT_NE(settle(options, kept).observer, nullptr);
  EXPECT_TRUE(kept->hasTimeline());
  EXPECT_FALSE(std::filesystem::exists(options.timeline));
  EXPECT_TRUE(std::filesystem::exists(kept->timelineDraft()));
  ASSERT_TRUE(kept->finish());
  EXPECT_FALSE(kept->hasTimeline());
  EXPECT_TRUE(std::filesystem::exists(options.timeline));
  ASSERT_TRUE(kept->finish()); // nothing is left to do
  std::filesystem::remove(options.timeline);
}

} // namespace
