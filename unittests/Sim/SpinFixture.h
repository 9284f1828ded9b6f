//===- SpinFixture.h - Kernels that wait for a flag -----------------------===//
#pragma once

#include "SimFixture.h"

#include <gmock/gmock.h>

namespace fp4::sim::test {

/// The error of a kernel whose parameter is 64 zeroed words, 'out'; empty when it ends.
inline std::string errorOf(const std::string &body, LaunchConfig config = blocks(32),
                           SimOptions options = {}) {
  Simulator simulator(options);
  uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  auto stats = run(simulator, kernel(body, 1), {out}, config);
  return stats ? "" : messageOf(stats);
}

inline SimOptions withLimit(uint64_t limit) {
  SimOptions options;
  options.spinLimit = limit;
  return options;
}

inline SimOptions withPolicy(CompletionPolicy policy) {
  SimOptions options;
  options.policy = policy;
  options.seed = 3;
  return options;
}

/// Every thread waits for out[0], which `who` sets.
inline std::string waitForFlag(const std::string &who, const std::string &pause = "") {
  return R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.eq.u32 %pr1, )" +
         who + R"(;
@%pr1 st.release.gpu.global.b32 [%p0], 1;
$spin:
)" + pause +
         R"(
ld.acquire.gpu.global.b32 %r3, [%p0];
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra $spin;)";
}

inline const char *const kNobody = "%r2, 4096";

} // namespace fp4::sim::test
