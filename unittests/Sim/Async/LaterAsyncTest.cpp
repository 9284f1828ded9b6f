// Asynchronous instructions of PTX 9.1 to 9.5: layouts and reports of mbarriers, arrivals at many
// CTAs, copies without their ends, exclusive tensor memory, sums that keep subnormal numbers.
#include "KernelHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

RunResult lonely(const std::string &body, const std::string &shared = "", size_t words = 4) {
  SimOptions options;
  options.hostThreads = 1;
  return runText(kernelText(body, shared), options, threads(1), words);
}

const std::string bar = "  .shared .align 8 .b64 bar;\n";

TEST(LaterMbarriers, LayoutsAreKnownAndBounded) {
  const auto kernel = [](const std::string &init) {
    return "  mov.u32 %r1, bar;\n" + init +
           "  mbarrier.check_layout.layout::v1.shared::cta.b64 %p1, [%r1];\n"
           "  mbarrier.check_layout.layout::v0.shared::cta.b64 %p2, [%r1];\n"
           "  selp.u32 %r2, 1, 0, %p1;\n  selp.u32 %r3, 1, 0, %p2;\n"
           "  st.global.v2.u32 [%out], {%r2, %r3};\n";
  };
  EXPECT_THAT(lonely(kernel("  mbarrier.init.layout::v1.shared::cta.b64 [%r1], 511;\n"), bar).out,
              testing::ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(lonely(kernel("  mbarrier.init.shared::cta.b64 [%r1], 512;\n"), bar).out,
              testing::ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(lonely(kernel("  mbarrier.init.layout::v1.shared::cta.b64 [%r1], 512;\n"), bar).error,
              HasSubstr("mbarrier.init expects a count of 1 to 511, but got 512"));
}

TEST(LaterMbarriers, WaitsReportNothing) {
  const RunResult run = lonely(
      "  mov.u32 %r1, bar;\n  mbarrier.init.layout::v1.shared::cta.b64 [%r1], 1;\n"
      "  mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n  mov.u32 %v0, 7;\n  .reg .b8 %byte;\n"
      "  setp.eq.u32 %p2, %t, %t;\n"
      "  mbarrier.try_wait.phase_type::primary.shared::cta.b64 %p1|%p2, %byte, [%r1], %rd1;\n"
      "  selp.u32 %r2, 1, 0, %p1;\n  selp.u32 %r3, 1, 0, %p2;\n  cvt.u32.u8 %v0, %byte;\n"
      "  mbarrier.test_wait.parity.phase_type::conditional.shared::cta.b64 %p3, [%r1], 0;\n"
      "  selp.u32 %r4, 1, 0, %p3;\n  st.global.v4.u32 [%out], {%r2, %r3, %v0, %r4};\n",
      bar);
  EXPECT_EQ(run.error, "") << run.note;
  EXPECT_THAT(run.out, testing::ElementsAre(1, 0, 0, 1));
}

/// CTA 0 arrives at the barriers of both CTAs; each waits for its own and writes its rank.
TEST(LaterMbarriers, OneArrivalReachesManyCtas) {
  const auto kernel = [](const std::string &mask) {
    return kernelText(
        "  mov.u32 %r1, bar;\n  mov.u32 %r2, %cluster_ctarank;\n"
        "  mbarrier.init.shared::cta.b64 [%r1], 1;\n  fence.mbarrier_init.release.cluster;\n"
        "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
        "  setp.ne.u32 %p1, %r2, 0;\n  @%p1 bra WAIT;\n  mov.u32 %r3, " +
            mask +
            ";\n"
            "  mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, "
            "[%r1], %r3;\n"
            "WAIT:\n  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;\n"
            "  @!%p2 bra WAIT;\n  mul.wide.u32 %rd1, %r2, 4;\n  add.u64 %rd1, %out, %rd1;\n"
            "  add.u32 %r4, %r2, 1;\n  st.global.u32 [%rd1], %r4;\n"
            "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n",
        bar);
  };
  for (const SimOptions &options : schedules(2)) {
    EXPECT_THAT(runText(kernel("3"), options, threads(1, 2), 2).out, testing::ElementsAre(1, 2));
    EXPECT_THAT(runText(kernel("1"), options, threads(1, 2), 2).error, HasSubstr("deadlock"));
  }
}

/// 32 bytes of 0x07 come without the first 4 and the last 8.
TEST(LaterCopies, IgnoredEndsAreNotRead) {
  const auto kernel = [](const std::string &load) {
    return "  mov.u32 %r1, bar;\n  mov.u32 %r2, box;\n  mov.u64 %rd2, source;\n"
           "  cvta.global.u64 %rd2, %rd2;\n"
           "  mbarrier.init.shared::cta.b64 [%r1], 1;\n  fence.mbarrier_init.release.cluster;\n"
           "  mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 32;\n"
           "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r2], "
           "[%rd2], 32, 4, 8, [%r1];\n"
           "WAIT:\n  mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd1;\n  @!%p1 bra WAIT;\n" +
           load + "  st.global.u32 [%out], %v0;\n";
  };
  const std::string shared = bar + "  .shared .align 16 .b8 box[32];\n";
  const auto run = [&](const std::string &load) {
    std::string text = kernelText(kernel(load), shared);
    text.insert(text.find(".visible"),
                ".global .align 16 .b32 source[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n");
    SimOptions options;
    options.hostThreads = 1;
    return runText(text, options, threads(1), 1);
  };
  EXPECT_THAT(run("  ld.shared.b32 %v0, [%r2+4];\n").out, testing::ElementsAre(2));
  EXPECT_THAT(run("  ld.shared.b32 %v0, [%r2+20];\n").out, testing::ElementsAre(6));
  EXPECT_THAT(run("  ld.shared.b32 %v0, [%r2];\n").error, HasSubstr("never written"));
  EXPECT_THAT(run("  ld.shared.b32 %v0, [%r2+28];\n").error, HasSubstr("never written"));
}

TEST(LaterCopies, SixteenBytesInOneStore) {
  const RunResult run =
      lonely("  mov.u32 %r1, bar;\n  mov.u32 %r2, box;\n  .reg .b128 %q;\n"
             "  mbarrier.init.shared::cta.b64 [%r1], 1;\n  fence.mbarrier_init.release.cluster;\n"
             "  mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 16;\n"
             "  mov.b64 %rd2, 0x0000000200000001;\n  mov.b64 %rd3, 0x0000000400000003;\n"
             "  mov.b128 %q, {%rd2, %rd3};\n"
             "  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r2], %q, [%r1];\n"
             "WAIT:\n  mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd1;\n  @!%p1 bra WAIT;\n"
             "  ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%r2];\n"
             "  st.global.v4.u32 [%out], {%v0, %v1, %v2, %v3};\n",
             bar + "  .shared .align 16 .b8 box[16];\n");
  EXPECT_EQ(run.error, "") << run.note;
  EXPECT_THAT(run.out, testing::ElementsAre(1, 2, 3, 4));
}

TEST(LaterCopies, SumsKeepSubnormals) {
  const auto sum = [](const std::string &noftz) {
    return lonely("  mov.b32 %v0, 3;\n  st.global.b32 [%out], %v0;\n  mov.b32 %v1, 4;\n"
                  "  red.global.add" +
                  noftz + ".f32 [%out], %v1;\n")
        .out[0];
  };
  EXPECT_EQ(sum(".noftz"), 7u);
  EXPECT_EQ(sum(""), 0u);
}

TEST(LaterTensorMemory, AnExclusiveAllocationIsAlone) {
  const auto kernel = [](const std::string &columns, const std::string &second) {
    SimOptions options;
    options.hostThreads = 1;
    return runText(
        kernelText("  mov.u32 %r1, slot;\n"
                   "  tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32 [%r1], " +
                       columns + ";\n  bar.warp.sync -1;\n  ld.shared.b32 %r2, [%r1];\n" + second,
                   "  .shared .align 4 .b32 slot;\n"),
        options, threads(32), 1);
  };
  const std::string freed = "  tcgen05.dealloc.exclusive.cta_group::1.sync.aligned.b32 %r2, 96;\n";
  EXPECT_EQ(kernel("96", freed).error, "");
  EXPECT_THAT(kernel("100", freed).error,
              HasSubstr("expects a multiple of 32 up to 512 columns, but got 100"));
  EXPECT_THAT(kernel("544", freed).error, HasSubstr("up to 512 columns, but got 544"));
  EXPECT_THAT(kernel("96", "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 96;\n").error,
              HasSubstr("tcgen05.dealloc without .exclusive of an allocation with it"));
  EXPECT_THAT(
      kernel("96", "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;\n").error,
      HasSubstr("deadlock"));
}

/// A row of sixteen signed nibbles, each lane's four of them as bytes.
TEST(LaterMatrices, NibblesKeepTheirSign) {
  SimOptions options;
  options.hostThreads = 1;
  const RunResult run = runText(
      kernelText(
          "  mov.u32 %r1, box;\n  shl.b32 %r2, %t, 4;\n  add.u32 %r1, %r1, %r2;\n"
          "  mov.b32 %v0, 0x76543210;\n  mov.b32 %v1, 0xfedcba98;\n"
          "  setp.ge.u32 %p1, %t, 8;\n  @!%p1 st.shared.v4.b32 [%r1], {%v0, %v1, %v0, %v1};\n"
          "  bar.warp.sync -1;\n  ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4 {%v2}, [%r1];\n"
          "  mul.wide.u32 %rd1, %t, 4;\n  add.u64 %rd1, %out, %rd1;\n"
          "  st.global.b32 [%rd1], %v2;\n",
          "  .shared .align 16 .b8 box[512];\n"),
      options, threads(32), 32);
  EXPECT_EQ(run.error, "") << run.note;
  const uint32_t wanted[] = {0x03020100, 0x07060504, 0xFBFAF9F8, 0xFFFEFDFC};
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run.out[lane], wanted[lane % 4]) << lane;
}

} // namespace
