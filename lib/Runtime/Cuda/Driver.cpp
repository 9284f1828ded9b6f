//===- Driver.cpp - libcuda, loaded on first use --------------------------===//

#include "Driver.h"

#include "fp4/Support/SharedLibrary.h"

#include <mutex>
#include <optional>

namespace fp4::rt::cuda {
namespace {

constexpr const char *kLibrary = "libcuda.so.1";
constexpr const char *kSimulatorHint = "run with --device sim to use the simulator";

tl::unexpected<Error> unavailable(std::string why, std::string remedy) {
  return makeError(ErrorKind::Device, "no CUDA device is available: " + std::move(why),
                   std::move(remedy) + ", or " + kSimulatorHint);
}

Expected<Driver> load() {
  const SharedLibrary library(kLibrary);
  if (!library)
    return unavailable("the driver library cannot be loaded (" + library.error() + ")",
                       "install the NVIDIA driver");
  Driver driver;
#define X(name, symbol, ...)                                                                       \
  driver.name = reinterpret_cast<Result (*)(__VA_ARGS__)>(library.find(symbol));                   \
  if (!driver.name)                                                                                \
    return unavailable("the driver library has no " symbol,                                        \
                       "update the NVIDIA driver to CUDA 12.7 or later");
  FP4_CUDA_CALLS(X)
#undef X
  if (Result result = driver.Init(0); result != Success) {
    const char *name = nullptr;
    driver.GetErrorName(result, &name);
    return unavailable(std::string("cuInit answers ") + (name ? name : std::to_string(result)),
                       "check the driver with nvidia-smi");
  }
  driver.DriverGetVersion(&driver.version);
  return driver;
}

const char *hint(Result result) {
  switch (result) {
  case ErrorOutOfMemory:
    return "the GPU is out of memory: use a smaller problem, or end other programs that use it "
           "(nvidia-smi lists them)";
  case ErrorNoBinaryForGpu:
  case ErrorInvalidImage:
    return "the code was emitted for another GPU: compile with the --target of this device, or run "
           "with --device sim";
  case ErrorInvalidPtx:
    return "the driver's assembler rejects the PTX; its text is above";
  case ErrorUnsupportedPtxVersion:
    return "the driver is older than the PTX version: update it, or embed a cubin";
  case ErrorIllegalAddress:
  case ErrorMisalignedAddress:
  case ErrorLaunchFailed:
    return "the kernel accessed memory wrongly and the CUDA context is lost: run with --device "
           "sim, "
           "which names the instruction and the allocation, or under compute-sanitizer; "
           "CUDA_LAUNCH_BLOCKING=1 names the kernel";
  case ErrorIllegalInstruction:
    return "a GPU also says so of a tensor copy with a wrong operand, such as an innermost "
           "coordinate "
           "that is no multiple of 16 bytes: run with --device sim, which names the operand";
  case ErrorLaunchTimeout:
    return "the kernel did not end: run with --device sim, which reports deadlocks";
  case ErrorLaunchOutOfResources:
    return "the CTA needs more registers or shared memory than the GPU has";
  case ErrorCooperativeLaunchTooLarge:
    return "CTAs that wait for each other must all run at a time: other work may have taken "
           "SMs away (MPS), or the code was emitted for a larger GPU";
  case ErrorNotFound:
    return "the module has no symbol of that name";
  default:
    return "";
  }
}

} // namespace

Expected<const Driver *> Driver::get() {
  static std::once_flag once;
  static std::optional<Expected<Driver>> loaded;
  std::call_once(once, [] { loaded.emplace(load()); });
  if (!*loaded)
    return tl::unexpected<Error>(loaded->error());
  return &**loaded;
}

Status check(const Driver &driver, Result result, const char *call, const std::string &doing) {
  if (result == Success)
    return {};
  const char *name = nullptr, *text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  std::string message = doing + " failed: " + call + " answers " +
                        (name ? name : "error " + std::to_string(result)) +
                        (text ? std::string(" (") + text + ")" : "");
  return makeError(ErrorKind::Device, std::move(message), hint(result));
}

} // namespace fp4::rt::cuda
