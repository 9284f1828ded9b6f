// Cluster launch control: work of clusters that have not started is taken over, each exactly once.
#include "KernelHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

/// One thread per CTA adds 1 to out[index] for its own CTA and for every one it takes over.
std::string persistentKernel(const std::string &test) {
  return kernelText(
      "  mov.u32 %r1, bar;\n  mov.u32 %r2, response;\n  mov.u32 %r3, %ctaid.x;\n"
      "  mov.u32 %r4, 0;\n  mbarrier.init.shared::cta.b64 [%r1], 1;\n"
      "  fence.mbarrier_init.release.cluster;\n"
      "WORK:\n"
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n"
      "  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
      "[%r2], [%r1];\n"
      "  mul.wide.u32 %rd1, %r3, 4;\n  add.u64 %rd1, %out, %rd1;\n"
      "  atom.global.add.u32 %r5, [%rd1], 1;\n"
      "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r4;\n  @!%p1 bra WAIT;\n"
      "  xor.b32 %r4, %r4, 1;\n  ld.shared.b128 %q, [%r2];\n"
      "  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;\n" +
          test +
          "  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r6, %r7, _}, "
          "%q;\n"
          "  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r8, %q;\n"
          "  setp.ne.u32 %p3, %r8, %r3;\n  @%p3 trap;\n"
          "  fence.proxy.async.shared::cta;\n  bra WORK;\n",
      "  .reg .b128 %q;\n  .shared .align 8 .b64 bar;\n  .shared .align 16 .b8 response[16];\n");
}

LaunchConfig clusters(uint32_t count) {
  LaunchConfig config;
  config.grid = {count, 1, 1};
  return config;
}

TEST(ClusterLaunch, EveryClusterRunsOnce) {
  const std::string text = persistentKernel("  @!%p2 ret;\n");
  for (SimOptions options : schedules(6)) {
    for (uint32_t threads : {1u, 2u}) {
      options.hostThreads = threads;
      const RunResult result = runText(text, options, clusters(9), 9);
      ASSERT_EQ(result.error, "") << describe(options) << "\n" << result.note;
      EXPECT_EQ(result.out, std::vector<uint32_t>(9, 1)) << describe(options);
    }
  }
}

TEST(ClusterLaunch, TheIndexOfAFailedRequestIsAnError) {
  EXPECT_THAT(runText(persistentKernel(""), schedules()[0], clusters(2), 2).error,
              HasSubstr("request that succeeded"));
}

/// PTX leaves undefined what a request does after the CTA has seen one fail.
TEST(ClusterLaunch, ARequestAfterOneThatFailedIsAnError) {
  const std::string again = "  @%p2 bra TAKEN;\n"
                            "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n"
                            "  clusterlaunchcontrol.try_cancel.async.shared::cta"
                            ".mbarrier::complete_tx::bytes.b128 [%r2], [%r1];\n"
                            "LAST:\n"
                            "  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r4;\n"
                            "  @!%p1 bra LAST;\n  ret;\nTAKEN:\n";
  for (SimOptions options : schedules(3)) {
    for (Judgement judgement : {Judgement::Letter, Judgement::Practice}) {
      options.judgement = judgement;
      EXPECT_THAT(runText(persistentKernel(again), options, clusters(2), 2).error,
                  HasSubstr("a request after one that failed"));
    }
    EXPECT_EQ(runText(persistentKernel("  @!%p2 ret;\n"), options, clusters(2), 2).error, "");
  }
}

/// In practice it may be asked for, and then is no CTA's; the letter of PTX has it undefined.
TEST(ClusterLaunch, TheIndexOfAFailedRequestIsNone) {
  const std::string text = persistentKernel(
      "  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r6, %r7, _}, %q;\n"
      "  clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r8, %q;\n"
      "  setp.ne.u32 %p3, %r8, 0xFFFFFFFF;\n  @%p2 bra TAKEN;\n  @%p3 trap;\n"
      "  setp.ne.u32 %p3, %r3, 0xFFFFFFFF;\n  @%p3 trap;\nTAKEN:\n  @!%p2 ret;\n");
  for (SimOptions options : schedules(3)) {
    EXPECT_THAT(runText(text, options, clusters(5), 5).error, HasSubstr("request that succeeded"));
    options.judgement = Judgement::Practice;
    const RunResult result = runText(text, options, clusters(5), 5);
    ASSERT_EQ(result.error, "") << describe(options);
    EXPECT_EQ(result.out, std::vector<uint32_t>(5, 1));
    // A program that does not look whether a request succeeded asks again.
    EXPECT_THAT(runText(persistentKernel(""), options, clusters(2), 2).error,
                HasSubstr("a request after one that failed"));
  }
}

} // namespace
