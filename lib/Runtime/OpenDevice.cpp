//===- OpenDevice.cpp - From what a user wrote to a device ----------------===//

#include "fp4/Runtime/OpenDevice.h"

#include "TargetMatch.h"

#include <charconv>

namespace fp4::rt {

Expected<CapturedGraph> Device::capture(const std::function<Status()> &) {
  return makeError(ErrorKind::Device, name() + " has no graphs");
}

Status Device::replay(uint32_t) { return makeError(ErrorKind::Device, name() + " has no graphs"); }
namespace {

/// The ordinal of "cuda" or "cuda:N"; negative when the text is neither.
int cudaOrdinal(std::string_view selector) {
  if (selector == "cuda")
    return 0;
  if (!selector.starts_with("cuda:"))
    return -1;
  selector.remove_prefix(5);
  int ordinal = -1;
  auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), ordinal);
  return error == std::errc() && end == selector.data() + selector.size() ? ordinal : -1;
}

/// Returns true when a device runs a target; "sm_90a" is {9, 0}.
bool runsTarget(const Device &device, std::string_view target) {
  std::string own = device.target().substr(3);
  if (own.ends_with('a'))
    own.pop_back();
  int version = std::stoi(own);
  TargetMatch match = matchTarget(target, version / 10, version % 10);
  return match.cubin || match.ptx;
}

/// Opens the first GPU if it runs the target, else the simulator. A machine without a GPU needs no
/// remark; a GPU of another kind gets one.
Expected<std::unique_ptr<Device>> openBestDevice(const DeviceOptions &options, std::string *note) {
  auto gpu = openCudaDevice(0);
  if (gpu && runsTarget(**gpu, options.target))
    return gpu;
  if (gpu && note)
    *note = "simulated: the code is for " + options.target + ", and the GPU, '" + (*gpu)->name() +
            "', is " + (*gpu)->target();
  return openSimDevice(options);
}

} // namespace

Expected<std::unique_ptr<Device>> openDevice(std::string_view selector,
                                             const DeviceOptions &options, std::string *note) {
  if (selector == "sim")
    return openSimDevice(options);
  const bool check = !options.check.empty() && options.check != "off";
  if (selector == "auto")
    return check ? openSimDevice(options) : openBestDevice(options, note);
  const int ordinal = cudaOrdinal(selector);
  if (ordinal >= 0 && check)
    return makeError(ErrorKind::Usage, "only the simulator checks for hazards",
                     "use --device sim, or leave --check out");
  if (ordinal >= 0)
    return openCudaDevice(ordinal);
  return makeError(ErrorKind::Usage, "unknown device '" + std::string(selector) + "'",
                   "choose auto, sim, cuda or cuda:N");
}

} // namespace fp4::rt
