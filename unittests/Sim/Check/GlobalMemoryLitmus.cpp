// Global memory: races, copies through it, what nobody wrote.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

std::vector<Litmus> fp4::sim::test::globalMemoryLitmus() {
  // Of the bytes that it fills, a copy reads as many as it says.
  const std::string nothing =
      litmus("  @%p1 st.global.b32 [%out], %t;\n  @%p1 bra END;\n"
             "  cp.async.ca.shared.global [%r0], [%out], 4, 0;\n  cp.async.wait_all;\nEND:\n");
  // A copy that came later is done; the store need not be.
  const std::string roundTrip =
      litmus(litmusInit +
             "  @!%p0 bra END;\n  st.shared.b32 [%r1], %t;\n  fence.proxy.async.shared::cta;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;\n"
             "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
             "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
             "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+512], "
             "[%out+128], 128, [%r2];\n" +
             waitOn("%r2", "W1") + "  ld.global.b32 %v0, [%out];\nEND:\n");
  // Five warps read, one writes; the last reader is one too many for who keeps four.
  const std::string lastReader =
      litmus("  shr.u32 %r5, %t, 5;\n  setp.eq.u32 %p2, %r5, 5;\n  setp.eq.u32 %p3, %r5, 4;\n"
             "  @%p2 bra WRITE;\n  @!%p3 ld.global.b32 %v0, [%out];\n"
             "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n  bra END;\n"
             "WRITE:\n  bar.sync 1, 192;\n  st.global.b32 [%out], %r5;\nEND:\n");
  using R = HazardRule;
  return {
      {"two writers of global memory",
       litmus(
           "  @!%p1 st.global.b32 [%out], %t;\n  bar.sync 0;\n  @%p1 st.global.b32 [%out], %t;\n"),
       "  bar.sync 0;\n", "", R::GlobalRace, "barrier between the two", 33},
      {"memory that nobody wrote",
       litmus("  st.global.b32 [%out+8], %t;\n  ld.global.b32 %v0, [%out+8];\n"),
       "  st.global.b32 [%out+8], %t;\n", "", R::UninitializedRead, "a copy, a memset", 1, 1, true,
       true},
      {"a copy that reads nothing", nothing, "4, 0", "4, 4", R::GlobalRace, "barrier"},
      {"a store is not waited for, a later copy is", roundTrip, "  cp.async.bulk.wait_group 0;\n",
       "", R::UnwaitedCopy, "wait_group"},
      {"the last of many readers is not waited for", lastReader,
       "  @%p3 ld.global.b32 %v0, [%out];\n  bar.arrive 1, 192;\n",
       "  bar.arrive 1, 192;\n  @%p3 ld.global.b32 %v0, [%out];\n", R::GlobalRace, "barrier", 192},
  };
}
