//===- PowerTest.cpp - The power of a launch, and the clock it leaves -----===//
#include "Sim/Time/Power.h"
#include "TimeHarness.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

double hopper(TimingRate which) { return hw::timingRate("sm_90a", which)->value; }

/// A launch of a millisecond at the clock of the table of an H200.
KernelTime launchOf(double memoryBusy = 0) {
  KernelTime time;
  time.gigahertz = hopper(TimingRate::Gigahertz);
  time.launchMicroseconds = 0.5;
  time.microseconds = 1000.5;
  time.cycles = 1e6 * time.gigahertz;
  time.resources = {{"device memory", memoryBusy}};
  return time;
}

double partOf(const PowerUse &power, std::string_view name) {
  for (const auto &[part, watts] : power.parts)
    if (part == name)
      return watts;
  return 0;
}

} // namespace

TEST(Power, AnIdleGpuKeepsItsClock) {
  const Rates rates("sm_90a");
  const auto power = powerOf(launchOf(), {}, rates);
  ASSERT_TRUE(power);
  EXPECT_DOUBLE_EQ(power->watts, hopper(TimingRate::PowerIdle));
  EXPECT_DOUBLE_EQ(power->limit, 700);
  EXPECT_FALSE(power->falls);
  EXPECT_DOUBLE_EQ(power->gigahertz, hopper(TimingRate::Gigahertz));
  EXPECT_DOUBLE_EQ(power->microseconds, 1000.5);
}

TEST(Power, TheClockFallsUntilThePowerIsAtTheLimit) {
  const Rates rates("sm_90a");
  const auto power = powerOf(launchOf(), {.tensor = 1, .issue = 0, .shared = 1}, rates);
  ASSERT_TRUE(power);
  EXPECT_TRUE(power->falls);
  EXPECT_LT(power->gigahertz, 1.7);
  EXPECT_GT(power->gigahertz, 0.6);
  EXPECT_NEAR(power->microseconds, 0.5 + 1000 * 1.98 / power->gigahertz, 0.01);
  EXPECT_NEAR(partOf(*power, "tensor cores"), hopper(TimingRate::PowerTensor), 1);
  EXPECT_EQ(power->parts.front().first, "tensor cores");
  // A launch at that clock is at the limit.
  KernelTime slow = launchOf();
  slow.gigahertz = power->gigahertz;
  slow.microseconds = power->microseconds;
  EXPECT_NEAR(powerOf(slow, {.tensor = 1, .issue = 0, .shared = 1}, rates)->watts, 700, 1);
}

TEST(Power, BytesTakeEnergyAndTheTimeOfDeviceMemoryStays) {
  const Rates rates("sm_90a");
  KernelTime time = launchOf(1);
  time.memoryBytes = 4e9;
  const auto power = powerOf(time, {.tensor = 1}, rates);
  ASSERT_TRUE(power);
  EXPECT_NEAR(partOf(*power, "device memory"), 4 * hopper(TimingRate::EnergyMemory), 0.5);
  EXPECT_TRUE(power->falls);
  EXPECT_NEAR(power->microseconds, 1000.5, 1e-9); // device memory bounds it at any clock
}

TEST(Power, DeviceMemoryDoesNotCountForTheLimit) {
  KernelTime time = launchOf();
  time.memoryBytes = 8e9;
  const auto power = powerOf(time, {}, Rates("sm_90a"));
  EXPECT_GT(power->watts, power->limit);
  EXPECT_FALSE(power->falls);
  time.l2Bytes = 25e9; // as much energy
  time.memoryBytes = 0;
  EXPECT_TRUE(powerOf(time, {}, Rates("sm_90a"))->falls);
}

TEST(Power, BusyTensorCoresHaveALowerClockAtAnyPower) {
  KernelTime time = launchOf();
  const double clock = hopper(TimingRate::TensorGigahertz);
  const auto with = [&](const SmActivity &activity) {
    const auto power = powerOf(time, activity, Rates("sm_90a"));
    EXPECT_LT(power->watts, power->limit);
    return power->gigahertz;
  };
  EXPECT_NEAR(with({.tensor = 0.4}), clock - 0.4 * hopper(TimingRate::BusyFall), 1e-3);
  EXPECT_NEAR(with({.half = 0.4}), clock - 0.4 * hopper(TimingRate::BusyFallHalf), 1e-3);
  EXPECT_NEAR(with({.few = 0.6}), clock - 0.6 * hopper(TimingRate::BusyFallHalf), 1e-3);
  EXPECT_DOUBLE_EQ(with({.issue = 0.6}), hopper(TimingRate::Gigahertz));
}

TEST(Power, L2HasTheClockOfTheSms) {
  KernelTime time = launchOf();
  time.resources = {{"L2", 1}};
  const auto power = powerOf(time, {.tensor = 1}, Rates("sm_90a"));
  EXPECT_NEAR(power->microseconds, 0.5 + 1000 * 1.98 / power->gigahertz, 0.01);
  // Device memory that is busy for half of the time leaves it to the rest.
  time.resources = {{"device memory", 0.5}};
  const auto half = powerOf(time, {.tensor = 1}, Rates("sm_90a"));
  EXPECT_GT(half->microseconds, 0.5 + 980 * 1.98 / half->gigahertz);
  EXPECT_LT(half->microseconds, 0.5 + 1000 * 1.98 / half->gigahertz);
}

TEST(Power, ATargetWithoutItsRatesHasNone) {
  EXPECT_FALSE(powerOf(launchOf(), {}, Rates("sm_100a")));
}

/// Only arithmetic of the tensor core counts, and not the reads that it waits for.
TEST(Power, AKernelOfMmasDrawsMoreThanOneWithout) {
  const LaunchConfig config{.grid = {132, 1, 1}, .block = {128, 1, 1}, .dynamicSharedBytes = 65536};
  const std::string begin = operands(128, 32768);
  const auto power = [&](const std::string &body) {
    return runText(kernelText(begin + body, "", "sm_90a"), config).time.power;
  };
  const auto with = power(products(256, 64)), without = power("");
  ASSERT_TRUE(with && without);
  EXPECT_GT(partOf(*with, "tensor cores"), 0.2 * hopper(TimingRate::PowerTensor));
  EXPECT_EQ(partOf(*without, "tensor cores"), 0);
}
