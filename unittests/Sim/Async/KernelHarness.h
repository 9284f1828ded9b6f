//===- KernelHarness.h - Running PTX in the tests of the simulator --------===//
#pragma once

#include "fp4/ISA/TensorMap.h"
#include "fp4/Sim/Instruments.h"

#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace fp4::sim::test {

/// Values packed at their natural alignment, as the parameter block of a kernel.
class Params {
public:
  template <typename T> Params &add(const T &value) {
    return bytes(&value, sizeof value, alignof(T));
  }
  Params &map(const hw::TensorMap &map) {
    auto encoded = map.encode();
    EXPECT_TRUE(encoded) << encoded.error().message;
    return bytes(encoded->data(), encoded->size(), 64);
  }
  std::span<const std::byte> span() const { return block; }

private:
  Params &bytes(const void *data, size_t size, size_t align) {
    block.resize((block.size() + align - 1) / align * align + size);
    std::memcpy(block.data() + block.size() - size, data, size);
    return *this;
  }
  std::vector<std::byte> block;
};

inline std::string readFile(const std::string &path) {
  std::ifstream in(std::string(FP4_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::shared_ptr<const Program> parse(const std::string &ptx,
                                            const std::string &name = "test.ptx") {
  auto program = Program::parse(ptx, name);
  EXPECT_TRUE(program) << program.error().message << "\n" << program.error().note;
  return program ? *program : nullptr;
}

/// A kernel around a body, with the declarations most tests want: `out` in %out, thread in %t.
inline std::string kernelText(const std::string &body, const std::string &shared = "",
                              const std::string &target = "sm_100a") {
  return ".version 8.8\n.target " + target +
         "\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
         ".visible .entry test(.param .u64 out_param)\n{\n"
         "  .reg .pred %p<16>;\n  .reg .b32 %r<64>;\n  .reg .b32 %v<128>;\n  .reg .b64 %rd<32>;\n"
         "  .reg .b32 %t;\n  .reg .b64 %out;\n" +
         shared +
         "  mov.u32 %t, %tid.x;\n  ld.param.u64 %out, [out_param];\n"
         "  cvta.to.global.u64 %out, %out;\n" +
         body + "  ret;\n}\n";
}

/// The beginning of a kernel of tcgen05 MMAs, with 128 threads in each of one or two CTAs: the
/// first `bytes` of the CTA's `pitch` bytes of %out (%rd1) go to `dynamic` (%r3), `bar` (%r4)
/// becomes `barriers` mbarriers of one arrival, and all columns of tensor memory are allocated
/// (%r10). %r1 is the warp, %r2 the CTA's rank, %p3 is true if the warp is not the first.
inline std::string setUpMmas(unsigned pitch, unsigned bytes, unsigned barriers, unsigned group) {
  std::string text = fmt::format(
      "  mov.u32 %r2, %cluster_ctarank;\n  mov.u32 %r3, dynamic;\n  mov.u32 %r4, bar;\n"
      "  mov.u32 %r9, slot;\n  shr.u32 %r1, %t, 5;\n"
      "  mul.wide.u32 %rd1, %r2, {};\n  add.u64 %rd1, %out, %rd1;\n"
      "  shl.b32 %r5, %t, 4;\nCOPY:\n  setp.ge.u32 %p1, %r5, {};\n  @%p1 bra COPIED;\n"
      "  cvt.u64.u32 %rd2, %r5;\n  add.u64 %rd2, %rd1, %rd2;\n"
      "  ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%rd2];\n  add.u32 %r6, %r3, %r5;\n"
      "  st.shared.v4.b32 [%r6], {{%v0, %v1, %v2, %v3}};\n"
      "  add.u32 %r5, %r5, 2048;\n  bra COPY;\nCOPIED:\n"
      "  fence.proxy.async.shared::cta;\n  setp.ne.u32 %p2, %t, 0;\n  @%p2 bra READY;\n",
      pitch, bytes);
  for (unsigned i = 0; i < barriers; ++i)
    text += fmt::format("  mbarrier.init.shared::cta.b64 [%r4+{}], 1;\n", 8 * i);
  return text +
         fmt::format(
             "  fence.mbarrier_init.release.cluster;\n"
             "READY:\n  bar.warp.sync -1;\n  setp.ne.u32 %p3, %r1, 0;\n  @%p3 bra ALLOCATED;\n"
             "  tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [%r9], 512;\nALLOCATED:\n"
             "  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive.aligned;\n"
             "  barrier.cluster.wait.aligned;\n  tcgen05.fence::after_thread_sync;\n"
             "  ld.shared.b32 %r10, [%r9];\n",
             group);
}

/// The schedules every test runs under.
inline std::vector<SimOptions> schedules(unsigned seeds = 4) {
  std::vector<SimOptions> all;
  const auto add = [&](CompletionPolicy policy, uint64_t seed, const char *engine = "all") {
    SimOptions options;
    options.policy = policy;
    options.seed = seed;
    options.delayedEngine = engine;
    options.hostThreads = 1;
    options.instructionLimit = 20'000'000;
    all.push_back(options);
  };
  add(CompletionPolicy::Eager, 0);
  add(CompletionPolicy::Lazy, 0);
  for (uint64_t seed = 1; seed <= seeds; ++seed)
    add(CompletionPolicy::Random, seed);
  for (const char *engine : {"tma", "bulk", "tcgen05"})
    add(CompletionPolicy::Delay, 0, engine);
  return all;
}

inline std::string describe(const SimOptions &o) {
  static const char *names[] = {"eager", "lazy", "random", "delay"};
  return std::string(names[int(o.policy)]) + " seed " + std::to_string(o.seed) + " engine " +
         o.delayedEngine;
}

/// The instruments that a tool has with this --check, in `options`.
inline std::unique_ptr<Instruments> instrument(const std::string &check, SimOptions &options) {
  SimulationOptions wanted;
  wanted.check = check;
  auto instruments = Instruments::create(wanted, options);
  EXPECT_TRUE(instruments);
  return std::move(*instruments);
}

/// Runs kernel `test` with `words` 32-bit words of output; the error, or nothing.
/// One cluster of `clusterSize` CTAs with `count` threads each.
inline LaunchConfig threads(uint32_t count, uint32_t clusterSize = 1) {
  LaunchConfig config;
  config.block = {count, 1, 1};
  config.grid = config.cluster = {clusterSize, 1, 1};
  return config;
}

struct RunResult {
  std::vector<uint32_t> out;
  std::string error, note;
};
inline RunResult runText(const std::string &ptx, const SimOptions &options, LaunchConfig config,
                         size_t words) {
  RunResult result;
  auto program = Program::parse(ptx, "test.ptx");
  if (!program)
    return {{}, program.error().message, program.error().note};
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(4 * words, "out");
  EXPECT_TRUE(simulator.memory().fill(out, 0, 4 * words));
  Params params;
  params.add(out);
  auto stats = simulator.launch(**program, "test", config, params.span());
  if (!stats)
    return {{}, stats.error().message, stats.error().note};
  result.out.resize(words);
  EXPECT_TRUE(simulator.memory().read(out, result.out.data(), 4 * words));
  return result;
}

} // namespace fp4::sim::test
