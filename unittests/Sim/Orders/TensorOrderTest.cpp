// Orders of the tensor core's operations: which come in the order of issue by themselves, and that
// a kernel which relies on another order is found.
#include "OrderHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

constexpr const char *kShared = "  .shared .align 8 .b64 bar[4];\n  .shared .align 4 .b32 slot;\n"
                                "  .reg .b16 %h1;\n";

std::string await(const char *label, const char *barrier) {
  return fmt::format("{0}:\n  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [{1}], "
                     "0;\n  @!%p7 bra {0};\n",
                     label, barrier);
}

/// Thread 0 of each CTA, or another warp's first, executes `issue`, for which %rd2 describes 128
/// rows of zeros. Then all warps of CTA 0 execute `wait` and read the sums.
std::string tensorKernel(const std::string &issue, const std::string &wait) {
  std::string registers;
  for (int i = 0; i < 32; ++i)
    registers += fmt::format("{}%v{}", i ? ", " : "", i);
  return kernelText(
      setUpMmas(0, 4096, 4, 1) +
          "  and.b32 %r13, %t, 31;\n  setp.ne.u32 %p4, %r13, 0;\n  @%p4 bra ISSUED;\n"
          "  shr.u32 %r14, %r3, 4;\n  cvt.u64.u32 %rd4, %r14;\n"
          "  or.b64 %rd2, %rd4, 0x0000400000080000;\n  mov.u32 %r15, 0x08100010;\n"
          "  setp.ne.u32 %p6, %t, %t;\n" +
          issue + "ISSUED:\n  bar.warp.sync -1;\n  setp.ne.u32 %p8, %r2, 0;\n  @%p8 bra LEAVE;\n" +
          wait +
          "  tcgen05.fence::after_thread_sync;\n  shl.b32 %r12, %r1, 21;\n"
          "  add.u32 %r12, %r12, %r10;\n  tcgen05.ld.sync.aligned.32x32b.x32.b32 {" +
          registers +
          "}, [%r12];\n  tcgen05.wait::ld.sync.aligned;\n"
          "  @!%p4 red.global.max.u32 [%out], %v0;\n"
          "LEAVE:\n  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive.aligned;\n"
          "  barrier.cluster.wait.aligned;\n  @%p3 bra END;\n"
          "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;\nEND:\n",
      kShared);
}

constexpr const char *kMultiply =
    "  tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd2, %rd2, %r15, %p6;\n";

std::string commit(const char *barrier) {
  return fmt::format(
      "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n", barrier);
}

Explored explored(const std::string &text, uint32_t cluster, const char *check = "strict") {
  return explore(text, {.warps = 4,
                        .ctas = cluster,
                        .words = 1024,
                        .cluster = cluster,
                        .shared = 4112,
                        .check = check});
}

/// CTA 0 multiplies and tells CTA 1, which then multiplies and arrives at a barrier of CTA 0.
std::string neighbours(bool bug) {
  return tensorKernel(
      "  @%p3 bra ISSUED;\n  setp.ne.u32 %p9, %r2, 0;\n  @%p9 bra SECOND;\n" +
          std::string(kMultiply) + commit("%r4") +
          "  mapa.shared::cluster.u32 %r16, %r4, 1;\n"
          "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r16+16];\n  bra ISSUED;\n"
          "SECOND:\n" +
          await("TOLD", "%r4+16") + "  tcgen05.fence::after_thread_sync;\n" + kMultiply +
          "  mov.b16 %h1, 1;\n  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster."
          "multicast::cluster.b64 [%r4+8], %h1;\n" +
          commit("%r4") + await("DONE", "%r4"),
      await("OTHER", "%r4+8") + (bug ? "" : await("OWN", "%r4")));
}

TEST(TensorOrders, MmasOfAnotherCtaOrderNothing) {
  const Explored right = explored(neighbours(false), 2);
  EXPECT_EQ(right.run.error + right.run.note, "");
  EXPECT_EQ(right.report.orders, 1u);
  EXPECT_TRUE(right.report.complete);
  // Each CTA has a pipeline: the MMA of CTA 1 does not wait for the one that CTA 0 published.
  EXPECT_THAT(explored(neighbours(true), 2, "off").run.error, HasSubstr("too early"));
}

/// An MMA is done before the next one is issued, because a copy that was issued later has come.
std::string laterMma(const char *second) {
  return tensorKernel("  @%p3 bra ISSUED;\n" + std::string(kMultiply) +
                          "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+16], 16;\n"
                          "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                          "[%r3+4096], [%out], 16, [%r4+16];\n" +
                          await("COPIED2", "%r4+16") + second,
                      await("OWN", "%r4"));
}

TEST(TensorOrders, WhatIsDoneAlreadyStillCameFirst) {
  const Explored products = explored(laterMma((kMultiply + commit("%r4")).c_str()), 1);
  EXPECT_EQ(products.run.error + products.run.note, "");
  EXPECT_EQ(products.report.orders, 1u);
  const Explored commits = explored(laterMma(commit("%r4").c_str()), 1);
  EXPECT_EQ(commits.run.error + commits.run.note, "");
  EXPECT_EQ(commits.report.orders, 1u);
  EXPECT_TRUE(commits.report.complete);
}

TEST(TensorOrders, ACommitOfAnotherThreadCoversNothing) {
  const auto text = [](bool other) {
    return tensorKernel("  setp.eq.u32 %p9, %r1, 1;\n  @%p9 bra SECOND;\n  @%p3 bra ISSUED;\n" +
                            std::string(kMultiply) + (other ? "" : commit("%r4")) +
                            "  bra ISSUED;\nSECOND:\n" + (other ? commit("%r4") : ""),
                        await("OWN", "%r4"));
  };
  EXPECT_EQ(explored(text(false), 1).run.error, "");
  EXPECT_NE(explored(text(true), 1, "off").run.error, "");
}

/// Two copies of 128 rows of 32 bytes to tensor memory, the second of what lies behind the first.
std::string copies(int column) {
  return tensorKernel("  @%p3 bra ISSUED;\n"
                      "  add.u64 %rd5, %rd2, 1;\n" +
                          fmt::format("  tcgen05.cp.cta_group::1.128x256b [%r10], %rd2;\n"
                                      "  add.u32 %r19, %r10, {};\n"
                                      "  tcgen05.cp.cta_group::1.128x256b [%r19], %rd5;\n",
                                      column) +
                          kMultiply + commit("%r4"),
                      await("OWN", "%r4"));
}

TEST(TensorOrders, CopiesHaveNoOrder) {
  const Explored apart = explored(copies(64), 1);
  EXPECT_EQ(apart.run.error + apart.run.note, "");
  EXPECT_EQ(apart.report.orders, 1u);
  EXPECT_EQ(explored(copies(0), 1, "off").report.orders, 2u);
}

/// Every warp stores 16 of its lanes twice, the second time from `lane` of its 32 on.
std::string stores(int lane) {
  return tensorKernel(
      "  @%p3 bra ISSUED;\n" + std::string(kMultiply) + commit("%r4"),
      await("OWN", "%r4") +
          fmt::format("  tcgen05.fence::after_thread_sync;\n"
                      "  shl.b32 %r12, %r1, 21;\n  add.u32 %r12, %r12, %r10;\n"
                      "  add.u32 %r19, %r12, {};\n  mov.u32 %v0, 0;\n"
                      "  tcgen05.st.sync.aligned.16x128b.x1.b32 [%r12], {{%v0, %v0}};\n"
                      "  tcgen05.st.sync.aligned.16x128b.x1.b32 [%r19], {{%v0, %v0}};\n"
                      "  tcgen05.wait::st.sync.aligned;\n",
                      lane << 16));
}

TEST(TensorOrders, StoresOfOtherLanesOfAWarpCommute) {
  const Explored apart = explored(stores(16), 1);
  EXPECT_EQ(apart.run.error + apart.run.note, "");
  EXPECT_EQ(apart.report.orders, 1u);
  EXPECT_GT(explored(stores(0), 1, "off").report.orders, 1u);
}

/// Warp 1 copies to the cells that warp 0 overwrites by an MMA, once it has done `before`.
std::string copyOfAnotherWarp(const std::string &before) {
  return tensorKernel("  setp.eq.u32 %p9, %r1, 1;\n  @%p9 bra SECOND;\n  @%p3 bra ISSUED;\n" +
                          before + kMultiply + commit("%r4") +
                          "  bra ISSUED;\nSECOND:\n  tcgen05.cp.cta_group::1.128x256b [%r10], "
                          "%rd2;\n  tcgen05.fence::before_thread_sync;\n"
                          "  mbarrier.arrive.shared::cta.b64 _, [%r4+16];\n" +
                          commit("%r4+24"),
                      await("OWN", "%r4") + await("WRITTEN", "%r4+24"));
}

TEST(TensorOrders, FencesOrderWhatSynchronizes) {
  const std::string after = "  tcgen05.fence::after_thread_sync;\n", wait = await("TOLD", "%r4+16");
  // The second time the copy is done before the MMA is issued, as another one is awaited.
  const std::string other = "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+8], 16;\n"
                            "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                            "[%r3+4096], [%out], 16, [%r4+8];\n" +
                            await("LOADED", "%r4+8");
  for (const std::string &before : {wait + after, wait + after + other}) {
    const Explored right = explored(copyOfAnotherWarp(before), 1);
    EXPECT_EQ(right.run.error + right.run.note, "");
    EXPECT_EQ(right.report.orders, 1u);
    EXPECT_EQ(right.report.pruned, 0u);
    EXPECT_TRUE(right.report.complete);
  }
  // A fence before the wait orders nothing, whether or not the copy was published by then.
  for (const std::string &wrong : {after + wait, after, wait}) {
    EXPECT_GT(explored(copyOfAnotherWarp(wrong), 1, "off").report.orders, 1u) << wrong;
    EXPECT_THAT(explored(copyOfAnotherWarp(wrong), 1).run.note, HasSubstr("tmem-race")) << wrong;
  }
}

TEST(TensorOrders, AWarpgroupWaitsForWhatItsWarpsCommit) {
  const std::string text =
      kernelText("  and.b32 %r0, %t, 31;\n  setp.ne.u32 %p0, %r0, 0;\n  @%p0 bra JOIN;\n"
                 "  atom.global.add.u32 %r2, [%out], 1;\n  xor.b32 %r3, %r2, %r2;\nJOIN:\n"
                 "  bar.warp.sync -1;\n  wgmma.commit_group.sync.aligned;\n"
                 "  wgmma.wait_group.sync.aligned 0;\n  @!%p0 red.global.add.u32 [%out+4], 1;\n",
                 "", "sm_90a");
  const Explored found = explore(text, {.warps = 4});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_EQ(found.report.orders, 24u); // of the four atomics
  EXPECT_TRUE(found.report.complete);
}

} // namespace
