//===- EmbedderTest.cpp - Parts of a session that an embedder brings ------===//

#include "LateDevice.h"
#include "SimulatorDevice.h"

#include <array>
#include <thread>

namespace fp4::rt {
namespace {

using testing::HasSubstr;

TEST(Embedder, AllWorkGoesToTheStreamOfTheCaller) {
  LateDevice device;
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  {
    Session session(device, {.stream = 7});
    Session::Scope scope(session);
    void *memory = fp4rt_alloc(16);
    fp4rt_memset(memory, 0, 16);
    fp4rt_memcpy_2d(memory, 16, memory, 16, 16, 1);
    launchValue(module, 1);
    fp4rt_free(memory);
    fp4rt_alloc(16); // freed with the session
    EXPECT_TRUE(session.finish());
    EXPECT_EQ(session.launches().size(), 1u);
  }
  EXPECT_THAT(device.streams, testing::Each(7u));
  EXPECT_EQ(device.streams.size(), 10u);
}

TEST(Embedder, WithoutMeasuringThereAreNoEventsAndNoRecords) {
  LateDevice device;
  Session session(device, {.stream = 7, .measure = false});
  Session::Scope scope(session);
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  launchValue(module, 1);
  EXPECT_TRUE(session.finish());
  EXPECT_EQ(device.events, 0u);
  EXPECT_TRUE(session.launches().empty());
  EXPECT_EQ(device.launched.size(), 1u);
}

TEST(Embedder, ACacheOutlivesItsSessions) {
  LateDevice device;
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  {
    ModuleCache cache(device);
    for (uint32_t i = 0; i < 3; ++i) {
      Session session(device, {.cache = &cache});
      Session::Scope scope(session);
      launchValue(module, i);
    }
    EXPECT_EQ(device.loaded, 1u);
    EXPECT_EQ(device.unloaded, 0u);
  }
  EXPECT_EQ(device.unloaded, 1u);
}

class CountingAllocator : public Allocator {
public:
  explicit CountingAllocator(Device &device) : device_(device) {}
  Expected<DevicePtr> allocate(uint64_t bytes, StreamHandle stream) override {
    log.push_back("allocate " + std::to_string(bytes) + " on " + std::to_string(stream));
    return device_.allocate(bytes);
  }
  Status free(DevicePtr address, StreamHandle stream) override {
    log.push_back("free on " + std::to_string(stream));
    return device_.free(address);
  }
  std::vector<std::string> log;

private:
  Device &device_;
};

TEST(Embedder, MemoryComesFromTheCallersAllocator) {
  auto device = simulator();
  CountingAllocator allocator(*device);
  {
    Session session(*device, {.stream = 3, .allocator = &allocator});
    Session::Scope scope(session);
    void *temporary = fp4rt_alloc(64);
    fp4rt_alloc_result(0, 32);
    fp4rt_free(temporary);
    EXPECT_TRUE(session.finish());
  }
  EXPECT_THAT(allocator.log, testing::ElementsAre("allocate 64 on 3", "allocate 32 on 3",
                                                  "free on 3", "free on 3"));
}

TEST(Embedder, ResultsAreTheBuffersOfTheCaller) {
  auto device = simulator();
  auto buffer = device->allocate(64);
  ASSERT_TRUE(buffer);
  {
    Session session(*device, {.results = {{}, {*buffer, 64}}});
    Session::Scope scope(session);
    void *first = fp4rt_alloc_result(0, 32), *second = fp4rt_alloc_result(1, 64);
    EXPECT_NE(reinterpret_cast<DevicePtr>(first), *buffer) << "nobody provided it";
    EXPECT_EQ(reinterpret_cast<DevicePtr>(second), *buffer);
    EXPECT_EQ(session.allocatedBytes(), 32u);
    EXPECT_TRUE(session.finish());
  }
  EXPECT_TRUE(device->memset(*buffer, 1, 64)) << "it is still the caller's";
}

TEST(Embedder, BuffersOfResultsAreChecked) {
  auto device = simulator();
  auto buffer = device->allocate(64);
  auto errorOf = [&](ResultBuffer result) {
    Session session(*device, {.results = {result}});
    Session::Scope scope(session);
    EXPECT_EQ(fp4rt_alloc_result(0, 48), nullptr);
    return session.finish().error().message;
  };
  EXPECT_EQ(errorOf({*buffer, 47}),
            "the buffer of result 0 must have at least 48 bytes, but got 47");
  EXPECT_THAT(errorOf({*buffer + 8, 56}),
              HasSubstr("the buffer of result 0 must start at a multiple of 16 bytes, but got 0x"));
}

TEST(Embedder, WhatIsHandedOverOutlivesTheSession) {
  auto device = simulator();
  void *result = nullptr;
  {
    Session session(*device);
    Session::Scope scope(session);
    result = fp4rt_alloc_result(1, 32);
    session.handOver(result);
    EXPECT_EQ(session.allocatedBytes(), 0u);
    session.handOver(result); // nothing of it is the session's any more
    EXPECT_TRUE(session.finish());
  }
  auto address = reinterpret_cast<DevicePtr>(result);
  EXPECT_TRUE(device->memset(address, 1, 32));
  EXPECT_TRUE(device->free(address));
}

// Sessions of several threads share a device and a cache. The thread sanitizer watches this test.
TEST(Embedder, SessionsOfSeveralThreadsShareADevice) {
  auto device = simulator();
  const fp4rt_module module{"m", "sm_100a", kTwoParameters, sizeof(kTwoParameters) - 1, nullptr, 0};
  const std::array<std::byte, 4> bytes{};
  ModuleCache cache(*device);
  std::array<Status, 4> outcomes;
  std::vector<std::thread> threads;
  for (Status &outcome : outcomes)
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) {
        Session session(*device, {.cache = &cache, .measure = i % 2 == 0});
        Session::Scope scope(session);
        void *memory = fp4rt_alloc(64);
        fp4rt_memset(memory, 1, 64);
        fp4rt_constant(bytes.data(), 4);
        fp4rt_counters(64);
        uint64_t value = 0;
        void *params[] = {&memory, &value};
        fp4rt_launch(&module, "k", 1, 1, 1, 32, 1, 1, 0, params, 2);
        outcome = session.finish();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &outcome : outcomes)
    EXPECT_TRUE(outcome) << format(outcome.error());
}

} // namespace
} // namespace fp4::rt
