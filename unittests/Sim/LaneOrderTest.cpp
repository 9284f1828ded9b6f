//===- LaneOrderTest.cpp - Diverged lanes meet where their ways join ------===//
//
// Each kernel has a long end. If its lanes meet before it, a warp executes it once; so the numbers
// of executed instructions say where they met.
//
//===----------------------------------------------------------------------===//
#include "SimFixture.h"
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

struct Ran {
  uint64_t instructions = 0;
  std::vector<uint32_t> out;
};

/// `functions` are in front of the kernel. The body has one parameter: 32 words.
Ran runBody(const std::string &body, const std::string &functions = "") {
  Simulator simulator;
  const uint64_t out = upload(simulator, std::vector<uint32_t>(32), "out");
  std::string text = kernel(body, 1);
  text.insert(text.find(".visible"), functions);
  auto stats = run(simulator, text, {out});
  EXPECT_TRUE(stats) << messageOf(stats);
  return {stats ? stats->warpInstructions : 0, download<uint32_t>(simulator, out, 32)};
}

/// Forty additions of one to %r0, and the end of the kernel.
std::string longEnd() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "add.u32 %r0, %r0, 1;\n";
  return text + "mad.wide.u32 %rd1, %lane, 4, %p0;\nst.global.b32 [%rd1], %r0;\nret;\n";
}

TEST(LaneOrder, ARareWayBehindTheEndJoinsTheOthers) {
  const std::string begin = "mov.u32 %r0, %lane;\nsetp.lt.u32 %pr1, %lane, 3;\n";
  const Ran inLine =
      runBody(begin + "@!%pr1 bra JOIN;\nadd.u32 %r0, %r0, 100;\nJOIN:\n" + longEnd());
  const Ran behind = runBody(begin + "@%pr1 bra RARE;\nJOIN:\n" + longEnd() +
                             "RARE: add.u32 %r0, %r0, 100;\nbra JOIN;\n");
  EXPECT_EQ(behind.out, inLine.out);
  EXPECT_EQ(behind.out[2], 142u);
  EXPECT_EQ(behind.instructions, inLine.instructions + 1); // its branch back
}

TEST(LaneOrder, LanesWaitBehindALoopWhoseBodyIsBehindTheEnd) {
  const std::string begin = "and.b32 %r2, %lane, 3;\nmov.u32 %r0, %lane;\nHEAD:\n"
                            "setp.eq.u32 %pr1, %r2, 0;\n";
  const std::string step = "sub.u32 %r2, %r2, 1;\nbra HEAD;\n";
  const Ran inLine = runBody(begin + "@%pr1 bra DONE;\n" + step + "DONE:\n" + longEnd());
  const Ran behind = runBody(begin + "@!%pr1 bra STEP;\n" + longEnd() + "STEP: " + step);
  EXPECT_EQ(behind.out, inLine.out);
  EXPECT_EQ(behind.instructions, inLine.instructions);
}

TEST(LaneOrder, ALoopWithinALoop) {
  // lane / 4 times around, and lane % 4 times within; what leads out stands before what goes on
  const Ran ran = runBody(R"(
shr.u32 %r1, %lane, 2;
mov.u32 %r0, 0;
OUTER: setp.ne.u32 %pr1, %r1, 0;
@%pr1 bra AROUND;
)" + longEnd() + R"(
NEXT: sub.u32 %r1, %r1, 1;
bra OUTER;
AROUND: and.b32 %r2, %lane, 3;
INNER: setp.ne.u32 %pr2, %r2, 0;
@!%pr2 bra NEXT;
add.u32 %r0, %r0, 1;
sub.u32 %r2, %r2, 1;
bra INNER;
)");
  constexpr uint64_t outside = 3 + 2 + 43, around = 2 + 1 + 2, within = 2 + 3, last = 2;
  EXPECT_EQ(ran.instructions, outside + 2 + 7 * (around + 3 * within + last));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(ran.out[lane], 40 + lane / 4 * (lane % 4));
}

TEST(LaneOrder, LanesThatDoNotCallWaitForThoseThatDo) {
  const char *const function = R"(
.func (.param .b32 result) addHundred(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  add.u32 %r2, %r1, 100;
  st.param.b32 [result], %r2;
  ret;
}
)";
  const auto calls = [&](uint32_t lanes) {
    return runBody(fmt::format(R"(
.param .b32 p; .param .b32 q;
mov.u32 %r0, %lane;
st.param.b32 [p], %lane;
setp.lt.u32 %pr1, %lane, {};
@%pr1 call (q), addHundred, (p);
@%pr1 ld.param.b32 %r0, [q];
)",
                               lanes) +
                       longEnd(),
                   function);
  };
  const Ran few = calls(5), all = calls(32);
  EXPECT_EQ(few.instructions, all.instructions);
  EXPECT_EQ(few.out[4], 144u);
  EXPECT_EQ(few.out[5], 45u);
}

TEST(LaneOrder, LanesOfABranchTableMeetBehindIt) {
  const auto table = [](uint32_t mask) {
    return runBody(fmt::format("and.b32 %r1, %lane, {};\nmov.u32 %r0, 0;\n", mask) + R"(
TABLE: .branchtargets A, B, C, D;
brx.idx %r1, TABLE;
D: add.u32 %r0, %r0, 1000;
bra JOIN;
JOIN:
)" + longEnd() + R"(
A: add.u32 %r0, %r0, 1;
bra JOIN;
C: add.u32 %r0, %r0, 100;
bra JOIN;
B: add.u32 %r0, %r0, 10;
bra JOIN;
)");
  };
  const Ran one = table(0), four = table(3);
  EXPECT_EQ(four.instructions, one.instructions + 3 * 2);
  EXPECT_EQ(four.out[1], 50u);
  EXPECT_EQ(four.out[3], 1040u);
}

} // namespace
