// Global memory: races, copies through it, what nobody wrote.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// Thread 0 waits for the launch before, and copies what it wrote.
std::string copiedIn() {
  return litmus(litmusInit + "  @!%p0 bra END;\n  griddepcontrol.wait;\n" + copyIn("%r2") +
                waitOn("%r2", "W1") + "END:\n");
}

const std::string mapBarrier = "  bar.warp.sync -1;\n  bar.sync 0;\n";

std::string copiedMap(const std::string &behindTheCopy, const std::string &beforeTheUse) {
  std::string zeros;
  for (int byte = 0; byte < 128; byte += 4)
    zeros += "  st.shared.b32 [%r7+" + std::to_string(byte) + "], %r8;\n";
  return litmus(litmusInit +
                "  add.u64 %rd5, %out, 512;\n  mov.u32 %r8, 0;\n  add.u32 %r7, %r1, 512;\n"
                "  @!%p1 bra USE;\n  setp.eq.u32 %p2, %t, 32;\n  @!%p2 bra COPY;\n" +
                zeros + makeMap("shared::cta", "%r7") +
                "COPY:\n  bar.warp.sync -1;\n"
                "  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                ".aligned [%rd5], [%r7], 128;\n" +
                behindTheCopy + "USE:\n" + mapBarrier + "  @!%p0 bra END;\n" + beforeTheUse +
                useMap() + "END:\n");
}

/// Thread 0 of CTA 0 makes a map, acquires it and uses it, once the ten warps of CTA 1 have
/// acquired it too.
std::string mapOfManyWarps() {
  const std::string sync = "  bar.warp.sync -1;\n  barrier.cluster.arrive.aligned;\n"
                           "  barrier.cluster.wait.aligned;\n";
  return litmus(litmusInit +
                "  add.u64 %rd5, %out, 512;\n  mov.u32 %r5, %cluster_ctarank;\n"
                "  setp.ne.u32 %p2, %r5, 0;\n  @%p2 bra MADE;\n  @!%p0 bra MADE;\n" +
                makeMap("global", "%rd5") + releaseMap + acquireMap + "MADE:\n" + sync +
                "  @!%p2 bra OWN;\n" + acquireMap + "OWN:\n" + sync +
                "  @%p2 bra END;\n  @!%p0 bra END;\n" + useMap() + "END:\n");
}

/// Thread 0 makes a map and acquires it, warp 1 learns of that and uses it. In between warp 0
/// acquires it a hundred times more, of which warp 1 learns nothing: the last barrier is .relaxed.
std::string mapAcquiredAgain() {
  return litmus(litmusInit + "  add.u64 %rd5, %out, 512;\n  @!%p0 bra MADE;\n" +
                makeMap("global", "%rd5") + releaseMap + acquireMap + "MADE:\n" + mapBarrier +
                "  @%p1 bra USE;\n  mov.u32 %r5, 0;\nAGAIN:\n" + acquireMap +
                "  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p2, %r5, 100;\n  @%p2 bra AGAIN;\nUSE:\n"
                "  bar.warp.sync -1;\n  barrier.cluster.arrive.relaxed.aligned;\n"
                "  barrier.cluster.wait.aligned;\n  setp.eq.u32 %p2, %t, 32;\n"
                "  @!%p2 bra END;\n" +
                useMap() + "END:\n");
}

/// CTA 0 counts, CTA 1 acquires that and counts, and CTA 0 stores a value and counts again. CTA 2
/// reads the value when all have counted: the release of CTA 1, which is not the first of its
/// address, knows an older one of CTA 0.
std::string counted() {
  return litmus(R"(
  @!%p0 bra END;
  mov.u32 %r5, %ctaid.x;
  setp.eq.u32 %p2, %r5, 1;
  @%p2 bra SECOND;
  setp.eq.u32 %p2, %r5, 2;
  @%p2 bra THIRD;
  red.release.gpu.global.add.u32 [%out], 1;
FIRST:
  ld.relaxed.gpu.global.b32 %r6, [%out];
  setp.lt.u32 %p3, %r6, 2;
  @%p3 bra FIRST;
  st.global.b32 [%out+128], 7;
  red.release.gpu.global.add.u32 [%out], 1;
  bra END;
SECOND:
  ld.acquire.gpu.global.b32 %r6, [%out];
  setp.lt.u32 %p3, %r6, 1;
  @%p3 bra SECOND;
  red.release.gpu.global.add.u32 [%out], 1;
  bra END;
THIRD:
  ld.acquire.gpu.global.b32 %r6, [%out];
  setp.lt.u32 %p3, %r6, 3;
  @%p3 bra THIRD;
  ld.global.b32 %v0, [%out+128];
END:
)");
}

/// Each of three CTAs adds to a sum and counts. The one that counts last takes the sum.
const std::string lastTakes = litmus(R"(
  @!%p0 bra END;
  red.relaxed.gpu.global.add.u32 [%out+128], 7;
  atom.acq_rel.gpu.global.inc.u32 %r5, [%out], 2;
  setp.ne.u32 %p2, %r5, 2;
  @%p2 bra END;
  atom.relaxed.gpu.global.exch.b32 %r6, [%out+128], 0;
  st.global.b32 [%out+64], %r6;
END:
)");

/// ... or all wait until the count is 0 again, and read it.
const std::string allTake = litmus(R"(
  @!%p0 bra END;
  atom.relaxed.gpu.global.add.u32 %r7, [%out+128], 7;
  atom.acq_rel.gpu.global.inc.u32 %r5, [%out], 2;
AGAIN:
  ld.acquire.gpu.global.b32 %r5, [%out];
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra AGAIN;
  atom.relaxed.gpu.global.add.u32 %r6, [%out+128], 0;
  mul.wide.u32 %rd5, %r6, 1;
END:
)");

} // namespace

std::vector<Litmus> fp4::sim::test::globalMemoryLitmus() {
  // Thread 0 makes a map in global memory and uses it.
  const std::string ownMap =
      litmus(litmusInit + "  @!%p0 bra END;\n  add.u64 %rd5, %out, 512;\n" +
             makeMap("global", "%rd5") + releaseMap + acquireMap + useMap() + "END:\n");
  // Warp 1 makes one in shared memory and copies it; thread 0 uses it behind a barrier. Either
  // acquires it.
  const std::string copied = copiedMap("", acquireMap), acquired = copiedMap(acquireMap, "");
  // As kernels report to the host (GroupCheck.h).
  const std::string forHost =
      litmus("  @!%p0 bra END;\n  atom.relaxed.sys.global.cas.b64 %rd5, [%out], 0, 1;\n"
             "  st.global.b64 [%out+8], 7;\n  st.release.sys.global.b64 [%out], 2;\nEND:\n");
  const std::string byTwo = litmus("  @%p1 st.global.b64 [%out+8], 7;\n  bar.sync 0;\n"
                                   "  @%p0 st.release.sys.global.b64 [%out], 2;\n");
  const std::string fenced = litmus("  @%p0 st.global.b64 [%out+8], 7;\n  @%p0 fence.acq_rel.sys;\n"
                                    "  @%p0 st.relaxed.sys.global.b64 [%out], 2;\n");
  const std::string byTwoLanes =
      litmus("  setp.eq.u32 %p2, %t, 1;\n  @%p2 st.global.b64 [%out+8], 7;\n"
             "  bar.warp.sync -1;\n  @%p0 st.release.sys.global.b64 [%out], 2;\n");
  // A copy reads as many of the bytes that it fills as it says.
  const std::string nothing =
      litmus("  @%p1 st.global.b32 [%out], %t;\n  @%p1 bra END;\n"
             "  cp.async.ca.shared.global [%r0], [%out], 4, 0;\n  cp.async.wait_all;\nEND:\n");
  // A copy that came later is done; the store need not be.
  const std::string roundTrip =
      litmus(litmusInit +
             "  @!%p0 bra END;\n  st.shared.b32 [%r1], %t;\n  fence.proxy.async.shared::cta;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
             "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
             "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+512], "
             "[%out+128], 128, [%r2];\n" +
             waitOn("%r2", "W1") + "  ld.global.b32 %v0, [%out];\nEND:\n");
  // Five warps read, one writes; the last reader is one too many for who keeps four.
  const std::string lastReader =
      litmus("  shr.u32 %r5, %t, 5;\n  setp.eq.u32 %p2, %r5, 5;\n  setp.eq.u32 %p3, %r5, 4;\n"
             "  @%p2 bra WRITE;\n  @!%p3 ld.global.b32 %v0, [%out];\n"
             "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n  bra END;\n"
             "WRITE:\n  bar.sync 1, 192;\n  st.global.b32 [%out], %r5;\nEND:\n");
  // A generic store, and the copy that reads it.
  const std::string proxyFence = "  fence.proxy.async.global;\n";
  const std::string copyOut = litmus(litmusInit + "  @!%p0 bra END;\n  st.global.b32 [%out], 7;\n" +
                                     proxyFence + copyIn("%r2") + waitOn("%r2", "W1") + "END:\n");
  const std::string tensorCopyOut =
      litmus(litmusInit + "  @!%p0 bra END;\n  add.u64 %rd5, %out, 512;\n" +
             makeMap("global", "%rd5") + releaseMap + acquireMap +
             "  st.global.b32 [%out+4], 7;\n" + proxyFence + useMap() + "END:\n");
  // One thread of each CTA of a cluster adds to one word.
  const std::string both = litmus("  @!%p0 bra END;\n"
                                  "  red.relaxed.cluster.global.add.u32 [%out], 1;\nEND:\n");
  // CTA 0 stores a value and raises a flag, CTA 1 awaits the flag and reads the value.
  const auto flag = [](const std::string &scope) {
    return litmus("  mov.u32 %r5, %ctaid.x;\n  setp.ne.u32 %p2, %r5, 0;\n  @!%p0 bra END;\n"
                  "  @%p2 bra READ;\n  st.global.b32 [%out], 7;\n  st.release." +
                  scope + ".global.b32 [%out+64], 1;\n  bra END;\nREAD:\n  ld.acquire." + scope +
                  ".global.b32 %r6, [%out+64];\n  setp.ne.u32 %p3, %r6, 1;\n  @%p3 bra READ;\n"
                  "  ld.global.b32 %v0, [%out];\nEND:\n");
  };
  using R = HazardRule;
  return {
      {"a count behind the last release", counted(), "[%out+128], 7;\n  red.release",
       "[%out+128], 7;\n  red.relaxed", R::GlobalRace, "a release and an acquire", 64, 1, false,
       false, nullptr, 3},
      {"a flag for the own CTA in another one", flag("cluster"), "release.cluster", "release.cta",
       R::RelaxedSync, ".acquire", 64, 2},
      {"a flag for the own cluster in another one", flag("gpu"), "release.gpu", "release.cluster",
       R::RelaxedSync, ".acquire", 64, 1, false, false, nullptr, 2},
      {"a sum that a relaxed count orders", lastTakes, "atom.acq_rel", "atom.relaxed",
       R::RelaxedSync, ".acquire", 64, 1, true, false, nullptr, 3},
      {"a sum behind a relaxed loop", allTake, "ld.acquire", "ld.relaxed", R::RelaxedSync,
       ".acquire", 64, 1, true, false, nullptr, 3},
      {"memory of which nobody wrote the end",
       litmus("  st.global.b32 [%out+8], %t;\n  st.global.b32 [%out+12], %t;\n"
              "  ld.global.b64 %rd5, [%out+8];\n"),
       "  st.global.b32 [%out+12], %t;\n", "", R::UninitializedRead, "a copy, a memset", 1, 1, true,
       true},
      {"a copy reads what a thread stored", copyOut, proxyFence, "", R::MissingProxyFence,
       "fence.proxy.async"},
      {"a copy with the fence of shared memory alone", copyOut, proxyFence,
       "  fence.proxy.async.shared::cta;\n", R::MissingProxyFence, "fence.proxy.async"},
      {"a tensor copy reads what a thread stored", tensorCopyOut, proxyFence, "",
       R::MissingProxyFence, "fence.proxy.async"},
      {"atomics of two CTAs of a cluster in the scope of one", both, "relaxed.cluster",
       "relaxed.cta", R::GlobalRace, "barrier", 64, 2},
      {"two writers of global memory",
       litmus(
           "  @!%p1 st.global.b32 [%out], %t;\n  bar.sync 0;\n  @%p1 st.global.b32 [%out], %t;\n"),
       "  bar.sync 0;\n", "", R::GlobalRace, "barrier between the two", 33},
      {"a dependent launch that does not wait",
       litmus("  griddepcontrol.wait;\n  ld.global.b32 %v0, [%out];\n"), "  griddepcontrol.wait;\n",
       "  griddepcontrol.launch_dependents;\n", R::MissingGridWait, "griddepcontrol.wait before", 1,
       1, false, false, nullptr, 1, true},
      {"one warp of a dependent launch waits, and another does not synchronize with it",
       litmus("  @%p1 griddepcontrol.wait;\n  bar.sync 0;\n  @!%p1 ld.global.b32 %v0, [%out];\n"),
       "  bar.sync 0;\n", "", R::MissingGridWait, "griddepcontrol.wait before", 64, 1, false, false,
       nullptr, 1, true},
      {"a dependent launch that reads before it waits",
       litmus("  ld.global.b32 %v0, [%out+512];\n  griddepcontrol.wait;\n"
              "  ld.global.b32 %v0, [%out];\n"),
       "[%out+512]", "[%out+508]", R::MissingGridWait, "what the launch before writes", 1, 1, false,
       false, nullptr, 1, true},
      {"a dependent launch that overwrites what the launch before writes",
       litmus("  st.global.b32 [%out+512], 7;\n  griddepcontrol.wait;\n"
              "  st.global.b32 [%out], 7;\n"),
       "[%out+512]", "[%out+508]", R::MissingGridWait, "griddepcontrol.wait before", 1, 1, false,
       false, nullptr, 1, true},
      {"a dependent launch that overwrites what the launch before reads",
       litmus("  atom.global.add.u32 %v0, [%out+772], 7;\n  griddepcontrol.wait;\n"
              "  st.global.b32 [%out+768], 7;\n"),
       "[%out+772]", "[%out+768]", R::MissingGridWait, "write of what it reads", 1, 1, false, false,
       nullptr, 1, true},
      {"a copy of a dependent launch that does not wait", copiedIn(), "  griddepcontrol.wait;\n",
       "", R::MissingGridWait, "griddepcontrol.wait before", 1, 1, false, false, nullptr, 1, true},
      {"numbers for the host that are not released", forHost, "st.release.sys", "st.relaxed.sys",
       R::HostRace, "st.release.sys behind", 1, 1, false, false, nullptr, 1, false, true},
      {"a release in a scope without the host", forHost, "st.release.sys", "st.release.gpu",
       R::HostRace, "st.release.sys behind", 1, 1, false, false, nullptr, 1, false, true},
      {"a word that the host may see half written", forHost, "relaxed.sys.global.cas",
       "relaxed.gpu.global.cas", R::HostRace, ".sys for whatever else", 1, 1, false, false, nullptr,
       1, false, true},
      {"numbers for the host that nobody releases", forHost,
       "  st.release.sys.global.b64 [%out], 2;\n", "", R::HostRace, "st.release.sys behind", 1, 1,
       false, false, nullptr, 1, false, true},
      {"a warp releases for the host what another one may not have written", byTwo,
       "  bar.sync 0;\n", "", R::HostRace, "st.release.sys behind", 33, 1, false, false, nullptr, 1,
       false, true},
      {"a fence in a scope without the host", fenced, "fence.acq_rel.sys", "fence.acq_rel.gpu",
       R::HostRace, "st.release.sys behind", 1, 1, false, false, nullptr, 1, false, true},
      {"a lane releases for the host what another one may not have written", byTwoLanes,
       "  bar.warp.sync -1;\n", "", R::HostRace, "st.release.sys behind", 32, 1, true, false,
       nullptr, 1, false, true},
      {"memory that nobody wrote",
       litmus("  st.global.b32 [%out+8], %t;\n  ld.global.b32 %v0, [%out+8];\n"),
       "  st.global.b32 [%out+8], %t;\n", "", R::UninitializedRead, "a copy, a memset", 1, 1, true,
       true},
      {"a tensor map that is not released", ownMap, releaseMap, "", R::MissingTensormapFence,
       "release after the writes"},
      {"a tensor map that is not acquired", ownMap, acquireMap, "", R::MissingTensormapFence,
       "acquire of the map"},
      {"a tensor map that is acquired too early", ownMap, releaseMap + acquireMap,
       acquireMap + releaseMap, R::MissingTensormapFence, "after it"},
      {"another tensor map is acquired", ownMap, "[%rd5], 128", "[%out], 128",
       R::MissingTensormapFence, "acquire of the map"},
      {"a copied tensor map is not acquired", copied, acquireMap, "", R::MissingTensormapFence,
       "acquire of the map"},
      {"a tensor map is acquired by another warp, too late", acquired,
       acquireMap + "USE:\n" + mapBarrier,
       "USE:\n" + mapBarrier + "  @%p1 bra LATE;\n" + "  bra NOT;\nLATE:\n" + acquireMap + "NOT:\n",
       R::MissingTensormapFence, "acquire of the map"},
      {"a tensor map is acquired by every warp of another CTA alone", mapOfManyWarps(),
       releaseMap + acquireMap, releaseMap, R::MissingTensormapFence, "acquire of the map", 320, 2},
      {"a tensor map is acquired often, but too late", mapAcquiredAgain(), releaseMap + acquireMap,
       releaseMap, R::MissingTensormapFence, "acquire of the map"},
      {"a tensor map is used while it is copied", copied, mapBarrier, "", R::GlobalRace, "barrier",
       64, 1, false, false, "tensor map"},
      {"a copy that reads nothing", nothing, "4, 0", "4, 4", R::GlobalRace, "barrier"},
      {"a store is not waited for, a later copy is", roundTrip, "  cp.async.bulk.wait_group 0;\n",
       "", R::UnwaitedCopy, "wait_group"},
      {"the last of many readers is not waited for", lastReader,
       "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n",
       "  bar.arrive 1, 192;\n  @%p3 ld.global.b32 %v0, [%out];\n", R::GlobalRace, "barrier", 192},
  };
}
