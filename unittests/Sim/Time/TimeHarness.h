//===- TimeHarness.h - Runs a small kernel with a clock -------------------===//
#pragma once

#include "../Async/KernelHarness.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Sim/Observer.h"
#include "fp4/Sim/Predictor.h"
#include <string>
#include <vector>

namespace fp4::sim::test {

using hw::TimingRate;

inline double rate(TimingRate which, std::string_view target = "sm_90a") {
  return hw::timingRate(target, which)->value;
}

struct Timed {
  KernelTime time;
  std::vector<uint32_t> out;
};

inline Timed runText(const std::string &text, LaunchConfig config, size_t words = 4096,
                     CompletionPolicy policy = CompletionPolicy::Timed,
                     const std::string &target = "sm_90a", uint32_t fill = 0,
                     Predictor predictor = {}, Observer *observer = nullptr) {
  Timed result;
  SimOptions options;
  options.observer = observer;
  options.policy = policy;
  options.target = target;
  predictor.receive = [&](KernelTime time, std::string) { result.time = std::move(time); };
  options.predicted = std::move(predictor);
  Simulator simulator(options);
  auto program = parse(text);
  const uint64_t out = simulator.memory().allocate(4 * words, "out");
  std::vector<uint32_t> data(words, fill);
  EXPECT_TRUE(simulator.memory().write(out, data.data(), 4 * words));
  auto stats = simulator.launch(*program, "test", config, Params().add(out).span());
  EXPECT_TRUE(stats) << stats.error().message;
  EXPECT_TRUE(simulator.memory().read(out, data.data(), 4 * words));
  result.out = std::move(data);
  return result;
}

inline Timed runTimed(const std::string &body, LaunchConfig config, size_t words = 4096,
                      CompletionPolicy policy = CompletionPolicy::Timed,
                      const std::string &target = "sm_90a", uint32_t fill = 0,
                      Predictor predictor = {}, Observer *observer = nullptr) {
  return runText(kernelText(body, "", target), config, words, policy, target, fill,
                 std::move(predictor), observer);
}

inline std::string repeated(const std::string &line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += line;
  return text;
}

inline constexpr const char *store = "  mul.wide.u32 %rd1, %t, 4;\n  add.u64 %rd1, %out, %rd1;\n"
                              "  st.global.b32 [%rd1], %r1;\n";

/// Zeros in the first 16 KiB of shared memory, and %rd4 as a descriptor of them.
inline std::string operands(unsigned threads, unsigned bytes = 16384) {
  std::string text = "  mov.u32 %r2, dynamic;\n  mad.lo.u32 %r3, %t, 16, %r2;\n  mov.u32 %r4, 0;\n";
  for (unsigned at = 0; at < bytes; at += 16 * threads)
    text += fmt::format("  st.shared.v4.b32 [%r3+{}], {{%r4, %r4, %r4, %r4}};\n", at);
  return text + "  fence.proxy.async;\n  bar.sync 0;\n  shr.u32 %r2, %r2, 4;\n"
                "  cvt.u64.u32 %rd4, %r2;\n  or.b64 %rd4, %rd4, 0x4000004000010000;\n";
}

/// One MMA of a warpgroup.
inline std::string product(unsigned columns) {
  std::string accumulators;
  for (unsigned i = 0; i < columns / 2; ++i)
    accumulators += fmt::format("{}%v{}", i ? ", " : "", i);
  return fmt::format("  wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16 {{{}}}, %rd4, "
                     "%rd4, 1, 1, 1, 0, 0;\n",
                     columns, accumulators);
}

/// MMAs whose sums are stored, or not.
inline std::string products(unsigned columns, int times, bool stored = true) {
  return "  wgmma.fence.sync.aligned;\n" + repeated(product(columns), times) +
         "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n" +
         (stored ? "  st.shared.b32 [dynamic+16380], %v0;\n" : "");
}

} // namespace fp4::sim::test
