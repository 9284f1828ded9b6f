// mbarrier instructions in PTX: phases, tokens, remote arrivals; deadlocks and misuse in words.
#include "KernelHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// `bar` with `count` arrivals, initialised by thread 0; then `body`.
std::string barrierKernel(const std::string &count, const std::string &body) {
  return kernelText("  mov.u32 %r1, bar;\n  setp.ne.u32 %p1, %t, 0;\n  @%p1 bra READY;\n"
                    "  mbarrier.init.shared::cta.b64 [%r1], " +
                        count +
                        ";\n  fence.mbarrier_init.release.cluster;\nREADY:\n  bar.sync 0;\n" + body,
                    "  .shared .align 8 .b64 bar;\n  .shared .align 8 .b64 other;\n"
                    "  .shared .align 4 .b32 word;\n");
}

/// Warp 1 passes three values to warp 0 through one word: full and empty are the two barriers.
const std::string pingPong =
    kernelText("  mov.u32 %r1, full;\n  mov.u32 %r2, empty;\n  mov.u32 %r3, word;\n"
               "  setp.ne.u32 %p1, %t, 0;\n  @%p1 bra READY;\n"
               "  mbarrier.init.shared::cta.b64 [%r1], 32;\n"
               "  mbarrier.init.shared::cta.b64 [%r2], 32;\nREADY:\n  bar.sync 0;\n"
               "  mov.u32 %r4, 0;\n  setp.ge.u32 %p2, %t, 32;\n  @%p2 bra PRODUCE;\n"
               "CONSUME:\n  and.b32 %r5, %r4, 1;\n"
               "W1:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], %r5;\n"
               "  @!%p3 bra W1;\n  ld.shared.b32 %v0, [%r3];\n"
               "  shl.b32 %r6, %r4, 2;\n  cvt.u64.u32 %rd0, %r6;\n  add.u64 %rd1, %out, %rd0;\n"
               "  @!%p1 st.global.b32 [%rd1], %v0;\n"
               "  mbarrier.arrive.shared::cta.b64 %rd2, [%r2];\n"
               "  add.u32 %r4, %r4, 1;\n  setp.lt.u32 %p4, %r4, 3;\n  @%p4 bra CONSUME;\n  ret;\n"
               "PRODUCE:\n  and.b32 %r5, %r4, 1;\n  xor.b32 %r5, %r5, 1;\n"
               "W2:\n  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r2], %r5;\n"
               "  @!%p3 bra W2;\n  mad.lo.u32 %r6, %r4, 11, 5;\n"
               "  setp.eq.u32 %p5, %t, 32;\n  @%p5 st.shared.b32 [%r3], %r6;\n"
               "  bar.warp.sync 0xffffffff;\n"
               "  mbarrier.arrive.shared::cta.b64 _, [%r1];\n"
               "  add.u32 %r4, %r4, 1;\n  setp.lt.u32 %p4, %r4, 3;\n  @%p4 bra PRODUCE;\n",
               "  .shared .align 8 .b64 full;\n  .shared .align 8 .b64 empty;\n"
               "  .shared .align 4 .b32 word;\n");

TEST(MbarrierKernels, TwoBarriersPassValues) {
  for (const SimOptions &options : schedules(6)) {
    const RunResult result = runText(pingPong, options, threads(64), 3);
    ASSERT_EQ(result.error, "") << describe(options);
    EXPECT_EQ(result.out, (std::vector<uint32_t>{5, 16, 27})) << describe(options);
  }
}

TEST(MbarrierKernels, TokensAndCounts) {
  const std::string text = barrierKernel(
      "64", "  setp.ge.u32 %p2, %t, 32;\n  @%p2 bra SECOND;\n"
            "  mbarrier.arrive.shared::cta.b64 %rd0, [%r1];\n"
            "  mbarrier.pending_count.b64 %r3, %rd0;\n"
            "T:\n  mbarrier.try_wait.shared::cta.b64 %p3, [%r1], %rd0;\n  @!%p3 bra T;\n"
            "  mul.wide.u32 %rd1, %t, 4;\n  add.u64 %rd1, %out, %rd1;\n"
            "  st.global.b32 [%rd1], %r3;\n  ret;\n"
            "SECOND:\n  setp.ne.u32 %p4, %t, 32;\n  @%p4 bra END;\n"
            "  mbarrier.arrive.shared::cta.b64 _, [%r1], 32;\nEND:\n");
  for (const SimOptions &options : schedules(3)) {
    const RunResult result = runText(text, options, threads(64), 32);
    ASSERT_EQ(result.error, "") << describe(options);
    for (uint32_t lane = 1; lane < 32; ++lane)
      EXPECT_EQ(result.out[lane - 1], result.out[lane] + 1) << "pending counts fall by one";
  }
}

TEST(MbarrierKernels, RemoteArrival) {
  const auto text = [](const std::string &arrivals) {
    return kernelText(
        "  mov.u32 %r1, bar;\n  mov.u32 %r2, %cluster_ctarank;\n  setp.ne.u32 %p1, %t, 0;\n"
        "  @%p1 bra READY;\n  mbarrier.init.shared::cta.b64 [%r1], 2;\n"
        "  fence.mbarrier_init.release.cluster;\nREADY:\n"
        "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
        "  @%p1 bra WAIT;\n  mapa.shared::cluster.u32 %r3, %r1, 0;\n" +
            arrivals +
            "WAIT:\n  setp.ne.u32 %p2, %r2, 0;\n  @%p2 bra DONE;\n"
            "W:\n  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r1], 0;\n"
            "  @!%p3 bra W;\n  mov.u32 %r4, 42;\n  st.global.b32 [%out], %r4;\n"
            "DONE:\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n",
        "  .shared .align 8 .b64 bar;\n");
  };
  const std::string arrive = "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n";
  for (const SimOptions &options : schedules(3)) {
    const RunResult result = runText(text(arrive), options, threads(32, 2), 1);
    ASSERT_EQ(result.error, "") << describe(options);
    EXPECT_EQ(result.out[0], 42u);
  }
  const std::string local = "  mbarrier.arrive.shared::cta.b64 _, [%r1];\n";
  EXPECT_THAT(runText(text(local), schedules()[1], threads(32, 2), 1).error,
              AllOf(HasSubstr("deadlock"), HasSubstr("1 of 2 arrivals pending")));
}

/// Arrivals may be remote, waits may not.
TEST(MbarrierKernels, WaitsAreForTheOwnCta) {
  const auto wait = [](const char *rank) {
    return kernelText(
        "  mov.u32 %r1, bar;\n  setp.ne.u32 %p1, %t, 0;\n  @%p1 bra READY;\n"
        "  mbarrier.init.shared::cta.b64 [%r1], 1;\n  fence.mbarrier_init.release.cluster;\n"
        "READY:\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
        "  @%p1 bra DONE;\n  mov.u32 %r2, %cluster_ctarank;\n  cvta.shared.u64 %rd0, bar;\n"
        "  xor.b32 %r3, %r2, " +
            std::string(rank) +
            ";\n  mapa.u64 %rd1, %rd0, %r3;\n"
            "  mbarrier.test_wait.parity.b64 %p3, [%rd1], 1;\n"
            "DONE:\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n",
        "  .shared .align 8 .b64 bar;\n");
  };
  EXPECT_EQ(runText(wait("0"), schedules()[0], threads(32, 2), 1).error, "");
  EXPECT_THAT(runText(wait("1"), schedules()[0], threads(32, 2), 1).error,
              HasSubstr("a wait expects an mbarrier of its own CTA"));
}

TEST(MbarrierKernels, DeadlockNamesBarrierPhaseAndArrivals) {
  // 33 arrivals are expected: warp 1 arrives 32 times and exits.
  const std::string text = barrierKernel(
      "33", "  setp.ge.u32 %p2, %t, 32;\n"
            "  @%p2 mbarrier.arrive.shared::cta.b64 _, [%r1];\n  @%p2 bra END;\n"
            "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;\n  @!%p3 bra W;\n"
            "END:\n");
  const RunResult result = runText(text, schedules()[0], threads(64), 1);
  EXPECT_THAT(result.error, HasSubstr("deadlock: no warp can run"));
  EXPECT_THAT(result.error, HasSubstr("warp 0"));
  EXPECT_THAT(result.error, HasSubstr("phase 0 (parity 0) of the mbarrier 'bar' at shared"));
  EXPECT_THAT(result.error, HasSubstr("1 of 33 arrivals pending"));
  EXPECT_THAT(result.error, HasSubstr("warp 1 of CTA rank 0"));
  EXPECT_THAT(result.note, HasSubstr("warps 1 of CTA rank 0 have exited"));
}

TEST(MbarrierKernels, ALappedWarpIsTold) {
  // Warp 1 comes when two phases are over.
  const std::string text = barrierKernel(
      "1", "  setp.ge.u32 %p2, %t, 32;\n  @%p2 bra LATE;\n"
           "  @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];\n"
           "  @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];\n  bar.sync 1, 64;\n  bra END;\n"
           "LATE:\n  bar.sync 1, 64;\n"
           "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;\n  @!%p3 bra W;\nEND:\n");
  const RunResult result = runText(text, schedules()[0], threads(64), 1);
  EXPECT_THAT(result.error, HasSubstr("waits for phase 2 (parity 0)"));
  EXPECT_THAT(result.error, HasSubstr("the warp was lapped: it has not waited here before, and "
                                      "phases 0 to 1 have completed meanwhile"));
}

TEST(MbarrierKernels, MissingBytesAreNamed) {
  const std::string text = barrierKernel(
      "1", "  @%p1 bra END;\n  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 96;\n"
           "  mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], 64;\n"
           "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;\n  @!%p3 bra W;\nEND:\n");
  EXPECT_THAT(runText(text, schedules()[0], threads(32), 1).error,
              HasSubstr("32 bytes expected and not delivered"));
}

/// Lanes that all initialize one mbarrier: with one count that is done once, in practice.
TEST(MbarrierKernels, AllLanesInitialize) {
  const auto kernel = [](const std::string &count) {
    return kernelText("  mov.u32 %r1, bar;\n  and.b32 %r2, %t, 0;\n  add.u32 %r2, %r2, 1;\n"
                      "  shr.u32 %r3, %t, 4;\n  add.u32 %r3, %r3, 1;\n"
                      "  mbarrier.init.shared::cta.b64 [%r1], " +
                          count +
                          ";\n  bar.warp.sync -1;\n  setp.ne.u32 %p1, %t, 0;\n  @%p1 bra WAIT;\n"
                          "  mbarrier.arrive.shared::cta.b64 _, [%r1];\nWAIT:\n"
                          "  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;\n"
                          "  @!%p3 bra WAIT;\n",
                      "  .shared .align 8 .b64 bar;\n");
  };
  for (SimOptions options : schedules(2)) {
    EXPECT_THAT(runText(kernel("%r2"), options, threads(32), 1).error, HasSubstr("is in use"));
    options.judgement = Judgement::Practice;
    EXPECT_EQ(runText(kernel("%r2"), options, threads(32), 1).error, "");
    EXPECT_THAT(runText(kernel("%r3"), options, threads(32), 1).error, HasSubstr("is in use"));
    EXPECT_THAT(runText(kernel("%r2"), options, threads(64), 1).error, HasSubstr("is in use"));
  }
}

struct Misuse {
  const char *name, *good, *bad, *error;
};

TEST(MbarrierKernels, InPracticeTheLowestBitOfAParityCounts) {
  for (const char *parity : {"1", "5", "4294967295"}) {
    SimOptions options = schedules()[0];
    options.judgement = Judgement::Practice;
    const std::string wait =
        std::string("  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], ") + parity +
        ";\n  selp.b32 %v0, 1, 0, %p3;\n"
        "  st.global.b32 [%out], %v0;\nEND:\n";
    const RunResult result =
        runText(barrierKernel("1", "  @%p1 bra END;\n" + wait), options, threads(32), 1);
    EXPECT_EQ(result.error, "") << parity;
    EXPECT_EQ(result.out, std::vector<uint32_t>{1}) << parity;
  }
}

TEST(MbarrierKernels, Misuse) {
  const Misuse cases[] = {
      {"arrive twice", "mbarrier.arrive.shared::cta.b64 _, [%r1];",
       "mbarrier.arrive.shared::cta.b64 _, [%r1], 2;", "gets 2 arrivals with 1 pending"},
      {"no such barrier", "mbarrier.arrive.shared::cta.b64 _, [%r1];",
       "mbarrier.arrive.shared::cta.b64 _, [%r1+8];", "no mbarrier is initialised"},
      {"misaligned", "mbarrier.init.shared::cta.b64 [%r1+8], 1;",
       "mbarrier.init.shared::cta.b64 [%r1+12], 1;", "multiple of 8"},
      {"init in use",
       "mbarrier.inval.shared::cta.b64 [%r1];\n  mbarrier.init.shared::cta.b64 [%r1], 1;",
       "mbarrier.init.shared::cta.b64 [%r1], 1;", "is in use"},
      {"count", "mbarrier.init.shared::cta.b64 [%r1+8], 1;",
       "mbarrier.init.shared::cta.b64 [%r1+8], 0;", "expects a count of 1 to"},
      {"bytes", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048575;",
       "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048576;", "must not exceed"},
      {"parity", "mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 1;",
       "mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 2;", "parity must be 0 or 1"},
      {"noComplete", "mbarrier.arrive.shared::cta.b64 %rd0, [%r1];",
       "mbarrier.arrive.noComplete.shared::cta.b64 %rd0, [%r1], 1;", "would complete phase 0"},
  };
  for (const Misuse &c : cases) {
    const auto text = [](const char *line) {
      return barrierKernel("1", std::string("  @%p1 bra END;\n  ") + line + "\nEND:\n");
    };
    EXPECT_EQ(runText(text(c.good), schedules()[0], threads(32), 1).error, "") << c.name;
    EXPECT_THAT(runText(text(c.bad), schedules()[0], threads(32), 1).error, HasSubstr(c.error))
        << c.name;
  }
}

} // namespace
