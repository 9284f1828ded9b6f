//===- Monitor.cpp - The state of a GPU -----------------------------------===//

#include "Monitor.h"

#include "fp4/Support/SharedLibrary.h"

namespace fp4::rt {

bool Monitor::open(const char *pciBusId) {
  const SharedLibrary library("libnvidia-ml.so.1");
  if (!library)
    return false;
  auto load = [&library](auto &function, const char *symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(library.find(symbol));
    return function != nullptr;
  };
  int (*initialize)() = nullptr;
  int (*find)(const char *, void **) = nullptr;
  load(power_, "nvmlDeviceGetPowerUsage"); // a missing value of these two must not cost the clock
  load(throttle_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  return load(initialize, "nvmlInit_v2") && load(find, "nvmlDeviceGetHandleByPciBusId_v2") &&
         load(clockInfo_, "nvmlDeviceGetClockInfo") && initialize() == 0 &&
         find(pciBusId, &gpu_) == 0;
}

std::optional<Condition> Monitor::read(const char *pciBusId) {
  constexpr int kSms = 1; // NVML_CLOCK_SM
  if (!tried_ && !open(pciBusId))
    gpu_ = nullptr;
  tried_ = true;
  unsigned megahertz = 0, milliwatts = 0;
  unsigned long long reasons = 0;
  if (!gpu_ || clockInfo_(gpu_, kSms, &megahertz) != 0)
    return std::nullopt;
  Condition condition;
  condition.smClockMhz = megahertz;
  if (power_ && power_(gpu_, &milliwatts) == 0)
    condition.watts = milliwatts * 1e-3;
  if (throttle_ && throttle_(gpu_, &reasons) == 0)
    condition.throttleReasons = reasons;
  return condition;
}

} // namespace fp4::rt
