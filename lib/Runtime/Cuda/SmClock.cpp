//===- SmClock.cpp - The clock of a GPU's multiprocessors -----------------===//

#include "SmClock.h"

#include <dlfcn.h>

namespace fp4::rt {

bool SmClock::open(const char *pciBusId) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return false;
  auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  auto find = reinterpret_cast<int (*)(const char *, void **)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  clockInfo_ =
      reinterpret_cast<int (*)(void *, int, unsigned *)>(dlsym(library, "nvmlDeviceGetClockInfo"));
  return initialize && find && clockInfo_ && initialize() == 0 && find(pciBusId, &gpu_) == 0;
}

std::optional<uint32_t> SmClock::read(const char *pciBusId) {
  constexpr int kMultiprocessors = 1; // NVML_CLOCK_SM
  if (!tried_ && !open(pciBusId))
    gpu_ = nullptr;
  tried_ = true;
  unsigned megahertz = 0;
  if (!gpu_ || clockInfo_(gpu_, kMultiprocessors, &megahertz) != 0)
    return std::nullopt;
  return megahertz;
}

} // namespace fp4::rt
