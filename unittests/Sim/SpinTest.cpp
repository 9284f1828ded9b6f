//===- SpinTest.cpp - Loops that end, and those that do not ---------------===//
#include "SpinFixture.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

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
