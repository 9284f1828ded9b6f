// Bank conflicts and uncoalesced accesses, counted by instruction.
#include "KernelHarness.h"
#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/ObserverList.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// Lane t reads word `stride` * t of shared memory and writes word `stride` * t of global memory.
std::vector<AccessCount> count(unsigned stride) {
  const std::string factor = std::to_string(4 * stride);
  const std::string text =
      kernelText("  mov.u32 %r1, buf;\n  mad.lo.u32 %r0, %t, " + factor +
                     ", %r1;\n  mul.wide.u32 %rd1, %t, " + factor +
                     ";\n  add.u64 %rd1, %rd1, %out;\n  ld.shared.b32 %v0, [%r0];\n"
                     "  mov.u32 %v1, %ctaid.x;\n  add.u32 %v0, %v0, %v1;\n"
                     "  st.global.b32 [%rd1], %v0;\n",
                 "  .shared .align 128 .b8 buf[4096];\n");
  AccessStatistics statistics;
  HazardChecker checker;
  ObserverList both;
  both.add(&checker);
  both.add(&statistics);
  SimOptions options;
  options.observer = &both;
  options.uninitializedReads = UninitializedReads::Ignore;
  const RunResult result = runText(text, options, {{2, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0}, 1024);
  EXPECT_EQ(result.error, "");
  EXPECT_FALSE(checker.reports().empty()); // both CTAs write the same words, not the same values
  return statistics.wasteful();
}

TEST(AccessStatistics, NeighboursAreFree) { EXPECT_TRUE(count(1).empty()); }

TEST(AccessStatistics, AStrideCosts) {
  const std::vector<AccessCount> counts = count(32);
  ASSERT_EQ(counts.size(), 2u);
  const AccessCount &shared = counts[counts[0].shared ? 0 : 1];
  const AccessCount &global = counts[counts[0].shared ? 1 : 0];
  EXPECT_EQ(shared.accesses, 2u);
  EXPECT_EQ(shared.cost, 64u); // all lanes of a warp in one bank
  EXPECT_EQ(shared.least, 2u);
  EXPECT_EQ(global.cost, 64u); // a sector for each lane
  EXPECT_EQ(global.least, 8u);
  EXPECT_THAT(shared.text(), testing::HasSubstr("2 accesses, 64 wavefronts where 2 suffice"));
}

TEST(AccessStatistics, HalfTheBanks) {
  const std::vector<AccessCount> counts = count(2);
  ASSERT_EQ(counts.size(), 2u);
  for (const AccessCount &count : counts)
    EXPECT_EQ(count.cost, 2 * count.least);
}

} // namespace
