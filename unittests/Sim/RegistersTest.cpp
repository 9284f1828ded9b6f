//===- RegistersTest.cpp - setmaxnreg: what warps pass to each other ------===//
#include "Sim/State/AlignedBytes.h"
#include "SimFixture.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

/// Two warpgroups: the second gives back down to `given`, the first takes up to `taken`.
std::string exchange(const std::string &directives, unsigned given, unsigned taken) {
  return header("sm_90a") + ".visible .entry k() " + directives +
         fmt::format("\n{{\n.reg .pred %p;\n.reg .b32 %t;\nmov.u32 %t, %tid.x;\n"
                     "setp.ge.u32 %p, %t, 128;\n@%p bra GIVE;\n"
                     "setmaxnreg.inc.sync.aligned.u32 {};\nret;\nGIVE:\n"
                     "setmaxnreg.dec.sync.aligned.u32 {};\nret;\n}}\n",
                     taken, given);
}

std::string outcome(const std::string &ptx, uint32_t threads = 256) {
  for (CompletionPolicy policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
    SimOptions options;
    options.policy = policy;
    Simulator simulator(options);
    auto stats = run(simulator, ptx, {}, blocks(threads));
    if (!stats)
      return messageOf(stats);
  }
  return "";
}

TEST(Registers, WhatIsGivenBackCanBeTaken) {
  EXPECT_EQ(outcome(exchange(".maxnreg 128", 40, 216)), "");
  EXPECT_EQ(outcome(exchange(".reqntid 256 .minnctapersm 1", 40, 256)), "");
  EXPECT_EQ(outcome(exchange(".maxntid 256 .minnctapersm 2", 40, 216)), "");
}

// `ptxas -v` 13.0: two CTAs of 256 threads have 128 registers of a thread, two of 288 have 96, and
// one of 256 with an increase to 248 has as many. Without .minnctapersm it ignores setmaxnreg.
TEST(Registers, PtxasGivesTheShareOfABlockAndNoMoreThanTheLargestIncrease) {
  EXPECT_EQ(outcome(exchange(".maxntid 256 .minnctapersm 1", 40, 248)), "");
  EXPECT_EQ(outcome(exchange(".maxntid 256 .minnctapersm 1", 248, 248)), "");
  EXPECT_THAT(outcome(exchange(".maxntid 256 .minnctapersm 1", 256, 248)),
              HasSubstr("setmaxnreg.dec expects at most the 248 registers"));
  EXPECT_THAT(outcome(exchange(".maxntid 288 .minnctapersm 2", 104, 96), 256),
              HasSubstr("setmaxnreg.dec expects at most the 96 registers"));
  EXPECT_THAT(outcome(exchange(".maxntid 384 .minnctapersm 1", 176, 240)),
              HasSubstr("setmaxnreg.dec expects at most the 168 registers"));
  EXPECT_EQ(outcome(exchange(".reqntid 256", 256, 24)), "");
}

TEST(Registers, MoreThanIsGivenBackIsWaitedForInVain) {
  for (std::string directives : {".maxnreg 128", ".maxntid 256 .minnctapersm 2"})
    EXPECT_THAT(outcome(exchange(directives, 40, 224)),
                AllOf(HasSubstr("deadlock"),
                      HasSubstr("3072 free registers of the CTA, of which 2048 are free")));
}

TEST(Registers, IncAndDecGoTheirWay) {
  EXPECT_THAT(outcome(exchange(".maxnreg 128", 40, 120)),
              HasSubstr("setmaxnreg.inc expects at least the 128 registers that the warp has, but "
                        "got 120"));
  EXPECT_THAT(outcome(exchange(".maxnreg 128", 136, 128)),
              HasSubstr("setmaxnreg.dec expects at most the 128 registers that the warp has, but "
                        "got 136"));
}

// 544 threads of 120 registers did not launch on an H200, although they are only 65280.
TEST(Registers, WarpsGetThemByFours) {
  EXPECT_EQ(outcome(exchange(".maxnreg 96", 40, 96), 544), "");
  EXPECT_THAT(outcome(exchange(".maxnreg 120", 40, 120), 544),
              AllOf(HasSubstr("launch of 'k': a CTA must have at most the 65536 registers of an SM of "
                              "sm_100a, but got 76800 of 640 threads that get 120 each "
                              "(.maxnreg)"),
                    HasSubstr("warps get registers by fours: 544 threads count as 640")));
  EXPECT_EQ(outcome(exchange(".maxnreg 128", 40, 128), 512), "");
}

// Without setmaxnreg, .maxnreg is a limit, and a thread has what ptxas needs.
TEST(Registers, ALimitIsNoNeed) {
  const std::string kernel = header("sm_90a") + ".visible .entry k() .maxnreg 120\n{\nret;\n}\n";
  EXPECT_EQ(outcome(kernel, 544), "");
}

// ptxas ignores setmaxnreg there, since it does not know the launch.
TEST(Registers, WithoutALaunchNothingIsCounted) {
  EXPECT_EQ(outcome(exchange("", 40, 256)), "");
}

// CTAs that begin get the storage of CTAs that have ended.
TEST(Registers, StorageThatIsTakenAgainIsZero) {
  constexpr size_t size = 64;
  SpareBytes spare;
  AlignedBytes used = spare.take(size);
  std::byte *const where = used.bytes();
  std::memset(where, 0xFF, size);
  spare.give(std::move(used), size);
  EXPECT_NE(spare.take(2 * size).bytes(), where);
  const AlignedBytes again = spare.take(size);
  EXPECT_EQ(again.bytes(), where);
  EXPECT_TRUE(std::all_of(where, where + size, [](std::byte b) { return b == std::byte(0); }));
}

} // namespace
