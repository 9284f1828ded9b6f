// Every order of small kernels: how many there are, what fails in one of them, and that what is left
// out is equivalent to what runs.
#include "OrderHarness.h"

#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

//===--- Counts -----------------------------------------------------------===//

/// `copies` bulk copies of one warp into shared memory, to one barrier.
std::string copyKernel(int copies, bool overlap) {
  std::string body = fmt::format(
      "  mov.u32 %r2, bar;\n  mov.u32 %r3, buffer;\n"
      "  mbarrier.init.shared::cta.b64 [%r2], 1;\n  fence.mbarrier_init.release.cluster;\n"
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {};\n",
      16 * copies);
  for (int i = 0; i < copies; ++i)
    body += fmt::format("  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                        "[%r3+{}], [%out+{}], 16, [%r2];\n",
                        overlap ? 0 : 16 * i, 16 * i);
  return oneLane(body + "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n"
                        "  @!%p1 bra W;\n",
                 "  .shared .align 8 .b64 bar;\n  .shared .align 16 .b8 buffer[64];\n");
}

TEST(Orders, CopiesToDifferentPlacesHaveOne) {
  for (int copies : {1, 2, 4}) {
    const Explored found = explore(copyKernel(copies, false), {});
    EXPECT_EQ(found.run.error, "");
    EXPECT_EQ(found.run.note, "");
    EXPECT_EQ(found.report.orders, 1u) << copies;
    EXPECT_EQ(found.report.pruned, 0u);
    EXPECT_TRUE(found.report.complete);
  }
  // Alone, each copy may end at any time after its issue, and in any order.
  const Explored brute = explore(copyKernel(2, false), {.reduce = false});
  EXPECT_GT(brute.report.orders, 3u);
  EXPECT_TRUE(brute.report.complete);
}

TEST(Orders, CopiesToOnePlaceHaveAllTheirOrders) {
  const Explored found = explore(copyKernel(3, true), {.check = "off"});
  EXPECT_EQ(found.run.error, "");
  EXPECT_EQ(found.report.orders, 6u);
}

/// Each warp adds to one word; `returning`: and looks at the old value.
std::string addKernel(bool returning) {
  return oneLane(returning ? "  atom.global.add.u32 %r2, [%out], 1;\n  xor.b32 %r3, %r2, %r2;\n"
                           : "  red.global.add.u32 [%out], 1;\n");
}

TEST(Orders, AtomicsOnOneWordHaveAllTheirOrders) {
  EXPECT_EQ(explore(addKernel(true), {.warps = 2}).report.orders, 2u);
  EXPECT_EQ(explore(addKernel(true), {.warps = 4}).report.orders, 24u);
  EXPECT_EQ(explore(addKernel(true), {.warps = 1, .ctas = 4}).report.orders, 24u);
  const Explored found = explore(addKernel(false), {.warps = 4});
  EXPECT_EQ(found.report.orders, 1u);
  EXPECT_EQ(found.run.out[0], 4u);
}

TEST(Orders, AnAtomicWhoseResultNobodyUsesIsAReduction) {
  const auto text = [](const std::string &operation, const std::string &next = "") {
    return oneLane("  atom." + operation + " %r2, [%out], %r1;\n" + next);
  };
  const Explored unused = explore(text("global.max.u32"), {.warps = 4});
  EXPECT_EQ(unused.run.error + unused.run.note, "");
  EXPECT_EQ(unused.run.out[0], 3u);
  EXPECT_EQ(unused.report.orders, 1u);
  EXPECT_EQ(explore(text("global.exch.b32"), {.warps = 3, .check = "off"}).report.orders, 2u);
  EXPECT_GT(explore(text("acq_rel.gpu.global.max.u32"), {.warps = 3}).report.orders, 1u);
  // Whoever finds 0 is one warp, or several: it depends on the order.
  const std::string used = "  setp.eq.u32 %p1, %r2, 0;\n  @%p1 red.global.add.u32 [%out+4], 1;\n";
  EXPECT_THAT(explore(text("global.max.u32", used), {.warps = 3}).run.error,
              HasSubstr("the result depends on the order"));
}

/// Warp 0 writes two words with `store` and warp 1 reads them in the same order, then each adds to
/// a word of its own.
std::string wordsKernel(const char *store) {
  return oneLane("  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra READ;\n  mov.u32 %r3, 1;\n" +
                 std::string(store) +
                 "  atom.global.add.u32 %r2, [%out+32], 1;\n  bra END;\nREAD:\n"
                 "  ld.global.b32 %r4, [%out];\n  ld.global.b32 %r5, [%out+4];\n"
                 "  st.global.v2.b32 [%out+16], {%r4, %r5};\n"
                 "  atom.global.add.u32 %r2, [%out+32], 1;\n");
}

TEST(Orders, StepsOfSeveralAccessesAreTakenApartWhereTheyMeet) {
  // {0, 1}: between the two loads come both stores, inside of what was one step.
  const Explored inside =
      explore(wordsKernel("  st.global.b32 [%out], %r3;\n  st.global.b32 [%out+4], %r3;\n"),
              {.warps = 2, .results = true, .check = "off"});
  EXPECT_TRUE(inside.report.everyAccess);
  EXPECT_EQ(inside.results.size(), 4u);
  // The plain accesses have nothing to do with each other: only the atomics meet.
  const Explored apart = explore(wordsKernel("  st.global.b32 [%out+8], %r3;\n"), {.warps = 2});
  EXPECT_EQ(apart.run.error + apart.run.note, "");
  EXPECT_FALSE(apart.report.everyAccess);
  EXPECT_TRUE(apart.report.complete);
}

TEST(Orders, BarriersOrderWhatTheySeparate) {
  const std::string text = kernelText("  shl.b32 %r1, %t, 2;\n  mov.u32 %r2, buffer;\n"
                                      "  add.u32 %r3, %r2, %r1;\n  st.shared.b32 [%r3], %t;\n"
                                      "  bar.sync 0;\n  xor.b32 %r4, %r1, 128;\n"
                                      "  add.u32 %r4, %r4, %r2;\n  ld.shared.b32 %r5, [%r4];\n"
                                      "  cvt.u64.u32 %rd1, %r1;\n  add.u64 %rd1, %rd1, %out;\n"
                                      "  st.global.b32 [%rd1], %r5;\n",
                                      "  .shared .align 16 .b8 buffer[512];\n");
  const Explored found = explore(text, {.warps = 4, .words = 128});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_EQ(found.report.orders, 1u);
  EXPECT_FALSE(found.report.everyAccess);
  EXPECT_EQ(found.run.out[0], 32u);
}

TEST(Orders, ALoopThatWaitsForAFlagEnds) {
  const std::string wait = "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra SET;\n"
                           "SPIN:\n  ld.acquire.gpu.global.b32 %r2, [%out];\n"
                           "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n"
                           "  st.global.b32 [%out+4], %r2;\n  bra END;\nSET:\n";
  const Explored found =
      explore(oneLane(wait + "  mov.u32 %r3, 7;\n  st.release.gpu.global.b32 [%out], %r3;\n"),
              {.warps = 2});
  EXPECT_EQ(found.run.error, "");
  EXPECT_TRUE(found.report.complete);
  EXPECT_LE(found.report.orders, 4u);
  EXPECT_EQ(found.run.out[1], 7u);
  EXPECT_THAT(explore(oneLane(wait), {.warps = 2}).run.error, HasSubstr("livelock"));
}

//===--- Failures in one order --------------------------------------------===//

TEST(Orders, AResultThatDependsOnTheOrder) {
  const std::string text = oneLane("  atom.global.exch.b32 %r2, [%out], %r1;\n");
  const Explored found = explore(text, {.warps = 2});
  EXPECT_THAT(found.run.error, HasSubstr("the result depends on the order: byte 0 of 'out'"));
  EXPECT_EQ(found.report.failure, OrderReport::Failure::Result);
  EXPECT_EQ(found.report.orders, 2u);
}

/// Each of two warps takes two locks; with `crossed` in opposite orders.
std::string lockKernel(bool crossed) {
  const std::string take = "{0}:\n  atom.acquire.gpu.global.cas.b32 %r5, [{1}], 0, 1;\n"
                           "  setp.ne.u32 %p1, %r5, 0;\n  @%p1 bra {0};\n";
  const std::string give = "  mov.u32 %r6, 0;\n  st.release.gpu.global.b32 [{0}], %r6;\n";
  return oneLane("  add.u64 %rd1, %out, 4;\n  add.u64 %rd2, %out, 8;\n" +
                 std::string(crossed ? "  setp.eq.u32 %p2, %r1, 1;\n"
                                       "  selp.b64 %rd3, %rd2, %rd1, %p2;\n"
                                       "  selp.b64 %rd4, %rd1, %rd2, %p2;\n"
                                     : "  mov.u64 %rd3, %rd1;\n  mov.u64 %rd4, %rd2;\n") +
                 fmt::format(fmt::runtime(take), "A", "%rd3") +
                 fmt::format(fmt::runtime(take), "B", "%rd4") +
                 "  ld.global.b32 %r7, [%out];\n  add.u32 %r7, %r7, 1;\n"
                 "  st.global.b32 [%out], %r7;\n" +
                 fmt::format(fmt::runtime(give), "%rd4") + fmt::format(fmt::runtime(give), "%rd3"));
}

TEST(Orders, ADeadlockOfOneOrder) {
  const Explored right = explore(lockKernel(false), {.warps = 2});
  EXPECT_EQ(right.run.error + right.run.note, "");
  EXPECT_TRUE(right.report.complete);
  EXPECT_EQ(right.run.out[0], 2u);
  const Explored wrong = explore(lockKernel(true), {.warps = 2});
  EXPECT_THAT(wrong.run.error, HasSubstr("livelock"));
  EXPECT_THAT(wrong.run.note, HasSubstr("--replay 'test: "));
  // The order is enough to see it again.
  const Explored again = explore(lockKernel(true), {.warps = 2, .replay = wrong.report.order});
  EXPECT_EQ(again.run.error, wrong.run.error);
}

/// Seven warps take numbers. With the bug the work is lost if they do so in the one order of 5040 in
/// which the last warp comes first, and so on.
std::string numberKernel(bool bug) {
  return oneLane("  atom.relaxed.gpu.global.add.u32 %r2, [%out], 1;\n"
                 "  add.u32 %r3, %r1, %r2;\n  setp.ne.u32 %p1, %r3, 6;\n" +
                 std::string(bug ? "  @!%p1 bra END;\n" : "") +
                 "  red.global.or.b32 [%out+4], 1;\n");
}

TEST(Orders, ABugInOneOrderOfThousands) {
  const Explored wrong = explore(numberKernel(true), {.warps = 7});
  EXPECT_THAT(wrong.run.error, HasSubstr("the result depends on the order: byte 4 of 'out' is"));
  EXPECT_EQ(explore(numberKernel(true), {.warps = 7, .replay = wrong.report.order}).run.error,
            wrong.run.error);
  const Explored right = explore(numberKernel(false), {.warps = 7, .check = "off"});
  EXPECT_EQ(right.run.error, "");
  EXPECT_EQ(right.report.orders, 5040u);
  EXPECT_TRUE(right.report.complete);
  for (CompletionPolicy policy :
       {CompletionPolicy::Eager, CompletionPolicy::Lazy, CompletionPolicy::Random})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SimOptions options;
      options.policy = policy;
      options.seed = seed;
      EXPECT_EQ(runText(numberKernel(true), options, {.block = {224, 1, 1}}, 16).out[1], 1u);
    }
}

/// The beginning of a kernel whose warp 4 multiplies tiles of 128 x 256 into accumulators that have
/// 96 columns in common, from column 160 (%r11) on, while warps 0 to 3 read them (%r12). Rows of B
/// are 2 in these columns of the first tile and 1 elsewhere, and A is 1.
std::string beginOverlap() {
  return "  mov.u32 %r3, rows;\n  mov.u32 %r4, bar;\n  mov.u32 %r9, slot;\n  mov.u32 %r5, %t;\n"
         "FILL:\n  shl.b32 %r6, %r5, 4;\n  add.u32 %r6, %r6, %r3;\n  setp.ge.u32 %p1, %r5, 320;\n"
         "  selp.b32 %r7, 0x40004000, 0x3C003C00, %p1;\n"
         "  st.shared.v4.b32 [%r6], {%r7, %r7, %r7, %r7};\n  add.u32 %r5, %r5, 160;\n"
         "  setp.lt.u32 %p1, %r5, 512;\n  @%p1 bra FILL;\n  fence.proxy.async.shared::cta;\n"
         "  setp.ne.u32 %p2, %t, 0;\n  @%p2 bra READY;\n"
         "  mbarrier.init.shared::cta.b64 [%r4], 1;\n  mbarrier.init.shared::cta.b64 [%r4+8], 1;\n"
         "  mbarrier.init.shared::cta.b64 [%r4+16], 4;\n  fence.mbarrier_init.release.cluster;\n"
         "READY:\n  bar.warp.sync -1;\n  shr.u32 %r1, %t, 5;\n  setp.ne.u32 %p3, %r1, 0;\n"
         "  @%p3 bra ALLOCATED;\n"
         "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 512;\nALLOCATED:\n"
         "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
         "  tcgen05.fence::after_thread_sync;\n  ld.shared.b32 %r10, [%r9];\n"
         "  add.u32 %r11, %r10, 160;\n  shl.b32 %r12, %r1, 21;\n  add.u32 %r12, %r12, %r11;\n"
         "  and.b32 %r13, %t, 31;\n  setp.ne.u32 %p4, %r13, 0;\n  setp.ne.u32 %p5, %r1, 4;\n"
         "  @%p5 bra READ;\n  @%p4 bra DONE;\n  shr.u32 %r14, %r3, 4;\n  cvt.u64.u32 %rd4, %r14;\n"
         "  or.b64 %rd2, %rd4, 0x0000400000080000;\n  or.b64 %rd3, %rd4, 0x0000401000080000;\n"
         "  setp.ne.u32 %p6, %t, %t;\n  mov.u32 %r15, 0x08400010;\n";
}

/// The next tile is multiplied when the columns in common have been given back, each warp's part of
/// them by one lane. With the bug that is before the loads of them have ended. The result is the
/// largest sum, 32: the other half and the second tile have 16.
std::string overlapKernel(bool bug) {
  const auto await = [](const char *label, const char *barrier) {
    return fmt::format("{0}:\n  mbarrier.try_wait.parity.shared::cta.b64 %p7, [{1}], 0;\n"
                       "  @!%p7 bra {0};\n  tcgen05.fence::after_thread_sync;\n",
                       label, barrier);
  };
  const auto multiply = [](const char *sums, const char *b, const char *barrier) {
    return fmt::format(
        "  tcgen05.mma.cta_group::1.kind::f16 [{}], %rd2, {}, %r15, %p6;\n"
        "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n",
        sums, b, barrier);
  };
  std::string loads, largest;
  for (int first = 0; first < 96; first += 32) {
    std::string registers;
    for (int i = first; i < first + 32; ++i)
      registers += fmt::format("{}%v{}", i == first ? "" : ", ", i);
    loads += fmt::format("  tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r12+{}];\n", registers,
                         first);
    largest += fmt::format("  max.u32 %r20, %r20, %v{};\n", first);
  }
  const std::string ended = "  tcgen05.wait::ld.sync.aligned;\n";
  const std::string release = "  tcgen05.fence::before_thread_sync;\n  bar.warp.sync -1;\n"
                              "  @!%p4 mbarrier.arrive.shared::cta.b64 _, [%r4+16];\n";
  return kernelText(
      beginOverlap() + multiply("%r10", "%rd3", "%r4") + await("FREE", "%r4+16") +
          multiply("%r11", "%rd2", "%r4+8") + "  bra DONE;\nREAD:\n  mov.u32 %r20, 0;\n" +
          await("FIRST", "%r4") + loads + (bug ? release + ended : ended + release) + largest +
          await("SECOND", "%r4+8") + loads + ended + largest +
          "  @!%p4 red.global.max.u32 [%out], %r20;\nDONE:\n  bar.warp.sync -1;\n"
          "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @%p3 bra END;\n"
          "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;\nEND:\n",
      "  .shared .align 8 .b64 bar[3];\n  .shared .align 4 .b32 slot;\n"
      "  .shared .align 1024 .b8 rows[8192];\n");
}

TEST(Orders, AHalfThatIsGivenBackTooEarly) {
  constexpr uint32_t sum = 0x42000000; // 32, that of 16 products of 1 and 2
  const Explored right = explore(overlapKernel(false), {.warps = 5});
  EXPECT_EQ(right.run.error + right.run.note, "");
  EXPECT_EQ(right.run.out[0], sum);
  EXPECT_EQ(right.report.orders, 1u);
  EXPECT_TRUE(right.report.complete);
  // Twelve loads come before the MMA of the next tile or behind it. The largest sum is lost in one
  // of these 4096 orders, in which all of them come too late; of those with some of them behind it,
  // no result tells.
  const Explored wrong = explore(overlapKernel(true), {.warps = 5, .check = "off"});
  EXPECT_THAT(wrong.run.error, HasSubstr("the result depends on the order: byte 2 of 'out' is"));
  EXPECT_EQ(wrong.report.orders, 4096u);
  for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Lazy,
                                  CompletionPolicy::Random, CompletionPolicy::Delay})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SimOptions options;
      options.policy = policy;
      options.seed = seed;
      EXPECT_EQ(runText(overlapKernel(true), options, {.block = {160, 1, 1}}, 16).out[0], sum);
    }
  // The strict check needs no such order.
  EXPECT_THAT(explore(overlapKernel(true), {.warps = 5, .most = 1}).run.note,
              HasSubstr("tcgen05.wait::ld before the arrival that releases the columns"));
}

/// A ring of one stage: warp 0 copies, warp 1 reads what came and adds it up, `turns` times. Without
/// `empty` the copy does not wait until the stage has been read.
std::string ringKernel(int turns, bool empty) {
  const std::string wait = "{0}:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [{1}], %r6;\n"
                           "  @!%p1 bra {0};\n";
  return kernelText(
      "  and.b32 %r0, %t, 31;\n  shr.u32 %r1, %t, 5;\n  mov.u32 %r2, full;\n"
      "  mov.u32 %r3, empty;\n  mov.u32 %r4, buffer;\n  setp.ne.u32 %p0, %t, 0;\n"
      "  @%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "  mbarrier.init.shared::cta.b64 [%r3], 1;\n  fence.mbarrier_init.release.cluster;\n"
      "READY:\n  bar.sync 0;\n  setp.ne.u32 %p2, %r0, 0;\n  @%p2 bra END;\n"
      "  setp.ne.u32 %p2, %r1, 0;\n  mov.u32 %r5, 0;\n  @%p2 bra READER;\n"
      "COPY:\n  and.b32 %r6, %r5, 1;\n  xor.b32 %r6, %r6, 1;\n" +
          (empty ? fmt::format(fmt::runtime(wait), "FREE", "%r3") : "") +
          "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n"
          "  mul.wide.u32 %rd1, %r5, 16;\n  add.u64 %rd1, %rd1, %out;\n"
          "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%r4], [%rd1], 16, [%r2];\n" +
          fmt::format("  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p3, %r5, {};\n", turns) +
          "  @%p3 bra COPY;\n  bra END;\n"
          "READER:\n  mov.u32 %r8, 0;\nREAD:\n  and.b32 %r6, %r5, 1;\n" +
          fmt::format(fmt::runtime(wait), "FULL", "%r2") +
          "  ld.shared.b32 %r7, [%r4];\n  add.u32 %r8, %r8, %r7;\n"
          "  mbarrier.arrive.shared::cta.b64 _, [%r3];\n" +
          fmt::format("  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p3, %r5, {};\n", turns) +
          "  @%p3 bra READ;\n  st.global.b32 [%out+60], %r8;\nEND:\n",
      "  .shared .align 8 .b64 full;\n  .shared .align 8 .b64 empty;\n"
      "  .shared .align 16 .b8 buffer[16];\n");
}

TEST(Orders, ARingThatWrapsHasOneOrder) {
  const Explored found = explore(ringKernel(3, true), {.warps = 2, .check = "default"});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_TRUE(found.report.complete);
  EXPECT_EQ(found.report.orders, 1u);
  EXPECT_GT(found.report.commuting, 0u);
}

TEST(Orders, ARingWithoutItsReleaseFails) {
  // Without the checker the orders show it by themselves.
  EXPECT_NE(explore(ringKernel(3, false), {.warps = 2, .check = "off"}).run.error, "");
  EXPECT_NE(explore(ringKernel(3, false), {.warps = 2}).report.failure,
            OrderReport::Failure::None);
}

//===--- Happens-before ---------------------------------------------------===//

TEST(Orders, AClusterThatTheLauncherStartedMayBeFirst) {
  // Each cluster takes a number, and then asks for the work of another.
  const std::string text = oneLane(
      "  mov.u32 %r3, %ctaid.x;\n  atom.global.add.u32 %r4, [%out], 1;\n"
      "  mul.wide.u32 %rd1, %r3, 4;\n  add.u64 %rd1, %rd1, %out;\n  add.u32 %r4, %r4, 1;\n"
      "  st.global.b32 [%rd1+4], %r4;\n  mov.u32 %r2, bar;\n  mov.u32 %r5, response;\n"
      "  mbarrier.init.shared::cta.b64 [%r2], 1;\n  fence.mbarrier_init.release.cluster;\n"
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n"
      "  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
      "[%r5], [%r2];\n"
      "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n  @!%p1 bra W;\n",
      "  .shared .align 8 .b64 bar;\n  .shared .align 16 .b8 response[16];\n");
  const Explored found =
      explore(text, {.ctas = 2, .words = 3, .results = true, .check = "off"});
  EXPECT_EQ(found.run.error, "");
  EXPECT_TRUE(found.report.complete);
  EXPECT_EQ(found.results, (std::set<std::vector<uint32_t>>{{2, 1, 2}, {2, 2, 1}, {1, 1, 0}}));
}

TEST(Orders, ACopyOfThreadsReadsWhenItIsDone) {
  const std::string wait = "  cp.async.wait_all;\n";
  const auto text = [&](bool first) {
    return oneLane("  mov.u32 %r2, buffer;\n  mov.u32 %r3, 5;\n"
                   "  cp.async.ca.shared.global [%r2], [%out+16], 4;\n" +
                       (first ? wait : "") +
                       "  st.global.b32 [%out+16], %r3;\n"
                       "  atom.global.add.u32 %r4, [%out+32], 1;\n" +
                       wait + "  ld.shared.b32 %r5, [%r2];\n  st.global.b32 [%out], %r5;\n",
                   "  .shared .align 16 .b8 buffer[16];\n");
  };
  const Explored late = explore(text(false), {.words = 12, .check = "off"});
  EXPECT_THAT(late.run.error, HasSubstr("the result depends on the order: byte 0 of 'out'"));
  const Explored right = explore(text(true), {.words = 12});
  EXPECT_EQ(right.run.error + right.run.note, "");
  EXPECT_EQ(right.report.orders, 1u);
  EXPECT_EQ(right.run.out[0], 0u);
}

/// Two warps, of which one lane each executes the body after the other has initialised `bar`.
std::string barrierKernel(int arrivals, const std::string &body) {
  return kernelText("  and.b32 %r0, %t, 31;\n  shr.u32 %r1, %t, 5;\n  mov.u32 %r2, bar;\n"
                    "  setp.ne.u32 %p0, %t, 0;\n  setp.ne.u32 %p1, %r0, 0;\n"
                    "  setp.eq.u32 %p2, %r1, 0;\n  @%p0 bra READY;\n" +
                        fmt::format("  mbarrier.init.shared::cta.b64 [%r2], {};\n", arrivals) +
                        "READY:\n  bar.sync 0;\n  @%p1 bra END;\n"
                        "  mbarrier.arrive.shared::cta.b64 %rd1, [%r2];\n" +
                        body + "END:\n",
                    "  .shared .align 8 .b64 bar;\n");
}

TEST(Orders, AWaitByStateMayComeTooLate) {
  const std::string body = "  @%p2 bra END;\nW:\n"
                           "  mbarrier.test_wait.shared::cta.b64 %p3, [%r2], %rd1;\n"
                           "  @!%p3 bra W;\n";
  EXPECT_THAT(explore(barrierKernel(1, body), {.warps = 2, .check = "off"}).run.error,
              HasSubstr("is waited for with the state of phase 0"));
  const Explored right = explore(barrierKernel(2, body), {.warps = 2, .check = "off"});
  EXPECT_EQ(right.run.error, "");
  EXPECT_TRUE(right.report.complete);
}

TEST(Orders, ArrivalsThatAreCountedDoNotCommute) {
  const auto text = [](const char *count) {
    return barrierKernel(3, fmt::format("  {};\n  mul.wide.u32 %rd2, %r1, 4;\n"
                                        "  add.u64 %rd2, %rd2, %out;\n"
                                        "  st.global.b32 [%rd2], %r3;\n",
                                        count));
  };
  EXPECT_THAT(explore(text("mbarrier.pending_count.b64 %r3, %rd1"), {.warps = 2}).run.error,
              HasSubstr("the result depends on the order"));
  const Explored right = explore(text("mov.u32 %r3, 3"), {.warps = 2});
  EXPECT_EQ(right.run.error, "");
  EXPECT_EQ(right.report.orders, 1u);
}

TEST(Orders, ReductionsCommuteHoweverManyKindsThereAre) {
  std::string body;
  int place = 0;
  for (const char *kind : {"and.b32", "or.b32", "xor.b32", "add.u32", "min.u32", "max.u32",
                           "min.s32", "max.s32"})
    body += fmt::format("  red.global.{} [%out+{}], %r1;\n", kind, 8 * place++);
  for (const char *kind : {"and.b64", "or.b64", "xor.b64", "add.u64", "min.u64", "max.u64"})
    body += fmt::format("  red.global.{} [%out+{}], %out;\n", kind, 8 * place++);
  body.resize(body.rfind("  red"));
  const Explored found = explore(oneLane(body), {.warps = 2, .words = 32});
  EXPECT_EQ(found.run.error, "");
  EXPECT_EQ(found.report.orders, 1u);
}

//===--- Loops that wait --------------------------------------------------===//

TEST(Orders, ALoopOfPlainReadsEnds) {
  const Explored found = explore(
      oneLane("  setp.eq.u32 %p1, %r1, 1;\n  @%p1 bra SET;\n"
              "SPIN:\n  ld.global.b32 %r2, [%out];\n  setp.eq.u32 %p2, %r2, 0;\n"
              "  @%p2 bra SPIN;\n  bra END;\nSET:\n  mov.u32 %r3, 7;\n"
              "  st.global.b32 [%out], %r3;\n"),
      {.warps = 2, .check = "off"});
  EXPECT_EQ(found.run.error, "");
  EXPECT_TRUE(found.report.complete);
  EXPECT_TRUE(found.report.everyAccess);
}

TEST(Orders, ALoopThatCountsWhileItWaitsIsAnError) {
  const Explored found = explore(
      oneLane("SPIN:\n  add.u32 %r4, %r4, 1;\n  ld.acquire.gpu.global.b32 %r2, [%out];\n"
              "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n"),
      {});
  EXPECT_THAT(found.run.error, HasSubstr("warp 0, at test.ptx:"));
  EXPECT_THAT(found.run.error, HasSubstr("never came back to the same registers"));
}

TEST(Orders, TheLimitEndsALoopThatWrites) {
  const std::string text =
      oneLane("  mov.u32 %r3, 0;\nSPIN:\n  add.u32 %r3, %r3, 1;\n"
              "  st.release.gpu.global.b32 [%out], %r3;\n  setp.lt.u32 %p2, %r3, 100;\n"
              "  @%p2 bra SPIN;\n");
  EXPECT_THAT(explore(text, {.limit = 300}).run.error, HasSubstr("endless loop"));
  EXPECT_EQ(explore(text, {.limit = 1000}).run.error, "");
}

TEST(Orders, ALoopWaitsForATimeLimitOfAnotherCluster) {
  const auto text = [](const char *flag) {
    return oneLane(
        fmt::format("  mov.u32 %r3, %ctaid.x;\n  setp.eq.u32 %p1, %r3, 1;\n  @%p1 bra SET;\n"
                    "SPIN:\n  ld.acquire.gpu.global.b32 %r2, [%out];\n"
                    "  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra SPIN;\n  bra END;\nSET:\n"
                    "  mov.u32 %r4, bar;\n  mbarrier.init.shared::cta.b64 [%r4], 1;\n"
                    "  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;\n"
                    "  mov.u32 %r5, {};\n  st.release.gpu.global.b32 [%out], %r5;\n",
                    flag),
        "  .shared .align 8 .b64 bar;\n");
  };
  EXPECT_EQ(explore(text("1"), {.ctas = 2}).run.error, "");
  EXPECT_THAT(explore(text("0"), {.ctas = 2}).run.error, HasSubstr("livelock"));
}

//===--- Registers --------------------------------------------------------===//

/// Warps of 128 registers, each of which executes its text.
std::string registerKernel(const std::vector<std::string> &warps) {
  std::string body = "  shr.u32 %r1, %t, 5;\n  mov.u32 %r2, bar;\n  setp.ne.u32 %p0, %t, 0;\n"
                     "  @%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 32;\n"
                     "READY:\n  bar.sync 0;\n";
  for (size_t i = 0; i < warps.size(); ++i)
    body += fmt::format(
        "  setp.ne.u32 %p1, %r1, {0};\n  @%p1 bra NOT{0};\n{1}  bra END;\nNOT{0}:\n", i, warps[i]);
  std::string text = kernelText(body + "END:\n", "  .shared .align 8 .b64 bar;\n");
  return text.replace(text.find("\n{\n"), 1, " .maxnreg 128\n");
}

const std::string kGive = "  setmaxnreg.dec.sync.aligned.u32 88;\n",
                  kTake = "  setmaxnreg.inc.sync.aligned.u32 168;\n",
                  kGiveBack = "  setmaxnreg.dec.sync.aligned.u32 128;\n",
                  kTell = "  mbarrier.arrive.shared::cta.b64 %rd1, [%r2];\n",
                  kHear = "W:\n  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n"
                          "  @!%p2 bra W;\n";

TEST(Orders, RegistersThatAreGivenAndTakenHaveNoOrder) {
  const Explored found = explore(
      registerKernel({kGive, kGive, kGive, kGive, kTake, kTake, kTake, kTake}), {.warps = 8});
  EXPECT_EQ(found.run.error + found.run.note, "");
  EXPECT_EQ(found.report.orders, 1u);
  EXPECT_TRUE(found.report.complete);
  EXPECT_THAT(explore(registerKernel({kGive, kTake, kTake}), {.warps = 3}).run.error,
              HasSubstr("deadlock"));
}

TEST(Orders, WhoTakesRegistersFirstMatters) {
  // Only one of two warps can have more registers at a time. If it is the one that waits for the
  // other, both wait for ever. In the first order it is not.
  const Explored wrong = explore(
      registerKernel({kGive, kTake + kTell + kGiveBack, kTake + kHear + kGiveBack}), {.warps = 3});
  EXPECT_THAT(wrong.run.error, HasSubstr("deadlock"));
  EXPECT_GT(wrong.report.orders, 1u);
  const Explored right = explore(
      registerKernel({kGive, kTake + kTell + kGiveBack, kHear + kTake + kGiveBack}), {.warps = 3});
  EXPECT_EQ(right.run.error + right.run.note, "");
  EXPECT_TRUE(right.report.complete);
}

TEST(Orders, WhatIsLeftIsThatOfAWholeOrder) {
  // One of 24 orders, and the beginning of the second: each warp has written its word.
  const Explored some = explore(numberKernel(false), {.warps = 4, .most = 1, .check = "off"});
  EXPECT_FALSE(some.report.complete);
  EXPECT_EQ(some.report.orders, 1u);
  const Explored all = explore(numberKernel(false), {.warps = 4, .check = "off"});
  EXPECT_TRUE(all.report.complete);
  EXPECT_EQ(some.run.out, all.run.out);
}

//===--- Replay -----------------------------------------------------------===//

TEST(Orders, AnOrderOfAnotherKernelIsAnError) {
  for (const char *order : {"test: 0.0.9", "test: 0.0.9 0.0.0", "test: 0.0.0*99"})
    EXPECT_THAT(explore(addKernel(true), {.warps = 2, .replay = order}).run.error,
                HasSubstr("the order to replay is not one of this launch"))
        << order;
  EXPECT_EQ(explore(addKernel(true), {.warps = 2, .replay = "test: 0.0.1"}).run.error, "");
}

//===--- Orders that are left out -----------------------------------------===//

/// Random instructions of two or three warps on three words of global memory.
std::string randomKernel(std::mt19937 &random, uint32_t warps) {
  static const char *const kinds[] = {
      "  ld.global.b32 %r8, [%out+{0}];\n",
      "  st.global.b32 [%out+{0}], %r8;\n",
      "  atom.global.exch.b32 %r8, [%out+{0}], %r8;\n",
      "  red.global.add.u32 [%out+{0}], 5;\n",
      "  ld.relaxed.gpu.global.b32 %r8, [%out+{0}];\n",
      "  st.release.gpu.global.b32 [%out+{0}], %r8;\n",
  };
  return warpByWarp(warps, [&](uint32_t) {
    std::string lines;
    for (size_t i = 0, count = 1 + random() % (warps == 2 ? 3 : 1); i < count; ++i)
      lines += fmt::format(fmt::runtime(kinds[random() % std::size(kinds)]), random() % 3 * 4);
    return lines;
  });
}

TEST(Orders, EveryResultOfEveryInterleavingIsFound) {
  std::mt19937 random(11);
  uint64_t all = 0, run = 0, several = 0;
  for (int trial = 0; trial < 16; ++trial) {
    const uint32_t warps = trial % 8 == 0 ? 3 : 2;
    const std::string text = randomKernel(random, warps);
    Wanted wanted{.warps = warps, .results = true, .check = "off"};
    const Explored reduced = explore(text, wanted);
    wanted.reduce = false;
    const Explored brute = explore(text, wanted);
    ASSERT_EQ(reduced.run.error + brute.run.error, "") << text;
    EXPECT_EQ(reduced.results, brute.results) << text;
    EXPECT_TRUE(reduced.report.complete);
    all += brute.report.orders;
    run += reduced.report.orders;
    several += reduced.results.size() > 1;
  }
  EXPECT_GT(all, 3 * run);
  EXPECT_GT(several, 4u);
}

} // namespace
