//===- PoisonTest.cpp - Uses of shared memory that nobody wrote -----------===//
//
// Every rule of Decode/PoisonRules.def: what is told, and a twin that is clean.
//
//===----------------------------------------------------------------------===//
#include "SimFixture.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// %r1 and %f1 have the lane, and %r2 and %f2 a word that nobody wrote; %r3 has such a word in
/// lanes 4 to 7 alone. %pr1 is true, %pr2 is unknown. `a` is the address of the lane's word.
constexpr const char *kPrelude = R"(
.shared .align 16 .b32 tile[64];
.reg .b32 %a;
mad.lo.u32 %a, %lane, 4, tile;
st.shared.b32 [%a], %lane;
ld.shared.b32 %r1, [%a];
ld.shared.b32 %r2, [%a+128];
mov.b32 %f1, %r1;
mov.b32 %f2, %r2;
setp.ge.u32 %pr1, %lane, 0;
setp.ne.u32 %pr2, %r2, 0;
shr.u32 %r4, %lane, 2;
setp.eq.u32 %pr3, %r4, 1;
selp.b32 %r3, %r2, %r1, %pr3;
)";
constexpr const char *kStore = R"(
mad.wide.u32 %rd63, %lane, 4, %p0;
st.global.b32 [%rd63], %r0;
)";
constexpr const char *kNone = "no error";

/// Returns the error of a kernel of one warp that ends with a store of %r0.
std::string told(const std::string &body) { return failure(kPrelude + body + kStore); }

struct Case {
  const char *what;
  const char *clean, *dirty;
};

void expectTwins(std::initializer_list<Case> cases) {
  for (const Case &c : cases) {
    EXPECT_EQ(told(c.clean), kNone) << c.what;
    EXPECT_CONTAINS(told(c.dirty), "which was never written") << c.what;
  }
}

TEST(Poison, AUseIsToldWithItsLoadAndByte) {
  const std::string message = told("add.u32 %r0, %r2, 1;");
  EXPECT_CONTAINS(message, "lane 0, at test.ptx:");
  EXPECT_CONTAINS(message, "stores to global memory a value of shared byte 0x480 ('tile+128'), "
                           "which was never written");
  EXPECT_CONTAINS(message, "read it: ld.shared.b32 %r2, [%a+128]; a store");
  EXPECT_CONTAINS(message, "--unwritten=ignore lets it pass");
  EXPECT_CONTAINS(message, "the instruction is: st.global.b32 [%rd63], %r0;");
}

TEST(Poison, TheLaneAndItsByteAreThoseOfTheUse) {
  const std::string message = told("mov.b32 %r0, %r3;");
  EXPECT_CONTAINS(message, "lane 4, at");
  EXPECT_CONTAINS(message, "shared byte 0x490 ('tile+144')");
}

TEST(Poison, ToLoadIsNoUse) {
  EXPECT_EQ(told("mov.b32 %r0, %r1;"), kNone);
  SimOptions lenient;
  lenient.uninitializedReads = UninitializedReads::Ignore;
  EXPECT_EQ(failure(std::string(kPrelude) + "mov.b32 %r0, %r2;" + kStore, blocks(32), lenient),
            kNone);
}

// Copies of tensors read the first 64 bytes of a map, and CuTe DSL writes no others.
TEST(Poison, ATensorMapHas64BytesThatAreUsed) {
  const auto copied = [](const char *words) {
    return std::string(".shared .align 128 .b8 map[128]; .reg .pred %few;\n"
                       "mad.lo.u32 %a, %lane, 4, map; setp.lt.u32 %few, %lane, ") +
           words +
           ";\n@%few st.shared.b32 [%a], %r1; bar.warp.sync -1; mov.b32 %r5, map;\n"
           "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
           "[%p0], [%r5], 128; mov.b32 %r0, %r1;";
  };
  EXPECT_EQ(told(copied("16")), kNone);
  EXPECT_CONTAINS(told(copied("15")), "('map+60'), which was never written");
}

TEST(Poison, MovesAndWritesOverIt) {
  expectTwins({
      {"mov", "mov.b32 %r2, 5; mov.b32 %r0, %r2;", "mov.b32 %r0, %r2;"},
      {"some lanes are overwritten", "@%pr3 mov.b32 %r3, 5; mov.b32 %r0, %r3;",
       "@!%pr3 mov.b32 %r3, 5; mov.b32 %r0, %r3;"},
      {"parts of a register",
       "mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r0, %r5}, %rd1;",
       "mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r5, %r0}, %rd1;"},
      {"cvt of integers", "cvt.u64.u32 %rd1, %r2; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r0, %rd1;",
       "cvt.s64.s32 %rd1, %r2; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r0, %rd1;"},
      {"brev", "and.b32 %r5, %r2, 0xFF; brev.b32 %r5, %r5; and.b32 %r0, %r5, 0xFFFFFF;",
       "and.b32 %r5, %r2, 0xFF; brev.b32 %r5, %r5; and.b32 %r0, %r5, 0x1FFFFFF;"},
  });
}

TEST(Poison, LogicWithKnownBits) {
  expectTwins({
      {"and with zeros", "and.b32 %r0, %r2, 0;", "and.b32 %r0, %r2, 1;"},
      {"or with ones", "or.b32 %r0, %r2, -1;", "or.b32 %r0, %r2, 0xFF;"},
      {"xor and not", "not.b32 %r5, %r2; and.b32 %r0, %r5, 0;", "xor.b32 %r0, %r2, %r1;"},
      {"a table of truth", "lop3.b32 %r0, %r2, %r1, %r1, 0xCC;",
       "lop3.b32 %r0, %r2, %r1, %r1, 0xF0;"},
      {"a table with a known zero", "lop3.b32 %r0, %r2, 0, %r1, 0xEA;",
       "lop3.b32 %r0, %r2, 1, 0, 0xEA;"},
      {"predicates", "setp.lt.u32 %pr4, %lane, 0; and.pred %pr5, %pr2, %pr4; @%pr5 mov.b32 %r1, 1;"
                     "mov.b32 %r0, %r1;",
       "and.pred %pr5, %pr2, %pr1; @%pr5 mov.b32 %r1, 1; mov.b32 %r0, %r1;"},
  });
}

TEST(Poison, ShiftsAndFields) {
  expectTwins({
      {"shl", "shl.b32 %r5, %r2, 16; and.b32 %r0, %r5, 0xFFFF;",
       "shl.b32 %r5, %r2, 15; and.b32 %r0, %r5, 0xFFFF;"},
      {"shr of a sign", "and.b32 %r5, %r2, 0xFF; shr.s32 %r0, %r5, 8;",
       "shr.s32 %r5, %r2, 31; shr.u32 %r0, %r5, 31;"},
      {"a shift by something unknown", "shl.b32 %r0, %r1, %r1;", "shl.b32 %r0, %r1, %r2;"},
      {"shf", "shf.l.wrap.b32 %r0, %r2, %r1, 0;", "shf.l.wrap.b32 %r0, %r2, %r1, 1;"},
      {"prmt", "prmt.b32 %r0, %r1, %r2, 0x3210;", "prmt.b32 %r0, %r1, %r2, 0x4210;"},
      {"prmt of a sign", "and.b32 %r5, %r2, 0x7F; prmt.b32 %r0, %r1, %r5, 0x210C;",
       "prmt.b32 %r0, %r1, %r2, 0x210C;"},
      {"bfe", "and.b32 %r5, %r2, 0xFF; bfe.u32 %r0, %r5, 8, 8;", "bfe.u32 %r0, %r2, 8, 8;"},
      {"bfi", "bfi.b32 %r0, %r1, %r2, 0, 32;", "bfi.b32 %r0, %r1, %r2, 0, 31;"},
  });
}

TEST(Poison, ArithmeticBlursWhatItReaches) {
  expectTwins({
      {"a sum carries upwards",
       "and.b32 %r5, %r2, 0xFF00; add.u32 %r5, %r5, %r1; and.b32 %r0, %r5, 0xFF;",
       "and.b32 %r5, %r2, 0xFF00; add.u32 %r5, %r5, %r1; and.b32 %r0, %r5, 0x10000;"},
      {"the upper half of a product",
       "mul.lo.u32 %r0, %r1, %r1;", "and.b32 %r5, %r2, 0xFF00; mul.hi.u32 %r0, %r5, %r1;"},
      {"halves", "and.b32 %r5, %r2, 0xFFFF0000; add.f16x2 %r5, %r5, %r1; and.b32 %r0, %r5, 0xFFFF;",
       "and.b32 %r5, %r2, 0xFFFF0000; add.f16x2 %r5, %r5, %r1; shr.u32 %r0, %r5, 16;"},
      {"floats", "fma.rn.f32 %f3, %f1, %f1, %f1; mov.b32 %r0, %f3;",
       "fma.rn.f32 %f3, %f1, 0f00000000, %f2; mov.b32 %r0, %f3;"},
      {"a pair of conversions", "cvt.rn.f16x2.f32 %r5, %f2, %f1; and.b32 %r0, %r5, 0xFFFF;",
       "cvt.rn.f16x2.f32 %r5, %f1, %f2; and.b32 %r0, %r5, 0xFFFF;"},
      {"its upper half", "cvt.rn.f16x2.f32 %r5, %f1, %f2; shr.u32 %r0, %r5, 16;",
       "cvt.rn.f16x2.f32 %r5, %f2, %f1; shr.u32 %r0, %r5, 16;"},
      {"a conversion", "cvt.rzi.s32.f32 %r0, %f1;", "cvt.rzi.s32.f32 %r0, %f2;"},
      {"carries", "add.cc.u32 %r5, %r2, %r1; add.cc.u32 %r5, %r1, %r1; addc.u32 %r0, %r1, 0;",
       "add.cc.u32 %r5, %r2, %r1; addc.u32 %r0, %r1, 0;"},
      {"popc", "popc.b32 %r0, %r1;", "popc.b32 %r0, %r2;"},
  });
}

TEST(Poison, SelectionAndComparison) {
  expectTwins({
      {"selp", "selp.b32 %r0, %r1, %r2, %pr1;", "selp.b32 %r0, %r2, %r1, %pr1;"},
      {"selp by something unknown", "selp.b32 %r0, 7, 7, %pr2;", "selp.b32 %r0, 7, 6, %pr2;"},
      {"slct", "slct.b32.s32 %r0, %r1, %r2, 1;", "slct.b32.s32 %r0, %r1, %r2, -1;"},
      {"a known bit that differs decides",
       "or.b32 %r5, %r2, 1; setp.eq.u32 %pr4, %r5, 0; selp.b32 %r0, 1, 2, %pr4;",
       "setp.eq.u32 %pr4, %r2, 0; selp.b32 %r0, 1, 2, %pr4;"},
      {"a comparison that is false, and something unknown",
       "setp.gt.and.u32 %pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;",
       "setp.lt.and.u32 %pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;"},
      {"its opposite", "setp.lt.and.u32 %pr5|%pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;",
       "setp.gt.and.u32 %pr5|%pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;"},
      {"something unknown, and a predicate that is false",
       "setp.lt.u32 %pr5, %lane, 0; setp.gt.and.u32 %pr4, %r2, 9, %pr5; selp.b32 %r0, 1, 2, %pr4;",
       "setp.gt.and.u32 %pr4, %r2, 9, %pr1; selp.b32 %r0, 1, 2, %pr4;"},
      {"or", "setp.lt.or.u32 %pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;",
       "setp.gt.or.u32 %pr4, %lane, 99, %pr2; selp.b32 %r0, 1, 2, %pr4;"},
      {"halves", "and.b32 %r5, %r2, 0xFFFF0000; setp.lt.f16x2 %pr4|%pr5, %r5, %r1;"
                 "selp.b32 %r0, 1, 2, %pr4;",
       "and.b32 %r5, %r2, 0xFFFF0000; setp.lt.f16x2 %pr4|%pr5, %r5, %r1;"
       "selp.b32 %r0, 1, 2, %pr5;"},
      {"set", "set.gt.u32.u32 %r0, %r1, 3;", "set.gt.u32.u32 %r0, %r2, 3;"},
  });
}

TEST(Poison, AcrossLanes) {
  expectTwins({
      {"shfl", "shfl.sync.idx.b32 %r0, %r3, 8, 31, -1;", "shfl.sync.idx.b32 %r0, %r3, 5, 31, -1;"},
      {"shfl to some lanes", "shfl.sync.bfly.b32 %r5, %r3, 4, 31, -1;"
                             "setp.lt.u32 %pr4, %lane, 4; @%pr4 mov.b32 %r5, 0; mov.b32 %r0, %r5;",
       "shfl.sync.bfly.b32 %r5, %r3, 4, 31, -1; @%pr3 mov.b32 %r5, 0; mov.b32 %r0, %r5;"},
      {"shfl says which lanes are in range",
       "shfl.sync.down.b32 %r5|%pr2, %r2, 1, 31, -1; selp.b32 %r0, 1, 2, %pr2;",
       "shfl.sync.down.b32 %r5, %r1, %r2, 31, -1; mov.b32 %r0, %r1;"},
      {"vote.any of a lane that is known",
       "vote.sync.any.pred %pr4, %pr5, -1; selp.b32 %r0, 1, 2, %pr4;",
       "vote.sync.any.pred %pr4, %pr2, -1; selp.b32 %r0, 1, 2, %pr4;"},
      {"one lane decides", "setp.ne.u32 %pr4, %r3, 9; vote.sync.any.pred %pr5, %pr4, -1;"
                           "selp.b32 %r0, 1, 2, %pr5;",
       "setp.eq.u32 %pr4, %r3, 77; vote.sync.any.pred %pr5, %pr4, -1; selp.b32 %r0, 1, 2, %pr5;"},
      {"all", "setp.eq.u32 %pr4, %r3, 77; vote.sync.all.pred %pr5, %pr4, -1;"
              "selp.b32 %r0, 1, 2, %pr5;",
       "setp.ne.u32 %pr4, %r3, 77; vote.sync.all.pred %pr5, %pr4, -1; selp.b32 %r0, 1, 2, %pr5;"},
      {"ballot", "setp.ne.u32 %pr4, %r3, 9; vote.sync.ballot.b32 %r5, %pr4, -1;"
                 "and.b32 %r0, %r5, 0xFF0F;",
       "setp.ne.u32 %pr4, %r3, 9; vote.sync.ballot.b32 %r5, %pr4, -1; and.b32 %r0, %r5, 0xFF1F;"},
      {"match", "match.any.sync.b32 %r0, %r1, -1;", "match.any.sync.b32 %r0, %r3, -1;"},
      {"redux of other members",
       "selp.b32 %r6, 0xF0, 0xFFFFFF0F, %pr3; redux.sync.add.u32 %r5, %r3, %r6;"
       "@%pr3 mov.b32 %r5, 0; mov.b32 %r0, %r5;",
       "redux.sync.add.u32 %r0, %r3, -1;"},
  });
}

TEST(Poison, BranchesGuardsAndAddressesAreUses) {
  EXPECT_CONTAINS(told("@%pr2 bra NEXT;\nst.shared.b32 [%a], 1;\nNEXT: mov.b32 %r0, 1;"),
                  "branches on a value of shared");
  EXPECT_CONTAINS(told("@%pr2 st.shared.b32 [%a], 1;\nmov.b32 %r0, 1;"),
                  "is guarded by a value of shared");
  EXPECT_CONTAINS(told("ld.shared.b32 %r0, [%r2];"), "takes as an address a value of shared");
  EXPECT_CONTAINS(told("st.shared.b32 [%r2], 1;"), "takes as an address a value of shared");
  EXPECT_CONTAINS(told("red.global.add.u32 [%p0], %r2;"), "uses a value of shared");
  EXPECT_CONTAINS(told("bar.sync %r2;"), "uses a value of shared");
  EXPECT_CONTAINS(told("ts: .branchtargets A, B;\nbrx.idx %r2, ts;\nA:\nB: mov.b32 %r0, 1;"),
                  "branches on a value of shared");
  EXPECT_EQ(told("@%pr1 bra NEXT;\nst.shared.b32 [%a], 1;\nNEXT: mov.b32 %r0, 1;"), kNone);
  EXPECT_EQ(told("@%pr1 st.shared.b32 [%a], 1;\nmov.b32 %r0, 1;"), kNone);
  EXPECT_EQ(told("ld.shared.b32 %r0, [%a];\nred.global.add.u32 [%p0], %r1;"), kNone);
}

//===----------------------------------------------------------------------===//
// Branches that select
//===----------------------------------------------------------------------===//

TEST(Poison, ABranchAroundComputationsSelects) {
  expectTwins({
      {"one side", "mov.b32 %r5, 0; @%pr2 bra J; add.u32 %r5, %r1, 1; J: mov.b32 %r0, %r1;",
       "mov.b32 %r5, 0; @%pr2 bra J; add.u32 %r5, %r1, 1; J: mov.b32 %r0, %r5;"},
      {"the side that is not taken",
       "setp.ne.u32 %pr4, %r2, %r2; mov.b32 %r5, 0; @!%pr4 bra J; mov.b32 %r5, 1; J: mov.b32 %r0, 1;",
       "setp.ne.u32 %pr4, %r2, %r2; mov.b32 %r5, 0; @!%pr4 bra J; mov.b32 %r5, 1;"
       "J: mov.b32 %r0, %r5;"},
      {"two sides", "@%pr2 bra E; mov.b32 %r5, 1; bra J; E: mov.b32 %r6, 2; J: mov.b32 %r0, %r1;",
       "mov.b32 %r5, 0; @%pr2 bra E; mov.b32 %r5, 1; bra J; E: mov.b32 %r6, 2; J: mov.b32 %r0, %r5;"},
      {"what is overwritten behind it",
       "@%pr2 bra J; mov.b32 %r0, 1; J: mov.b32 %r0, 2;",
       "mov.b32 %r0, 2; @%pr2 bra J; mov.b32 %r0, 1; J:"},
      {"some lanes",
       "setp.ne.u32 %pr4, %r3, 9; mov.b32 %r0, 0; @%pr4 bra J; mov.b32 %r0, 1; J:"
       "@%pr3 mov.b32 %r0, 2;",
       "setp.ne.u32 %pr4, %r3, 9; mov.b32 %r0, 0; @%pr4 bra J; mov.b32 %r0, 1; J:"
       "@!%pr3 mov.b32 %r0, 2;"},
      {"a predicate",
       "setp.eq.u32 %pr5, %r1, 0; @%pr2 bra J; setp.eq.u32 %pr5, %r1, 3;"
       "J: selp.b32 %r0, 5, 5, %pr5;",
       "setp.eq.u32 %pr5, %r1, 0; @%pr2 bra J; setp.eq.u32 %pr5, %r1, 3;"
       "J: selp.b32 %r0, 5, 6, %pr5;"},
      {"the carry", "@%pr2 bra J; add.cc.u32 %r5, %r1, %r1; J: add.u32 %r0, %r1, 0;",
       "@%pr2 bra J; add.cc.u32 %r5, %r1, %r1; J: addc.u32 %r0, %r1, 0;"},
      {"a guard", "mov.b32 %r5, 0; @%pr2 mov.b32 %r5, 1; mov.b32 %r0, %r1;",
       "mov.b32 %r5, 0; @%pr2 mov.b32 %r5, 1; mov.b32 %r0, %r5;"},
  });
  EXPECT_CONTAINS(told("mov.b32 %r0, 2; @%pr2 bra J; mov.b32 %r0, 1; J:"),
                  "stores to global memory a value of shared byte 0x480")
      << "the use is told, and the load that the choice comes from";
}

TEST(Poison, SelectionsInSelections) {
  expectTwins({
      {"an unknown choice in a known one",
       "mov.b32 %r5, 0; @!%pr1 bra J; @%pr2 bra I; mov.b32 %r5, 1; I: mov.b32 %r6, 1;"
       "J: mov.b32 %r0, %r6;",
       "mov.b32 %r5, 0; @!%pr1 bra J; @%pr2 bra I; mov.b32 %r5, 1; I: mov.b32 %r6, 1;"
       "J: mov.b32 %r0, %r5;"},
      {"a known choice in an unknown one",
       "mov.b32 %r5, 0; @%pr2 bra J; @%pr1 bra I; mov.b32 %r5, 1; I: mov.b32 %r6, 1;"
       "J: mov.b32 %r0, %r1;",
       "mov.b32 %r5, 0; @%pr2 bra J; @%pr1 bra I; mov.b32 %r5, 1; I: mov.b32 %r6, 1;"
       "J: mov.b32 %r0, %r5;"},
      {"two unknown ones that end together",
       "mov.b32 %r5, 0; @%pr2 bra J; mov.b32 %r6, 1; @%pr2 bra J; mov.b32 %r5, 1;"
       "J: mov.b32 %r0, %r1;",
       "mov.b32 %r5, 0; @%pr2 bra J; mov.b32 %r6, 1; @%pr2 bra J; mov.b32 %r5, 1;"
       "J: mov.b32 %r0, %r5;"},
      {"in a loop with a known end",
       "mov.b32 %r5, 0; L: @%pr2 bra J; mov.b32 %r6, 1; J: add.u32 %r5, %r5, 1;"
       "setp.lt.u32 %pr4, %r5, 3; @%pr4 bra L; mov.b32 %r0, %r5;",
       "mov.b32 %r5, 0; mov.b32 %r6, 0; L: @%pr2 bra J; mov.b32 %r6, 1; J: add.u32 %r5, %r5, 1;"
       "setp.lt.u32 %pr4, %r5, 3; @%pr4 bra L; mov.b32 %r0, %r6;"},
  });
}

/// Expects a report of a branch on %pr2 around `body`, and none of one on %pr1.
void expectUse(const char *what, const std::string &body) {
  const auto around = [&](const char *guard) {
    return told(std::string("mov.b32 %r0, 1; mov.b32 %r5, 0; @!") + guard + " bra J;" + body + "J:");
  };
  EXPECT_CONTAINS(around("%pr2"), "branches on a value of shared byte 0x480") << what;
  EXPECT_EQ(around("%pr1"), kNone) << what;
}

TEST(Poison, ABranchAroundMoreThanComputationsIsAUse) {
  expectUse("a store", "mov.b32 %r5, 1; st.shared.b32 [%a], %r1;");
  expectUse("a load", "ld.shared.b32 %r5, [%a];");
  expectUse("a load in a selection of its own",
            "setp.eq.u32 %pr4, %lane, 3; @%pr4 bra I; ld.shared.b32 %r5, [%a]; I: mov.b32 %r6, 1;");
  expectUse("a loop", "L: add.u32 %r5, %r5, 1; setp.lt.u32 %pr4, %r5, 3; @%pr4 bra L;");
  expectUse("an end", "exit;");
  expectUse("a barrier", "bar.sync 0;");
  expectUse("an exchange with other lanes", "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;");
  expectUse("a vote", "vote.sync.any.pred %pr4, %pr1, -1;");
  expectUse("a matrix of other lanes", "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;");
  EXPECT_CONTAINS(told("mov.b32 %r5, 0; L: add.u32 %r5, %r5, 1; setp.lt.u32 %pr4, %r5, %r2;"
                       "@%pr4 bra L; mov.b32 %r0, 1;"),
                  "branches on a value of shared")
      << "the end of a loop";
}

TEST(Poison, AReadModifyWriteReadsAtOnce) {
  EXPECT_CONTAINS(told("atom.shared.add.u32 %r0, [%a+128], 1;"), "reads shared byte 0x480");
  EXPECT_EQ(told("atom.shared.add.u32 %r0, [%a], 1;"), kNone);
}

TEST(Poison, GoesThroughMemory) {
  expectTwins({
      {"shared memory gets and loses it",
       "st.shared.b32 [%a], %r2; st.shared.b32 [%a], 1; ld.shared.b32 %r0, [%a];",
       "st.shared.b32 [%a], %r2; ld.shared.b32 %r0, [%a];"},
      {"bytes", "st.shared.b8 [%a+1], %r2; ld.shared.u8 %r0, [%a];",
       "st.shared.b8 [%a+1], %r2; ld.shared.u16 %r0, [%a];"},
      {"bits of a byte",
       "and.b32 %r5, %r2, 0xF0; st.shared.b32 [%a], %r5; ld.shared.b32 %r5, [%a];"
       "and.b32 %r0, %r5, 0xF;",
       "and.b32 %r5, %r2, 0xF0; st.shared.b32 [%a], %r5; ld.shared.b32 %r5, [%a];"
       "and.b32 %r0, %r5, 0x1F;"},
      {"a sign", "st.shared.b8 [%a+1], %r2; ld.shared.s8 %r0, [%a];",
       "st.shared.b8 [%a+1], %r2; ld.shared.s8 %r5, [%a+1]; shr.u32 %r0, %r5, 24;"},
      {"vectors", "mad.lo.u32 %r5, %lane, 8, tile; st.shared.b32 [%r5], 1;"
                  "ld.shared.v2.b32 {%r0, %r6}, [%r5];",
       "mad.lo.u32 %r5, %lane, 8, tile; st.shared.b32 [%r5], 1;"
       "ld.shared.v2.b32 {%r6, %r0}, [%r5];"},
      {"local memory",
       ".local .align 4 .b32 own[2]; st.local.b32 [own], %r2; st.local.b32 [own+4], 1;"
       "ld.local.b32 %r0, [own+4];",
       ".local .align 4 .b32 own[2]; st.local.b32 [own], %r2; st.local.b32 [own+4], 1;"
       "ld.local.b32 %r0, [own];"},
      {"local memory written again",
       ".local .align 4 .b32 own; st.local.b32 [own], %r2; st.local.b32 [own], 1;"
       "ld.local.b32 %r0, [own];",
       ".local .align 4 .b32 own; st.local.b32 [own], 1; st.local.b32 [own], %r2;"
       "ld.local.b32 %r0, [own];"},
      {"the register of a later load", "ld.shared.b32 %r2, [%a]; mov.b32 %r0, %r2;",
       "ld.shared.b32 %r1, [%a+128]; mov.b32 %r0, %r1;"},
  });
  EXPECT_CONTAINS(told("st.shared.b32 [%a], %r2; ld.shared.b32 %r0, [%a];"),
                  "a value of shared byte 0x480 ('tile+128')")
      << "its origin stays";
}

TEST(Poison, GoesThroughCalls) {
  const auto call = [](const std::string &argument, const std::string &parameter) {
    std::string text = kernel(std::string(kPrelude) + "{ .param .b32 x; .param .b32 y;\n" +
                                  "st.param.b32 [x], " + argument +
                                  ";\ncall (y), twice, (x);\nld.param.b32 %r0, [y]; }\n" + kStore,
                              1);
    const std::string function = ".func (.param .b32 y) twice(.param .b32 x)\n{\n.reg .b32 %x;\n"
                                 "ld.param.b32 %x, [x];\nadd.u32 %x, %x, %x;\nst.param.b32 [y], " +
                                 parameter + ";\nret;\n}\n";
    text.insert(text.find(".visible"), function);
    Simulator simulator;
    uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
    return messageOf(run(simulator, text, {out}));
  };
  EXPECT_EQ(call("%r1", "%x"), kNone);
  EXPECT_EQ(call("%r2", "3"), kNone);
  EXPECT_CONTAINS(call("%r2", "%x"), "stores to global memory a value of shared byte");
}

TEST(Poison, WhatIsInFlightIsTooEarlyToLoad) {
  const std::string body = R"(
.shared .align 16 .b32 tile[64];
.shared .align 8 .b64 full;
mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%p0], 16, [full];
ld.shared.b32 %r0, [tile];
)";
  SimOptions lazy;
  lazy.policy = *parseCompletionPolicy("lazy");
  EXPECT_CONTAINS(failure(body, blocks(1), lazy), "an asynchronous copy has not written yet");
}

TEST(Poison, BulkCopiesUseIt) {
  const auto copy = [](const std::string &fill) {
    return failure(kPrelude + fill + R"(
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %pr4, %lane, 0;
@%pr4 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%p0], [tile], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:)");
  };
  EXPECT_EQ(copy(""), kNone);
  EXPECT_CONTAINS(copy("st.shared.b32 [%a], %r2;"),
                  "which has a value of shared byte 0x480, which was never written");
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// One mma with these registers of A, B and C (%r1 clean, %r3 unknown in lanes 4 to 7).
std::string multiply(const std::string &a, const std::string &b, const std::string &c,
                     const std::string &use) {
  return told("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, {" +
              a + "}, {" + b + "}, {" + c + "};\n" + use);
}

TEST(Poison, RowsAndColumnsOfMmas) {
  const std::string clean = "%f1, %f1, %f1, %f1";
  // The second register of A: row 9, which the upper two registers of lanes 4 to 7 have.
  const std::string row = "%r1, %r3, %r1, %r1";
  EXPECT_EQ(multiply(row, "%r1, %r1", clean, "mov.b32 %r0, %f10;"), kNone);
  EXPECT_EQ(multiply(row, "%r1, %r1", clean, "mov.b32 %r0, %f13; @%pr3 mov.b32 %r0, 1;"), kNone);
  EXPECT_CONTAINS(multiply(row, "%r1, %r1", clean, "mov.b32 %r0, %f13;"), "lane 4, at");
  EXPECT_CONTAINS(multiply(row, "%r1, %r1", clean, "mov.b32 %r0, %f12; @!%pr3 mov.b32 %r0, 1;"),
                  "never written");
  // Column 1 of B: the odd registers of lanes 0, 4, 8...
  const std::string a = "%r1, %r1, %r1, %r1", others = "and.b32 %r5, %lane, 3;"
                                                       "setp.eq.u32 %pr4, %r5, 0;";
  EXPECT_EQ(multiply(a, "%r1, %r3", clean, "mov.b32 %r0, %f12;"), kNone);
  EXPECT_EQ(multiply(a, "%r1, %r3", clean, "mov.b32 %r0, %f11;" + others + "@%pr4 mov.b32 %r0, 1;"),
            kNone);
  EXPECT_CONTAINS(multiply(a, "%r1, %r3", clean, "mov.b32 %r0, %f11;"), "lane 0, at");
  // C reaches its own element.
  EXPECT_EQ(multiply(a, "%r1, %r1", "%f2, %f1, %f1, %f1", "mov.b32 %r0, %f11;"), kNone);
  EXPECT_CONTAINS(multiply(a, "%r1, %r1", "%f2, %f1, %f1, %f1", "mov.b32 %r0, %f10;"),
                  "never written");
}

TEST(Poison, RowsOfMatrices) {
  // Rows 0 to 3 of eight are written: rows of lanes 0 to 15.
  const std::string load = "mad.lo.u32 %r5, %lane, 16, tile;\nsetp.lt.u32 %pr4, %lane, 8;\n"
                           "selp.b32 %r5, %r5, tile, %pr4;\n"
                           ".shared .align 16 .b32 other[32];\nadd.u32 %r5, %r5, 64;\n"
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\n";
  const std::string upper = "setp.ge.u32 %pr5, %lane, 16;\n";
  EXPECT_EQ(told(load + upper + "mov.b32 %r0, %r6;\n@%pr5 mov.b32 %r0, 1;"), kNone);
  EXPECT_CONTAINS(told(load + "mov.b32 %r0, %r6;"), "lane 16, at");
  // stmatrix brings lanes 4 to 7 into row 1.
  const std::string store = "mad.lo.u32 %r5, %lane, 16, tile;\nsetp.lt.u32 %pr4, %lane, 8;\n"
                            "selp.b32 %r5, %r5, tile, %pr4;\n"
                            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3};\n"
                            "ld.shared.b32 %r0, [%a];\n";
  EXPECT_EQ(told(store + "@%pr3 mov.b32 %r0, 1;"), kNone);
  EXPECT_CONTAINS(told(store), "lane 4, at");
}

} // namespace
