//===- HangTest.cpp - The words in which hangs are explained --------------===//
#include "SimFixture.h"

#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// CTA `who` sets out[0], for which all wait.
std::string flagBy(const std::string &who, const std::string &before = "") {
  return before + R"(
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %pr1, %r1, )" +
         who + R"(;
@%pr1 st.release.gpu.global.b32 [%p0], 1;
$spin:
ld.acquire.gpu.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;)";
}

struct Ended {
  std::string error, note;
};

Ended endOf(const std::string &body, LaunchConfig config, SimOptions options = {}) {
  Simulator simulator(options);
  const uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  const auto stats = run(simulator, kernel(body, 1), {out}, config);
  return stats ? Ended{} : Ended{stats.error().message, stats.error().note};
}

/// Two CTAs of 1024 threads fit on each of 148 SMs.
TEST(Hang, NamesTheCtasThatHaveNotBegun) {
  EXPECT_EQ(endOf(flagBy("295"), blocks(1024, 296)).error, "");
  const Ended hung = endOf(flagBy("299"), blocks(1024, 300));
  EXPECT_THAT(hung.error, HasSubstr("livelock: warps repeat loops"));
  EXPECT_THAT(hung.note,
              HasSubstr("CTAs 296-299 have not begun: those that have fill 148 SMs, with "
                        "1024 threads"));
  EXPECT_THAT(endOf(flagBy("300"), blocks(32, 4)).note, Not(HasSubstr("have not begun")));
}

/// A clock that is not read in the loop does not hide that it repeats itself.
TEST(Hang, AClockBesideTheLoopHidesNothing) {
  for (const char *before :
       {"mov.u64 %rd1, %globaltimer;", "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %pr1, %r1, 99;\n"
                                       "@%pr1 mov.u64 %rd1, %clock64;"}) {
    EXPECT_THAT(endOf(flagBy("9", before), blocks(32)).error, HasSubstr("livelock"));
    EXPECT_EQ(endOf(flagBy("0", before), blocks(32)).error, "");
  }
}

/// Host memory that no thread of the host changes while the launch runs.
TEST(Hang, AWaitForTheHostIsTold) {
  SimOptions options;
  options.spinLimit = 3'000'000;
  Simulator simulator(options);
  std::vector<uint32_t> words(64);
  ASSERT_TRUE(simulator.memory().share(words.data(), words.size() * 4, "mapped"));
  const std::string body = R"(
$spin:
ld.volatile.global.u32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;)";
  const auto launch = [&] {
    return run(simulator, kernel(body, 1), {reinterpret_cast<uint64_t>(words.data())}, blocks(32));
  };
  const auto stats = launch();
  ASSERT_FALSE(stats);
  EXPECT_THAT(stats.error().message, HasSubstr("livelock: warps wait for host memory"));
  EXPECT_THAT(stats.error().note, HasSubstr("a launch returns only when it has ended"));
  words[0] = 1;
  EXPECT_TRUE(launch());
}

TEST(Hang, TellsWhatALoopCompares) {
  const std::string body = R"(
$spin:
atom.global.add.u32 %r3, [%p0], 0;
setp.lt.s32 %pr2, %r3, 5;
@%pr2 bra $spin;)";
  EXPECT_THAT(endOf(body, blocks(32)).error,
              HasSubstr("has compared 0x0 with 0x5: setp.lt.s32 %pr2, %r3, 5;"));
}

} // namespace
