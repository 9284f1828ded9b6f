//===- OrderHarness.h - Explores the orders of a kernel that a test writes -===//
#pragma once

#include "../Async/KernelHarness.h"
#include <functional>
#include <set>

namespace fp4::sim::test {

struct Explored {
  RunResult run;
  OrderReport report;
  std::set<std::vector<uint32_t>> results; ///< of all orders, if asked for
};

struct Wanted {
  uint32_t warps = 1, ctas = 1, words = 16, cluster = 1, shared = 0;
  bool reduce = true, results = false;
  uint64_t most = 0;
  const char *check = "strict";
  std::string replay = {};
  uint64_t limit = 1'000'000;
};

inline Explored explore(const std::string &ptx, const Wanted &wanted) {
  Explored found;
  SimOptions options;
  options.policy = CompletionPolicy::Exhaustive;
  options.instructionLimit = wanted.limit;
  const auto instruments = instrument(wanted.check, options);
  options.trackWrites = false;
  options.orders.reduce = wanted.reduce;
  options.orders.most = wanted.most;
  options.orders.replay = wanted.replay;
  options.orders.hazards = [&] { return instruments->hazardCount(); };
  options.orders.report = [&](OrderReport report) { found.report = std::move(report); };
  auto program = Program::parse(ptx, "test.ptx");
  EXPECT_TRUE(program) << program.error().message << program.error().note;
  if (!program)
    return found;
  Simulator *all = nullptr;
  uint64_t out = 0;
  const auto read = [&] {
    std::vector<uint32_t> words(wanted.words);
    EXPECT_TRUE(all->memory().read(out, words.data(), 4 * words.size()));
    return words;
  };
  if (wanted.results)
    options.orders.ended = [&] { found.results.insert(read()); };
  Simulator simulator(options);
  all = &simulator;
  out = simulator.memory().allocate(4 * wanted.words, "out");
  EXPECT_TRUE(simulator.memory().fill(out, 0, 4 * wanted.words));
  Params params;
  params.add(out);
  auto stats = simulator.launch(**program, "test",
                                {.grid = {wanted.ctas, 1, 1},
                                 .block = {32 * wanted.warps, 1, 1},
                                 .cluster = {wanted.cluster, 1, 1},
                                 .dynamicSharedBytes = wanted.shared},
                                params.span());
  if (!stats)
    found.run = {{}, stats.error().message, stats.error().note};
  found.run.out = read();
  for (const HazardReport &hazard : instruments->hazards())
    found.run.note += hazard.text();
  return found;
}

/// One lane of each warp executes the body; its warp is %r1, the address of out %out.
inline std::string oneLane(const std::string &body, const std::string &shared = "") {
  return kernelText("  and.b32 %r0, %t, 31;\n  setp.ne.u32 %p0, %r0, 0;\n  @%p0 bra END;\n"
                    "  shr.u32 %r1, %t, 5;\n" +
                        body + "END:\n",
                    shared);
}

/// Each warp executes what `linesOf(warp)` says, on %r8, which is 100 more than its number, and
/// stores it in a word of its own behind the first 32 bytes of out.
inline std::string warpByWarp(uint32_t warps, const std::function<std::string(uint32_t)> &linesOf) {
  std::string body = "  add.u32 %r8, %r1, 100;\n";
  for (uint32_t warp = 0; warp < warps; ++warp)
    body += fmt::format("  setp.ne.u32 %p1, %r1, {0};\n  @%p1 bra NOT{0};\n{1}"
                        "  mul.wide.u32 %rd1, %r1, 4;\n  add.u64 %rd1, %rd1, %out;\n"
                        "  st.global.b32 [%rd1+32], %r8;\n  bra END;\nNOT{0}:\n",
                        warp, linesOf(warp));
  return oneLane(body);
}

} // namespace fp4::sim::test
