// st.async, red.async and st.bulk.
#include "KernelHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

/// Two CTAs of a cluster: CTA 1 sends to CTA 0, which waits for 16 bytes and writes four words out.
std::string sender(const std::string &send, int bytes = 16) {
  return kernelText("  mov.u32 %r1, %cluster_ctarank;\n  mov.u32 %r2, box;\n  mov.u32 %r3, bar;\n"
                    "  mov.u32 %v0, 5;\n  st.shared.v4.u32 [%r2], {%v0, %v0, %v0, %v0};\n"
                    "  mbarrier.init.shared.b64 [%r3], 1;\n"
                    "  mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r3], " +
                        std::to_string(bytes) +
                        ";\n  fence.mbarrier_init.release.cluster;\n"
                        "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
                        "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra RECEIVE;\n"
                        "  mapa.shared::cluster.u32 %r4, %r2, 0;\n"
                        "  mapa.shared::cluster.u32 %r5, %r3, 0;\n"
                        "  mov.u32 %v1, 11;\n  mov.u32 %v2, 12;\n  mov.u32 %v3, 13;\n"
                        "  mov.u32 %v4, 14;\n" +
                        send +
                        "  bra END;\nRECEIVE:\n"
                        "  mbarrier.try_wait.acquire.cluster.shared::cta.b64 %p2, [%r3], %rd1;\n"
                        "  @!%p2 bra RECEIVE;\n"
                        "  ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%r2];\n"
                        "  st.global.v4.u32 [%out], {%v0, %v1, %v2, %v3};\nEND:\n"
                        "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n",
                    "  .shared .align 16 .b8 box[16];\n  .shared .align 8 .b64 bar;\n");
}

LaunchConfig pair() {
  LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = {1, 1, 1};
  config.cluster = {2, 1, 1};
  return config;
}

TEST(RemoteStore, VectorsArriveWithTheirBytes) {
  for (const SimOptions &options : schedules(3)) {
    const RunResult run =
        runText(sender("  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                       "[%r4], {%v1, %v2, %v3, %v4}, [%r5];\n"),
                options, pair(), 4);
    ASSERT_EQ(run.error, "") << describe(options) << "\n" << run.note;
    EXPECT_THAT(run.out, testing::ElementsAre(11, 12, 13, 14));
  }
}

TEST(RemoteStore, ReductionsCombine) {
  const std::string head =
      "  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes";
  for (const SimOptions &options : schedules(3)) {
    const RunResult run = runText(sender(head + ".add.u32 [%r4], %v1, [%r5];\n" + head +
                                         ".max.s32 [%r4+4], %v2, [%r5];\n" + head +
                                         ".xor.b32 [%r4+8], %v3, [%r5];\n" + head +
                                         ".dec.u32 [%r4+12], %v4, [%r5];\n"),
                                  options, pair(), 4);
    ASSERT_EQ(run.error, "") << describe(options) << "\n" << run.note;
    EXPECT_THAT(run.out, testing::ElementsAre(16, 12, 5 ^ 13, 4));
  }
}

TEST(RemoteStore, TheBarrierMustLieInTheSameCta) {
  const RunResult run =
      runText(sender("  st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                     "[%r4], %v1, [%r3];\n",
                     4),
              schedules(0)[0], pair(), 4);
  EXPECT_THAT(run.error, HasSubstr("expects an mbarrier of the destination's CTA"));
}

TEST(RemoteStore, ReleaseFormsReachGlobalMemory) {
  for (const SimOptions &options : schedules(1)) {
    const RunResult run =
        runText(kernelText("  mov.u32 %v1, 21;\n  st.async.release.gpu.global.u32 [%out], %v1;\n"
                           "  red.async.release.gpu.global.add.u32 [%out+4], %v1;\n"),
                options, {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0}, 2);
    ASSERT_EQ(run.error, "") << run.note;
    EXPECT_THAT(run.out, testing::ElementsAre(21, 21));
  }
}

TEST(RemoteStore, BulkZeros) {
  const auto kernel = [](const char *size) {
    return kernelText(std::string("  mov.u32 %r2, box;\n  mov.u32 %v0, 5;\n"
                                  "  st.shared.v4.u32 [%r2], {%v0, %v0, %v0, %v0};\n"
                                  "  st.bulk.weak.shared::cta [%r2], ") +
                          size +
                          ", 0;\n  ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%r2];\n"
                          "  st.global.v4.u32 [%out], {%v0, %v1, %v2, %v3};\n",
                      "  .shared .align 16 .b8 box[16];\n");
  };
  const LaunchConfig one{{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0};
  EXPECT_THAT(runText(kernel("8"), schedules(0)[0], one, 4).out, testing::ElementsAre(0, 0, 5, 5));
  EXPECT_THAT(runText(kernel("12"), schedules(0)[0], one, 4).error,
              HasSubstr("expects a size that is a multiple of 8"));
}

} // namespace
