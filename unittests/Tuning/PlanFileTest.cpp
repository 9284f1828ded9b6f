//===- PlanFileTest.cpp - Files with a plan for each family of kernels ----===//

#include "fp4/Tuning/PlanFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace fp4;
using namespace fp4::tuning;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr const char *kWide = "tile_gemm, tile = [128, 256, 256]";
constexpr const char *kNarrow = "tile_gemm, tile = [128, 64, 256]";
constexpr const char *kReduction = "reduce_grid, threads = 64";

TEST(PlanFile, HasEachPlanOnce) {
  auto text = writePlanFile({kWide, kReduction, kWide}, "sm_100a");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("// Plans for sm_100a"));
  EXPECT_THAT(parsePlanFile(*text), ElementsAre(kWide, kReduction));
}

TEST(PlanFile, HasOnePlanForAFamily) {
  auto text = writePlanFile({kWide, kNarrow}, "sm_100a");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::Usage);
  EXPECT_THAT(text.error().message, HasSubstr("kernels of tile_gemm have different ones"));
}

TEST(PlanFile, EmptyLinesAndCommentsAreNoPlans) {
  EXPECT_THAT(parsePlanFile("\n  // a comment\n  gemv, threads = 128 \n\n"),
              ElementsAre("gemv, threads = 128"));
}

TEST(PlanFile, AtFileStandsForItsLines) {
  const std::string path = testing::TempDir() + "fp4_plan_file_test.plan";
  std::ofstream(path) << kWide << "\n" << kReduction << "\n";
  Plans plans = {"gemv, threads = 128", "@" + path};
  ASSERT_TRUE(readPlanFiles(plans));
  EXPECT_THAT(plans, ElementsAre("gemv, threads = 128", kWide, kReduction));
  std::filesystem::remove(path);
  EXPECT_FALSE(readPlanFiles(plans = {"@" + path}));
}

} // namespace
