//===- StreamCases.cpp - Streams, sessions on them, threads, unloading ----===//

#include "DeviceUnderTest.h"

#include "fp4/Runtime/Session.h"

#include <thread>

namespace fp4::cts {
namespace {

// Each thread adds `value` to its element after a long loop: a reader that does not wait for the
// stream sees old values.
const char *const kSlowAdd = R"(
.visible .entry slow_add(.param .u64 out, .param .u32 value, .param .u32 turns) {
  .reg .b32 %t, %v, %n, %old, %zero; .reg .b64 %out, %a; .reg .pred %p;
  ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;
  ld.param.u32 %v, [value]; ld.param.u32 %n, [turns];
  mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.u64 %out, %out, %a;
  mov.u32 %zero, 0;
LOOP:
  ld.volatile.global.u32 %old, [%out];
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra LOOP;
  add.u32 %old, %old, %v;
  st.global.u32 [%out], %old;
  ret;
}
)";

constexpr uint32_t kThreads = 64;
uint32_t turns() { return device()->isHardware() ? 200000 : 20; }

/// A stream for the length of a test.
class OwnStream {
public:
  OwnStream() {
    auto stream = device()->createStream();
    EXPECT_TRUE(stream) << format(stream.error());
    handle = stream ? *stream : 0;
  }
  ~OwnStream() { EXPECT_TRUE(device()->destroyStream(handle)); }
  rt::StreamHandle handle = 0;
};

const fp4rt_module &slowAdd() {
  static const std::string text = ptxModule(kSlowAdd);
  static const fp4rt_module module{"stream", "sm_90a", text.data(), text.size(), nullptr, 0};
  return module;
}

/// A call of host code: old + value, through temporary memory of the session.
void addTwice(rt::Session &session, uint32_t value) {
  rt::Session::Scope scope(session);
  void *temporary = fp4rt_alloc(kThreads * 4), *result = fp4rt_alloc_result(0, kThreads * 4);
  uint32_t count = turns();
  fp4rt_memset(temporary, 0, kThreads * 4);
  void *first[] = {&temporary, &value, &count};
  fp4rt_launch(&slowAdd(), "slow_add", 1, 1, 1, kThreads, 1, 1, 0, first, 3);
  fp4rt_launch(&slowAdd(), "slow_add", 1, 1, 1, kThreads, 1, 1, 0, first, 3);
  fp4rt_memcpy_2d(result, kThreads * 4, temporary, kThreads * 4, kThreads * 4, 1);
  fp4rt_free(temporary);
}

Bytes expected(uint32_t value) {
  std::vector<uint32_t> words(kThreads, value);
  Bytes bytes(kThreads * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TEST(CtsStream, ASessionWorksOnItsStream) {
  OwnStream stream;
  rt::ModuleCache cache(*device());
  Buffer result(kThreads * 4, 0xEE);
  for (uint32_t i = 1; i <= 3; ++i) {
    rt::Session session(*device(), {.stream = stream.handle,
                                    .results = {{result.address(), result.size()}},
                                    .cache = &cache,
                                    .measure = i == 2});
    addTwice(session, i);
    Status status = session.finish();
    ASSERT_TRUE(status) << format(status.error());
    EXPECT_EQ(result.read(), expected(2 * i));
    EXPECT_EQ(session.launches().size(), i == 2 ? 2u : 0u);
  }
}

// Work is issued and nobody waits: later work on the stream sees it done.
TEST(CtsStream, WorkOnAStreamIsInOrder) {
  OwnStream stream;
  rt::ModuleCache cache(*device());
  Buffer results[2] = {Buffer(kThreads * 4, 0), Buffer(kThreads * 4, 0)};
  for (Buffer &result : results) {
    rt::Session session(*device(), {.stream = stream.handle,
                                    .results = {{result.address(), result.size()}},
                                    .cache = &cache,
                                    .measure = false});
    addTwice(session, 5);
    ASSERT_TRUE(session.status()) << format(session.status().error());
  }
  FP4_ASSERT_OK(device()->copy2D(
      {results[1].address(), 128, results[0].address(), 128, 128, 1, stream.handle}));
  FP4_ASSERT_OK(device()->synchronizeStream(stream.handle));
  EXPECT_EQ(results[0].read(), expected(10));
  EXPECT_EQ(results[1].read(), expected(10));
}

TEST(CtsStream, ThreadsShareADeviceAndACache) {
  rt::ModuleCache cache(*device());
  std::vector<Status> outcomes(4);
  std::vector<std::unique_ptr<Buffer>> results;
  std::vector<std::unique_ptr<OwnStream>> streams;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    results.push_back(std::make_unique<Buffer>(kThreads * 4, 0));
    streams.push_back(std::make_unique<OwnStream>());
  }
  for (uint32_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5 && outcomes[i]; ++round) {
        rt::Session session(*device(), {.stream = streams[i]->handle,
                                        .results = {{results[i]->address(), kThreads * 4}},
                                        .cache = &cache,
                                        .measure = round % 2 == 0});
        addTwice(session, i + 1);
        outcomes[i] = session.finish();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(outcomes[i]) << format(outcomes[i].error());
    EXPECT_EQ(results[i]->read(), expected(2 * (i + 1)));
  }
}

// Host code with a warm cache and provided results can be captured, and replayed.
TEST(CtsStream, ASessionIsCaptured) {
  if (!device()->isHardware())
    GTEST_SKIP() << "a simulator has no graphs";
  rt::ModuleCache cache(*device());
  Buffer result(kThreads * 4, 0);
  auto run = [&]() -> Status {
    rt::Session session(
        *device(),
        {.results = {{result.address(), result.size()}}, .cache = &cache, .measure = false});
    rt::Session::Scope scope(session);
    uint32_t value = 3, count = turns();
    void *memory = fp4rt_alloc_result(0, kThreads * 4);
    void *params[] = {&memory, &value, &count};
    fp4rt_launch(&slowAdd(), "slow_add", 1, 1, 1, kThreads, 1, 1, 0, params, 3);
    return session.status();
  };
  Status warm = run();
  ASSERT_TRUE(warm) << format(warm.error());
  FP4_ASSERT_OK(device()->synchronize());
  auto graph = device()->capture(run);
  FP4_ASSERT_OK(graph);
  EXPECT_EQ(graph->nodes, 1u);
  EXPECT_EQ(result.read(), expected(3)) << "capturing executes nothing";
  for (uint32_t i = 2; i <= 4; ++i) {
    FP4_ASSERT_OK(device()->replay(graph->id));
    FP4_ASSERT_OK(device()->synchronize());
    EXPECT_EQ(result.read(), expected(3 * i));
  }
}

TEST(CtsStream, UnloadedModulesAreGone) {
  auto module = device()->loadModule(slowAdd());
  FP4_ASSERT_OK(module);
  FP4_ASSERT_OK(device()->kernelInfo(*module, "slow_add"));
  FP4_ASSERT_OK(device()->unloadModule(*module));
  EXPECT_FALSE(device()->kernelInfo(*module, "slow_add").has_value());
  EXPECT_FALSE(device()->unloadModule(*module).has_value());
}

} // namespace
} // namespace fp4::cts
