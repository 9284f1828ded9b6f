// A value that lanes of a warp exchange was loaded before: by default that orders what they do
// behind the exchange after the loads, and nothing else.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// Every lane loads its word to %v0, then `between`, then stores to the word of its neighbour.
std::string overwritten(const std::string &between, int distance = 1) {
  return litmus("  st.shared.b32 [%r0], %t;\n  st.shared.b32 [%r0+512], %t;\n"
                "  bar.warp.sync -1;\n" +
                fmt::format("  xor.b32 %r5, %t, {};\n", distance) +
                "  mad.lo.u32 %r6, %r5, 4, %r1;\n  mov.u32 %v3, 0;\n"
                "  ld.shared.b32 %v0, [%r0];\n" +
                between + "  st.shared.b32 [%r6], %t;\n");
}

bool isClean(const std::string &text, bool strict = false) {
  Litmus test{};
  test.threads = 32;
  const Judged judged = judge(text, schedules()[0], test, strict);
  EXPECT_EQ(judged.error, "") << text;
  for (const HazardReport &report : judged.reports)
    EXPECT_EQ(report.rule, HazardRule::LaneRace) << judged.text();
  return judged.reports.empty();
}

/// Instructions that take a value of each lane, here VALUE.
const std::string kExchanges[] = {
    "  shfl.sync.bfly.b32 %v1, VALUE, 16, 31, -1;\n",
    "  setp.ne.u32 %p3, VALUE, 0;\n  vote.sync.any.pred %p4, %p3, -1;\n",
    "  setp.ne.u32 %p3, VALUE, 0;\n  vote.sync.ballot.b32 %v1, %p3, -1;\n",
    "  match.any.sync.b32 %v1, VALUE, -1;\n",
    "  match.all.sync.b32 %v1, VALUE, -1;\n",
    "  redux.sync.add.s32 %v1, VALUE, -1;\n",
    "  add.u32 %v2, VALUE, 1;\n  mul.lo.u32 %v2, %v2, 3;\n  redux.sync.max.u32 %v1, %v2, -1;\n",
    "  mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%v1, %v2}, {VALUE}, {%v3}, {%v3, %v3};\n",
    "  and.b32 %r7, VALUE, 0;\n  add.u32 %r7, %r7, %r1;\n"
    "  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v1}, [%r7+512];\n",
    "  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+768], {VALUE};\n",
};

std::string of(std::string exchange, const std::string &value) {
  for (size_t at; (at = exchange.find("VALUE")) != std::string::npos;)
    exchange.replace(at, 5, value);
  return exchange;
}

TEST(LaneExchange, OrdersTheLoadsOfItsValues) {
  EXPECT_FALSE(isClean(overwritten("")));
  for (const std::string &exchange : kExchanges) {
    EXPECT_TRUE(isClean(overwritten(of(exchange, "%v0")))) << exchange;
    EXPECT_FALSE(isClean(overwritten(of(exchange, "%v0")), /*strict=*/true)) << exchange;
    EXPECT_FALSE(isClean(overwritten(of(exchange, "%t")))) << exchange;
  }
}

TEST(LaneExchange, WhatTakesNoValueOrdersNothing) {
  EXPECT_FALSE(isClean(overwritten("  activemask.b32 %v1;\n")));
  EXPECT_FALSE(isClean(overwritten("  elect.sync %v1|%p3, -1;\n")));
  EXPECT_FALSE(isClean(overwritten("  add.u32 %v1, %v0, 1;\n")));
  EXPECT_TRUE(isClean(overwritten("  bar.warp.sync -1;\n")));
}

/// Lanes of other members do not wait for each other.
TEST(LaneExchange, OrdersItsMembers) {
  const std::string halves = "  and.b32 %r7, %t, 16;\n  mov.u32 %r8, 0xffff;\n"
                             "  shl.b32 %r8, %r8, %r7;\n"
                             "  shfl.sync.bfly.b32 %v1, %v0, 8, 31, %r8;\n";
  EXPECT_TRUE(isClean(overwritten(halves, 1)));
  EXPECT_FALSE(isClean(overwritten(halves, 16)));
}

/// A store need not be seen behind an exchange of what was stored.
TEST(LaneExchange, OrdersNoStores) {
  const std::string stored =
      litmus("  mov.u32 %v0, %t;\n  st.shared.b32 [%r0], %v0;\n"
             "  shfl.sync.bfly.b32 %v1, %v0, 1, 31, -1;\n  xor.b32 %r5, %t, 1;\n"
             "  mad.lo.u32 %r6, %r5, 4, %r1;\n  ld.shared.b32 %v2, [%r6];\n");
  EXPECT_FALSE(isClean(stored));
  EXPECT_TRUE(isClean(replaced(stored, "  shfl.sync", "  bar.warp.sync -1;\n  shfl.sync")));
}

/// The load of a later pass is not that of which lanes exchanged the value.
TEST(LaneExchange, OrdersTheLoadsBeforeIt) {
  const auto loop = [](const std::string &before, const std::string &behind) {
    return litmus("  st.shared.b32 [%r0], %t;\n  bar.warp.sync -1;\n  xor.b32 %r5, %t, 1;\n"
                  "  mad.lo.u32 %r6, %r5, 4, %r1;\n  mov.u32 %r7, 0;\n  mov.u32 %v2, 0;\nAGAIN:\n" +
                  before + "  ld.shared.b32 %v0, [%r0];\n" + behind +
                  "  add.u32 %r7, %r7, 1;\n  setp.lt.u32 %p3, %r7, 3;\n  @%p3 bra AGAIN;\n"
                  "  st.shared.b32 [%r6], %v1;\n");
  };
  const std::string exchange = "  shfl.sync.bfly.b32 %v1, %v2, 1, 31, -1;\n",
                    keep = "  mov.u32 %v2, %v0;\n";
  EXPECT_TRUE(isClean(loop("", keep + exchange)));
  EXPECT_FALSE(isClean(loop(exchange, keep)));
}

/// The sum of a CTA as every guide has it: all lanes store it over the first of its parts.
TEST(LaneExchange, TheSumOfABlock) {
  const std::string butterfly = "  shfl.sync.bfly.b32 %v1, %v0, 16, 31, -1;\n"
                                "  add.u32 %v0, %v0, %v1;\n"
                                "  shfl.sync.bfly.b32 %v1, %v0, 8, 31, -1;\n"
                                "  add.u32 %v0, %v0, %v1;\n";
  const std::string sum = litmus("  @%p1 bra MET;\nMET:\n  st.shared.b32 [%r0], %t;\n"
                                 "  bar.sync 0;\n  @%p1 bra END;\n  ld.shared.b32 %v0, [%r0];\n" +
                                 butterfly + "  st.shared.b32 [%r1], %v0;\nEND:\n");
  const std::string constant = replaced(sum, "[%r1], %v0", "[%r1], 7");
  EXPECT_TRUE(isClean(constant));
  EXPECT_FALSE(isClean(replaced(constant, butterfly, "")));
}

} // namespace
