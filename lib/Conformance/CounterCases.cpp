//===- CounterCases.cpp - Memory that every kernel leaves zero ------------===//

#include "DeviceUnderTest.h"

#include "fp4/Runtime/Session.h"

#include <thread>

namespace fp4::cts {
namespace {

// CTA i has the number value + i. The last CTA to come stores the largest number of all, and leaves
// both words zero: a kernel that found other words there stores another number, or none.
const char *const kLargest = R"(
.visible .entry largest(.param .u64 words, .param .u64 out, .param .u32 value) {
  .reg .b32 %t, %v, %i, %n, %old, %zero; .reg .b64 %words, %out; .reg .pred %p;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra DONE;
  ld.param.u64 %words, [words]; cvta.to.global.u64 %words, %words;
  ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;
  ld.param.u32 %v, [value];
  mov.u32 %i, %ctaid.x; add.u32 %v, %v, %i;
  mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1;
  mov.u32 %zero, 0;
  red.relaxed.gpu.global.max.u32 [%words], %v;
  atom.acq_rel.gpu.global.inc.u32 %old, [%words+4], %n;
  setp.ne.u32 %p, %old, %n;
  @%p bra DONE;
  atom.relaxed.gpu.global.exch.b32 %v, [%words], %zero;
  st.global.u32 [%out], %v;
DONE:
  ret;
}
)";

const fp4rt_module &largest() {
  static const std::string text = ptxModule(kLargest);
  static const fp4rt_module module{"counters", "sm_90a", text.data(), text.size(), nullptr, 0};
  return module;
}

constexpr uint32_t kBlocks = 40;

/// Launches kernels whose values descend from 90: element i of the result becomes 90 - i + kBlocks
/// - 1.
void launchAll(void *out, uint32_t count) {
  auto *words = fp4rt_counters(8);
  for (uint32_t i = 0; i < count; ++i) {
    void *element = static_cast<std::byte *>(out) + 4 * i;
    uint32_t value = 90 - i;
    void *params[] = {&words, &element, &value};
    fp4rt_launch(&largest(), "largest", kBlocks, 1, 1, 32, 1, 1, 0, params, 3);
  }
}

Bytes expected(uint32_t count) {
  Bytes bytes;
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t word = 90 - i + kBlocks - 1, byte = 0; byte < 4; ++byte)
      bytes.push_back(std::byte(word >> 8 * byte));
  return bytes;
}

constexpr uint32_t kLaunches = 50;

Status run(rt::ModuleCache &cache, rt::StreamHandle stream, const Buffer &result) {
  rt::Session session(*device(), {.stream = stream, .cache = &cache, .measure = false});
  rt::Session::Scope scope(session);
  launchAll(reinterpret_cast<void *>(result.address()), kLaunches);
  return session.status();
}

TEST(CtsCounters, EveryKernelFindsZeros) {
  rt::ModuleCache cache(*device());
  Buffer result(4 * kLaunches, 0xEE);
  for (int call = 0; call < 3; ++call)
    FP4_ASSERT_OK(run(cache, 0, result));
  FP4_ASSERT_OK(device()->synchronize());
  EXPECT_EQ(result.read(), expected(kLaunches));
}

// Kernels of several streams run at the same time and count in memory of their own.
TEST(CtsCounters, StreamsHaveTheirOwn) {
  constexpr size_t kStreams = 4;
  rt::ModuleCache cache(*device());
  std::vector<std::unique_ptr<Buffer>> results;
  std::vector<rt::StreamHandle> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    results.push_back(std::make_unique<Buffer>(4 * kLaunches, 0xEE));
    auto stream = device()->createStream();
    FP4_ASSERT_OK(stream);
    streams.push_back(*stream);
  }
  std::vector<Status> outcomes(kStreams);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kStreams; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4 && outcomes[i]; ++round)
        outcomes[i] = run(cache, streams[i], *results[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  FP4_ASSERT_OK(device()->synchronize());
  for (size_t i = 0; i < kStreams; ++i) {
    EXPECT_TRUE(outcomes[i]) << format(outcomes[i].error());
    EXPECT_EQ(results[i]->read(), expected(kLaunches));
    FP4_ASSERT_OK(device()->destroyStream(streams[i]));
  }
}

// A graph is replayed beside other work: it counts in memory of its own, also if it is captured
// before anybody has counted.
TEST(CtsCounters, GraphsHaveTheirOwn) {
  if (!device()->isHardware())
    GTEST_SKIP() << "a simulator has no graphs";
  rt::ModuleCache cache(*device());
  Buffer captured(4 * kLaunches, 0xEE), direct(4 * kLaunches, 0xEE);
  // Loaded before the capture.
  FP4_ASSERT_OK(device()->kernelInfo(*cache.load(largest()), "largest"));
  auto graph = device()->capture([&] { return run(cache, 0, captured); });
  FP4_ASSERT_OK(graph);
  EXPECT_EQ(graph->nodes, size_t(kLaunches)) << "no node clears memory";
  auto stream = device()->createStream();
  FP4_ASSERT_OK(stream);
  for (int round = 0; round < 20; ++round) {
    FP4_ASSERT_OK(device()->replay(graph->id));
    FP4_ASSERT_OK(run(cache, *stream, direct));
  }
  FP4_ASSERT_OK(device()->synchronize());
  EXPECT_EQ(captured.read(), expected(kLaunches));
  EXPECT_EQ(direct.read(), expected(kLaunches));
  FP4_ASSERT_OK(device()->destroyStream(*stream));
}

} // namespace
} // namespace fp4::cts
