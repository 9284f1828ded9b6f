//===- EpilogueCostTest.cpp - Costs of epilogues by the model of plans ----===//
#include "CostModel.h"
#include "gtest/gtest.h"

using namespace fp4;

namespace {

const hw::TargetModel &b200() { return *hw::lookupTarget("sm_100a"); }

MatmulSize sizeOf(int64_t k, EpilogueWork work = {}) {
  MatmulSize size = {4096, 4096, k, 16};
  size.epilogue = work;
  return size;
}

GemmTile tileOf(int64_t n, int64_t groups = 1) {
  GemmTile tile{/*pair=*/true, n, 2, 1};
  tile.epilogueGroups = groups;
  return tile;
}

/// A body whose warps wait for half of the time, or never.
EpilogueWork bodyOf(double alone, double busy) {
  EpilogueWork work;
  work.hasBody = true;
  work.column = {alone, busy, busy};
  work.conversion = {1, 1, 1};
  return work;
}

double epilogueOf(const EpilogueWork &work, int64_t groups, int64_t n = 128) {
  return epilogueCycles(sizeOf(1024, work), tileOf(n, groups), b200());
}

double timeOf(const EpilogueWork &work, int64_t k, int64_t n, int64_t groups = 1) {
  return gemmCost(sizeOf(k, work), tileOf(n, groups), b200()).cycles;
}

} // namespace

TEST(EpilogueCost, OfAPlainGemmIsTheFittedRate) {
  EXPECT_DOUBLE_EQ(epilogueOf({}, 1), 15 * 128);
  EXPECT_DOUBLE_EQ(epilogueOf({}, 1, 256), 15 * 256);
}

TEST(EpilogueCost, TwoWarpsOfASchedulerFillEachOthersWaits) {
  double four = epilogueOf(bodyOf(40, 20), 1), eight = epilogueOf(bodyOf(40, 20), 2);
  double fences = 2 * rateOf(hw::TimingRate::FenceProxyAsync, b200());
  EXPECT_DOUBLE_EQ(four - eight, 128 * 20 + fences);
}

TEST(EpilogueCost, PipesThatAreBusyGainNothing) {
  double fences = 2 * rateOf(hw::TimingRate::FenceProxyAsync, b200());
  EXPECT_DOUBLE_EQ(epilogueOf(bodyOf(40, 40), 1) - epilogueOf(bodyOf(40, 40), 2), fences);
}

TEST(EpilogueCost, CodeThatTheNearestCacheLacksIsFetched) {
  EpilogueWork loop = bodyOf(10, 10), written = loop;
  loop.column.instructions = 10;
  written.column.instructions = 10;
  written.group = 256; // 2560 instructions
  double fetched = rateOf(hw::TimingRate::FetchInterval, b200()) * 10;
  EXPECT_DOUBLE_EQ(epilogueOf(written, 1) - epilogueOf(loop, 1), 128 * (fetched - 10));
}

TEST(EpilogueCost, InputsAreWaitedForByChunks) {
  EpilogueWork bias = bodyOf(1, 1), residual = bias;
  bias.loadsColumns = true;
  residual.inputBytes = 2;
  double none = epilogueOf(bodyOf(1, 1), 1);
  EXPECT_DOUBLE_EQ(epilogueOf(bias, 1) - none, 4 * rateOf(hw::TimingRate::L2Latency, b200()));
  EXPECT_DOUBLE_EQ(epilogueOf(residual, 1) - none,
                   4 * rateOf(hw::TimingRate::MemoryLatency, b200()));
}

TEST(EpilogueCost, CodesLeaveSoonerThanElements) {
  EpilogueWork codes;
  codes.derives = true;
  codes.storesElements = false;
  codes.derivedBytes = 0.5625;
  EXPECT_LT(epilogueOf(codes, 1), epilogueOf({}, 1));
  EpilogueWork both = codes;
  both.storesElements = true;
  EXPECT_GT(epilogueOf(both, 1), epilogueOf({}, 1));
}

TEST(EpilogueCost, EveryWarpRaisesTheAmaxInMemory) {
  EpilogueWork amax;
  amax.derives = amax.foldsAmax = true;
  EXPECT_GT(epilogueOf(amax, 2), epilogueOf(amax, 1));
}

TEST(EpilogueCost, LiesUnderTheGemmsOfTheNextTile) {
  EpilogueWork work = bodyOf(30, 15);
  double deep = timeOf(work, 8192, 128) - timeOf({}, 8192, 128);
  double once = epilogueOf(work, 1) - epilogueOf({}, 1);
  EXPECT_NEAR(deep, once, 1); // of the last tile
  EXPECT_EQ(gemmCost(sizeOf(8192, work), tileOf(128), b200()).bound, GemmBound::L2Feed);
  EXPECT_EQ(gemmCost(sizeOf(512, work), tileOf(128), b200()).bound, GemmBound::Epilogue);
}

TEST(EpilogueCost, HoldsTheOnlyAccumulator) {
  EpilogueWork work = bodyOf(60, 30);
  EXPECT_GT(timeOf(work, 2048, 256), timeOf(work, 2048, 128));
  EXPECT_LT(timeOf({}, 2048, 256), timeOf({}, 2048, 128));
}

TEST(EpilogueCost, TwoWarpgroupsAreTakenForAGain) {
  GemmTile candidates[] = {tileOf(128), tileOf(128, 2)};
  EXPECT_EQ(cheapestTile(candidates, sizeOf(1024, bodyOf(40, 20)), b200()).epilogueGroups, 2);
  EXPECT_EQ(cheapestTile(candidates, sizeOf(1024), b200()).epilogueGroups, 1);
}
