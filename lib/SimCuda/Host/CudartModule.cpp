//===- CudartModule.cpp - Registration, functions and launches ------------===//
//
// nvcc's generated code registers every fat binary, kernel and variable of a program before main,
// then launches by the address of a host function.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include "HostImage.h"
#include <cstring>
#include <vector>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

struct FatbinWrapper {
  uint32_t magic, version;
  const void *data;
  void *file;
};

struct PushedConfiguration {
  Dim3 grid, block;
  size_t shared;
  StreamHandle stream;
};
thread_local std::vector<PushedConfiguration> pushed;

Code launchRuntime(const char *function, const void *kernel, const LaunchRequest &request) {
  Function *resolved = context().resolve(kernel);
  if (!resolved)
    return context().fail(function, InvalidDeviceFunction,
                          "the kernel is not one of the program's registered kernels",
                          "it must be a __global__ function compiled by nvcc");
  return launchIn(function, *resolved, request);
}

} // namespace

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

FP4_ENTRY void **__cudaRegisterFatBinary(void *wrapper) {
  const auto *found = static_cast<const FatbinWrapper *>(wrapper);
  return reinterpret_cast<void **>(context().addModule(fatbinAt(found->data), wrapper));
}

FP4_ENTRY void __cudaRegisterFatBinaryEnd(void **) {}

FP4_ENTRY void __cudaUnregisterFatBinary(void **handle) {
  context().removeModule(reinterpret_cast<Module *>(handle));
}

/// Generated code calls it before the host uses a __managed__ variable.
FP4_ENTRY char __cudaInitModule(void **handle) {
  return context().initializeManaged(*reinterpret_cast<Module *>(handle)) == Success;
}

FP4_ENTRY void __cudaRegisterFunction(void **handle, const char *hostFunction, char *,
                                      const char *deviceName, int, void *, void *, void *, void *,
                                      int *) {
  context().registerFunction(hostFunction, reinterpret_cast<Module *>(handle), deviceName);
}

FP4_ENTRY void __cudaRegisterVar(void **handle, char *hostVariable, char *, const char *deviceName,
                                 int, size_t, int, int) {
  context().registerVariable(hostVariable, reinterpret_cast<Module *>(handle), deviceName);
}

FP4_ENTRY void __cudaRegisterManagedVar(void **handle, void **shadow, char *,
                                        const char *deviceName, int, size_t, int, int) {
  context().registerManaged(shadow, reinterpret_cast<Module *>(handle), deviceName);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

FP4_ENTRY unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared,
                                               StreamHandle stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}

FP4_ENTRY int __cudaPopCallConfiguration(Dim3 *grid, Dim3 *block, size_t *shared,
                                         StreamHandle *stream) {
  if (pushed.empty())
    return context().fail(__func__, InvalidConfiguration, "no launch configuration was pushed");
  *grid = pushed.back().grid;
  *block = pushed.back().block;
  *shared = pushed.back().shared;
  *stream = pushed.back().stream;
  pushed.pop_back();
  return Success;
}

FP4_ENTRY int cudaLaunchKernel(const void *kernel, Dim3 grid, Dim3 block, void **arguments,
                               size_t shared, StreamHandle stream) {
  LaunchRequest request{.grid = grid, .block = block};
  request.dynamicShared = shared;
  request.stream = stream;
  request.arguments = arguments;
  return launchRuntime("cudaLaunchKernel", kernel, request);
}
FP4_PER_THREAD(cudaLaunchKernel, _ptsz)

FP4_ENTRY int cudaLaunchCooperativeKernel(const void *kernel, Dim3 grid, Dim3 block,
                                          void **arguments, size_t shared, StreamHandle stream) {
  LaunchRequest request{.grid = grid, .block = block};
  request.dynamicShared = shared;
  request.stream = stream;
  request.arguments = arguments;
  request.asked.cooperative = true;
  return launchRuntime(__func__, kernel, request);
}
FP4_PER_THREAD(cudaLaunchCooperativeKernel, _ptsz)

FP4_ENTRY int cudaLaunchKernelExC(const RuntimeLaunchConfig *config, const void *kernel,
                                  void **arguments) {
  FP4_REQUIRE(config);
  LaunchRequest request;
  if (Code code = requestOf(__func__, *config, request); code != Success)
    return code;
  request.arguments = arguments;
  return launchRuntime(__func__, kernel, request);
}
FP4_PER_THREAD(cudaLaunchKernelExC, _ptsz)

/// Handles of kernels: since CUDA 13 generated code asks for one and launches it.
FP4_ENTRY int cudaGetKernel(void **handle, const void *hostFunction) {
  *handle = context().resolve(hostFunction);
  return *handle ? Success : context().quiet(InvalidDeviceFunction);
}
FP4_ENTRY decltype(cudaGetKernel) __cudaGetKernel __attribute__((alias("cudaGetKernel")));
FP4_ENTRY decltype(cudaGetKernel) cudaGetFuncBySymbol __attribute__((alias("cudaGetKernel")));
FP4_ENTRY decltype(cudaLaunchKernel) __cudaLaunchKernel __attribute__((alias("cudaLaunchKernel")));
FP4_PER_THREAD(__cudaLaunchKernel, _ptsz)

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaFuncSetAttribute(const void *kernel, int attribute, int value) {
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  return setFunctionAttribute(__func__, *found, attribute, value);
}

FP4_ENTRY int cudaFuncGetAttributes(FuncAttributes *attributes, const void *kernel) {
  FP4_REQUIRE(attributes);
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  return functionAttributes(__func__, *found, *attributes);
}

FP4_ENTRY int cudaKernelSetAttributeForDevice(Function *kernel, int attribute, int value, int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}

FP4_ENTRY int cudaFuncGetParamInfo(const void *kernel, size_t index, size_t *offset,
                                   size_t *bytes) {
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  return parameterOf(__func__, *found, index, *offset, bytes);
}

FP4_ENTRY int cudaFuncSetCacheConfig(const void *, int) { return Success; }
FP4_ENTRY int cudaFuncSetSharedMemConfig(const void *, int) { return Success; }

FP4_ENTRY int cudaFuncGetName(const char **name, const void *kernel) {
  FP4_REQUIRE(name);
  Function *found = context().resolve(kernel);
  if (!found)
    return context().quiet(InvalidDeviceFunction);
  *name = found->name.c_str();
  return Success;
}

FP4_ENTRY int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                     const void *kernel,
                                                                     int threads, size_t shared,
                                                                     unsigned) {
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  return residentCtasPerSm(__func__, *found, threads, shared, *blocks);
}

FP4_ENTRY int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel,
                                                            int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared, 0);
}

FP4_ENTRY int cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel,
                                             const RuntimeLaunchConfig *config) {
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  LaunchRequest request;
  const Code code = requestOf(__func__, *config, request);
  return code == Success ? activeClusters(__func__, *found, request, *clusters) : code;
}

FP4_ENTRY int cudaOccupancyMaxPotentialClusterSize(int *size, const void *kernel,
                                                   const RuntimeLaunchConfig *) {
  FP4_REQUIRE(size);
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  *size = largestCluster(*found);
  return Success;
}

FP4_ENTRY int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *kernel,
                                                        int blocks, int) {
  FP4_REQUIRE(bytes && blocks > 0);
  Function *found = context().resolve(kernel);
  if (!found)
    return context().fail(__func__, InvalidDeviceFunction, "the function is not a kernel");
  return availableShared(__func__, *found, blocks, *bytes);
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaLibraryLoadData(Module **library, const void *image, void *, void *, unsigned,
                                  void *, void *, unsigned) {
  return loadImage(__func__, image, *library);
}

FP4_ENTRY int cudaLibraryUnload(Module *library) {
  context().removeModule(library);
  return Success;
}

FP4_ENTRY int cudaLibraryGetKernel(Function **kernel, Module *library, const char *name) {
  return getFunction(__func__, *library, name, *kernel);
}

FP4_ENTRY int cudaLibraryGetGlobal(void **address, size_t *bytes, Module *library,
                                   const char *name) {
  return getGlobal(__func__, *library, name, address, bytes);
}
