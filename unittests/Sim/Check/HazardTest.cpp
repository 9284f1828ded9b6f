// Litmus kernels of the hazard checker: each is clean, and with one line changed it is reported
// with its rule, under schedules that make the race visible and under those that do not.
#include "KernelHarness.h"
#include "fp4/Sim/HazardChecker.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

const std::string shared = "  .shared .align 128 .b8 buf[1024];\n  .shared .align 8 .b64 full;\n"
                           "  .shared .align 8 .b64 second;\n  .shared .align 8 .b64 empty;\n";

/// t in %t, 4 * t + buf in %r0, buf in %r1, full in %r2, second in %r3, empty in %r4.
std::string litmus(const std::string &body) {
  return kernelText("  mov.u32 %r1, buf;\n  mov.u32 %r2, full;\n  mov.u32 %r3, second;\n"
                    "  mov.u32 %r4, empty;\n  mad.lo.u32 %r0, %t, 4, %r1;\n"
                    "  setp.eq.u32 %p0, %t, 0;\n  setp.ge.u32 %p1, %t, 32;\n" +
                        body,
                    shared);
}

const std::string init = "  @!%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 1;\n"
                         "  mbarrier.init.shared::cta.b64 [%r3], 1;\n"
                         "  mbarrier.init.shared::cta.b64 [%r4], 32;\n"
                         "  fence.mbarrier_init.release.cluster;\nREADY:\n  bar.sync 0;\n";

std::string copyIn(const std::string &barrier) {
  return "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + barrier + "], 128;\n" +
         "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%out], 128, [" +
         barrier + "];\n";
}

std::string waitOn(const std::string &barrier, const std::string &label) {
  return label + ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [" + barrier +
         "], 0;\n  @!%p5 bra " + label + ";\n";
}

struct Litmus {
  const char *name;
  std::string text, from, to; ///< `from` replaced by `to` makes it race
  HazardRule rule;
  const char *words; ///< part of the remedy
  uint32_t threads = 64, cluster = 1;
  bool strict = false; ///< the default accepts it
};

std::vector<Litmus> litmusTests() {
  const std::string exchange =
      litmus("  st.shared.b32 [%r0], %t;\n  bar.sync 0;\n  xor.b32 %r5, %t, 32;\n"
             "  mad.lo.u32 %r6, %r5, 4, %r1;\n  ld.shared.b32 %v0, [%r6];\n");
  const std::string store =
      litmus("  @!%p1 st.shared.b32 [%r0], %t;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
             "  @!%p0 bra END;\n  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group.read 0;\n"
             "  st.shared.b32 [%r1], %t;\n  cp.async.bulk.wait_group 0;\nEND:\n");
  const std::string waitFull = waitOn("%r2", "W1");
  const std::string load = litmus(init + "  @!%p0 bra WAIT;\n" + copyIn("%r2") + "WAIT:\n" +
                                  waitFull + "  @!%p1 ld.shared.b32 %v0, [%r0];\n  bar.sync 0;\n");
  const std::string waitEmpty = waitOn("%r4", "W2");
  const std::string arriveEmpty = "  mbarrier.arrive.shared::cta.b64 _, [%r4];\n";
  const std::string readStage = "  ld.shared.b32 %v0, [%r0+-128];\n";
  const std::string pipeline =
      litmus(init + "  @%p1 bra READ;\n  @!%p0 bra END;\n" + copyIn("%r2") + waitEmpty +
             copyIn("%r3") + waitOn("%r3", "W3") + "  bra END;\nREAD:\n" + waitFull + readStage +
             arriveEmpty + "END:\n  bar.warp.sync 0xffffffff;\n  bar.sync 0;\n");
  const std::string passing =
      litmus(init +
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
  const std::string flip = "  xor.b32 %r7, %r7, 1;\n";
  const std::string twice = litmus(
      init +
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
      init + "  @%p1 bra ARRIVE;\n" + waitFull +
      "  bar.arrive 1, 64;\n  bra END;\nARRIVE:\n  setp.ne.u32 %p6, %t, 32;\n  mov.u32 %r7, 0;\n"
      "  @!%p6 mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
      "LATER:\n  add.u32 %r7, %r7, 1;\n  setp.lt.u32 %p7, %r7, 4000;\n  @%p7 bra LATER;\n"
      "  bar.sync 1, 64;\n  @!%p6 mbarrier.arrive.shared::cta.b64 _, [%r2];\nEND:\n");
  // Of the bytes that it fills, a copy reads as many as it says.
  const std::string nothing =
      litmus("  @%p1 st.global.b32 [%out], %t;\n  @%p1 bra END;\n"
             "  cp.async.ca.shared.global [%r0], [%out], 4, 0;\n  cp.async.wait_all;\nEND:\n");
  // Every warp stores what all of them have.
  const std::string same = litmus("  mov.u32 %r5, 7;\n  st.shared.b32 [%r1], %r5;\n");
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
  // A copy that came later is done; the store need not be.
  const std::string roundTrip =
      litmus(init +
             "  @!%p0 bra END;\n  st.shared.b32 [%r1], %t;\n  fence.proxy.async.shared::cta;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
             "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
             "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+512], "
             "[%out+128], 128, [%r2];\n" +
             waitFull + "  ld.global.b32 %v0, [%out];\nEND:\n");
  // Five warps read, one writes; the last reader is one too many for who keeps four.
  const std::string lastReader =
      litmus("  shr.u32 %r5, %t, 5;\n  setp.eq.u32 %p2, %r5, 5;\n  setp.eq.u32 %p3, %r5, 4;\n"
             "  @%p2 bra WRITE;\n  @!%p3 ld.global.b32 %v0, [%out];\n"
             "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n  bra END;\n"
             "WRITE:\n  bar.sync 1, 192;\n  st.global.b32 [%out], %r5;\nEND:\n");
  using R = HazardRule;
  return {
      {"wgmma not waited for", multiply, "  wgmma.wait_group.sync.aligned 0;\n  bar.sync 0;\n",
       "  bar.sync 0;\n", R::OverwrittenWhileRead, "wait_group", 128},
      {"a copy that reads nothing", nothing, "4, 0", "4, 4", R::GlobalRace, "barrier"},
      {"warps store different values", same, "mov.u32 %r5, 7", "shr.u32 %r5, %t, 5", R::SharedRace,
       "bar.sync"},
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
      {"stage reused without waiting", pipeline, waitEmpty, "", R::OverwrittenWhileRead,
       "empty barrier"},
      {"arrival before the read", pipeline, readStage + arriveEmpty, arriveEmpty + readStage,
       R::OverwrittenWhileRead, "empty barrier"},
      {"mbarrier.init not ordered", useInit, "  bar.sync 0;\n", "", R::MbarrierInit, "bar.sync"},
      {"relaxed wait", passing, "try_wait.parity.acquire.cta", "try_wait.parity.relaxed.cta",
       R::RelaxedSync, ".acquire"},
      {"relaxed arrival", passing, "arrive.release.cta", "arrive.relaxed.cta", R::RelaxedSync,
       ".release"},
      {"relaxed cluster barrier", peer, "arrive.release.aligned", "arrive.relaxed.aligned",
       R::RelaxedSync, ".release", 64, 2},
      {"mbarrier.init not ordered before cp.async.mbarrier.arrive", arriving, "  bar.sync 0;\n", "",
       R::MbarrierInit, "bar.sync"},
      {"cp.async.mbarrier.arrive not waited for", arriving, waitFull, "", R::UnwaitedCopy,
       "cp.async.wait_group"},
      {"a group of cp.async too few is waited for", groups, "wait_group 1", "wait_group 2",
       R::UnwaitedCopy, "cp.async.wait_group"},
      {"the last cp.async is not waited for", groups, "  cp.async.wait_all;\n", "", R::UnwaitedCopy,
       "cp.async.wait_group"},
      {"a phase that nobody knows to have been seen", laps, "  bar.sync 1, 64;\n", "",
       R::LappedWait, "empty barrier"},
      {"a store is not waited for, a later copy is", roundTrip, "  cp.async.bulk.wait_group 0;\n",
       "", R::UnwaitedCopy, "wait_group"},
      {"the last of many readers is not waited for", lastReader,
       "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n",
       "  bar.arrive 1, 192;\n  @%p3 ld.global.b32 %v0, [%out];\n", R::GlobalRace, "barrier", 192},
  };
}

Litmus litmusNamed(const std::string &name) {
  for (const Litmus &test : litmusTests())
    if (test.name == name)
      return test;
  ADD_FAILURE() << name;
  return {};
}

struct Judged {
  std::vector<HazardReport> reports;
  std::string error;
  std::string text() const {
    std::string all = error;
    for (const HazardReport &report : reports)
      all += report.text();
    return all;
  }
};

Judged judge(const std::string &text, SimOptions options, const Litmus &test) {
  HazardChecker checker({.strict = test.strict});
  options.observer = &checker;
  options.uninitializedReads = UninitializedReads::Ignore;
  LaunchConfig config;
  config.block = {test.threads, 1, 1};
  config.grid = config.cluster = {test.cluster, 1, 1};
  const RunResult result = runText(text, options, config, 256);
  return {checker.reports(), result.error};
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Hazards, PassingTwinsAreClean) {
  for (const Litmus &test : litmusTests())
    for (const SimOptions &options : schedules(3)) {
      const Judged judged = judge(test.text, options, test);
      EXPECT_EQ(judged.text(), "") << test.name << ", " << describe(options);
    }
}

TEST(Hazards, RacingTwinsAreReported) {
  for (const Litmus &test : litmusTests()) {
    const std::string racing = replaced(test.text, test.from, test.to);
    for (CompletionPolicy policy :
         {CompletionPolicy::Eager, CompletionPolicy::Lazy, CompletionPolicy::Random}) {
      SimOptions options = schedules(1)[size_t(policy)];
      const Judged judged = judge(racing, options, test);
      // In some orders the program fails before there is a second access to compare.
      bool found = policy == CompletionPolicy::Random && !judged.error.empty();
      for (const HazardReport &report : judged.reports)
        found |= report.rule == test.rule && report.remedy.find(test.words) != std::string::npos;
      EXPECT_TRUE(found) << test.name << " should be " << stringify(test.rule) << ", "
                         << describe(options) << ":\n"
                         << judged.text() << racing;
    }
  }
}

TEST(Hazards, AReportNamesBothAccessesAndTheEdge) {
  const Litmus test = litmusNamed("copy not waited for");
  const Judged judged = judge(replaced(test.text, test.from, test.to), schedules()[0], test);
  ASSERT_FALSE(judged.reports.empty());
  const std::string text = judged.reports[0].text();
  EXPECT_THAT(text, HasSubstr("[unwaited-copy]"));
  EXPECT_THAT(text, HasSubstr("cp.async.bulk.shared::cta.global"));
  EXPECT_THAT(text, HasSubstr("ld.shared.b32 %v0, [%r0]"));
  EXPECT_THAT(text, HasSubstr("warp 0 of CTA rank 0"));
  EXPECT_THAT(text, HasSubstr("missing: a wait on the phase of the full barrier"));
}

TEST(Hazards, APairOfLinesIsReportedOnce) {
  const Litmus test = litmusNamed("no bar.sync");
  const Judged judged = judge(replaced(test.text, test.from, test.to), schedules()[0], test);
  EXPECT_EQ(judged.reports.size(), 1u) << judged.text();
}

/// Strict mode knows what was written since the allocation.
TEST(Hazards, UninitializedGlobalMemory) {
  const std::string text = kernelText("  ld.global.b32 %v0, [%out+8];\n");
  for (const bool written : {false, true}) {
    HazardChecker checker({.strict = true});
    SimOptions options;
    options.observer = &checker;
    Simulator simulator(options);
    simulator.memory().trackWrites();
    const uint64_t out = simulator.memory().allocate(64, "y");
    if (written)
      ASSERT_TRUE(simulator.memory().fill(out, 0, 64));
    auto program = parse(text);
    Params params;
    params.add(out);
    ASSERT_TRUE(
        simulator.launch(*program, "test", {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0}, params.span()));
    ASSERT_EQ(checker.reports().size(), size_t(!written));
    if (!written)
      EXPECT_THAT(checker.reports()[0].text(),
                  testing::AllOf(HasSubstr("[uninitialized-read]"), HasSubstr("byte 8 of 'y'")));
  }
}

/// A long pipeline must not make the clocks long: slots of tickets are used again.
TEST(Hazards, ManyTicketsAreFast) {
  const std::string text = litmus(
      init + "  @!%p0 bra END;\n  mov.u32 %r7, 0;\n  mov.u32 %r8, 0;\nAGAIN:\n" + copyIn("%r2") +
      "W1:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], %r7;\n  @!%p5 bra W1;\n"
      "  xor.b32 %r7, %r7, 1;\n  add.u32 %r8, %r8, 1;\n  setp.lt.u32 %p6, %r8, 20000;\n"
      "  @%p6 bra AGAIN;\nEND:\n");
  Litmus test{"", text, "", "", HazardRule::SharedRace, "", 32};
  EXPECT_EQ(judge(text, schedules()[1], test).text(), "");
}

/// The place in the source follows the place in the PTX.
TEST(Hazards, TheSourceLocation) {
  const Litmus test = litmusNamed("no bar.sync");
  std::string text = replaced(test.text, "  bar.sync 0;\n", "");
  text = replaced(text, "  ld.shared.b32", "  .loc 1 14 5\n  ld.shared.b32") +
         ".file 1 \"gemm.mlir\"\n";
  const Judged judged = judge(text, schedules()[0], test);
  EXPECT_THAT(judged.text(), HasSubstr(":3 (gemm.mlir:14:5): read by warp"));
}

/// cp.async writes through the generic proxy; strict mode wants the fence that CUTLASS leaves out.
TEST(Hazards, CopiesOfThreadsAreOfTheGenericProxy) {
  const std::string fence = "  fence.proxy.async.shared::cta;\n";
  const std::string text =
      litmus("  cp.async.ca.shared.global [%r0], [%out], 4;\n  cp.async.wait_all;\n" + fence +
             "  bar.sync 0;\n  @!%p0 bra END;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%out+128], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\nEND:\n");
  for (const bool strict : {false, true})
    for (const bool fenced : {false, true}) {
      HazardChecker checker({.strict = strict});
      SimOptions options = schedules()[0];
      options.observer = &checker;
      LaunchConfig config;
      config.block = {64, 1, 1};
      const RunResult result =
          runText(fenced ? text : replaced(text, fence, ""), options, config, 256);
      EXPECT_EQ(result.error, "");
      ASSERT_EQ(checker.reports().size(), size_t(strict && !fenced)) << strict << fenced;
      if (strict && !fenced) {
        EXPECT_EQ(checker.reports()[0].rule, HazardRule::MissingProxyFence);
      }
    }
}

/// The read that begins a loop of compare-and-swap; nothing but the atomic orders anything.
TEST(Hazards, APlainReadBesideAtomics) {
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

/// What compilers do and the default accepts: strict mode reports it.
TEST(Hazards, StrictTakesNoPracticeForGranted) {
  const struct {
    std::string text;
    HazardRule rule;
  } practices[] = {
      {litmus("  mov.u32 %r5, 7;\n  st.shared.b32 [%r1], %r5;\n"), HazardRule::SharedRace},
      // The word that tcgen05.alloc wrote becomes part of a stage.
      {litmus("  @%p1 bra ALLOCATED;\n"
              "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;\n"
              "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nALLOCATED:\n"
              "  bar.sync 0;\n  ld.shared.b32 %r9, [%r1];\n" +
              init + "  @!%p0 bra WAIT;\n" + copyIn("%r2") + "WAIT:\n" + waitOn("%r2", "W1") +
              "  bar.warp.sync -1;\n  @%p1 bra END;\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nEND:\n"),
       HazardRule::MissingProxyFence}};
  for (const auto &practice : practices) {
    EXPECT_EQ(judge(practice.text, schedules()[0], {}).text(), "") << practice.text;
    Litmus strict{};
    strict.strict = true;
    const Judged judged = judge(practice.text, schedules()[0], strict);
    ASSERT_FALSE(judged.reports.empty()) << judged.error << practice.text;
    EXPECT_EQ(judged.reports[0].rule, practice.rule) << judged.text();
  }
}

/// Scope counts in strict mode: .cta does not reach the other CTA.
TEST(Hazards, StrictScopes) {
  const std::string text = litmus(
      init + "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
             "  mov.u32 %r5, %cluster_ctarank;\n  setp.eq.u32 %p6, %r5, 0;\n  @%p6 bra READ;\n"
             "  mapa.shared::cluster.u32 %r6, %r0, 0;\n  mapa.shared::cluster.u32 %r7, %r4, 0;\n"
             "  st.shared::cluster.b32 [%r6], %t;\n"
             "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n  bra END;\nREAD:\n"
             "W1:\n  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r4], 0;\n"
             "  @!%p5 bra W1;\n  ld.shared.b32 %v0, [%r0];\nEND:\n"
             "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n");
  for (const bool strict : {false, true})
    for (const bool narrow : {false, true}) {
      HazardChecker checker({.strict = strict});
      SimOptions options = schedules()[0];
      options.observer = &checker;
      LaunchConfig config;
      config.block = {32, 1, 1};
      config.grid = config.cluster = {2, 1, 1};
      const std::string ptx =
          narrow ? replaced(text, "arrive.release.cluster.shared", "arrive.release.cta.shared")
                 : text;
      const RunResult result = runText(ptx, options, config, 32);
      EXPECT_EQ(result.error, "");
      ASSERT_EQ(checker.reports().size(), size_t(strict && narrow));
      if (strict && narrow) {
        EXPECT_EQ(checker.reports()[0].rule, HazardRule::RelaxedSync);
      }
    }
}

} // namespace
