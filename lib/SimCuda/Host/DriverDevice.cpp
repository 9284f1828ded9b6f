//===- DriverDevice.cpp - Initialisation, devices, contexts, entry points -===//
#include "EntryPoint.h"
#include "Graphs.h"
#include "HostImage.h"
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <string>

using namespace fp4;
using namespace fp4::simcuda;

FP4_ENTRY int cuInit(unsigned flags) {
  (void)context();
  return flags == 0 ? Success : InvalidValue;
}

FP4_ENTRY int cuDriverGetVersion(int *version) {
  FP4_REQUIRE(version);
  *version = 13000;
  return Success;
}

FP4_ENTRY int cuGetErrorName(int code, const char **text) {
  FP4_REQUIRE(text);
  *text = errorText(code, ErrorText::Driver);
  return Success;
}

FP4_ENTRY int cuGetErrorString(int code, const char **text) {
  FP4_REQUIRE(text);
  *text = errorText(code, ErrorText::Description);
  return Success;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuDeviceGetCount(int *count) {
  FP4_REQUIRE(count);
  *count = 1;
  return Success;
}

FP4_ENTRY int cuDeviceGet(int *device, int ordinal) {
  FP4_REQUIRE(device);
  *device = 0;
  return ordinal == 0 ? Success : InvalidDevice;
}

FP4_ENTRY int cuDeviceGetName(char *name, int length, int) {
  FP4_REQUIRE(name && length > 0);
  std::snprintf(name, static_cast<size_t>(length), "%s",
                std::string(context().chip().name).c_str());
  return Success;
}

FP4_ENTRY int cuDeviceGetAttribute(int *value, int attribute, int) {
  FP4_REQUIRE(value);
  auto found = deviceAttribute(context().chip(), attribute);
  if (!found)
    return context().fail(__func__, InvalidValue,
                          fmt::format("device attribute {} is not known", attribute));
  *value = *found;
  return Success;
}

FP4_ENTRY int cuDeviceComputeCapability(int *major, int *minor, int) {
  FP4_REQUIRE(major && minor);
  *major = context().chip().major();
  *minor = context().chip().minor();
  return Success;
}

FP4_ENTRY int cuDeviceTotalMem_v2(size_t *bytes, int) {
  FP4_REQUIRE(bytes);
  *bytes = context().chip().memoryBytes;
  return Success;
}

FP4_ENTRY int cuDeviceGetUuid_v2(void *uuid, int) {
  FP4_REQUIRE(uuid);
  std::memset(uuid, 0, 16);
  return Success;
}
FP4_ENTRY decltype(cuDeviceGetUuid_v2) cuDeviceGetUuid __attribute__((alias("cuDeviceGetUuid_v2")));

//===----------------------------------------------------------------------===//
// Contexts: there is one
//===----------------------------------------------------------------------===//

static int theContext;

static Code giveContext(void **handle) {
  FP4_REQUIRE(handle);
  *handle = &theContext;
  return Success;
}

/// Null is the current one, or none.
static Code checkContext(const char *function, const void *handle) {
  if (!handle || handle == &theContext)
    return Success;
  return context().fail(function, InvalidContext, "the context is not that of the device",
                        "cuDevicePrimaryCtxRetain and cuCtxCreate give it");
}

FP4_ENTRY int cuCtxCreate_v2(void **handle, unsigned, int) { return giveContext(handle); }

/// CUctxCreateParams
struct ContextParameters {
  const void *affinities;
  int affinityCount;
  const void *graphics;
};

FP4_ENTRY int cuCtxCreate_v4(void **handle, const ContextParameters *parameters, unsigned, int) {
  if (parameters && parameters->affinityCount)
    return context().fail("cuCtxCreate", UnsupportedExecAffinity,
                          "a part of the SMs is for programs under MPS, which is not simulated",
                          "create a context of all SMs");
  return giveContext(handle);
}
FP4_ENTRY int cuCtxDestroy_v2(void *handle) { return checkContext("cuCtxDestroy", handle); }
FP4_ENTRY int cuCtxGetCurrent(void **handle) { return giveContext(handle); }
FP4_ENTRY int cuCtxSetCurrent(void *handle) { return checkContext(__func__, handle); }
FP4_ENTRY int cuCtxPushCurrent_v2(void *handle) { return checkContext("cuCtxPushCurrent", handle); }
FP4_ENTRY int cuCtxPopCurrent_v2(void **handle) { return handle ? giveContext(handle) : Success; }
FP4_ENTRY int cuCtxGetDevice(int *device) { return cuDeviceGet(device, 0); }
FP4_ENTRY int cuCtxGetDevice_v2(int *device, void *handle) {
  const Code code = checkContext("cuCtxGetDevice", handle);
  return code == Success ? cuDeviceGet(device, 0) : code;
}
FP4_ENTRY int cuCtxGetId(void *handle, unsigned long long *id) {
  FP4_REQUIRE(id);
  *id = 1;
  return checkContext(__func__, handle);
}
FP4_ENTRY int cuCtxSynchronize() { return synchronize(__func__, nullptr); }
FP4_ENTRY int cuCtxSynchronize_v2(void *handle) {
  const Code code = checkContext("cuCtxSynchronize", handle);
  return code == Success ? synchronize("cuCtxSynchronize", nullptr) : code;
}
FP4_ENTRY int cuCtxGetFlags(unsigned *flags) {
  FP4_REQUIRE(flags);
  *flags = 0;
  return Success;
}
FP4_ENTRY int cuCtxGetApiVersion(void *handle, unsigned *version) {
  FP4_REQUIRE(version);
  *version = 13000;
  return checkContext(__func__, handle);
}
FP4_ENTRY int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return Success;
}
FP4_ENTRY int cuCtxSetLimit(int, size_t) { return Success; }
FP4_ENTRY int cuDevicePrimaryCtxRetain(void **handle, int) { return giveContext(handle); }
FP4_ENTRY int cuDevicePrimaryCtxRelease_v2(int) { return Success; }
FP4_ENTRY int cuDevicePrimaryCtxReset_v2(int) { return Success; }
FP4_ENTRY int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return Success; }
FP4_ENTRY int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *active) {
  FP4_REQUIRE(flags && active);
  *flags = 0;
  *active = 1;
  return Success;
}
