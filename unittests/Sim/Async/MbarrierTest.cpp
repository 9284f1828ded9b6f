// mbarrier objects: phases, counts, transactions, and what PTX leaves undefined.
#include "Sim/Async/Mbarrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::sim;
using testing::HasSubstr;

namespace {

struct MbarrierTest : testing::Test {
  MbarrierTable table;
  MbarrierEvent who{{0, 0, 3, 0}, {0, 17}};

  Mbarrier &make(uint32_t count, uint32_t offset = 0x400) {
    EXPECT_TRUE(table.init(offset, count, who));
    return **table.find(offset);
  }
};

TEST_F(MbarrierTest, PhaseCompletesWithTheLastArrival) {
  Mbarrier &b = make(2);
  EXPECT_TRUE(b.parityDone(1)) << "the phase before the first counts as done";
  EXPECT_FALSE(b.parityDone(0));
  EXPECT_EQ(*table.arrive(b, 1, who), 0u);
  EXPECT_EQ(*table.arrive(b, 1, who), 1u);
  EXPECT_EQ(b.phase, 1u);
  EXPECT_EQ(b.pending, 2u);
  EXPECT_TRUE(b.parityDone(0));
  EXPECT_FALSE(b.parityDone(1));
}

TEST_F(MbarrierTest, TransactionsHoldThePhaseOpen) {
  Mbarrier &b = make(1);
  ASSERT_TRUE(table.expectTx(b, 96));
  EXPECT_EQ(*table.arrive(b, 1, who), 0u);
  EXPECT_EQ(*table.completeTx(b, 64, who), 0u);
  EXPECT_THAT(b.describe(), HasSubstr("32 bytes expected and not delivered"));
  EXPECT_EQ(*table.completeTx(b, 32, who), 1u);
  EXPECT_EQ(b.tx, 0);
}

TEST_F(MbarrierTest, BytesMayComeBeforeTheyAreExpected) {
  Mbarrier &b = make(1);
  EXPECT_EQ(*table.completeTx(b, 64, who), 0u);
  ASSERT_TRUE(table.expectTx(b, 64));
  EXPECT_EQ(*table.arrive(b, 1, who), 1u);
}

TEST_F(MbarrierTest, MoreBytesThanExpectedIsAnError) {
  Mbarrier &b = make(1);
  ASSERT_TRUE(table.expectTx(b, 32));
  ASSERT_TRUE(table.completeTx(b, 64, who));
  auto result = table.arrive(b, 1, who);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("32 bytes more were delivered than expected"));
}

TEST_F(MbarrierTest, ArrivalBeyondTheCountIsAnError) {
  Mbarrier &b = make(2);
  auto result = table.arrive(b, 3, who);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("gets 3 arrivals with 2 pending in phase 0"));
  EXPECT_EQ(*table.arrive(b, 2, who), 1u);
}

/// Arrivals are compared with what is left of the phase, not with the count at its beginning.
TEST_F(MbarrierTest, ArrivalBeyondWhatIsPendingIsAnError) {
  Mbarrier &b = make(4);
  EXPECT_EQ(*table.arrive(b, 3, who), 0u);
  auto result = table.arrive(b, 2, who);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("gets 2 arrivals with 1 pending in phase 0"));
  EXPECT_FALSE(table.arriveDrop(b, 2, false, who));
  EXPECT_EQ(*table.arrive(b, 1, who), 1u);
}

TEST_F(MbarrierTest, DropTakesOffLaterPhases) {
  Mbarrier &b = make(3);
  EXPECT_EQ(*table.arriveDrop(b, 1, false, who), 0u);
  EXPECT_EQ(*table.arrive(b, 2, who), 1u);
  EXPECT_EQ(b.pending, 2u);
}

TEST_F(MbarrierTest, NoCompleteMustNotComplete) {
  Mbarrier &b = make(2);
  EXPECT_TRUE(table.arriveNoComplete(b, 1, who));
  EXPECT_FALSE(table.arriveNoComplete(b, 1, who));
}

TEST_F(MbarrierTest, Tokens) {
  Mbarrier &b = make(1);
  const uint64_t token = b.token();
  EXPECT_EQ(token >> 32, 1u) << "pending count";
  EXPECT_FALSE(*MbarrierTable::tokenDone(b, token));
  ASSERT_TRUE(table.arrive(b, 1, who));
  EXPECT_TRUE(*MbarrierTable::tokenDone(b, token));
  ASSERT_TRUE(table.arrive(b, 1, who));
  auto stale = MbarrierTable::tokenDone(b, token);
  ASSERT_FALSE(stale);
  EXPECT_THAT(stale.error().message, HasSubstr("state of phase 0, but its phase is 2"));
}

TEST_F(MbarrierTest, TransactionCountIsBounded) {
  Mbarrier &b = make(1);
  EXPECT_TRUE(table.expectTx(b, Mbarrier::maxCount));
  EXPECT_FALSE(table.expectTx(b, 1));
  Mbarrier &c = make(1, 0x408);
  EXPECT_TRUE(table.completeTx(c, Mbarrier::maxCount, who));
  EXPECT_FALSE(table.completeTx(c, 1, who));
}

TEST_F(MbarrierTest, ObjectsAreKnownByAddress) {
  make(1);
  EXPECT_FALSE(table.init(0x400, 1, who)) << "in use";
  EXPECT_FALSE(table.init(0x404, 1, who)) << "misaligned";
  EXPECT_FALSE(table.init(0x500, 0, who)) << "count";
  EXPECT_FALSE(table.init(0x500, 1u << 20, who)) << "count";
  auto missing = table.find(0x408);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().note, HasSubstr("0x400"));
  EXPECT_TRUE(table.overlapping(0x404, 4));
  EXPECT_FALSE(table.overlapping(0x408, 8));
  EXPECT_TRUE(table.inval(0x400));
  EXPECT_TRUE(table.init(0x400, 1, who));
}

TEST_F(MbarrierTest, HistoryNamesWhoArrived) {
  Mbarrier &b = make(1);
  ASSERT_TRUE(table.arrive(b, 1, who));
  EXPECT_THAT(b.describeHistory(), HasSubstr("arrived in this phase: nobody"));
  EXPECT_THAT(b.describeHistory(),
              HasSubstr("in the phase before: warp 3 of CTA rank 0 (line 17)"));
}

TEST_F(MbarrierTest, HistoryGroupsArrivals) {
  Mbarrier &b = make(97);
  for (uint32_t warp : {0, 1, 2})
    for (int lane = 0; lane < 32; ++lane)
      ASSERT_TRUE(table.arrive(b, 1, {{0, 0, warp, 0}, {4, 20}}));
  EXPECT_THAT(b.describeHistory(), HasSubstr("warps 0-2 of CTA rank 0 (line 20; each x32)"));
  ASSERT_TRUE(table.arrive(b, 1, who));
  ASSERT_TRUE(table.arrive(b, 1, {{0, 0, 1, 0}, {4, 20}}));
  EXPECT_THAT(b.describeHistory(), HasSubstr("not yet again: warp 3 of CTA rank 0 (line 17), "
                                             "warps 0, 2 of CTA rank 0 (line 20)"));
}

TEST_F(MbarrierTest, BytesAreToldByLine) {
  Mbarrier &b = make(1);
  ASSERT_TRUE(table.expectTx(b, 128, {1, 5}));
  ASSERT_TRUE(table.completeTx(b, 32, who));
  ASSERT_TRUE(table.completeTx(b, 32, who));
  EXPECT_EQ(b.describeBytes(), "announced: 128 (line 5); delivered: 64 (line 17; in 2 times)");
}

/// A warp that waits for phase 1 and never waited for phase 0, unless another did.
TEST_F(MbarrierTest, AParityThatIsOneAheadIsTold) {
  Mbarrier &b = make(1);
  EXPECT_THAT(b.describeParity(2, 0), HasSubstr("begins with parity 1"));
  ASSERT_TRUE(table.arrive(b, 1, who));
  EXPECT_THAT(b.describeParity(2, 1), HasSubstr("has never waited for phase 0, which has "
                                                "completed: its parity is one ahead"));
  b.waited(3, 0);
  EXPECT_EQ(b.describeParity(2, 1), "");
  EXPECT_EQ(b.describeParity(3, 1), "");
}

} // namespace
