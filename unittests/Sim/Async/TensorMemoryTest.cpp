// Tensor memory: the allocator's rules and the state of cells.
#include "Sim/Async/TensorMemory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::sim;
using testing::HasSubstr;

namespace {

TensorMemory::Allocation request(uint32_t columns) { return {0, columns, {}, {}, 1}; }

TEST(TensorMemory, AllocationsAreContiguousAndInOrder) {
  TensorMemory t;
  EXPECT_EQ(**t.allocate(request(256)), 0u);
  EXPECT_EQ(**t.allocate(request(128)), 256u);
  EXPECT_EQ(**t.allocate(request(128)), 384u);
  EXPECT_FALSE(t.allocate(request(32))->has_value()) << "full: must wait";
  EXPECT_FALSE(t.available({0, 32, {}, {}}));
  EXPECT_TRUE(t.deallocate(hw::TmemAddress{0, 256}.pack(), 128, 1));
  EXPECT_EQ(**t.allocate(request(32)), 256u);
}

TEST(TensorMemory, Sizes) {
  for (uint32_t bad : {0u, 16u, 48u, 1024u})
    EXPECT_FALSE(TensorMemory().allocate(request(bad))) << bad;
  for (uint32_t good : {32u, 64u, 128u, 256u, 512u})
    EXPECT_TRUE(TensorMemory().allocate(request(good))) << good;
}

TEST(TensorMemory, SizesMustNotIncrease) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(64)));
  EXPECT_TRUE(t.allocate(request(64)));
  auto grown = t.allocate(request(128));
  ASSERT_FALSE(grown);
  EXPECT_THAT(grown.error().message, HasSubstr("128 columns after one of 64"));
}

TEST(TensorMemory, NothingAfterRelinquish) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(32)));
  ASSERT_TRUE(t.relinquish());
  EXPECT_FALSE(t.allocate(request(32)));
  EXPECT_TRUE(t.deallocate(0, 32, 1));
}

TEST(TensorMemory, DeallocationMustMatch) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(64)));
  EXPECT_FALSE(t.deallocate(32, 64, 1)) << "address";
  EXPECT_FALSE(t.deallocate(0, 32, 1)) << "size";
  EXPECT_FALSE(t.deallocate(0, 128, 1)) << "size";
  EXPECT_FALSE(t.deallocate(0, 64, 2)) << "cta_group";
  EXPECT_TRUE(t.deallocate(0, 64, 1));
  EXPECT_FALSE(t.deallocate(0, 64, 1)) << "twice";
  ASSERT_TRUE(t.allocate({0, 64, {}, {}, 2}));
  EXPECT_FALSE(t.deallocate(0, 64, 1)) << "cta_group of one";
  EXPECT_TRUE(t.deallocate(0, 64, 2));
}

TEST(TensorMemory, CellsBelongToTheTicketThatWritesThem) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(64)));
  const TmemRange range{0, 128, 0, 32};
  EXPECT_EQ(t.firstBad(range, ~0ull)->ticket, 0u) << "never written";
  t.poison(range, 5);
  EXPECT_EQ(t.firstBad(range, 9)->ticket, 5u);
  EXPECT_FALSE(t.firstBad(range, 5)) << "a ticket may read what it will write itself";
  t.poison(range, 7);
  t.written(range, 5);
  EXPECT_EQ(t.firstBad(range, 9)->ticket, 7u) << "the later ticket keeps it";
  EXPECT_FALSE(t.firstBad(range, 6)) << "its data is still there for an earlier reader";
  t.written(range, 7);
  EXPECT_FALSE(t.firstBad(range, ~0ull));
  EXPECT_TRUE(t.firstBad({0, 128, 31, 2}, ~0ull)) << "column 32 was never written";
}

TEST(TensorMemory, HalvesOfAQuarterAreSeparate) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(32)));
  t.written({16, 16, 0, 1}, 1);
  EXPECT_FALSE(t.firstBad({16, 16, 0, 1}, ~0ull));
  EXPECT_TRUE(t.firstBad({0, 32, 0, 1}, ~0ull));
}

TEST(TensorMemory, RangesMustBeAllocated) {
  TensorMemory t;
  ASSERT_TRUE(t.allocate(request(64)));
  EXPECT_TRUE(t.checkAllocated({0, 128, 0, 64}));
  EXPECT_FALSE(t.checkAllocated({0, 128, 32, 64}));
  EXPECT_FALSE(t.checkAllocated({16, 128, 0, 32})) << "lanes";
  EXPECT_FALSE(t.checkAllocated({~0u, 2, 0, 32})) << "the end of the lanes wraps to 1";
  const Status columns = t.checkAllocated({0, 1, ~0u, 2});
  ASSERT_FALSE(columns) << "the end of the columns wraps to 1";
  EXPECT_THAT(columns.error().message, HasSubstr("columns 4294967295..4294967296"));
}

} // namespace
