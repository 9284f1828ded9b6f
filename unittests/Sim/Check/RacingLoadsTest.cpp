// Loads that may race by default, and what ends that.
#include "Litmus.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

/// The read that begins a loop of compare-and-swap; nothing but the atomic orders anything.
TEST(RacingLoads, APlainReadBesideAtomics) {
  const std::string swap = "  ld.global.b32 %r5, [%out];\n  add.u32 %r6, %r5, 1;\n"
                           "  atom.global.cas.b32 %r7, [%out], %r5, %r6;\n";
  for (const bool strict : {false, true})
    for (const bool atomic : {false, true}) {
      HazardChecker checker({.strict = strict});
      SimOptions options = schedules()[0];
      options.observer = &checker;
      LaunchConfig config;
      config.block = {64, 1, 1};
      const std::string text =
          litmus(atomic ? swap
                        : replaced(swap, "atom.global.cas.b32 %r7, [%out], %r5, %r6",
                                   "st.global.b32 [%out], %r6"));
      EXPECT_EQ(runText(text, options, config, 64).error, "");
      EXPECT_EQ(checker.reports().empty(), atomic && !strict);
    }
}

/// Every thread loads a scalar, one thread stores what it computes of it.
const std::string loadAll = "  ld.global.b32 %r5, [%out];\n", addOne = "  add.u32 %r6, %r5, 1;\n",
                  storeOne = "  @%p0 st.global.b32 [%out], %r6;\n",
                  depot = "  .local .align 4 .b8 depot[16];\n  mov.u64 %rd1, depot;\n";

TEST(RacingLoads, WhatOneThreadUsesAllMayLoad) {
  Litmus many{};
  many.threads = 192;
  const std::string once = loadAll + addOne + storeOne;
  const std::string often =
      "LOOP:\n" + once + "  add.u32 %r7, %r7, 1;\n  setp.lt.u32 %p2, %r7, 4;\n  @%p2 bra LOOP;\n";
  const std::string generic = loadAll + addOne + "  @%p0 st.b32 [%out], %r6;\n",
                    beside = depot + once + "  st.local.b32 [depot], %t;\n";
  for (const SimOptions &options : schedules(3))
    for (const std::string &text : {once, often, generic, beside}) {
      EXPECT_EQ(judge(litmus(text), options, many).text(), "");
      EXPECT_FALSE(judge(litmus(text), options, many, true).reports.empty());
    }
}

TEST(RacingLoads, WhatIsUsedOtherwiseRaces) {
  const std::string own = "  mad.wide.u32 %rd0, %t, 4, %out;\n", load = loadAll + addOne,
                    all = load + storeOne;
  const std::string other = "  ld.global.b32 %r7, [%out];\n";
  const std::string byAnother =
                        depot + "  @%p0 st.global.b32 [%out], 7;\n  @!%p1 bra END;\n" + load,
                    decide = "  setp.eq.u32 %p2, %r7, 7;\n  @%p2 st.global.b32 [%out+512], 1;\n"
                             "END:\n";
  const std::string uses[] = {
      // By a second store, a branch, an address, an atomic, a carry.
      all + own + "  st.global.b32 [%rd0+512], %r5;\n",
      loadAll + "  setp.eq.u32 %p2, %r5, 7;\n  @%p2 bra END;\n" + addOne + storeOne + "END:\n",
      load + "  and.b32 %r7, %r5, 4;\n  cvt.u64.u32 %rd1, %r7;\n  add.u64 %rd2, %out, %rd1;\n"
             "  @%p0 st.global.b32 [%rd2], %r6;\n",
      all + "  red.global.add.u32 [%out+512], %r6;\n",
      all + "  add.cc.u32 %r7, %r5, 1;\n  addc.u32 %r8, 0, 0;\n  st.global.b32 [%out+512], %r8;\n",
      // By the store of a second thread: at once, and in another warp.
      load + own + "  setp.lt.u32 %p2, %t, 2;\n  @%p2 st.global.b32 [%rd0], %r6;\n",
      load + own +
          "  and.b32 %r7, %t, 31;\n  setp.eq.u32 %p2, %r7, 0;\n"
          "  @%p2 st.global.b32 [%rd0], %r6;\n",
      // By a load from local memory, whose address may be generic.
      byAnother + "  st.local.b32 [depot], %r6;\n  ld.local.b32 %r7, [depot];\n" + decide,
      byAnother + "  cvta.local.u64 %rd1, %rd1;\n  st.b32 [%rd1], %r6;\n  ld.b32 %r7, [%rd1];\n" +
          decide,
      // Not by the store with which it races.
      load + "  setp.eq.u32 %p2, %t, 40;\n  @%p2 st.global.b32 [%out], 3;\n"
             "  @%p0 st.global.b32 [%out+512], %r6;\n",
      // An earlier load of the warp, or a later one, is used.
      loadAll + own + "  st.global.b32 [%rd0+512], %r5;\n" + other + "  add.u32 %r6, %r7, 1;\n" +
          storeOne,
      load + own + other + "  st.global.b32 [%rd0+512], %r7;\n" + storeOne};
  for (const SimOptions &options : schedules(3))
    for (const std::string &used : uses) {
      const Judged judged = judge(litmus(used), options, {});
      EXPECT_FALSE(judged.reports.empty()) << used << judged.error << describe(options);
    }
}

/// Two warps have the same part of a tile: both load it, and one stores what it computes of it.
TEST(RacingLoads, WhatAWarpDoesNotStoreItMayLoad) {
  const std::string load = "  and.b32 %r7, %t, 31;\n  mad.wide.u32 %rd0, %r7, 4, %out;\n"
                           "  ld.global.b32 %r5, [%rd0];\n  add.u32 %r6, %r5, 1;\n"
                           "  setp.lt.u32 %p2, %t, 32;\n  @%p2 st.global.b32 [%rd0], %r6;\n",
                    more = load + "  shfl.sync.bfly.b32 %r5, %r5, 1, 31, -1;\n",
                    byOne = more + "  @%p2 st.global.b32 [%rd0+512], %r5;\n",
                    byBoth = more + "  st.global.b32 [%rd0+512], %r5;\n";
  for (const SimOptions &options : schedules(3)) {
    EXPECT_EQ(judge(litmus(byOne), options, {}).text(), "");
    EXPECT_THAT(judge(litmus(byBoth), options, {}).text(), HasSubstr("[global-race]"));
    EXPECT_THAT(judge(litmus(byOne), options, {}, true).text(), HasSubstr("[global-race]"));
  }
}

} // namespace
