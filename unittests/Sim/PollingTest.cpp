//===- PollingTest.cpp - Warps that poll are parked, and go on ------------===//
#include "SpinFixture.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

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
TEST(Polling, PollingIsNotRepeated) {
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
TEST(Polling, AParkedWarpGoesOn) {
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
    {"a barrier that counts", "mov.b32 %r3, 0;\n@%pr1 ld.acquire.gpu.global.u32 %r3, [%rd1];\n"
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
)" + poll +
         R"(
setp.lt.u32 %pr2, %r3, %r6;
bar.sync 0;
@%pr2 bra $poll;
add.u64 %rd1, %rd1, 4;
add.u32 %r5, %r5, 1;
setp.lt.u32 %pr3, %r5, )" +
         std::to_string(rounds) + ";\n@%pr3 bra $round;";
}

/// A CTA was executed for a million instructions before another had its turn.
TEST(Polling, BlocksThatPollTogetherAreParked) {
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

TEST(Polling, BlocksThatPollTogetherForNothingAreALivelock) {
  for (const Poll &poll : kPolls)
    for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
      const std::string error =
          errorOf(meetings(poll.text, 2, "3"), blocks(128, 8), withPolicy(policy));
      EXPECT_THAT(error, AllOf(HasSubstr("livelock"), HasSubstr("CTA (0,0,0), warp 0")))
          << poll.name << ", policy " << int(policy);
    }
}

/// The CTAs of a cluster meet at its barrier in each turn.
TEST(Polling, ClustersThatPollTogetherAreParked) {
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
TEST(Polling, AWarpThatStoresWhatIsThereIsParked) {
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
TEST(Polling, AParkedBlockGoesOn) {
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

} // namespace
