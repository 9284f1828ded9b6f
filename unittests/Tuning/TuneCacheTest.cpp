//===- TuneCacheTest.cpp - Plans that a search has found before -----------===//

#include "fp4/Tuning/TuneCache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace fp4;
using namespace fp4::tuning;

namespace {

class TuneCacheTest : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "fp4_tune_cache_test";
    std::filesystem::remove_all(folder);
    setenv("FP4_TUNE_CACHE", folder.c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    unsetenv("FP4_TUNE_CACHE");
  }

  /// Replaces `from` by `to` in the file of `cache`.
  static void edit(const TuneCache &cache, const std::string &from, const std::string &to) {
    std::ifstream in(cache.path());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    ASSERT_NE(text.find(from), std::string::npos) << text;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(cache.path()) << text;
  }

  std::string folder;
};

const TunedPlans kTuned{
    {"gemv, threads = 128", "reduce_grid, threads = 64"}, 1.5, 2.25, 7, true, 3.5, "a GPU"};

TEST_F(TuneCacheTest, AnAnswerComesBack) {
  const TuneCache cache("question");
  bool damaged = true;
  EXPECT_FALSE(cache.read(damaged));
  EXPECT_FALSE(damaged) << "there is no file yet";
  ASSERT_TRUE(cache.write(kTuned));
  auto known = TuneCache("question").read(damaged);
  ASSERT_TRUE(known);
  EXPECT_FALSE(damaged);
  EXPECT_EQ(known->plans, kTuned.plans);
  EXPECT_EQ(known->microseconds, kTuned.microseconds);
  EXPECT_EQ(known->before, kTuned.before);
  EXPECT_EQ(known->predictions, kTuned.predictions);
  EXPECT_EQ(known->verified, kTuned.verified);
  EXPECT_EQ(known->measured, kTuned.measured);
  EXPECT_EQ(known->device, kTuned.device);
}

TEST_F(TuneCacheTest, AnotherQuestionHasNoAnswer) {
  ASSERT_TRUE(TuneCache("question").write(kTuned));
  bool damaged = true;
  EXPECT_FALSE(TuneCache("another question").read(damaged));
  EXPECT_FALSE(damaged);
}

TEST_F(TuneCacheTest, ADamagedFileIsNotBelieved) {
  const TuneCache cache("question");
  bool damaged = false;
  for (auto [from, to] : {std::pair<std::string, std::string>{"1.5", "0.5"},
                          {"\"verified\":true", "\"verified\":false"},
                          {"gemv", "stream_items"},
                          {"{", "{\"more\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["},
                          {"}", ""}}) {
    ASSERT_TRUE(cache.write(kTuned));
    ASSERT_TRUE(cache.read(damaged));
    edit(cache, from, to);
    EXPECT_FALSE(cache.read(damaged)) << to;
    EXPECT_TRUE(damaged) << to;
  }
}

TEST_F(TuneCacheTest, OffKeepsNothing) {
  setenv("FP4_TUNE_CACHE", "off", /*overwrite=*/1);
  const TuneCache cache("question");
  EXPECT_EQ(cache.path(), "");
  EXPECT_TRUE(cache.write(kTuned));
  bool damaged = true;
  EXPECT_FALSE(cache.read(damaged));
  EXPECT_FALSE(damaged);
}

TEST_F(TuneCacheTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder) << "a file";
  setenv("FP4_TUNE_CACHE", (folder + "/below").c_str(), /*overwrite=*/1);
  Status kept = TuneCache("question").write(kTuned);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind, ErrorKind::Usage);
}

} // namespace
