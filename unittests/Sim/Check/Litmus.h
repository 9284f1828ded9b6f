// Litmus.h - Kernels that are right, and one change that makes each race.
#pragma once

#include "KernelHarness.h"

namespace fp4::sim::test {

inline const std::string litmusShared =
    "  .shared .align 128 .b8 buf[1024];\n  .shared .align 8 .b64 full;\n"
    "  .shared .align 8 .b64 second;\n  .shared .align 8 .b64 empty;\n"
    "  .shared .align 4 .b32 slot;\n";

/// t in %t, 4 * t + buf in %r0, buf in %r1, full in %r2, second in %r3, empty in %r4; %p0: thread
/// 0, %p1: not of warp 0.
inline std::string litmus(const std::string &body) {
  return kernelText("  mov.u32 %r1, buf;\n  mov.u32 %r2, full;\n  mov.u32 %r3, second;\n"
                    "  mov.u32 %r4, empty;\n  mad.lo.u32 %r0, %t, 4, %r1;\n"
                    "  setp.eq.u32 %p0, %t, 0;\n  setp.ge.u32 %p1, %t, 32;\n" +
                        body,
                    litmusShared);
}

/// full and second for one arrival, empty for 32.
inline const std::string litmusInit =
    "  @!%p0 bra READY;\n  mbarrier.init.shared::cta.b64 [%r2], 1;\n"
    "  mbarrier.init.shared::cta.b64 [%r3], 1;\n"
    "  mbarrier.init.shared::cta.b64 [%r4], 32;\n"
    "  fence.mbarrier_init.release.cluster;\nREADY:\n  bar.sync 0;\n";

/// 128 bytes of `out` to buf.
inline std::string copyIn(const std::string &barrier) {
  return "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + barrier + "], 128;\n" +
         "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%out], 128, [" +
         barrier + "];\n";
}

/// Waits for phase 0.
inline std::string waitOn(const std::string &barrier, const std::string &label) {
  return label + ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [" + barrier +
         "], 0;\n  @!%p5 bra " + label + ";\n";
}

inline const std::string releaseMap = "  fence.proxy.tensormap::generic.release.gpu;\n",
                  acquireMap = "  fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;\n";

/// A tensor map of 32 words at `map`, made from zeros.
inline std::string makeMap(const std::string &space, const std::string &map) {
  std::string text;
  for (const char *field : {"box_dim", "global_dim"})
    text += std::string("  tensormap.replace.tile.") + field + "." + space + ".b1024.b32 [" + map +
            "], 0, 32;\n";
  return text + "  tensormap.replace.tile.elemtype." + space + ".b1024.b32 [" + map +
         "], 2;\n  tensormap.replace.tile.global_address." + space + ".b1024.b64 [" + map +
         "], %out;\n";
}

/// Thread 0 copies with the map at %rd5 and waits.
inline std::string useMap() {
  return "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n  mov.u32 %r9, 0;\n"
         "  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], "
         "[%rd5, {%r9}], [%r2];\n" +
         waitOn("%r2", "W1");
}

struct Litmus {
  const char *name;
  std::string text, from, to; ///< `from` replaced by `to` makes it race
  HazardRule rule;
  const char *words; ///< part of the remedy
  uint32_t threads = 64, cluster = 1;
  bool strictOnly = false;    ///< the default accepts the change
  bool uninitialized = false;  ///< `out` has not been written
  const char *error = nullptr; ///< part of what the run may end with before there is a report
  uint32_t clusters = 1;
  bool dependent = false; ///< the launch may begin before the one before it has ended
  bool polled = false;    ///< the host reads `out` while kernels run
};

std::vector<Litmus> sharedMemoryLitmus();
std::vector<Litmus> globalMemoryLitmus();
std::vector<Litmus> tensorMemoryLitmus();
std::vector<Litmus> laneLitmus();
std::vector<Litmus> allLitmus();

/// The text with the first `from` replaced by `to`.
std::string replaced(std::string text, const std::string &from, const std::string &to);
inline std::string racing(const Litmus &test) { return replaced(test.text, test.from, test.to); }

struct Judged {
  std::vector<HazardReport> reports;
  std::string error;
  uint64_t orders = 0; ///< with the policy exhaustive
  std::string text() const;
};
Judged judge(const std::string &text, SimOptions options, const Litmus &test, bool strict = false);

} // namespace fp4::sim::test
