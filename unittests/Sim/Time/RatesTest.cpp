//===- RatesTest.cpp - The table of rates ---------------------------------===//
#include "fp4/ISA/GpuModel.h"
#include "fp4/ISA/TimingRates.h"
#include "gtest/gtest.h"
#include <set>

using namespace fp4;
using namespace fp4::hw;

TEST(TimingRates, EveryEntryHasATargetAValueAndASource) {
  for (const TimingRow &row : timingRows) {
    EXPECT_TRUE(lookupTarget(row.target) || requireGpu(row.target)) << row.target;
    EXPECT_GE(row.rate.value, 0) << describe(row.which).name;
    EXPECT_FALSE(row.rate.source.empty()) << describe(row.which).name;
  }
}

TEST(TimingRates, ARateIsFoundByTargetAndName) {
  const Rate *rate = timingRate("sm_90a", TimingRate::AluInterval);
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->value, 2);
  EXPECT_EQ(rate->mark, Mark::Measured);
  EXPECT_EQ(timingRate("sm_90a", TimingRate::Fp4Flops), nullptr); // Hopper has no such unit
}

TEST(TimingRates, TheCostModelQuotesTheSameEntries) {
  const TargetModel *b200 = lookupTarget("sm_100a");
  EXPECT_EQ(b200->product->flopsPerCycle.value, timingRate("sm_100a", TimingRate::Fp4Flops)->value);
  EXPECT_EQ(b200->product->sharedBytesPerCycle.value,
            timingRate("sm_100a", TimingRate::SharedBytes)->value);
}
