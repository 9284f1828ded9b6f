//===- SpinTest.cpp - Loops that end, and those that do not ---------------===//
#include "SimFixture.h"

#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// The error of a kernel whose parameter is 64 zeroed words, 'out'; empty when it ends.
std::string errorOf(const std::string &body, LaunchConfig config = blocks(32),
                    SimOptions options = {}) {
  Simulator simulator(options);
  uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(body, 1), {out}, config);
  return stats ? "" : messageOf(stats);
}

SimOptions withLimit(uint64_t limit) {
  SimOptions options;
  options.spinLimit = limit;
  return options;
}

SimOptions withPolicy(CompletionPolicy policy) {
  SimOptions options;
  options.policy = policy;
  options.seed = 3;
  return options;
}

/// Every thread waits for out[0], which `who` sets.
std::string waitForFlag(const std::string &who, const std::string &pause = "") {
  return R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.eq.u32 %pr1, )" +
         who + R"(;
@%pr1 st.release.gpu.global.b32 [%p0], 1;
$spin:
)" + pause +
         R"(
ld.acquire.gpu.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;)";
}

const char *const kNobody = "%r2, 4096";

TEST(Spin, AFlagThatNobodySetsIsALivelock) {
  const std::string error = errorOf(waitForFlag(kNobody), blocks(64));
  EXPECT_THAT(error, HasSubstr("livelock: warps repeat loops in which nothing changes"));
  EXPECT_THAT(error, HasSubstr("kernel 'k', CTA (0,0,0), warp 0, at test.ptx:"));
  EXPECT_THAT(error, HasSubstr(", as warps 1 do"));
  EXPECT_THAT(error, HasSubstr("reads 4 bytes of global 0x1000000000 ('out' + 0), which is 0x0: "
                               "ld.acquire.gpu.global.b32 %r3, [%p0];"));
  EXPECT_THAT(error, HasSubstr("decides whether it ends: @%pr2 bra $spin;"));
  EXPECT_EQ(errorOf(waitForFlag("%r2, 40"), blocks(64)), "");
}

TEST(Spin, AnotherClusterMaySetTheFlag) {
  for (uint32_t threads : {1, 3})
    for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
      SimOptions options;
      options.policy = policy;
      options.hostThreads = threads;
      EXPECT_EQ(errorOf(waitForFlag("%r1, 3"), blocks(32, 4), options), "");
      EXPECT_THAT(errorOf(waitForFlag("%r1, 9"), blocks(32, 4), options),
                  AllOf(HasSubstr("livelock"), HasSubstr("CTA (0,0,0)")));
    }
}

/// Two ways to look at the flag that ends a heartbeat: each warp by itself, or one for all.
constexpr const char *kLookAlone = R"(
ld.relaxed.gpu.global.b32 %r3, [%p0+4];
setp.ne.u32 %pr2, %r3, 0;
)";
constexpr const char *kLookTogether = R"(
mov.b32 %r3, 0;
setp.eq.u32 %pr2, %r2, 32;
@%pr2 ld.relaxed.gpu.global.b32 %r3, [%p0+4];
setp.ne.u32 %pr2, %r3, 0;
bar.red.or.pred %pr2, 0, %pr2;
)";

/// The first CTA stores a heartbeat again and again; the second overwrites it, waits for the next
/// one, and then ends the first.
std::string heartbeat(const std::string &look, const std::string &last) {
  return R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.ne.u32 %pr1, %r1, 0;
@%pr1 bra $second;
$beat:
setp.eq.u32 %pr2, %r2, 0;
@%pr2 st.relaxed.gpu.global.b32 [%p0], 1;
)" + look + R"(
@!%pr2 bra $beat;
bra $end;
$second:
setp.ne.u32 %pr2, %r2, 0;
@%pr2 bra $end;
mov.b32 %r3, 20000;
$later:
sub.u32 %r3, %r3, 1;
setp.ne.u32 %pr2, %r3, 0;
@%pr2 bra $later;
st.relaxed.gpu.global.b32 [%p0], 0;
$wait:
ld.relaxed.gpu.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $wait;
)" + last + "\n$end:\nret;";
}

/// The flag may arrive while the waiting CTA is examined, whose warps then end. Only two host
/// threads meet so, and not in each run.
TEST(Spin, AClusterMayEndWhileItIsExamined) {
  SimOptions options;
  options.hostThreads = 2;
  for (int delay = 200; delay < 40200; delay += 400)
    ASSERT_EQ(errorOf(R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.ne.u32 %pr1, %r1, 0;
@%pr1 bra $spin;
setp.ne.u32 %pr1, %r2, 0;
@%pr1 bra $end;
mov.b32 %r3, )" + std::to_string(delay) +
                          R"(;
$later:
sub.u32 %r3, %r3, 1;
setp.ne.u32 %pr2, %r3, 0;
@%pr2 bra $later;
st.release.gpu.global.b32 [%p0], 1;
bra $end;
$spin:
ld.acquire.gpu.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;
$end:
ret;)",
                      blocks(1024, 2), options),
              "")
        << delay;
}

TEST(Spin, AnotherClusterMayOverwriteWhatALoopStores) {
  for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random})
    for (const char *look : {kLookAlone, kLookTogether}) {
      EXPECT_EQ(errorOf(heartbeat(look, "st.relaxed.gpu.global.b32 [%p0+4], 1;"), blocks(64, 2),
                        withPolicy(policy)),
                "");
      EXPECT_THAT(errorOf(heartbeat(look, ""), blocks(64, 2), withPolicy(policy)),
                  HasSubstr("livelock"));
    }
}

/// 148 SMs, which have room for several CTAs each.
TEST(Spin, SoMayAClusterThatHasNotStarted) {
  EXPECT_EQ(errorOf(waitForFlag("%r1, 159"), blocks(32, 160)), "");
  EXPECT_THAT(errorOf(waitForFlag("%r1, 160"), blocks(32, 160)), HasSubstr("livelock"));
}

/// `rounds` times: a thread of every CTA counts it, and waits until all are counted.
std::string gridBarriers(int rounds, const std::string &pause = "") {
  std::string text = "mov.u32 %r1, %nctaid.x;\nmov.b32 %r2, 0;\nsetp.eq.u32 %pr1, %lane, 0;\n";
  for (int i = 0; i < rounds; ++i) {
    const std::string n = std::to_string(i);
    text += "add.u32 %r2, %r2, %r1;\n@!%pr1 bra $met" + n +
            ";\nred.release.gpu.global.add.u32 [%p0], 1;\n$poll" + n + ":\n" + pause +
            "ld.acquire.gpu.global.b32 %r3, [%p0];\nsetp.lt.u32 %pr2, %r3, %r2;\n@%pr2 bra $poll" +
            n + ";\n$met" + n + ":\nbar.warp.sync -1;\n";
  }
  return text;
}

/// A warp that polls is parked: it took a million instructions for each of the later barriers.
TEST(Spin, PollingIsNotRepeated) {
  for (const char *pause : {"", "nanosleep.u32 20;\n"})
    for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
      Simulator simulator(withPolicy(policy));
      const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
      auto stats = run(simulator, kernel(gridBarriers(4, pause), 1), {out}, blocks(64, 100));
      ASSERT_TRUE(stats) << messageOf(stats);
      EXPECT_EQ(download<uint32_t>(simulator, out, 1)[0], 2u * 4 * 100);
      EXPECT_LT(stats->warpInstructions, 200u * 4 * 8192) << pause << " policy " << int(policy);
    }
}

/// The value that a parked warp waits for comes after long: from a warp of its own CTA, through
/// shared memory, or from an asynchronous copy.
TEST(Spin, AParkedWarpGoesOn) {
  const std::string body = R"(
.shared .align 4 .b32 flag;
mov.u32 %r1, %tid.x;
mov.u32 %r4, flag;
setp.eq.u32 %pr1, %r1, 0;
@%pr1 st.shared.b32 [%r4], 0;
bar.sync 0;
setp.lt.u32 %pr1, %r1, 32;
@!%pr1 bra $wait;
mov.b32 %r2, 0;
$work:
add.u32 %r2, %r2, 1;
setp.lt.u32 %pr2, %r2, 100000;
@%pr2 bra $work;
st.volatile.shared.b32 [%r4], %r2;
bra $end;
$wait:
ld.volatile.shared.b32 %r3, [%r4];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $wait;
@%pr1 bra $end;
st.global.b32 [%p0], %r3;
$end:)";
  Simulator simulator;
  const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(body, 1), {out}, blocks(128));
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_EQ(download<uint32_t>(simulator, out, 1)[0], 100000u);
  EXPECT_LT(stats->warpInstructions, 310000u) << "three warps wait for 300000 instructions of one";
}

TEST(Spin, SleepingDoesNotHelp) {
  EXPECT_THAT(errorOf(waitForFlag(kNobody, "nanosleep.u32 100;"), blocks(64, 2)),
              HasSubstr("livelock"));
  EXPECT_EQ(errorOf(waitForFlag("%r1, 1", "nanosleep.u32 100;"), blocks(64, 200)), "");
}

TEST(Spin, ALoopThatReadsNothing) {
  EXPECT_THAT(errorOf("$l: bra $l;"),
              AllOf(HasSubstr("livelock"), HasSubstr("it reads no memory: its registers"),
                    HasSubstr("no branch of it leads out"), HasSubstr(" repeats line 18")));
}

/// Half of the warp waits in a loop, and the rest at the end of it.
TEST(Spin, LanesOfOneWarp) {
  const std::string body = R"(
setp.lt.u32 %pr1, %lane, LIMIT;
@!%pr1 bra $rest;
$spin:
ld.volatile.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;
bra $end;
$rest:
st.volatile.global.b32 [%p0], VALUE;
$end:)";
  auto with = [&](const char *limit, const char *value) {
    std::string text = body;
    text.replace(text.find("LIMIT"), 5, limit);
    text.replace(text.find("VALUE"), 5, value);
    return errorOf(text);
  };
  EXPECT_EQ(with("16", "1"), "");
  EXPECT_THAT(with("16", "0"), HasSubstr("livelock"));
  EXPECT_THAT(with("32", "1"), HasSubstr("livelock"));
}

/// A lane that polls comes first in the text, and lanes behind its loop need many turns until they
/// set the flag, or never do.
TEST(Spin, LanesThatSleepLetOthersRun) {
  auto with = [](const std::string &pause, const std::string &last) {
    std::string body = R"(
setp.eq.u32 %pr1, %lane, 0;
@!%pr1 bra $set;
$poll:
)" + pause + R"(
ld.volatile.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $poll;
bra $end;
$set:
mov.b32 %r2, 1;
)";
    for (int i = 0; i < 60; ++i)
      body += "add.u32 %r2, %r2, %r2;\nor.b32 %r2, %r2, 1;\n";
    return errorOf(body + last + "\n$end:");
  };
  const std::string store = "st.volatile.global.b32 [%p0], %r2;";
  EXPECT_EQ(with("", store), "");
  EXPECT_EQ(with("nanosleep.u32 20;", store), "");
  EXPECT_THAT(with("nanosleep.u32 20;", ""), HasSubstr("livelock"));
}

TEST(Spin, ALockThatNobodyReleases) {
  auto body = [](const char *release) {
    return std::string(R"(
setp.ne.u32 %pr1, %lane, 0;
@%pr1 bra $end;
$take:
atom.acquire.gpu.global.cas.b32 %r3, [%p0], 0, 1;
setp.ne.u32 %pr2, %r3, 0;
@%pr2 bra $take;
)") + release +
           "\n$end:";
  };
  EXPECT_EQ(errorOf(body("st.release.gpu.global.b32 [%p0], 0;"), blocks(128, 2)), "");
  EXPECT_THAT(errorOf(body(""), blocks(128, 2)),
              AllOf(HasSubstr("livelock"), HasSubstr("atom.acquire.gpu.global.cas.b32")));
}

/// All warps meet at a barrier in each turn; one of them might end the loop.
TEST(Spin, ALoopWithABarrier) {
  auto body = [](const char *last) {
    return std::string(R"(
mov.u32 %r2, %tid.x;
mov.b32 %r4, 0;
$turn:
add.u32 %r4, %r4, 1;
setp.eq.u32 %pr1, %r2, 40;
setp.eq.and.u32 %pr1, %r4, )") +
           last + R"(, %pr1;
@%pr1 st.global.b32 [%p0], 1;
bar.sync 0;
ld.volatile.global.b32 %r3, [%p0];
and.b32 %r4, %r4, 255;
setp.eq.u32 %pr2, %r3, 0;
bar.sync 0;
@%pr2 bra $turn;)";
  };
  EXPECT_EQ(errorOf(body("200"), blocks(128)), "");
  EXPECT_THAT(errorOf(body("300"), blocks(128)), HasSubstr("livelock"));
}

/// Blocked warps are named beside those that spin.
TEST(Spin, WarpsThatWaitForASpinningOne) {
  auto body = [](const char *flag) {
    return std::string(R"(
.shared .align 8 .b64 bar;
mov.u32 %r2, %tid.x;
setp.ne.u32 %pr1, %r2, 0;
@!%pr1 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
setp.ge.u32 %pr3, %r2, 32;
@%pr3 bra $wait;
$spin:
ld.volatile.global.b32 %r3, [%p0];
setp.ne.u32 %pr2, %r3, )") +
           flag + R"(;
@%pr2 bra $spin;
@!%pr1 mbarrier.arrive.shared.b64 %rd1, [bar];
bra $end;
$wait:
mbarrier.try_wait.parity.shared.b64 %pr4, [bar], 0;
@!%pr4 bra $wait;
$end:)";
  };
  EXPECT_EQ(errorOf(body("0"), blocks(96)), "");
  EXPECT_THAT(errorOf(body("1"), blocks(96)),
              AllOf(HasSubstr("livelock"), HasSubstr("warp 0, at"), HasSubstr(" repeats lines "),
                    HasSubstr("warps 1, 2, at"), HasSubstr("waits for phase 0 (parity 0)")));
}

//===----------------------------------------------------------------------===//
// CTAs that poll together
//===----------------------------------------------------------------------===//

/// Ways in which the warps of a CTA learn in %r3 what its first thread, %pr1, has read at [%rd1].
struct Poll {
  const char *name, *text;
};
const Poll kPolls[] = {
    {"an atomic addition of nothing",
     "@%pr1 atom.acquire.gpu.global.add.u32 %r3, [%rd1], 0;\n@%pr1 st.shared.b32 [%r4], %r3;\n"
     "bar.sync 0;\nld.shared.b32 %r3, [%r4];\n"},
    {"an exchange of what is there",
     "@%pr1 atom.acquire.gpu.global.cas.b32 %r3, [%rd1], 1, 1;\n@%pr1 st.shared.b32 [%r4], %r3;\n"
     "bar.sync 0;\nld.shared.b32 %r3, [%r4];\n"},
    {"a load, and sleep",
     "@%pr1 nanosleep.u32 20;\n@%pr1 ld.acquire.gpu.global.u32 %r3, [%rd1];\n"
     "@%pr1 st.shared.b32 [%r4], %r3;\nbar.sync 0;\nld.shared.b32 %r3, [%r4];\n"},
    {"a barrier that counts",
     "mov.b32 %r3, 0;\n@%pr1 ld.acquire.gpu.global.u32 %r3, [%rd1];\n"
     "setp.ge.u32 %pr4, %r3, %r6;\nbar.red.popc.u32 %r3, 0, %pr4;\n"
     "mul.lo.u32 %r3, %r3, %r6;\n"},
};

/// `rounds` times: every CTA counts one, or the last one does not, and waits for `blocks`.
std::string meetings(const std::string &poll, int rounds, const std::string &absent = "4096") {
  return R"(
.shared .align 4 .b32 seen;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r6, %nctaid.x;
mov.u32 %r4, seen;
setp.eq.u32 %pr1, %r1, 0;
setp.ne.and.u32 %pr5, %r2, )" +
         absent + R"(, %pr1;
mov.b64 %rd1, %p0;
mov.b32 %r5, 0;
$round:
bar.sync 0;
@%pr5 red.release.gpu.global.add.u32 [%rd1], 1;
$poll:
bar.sync 0;
)" + poll + R"(
setp.lt.u32 %pr2, %r3, %r6;
bar.sync 0;
@%pr2 bra $poll;
add.u64 %rd1, %rd1, 4;
add.u32 %r5, %r5, 1;
setp.lt.u32 %pr3, %r5, )" +
         std::to_string(rounds) + ";\n@%pr3 bra $round;";
}

/// A CTA was executed for a million instructions before another had its turn.
TEST(Spin, BlocksThatPollTogetherAreParked) {
  constexpr uint32_t ctasOfGrid = 40, rounds = 4;
  for (const Poll &poll : kPolls)
    for (CompletionPolicy policy :
         {CompletionPolicy::Eager, CompletionPolicy::Lazy, CompletionPolicy::Random})
      for (uint32_t threads : {1, 2}) {
        SimOptions options = withPolicy(policy);
        options.hostThreads = threads;
        Simulator simulator(options);
        const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
        auto stats =
            run(simulator, kernel(meetings(poll.text, rounds), 1), {out}, blocks(128, ctasOfGrid));
        ASSERT_TRUE(stats) << poll.name << ": " << messageOf(stats);
        EXPECT_EQ(download<uint32_t>(simulator, out, rounds),
                  std::vector<uint32_t>(rounds, ctasOfGrid));
        if (threads == 1)
          EXPECT_LT(stats->warpInstructions, ctasOfGrid * rounds * 6000)
              << poll.name << ", policy " << int(policy);
      }
}

TEST(Spin, BlocksThatPollTogetherForNothingAreALivelock) {
  for (const Poll &poll : kPolls)
    for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
      const std::string error =
          errorOf(meetings(poll.text, 2, "3"), blocks(128, 8), withPolicy(policy));
      EXPECT_THAT(error, AllOf(HasSubstr("livelock"), HasSubstr("CTA (0,0,0), warp 0")))
          << poll.name << ", policy " << int(policy);
    }
}

/// The CTAs of a cluster meet at its barrier in each turn.
TEST(Spin, ClustersThatPollTogetherAreParked) {
  const std::string poll = "@%pr1 ld.acquire.gpu.global.u32 %r3, [%rd1];\n"
                           "@%pr1 st.shared.b32 [%r4], %r3;\nbarrier.cluster.arrive;\n"
                           "barrier.cluster.wait;\nld.shared.b32 %r3, [%r4];\n";
  Simulator simulator;
  const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(meetings(poll, 4), 1), {out}, blocks(64, 16, 2));
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_LT(stats->warpInstructions, 16u * 4 * 6000);
  EXPECT_THAT(errorOf(meetings(poll, 4, "5"), blocks(64, 16, 2)), HasSubstr("livelock"));
}

/// One warp hands itself what it polls for through shared memory, as Triton does: no other sees it.
TEST(Spin, AWarpThatStoresWhatIsThereIsParked) {
  const std::string body = R"(
.shared .align 4 .b32 seen;
mov.u32 %r1, %ctaid.x;
mov.u32 %r4, seen;
setp.eq.u32 %pr1, %lane, 0;
@%pr1 atom.relaxed.gpu.global.add.u32 %r3, [%p0], 1;
$turn:
@%pr1 ld.relaxed.gpu.global.u32 %r3, [%p0];
@%pr1 st.shared.b32 [%r4], %r3;
bar.warp.sync -1;
ld.shared.b32 %r3, [%r4];
setp.lt.u32 %pr2, %r3, )";
  Simulator simulator;
  const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(body + "100;\n@%pr2 bra $turn;", 1), {out}, blocks(32, 100));
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_LT(stats->warpInstructions, 100u * 10000);
  EXPECT_THAT(errorOf(body + "101;\n@%pr2 bra $turn;", blocks(32, 100)), HasSubstr("livelock"));
}

/// The write that ends the loop comes from another CTA, after long work.
TEST(Spin, AParkedBlockGoesOn) {
  const std::string body = R"(
mov.u32 %r2, %ctaid.x;
setp.ne.u32 %pr6, %r2, 7;
@%pr6 bra $meet;
mov.b32 %r7, 0;
$work:
add.u32 %r7, %r7, 1;
setp.lt.u32 %pr7, %r7, 200000;
@%pr7 bra $work;
$meet:)" + meetings(kPolls[0].text, 1);
  Simulator simulator(withPolicy(CompletionPolicy::Eager));
  const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(body, 1), {out}, blocks(64, 8));
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_LT(stats->warpInstructions, 2u * 600000 + 8 * 20000);
}

//===----------------------------------------------------------------------===//
// Loops that end
//===----------------------------------------------------------------------===//

/// Two warps hand a number to and fro, as often as it takes to be looked at.
TEST(Spin, ALongConversationIsNoLivelock) {
  const std::string body = R"(
mov.u32 %r2, %tid.x;
shr.u32 %r4, %r2, 5;
and.b32 %r5, %r2, 31;
setp.ne.u32 %pr3, %r5, 0;
@%pr3 bra $end;
$turn:
ld.volatile.global.b32 %r3, [%p0];
setp.ge.u32 %pr1, %r3, 2000;
@%pr1 bra $end;
and.b32 %r6, %r3, 1;
setp.ne.u32 %pr2, %r6, %r4;
@%pr2 bra $turn;
add.u32 %r3, %r3, 1;
st.volatile.global.b32 [%p0], %r3;
bra $turn;
$end:)";
  for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random})
    EXPECT_EQ(errorOf(body, blocks(64), withPolicy(policy)), "");
}

/// The counter is in local memory, and each turn begins with the same registers.
TEST(Spin, ACounterInLocalMemoryIsProgress) {
  EXPECT_EQ(errorOf(R"(
.local .align 4 .b32 counter;
mov.b32 %r1, 0;
st.local.b32 [counter], %r1;
$turn:
ld.local.b32 %r1, [counter];
add.u32 %r1, %r1, 1;
st.local.b32 [counter], %r1;
setp.lt.u32 %pr1, %r1, 300000;
mov.b32 %r1, 0;
@%pr1 bra $turn;)"),
            "");
}

TEST(Spin, TimeIsProgress) {
  EXPECT_EQ(errorOf(R"(
mov.u64 %rd1, %clock64;
$turn:
mov.u64 %rd2, %clock64;
sub.u64 %rd2, %rd2, %rd1;
setp.lt.u64 %pr1, %rd2, 1000000;
mov.b64 %rd2, 0;
@%pr1 bra $turn;)"),
            "");
}

//===----------------------------------------------------------------------===//
// The limit
//===----------------------------------------------------------------------===//

std::string countTo(const char *turns, const char *inside = "") {
  return std::string("mov.b32 %r1, 0;\n$turn:\nadd.u32 %r1, %r1, 1;\n") + inside +
         "\nsetp.ne.u32 %pr1, %r1, " + turns + ";\n@%pr1 bra $turn;";
}

TEST(Spin, CountingMeetsTheLimit) {
  const SimOptions options = withLimit(3'000'000);
  EXPECT_EQ(errorOf(countTo("700000"), blocks(32), options), "");
  EXPECT_THAT(errorOf(countTo("0"), blocks(32), options),
              AllOf(HasSubstr("endless loop: cluster 0 has executed "),
                    HasSubstr("no memory was seen to change"), HasSubstr("repeats lines 20 to 23"),
                    HasSubstr("the limit without progress is 3000000 warp instructions"),
                    Not(HasSubstr("livelock"))));
  SimOptions none = withLimit(0);
  none.instructionLimit = 20'000'000;
  EXPECT_THAT(errorOf(countTo("0"), blocks(32), none),
              HasSubstr("executed more than 20000000 warp instructions"));
}

/// Stores keep a loop alive, 16 times as long.
TEST(Spin, StoresAreProgressForAWhile) {
  const SimOptions options = withLimit(1'000'000);
  const char *store = "st.global.b32 [%p0], %r1;";
  EXPECT_EQ(errorOf(countTo("2500000", store), blocks(32), options), "");
  EXPECT_THAT(errorOf(countTo("2500000"), blocks(32), options), HasSubstr("endless loop"));
  EXPECT_THAT(errorOf(countTo("0", store), blocks(32), options),
              AllOf(HasSubstr("in which no warp exited"), Not(HasSubstr("seen to change"))));
}

/// A warp sleeps in a loop that counts, which cannot be parked, while another is parked for good.
TEST(Spin, TheLimitEndsASleeperBesideAParkedWarp) {
  auto with = [](const char *turns, const char *last) {
    const std::string body =
        "mov.u32 %r2, %tid.x;\nsetp.lt.u32 %pr2, %r2, 32;\n@%pr2 bra $spin;\n" +
        countTo(turns, "nanosleep.u32 20;") + last + R"(
bra $end;
$spin:
ld.volatile.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;
$end:)";
    return errorOf(body, blocks(64), withLimit(1'000'000));
  };
  const char *store = "\nst.volatile.global.b32 [%p0], %r1;";
  EXPECT_EQ(with("30000", store), "");
  EXPECT_THAT(with("0", store), AllOf(HasSubstr("endless loop"), HasSubstr("is 1000000 warp")));
  EXPECT_THAT(with("30000", ""), HasSubstr("livelock"));
}

/// One cluster fails, and others wait for it in vain: its error is the one that helps.
TEST(Spin, TheErrorOfAnotherClusterCounts) {
  const std::string body = R"(
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %pr1, %r1, 2;
@%pr1 ld.global.b32 %r3, [%p0+4096];)" +
                           waitForFlag(kNobody);
  for (uint32_t threads : {1, 2}) {
    SimOptions options;
    options.hostThreads = threads;
    EXPECT_THAT(errorOf(body, blocks(32, 4), options),
                HasSubstr("reads 4 bytes of global memory out of bounds"));
  }
}

} // namespace
