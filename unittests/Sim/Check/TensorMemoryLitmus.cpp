// Tensor memory: completion, the pairs that need none, tcgen05 fences, release.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

const std::string fenceAfter = "  tcgen05.fence::after_thread_sync;\n";
const std::string fenceBefore = "  tcgen05.fence::before_thread_sync;\n";

/// Warp 0 allocates; both warps write what a copy or an MMA reads. Then %r10 is the tensor memory,
/// %r11 its lanes of this warp, %rd2 describes operands and %rd3 the source of a copy; %r12 and
/// %r13 are MMAs of 16 and 32 columns.
std::string tensorKernel(const std::string &body) {
  return litmus(
      "  mov.u32 %r9, slot;\n  @%p1 bra ALLOCATED;\n"
      "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 64;\nALLOCATED:\n"
      "  st.shared.b32 [%r0], 0;\n  st.shared.b32 [%r0+256], 0;\n"
      "  fence.proxy.async.shared::cta;\n" +
      litmusInit + fenceAfter +
      "  ld.shared.b32 %r10, [%r9];\n  shr.u32 %r11, %t, 5;\n  shl.b32 %r11, %r11, 21;\n"
      "  add.u32 %r11, %r11, %r10;\n  shr.u32 %r14, %r1, 4;\n  cvt.u64.u32 %rd4, %r14;\n"
      "  or.b64 %rd2, %rd4, 0x0000400000080000;\n  or.b64 %rd3, %rd4, 0x0000400800010000;\n"
      "  mov.u32 %r12, 0x08040010;\n  mov.u32 %r13, 0x08080010;\n"
      "  setp.ne.u32 %p8, %t, %t;\n" +
      body + fenceBefore +
      "  bar.sync 0;\n  @%p1 bra END;\n"
      "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;\nEND:\n");
}

/// Thread 0 executes the body; then its warp is whole again.
std::string byThread0(const std::string &body) {
  return "  @!%p0 bra ISSUED;\n" + body + "ISSUED:\n  bar.warp.sync -1;\n";
}

std::string commit(const std::string &barrier) {
  return "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [" + barrier +
         "];\n";
}

std::string product(const std::string &shape) {
  return "  tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd2, %rd2, " + shape + ", %p8;\n";
}

const std::string copy = "  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r10], %rd3;\n";
const std::string store = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%t};\n"
                          "  tcgen05.wait::st.sync.aligned;\n";

} // namespace

std::vector<Litmus> fp4::sim::test::tensorMemoryLitmus() {
  using R = HazardRule;
  const std::string done = waitOn("%r2", "W1"), doneTwice = waitOn("%r3", "W2");
  const std::string stored = tensorKernel(byThread0(copy + commit("%r2")) + "  @%p1 bra DONE;\n" +
                                          done + fenceAfter + store + "DONE:\n");
  const std::string between = commit("%r2") + done + fenceAfter;
  const std::string copied =
      tensorKernel(byThread0(product("%r12") + between + copy + commit("%r3") + doneTwice));
  const std::string widened = tensorKernel(byThread0(product("%r12") + product("%r12") + between +
                                                     product("%r13") + commit("%r3") + doneTwice));
  const std::string drained = "  tcgen05.wait::ld.sync.aligned;\n";
  const std::string refilled = tensorKernel(
      "  @!%p1 bra FILL;\n" + store + "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11];\n" +
      drained + fenceBefore + "FILL:\n  bar.sync 0;\n" +
      byThread0(fenceAfter + copy + commit("%r2") + done));
  // PTX ISA, "canonical synchronization patterns": with the fences .relaxed is enough. Later
  // accesses are known by other ways before the CTA ends.
  const auto relaxed = [](const std::string &text) {
    return replaced(text, "try_wait.parity", "try_wait.parity.relaxed.cluster");
  };
  const std::string load = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11];\n";
  const std::string read = tensorKernel(byThread0(copy + commit("%r2")) + "  @%p1 bra DONE;\n" +
                                        relaxed(done) + fenceAfter + load + drained + "DONE:\n" +
                                        waitOn("%r2", "W5"));
  const std::string handBack = drained + fenceBefore +
                               "  mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%r4];\n";
  const std::string handedBack = tensorKernel(
      "  @!%p1 bra FILL;\n" + store + load + handBack + "FILL:\n" +
      byThread0(relaxed(waitOn("%r4", "W6")) + fenceAfter + copy + commit("%r2") + done) +
      "  bar.sync 0;\n");
  // A thread reads one place with both kinds of groups; the commit of one says nothing of the other.
  const auto ofPair = [](std::string text) {
    for (size_t at = 0; (at = text.find("cta_group::1", at)) != text.npos;)
      text.replace(at, 12, "cta_group::2");
    return text;
  };
  const std::string both = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";
  const std::string overwrite = "  st.shared.b32 [%r1], 0;\n", ownDone = commit("%r2") + done;
  // CTA 0 of a pair executes the body.
  const auto byBothGroups = [&](const std::string &body) {
    std::string text = tensorKernel(
        "  mov.u32 %r15, %cluster_ctarank;\n  setp.ne.u32 %p9, %r15, 0;\n" + fenceBefore + both +
        fenceAfter + "  @%p9 bra DONE;\n" + body + "DONE:\n  bar.warp.sync -1;\n" + both);
    for (const char *what : {"tcgen05.alloc.", "tcgen05.dealloc."})
      text = replaced(text, what + std::string("cta_group::1"), what + std::string("cta_group::2"));
    return text;
  };
  const std::string twoGroups =
      byBothGroups("  @!%p0 bra DONE;\n" + copy + replaced(ofPair(copy), "[%r10]", "[%r10+8]") +
                   ofPair(commit("%r3")) + doneTwice + ownDone + overwrite);
  // Fences order MMAs of one group by two threads, and not those of different groups.
  const std::string accumulated = byBothGroups(
      byThread0(product("%r12") + commit("%r2") + done) + fenceBefore + "  bar.sync 0;\n" +
      fenceAfter + "  setp.ne.u32 %p7, %t, 32;\n  @%p7 bra DONE;\n" + ofPair(product("%r12")) +
      ofPair(commit("%r3")) + doneTwice + waitOn("%r2", "W7"));
  return {
      {"a place read with both groups, one waited for", twoGroups, ownDone + overwrite,
       overwrite + ownDone, R::OverwrittenWhileRead, "tcgen05.commit", 64, 2},
      {"products of both groups on one accumulator", accumulated, done, "", R::TmemRace,
       "tcgen05.commit", 64, 2},
      {"a load behind a relaxed wait without its fence", read, relaxed(done) + fenceAfter,
       relaxed(done), R::RelaxedSync, ".acquire"},
      {"a relaxed arrival without its fence", handedBack, handBack,
       replaced(handBack, fenceBefore, ""), R::RelaxedSync, ".acquire"},
      {"a relaxed arrival before the load is drained", handedBack, handBack,
       replaced(handBack, drained, "") + drained, R::TmemUndrained, "tcgen05.wait::ld"},
      {"a store over a copy in flight", stored, done, "", R::TmemRace, "tcgen05.commit"},
      {"a copy over the accumulator of a product", copied, between, "", R::TmemRace,
       "tcgen05.commit", 64, 1, true},
      {"a product of another shape on one accumulator", widened, between, "", R::TmemRace,
       "tcgen05.commit", 64, 1, true},
      {"a load that is not drained", refilled, drained, "", R::TmemUndrained, "tcgen05.wait::ld"},
      {"a release while a copy is in flight", tensorKernel(byThread0(copy + commit("%r2") + done)),
       done, "", R::TmemFreed, "a wait for the operation", 64, 1, false, false,
       "has still to write"},
      {"no fence behind the wait for a copy", stored, fenceAfter + store, store,
       R::MissingTcgen05Fence, "after_thread_sync", 64, 1, true},
      {"no fence behind the barrier for operands",
       tensorKernel(byThread0(copy + commit("%r2") + done)), fenceAfter, "", R::MissingTcgen05Fence,
       "after_thread_sync", 64, 1, true},
  };
}
