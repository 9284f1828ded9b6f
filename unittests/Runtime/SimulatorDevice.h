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

} // namespace fp4::rt
