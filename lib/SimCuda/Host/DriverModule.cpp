//===- DriverModule.cpp - Modules, functions and launches of the driver ---===//
#include "EntryPoint.h"
#include "HostImage.h"
#include "fp4/Support/InputFile.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

//===----------------------------------------------------------------------===//
// Modules and libraries
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuModuleLoadData(Module **module, const void *image) {
  FP4_REQUIRE(module);
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoadDataEx(Module **module, const void *image, unsigned, void *, void *) {
  FP4_REQUIRE(module);
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoadFatBinary(Module **module, const void *image) {
  FP4_REQUIRE(module);
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoad(Module **module, const char *path) {
  FP4_REQUIRE(module && path);
  auto bytes = readBytes(path);
  if (!bytes)
    return context().fail(__func__, FileNotFound, bytes.error());
  bytes->push_back(std::byte(0)); // PTX text ends with one
  if (fatbinBytes(*bytes)) {      // the module keeps pointing to it
    static std::vector<std::vector<std::byte>> kept;
    kept.push_back(std::move(*bytes));
    return loadImage(__func__, kept.back().data(), *module);
  }
  return loadImage(__func__, bytes->data(), *module);
}

FP4_ENTRY int cuModuleGetLoadingMode(int *mode) {
  FP4_REQUIRE(mode);
  *mode = 2; // CU_MODULE_LAZY_LOADING: text is decoded when it is first needed
  return Success;
}

FP4_ENTRY int cuModuleUnload(Module *module) {
  FP4_REQUIRE_LIVE(module);
  context().removeModule(module);
  return Success;
}

FP4_ENTRY int cuModuleGetFunction(Function **function, Module *module, const char *name) {
  FP4_REQUIRE(function && module && name);
  FP4_REQUIRE_LIVE(module);
  return getFunction(__func__, *module, name, *function);
}

FP4_ENTRY int cuModuleGetGlobal_v2(void **address, size_t *bytes, Module *module,
                                   const char *name) {
  FP4_REQUIRE(module && name);
  FP4_REQUIRE_LIVE(module);
  return getGlobal(__func__, *module, name, address, bytes);
}

FP4_ENTRY int cuLibraryLoadData(Module **library, const void *image, void *, void *, unsigned,
                                void *, void *, unsigned) {
  FP4_REQUIRE(library);
  return loadImage(__func__, image, *library);
}
FP4_ENTRY int cuLibraryLoadFromFile(Module **library, const char *path, void *, void *, unsigned,
                                    void *, void *, unsigned) {
  return cuModuleLoad(library, path);
}
FP4_ENTRY int cuLibraryUnload(Module *library) { return cuModuleUnload(library); }
FP4_ENTRY int cuLibraryGetKernel(Function **kernel, Module *library, const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
FP4_ENTRY int cuLibraryGetModule(Module **module, Module *library) {
  FP4_REQUIRE(module);
  FP4_REQUIRE_LIVE(library);
  *module = library;
  return Success;
}
FP4_ENTRY int cuLibraryGetGlobal(void **address, size_t *bytes, Module *library, const char *name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
FP4_ENTRY int cuKernelGetFunction(Function **function, Function *kernel) {
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(kernel);
  *function = kernel;
  return Success;
}

FP4_ENTRY int cuModuleGetFunctionCount(unsigned *count, Module *module) {
  FP4_REQUIRE(count && module);
  FP4_REQUIRE_LIVE(module);
  std::vector<Function *> kernels;
  const Code code = kernelsOf(__func__, *module, kernels);
  *count = static_cast<unsigned>(kernels.size());
  return code;
}
FP4_ENTRY int cuModuleEnumerateFunctions(Function **functions, unsigned count, Module *module) {
  FP4_REQUIRE(functions && module);
  FP4_REQUIRE_LIVE(module);
  std::vector<Function *> kernels;
  const Code code = kernelsOf(__func__, *module, kernels);
  std::copy_n(kernels.begin(), std::min<size_t>(count, kernels.size()), functions);
  return code;
}
FP4_ENTRY int cuLibraryGetKernelCount(unsigned *count, Module *library) {
  return cuModuleGetFunctionCount(count, library);
}
FP4_ENTRY int cuLibraryEnumerateKernels(Function **kernels, unsigned count, Module *library) {
  return cuModuleEnumerateFunctions(kernels, count, library);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuFuncSetAttribute(Function *function, int attribute, int value) {
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(function);
  return setFunctionAttribute(__func__, *function, attribute, value);
}
FP4_ENTRY int cuKernelSetAttribute(int attribute, int value, Function *kernel, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}

FP4_ENTRY int cuFuncGetAttribute(int *value, int attribute, Function *function) {
  FP4_REQUIRE(value);
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(function);
  FuncAttributes all;
  if (Code code = functionAttributes(__func__, *function, all); code != Success)
    return code;
  const int values[] = {all.maxThreadsPerBlock,
                        static_cast<int>(all.sharedSizeBytes),
                        static_cast<int>(all.constSizeBytes),
                        static_cast<int>(all.localSizeBytes),
                        all.numRegs,
                        all.ptxVersion,
                        all.binaryVersion,
                        all.cacheModeCA,
                        all.maxDynamicSharedSizeBytes,
                        all.preferredShmemCarveout,
                        all.clusterDimMustBeSet,
                        all.requiredClusterWidth,
                        all.requiredClusterHeight,
                        all.requiredClusterDepth,
                        all.nonPortableClusterSizeAllowed,
                        all.clusterSchedulingPolicyPreference};
  FP4_REQUIRE(attribute >= 0 && static_cast<size_t>(attribute) < std::size(values));
  *value = values[attribute];
  return Success;
}
FP4_ENTRY int cuKernelGetAttribute(int *value, int attribute, Function *kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

FP4_ENTRY int cuFuncGetName(const char **name, Function *function) {
  FP4_REQUIRE(name);
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(function);
  *name = function->name.c_str();
  return Success;
}
FP4_ENTRY int cuKernelGetName(const char **name, Function *kernel) {
  return cuFuncGetName(name, kernel);
}
FP4_ENTRY int cuFuncGetModule(Module **module, Function *function) {
  FP4_REQUIRE(module);
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(function);
  *module = function->module;
  return Success;
}
FP4_ENTRY int cuKernelGetLibrary(Module **library, Function *kernel) {
  return cuFuncGetModule(library, kernel);
}
FP4_ENTRY int cuFuncSetCacheConfig(Function *, int) { return Success; }
FP4_ENTRY int cuKernelSetCacheConfig(Function *, int, int) { return Success; }

FP4_ENTRY int cuFuncLoad(Function *) { return Success; }
FP4_ENTRY int cuFuncIsLoaded(int *state, Function *) {
  FP4_REQUIRE(state);
  *state = 1; // CU_FUNCTION_LOADING_STATE_LOADED
  return Success;
}

/// Returns the offset of parameter `index` among all, and its size.
FP4_ENTRY int cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *bytes) {
  FP4_REQUIRE(function && offset);
  FP4_REQUIRE_LIVE(function);
  return parameterOf(__func__, *function, index, *offset, bytes);
}
FP4_ENTRY int cuKernelGetParamInfo(Function *kernel, size_t index, size_t *offset, size_t *bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// `extra` carries the parameter block: pairs of a key and a value, ended by a null key.
static std::span<const std::byte> parameterBlock(void **extra) {
  const void *data = nullptr;
  size_t bytes = 0;
  for (void **at = extra; at && *at; at += 2) {
    auto key = reinterpret_cast<uintptr_t>(at[0]);
    if (key == 1)
      data = at[1];
    else if (key == 2)
      bytes = *static_cast<const size_t *>(at[1]);
  }
  return {static_cast<const std::byte *>(data), data ? bytes : 0};
}

static Code launchDriver(const char *name, Function *function, LaunchRequest request,
                         void **arguments, void **extra) {
  // A null function is the caller's mistake; cudaKernel_t and CUfunction are the same here.
  if (!isLive(function))
    return context().fail(name, InvalidResourceHandle,
                          "the function is not one of a loaded module");
  request.arguments = arguments;
  request.parameters = parameterBlock(extra);
  return launchIn(name, *function, request);
}

FP4_ENTRY int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, StreamHandle stream,
                             void **arguments, void **extra) {
  LaunchRequest request{.grid = {gx, gy, gz}, .block = {bx, by, bz}};
  request.dynamicShared = shared;
  request.stream = stream;
  return launchDriver("cuLaunchKernel", function, request, arguments, extra);
}
FP4_PER_THREAD(cuLaunchKernel, _ptsz)

FP4_ENTRY int cuLaunchKernelEx(const DriverLaunchConfig *config, Function *function,
                               void **arguments, void **extra) {
  FP4_REQUIRE(config);
  LaunchRequest request;
  const Code code = requestOf("cuLaunchKernelEx", *config, request);
  return code == Success ? launchDriver("cuLaunchKernelEx", function, request, arguments, extra)
                         : code;
}
FP4_PER_THREAD(cuLaunchKernelEx, _ptsz)

FP4_ENTRY int cuLaunchCooperativeKernel(Function *function, unsigned gx, unsigned gy, unsigned gz,
                                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                        StreamHandle stream, void **arguments) {
  LaunchRequest request{.grid = {gx, gy, gz}, .block = {bx, by, bz}};
  request.dynamicShared = shared;
  request.stream = stream;
  request.asked.cooperative = true;
  return launchDriver("cuLaunchCooperativeKernel", function, request, arguments, nullptr);
}
FP4_PER_THREAD(cuLaunchCooperativeKernel, _ptsz)
