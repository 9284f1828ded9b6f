// wgmma: what decoding refuses, and registers that are used while they are claimed. Results are the
// business of the conformance suite (lib/Conformance/WgmmaCases.cpp).
#include "KernelHarness.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/Sim/HazardChecker.h"

#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

LaunchConfig block(uint32_t threads = 128) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.dynamicSharedBytes = 8192;
  return config;
}

const std::string multiply =
    "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0,%v1,%v2,%v3}, %rd1, %rd1, 1, 1, 1, "
    "0, 0;\n";
const std::string commit = "  wgmma.commit_group.sync.aligned;\n";
const std::string wait = "  wgmma.wait_group.sync.aligned 0;\n";
const std::string store = "  mul.wide.u32 %rd3, %t, 4;\n  add.u64 %rd3, %out, %rd3;\n"
                          "  st.global.b32 [%rd3], %v0;\n";

/// 8 KB of shared memory hold the f16 number 1 and D is 0; %rd1 describes them; then `body`.
std::string kernel(const std::string &body) {
  return kernelText(
      "  mov.u32 %r1, dynamic;\n  shl.b32 %r2, %t, 6;\n  add.u32 %r2, %r2, %r1;\n"
      "  mov.u32 %r3, 0x3c003c00;\n" +
          [] {
            std::string text;
            for (int i = 0; i < 16; ++i)
              text += fmt::format("  st.shared.b32 [%r2+{}], %r3;\n", 4 * i);
            return text;
          }() +
          fmt::format("  mov.u64 %rd1, {};\n",
                      hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::B128).encodeWgmma()) +
          "  shr.u32 %r4, %r1, 4;\n  cvt.u64.u32 %rd2, %r4;\n"
          "  add.u64 %rd1, %rd1, %rd2;\n  fence.proxy.async;\n  bar.sync 0;\n"
          "  mov.u32 %v0, 0;\n  mov.u32 %v1, 0;\n  mov.u32 %v2, 0;\n"
          "  mov.u32 %v3, 0;\n  wgmma.fence.sync.aligned;\n" +
          body,
      "", "sm_90a");
}

std::vector<SimOptions> policies() {
  std::vector<SimOptions> all = schedules(2);
  all.push_back(all[1]);
  all.back().policy = CompletionPolicy::Delay;
  all.back().delayedEngine = "wgmma";
  return all;
}

TEST(Wgmma, ChainsOnOneAccumulatorUnderEverySchedule) {
  for (const SimOptions &options : policies()) {
    SCOPED_TRACE(describe(options));
    const RunResult run =
        runText(kernel(multiply + multiply + commit + multiply + commit + wait + store), options,
                block(), 128);
    ASSERT_EQ(run.error, "") << run.note;
    EXPECT_THAT(run.out, testing::Each(0x42400000u)); // 3 x 16
  }
}

TEST(Wgmma, WaitingLeavesTheNewestGroups) {
  const std::string body = multiply + commit + "  wgmma.wait_group.sync.aligned 1;\n" + store;
  for (const SimOptions &options : policies()) {
    const RunResult run = runText(kernel(body), options, block(), 128);
    EXPECT_THAT(run.error, HasSubstr("uses a register of the wgmma")) << describe(options);
    EXPECT_THAT(run.note, HasSubstr("wgmma.wait_group"));
  }
}

/// Under every policy: a product that is done by luck was not waited for either.
TEST(Wgmma, UsingTheAccumulatorWithoutWaitingIsReported) {
  for (const SimOptions &options : policies()) {
    const auto errorOf = [&](const std::string &body) {
      return runText(kernel(multiply + body), options, block(), 128).error;
    };
    SCOPED_TRACE(describe(options));
    EXPECT_THAT(errorOf(commit + store + wait), HasSubstr("uses a register of the wgmma"));
    EXPECT_THAT(errorOf(wait + store), HasSubstr("uses a register of the wgmma")); // not committed
    EXPECT_EQ(errorOf(commit + wait + store), "");
    EXPECT_EQ(errorOf(commit + multiply + commit + wait + store), "");
  }
}

/// The barrier is enough where the readers have waited for their MMAs, and only there.
TEST(Wgmma, OperandsAreOverwrittenOnceTheMmasAreDone) {
  const std::string barrier = "  bar.sync 0;\n", overwrite = "  st.shared.b32 [%r1], %r3;\n";
  const std::string one = "  setp.eq.u32 %p0, %t, 96;\n  @%p0" + overwrite;
  for (const SimOptions &policy : policies())
    for (const bool waited : {true, false}) {
      HazardChecker checker;
      SimOptions options = policy;
      options.observer = &checker;
      const std::string body =
          multiply + commit + (waited ? wait + barrier : barrier) + one + (waited ? "" : wait);
      const RunResult run = runText(kernel(body), options, block(), 128);
      EXPECT_EQ(checker.reports().empty(), waited) << describe(options) << run.error;
      if (!waited && !checker.reports().empty()) {
        EXPECT_EQ(checker.reports()[0].rule, HazardRule::OverwrittenWhileRead);
      }
    }
}

/// Returns the hazard checker's reports on a body, or the error of the run.
std::string judge(const std::string &text, Judgement judgement = Judgement::Letter) {
  SimOptions options = schedules(0)[1];
  const auto instruments =
      instrument(judgement == Judgement::Letter ? "strict" : "default", options);
  std::string words = runText(text, options, block(), 128).error;
  for (const HazardReport &report : instruments->hazards())
    words += report.text();
  return words;
}

std::string without(std::string text, const std::string &line) {
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return at == std::string::npos ? text : text.erase(at, line.size());
}

TEST(Wgmma, TheFirstWantsAFence) {
  const std::string text = kernel(multiply + multiply + commit + wait + store);
  EXPECT_EQ(judge(text), "");
  const std::string report = judge(without(text, "  wgmma.fence.sync.aligned;\n"));
  EXPECT_THAT(report, HasSubstr("[missing-wgmma-fence]"));
  EXPECT_THAT(report, HasSubstr("this warp has executed no wgmma.fence before"));
}

TEST(Wgmma, AFenceComesBetweenOtherUsesOfTheAccumulatorAndTheNext) {
  const std::string fence = "  wgmma.fence.sync.aligned; // again\n";
  for (const std::string use : {"  mov.b32 %v2, 0;\n", "  add.u32 %r40, %v2, 1;\n"}) {
    const std::string text =
        kernel(multiply + commit + wait + use + fence + multiply + commit + wait + store);
    EXPECT_EQ(judge(text), "");
    const std::string report = judge(without(text, fence));
    EXPECT_THAT(report, HasSubstr("[missing-wgmma-fence]"));
    EXPECT_THAT(report, HasSubstr("of CTA rank 0: " + use.substr(2, 8)));
  }
}

/// Triton zeroes an accumulator behind the fence; that is all that the default accepts.
TEST(Wgmma, ByDefaultAccumulatorsMayBeMovedToBehindTheFence) {
  const std::string move = "  mov.b32 %v2, 0;\n", other = "  add.u32 %v2, %v2, 1;\n",
                    copy = "  mov.b32 %r40, %v2;\n", again = "  wgmma.fence.sync.aligned;\n",
                    product = multiply + commit + wait;
  const auto body = [&](const std::string &use) {
    return kernel(product + again + use + product + store);
  };
  EXPECT_EQ(judge(body(move), Judgement::Practice), "");
  EXPECT_THAT(judge(body(move)), HasSubstr("[missing-wgmma-fence]"));
  for (const std::string &use : {other, copy, other + move, move + other})
    EXPECT_THAT(judge(body(use), Judgement::Practice), HasSubstr("[missing-wgmma-fence]")) << use;
}

const std::string fromRegisters =
    "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%v0,%v1,%v2,%v3}, {%v4,%v5,%v6,%v7}, "
    "%rd1, 1, 1, 1, 0;\n";

TEST(Wgmma, AFenceComesBetweenWritesOfAAndTheMma) {
  const std::string fill = "  mov.b32 %v4, 0;\n  mov.b32 %v5, 0;\n  mov.b32 %v6, 0;\n"
                           "  mov.b32 %v7, 0;\n";
  const std::string fence = "  wgmma.fence.sync.aligned; // again\n";
  const std::string text = kernel(fill + fence + fromRegisters + commit + wait + store);
  EXPECT_EQ(judge(text), "");
  for (const Judgement judgement : {Judgement::Letter, Judgement::Practice})
    EXPECT_THAT(judge(without(text, fence), judgement), HasSubstr("[missing-wgmma-fence]"));
}

TEST(Wgmma, AnotherShapeOnTheSameAccumulatorWantsAFence) {
  const std::string bytes = "  wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
                            "{%v0,%v1,%v2,%v3}, %rd1, %rd1, 1, 1, 1;\n";
  const std::string fence = "  wgmma.fence.sync.aligned; // again\n";
  const std::string text = kernel(multiply + fence + bytes + commit + wait + store);
  EXPECT_EQ(judge(text), "");
  EXPECT_THAT(judge(without(text, fence)), HasSubstr("[missing-wgmma-fence]"));
}

TEST(Wgmma, RegistersOfAAreNotTouchedBeforeTheWait) {
  const std::string fill = "  mov.b32 %v4, 0;\n  mov.b32 %v5, 0;\n  mov.b32 %v6, 0;\n"
                           "  mov.b32 %v7, 0;\n  wgmma.fence.sync.aligned;\n";
  const std::string touch = "  mov.b32 %v5, 1;\n";
  EXPECT_EQ(judge(kernel(fill + fromRegisters + commit + wait + touch + store)), "");
  SimOptions drain = schedules(0)[1]; // of programs: tcgen05.ld may be drained by a use
  drain.judgement = Judgement::Practice;
  EXPECT_THAT(
      runText(kernel(fill + fromRegisters + commit + touch + wait + store), drain, block(), 128)
          .error,
      HasSubstr("uses a register of the wgmma"));
}

/// An MMA is one operation of four warps: what one of them has waited for, all have done.
TEST(Wgmma, OneThreadReleasesTheOperandsOfFourWarps) {
  const std::string body =
      "  add.u32 %r5, %r1, 16384;\n  setp.eq.u32 %p0, %t, 0;\n  setp.ge.u32 %p1, %t, 128;\n"
      "  @%p0 mbarrier.init.shared::cta.b64 [%r5], 1;\n  bar.sync 0;\n  @%p1 bra LATE;\n" +
      multiply + commit + wait +
      "  @%p0 mbarrier.arrive.shared::cta.b64 _, [%r5];\n  bra END;\nLATE:\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;\n  @!%p2 bra LATE;\n"
      "  setp.eq.u32 %p0, %t, 128;\n  @%p0 st.shared.b32 [%r1], %r3;\nEND:\n";
  LaunchConfig config = block(256);
  config.dynamicSharedBytes = 16384 + 8;
  for (const SimOptions &policy : policies()) {
    HazardChecker checker;
    SimOptions options = policy;
    options.observer = &checker;
    EXPECT_EQ(runText(kernel(body), options, config, 256).error, "") << describe(options);
    EXPECT_TRUE(checker.reports().empty()) << describe(options) << checker.reports()[0].text();
  }
}

TEST(Wgmma, LeavingWithoutWaitingIsReported) {
  EXPECT_THAT(runText(kernel(multiply + commit), schedules(0)[1], block(), 128).error,
              HasSubstr("exits while this operation is in flight"));
}

TEST(Wgmma, NeedsWholeWarpgroups) {
  EXPECT_THAT(runText(kernel(multiply), schedules(0)[0], block(96), 128).error,
              AllOf(HasSubstr("expects a whole warpgroup of 4 warps, but warp"),
                    HasSubstr("is in a group of 3")));
  LaunchConfig config = block(160);
  config.dynamicSharedBytes = 64 * 160;
  EXPECT_THAT(runText(kernel(multiply), schedules(0)[0], config, 160).error,
              HasSubstr("warp 4 is in a group of 1"));
  std::string first = "  setp.ge.u32 %p0, %t, 128;\n  @%p0 bra END;\n";
  EXPECT_EQ(runText(kernel(first + multiply + commit + wait + "END:\n"), schedules(0)[0], config,
                    160).error, "");
}

TEST(Wgmma, DescriptorsOfTcgen05AreRefused) {
  EXPECT_THAT(runText(kernel("  or.b64 %rd1, %rd1, 0x400000000000;\n" + multiply), schedules(0)[0],
                      block(), 128)
                  .error,
              HasSubstr("must be zero in bits 14-15, 30-31, 46-48 and 52-61"));
}

TEST(Wgmma, RefusesWhatDoesNotExist) {
  const auto error = [](const std::string &instruction) {
    auto program = Program::parse(kernelText("  " + instruction + "\n", "", "sm_90a"), "t.ptx");
    return program ? std::string() : program.error().message;
  };
  const std::string head = "wgmma.mma_async.sync.aligned.", d4 = "{%v0,%v1,%v2,%v3}";
  EXPECT_EQ(error(head + "m64n8k16.f32.f16.f16 " + d4 + ", %rd1, %rd1, 1, 1, 1, 0, 0;"), "");
  EXPECT_THAT(error(head + "m64n12k16.f32.f16.f16 " + d4 + ", %rd1, %rd1, 1, 1, 1, 0, 0;"),
              HasSubstr("there is no shape .m64n12k16 for .f16"));
  EXPECT_THAT(error(head + "m64n40k32.s32.s8.s8 " + d4 + ", %rd1, %rd1, 1;"),
              HasSubstr("there is no shape .m64n40k32 for .s8"));
  EXPECT_THAT(error(head + "m64n16k16.f32.f16.f16 " + d4 + ", %rd1, %rd1, 1, 1, 1, 0, 0;"),
              HasSubstr("expects 8 registers, but got 4"));
  EXPECT_THAT(error(head + "m64n8k16.f32.f16.bf16 " + d4 + ", %rd1, %rd1, 1, 1, 1, 0, 0;"),
              HasSubstr("expects A and B of one type, but got .f16 and .bf16"));
  EXPECT_THAT(error(head + "m64n8k16.f16.bf16.bf16 {%v0,%v1}, %rd1, %rd1, 1, 1, 1, 0, 0;"),
              HasSubstr(".bf16 factors expect a result of .f32"));
  EXPECT_THAT(error(head + "m64n8k16.f32.f16.f16 " + d4 + ", %rd1, %rd1, 1, 2, 1, 0, 0;"),
              HasSubstr("imm-scale-a must be 1 or -1, but got 2"));
  EXPECT_THAT(error(head + "m64n8k16.f32.f16.f16 " + d4 + ", %rd1, %rd1, 1, 1, 1, 0, 2;"),
              HasSubstr("imm-trans-b must be 0 or 1, but got 2"));
  EXPECT_THAT(error(head + "m64n8k16.f32.f16.f16 " + d4 + ", {%v4,%v5}, %rd1, 1, 1, 1, 0;"),
              HasSubstr("A expects 4 registers, but got 2"));
  const std::string sparse = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " + d4;
  EXPECT_EQ(error(sparse + ", %rd1, %rd1, %v5, 1, 1, 1, 1, 0, 0;"), "");
  EXPECT_THAT(error(sparse + ", %rd1, %rd1, %v5, 2, 1, 1, 1, 0, 0;"),
              HasSubstr("the sparsity selector of .m64n8k32 must be below 2, but got 2"));
}

} // namespace
