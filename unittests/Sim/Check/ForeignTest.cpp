//===- ForeignTest.cpp - Knowledge about other clusters -------------------===//
#include "Sim/Check/Foreign.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace fp4::sim::check;

namespace {

/// The meaning of a Foreign, without sharing.
using Plain = std::map<uint32_t, Known>;

Known knownOf(uint32_t slot, uint32_t epoch) {
  Known known;
  known.generic.raise(slot, epoch);
  known.loose.raise(slot, epoch + 1);
  return known;
}

void expectSame(const Foreign &foreign, const Plain &plain, uint32_t clusters) {
  for (uint32_t cluster = 0; cluster < clusters; ++cluster) {
    const Known *known = foreign.find(cluster);
    const auto expected = plain.find(cluster);
    ASSERT_EQ(known != nullptr, expected != plain.end()) << cluster;
    if (known) {
      EXPECT_TRUE(known->covers(expected->second) && expected->second.covers(*known)) << cluster;
    }
  }
}

TEST(Foreign, IsAMapByCluster) {
  constexpr uint32_t kClusters = 200;
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  std::array<Foreign, 4> foreign;
  std::array<Plain, 4> plain;
  for (unsigned step = 0; step < 400; ++step) {
    const uint32_t to = below(4), from = below(4), cluster = below(kClusters);
    if (below(3)) {
      const Known known = knownOf(below(3), below(50));
      foreign[to].join(cluster, known);
      plain[to][cluster].join(known);
    } else {
      foreign[to].join(foreign[from]);
      for (const auto &[other, known] : plain[from])
        plain[to][other].join(known);
      EXPECT_TRUE(foreign[to].covers(foreign[from]));
    }
    expectSame(foreign[to], plain[to], kClusters);
  }
}

TEST(Foreign, CoversWhatIsNoNews) {
  Foreign one, two;
  EXPECT_TRUE(one.covers(two));
  two.join(40, knownOf(0, 3));
  EXPECT_FALSE(one.covers(two));
  one.join(40, knownOf(0, 2));
  EXPECT_FALSE(one.covers(two));
  one.join(40, knownOf(0, 3));
  EXPECT_TRUE(one.covers(two));
  one.join(99, knownOf(1, 1));
  EXPECT_TRUE(one.covers(two));
  EXPECT_FALSE(two.covers(one));
}

TEST(Foreign, ACopySharesWhatItDoesNotChange) {
  Foreign one;
  for (uint32_t cluster = 0; cluster < 100; ++cluster)
    one.join(cluster, knownOf(0, 1));
  Foreign two = one;
  two.join(5, knownOf(0, 2));
  EXPECT_EQ(one.find(99), two.find(99)) << "another part";
  EXPECT_EQ(one.find(6), two.find(6)) << "the same part";
  EXPECT_NE(one.find(5), two.find(5));
  EXPECT_EQ(one.find(5)->generic.at(0), 1u);
  EXPECT_EQ(two.find(5)->generic.at(0), 2u);
}

TEST(Foreign, AFenceShowsTheAsyncProxyWhatTheGenericOneDid) {
  Foreign foreign;
  foreign.join(3, knownOf(2, 9));
  const Foreign before = foreign;
  foreign.fence();
  EXPECT_EQ(foreign.find(3)->async.at(2), 9u);
  EXPECT_EQ(before.find(3)->async.at(2), 0u);
  const Known *fenced = foreign.find(3);
  foreign.fence();
  EXPECT_EQ(foreign.find(3), fenced) << "nothing is new";
}

TEST(Foreign, PointersAreSharedWhereOneKnowsAll) {
  const auto of = [](std::initializer_list<uint32_t> clusters) {
    auto foreign = std::make_shared<Foreign>();
    for (uint32_t cluster : clusters)
      foreign->join(cluster, knownOf(0, 1));
    return foreign;
  };
  const ForeignPtr small = of({1}), large = of({1, 50});
  ForeignPtr mine = small;
  join(mine, large);
  EXPECT_EQ(mine, large);
  join(mine, small);
  EXPECT_EQ(mine, large);
  join(mine, of({70}));
  EXPECT_TRUE(mine->find(50) && mine->find(70));
  EXPECT_FALSE(large->find(70));
}

} // namespace
