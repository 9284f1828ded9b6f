//===- SmClock.h - The clock of SMs under load ----------------------------===//
//
// NVML reports the clock that the driver asks for. SMs under a load of GEMMs run slower, which NVML
// does not show: an H200 of 1980 MHz has 1.3 to 1.8 GHz. So a kernel in front of the work and one
// behind it note the cycles of each SM and the time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"

namespace fp4::harness {

inline constexpr std::string_view kClockKernel = "fp4_note_clock";

class SmClock {
public:
  explicit SmClock(rt::Device &device) : device_(device) {}
  ~SmClock();
  SmClock(const SmClock &) = delete;
  SmClock &operator=(const SmClock &) = delete;

  /// Notes the clock in the order of the default stream: in front of the work, then behind it.
  Status note(bool behind);
  /// Mean MHz between the two notes, of the SM in the middle; waits for the second. 0 if no SM has
  /// both notes, or the device has no clock.
  Expected<double> megahertz();

private:
  /// Loads the kernel with the first note.
  Status load();

  rt::Device &device_;
  bool has_ = true; ///< the GPU takes the kernel
  std::optional<rt::ModuleId> module_;
  rt::DevicePtr words_ = 0; ///< cycles and nanoseconds of each SM, of both notes
};

} // namespace fp4::harness
