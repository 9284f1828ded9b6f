//===- CudartDevice.cpp - Devices and errors of the runtime API -----------===//
#include "DeviceProp.h"
#include "EntryPoint.h"
#include "Graphs.h"
#include "HostImage.h"
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <string>

using namespace fp4;
using namespace fp4::simcuda;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaGetDeviceCount(int *count) {
  FP4_REQUIRE(count);
  *count = 1;
  return Success;
}

FP4_ENTRY int cudaGetDevice(int *device) {
  FP4_REQUIRE(device);
  *device = 0;
  return Success;
}

static Code theDevice(int device) { return device == 0 ? Success : context().quiet(InvalidDevice); }

FP4_ENTRY int cudaSetDevice(int device) { return theDevice(device); }
FP4_ENTRY int cudaInitDevice(int device, unsigned, unsigned) { return theDevice(device); }
FP4_ENTRY int cudaSetDeviceFlags(unsigned) { return Success; }
FP4_ENTRY int cudaGetDeviceFlags(unsigned *flags) {
  FP4_REQUIRE(flags);
  *flags = 0;
  return Success;
}
FP4_ENTRY int cudaDeviceSynchronize() { return synchronize(__func__, nullptr); }
FP4_ENTRY int cudaDeviceReset() { return Success; }
FP4_ENTRY int cudaDeviceSetCacheConfig(int) { return Success; }
FP4_ENTRY int cudaDeviceSetLimit(int, size_t) { return Success; }
FP4_ENTRY int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return Success;
}
FP4_ENTRY int cudaDeviceCanAccessPeer(int *can, int, int) {
  FP4_REQUIRE(can);
  *can = 0;
  return Success;
}
// There is no second device to be a peer.
FP4_ENTRY int cudaDeviceEnablePeerAccess(int, unsigned) { return context().quiet(InvalidDevice); }
FP4_ENTRY int cudaDeviceDisablePeerAccess(int) { return context().quiet(InvalidDevice); }
FP4_ENTRY int cudaDeviceGetP2PAttribute(int *value, int, int, int) {
  FP4_REQUIRE(value);
  *value = 0;
  return context().quiet(InvalidDevice);
}
FP4_ENTRY int cudaDeviceGetLimit(size_t *value, int limit) {
  FP4_REQUIRE(value);
  // Stack, printf buffer, heap, depth, launches, L2 granularity, persisting L2: those of a new
  // context. Nothing here runs out of them.
  static constexpr size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};
  FP4_REQUIRE(limit >= 0 && limit < int(std::size(limits)));
  *value = limits[limit];
  return Success;
}
FP4_ENTRY int cudaDeviceGetCacheConfig(int *config) {
  FP4_REQUIRE(config);
  *config = 0;
  return Success;
}
FP4_ENTRY int cudaDeviceGetSharedMemConfig(int *config) {
  FP4_REQUIRE(config);
  *config = 1; // four-byte banks
  return Success;
}
FP4_ENTRY int cudaDeviceSetSharedMemConfig(int) { return Success; }
FP4_ENTRY int cudaSetValidDevices(const int *, int) { return Success; }
FP4_ENTRY int cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
FP4_ENTRY int cudaDeviceGetByPCIBusId(int *device, const char *) {
  FP4_REQUIRE(device);
  *device = 0;
  return Success;
}
FP4_ENTRY int cudaDeviceGetPCIBusId(char *text, int length, int device) {
  std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
  return theDevice(device);
}
FP4_ENTRY int cudaChooseDevice(int *device, const void *) { return cudaGetDevice(device); }
FP4_ENTRY int cudaCtxResetPersistingL2Cache() { return Success; }
FP4_ENTRY int cudaProfilerStart() { return Success; }
FP4_ENTRY int cudaProfilerStop() { return Success; }

FP4_ENTRY int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  FP4_REQUIRE(value);
  auto found = deviceAttribute(context().chip(), attribute);
  if (!found)
    return context().fail(__func__, InvalidValue,
                          fmt::format("device attribute {} is not known", attribute));
  *value = *found;
  return theDevice(device);
}

static int attribute(int number) { return deviceAttribute(context().chip(), number).value_or(0); }

static void fillCapacities(DeviceProp &p) {
  p.sharedMemPerBlock = kDefaultSharedBytes;
  p.sharedMemPerBlockOptin = static_cast<size_t>(attribute(97));
  p.sharedMemPerMultiprocessor = static_cast<size_t>(attribute(81));
  p.reservedSharedMemPerBlock = static_cast<size_t>(attribute(111));
  p.regsPerBlock = p.regsPerMultiprocessor = attribute(82);
  p.warpSize = 32;
  p.memPitch = 0x7FFFFFFF;
  p.maxThreadsPerBlock = attribute(1);
  p.maxThreadsPerMultiProcessor = attribute(39);
  p.maxBlocksPerMultiProcessor = attribute(106);
  for (int i = 0; i < 3; ++i) {
    p.maxThreadsDim[i] = attribute(2 + i);
    p.maxGridSize[i] = attribute(5 + i);
  }
  p.totalConstMem = kConstantBytes;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = attribute(16);
  p.memoryBusWidth = attribute(37);
  p.l2CacheSize = attribute(38);
}

static void fillFeatures(DeviceProp &p) {
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.asyncEngineCount = attribute(40);
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.computePreemptionSupported = p.cooperativeLaunch = p.hostRegisterSupported = 1;
  p.memoryPoolsSupported = p.managedMemory = p.concurrentManagedAccess = 1;
  p.canUseHostPointerForRegisteredMem = 1;
  p.clusterLaunch = attribute(120);
  FP4_ONLY_12(p.clockRate = attribute(13); p.memoryClockRate = attribute(36); p.deviceOverlap = 1;)
}

FP4_ENTRY int cudaGetDeviceProperties(DeviceProp *p, int device) {
  FP4_REQUIRE(p);
  const Chip &chip = context().chip();
  *p = {};
  std::memcpy(p->name, chip.name.data(), chip.name.size());
  p->totalGlobalMem = chip.memoryBytes;
  p->major = chip.major();
  p->minor = chip.minor();
  fillCapacities(*p);
  fillFeatures(*p);
  return theDevice(device);
}
#if FP4_CUDART_MAJOR < 13
FP4_ENTRY decltype(cudaGetDeviceProperties) cudaGetDeviceProperties_v2
    __attribute__((alias("cudaGetDeviceProperties")));
#endif

static constexpr int kVersion = FP4_CUDART_MAJOR * 1000 + (FP4_CUDART_MAJOR < 13 ? 90 : 0);

FP4_ENTRY int cudaDriverGetVersion(int *version) {
  FP4_REQUIRE(version);
  *version = 13000;
  return Success;
}

FP4_ENTRY int cudaRuntimeGetVersion(int *version) {
  FP4_REQUIRE(version);
  *version = kVersion;
  return Success;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaGetLastError() { return context().lastError(true); }
FP4_ENTRY int cudaPeekAtLastError() { return context().lastError(false); }
FP4_ENTRY const char *cudaGetErrorName(int code) { return errorText(code, ErrorText::Runtime); }
FP4_ENTRY const char *cudaGetErrorString(int code) {
  return errorText(code, ErrorText::Description);
}

//===----------------------------------------------------------------------===//
// The driver behind it
//===----------------------------------------------------------------------===//

/// libcuda.so.1 of the folder that this library lies in.
static void *driverLibrary() {
  static void *library = [] {
    Dl_info self{};
    std::string path = "libcuda.so.1";
    if (dladdr(reinterpret_cast<void *>(&cudaDeviceSynchronize), &self) && self.dli_fname) {
      std::string name = self.dli_fname;
      path = name.substr(0, name.rfind('/') + 1) + path;
    }
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

FP4_ENTRY int cudaGetDriverEntryPointByVersion(const char *symbol, void **pointer, unsigned version,
                                               unsigned long long flags, int *result) {
  using GetProcAddress = int (*)(const char *, void **, int, unsigned long long, int *);
  *pointer = nullptr;
  void *library = driverLibrary();
  auto get =
      library ? reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
  if (!get)
    return context().fail(__func__, SymbolNotFound,
                          "the stand-in for libcuda.so.1 is not next to that for libcudart");
  get(symbol, pointer, static_cast<int>(version), flags, result);
  return *pointer || result ? Success : context().quiet(SymbolNotFound);
}
FP4_PER_THREAD(cudaGetDriverEntryPointByVersion, _ptsz)

FP4_ENTRY int cudaGetDriverEntryPoint(const char *symbol, void **pointer, unsigned long long flags,
                                      int *result) {
  return cudaGetDriverEntryPointByVersion(symbol, pointer, kVersion, flags, result);
}
FP4_PER_THREAD(cudaGetDriverEntryPoint, _ptsz)
