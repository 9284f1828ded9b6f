//===- OpenDeviceTest.cpp - Selectors, absent drivers, rules of targets ---===//

#include "fp4/Runtime/OpenDevice.h"
#include "../../lib/Runtime/TargetMatch.h"

#include <gmock/gmock.h>

namespace fp4::rt {
namespace {

using testing::HasSubstr;

TEST(OpenDevice, SelectorsThatDoNotExist) {
  auto unknown = openDevice("tpu", {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::Usage);
  EXPECT_EQ(unknown.error().message, "unknown device 'tpu'");
  EXPECT_FALSE(openDevice("cuda:x", {}));
  EXPECT_FALSE(openDevice("cuda:-1", {}));
  DeviceOptions options;
  options.target = "sm_42";
  EXPECT_FALSE(openDevice("sim", options));
  options = {};
  options.check = "lenient";
  auto mode = openDevice("sim", options);
  ASSERT_FALSE(mode);
  EXPECT_EQ(mode.error().message, "unknown mode 'lenient' of --check");
  auto absent = openDevice("cuda:63", {});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, ErrorKind::Device);
  EXPECT_THAT(absent.error().note,
              testing::AnyOf(HasSubstr("--device sim"), HasSubstr("choose cuda:0")));
}

// The CUDA compatibility rules, one line each.
TEST(TargetMatch, Rules) {
  auto match = [](const char *target, int major, int minor) {
    TargetMatch m = matchTarget(target, major, minor);
    return std::pair(m.cubin, m.ptx);
  };
  EXPECT_EQ(match("sm_90a", 9, 0), std::pair(true, true));
  EXPECT_EQ(match("sm_90a", 10, 0), std::pair(false, false)); // "a": its own chip only
  EXPECT_EQ(match("sm_100a", 9, 0), std::pair(false, false));
  EXPECT_EQ(match("sm_100a", 10, 3), std::pair(false, false));
  EXPECT_EQ(match("sm_100f", 10, 3), std::pair(true, true)); // "f": its family
  EXPECT_EQ(match("sm_100f", 12, 0), std::pair(false, false));
  EXPECT_EQ(match("sm_103f", 10, 0), std::pair(false, false)); // an older chip of the family
  EXPECT_EQ(match("sm_90", 9, 0), std::pair(true, true));
  EXPECT_EQ(match("sm_90", 10, 0), std::pair(false, true)); // PTX runs forward
  EXPECT_EQ(match("sm_80", 8, 9), std::pair(true, true));
  EXPECT_EQ(match("sm_89", 8, 6), std::pair(false, false));
  EXPECT_FALSE(matchTarget("gfx90a", 9, 0).known);
  EXPECT_FALSE(matchTarget("sm_", 9, 0).known);
}

} // namespace
} // namespace fp4::rt
