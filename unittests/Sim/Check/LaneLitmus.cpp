// Lanes of one warp that synchronize: releases and acquires of one lane.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

const std::string meet = "  bar.warp.sync -1;\n";
/// Executed together, and no order of memory.
const std::string shuffle = "  shfl.sync.idx.b32 %r9, %t, 0, 31, -1;\n";
const std::string firstOfWarp1 = "  setp.eq.u32 %p3, %t, 32;\n";
const std::string readStage = "  ld.shared.b32 %v0, [%r0+-128];\n";
const std::string arriveFull = "  @%p0 mbarrier.arrive.shared::cta.b64 _, [%r2];\n",
                  arriveSecond = "  @%p3 mbarrier.arrive.shared::cta.b64 _, [%r3];\n";

/// Warp 0 fills a stage, warp 1 reads it, and warp 0 fills it again. One lane of each arrives.
std::string ring() {
  return litmus(litmusInit + firstOfWarp1 + "  @%p1 bra READ;\n  st.shared.b32 [%r0], %t;\n" +
                meet + arriveFull + waitOn("%r3", "W1") +
                "  st.shared.b32 [%r0], %t;\n  bra END;\nREAD:\n" + waitOn("%r2", "W2") +
                readStage + meet + arriveSecond + "END:\n");
}

/// One lane of warp 1 waits for all.
std::string oneWaits() {
  return litmus(litmusInit + firstOfWarp1 + "  @%p1 bra READ;\n  st.shared.b32 [%r0], %t;\n" +
                meet + arriveFull + "  bra END;\nREAD:\n  @!%p3 bra MET;\n" + waitOn("%r2", "W1") +
                "MET:\n" + shuffle + meet + readStage + "END:\n");
}

/// CTA 0 writes, one lane raises a flag, and one lane of CTA 1 waits for that.
std::string flag() {
  return litmus("  mov.u32 %r5, %ctaid.x;\n  setp.eq.u32 %p2, %r5, 1;\n  @%p1 bra END;\n"
                "  mul.wide.u32 %rd5, %t, 4;\n  add.u64 %rd5, %rd5, %out;\n  @%p2 bra READ;\n"
                "  st.global.b32 [%rd5], %t;\n" +
                meet +
                "  @%p0 st.release.gpu.global.b32 [%out+512], 1;\n  bra END;\nREAD:\n"
                "  @!%p0 bra MET;\nPOLL:\n  ld.acquire.gpu.global.b32 %r6, [%out+512];\n"
                "  setp.ne.u32 %p4, %r6, 1;\n  @%p4 bra POLL;\nMET:\n" +
                shuffle + meet + "  ld.global.b32 %v0, [%rd5];\nEND:\n");
}

/// One lane fences the stores of all for the copy that it issues.
std::string stored() {
  return litmus("  @%p1 bra END;\n  st.shared.b32 [%r0], %t;\n" + meet +
                "  @%p0 fence.proxy.async.shared::cta;\n" + shuffle +
                "  @!%p0 bra END;\n"
                "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
                "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\nEND:\n");
}

/// Lanes of warp 0 read what their neighbours stored, once all have arrived.
std::string neighbours() {
  return litmus(litmusInit + firstOfWarp1 + "  @%p1 bra OTHER;\n  st.shared.b32 [%r0], %t;\n" +
                "  mbarrier.arrive.shared::cta.b64 _, [%r4];\n" + waitOn("%r4", "W1") +
                "  xor.b32 %r5, %t, 1;\n  mad.lo.u32 %r6, %r5, 4, %r1;\n"
                "  ld.shared.b32 %v0, [%r6];\n  bra END;\nOTHER:\n"
                "  @%p3 mbarrier.arrive.shared::cta.b64 _, [%r2];\nEND:\n");
}

/// Lane 0 arrives for its own store, which warp 1 reads.
std::string ownStore() {
  return litmus(litmusInit + "  @%p1 bra READ;\n  st.shared.b32 [%r0], %t;\n" + arriveFull +
                "  bra END;\nREAD:\n" + waitOn("%r2", "W1") +
                "  ld.shared.b32 %v0, [%r1];\nEND:\n");
}

} // namespace

std::vector<Litmus> fp4::sim::test::laneLitmus() {
  using R = HazardRule;
  const auto strict = [](const char *name, std::string text, std::string from, std::string to,
                         R rule, const char *words, uint32_t clusters = 1) {
    return Litmus{.name = name,
                  .text = std::move(text),
                  .from = std::move(from),
                  .to = std::move(to),
                  .rule = rule,
                  .words = words,
                  .strictOnly = true,
                  .clusters = clusters};
  };
  const std::string fence = "  @%p0 fence.proxy.async.shared::cta;\n";
  return {
      strict("one lane arrives for stores of others", ring(), meet + arriveFull, arriveFull,
             R::MissingWarpSync, "bar.warp.sync"),
      strict("one lane arrives for reads of others", ring(), meet + arriveSecond, arriveSecond,
             R::MissingWarpSync, "bar.warp.sync"),
      strict("one lane waits for reads of others", oneWaits(), shuffle + meet, shuffle,
             R::MissingWarpSync, "bar.warp.sync"),
      strict("one lane raises a flag for stores of others", flag(), meet + "  @%p0 st.release",
             "  @%p0 st.release", R::MissingWarpSync, "bar.warp.sync", 2),
      strict("one lane sees a flag for reads of others", flag(), shuffle + meet, shuffle,
             R::MissingWarpSync, "bar.warp.sync", 2),
      strict("one lane fences before the others have met it", stored(), meet + fence + shuffle,
             fence + meet, R::MissingProxyFence, "fence.proxy.async"),
      strict("lanes wait for something else", neighbours(), "parity.shared::cta.b64 %p5, [%r4]",
             "parity.shared::cta.b64 %p5, [%r2]", R::LaneRace, "bar.warp.sync"),
      strict("a lane arrives for its own store alone", ownStore(), "[%r1];\nEND", "[%r1+4];\nEND",
             R::MissingWarpSync, "bar.warp.sync"),
  };
}
