//===- CountersTest.cpp - Counters that kernels find and leave zero -------===//

#include "SimulatorDevice.h"

#include "fp4/Runtime/Session.h"

namespace fp4::rt {
namespace {

/// Returns the counters that fp4rt_counters gives a session of its own.
DevicePtr countersOf(Device &device, ModuleCache &cache, StreamHandle stream, uint64_t bytes,
                     bool fails = false) {
  Session session(device, {.stream = stream, .cache = &cache});
  Session::Scope scope(session);
  auto address = reinterpret_cast<DevicePtr>(fp4rt_counters(bytes));
  EXPECT_NE(address, 0u);
  if (fails)
    fp4rt_fail("a kernel did not end", nullptr);
  EXPECT_EQ(session.finish().has_value(), !fails);
  return address;
}

std::vector<std::byte> contents(Device &device, DevicePtr address, size_t bytes) {
  std::vector<std::byte> read(bytes, std::byte(0xEE));
  EXPECT_TRUE(device.copyToHost(read, address));
  return read;
}

TEST(Counters, AreZeroAndStayForTheWorkOfAStream) {
  auto device = simulator();
  ModuleCache cache(*device);
  const DevicePtr first = countersOf(*device, cache, 1, 8);
  EXPECT_EQ(first % 256, 0u);
  EXPECT_THAT(contents(*device, first, 4096), testing::Each(std::byte(0)));
  EXPECT_EQ(countersOf(*device, cache, 1, 4096), first);
  EXPECT_EQ(countersOf(*device, cache, 1, 0), first) << "of no rows";
  EXPECT_NE(countersOf(*device, cache, 2, 8), first) << "its kernels run at the same time";
  ModuleCache other(*device);
  EXPECT_NE(countersOf(*device, other, 1, 8), first) << "of another program";
}

// Kernels of a captured graph keep the smaller ones.
TEST(Counters, MoreAreOtherMemory) {
  auto device = simulator();
  ModuleCache cache(*device);
  const DevicePtr small = countersOf(*device, cache, 1, 8);
  const DevicePtr large = countersOf(*device, cache, 1, 4097);
  EXPECT_NE(large, small);
  EXPECT_THAT(contents(*device, large, 8192), testing::Each(std::byte(0)));
  EXPECT_THAT(contents(*device, small, 4096), testing::Each(std::byte(0))) << "still there";
  EXPECT_EQ(countersOf(*device, cache, 1, 8), large);
}

// A simulator goes on after a kernel that did not, with whatever it has counted.
TEST(Counters, AfterAnErrorThereAreOthers) {
  auto device = simulator();
  ModuleCache cache(*device);
  const DevicePtr first = countersOf(*device, cache, 1, 8),
                  other = countersOf(*device, cache, 2, 8);
  EXPECT_EQ(countersOf(*device, cache, 1, 8, /*fails=*/true), first);
  EXPECT_NE(countersOf(*device, cache, 1, 8), first);
  EXPECT_EQ(countersOf(*device, cache, 2, 8), other) << "that stream has had no error";
}

TEST(Counters, NeedASessionWithoutError) {
  EXPECT_EQ(fp4rt_counters(8), nullptr) << "there is no session";
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  fp4rt_fail("first", nullptr);
  EXPECT_EQ(fp4rt_counters(8), nullptr);
}

} // namespace
} // namespace fp4::rt
