// Columns of tensor memory that the CTAs of one SM share: who gets which, and launches that hang.
#include "Sim/State/SmColumns.h"
#include "KernelHarness.h"

#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr uint32_t kSms = 148; // of a B200

ColumnsCall call(uint64_t cluster, uint32_t rank, uint32_t number, uint32_t columns,
                 uint32_t place = 0) {
  return {{cluster, place, rank, {uint32_t(cluster), 0, 0}}, number, columns, false, 7};
}

TEST(SmColumns, ClustersOfAPlaceShareColumns) {
  SmColumns columns(2, 2, false);
  EXPECT_EQ(columns.enter(0), 0u);
  EXPECT_EQ(columns.enter(1), 1u);
  EXPECT_EQ(columns.enter(2), 0u);
  EXPECT_EQ(columns.enter(4), 1u) << "place 0 is full";
  EXPECT_EQ(columns.take(call(0, 0, 0, 256)), 0u);
  EXPECT_EQ(columns.take(call(1, 0, 0, 512, 1)), 0u) << "of another SM";
  EXPECT_EQ(columns.take(call(0, 1, 0, 512)), 0u) << "of another SM of the place";
  EXPECT_EQ(columns.take(call(2, 0, 0, 256)), 256u);
  EXPECT_EQ(columns.describeWaiters(call(2, 0, 0, 0).owner), "");
  EXPECT_FALSE(columns.available(call(0, 0, 1, 32)));
  EXPECT_EQ(columns.take(call(0, 0, 1, 32)), std::nullopt);
  EXPECT_EQ(columns.describeOthers(call(2, 0, 1, 32).owner),
            "columns 0..255 by CTA (0,0,0) since line 7, which waits at line 7 for 32 more");
  EXPECT_EQ(columns.describeWaiters(call(2, 0, 0, 0).owner),
            "CTA (0,0,0) waits at line 7 for 32 columns of the tensor memory of this SM");
  columns.leave(2, 0);
  EXPECT_EQ(columns.take(call(0, 0, 1, 32)), 256u);
  EXPECT_EQ(columns.describeOthers(call(0, 0, 0, 0).owner), "");
}

/// Both CTAs of a pair have the same columns, and free them together.
TEST(SmColumns, APairHasOneAllocation) {
  SmColumns columns(1, 2, false);
  EXPECT_EQ(columns.take(call(0, 0, 0, 512)), 0u);
  EXPECT_TRUE(columns.available(call(0, 0, 0, 512))) << "for the second of the pair";
  EXPECT_EQ(columns.take(call(0, 0, 0, 512)), 0u);
  columns.give(call(0, 0, 0, 0).owner, 0, 2);
  EXPECT_FALSE(columns.available(call(1, 0, 0, 512)));
  columns.give(call(0, 0, 0, 0).owner, 0, 2);
  EXPECT_TRUE(columns.available(call(1, 0, 0, 512)));
}

TEST(SmColumns, ExclusiveMeansAlone) {
  SmColumns columns(1, 2, false);
  ColumnsCall alone = call(1, 0, 0, 512);
  alone.exclusive = true;
  EXPECT_EQ(columns.take(call(0, 0, 0, 32)), 0u);
  EXPECT_FALSE(columns.available(alone));
  columns.give(call(0, 0, 0, 0).owner, 0, 1);
  EXPECT_EQ(columns.take(alone), 0u);
  EXPECT_FALSE(columns.available(call(0, 0, 1, 32)));
}

struct Taken {
  uint32_t columns = 256, times = 2, group = 1;
  bool meets = false;   ///< all CTAs of the grid meet while they have the columns
  std::string limit{};  ///< a directive of the kernel
  uint32_t cluster = 0; ///< 0: no more CTAs than the group
};

/// Warp 0 of each CTA allocates, one after the other, and frees.
std::string kernelThat(const Taken &taken, uint32_t ctas) {
  std::string body = "  shr.u32 %r1, %t, 5;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra END;\n";
  for (uint32_t i = 0; i < taken.times; ++i)
    body += fmt::format("  mov.u32 %r{}, slot+{};\n"
                        "  tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [%r{}], {};\n",
                        10 + i, 4 * i, taken.group, 10 + i, taken.columns);
  body += "  bar.warp.sync -1;\n";
  if (taken.meets)
    body += fmt::format("  setp.ne.u32 %p2, %t, 0;\n  @%p2 bra MET;\n"
                        "  red.release.gpu.global.add.u32 [%out], 1;\n"
                        "LOOK:\n  ld.acquire.gpu.global.b32 %r3, [%out];\n"
                        "  setp.lt.u32 %p3, %r3, {};\n  @%p3 bra LOOK;\nMET:\n"
                        "  bar.warp.sync -1;\n",
                        ctas);
  for (uint32_t i = 0; i < taken.times; ++i)
    body += fmt::format("  ld.shared.b32 %r{0}, [slot+{1}];\n"
                        "  tcgen05.dealloc.cta_group::{2}.sync.aligned.b32 %r{0}, {3};\n",
                        20 + i, 4 * i, taken.group, taken.columns);
  std::string text = kernelText(body + "END:\n", "  .shared .align 4 .b8 slot[16];\n");
  const std::string head = "out_param)\n";
  return text.insert(text.find(head) + head.size(), taken.limit);
}

/// The errors under three policies, of which the eager one alone is asked where CTAs meet.
std::string errorOf(const Taken &taken, uint32_t ctas, uint32_t threads = 1024) {
  LaunchConfig config;
  config.grid = {ctas, 1, 1};
  config.cluster = {std::max(taken.group, taken.cluster), 1, 1};
  config.block = {threads, 1, 1};
  const std::string text = kernelThat(taken, ctas);
  const std::string eager = runText(text, schedules()[0], config, 1).error;
  for (const size_t other : {1, 2})
    if (!taken.meets) {
      const std::string error = runText(text, schedules()[other], config, 1).error;
      EXPECT_EQ(error.empty(), eager.empty()) << error;
      EXPECT_EQ(error.find("which waits at line") == error.npos, error.empty()) << error;
    }
  return eager;
}

TEST(SmColumns, TwoCtasThatWantMoreHang) {
  EXPECT_EQ(errorOf({.columns = 128}, 2 * kSms), "");
  EXPECT_THAT(errorOf({.columns = 256}, 2 * kSms),
              AllOf(HasSubstr("deadlock"), HasSubstr("by CTA (148,0,0)"),
                    HasSubstr("which waits at line"), HasSubstr("for 256 more")));
}

TEST(SmColumns, OneAllocationOfEachComesInTurn) {
  EXPECT_EQ(errorOf({.columns = 512, .times = 1}, 3 * kSms), "");
  EXPECT_EQ(errorOf({.columns = 512, .times = 1, .group = 2}, 4 * kSms), "");
}

TEST(SmColumns, CtasOfDifferentSmsShareNothing) {
  EXPECT_EQ(errorOf({.columns = 256}, kSms), "");
  EXPECT_EQ(errorOf({.columns = 256, .limit = ".maxnreg 128\n"}, 2 * kSms, 512), "")
      << "registers of one CTA";
  EXPECT_THAT(errorOf({.columns = 256}, 2 * kSms, 512), HasSubstr("deadlock"));
}

TEST(SmColumns, PairsShareToo) {
  EXPECT_EQ(errorOf({.columns = 128, .group = 2}, 2 * kSms), "");
  EXPECT_THAT(errorOf({.columns = 256, .group = 2}, 2 * kSms),
              AllOf(HasSubstr("deadlock"), HasSubstr("by CTA (148,0,0)")));
}

/// A CTA that waits for all others has columns that one of them waits for.
TEST(SmColumns, AGridThatMeetsNeedsColumnsForAll) {
  constexpr uint32_t ctas = 2 * 8 * (kSms / 8);
  EXPECT_EQ(errorOf({.columns = 256, .times = 1, .meets = true, .cluster = 8}, ctas), "");
  EXPECT_THAT(errorOf({.columns = 512, .times = 1, .meets = true, .cluster = 8}, ctas),
              AllOf(HasSubstr("livelock"),
                    HasSubstr("CTA (144,0,0) waits at line 21 for 512 columns of the tensor "
                              "memory of this SM")));
}

} // namespace
