//===- SimulatorDevice.h - The device of the runtime's tests ----*- C++ -*-===//

#pragma once

#include "fp4/Runtime/OpenDevice.h"

#include <gmock/gmock.h>

namespace fp4::rt {

/// A simulator with the default options.
inline std::unique_ptr<Device> simulator() {
  auto device = openDevice("sim", {});
  EXPECT_TRUE(device) << format(device.error());
  return device ? std::move(*device) : nullptr;
}

/// A kernel that stores its second parameter where the first one points.
inline constexpr char kTwoParameters[] = R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 value) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
})";

} // namespace fp4::rt
