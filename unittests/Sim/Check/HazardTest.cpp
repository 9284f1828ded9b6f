// Reports of the hazard checker. LitmusTest.cpp has the rules.
#include "Litmus.h"
#include "Sim/Decode/ProgramImpl.h"

#include <algorithm>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

Litmus litmusNamed(const std::string &name) {
  for (const Litmus &test : allLitmus())
    if (test.name == name)
      return test;
  ADD_FAILURE() << name;
  return {};
}

TEST(Hazards, AReportNamesBothAccessesAndTheEdge) {
  const Litmus test = litmusNamed("copy not waited for");
  const Judged judged = judge(racing(test), schedules()[0], test);
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
  const Judged judged = judge(racing(test), schedules()[0], test);
  ASSERT_EQ(judged.reports.size(), 1u) << judged.text();
  EXPECT_EQ(judged.reports[0].count, 8u); // 32 bytes at a time, of two warps
  EXPECT_THAT(judged.text(), HasSubstr("note: found 8 times at this pair of lines\n"));
}

/// Copies that a compiler makes of one line are one, as far as they are of one kind.
TEST(Hazards, CopiesOfOneLineAreReportedOnce) {
  const std::string first = "  st.shared.b32 [%r1], %t;\n",
                    second = "  st.shared.b32 [%r1+64], %t;\n", other = "  .loc 1 15 5\n",
                    load = "  @!%p1 st.shared.b32 [%r1+64], %t;\n"
                           "  ld.shared.b32 %v0, [%r1+64];\n";
  const auto races = [](const std::string &body) {
    const Judged judged =
        judge(litmus("  .loc 1 14 5\n" + body) + ".file 1 \"gemm.cu\"\n", schedules()[0], {});
    EXPECT_EQ(judged.error, "");
    std::vector<uint64_t> counts;
    for (const HazardReport &report : judged.reports)
      if (report.rule == HazardRule::SharedRace)
        counts.push_back(report.count);
    return counts;
  };
  EXPECT_EQ(races(first), (std::vector<uint64_t>{1}));
  EXPECT_EQ(races(first + second), (std::vector<uint64_t>{2}));
  EXPECT_EQ(races(first + other + second), (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(races(first + load).size(), 2u);
}

/// Generators make names of hundreds of characters, and loads of 128 registers.
TEST(Hazards, LongNamesAndListsAreShortened) {
  std::string list, name = "kernel_" + std::string(200, 'x') + "_end";
  for (int i = 0; i < 64; ++i)
    list += (i ? ", %v" : "%v") + std::to_string(i);
  const std::string text =
      litmus("  tcgen05.ld.sync.aligned.32x32b.x64.b32 {" + list + "}, [%r1];\n");
  const Judged judged = judge(text, schedules()[0], {});
  EXPECT_THAT(judged.error, HasSubstr("kernel 'test'"));
  const auto program = Program::parse(text, "test.ptx");
  ASSERT_TRUE(program);
  uint32_t line =
      1 + uint32_t(std::count(text.begin(), text.begin() + long(text.find("{%v0")), '\n'));
  EXPECT_EQ((*program)->impl().shownLine(line),
            "tcgen05.ld.sync.aligned.32x32b.x64.b32 {%v0, ..., %v63}, [%r1];");
  EXPECT_EQ(displayName(name).size(), 99u);
  EXPECT_THAT(displayName(name), testing::EndsWith("..." + std::string(12, 'x') + "_end"));
  EXPECT_EQ(displayName("kernel_short"), "kernel_short");
}

TEST(Hazards, AMissingWgmmaFenceNamesTheRegister) {
  const auto words = [](const std::string &name) {
    const Litmus test = litmusNamed(name);
    return judge(racing(test), schedules()[0], test).text();
  };
  EXPECT_THAT(words("a sum behind the fence of a product"),
              AllOf(HasSubstr("(register '%v1' of warp 0"), HasSubstr("write by warp 0"),
                    HasSubstr("add.u32 %v1, %t, %t")));
  EXPECT_THAT(words("an accumulator copied away behind the fence"),
              AllOf(HasSubstr("(register '%v2' of warp 0"), HasSubstr("read by warp 0")));
  EXPECT_THAT(words("a product without a fence"), HasSubstr("has executed no wgmma.fence before"));
}

/// Compilers zero two accumulators behind one fence, the second from the first. A product that is
/// copied away is read.
TEST(Hazards, AccumulatorsAreZeroedOneFromTheOther) {
  const std::string product =
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0, %v1, %v2, %v3}, %rd1, %rd1, "
      "1, 1, 1, 0, 0;\n  wgmma.commit_group.sync.aligned;\n"
      "  wgmma.wait_group.sync.aligned 0;\n";
  const std::string fence = "  wgmma.fence.sync.aligned;\n", copy = "  mov.b32 %v4, %v0;\n",
                    zeros = "  mov.b32 %v0, 0;\n  mov.b32 %v1, %v0;\n  mov.b32 %v2, %v0;\n"
                            "  mov.b32 %v3, %v0;\n";
  const auto words = [](const std::string &body, bool strict) {
    Litmus test{};
    test.threads = 128;
    return judge(litmus("  shr.u32 %r5, %r1, 4;\n  cvt.u64.u32 %rd1, %r5;\n" + body),
                 schedules()[0], test, strict)
        .text();
  };
  const auto alarms = AllOf(HasSubstr("[missing-wgmma-fence]"), HasSubstr("read by warp"));
  EXPECT_EQ(words(fence + zeros + copy + product, false), "");
  EXPECT_THAT(words(fence + zeros + copy + product, true), HasSubstr("write by warp"));
  EXPECT_THAT(words(zeros + fence + copy + product, false), alarms);
  EXPECT_THAT(words(fence + zeros + product + copy + product, false), alarms);
  EXPECT_EQ(words(fence + zeros + product + copy + fence + product, false), "");
}

/// Bytes that another write overwrites are not called read.
TEST(Hazards, WritesOverWritesAreNoReads) {
  const Litmus test = litmusNamed("a copy over a copy in flight");
  for (const SimOptions &options : schedules(3))
    EXPECT_THAT(judge(racing(test), options, test).text(),
                AllOf(HasSubstr("[overwritten-while-written]"),
                      testing::Not(HasSubstr("overwritten-while-read"))));
}

/// Rows of 4 and 6 bits are 16 bytes apart; of the padding behind them ldmatrix reads nothing.
TEST(Hazards, TheRowsOfPackedMatricesEndBeforeTheirPadding) {
  const std::pair<const char *, unsigned> formats[] = {{"b4x16_p64", 8}, {"b6x16_p32", 12}};
  for (const auto &[format, bytes] : formats)
    for (unsigned at : {bytes, bytes - 4}) {
      Litmus test{};
      test.text = litmus("  shl.b32 %r5, %t, 4;\n  add.u32 %r5, %r5, %r1;\n  @%p1 bra OTHER;\n"
                         "  st.shared.b32 [%r5], %t;\n  st.shared.b32 [%r5+4], %t;\n"
                         "  st.shared.b32 [%r5+8], %t;\n  bar.sync 0;\n"
                         "  ldmatrix.sync.aligned.m8n16.x4.shared.b8x16." +
                         std::string(format) +
                         " {%v0, %v1, %v2, %v3}, [%r5];\n  bra END;\nOTHER:\n"
                         "  bar.sync 0;\n  st.shared.b32 [%r5+" +
                         std::to_string(int(at) - 512) + "], %t;\nEND:\n");
      test.threads = 64;
      test.cluster = 1;
      const Judged judged = judge(test.text, schedules()[0], test);
      EXPECT_EQ(judged.error, "");
      EXPECT_EQ(judged.reports.empty(), at == bytes) << format << " " << at << judged.text();
    }
}

/// Strict mode knows what was written since the allocation.
TEST(Hazards, UninitializedGlobalMemory) {
  const std::string text = kernelText("  ld.global.b32 %v0, [%out+8];\n");
  for (const bool written : {false, true}) {
    SimOptions options;
    const auto instruments = instrument("strict", options);
    Simulator simulator(options);
    const uint64_t out = simulator.memory().allocate(64, "y");
    if (written)
      ASSERT_TRUE(simulator.memory().fill(out, 0, 64));
    auto program = parse(text);
    Params params;
    params.add(out);
    ASSERT_TRUE(
        simulator.launch(*program, "test", {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0}, params.span()));
    const auto reports = instruments->hazards();
    ASSERT_EQ(reports.size(), size_t(!written));
    if (!written)
      EXPECT_THAT(reports[0].text(),
                  testing::AllOf(HasSubstr("[uninitialized-read]"), HasSubstr("byte 8 of 'y'")));
  }
}

/// A hazard is found although an earlier launch had it, or there was no room to describe it.
TEST(Hazards, EveryLaunchIsJudged) {
  auto program = parse(kernelText("  ld.global.b32 %v0, [%out+8];\n"));
  for (const size_t room : {0u, 64u}) {
    HazardChecker checker({.strict = true, .maxReports = room});
    SimOptions options;
    options.observer = &checker;
    options.judgement = Judgement::Letter;
    options.trackWrites = true;
    Simulator simulator(options);
    for (uint64_t launch = 1; launch <= 3; ++launch) {
      const uint64_t out = simulator.memory().allocate(64, "y");
      const bool written = launch == 2;
      if (written)
        ASSERT_TRUE(simulator.memory().fill(out, 0, 64));
      Params params;
      params.add(out);
      ASSERT_TRUE(
          simulator.launch(*program, "test", {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0}, params.span()));
      EXPECT_EQ(checker.found(), launch - (launch >= 2)) << launch;
      ASSERT_EQ(checker.reports().size(), room ? 1u : 0u);
      if (room)
        EXPECT_EQ(checker.reports()[0].last, checker.found());
    }
  }
}

/// A long pipeline must not make the clocks long: slots of tickets are used again.
TEST(Hazards, ManyTicketsAreFast) {
  const std::string text =
      litmus(litmusInit + "  @!%p0 bra END;\n  mov.u32 %r7, 0;\n  mov.u32 %r8, 0;\nAGAIN:\n" +
             copyIn("%r2") +
             "W1:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], %r7;\n  @!%p5 bra W1;\n"
             "  xor.b32 %r7, %r7, 1;\n  add.u32 %r8, %r8, 1;\n  setp.lt.u32 %p6, %r8, 20000;\n"
             "  @%p6 bra AGAIN;\nEND:\n");
  Litmus test{"", text, "", "", HazardRule::SharedRace, "", 32};
  EXPECT_EQ(judge(text, schedules()[1], test).text(), "");
}

/// The place in the source follows the place in the PTX.
TEST(Hazards, TheSourceLocation) {
  std::string text = replaced(litmusNamed("no bar.sync").text, "  bar.sync 0;\n", "");
  text = replaced(text, "  ld.shared.b32", "  .loc 1 14 5\n  ld.shared.b32") +
         ".file 1 \"gemm.mlir\"\n";
  const Judged judged = judge(text, schedules()[0], litmusNamed("no bar.sync"));
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

/// Every warp may store the tile that all have (as in an example of CuTe DSL), but not one of its
/// own.
TEST(Hazards, WarpsStoreOneTile) {
  const std::string same = "  mul.lo.u32 %r6, %r6, 0;\n", own = "  mul.lo.u32 %r6, %r6, 4;\n";
  const std::string text =
      litmus("  st.shared.b32 [%r0], %t;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
             "  and.b32 %r5, %t, 31;\n  and.b32 %r6, %t, 32;\n" +
             same +
             "  add.u32 %r6, %r6, %r1;\n  setp.ne.u32 %p2, %r5, 0;\n  @%p2 bra END;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r6], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\nEND:\n");
  const Litmus test{"", text, "", "", HazardRule::OverwrittenWhileWritten, ""};
  for (const SimOptions &schedule : schedules()) {
    EXPECT_EQ(judge(text, schedule, test).text(), "");
    EXPECT_THAT(judge(replaced(text, same, own), schedule, test).text(),
                HasSubstr("[overwritten-while-written]"));
  }
}

/// Strict mode reports practices of compilers that the default accepts.
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
              litmusInit + "  @!%p0 bra WAIT;\n" + copyIn("%r2") + "WAIT:\n" + waitOn("%r2", "W1") +
              "  bar.warp.sync -1;\n  @%p1 bra END;\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nEND:\n"),
       HazardRule::MissingProxyFence}};
  for (const auto &practice : practices) {
    EXPECT_EQ(judge(practice.text, schedules()[0], {}).text(), "") << practice.text;
    const Judged judged = judge(practice.text, schedules()[0], {}, true);
    ASSERT_FALSE(judged.reports.empty()) << judged.error << practice.text;
    EXPECT_EQ(judged.reports[0].rule, practice.rule) << judged.text();
  }
  // The default wants the values to be equal, of every lane.
  for (const char *values :
       {"  shr.u32 %r5, %t, 5;\n", "  setp.eq.u32 %p2, %t, 40;\n  selp.b32 %r5, 1, 0, %p2;\n"}) {
    const Judged different =
        judge(litmus(values + std::string("  st.shared.b32 [%r1], %r5;\n")), schedules()[0], {});
    ASSERT_FALSE(different.reports.empty()) << values;
    EXPECT_EQ(different.reports[0].rule, HazardRule::SharedRace);
  }
}

/// The example of tcgen05.alloc in the PTX ISA: its warp reads the address behind it.
TEST(Hazards, AWarpReadsWhatItAllocated) {
  const std::string alloc = "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 ",
                    read = "  ld.shared.b32 %r9, [%r1];\n", meet = "  bar.sync 0;\n";
  const auto kernel = [&](const std::string &write, const std::string &other) {
    return litmus("  @%p1 bra OTHER;\n" + write + read +
                  "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\n" + meet +
                  "  bra END;\nOTHER:\n" + other + "END:\n");
  };
  const std::string right = alloc + "[%r1], 32;\n",
                    stored = "  @%p0 st.shared.b32 [%r1], 0;\n" + alloc + "[%r1+4], 32;\n";
  for (const bool strict : {false, true}) {
    const auto found = [&](const std::string &text) {
      return judge(text, schedules()[0], {}, strict).reports;
    };
    EXPECT_EQ(judge(kernel(right, meet + read), schedules()[0], {}, strict).text(), "");
    const auto early = found(kernel(right, read + meet)), byOne = found(kernel(stored, meet));
    ASSERT_FALSE(early.empty() || byOne.empty());
    EXPECT_EQ(early[0].rule, HazardRule::SharedRace);
    EXPECT_EQ(byOne[0].rule, HazardRule::LaneRace);
  }
}

/// The stores that every CTA or warp may make, wherever they go: memory of the device or of the
/// host, by generic address, another CTA's, by other instructions than st.
TEST(Hazards, EqualValuesMayBeStoredByMany) {
  const std::string generic = "  cvt.u64.u32 %rd1, %r1;\n  cvta.shared.u64 %rd1, %rd1;\n"
                              "  st.b32 [%rd1], %v0;\n";
  const std::string remote =
      "  mapa.shared::cluster.u32 %r6, %r1, 0;\n  st.shared::cluster.b32 [%r6], %v0;\n"
      "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";
  const std::string fragment = "  wmma.store.d.sync.aligned.m16n16k16.shared.row.f16 [%r1], "
                               "{%v0, %v0, %v0, %v0}, 16;\n";
  const std::string zeros = "  cvt.u64.u32 %rd1, %r1;\n  @%p0 st.shared.b32 [%r1], %v0;\n"
                            "  bar.warp.sync -1;\n  st.bulk.shared::cta [%r1], 64, 0;\n";
  const struct {
    std::string text;
    uint32_t cluster;
  } stores[] = {{generic, 1}, {remote, 2}, {fragment, 1}};
  for (const auto &[store, cluster] : stores)
    for (const bool equal : {true, false}) {
      Litmus test{};
      test.cluster = cluster;
      const std::string value = equal ? "  mov.u32 %v0, 7;\n"
                                      : "  mov.u32 %v0, %cluster_ctarank;\n"
                                        "  mad.lo.u32 %v0, %v0, 64, %t;\n  shr.u32 %v0, %v0, 5;\n";
      const Judged judged = judge(litmus(value + store), schedules()[0], test);
      EXPECT_EQ(judged.error, "");
      EXPECT_EQ(judged.reports.empty(), equal) << store << judged.text();
    }
}

/// A CTA per word of the host's memory, and all store the same: a flag, say.
TEST(Hazards, EqualValuesInMemoryOfTheHost) {
  for (const bool host : {false, true})
    for (const bool equal : {true, false}) {
      HazardChecker checker;
      SimOptions options;
      options.observer = &checker;
      Simulator simulator(options);
      std::vector<uint32_t> words(64);
      uint64_t out = reinterpret_cast<uint64_t>(words.data());
      if (host)
        ASSERT_TRUE(simulator.memory().share(words.data(), 256, "words"));
      else
        out = simulator.memory().allocate(256, "words");
      const auto program = parse(
          kernelText(std::string(equal ? "  mov.u32 %r1, 7;\n" : "  mov.u32 %r1, %ctaid.x;\n") +
                     "  st.global.b32 [%out], %r1;\n"));
      Params params;
      params.add(out);
      LaunchConfig config;
      config.grid = {4, 1, 1};
      ASSERT_TRUE(simulator.launch(*program, "test", config, params.span()));
      EXPECT_EQ(checker.reports().empty(), equal) << host;
    }
}

/// An mbarrier of another CTA: a cluster barrier that releases and acquires is enough in practice,
/// a relaxed one is not.
TEST(Hazards, InitializationsOfMbarriersOfOtherCtas) {
  const std::string fence = "  fence.mbarrier_init.release.cluster;\n";
  const auto kernel = [&](const std::string &fences, const std::string &arrive) {
    return litmus("  mov.u32 %r5, %cluster_ctarank;\n  setp.eq.u32 %p2, %r5, 0;\n"
                  "  @!%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 1;\n" +
                  fences + "READY:\n  bar.warp.sync -1;\n  barrier.cluster.arrive" + arrive +
                  ".aligned;\n  barrier.cluster.wait.aligned;\n  @!%p2 bra RECEIVE;\n"
                  "  @!%p0 bra DONE;\n  mapa.shared::cluster.u32 %r6, %r1, 1;\n"
                  "  mapa.shared::cluster.u32 %r7, %r2, 1;\n"
                  "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                  "[%r6], [%out], 16, [%r7];\n  bra DONE;\nRECEIVE:\n  @!%p0 bra DONE;\n"
                  "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n" +
                  waitOn("%r2", "W1") +
                  "DONE:\n  bar.warp.sync -1;\n"
                  "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n");
  };
  Litmus pair{};
  pair.threads = 32;
  pair.cluster = 2;
  for (const SimOptions &options : schedules(3)) {
    const auto words = [&](const std::string &fences, const std::string &arrive, bool strict) {
      return judge(kernel(fences, arrive), options, pair, strict).text();
    };
    for (const bool strict : {false, true}) {
      EXPECT_EQ(words(fence, ".relaxed", strict), "");
      EXPECT_EQ(words(fence, "", strict), "");
    }
    EXPECT_EQ(words("", "", false), "");
    EXPECT_THAT(words("", "", true), HasSubstr("[mbarrier-init-fence]"));
    EXPECT_THAT(words("", ".relaxed", false), HasSubstr("[mbarrier-init-fence]"));
    EXPECT_THAT(words("", ".relaxed", true), HasSubstr("[mbarrier-init]"));
  }
}

/// One of four warps that wait and multiply says that the stage is free: wgmma.wait_group told it
/// that the others have come as far. The text of PTX does not say so.
TEST(Hazards, AMmaIsOneOperationOfFourWarps) {
  const std::string wait = "  wgmma.wait_group.sync.aligned 0;\n";
  const std::string text =
      litmus(litmusInit +
             "  mov.u32 %v0, 0;\n  mov.u32 %v1, 0;\n  mov.u32 %v2, 0;\n  mov.u32 %v3, 0;\n"
             "  mov.u32 %v4, 0;\n  st.shared.b32 [%r0], %v0;\n  fence.proxy.async.shared::cta;\n"
             "  bar.sync 0;\n  cvt.u64.u32 %rd1, %r1;\n  shr.u64 %rd1, %rd1, 4;\n"
             "  or.b64 %rd1, %rd1, 0x1000080000;\n  setp.ne.u32 %p3, %v0, 0;\n"
             "  setp.ge.u32 %p6, %t, 128;\n  @%p6 bra PRODUCE;\n" +
             waitOn("%r2", "W1") +
             "  wgmma.fence.sync.aligned;\n"
             "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0, %v1, %v2, %v3}, "
             "{%v4, %v4, %v4, %v4}, %rd1, %p3, 1, 1, 0;\n  wgmma.commit_group.sync.aligned;\n" +
             wait +
             "  @%p1 bra END;\n  mbarrier.arrive.shared::cta.b64 _, [%r4];\n  bra END;\n"
             "PRODUCE:\n  setp.ne.u32 %p7, %t, 128;\n  @%p7 bra END;\n"
             "  mbarrier.arrive.shared::cta.b64 _, [%r2];\n" +
             waitOn("%r4", "W2") + "  mbarrier.arrive.shared::cta.b64 _, [%r2];\nEND:\n");
  Litmus test{"one of four", text, wait, "", HazardRule::LappedWait, "empty barrier"};
  test.threads = 256;
  for (const SimOptions &options : schedules(2)) {
    EXPECT_EQ(judge(text, options, test).text(), "") << describe(options);
    EXPECT_THAT(judge(racing(test), options, test).text(), HasSubstr("[lapped-wait]"));
    EXPECT_THAT(judge(text, options, test, true).text(), HasSubstr("[lapped-wait]"));
  }
}

/// Two stores of a warp, and one of another warp beside new bytes, write what is there already.
TEST(Hazards, EqualValuesMayBeStoredAgain) {
  const std::string again = "  and.b32 %r7, %t, 47;\n  mad.wide.u32 %rd0, %r7, 4, %out;\n"
                            "  st.global.b32 [%rd0], 7;\n  xor.b32 %r7, %r7, 1;\n"
                            "  mad.wide.u32 %rd0, %r7, 4, %out;\n  st.global.b32 [%rd0], ";
  for (const SimOptions &options : schedules(3)) {
    EXPECT_EQ(judge(litmus(again + "7;\n"), options, {}).text(), "");
    EXPECT_THAT(judge(litmus(again + "8;\n"), options, {}).text(), HasSubstr("[lane-race]"));
    EXPECT_FALSE(judge(litmus(again + "7;\n"), options, {}, true).reports.empty());
  }
}

/// Scope counts in strict mode: .cta does not reach the other CTA.
TEST(Hazards, StrictScopes) {
  const std::string text =
      litmus(litmusInit +
             "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
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

Litmus threeCtas() {
  Litmus test{};
  test.threads = 32;
  test.cluster = 1;
  test.clusters = 3;
  return test;
}

/// Tickets of two queues: whoever draws one counts on no other.
TEST(Hazards, RelaxedCountersAskedInTurnAreClean) {
  const std::string text = litmus(R"(
  @!%p0 bra END;
  atom.relaxed.gpu.global.add.u32 %r5, [%out], 1;
  atom.relaxed.gpu.global.add.u32 %r6, [%out+128], 1;
  atom.relaxed.gpu.global.add.u32 %r7, [%out], 1;
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r7;
END:
)");
  for (const SimOptions &options : schedules(3))
    EXPECT_EQ(judge(text, options, threeCtas(), true).text(), "") << describe(options);
}

/// Lanes of one warp that poll two words: what the second counts for is known, as of the first.
TEST(Hazards, LanesThatPollTwoWordsCountOnBoth) {
  for (const char *word : {"", "+64"}) {
    const std::string text = litmus(R"(
  mov.u32 %r5, %ctaid.x;
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra READ;
  @!%p0 bra END;
  red.relaxed.gpu.global.add.u32 [%out+128], 7;
  red.relaxed.gpu.global.add.u32 [%out)" +
                                    std::string(word) + R"(], 1;
  bra END;
READ:
  shr.u32 %r6, %t, 4;
  mul.wide.u32 %rd5, %r6, 64;
  add.u64 %rd5, %out, %rd5;
AGAIN:
  ld.relaxed.gpu.global.b32 %r7, [%rd5];
  setp.ne.u32 %p3, %r7, 0;
  vote.sync.any.pred %p3, %p3, -1;
  @!%p3 bra AGAIN;
  @!%p0 bra END;
  atom.relaxed.gpu.global.add.u32 %r6, [%out+128], 0;
  mul.wide.u32 %rd5, %r6, 1;
END:
)");
    Litmus two = threeCtas();
    two.clusters = 2;
    const Judged judged = judge(text, schedules()[0], two, /*strict=*/true);
    ASSERT_EQ(judged.reports.size(), 1u) << judged.text();
    EXPECT_EQ(judged.reports[0].rule, HazardRule::RelaxedSync);
  }
}

/// A thread that waits until all have counted has seen each count: their order is that of one
/// place.
TEST(Hazards, ARelaxedCountOfAllIsClean) {
  const std::string text = litmus(R"(
  @!%p0 bra END;
  red.relaxed.gpu.global.add.u32 [%out], 1;
AGAIN:
  ld.relaxed.gpu.global.b32 %r5, [%out];
  setp.lt.u32 %p2, %r5, 3;
  @%p2 bra AGAIN;
END:
)");
  for (const SimOptions &options : schedules(3))
    EXPECT_EQ(judge(text, options, threeCtas(), true).text(), "") << describe(options);
}

/// The last of three atomics is beside those of other CTAs, which its own older one does not hide
/// in strict mode.
TEST(Hazards, AnAtomicOfOneCtaDoesNotHideThoseOfOthers) {
  const std::string text = litmus(R"(
  @!%p0 bra END;
  atom.relaxed.gpu.global.inc.u32 %r5, [%out], 2;
  setp.ne.u32 %p2, %r5, 2;
  @%p2 bra END;
  atom.relaxed.gpu.global.exch.b32 %r6, [%out], 0;
  add.u32 %r6, %r6, 1;
END:
)");
  for (const bool strict : {false, true}) {
    EXPECT_EQ(judge(text, schedules()[0], threeCtas(), strict).text(), "");
    const Judged judged = judge(replaced(text, "gpu.global.exch", "cta.global.exch"),
                                schedules()[0], threeCtas(), strict);
    ASSERT_EQ(!judged.reports.empty(), strict) << judged.text();
    if (strict) {
      EXPECT_EQ(judged.reports[0].rule, HazardRule::GlobalRace);
    }
  }
}

} // namespace
