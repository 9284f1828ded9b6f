// Ranks and masks of clusters, spelled out CTA by CTA.
#include "fp4/ISA/Cluster.h"
#include <gtest/gtest.h>

using namespace fp4::hw;

namespace {

constexpr ClusterShape shapes[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 2}, {2, 4}, {4, 4}, {16, 1}};

/// The mask of all CTAs (x, y) that `isMember` names.
template <typename Predicate> uint32_t maskOf(ClusterShape shape, Predicate isMember) {
  uint32_t mask = 0;
  for (uint32_t y = 0; y < shape.n; ++y)
    for (uint32_t x = 0; x < shape.m; ++x)
      if (isMember(x, y))
        mask |= 1u << (x + y * shape.m);
  return mask;
}

} // namespace

TEST(Cluster, MasksAlongADirection) {
  for (ClusterShape shape : shapes)
    for (uint32_t rank = 0; rank < shape.size(); ++rank) {
      const uint32_t x = placeAlong(rank, shape, ClusterDirection::M);
      const uint32_t y = placeAlong(rank, shape, ClusterDirection::N);
      EXPECT_EQ(rank, x + y * shape.m);
      EXPECT_EQ(maskOfBlock(rank), 1u << rank);
      EXPECT_EQ(maskAlong(rank, shape, ClusterDirection::M),
                maskOf(shape, [&](uint32_t, uint32_t v) { return v == y; }));
      EXPECT_EQ(maskAlong(rank, shape, ClusterDirection::N),
                maskOf(shape, [&](uint32_t u, uint32_t) { return u == x; }));
    }
}

TEST(Cluster, PairsAreTwoBlocksAlongM) {
  for (ClusterShape shape : shapes) {
    if (shape.m % 2)
      continue;
    EXPECT_EQ(shape.along(ClusterDirection::Pairs), shape.m / 2);
    for (uint32_t rank = 0; rank < shape.size(); ++rank) {
      const uint32_t x = rank % shape.m;
      EXPECT_EQ(placeAlong(rank, shape, ClusterDirection::Pairs), x / 2);
      EXPECT_EQ(maskAlong(rank, shape, ClusterDirection::Pairs),
                maskOf(shape, [&](uint32_t u, uint32_t v) {
                  return u % 2 == x % 2 && v == rank / shape.m;
                }));
      EXPECT_EQ(pairLeader(rank) % 2, 0u);
      EXPECT_EQ(maskOfPair(rank), maskOf(shape, [&](uint32_t u, uint32_t v) {
                  return u / 2 == x / 2 && v == rank / shape.m;
                }));
      EXPECT_EQ(maskAlong(rank, shape, ClusterDirection::N, /*pairs=*/true),
                maskOf(shape, [&](uint32_t u, uint32_t) { return u / 2 == x / 2; }));
    }
  }
}
