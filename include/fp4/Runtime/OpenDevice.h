//===- OpenDevice.h - From what a user wrote to a device ------------------===//
#pragma once

#include "fp4/Runtime/Device.h"
#include "fp4/Sim/SimulationOptions.h"

namespace fp4::rt {

/// Options of the simulator. Hardware ignores all but `check`, which it cannot do, and `target`.
/// The checker is off unless it is asked for; an empty `check` is "default" where the device is a
/// simulator.
struct DeviceOptions : sim::SimulationOptions {
  DeviceOptions() { check = "off"; }
  bool showProgress = true; ///< progress on stderr, when it is a terminal and the run is long
};

/// Opens the device a user named: "sim", "cuda", "cuda:N", or "auto" (a GPU that runs
/// options.target, else the simulator). Unknown names are Usage errors, absent GPUs Device errors.
/// `note` says why "auto" passed a GPU over.
Expected<std::unique_ptr<Device>>
openDevice(std::string_view selector, const DeviceOptions &options, std::string *note = nullptr);

Expected<std::unique_ptr<Device>> openSimDevice(const DeviceOptions &options);
Expected<std::unique_ptr<Device>> openCudaDevice(int ordinal);

} // namespace fp4::rt
