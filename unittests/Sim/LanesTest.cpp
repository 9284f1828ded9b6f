//===- LanesTest.cpp - shfl, vote, match, redux, elect: lanes together ----===//
#include "SimFixture.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

TEST(Lanes, Shuffles) {
  auto check = [](const std::string &mode, auto f) {
    auto d = perThread("mul.lo.u32 %r1, %lane, 10;\nshfl.sync." + mode +
                       ", -1;\nselp.b32 %r3, 1, 0, %pr1;\n"
                       "add.u32 %r0, %r2, %r3;");
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(d[size_t(lane)], uint32_t(f(lane))) << mode << " lane " << lane;
  };
  check("up.b32 %r2|%pr1, %r1, 3, 0", [](int l) { return l >= 3 ? (l - 3) * 10 + 1 : l * 10; });
  check("down.b32 %r2|%pr1, %r1, 5, 31",
        [](int l) { return l + 5 <= 31 ? (l + 5) * 10 + 1 : l * 10; });
  check("down.b32 %r2|%pr1, %r1, 5, 15", // the limit, not the warp, ends it
        [](int l) { return l + 5 <= 15 ? (l + 5) * 10 + 1 : l * 10; });
  check("up.b32 %r2|%pr1, %r1, 3, 0x1800", // nor does it cross a segment of 8
        [](int l) { return l % 8 >= 3 ? (l - 3) * 10 + 1 : l * 10; });
  check("bfly.b32 %r2|%pr1, %r1, 16, 31", [](int l) { return (l ^ 16) * 10 + 1; });
  // Segments of 8: the upper bits of c mask the segment.
  check("idx.b32 %r2|%pr1, %r1, 2, 0x1807", [](int l) { return ((l & 24) | 2) * 10 + 1; });
}

TEST(Lanes, VotesMatchesAndReductions) {
  auto d = perThread(R"(
setp.lt.u32 %pr1, %lane, 10;
vote.sync.ballot.b32 %r1, %pr1, -1;
vote.any.sync.pred %pr2, %pr1, -1; // ptxas takes either order
vote.sync.all.pred %pr3, %pr1, -1;
selp.b32 %r2, 1, 0, %pr2;
selp.b32 %r3, 2, 0, %pr3;
redux.sync.add.u32 %r4, %lane, -1;
redux.sync.max.s32 %r5, %lane, -1;
shr.u32 %r6, %lane, 3;
match.any.sync.b32 %r7, %r6, -1;
popc.b32 %r8, %r7;
activemask.b32 %r9;
popc.b32 %r9, %r9;
popc.b32 %r1, %r1;
mad.lo.u32 %r0, %r1, 100000, %r4;
add.u32 %r0, %r0, %r2;
add.u32 %r0, %r0, %r3;
add.u32 %r0, %r0, %r5;
add.u32 %r0, %r0, %r8;
add.u32 %r0, %r0, %r9;)");
  EXPECT_EQ(d, std::vector<uint32_t>(32, 10 * 100000 + 496 + 1 + 31 + 8 + 32));
}

// All alike is uniform: all true, and all false.
TEST(Lanes, UniformVotes) {
  for (auto [below, uniform] : {std::pair(0, 1u), {10, 0u}, {32, 1u}})
    EXPECT_EQ(perThread("setp.lt.u32 %pr1, %lane, " + std::to_string(below) +
                        ";\nvote.sync.uni.pred %pr2, %pr1, -1;\nselp.b32 %r0, 1, 0, %pr2;"),
              std::vector<uint32_t>(32, uniform))
        << below;
}

// Lanes outside the mask match nobody; minus zero is below zero.
TEST(Lanes, MatchesAndExtremes) {
  auto d = perThread("setp.lt.u32 %pr1, %lane, 16;\nselp.b32 %r1, 0xFFFF, 0xFFFF0000, %pr1;\n"
                     "mov.u32 %r2, 5;\nmatch.any.sync.b32 %r0, %r2, %r1;");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(d[lane], lane < 16 ? 0xFFFFu : 0xFFFF0000u);
  for (auto [operation, result] : {std::pair("min", 0x80000000u), {"max", 0u}})
    EXPECT_EQ(perThread("and.b32 %r1, %lane, 1;\nshl.b32 %r1, %r1, 31;\nredux.sync." +
                        std::string(operation) + ".f32 %r0, %r1, -1;"),
              std::vector<uint32_t>(32, result))
        << operation;
}

// The tiles of a warp execute one instruction, each with its own mask.
TEST(Lanes, TilesOfAWarpNameTheirOwnMembers) {
  auto d = perThread(R"(
setp.lt.u32 %pr1, %lane, 16;
selp.b32 %r1, 0xFFFF, 0xFFFF0000, %pr1;
redux.sync.add.u32 %r2, %lane, %r1;
setp.eq.u32 %pr2, %lane, 20;
vote.sync.any.pred %pr3, %pr2, %r1;
selp.b32 %r3, 1000, 0, %pr3;
shfl.sync.idx.b32 %r4, %lane, 3, 0x101F, %r1;
bar.warp.sync %r1;
add.u32 %r0, %r2, %r3;
mad.lo.u32 %r0, %r4, 10000, %r0;)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(d[lane], lane < 16 ? 120 + 30000u : 376 + 1000 + 190000u) << lane;
}

// The second half of each tile comes by another way; no tile waits for the other.
TEST(Lanes, TilesMeetWhenTheirMembersArrive) {
  auto d = perThread(R"(
and.b32 %r1, %lane, 8;
setp.ne.u32 %pr1, %r1, 0;
mov.u32 %r0, 0;
setp.lt.u32 %pr2, %lane, 16;
selp.b32 %r1, 0xFFFF, 0xFFFF0000, %pr2;
@%pr1 bra LATE;
mov.u32 %r0, 1;
bra MEET;
LATE:
mov.u32 %r0, 2;
@!%pr2 exit;
MEET:
redux.sync.add.u32 %r0, %r0, %r1;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t sum = lane < 16 ? 24 : 8;
    EXPECT_EQ(d[lane], lane < 24 ? sum : 0) << lane; // the others have left
  }
}

TEST(Lanes, MembersNameTheSameMembers) {
  EXPECT_CONTAINS(failure(R"(
setp.lt.u32 %pr1, %lane, 16;
selp.b32 %r1, -1, 0xFFFF0000, %pr1;
redux.sync.add.u32 %r0, %lane, %r1;)"),
                  "lanes 0x0000ffff name the members 0xffffffff, but lanes 0xffff0000 of these "
                  "name others");
}

TEST(Lanes, ReduxF32) {
  auto d = perThread(R"(
cvt.rn.f32.u32 %f1, %lane;
sub.f32 %f1, 0f41200000, %f1;
redux.sync.max.abs.f32 %f2, %f1, -1;
redux.sync.min.NaN.f32 %f3, %f1, -1;
add.f32 %f4, %f2, %f3;
cvt.rzi.s32.f32 %r0, %f4;)");
  EXPECT_EQ(d, std::vector<uint32_t>(32, 0u)); // 21 and -21
}

TEST(Lanes, ElectPicksOneLane) {
  auto d = perThread(R"(
mov.u32 %r0, 0;
elect.sync %r1|%pr1, -1;
@%pr1 mov.u32 %r0, 1;)");
  EXPECT_EQ(std::count(d.begin(), d.end(), 1u), 1);
}

TEST(Lanes, SyncWithALaneOutsideItsMask) {
  EXPECT_CONTAINS(failure("shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xFFFF;"),
                  "but the member mask is 0x0000ffff");
}
