// Shared and global memory: barriers, mbarriers, copies, proxies.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

std::vector<Litmus> fp4::sim::test::sharedMemoryLitmus() {
  const std::string exchange =
      litmus("  st.shared.b32 [%r0], %t;\n  bar.sync 0;\n  xor.b32 %r5, %t, 32;\n"
             "  mad.lo.u32 %r6, %r5, 4, %r1;\n  ld.shared.b32 %v0, [%r6];\n");
  const std::string store =
      litmus("  @!%p1 st.shared.b32 [%r0], %t;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
             "  @!%p0 bra END;\n  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group.read 0;\n"
             "  st.shared.b32 [%r1], %t;\n  cp.async.bulk.wait_group 0;\nEND:\n");
  const std::string waitFull = waitOn("%r2", "W1");
  const std::string load = litmus(litmusInit + "  @!%p0 bra WAIT;\n" + copyIn("%r2") + "WAIT:\n" +
                                  waitFull + "  @!%p1 ld.shared.b32 %v0, [%r0];\n  bar.sync 0;\n");
  const std::string waitEmpty = waitOn("%r4", "W2");
  const std::string fence = "  fence.proxy.async.shared::cta;\n";
  const std::string arriveEmpty = fence + "  mbarrier.arrive.shared::cta.b64 _, [%r4];\n";
  const std::string readStage = "  ld.shared.b32 %v0, [%r0+-128];\n";
  const std::string pipeline =
      litmus(litmusInit + "  @%p1 bra READ;\n  @!%p0 bra END;\n" + copyIn("%r2") + waitEmpty +
             copyIn("%r3") + waitOn("%r3", "W3") + "  bra END;\nREAD:\n" + waitFull + readStage +
             arriveEmpty + "END:\n  bar.warp.sync 0xffffffff;\n  bar.sync 0;\n");
  const std::string passing =
      litmus(litmusInit +
             "  @%p1 bra READ;\n  st.shared.b32 [%r0], %t;\n"
             "  mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4];\n  bra END;\nREAD:\n"
             "W1:\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p5, [%r4], 0;\n"
             "  @!%p5 bra W1;\n" +
             readStage + "END:\n");
  const std::string peer =
      litmus("  st.shared.b32 [%r0], %t;\n  barrier.cluster.arrive.release.aligned;\n"
             "  barrier.cluster.wait.aligned;\n  mov.u32 %r5, %cluster_ctarank;\n"
             "  xor.b32 %r5, %r5, 1;\n  mapa.shared::cluster.u32 %r6, %r0, %r5;\n"
             "  ld.shared::cluster.b32 %v0, [%r6];\n  barrier.cluster.arrive.aligned;\n"
             "  barrier.cluster.wait.aligned;\n");
  const std::string useInit =
      litmus("  @!%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 64;\nREADY:\n"
             "  bar.sync 0;\n  mbarrier.arrive.shared::cta.b64 _, [%r2];\n" +
             waitFull);
  const std::string waitFar =
      replaced(waitFull, "try_wait.parity", "try_wait.parity.acquire.cluster");
  const std::string work = "  mov.u32 %r8, 0;\nWORK:\n  add.u32 %r8, %r8, 1;\n"
                           "  setp.lt.u32 %p6, %r8, 4000;\n  @%p6 bra WORK;\n";
  const std::string remoteArrival =
      litmus(litmusInit +
             "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
             "  mov.u32 %r5, %cluster_ctarank;\n  setp.eq.u32 %p2, %r5, 0;\n"
             "  @!%p2 bra WAIT;\n  @!%p0 bra END;\n  mov.u32 %r6, 1;\n"
             "  mapa.shared::cluster.u32 %r7, %r2, %r6;\n"
             "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n"
             "  bra END;\nWAIT:\n" +
             waitFar + "END:\n");
  // Thread 0 of CTA 0 stores to the other CTA, and arrives there.
  const std::string storeFar =
      litmus(litmusInit +
             "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
             "  mov.u32 %r5, %cluster_ctarank;\n  setp.eq.u32 %p2, %r5, 0;\n"
             "  @!%p2 bra WAIT;\n  @!%p0 bra END;\n  mov.u32 %r6, 1;\n"
             "  mapa.shared::cluster.u32 %r7, %r2, %r6;\n"
             "  mapa.shared::cluster.u32 %r8, %r1, %r6;\n"
             "  st.shared::cluster.b32 [%r8], 7;\n"
             "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n"
             "  bra END;\nWAIT:\n" +
             waitFar +
             "  ld.shared.b32 %v0, [%r1];\nEND:\n"
             "  bar.warp.sync -1;\n  barrier.cluster.arrive.aligned;\n"
             "  barrier.cluster.wait.aligned;\n");
  const std::string copyAndLeave =
      litmus(litmusInit + "  @!%p0 bra END;\n" + copyIn("%r2") + waitFull + "END:\n");
  const std::string storeAndLeave =
      litmus("  st.shared.b32 [%r0], %t;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
             "  @!%p0 bra END;\n  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group.read 0;\nEND:\n");
  const std::string flip = "  xor.b32 %r7, %r7, 1;\n";
  const std::string twice = litmus(
      litmusInit +
      "  mov.u32 %r7, 0;\n  mov.u32 %r8, 0;\n  @%p1 bra CONSUME;\n  @!%p0 bra END;\n"
      "  mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
      "W1:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;\n  @!%p5 bra W1;\n"
      "  mbarrier.arrive.shared::cta.b64 _, [%r2];\n  bra END;\n"
      "CONSUME:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], %r7;\n"
      "  @!%p5 bra CONSUME;\n  setp.eq.u32 %p7, %r8, 0;\n"
      "  @%p7 mbarrier.arrive.shared::cta.b64 _, [%r4];\n" +
      flip + "  add.u32 %r8, %r8, 1;\n  setp.lt.u32 %p6, %r8, 2;\n  @%p6 bra CONSUME;\nEND:\n");
  const std::string neighbour =
      litmus("  st.shared.b32 [%r0], %t;\n  bar.warp.sync -1;\n  xor.b32 %r5, %t, 1;\n"
             "  mad.lo.u32 %r6, %r5, 4, %r1;\n  ld.shared.b32 %v0, [%r6];\n");
  // Two groups in flight; the wait for the first must not count for the second, nor lose it.
  const std::string groups =
      litmus("  cp.async.ca.shared.global [%r0], [%out], 4;\n  cp.async.commit_group;\n"
             "  cp.async.ca.shared.global [%r0+256], [%out], 4;\n  cp.async.commit_group;\n"
             "  cp.async.wait_group 1;\n  bar.sync 0;\n  xor.b32 %r5, %t, 32;\n"
             "  mad.lo.u32 %r6, %r5, 4, %r1;\n  ld.shared.b32 %v0, [%r6];\n"
             "  cp.async.wait_all;\n  bar.sync 0;\n  ld.shared.b32 %v1, [%r6+256];\n");
  // cp.async is of the generic proxy: no fence.mbarrier_init, no fence.proxy.async.
  const std::string arriving = litmus(
      "  @!%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 64;\nREADY:\n  bar.sync 0;\n"
      "  cp.async.ca.shared.global [%r0], [%out], 4;\n"
      "  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];\n" +
      waitFull + "  ld.shared.b32 %v0, [%r0];\n");
  // The second phase may complete only when warp 0 has seen the first.
  const std::string laps = litmus(
      litmusInit + "  @%p1 bra ARRIVE;\n" + waitFull +
      "  bar.arrive 1, 64;\n  bra END;\nARRIVE:\n  setp.ne.u32 %p6, %t, 32;\n  mov.u32 %r7, 0;\n"
      "  @!%p6 mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
      "LATER:\n  add.u32 %r7, %r7, 1;\n  setp.lt.u32 %p7, %r7, 4000;\n  @%p7 bra LATER;\n"
      "  bar.sync 1, 64;\n  @!%p6 mbarrier.arrive.shared::cta.b64 _, [%r2];\nEND:\n");
  const std::string multiply = litmus(
      "  mov.u32 %v0, 0;\n  mov.u32 %v1, 0;\n  mov.u32 %v2, 0;\n  mov.u32 %v3, 0;\n"
      "  mov.u32 %v4, 0;\n  mov.u32 %v5, 0;\n  mov.u32 %v6, 0;\n  mov.u32 %v7, 0;\n"
      "  st.shared.b32 [%r0], %v0;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
      "  cvt.u64.u32 %rd1, %r1;\n  shr.u64 %rd1, %rd1, 4;\n"
      "  or.b64 %rd1, %rd1, 0x1000080000;\n  setp.ne.u32 %p3, %v0, 0;\n"
      "  wgmma.fence.sync.aligned;\n"
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0, %v1, %v2, %v3}, "
      "{%v4, %v5, %v6, %v7}, %rd1, %p3, 1, 1, 0;\n"
      "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n  bar.sync 0;\n"
      "  st.shared.b32 [%r0], %t;\n  wgmma.wait_group.sync.aligned 0;\n");
  // Compilers zero the accumulators one from the other.
  const std::string zeros = "  mov.b32 %v0, 0;\n  mov.b32 %v1, %v0;\n  mov.b32 %v2, %v0;\n"
                            "  mov.b32 %v3, %v0;\n",
                    wgmmaFence = "  wgmma.fence.sync.aligned;\n";
  const std::string zeroed = litmus(
      "  shr.u32 %r5, %r1, 4;\n  cvt.u64.u32 %rd1, %r5;\n" + zeros + wgmmaFence +
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0, %v1, %v2, %v3}, %rd1, %rd1, "
      "1, 1, 1, 0, 0;\n  wgmma.commit_group.sync.aligned;\n"
      "  wgmma.wait_group.sync.aligned 0;\n");
  // Two warps store what both have, or each its own, in the same rows.
  const auto matrices = [](const std::string &value) {
    const std::string row = "  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%v0};\n";
    return litmus(value +
                  "  and.b32 %r5, %t, 7;\n  mad.lo.u32 %r6, %r5, 16, %r1;\n"
                  "  @%p1 bra LATER;\n" +
                  row + "LATER:\n  bar.sync 0;\n  @!%p1 bra END;\n" + row + "END:\n");
  };
  // One copy behind the other into one buffer.
  const std::string refilled = litmus(litmusInit + "  @!%p0 bra END;\n" + copyIn("%r2") + waitFull +
                                      copyIn("%r3") + waitOn("%r3", "W4") + "END:\n");
  using R = HazardRule;
  // Lanes arrive one after the other: a barrier of 31 opens before the last of 32 has.
  const std::string arrivals =
      litmus(litmusInit +
             "  @%p1 bra READ;\n  st.shared.b32 [%r0], %t;\n"
             "  mbarrier.arrive.shared::cta.b64 _, [%r4];\n  bra END;\nREAD:\n" +
             waitOn("%r4", "W1") + "  ld.shared.b32 %v0, [%r1+124];\nEND:\n");
  return {
      {"an mbarrier of fewer arrivals than lanes", arrivals, "[%r4], 32", "[%r4], 31",
       R::SharedRace, ""},
      {"zeros behind the fence of a product", zeroed, zeros + wgmmaFence, wgmmaFence + zeros,
       R::MissingWgmmaFence, "wgmma.fence", 128, 1, true},
      {"a sum behind the fence of a product", zeroed, wgmmaFence,
       wgmmaFence + "  add.u32 %v1, %t, %t;\n", R::MissingWgmmaFence, "wgmma.fence", 128},
      {"an accumulator copied away behind the fence", zeroed, wgmmaFence,
       wgmmaFence + "  mov.b32 %v5, %v2;\n", R::MissingWgmmaFence, "wgmma.fence", 128},
      {"stores of equal matrices", matrices("  mov.u32 %v0, 7;\n"), "  bar.sync 0;\n", "",
       R::SharedRace, "bar.sync", 64, 1, true},
      {"stores of different matrices", matrices("  mov.u32 %v0, %t;\n"), "  bar.sync 0;\n", "",
       R::SharedRace, "bar.sync"},
      {"a copy over a copy in flight", refilled, waitFull, "", R::OverwrittenWhileWritten,
       "mbarrier that the write signals"},
      {"wgmma not waited for", multiply, "  wgmma.wait_group.sync.aligned 0;\n  bar.sync 0;\n",
       "  bar.sync 0;\n", R::OverwrittenWhileRead, "wait_group", 128},
      {"parity not flipped", twice, flip, "", R::StalePhase, "flip the parity"},
      {"no bar.warp.sync", neighbour, "  bar.warp.sync -1;\n", "", R::LaneRace, "bar.warp.sync"},
      {"no bar.sync", exchange, "  bar.sync 0;\n", "", R::SharedRace, "bar.sync"},
      {"no proxy fence", store, "  fence.proxy.async.shared::cta;\n", "", R::MissingProxyFence,
       "fence.proxy.async"},
      {"the fence of another proxy", store, "fence.proxy.async.shared::cta", "fence.acq_rel.cta",
       R::MissingProxyFence, "fence.proxy.async"},
      {"the fence before the store", store,
       "  @!%p1 st.shared.b32 [%r0], %t;\n  fence.proxy.async.shared::cta;\n",
       "  fence.proxy.async.shared::cta;\n  @!%p1 st.shared.b32 [%r0], %t;\n", R::MissingProxyFence,
       "fence.proxy.async"},
      {"source overwritten", store, "  cp.async.bulk.wait_group.read 0;\n", "",
       R::OverwrittenWhileRead, "wait_group"},
      {"a group too few is waited for", store, "wait_group.read 0", "wait_group.read 1",
       R::OverwrittenWhileRead, "wait_group"},
      {"copy not waited for", load, waitFull, "", R::UnwaitedCopy, "full barrier"},
      {"mbarrier.init not fenced", load, "  fence.mbarrier_init.release.cluster;\n", "",
       R::MbarrierInitFence, "fence.mbarrier_init", 64, 1, true},
      {"stage reused without waiting", pipeline, waitEmpty, "", R::OverwrittenWhileWritten,
       "empty barrier"},
      {"arrival before the read", pipeline, readStage + arriveEmpty, arriveEmpty + readStage,
       R::OverwrittenWhileRead, "empty barrier"},
      {"no proxy fence between a read and a copy", pipeline, fence, "", R::MissingProxyFence,
       "fence.proxy.async", 64, 1, true},
      {"mbarrier.init not ordered", useInit, "  bar.sync 0;\n", "", R::MbarrierInit, "bar.sync", 64,
       1, false, false, "no mbarrier is initialised"},
      {"relaxed wait", passing, "try_wait.parity.acquire.cta", "try_wait.parity.relaxed.cta",
       R::RelaxedSync, ".acquire"},
      {"relaxed arrival", passing, "arrive.release.cta", "arrive.relaxed.cta", R::RelaxedSync,
       ".release"},
      {"wait in the scope of the CTA for a thread of another one", storeFar, "acquire.cluster",
       "acquire.cta", R::RelaxedSync, ".acquire", 64, 2, true},
      {"fence in a scope that has both, behind a wait in the scope of one",
       replaced(replaced(storeFar, "acquire.cluster", "relaxed.cluster"), "  ld.shared.b32 %v0",
                "  fence.acq_rel.cluster;\n  ld.shared.b32 %v0"),
       "relaxed.cluster", "relaxed.cta", R::RelaxedSync, ".acquire", 64, 2, true},
      {"relaxed cluster barrier", peer, "arrive.release.aligned", "arrive.relaxed.aligned",
       R::RelaxedSync, ".release", 64, 2},
      {"a CTA leaves before its peer has read", peer,
       "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n", "", R::EarlyExit,
       "cluster barrier", 64, 2, false, false, "which has exited"},
      {"a CTA leaves behind a relaxed barrier", peer, "arrive.aligned", "arrive.relaxed.aligned",
       R::EarlyExit, "cluster barrier", 64, 2, true},
      {"a CTA leaves before an arrival of its peer", remoteArrival, waitFar, work, R::EarlyExit,
       "cluster barrier", 64, 2},
      {"a CTA leaves before it is written", copyAndLeave, waitFull, "", R::EarlyExit,
       "wait for the operation"},
      {"a CTA leaves while a store reads", storeAndLeave, "  cp.async.bulk.wait_group.read 0;\n",
       "", R::EarlyExit, "wait for the operation", 64, 1, true},
      {"a phase that nobody knows to have been seen", laps, "  bar.sync 1, 64;\n", "",
       R::LappedWait, "empty barrier"},
      {"a product without a fence",
       litmus("  shr.u32 %r5, %r1, 4;\n  cvt.u64.u32 %rd1, %r5;\n  wgmma.fence.sync.aligned;\n"
              "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0,%v1,%v2,%v3}, %rd1, %rd1, "
              "0, 1, "
              "1, 0, 0;\n  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n"),
       "  wgmma.fence.sync.aligned;\n", "", R::MissingWgmmaFence, "wgmma.fence", 128},
      {"an aligned instruction behind a branch",
       litmus("  @!%p0 bra PARTED;\n  st.shared.b32 [%r0], %t;\nPARTED:\n  bar.warp.sync -1;\n"
              "  tcgen05.wait::st.sync.aligned;\n"),
       "  bar.warp.sync -1;\n", "", R::PartedWarp, "bar.warp.sync", 32, 1, true},
      {"mbarrier.init not ordered before cp.async.mbarrier.arrive", arriving, "  bar.sync 0;\n", "",
       R::MbarrierInit, "bar.sync", 64, 1, false, false, "no mbarrier is initialised"},
      {"cp.async.mbarrier.arrive not waited for", arriving, waitFull, "", R::UnwaitedCopy,
       "cp.async.wait_group"},
      {"a group of cp.async too few is waited for", groups, "wait_group 1", "wait_group 2",
       R::UnwaitedCopy, "cp.async.wait_group"},
      {"the last cp.async is not waited for", groups, "  cp.async.wait_all;\n", "", R::UnwaitedCopy,
       "cp.async.wait_group"},
  };
}
