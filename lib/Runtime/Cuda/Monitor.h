//===- Monitor.h - The state of a GPU -------------------------------------===//
//
// NVML, which is loaded on first use, reports the state. Without NVML there is nothing to show.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"

namespace fp4::rt {

class Monitor {
public:
  /// The state at this moment of the GPU at a PCI bus address, or nothing without NVML.
  std::optional<Condition> read(const char *pciBusId);

private:
  bool open(const char *pciBusId);

  bool tried_ = false;
  void *gpu_ = nullptr;
  int (*clockInfo_)(void *gpu, int type, unsigned *megahertz) = nullptr;
  int (*power_)(void *gpu, unsigned *milliwatts) = nullptr;
  int (*throttle_)(void *gpu, unsigned long long *reasons) = nullptr;
};

} // namespace fp4::rt
