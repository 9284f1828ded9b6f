// Launches that prefer a larger cluster size: which CTAs get it, and what each CTA sees.
#include "KernelHarness.h"
#include <set>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

/// 8x2 CTAs, in clusters of 2x1 or 2x2.
LaunchConfig launchOf(std::array<uint32_t, 3> preferred = {2, 2, 1}) {
  LaunchConfig config;
  config.grid = {8, 2, 1};
  config.cluster = {2, 1, 1};
  config.preferredCluster = preferred;
  return config;
}

/// The report of a CTA on its own place.
struct Seen {
  uint32_t width, height, rank, clusterX, clusterY, clustersX, clustersY, neighbour;
};
constexpr size_t kWords = sizeof(Seen) / 4;

/// One thread per CTA, which sends its place in the grid to the next CTA of its cluster.
std::string lookAround(const std::string &arrive = "  barrier.cluster.arrive;\n") {
  std::string text = "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %ctaid.y;\n"
                     "  mov.u32 %r3, %nctaid.x;\n  mad.lo.u32 %r1, %r2, %r3, %r1;\n"
                     "  mov.u32 %r4, box;\n  mov.u32 %r5, %cluster_ctarank;\n"
                     "  mov.u32 %r6, %cluster_nctarank;\n  add.u32 %r7, %r5, 1;\n"
                     "  rem.u32 %r7, %r7, %r6;\n  mapa.shared::cluster.u32 %r8, %r4, %r7;\n"
                     "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
                     "  st.shared::cluster.u32 [%r8], %r1;\n" +
                     arrive +
                     "  barrier.cluster.wait;\n"
                     "  ld.shared.u32 %r9, [%r4];\n"
                     "  mul.wide.u32 %rd1, %r1, 32;\n  add.u64 %rd1, %out, %rd1;\n"
                     "  st.global.u32 [%rd1+28], %r9;\n";
  const char *specials[] = {"%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_ctarank",
                            "%clusterid.x",      "%clusterid.y",      "%nclusterid.x",
                            "%nclusterid.y"};
  for (size_t i = 0; i < std::size(specials); ++i)
    text +=
        fmt::format("  mov.u32 %r9, {};\n  st.global.u32 [%rd1+{}], %r9;\n", specials[i], 4 * i);
  return kernelText(text, "  .shared .align 4 .b32 box;\n");
}

std::vector<Seen> run(const SimOptions &options, const LaunchConfig &config) {
  const size_t ctas = size_t(config.grid[0]) * config.grid[1];
  const RunResult result = runText(lookAround(), options, config, ctas * kWords);
  EXPECT_EQ(result.error, "") << describe(options) << "\n" << result.note;
  std::vector<Seen> seen(ctas);
  if (result.error.empty())
    std::memcpy(seen.data(), result.out.data(), ctas * sizeof(Seen));
  return seen;
}

/// CTA (x, y) in a cluster of `height` rows, which is counted as if all clusters were such.
void expectSeen(const Seen &seen, uint32_t x, uint32_t y, uint32_t height) {
  SCOPED_TRACE(fmt::format("CTA ({},{})", x, y));
  EXPECT_EQ(seen.width, 2u);
  EXPECT_EQ(seen.height, height);
  EXPECT_EQ(seen.rank, x % 2 + y % height * 2);
  EXPECT_EQ(seen.clusterX, x / 2);
  EXPECT_EQ(seen.clusterY, y / height);
  EXPECT_EQ(seen.clustersX, 4u);
  EXPECT_EQ(seen.clustersY, 2 / height);
  const uint32_t before = (seen.rank + 2 * height - 1) % (2 * height);
  EXPECT_EQ(seen.neighbour, x / 2 * 2 + before % 2 + (y / height * height + before / 2) * 8);
}

TEST(PreferredCluster, AllOrNoneGetIt) {
  for (auto [sizes, height] :
       {std::pair(ClusterSizes::Preferred, 2u), {ClusterSizes::Fallback, 1u}})
    for (SimOptions options : schedules(2)) {
      options.clusters = sizes;
      const std::vector<Seen> seen = run(options, launchOf());
      for (uint32_t i = 0; i < seen.size(); ++i)
        expectSeen(seen[i], i % 8, i / 8, height);
    }
}

/// The seed chooses; every launch with two places has clusters of both sizes.
TEST(PreferredCluster, TheSeedMixesThem) {
  std::set<std::vector<uint32_t>> mixes;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    SimOptions options;
    options.seed = seed;
    const std::vector<Seen> seen = run(options, launchOf());
    std::vector<uint32_t> heights;
    for (uint32_t place = 0; place < 4; ++place)
      heights.push_back(seen[place * 2].height);
    for (uint32_t i = 0; i < seen.size(); ++i)
      expectSeen(seen[i], i % 8, i / 8, heights[i % 8 / 2]);
    EXPECT_NE(heights[0], heights[1]);
    mixes.insert(heights);
  }
  EXPECT_EQ(mixes.size(), 8u); // of the first two places, two; of two more, four
}

TEST(PreferredCluster, TheStrictCheckFollowsBothSizes) {
  for (SimOptions options : schedules(3)) {
    auto instruments = instrument("strict", options);
    run(options, launchOf());
    EXPECT_TRUE(instruments->hazards().empty()) << instruments->hazards().front().text();
    const std::string relaxed = lookAround("  barrier.cluster.arrive.relaxed;\n");
    EXPECT_EQ(runText(relaxed, options, launchOf(), 16 * kWords).error, "");
    EXPECT_FALSE(instruments->hazards().empty());
  }
}

/// A prediction has slots of one size, the preferred.
TEST(PreferredCluster, APredictionHasOneSize) {
  SimOptions options;
  options.policy = CompletionPolicy::Timed;
  for (auto [sizes, height] : {std::pair(ClusterSizes::Mixed, 2u), {ClusterSizes::Fallback, 1u}}) {
    options.clusters = sizes;
    for (const Seen &seen : run(options, launchOf()))
      EXPECT_EQ(seen.height, height);
  }
}

TEST(PreferredCluster, EveryOrderOfAMixIsExplored) {
  SimOptions options;
  options.policy = CompletionPolicy::Exhaustive;
  options.orders.most = 8;
  LaunchConfig config = launchOf();
  config.grid = {4, 2, 1};
  const std::vector<Seen> seen = run(options, config);
  EXPECT_NE(seen[0].height, seen[2].height);
}

/// CTAs of a cluster take over the work of a cluster that has the same size.
std::string persistent() {
  return kernelText(
      "  mov.u32 %r1, bar;\n  mov.u32 %r2, response;\n  mov.u32 %r3, %ctaid.x;\n"
      "  mov.u32 %r4, 0;\n  mov.u32 %r5, %cluster_ctarank;\n  setp.ne.u32 %p4, %r5, 0;\n"
      "  mbarrier.init.shared::cta.b64 [%r1], 1;\n  fence.mbarrier_init.release.cluster;\n"
      "WORK:\n  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n"
      "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
      "  @%p4 bra ASKED;\n"
      "  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%r2], [%r1];\nASKED:\n"
      "  mul.wide.u32 %rd1, %r3, 4;\n  add.u64 %rd1, %out, %rd1;\n"
      "  atom.global.add.u32 %r6, [%rd1], 1;\n"
      "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r4;\n  @!%p1 bra WAIT;\n"
      "  xor.b32 %r4, %r4, 1;\n  ld.shared.b128 %q, [%r2];\n"
      "  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;\n  @!%p2 ret;\n"
      "  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %q;\n"
      "  add.u32 %r3, %r3, %r5;\n  fence.proxy.async.shared::cta;\n  bra WORK;\n",
      "  .reg .b128 %q;\n  .shared .align 8 .b64 bar;\n  .shared .align 16 .b8 response[16];\n");
}

TEST(PreferredCluster, WorkIsTakenOverFromClustersOfOnesOwnSize) {
  LaunchConfig config;
  config.grid = {24, 1, 1};
  config.cluster = {2, 1, 1};
  config.preferredCluster = {4, 1, 1};
  for (SimOptions options : schedules(6))
    for (uint32_t threads : {1u, 2u})
      for (auto sizes : {ClusterSizes::Mixed, ClusterSizes::Preferred, ClusterSizes::Fallback}) {
        options.hostThreads = threads;
        options.clusters = sizes;
        const RunResult result = runText(persistent(), options, config, 24);
        ASSERT_EQ(result.error, "") << describe(options) << "\n" << result.note;
        EXPECT_EQ(result.out, std::vector<uint32_t>(24, 1)) << describe(options);
      }
}

/// Without the size to fall back on, the attribute has no effect.
TEST(PreferredCluster, AloneItChangesNothing) {
  LaunchConfig config = launchOf();
  config.cluster = {0, 0, 0};
  for (const Seen &seen : run({}, config))
    EXPECT_EQ(seen.width * seen.height, 1u);
}

std::string refusal(std::string ptx, std::array<uint32_t, 3> preferred,
                    const std::string &target = "sm_100a") {
  SimOptions options;
  options.target = target;
  const RunResult result = runText(ptx, options, launchOf(preferred), 16 * kWords);
  return result.error + "\n" + result.note;
}

std::string withDirective(const std::string &directive) {
  std::string text = lookAround();
  return text.insert(text.find("\n{") + 1, directive + "\n");
}

TEST(PreferredCluster, WhatTheDriverRefuses) {
  const std::string text = lookAround();
  EXPECT_EQ(refusal(text, {2, 2, 1}), "\n");
  EXPECT_EQ(refusal(text, {4, 1, 1}), "\n");
  EXPECT_EQ(refusal(text, {2, 1, 1}), "\n");
  EXPECT_THAT(
      refusal(text, {3, 1, 1}),
      HasSubstr("must be a multiple of the cluster (2,1,1) along x and y and equal along z, "
                "but got (3,1,1)"));
  EXPECT_THAT(refusal(text, {2, 1, 2}), HasSubstr("but got (2,1,2)"));
  EXPECT_THAT(refusal(text, {6, 1, 1}),
              HasSubstr("the grid (8,2,1) must be a multiple of the preferred cluster (6,1,1)"));
  EXPECT_THAT(refusal(text, {2, 2, 1}, "sm_90a"),
              HasSubstr("'sm_90a' has no clusters of a preferred size"));
  EXPECT_THAT(refusal(withDirective(".reqnctapercluster 2, 1, 1"), {2, 2, 1}),
              HasSubstr("requires clusters of (2,1,1) (.reqnctapercluster), but got the preferred "
                        "size (2,2,1)"));
  EXPECT_THAT(refusal(withDirective(".maxclusterrank 2"), {2, 2, 1}),
              HasSubstr("at most 2 CTAs (.maxclusterrank), but got (2,2,1)"));
  EXPECT_EQ(refusal(withDirective(".maxclusterrank 4"), {2, 2, 1}), "\n");
}

} // namespace
