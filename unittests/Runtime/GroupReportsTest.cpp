//===- GroupReportsTest.cpp - Errors of groups that kernels find ----------===//

#include "SimulatorDevice.h"

#include "fp4/Runtime/Session.h"
#include "fp4/Support/GroupRows.h"

namespace fp4::rt {
namespace {

constexpr const char *kOffsets = "operand 'offsets'";

/// As a kernel does.
void write(Device &device, DevicePtr place, const GroupReport &report) {
  EXPECT_TRUE(device.copyToDevice(place, std::as_bytes(std::span(&report, 1))));
}

const GroupReport kTooLarge{GroupReport::kWritten, 3, 90, 101, 90, 100};

TEST(GroupReports, AreTheErrorOfTheSessionThatWaits) {
  auto device = simulator();
  Session session(*device), other(*device);
  Session::Scope scope(session);
  const auto place = reinterpret_cast<DevicePtr>(fp4rt_group_report(kOffsets));
  ASSERT_NE(place, 0u);
  EXPECT_EQ(reinterpret_cast<DevicePtr>(fp4rt_group_report(kOffsets)), place);
  write(*device, place, kTooLarge);
  EXPECT_TRUE(other.finish());
  const Status status = session.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Usage);
  EXPECT_EQ(status.error().message, "operand 'offsets' must not exceed the 100 rows of the matrix, but "
                                    "group 3 begins at row 90 and ends at row 101");
  EXPECT_NE(status.error().note, "");
}

TEST(GroupReports, AreTakenOnceAndWhenTheyAreWhole) {
  auto device = simulator();
  const int program = 0, another = 0;
  GroupReports &reports = device->groupReports();
  const auto place = reports.place(&program, kOffsets);
  ASSERT_TRUE(place);
  EXPECT_NE(reports.place(&another, kOffsets).value(), *place);
  EXPECT_TRUE(reports.take());
  GroupReport claimed = kTooLarge;
  claimed.state = GroupReport::kClaimed;
  write(*device, *place, claimed);
  EXPECT_TRUE(reports.take()) << "the kernel still writes";
  write(*device, *place, kTooLarge);
  EXPECT_TRUE(reports.take(&another));
  EXPECT_FALSE(reports.take(&program));
  EXPECT_TRUE(reports.take(&program)) << "it was told";
  write(*device, *place, kTooLarge);
  EXPECT_FALSE(reports.take()) << "of any program";
}

TEST(GroupReports, OfOneProgramAreOneError) {
  auto device = simulator();
  const int program = 0, another = 0;
  constexpr const char *others = "operand 'key_offsets'";
  GroupReports &reports = device->groupReports();
  const DevicePtr first = reports.place(&program, kOffsets).value();
  const DevicePtr second = reports.place(&program, others).value();
  const DevicePtr apart = reports.place(&another, kOffsets).value();
  auto writeAll = [&] {
    for (const DevicePtr place : {first, second, apart})
      write(*device, place, kTooLarge);
  };
  writeAll();
  EXPECT_FALSE(reports.take(&program));
  EXPECT_TRUE(reports.take(&program)) << "both operands were of one call";
  EXPECT_FALSE(reports.take(&another)) << "another program has its own";
  writeAll();
  EXPECT_FALSE(reports.take());
  EXPECT_FALSE(reports.take()) << "of the other program";
  EXPECT_TRUE(reports.take());
}

TEST(GroupReports, EndWithTheirProgram) {
  auto device = simulator();
  DevicePtr place = 0;
  {
    ModuleCache cache(*device);
    place = device->groupReports().place(&cache, kOffsets).value();
    write(*device, place, kTooLarge);
  }
  EXPECT_TRUE(device->groupReports().take());
  EXPECT_FALSE(device->free(place)) << "it is free";
}

TEST(GroupReports, NameTheFirstGroupThatDoesNotFit) {
  const int64_t offsets[] = {0, 5, 5, 9};
  EXPECT_FALSE(findWrongGroup(offsets, 1, 9));
  EXPECT_EQ(findWrongGroup(offsets, 1, 8)->group, 2);
  const int64_t negative[] = {-1, 5}, falling[] = {3, 5, 4, 99};
  EXPECT_EQ(groupError("o", *findWrongGroup(negative, 1, 9)).message,
            "o must not be negative, but group 0 begins at row -1");
  EXPECT_EQ(groupError("o", *findWrongGroup(falling, 1, 9)).message,
            "o must not decrease, but group 1 begins at row 5 and ends at row 4");
  const int64_t ranges[] = {0, 5, 0, 0, 7, 9}, shared[] = {0, 5, 4, 6};
  EXPECT_FALSE(findWrongGroup(ranges, 2, 9)) << "a range without rows may be anywhere";
  EXPECT_EQ(groupError("o", *findWrongGroup(shared, 2, 9)).message,
            "o must be of groups that have no row in common, but group 1 begins at row 4 and ends "
            "at row 6, and the groups before it end at row 5");
}

} // namespace
} // namespace fp4::rt
