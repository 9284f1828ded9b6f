//===- DriverModule.cpp - Modules, functions and launches of the driver ---===//
#include "EntryPoint.h"
#include "HostImage.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/SimCuda/ElfFile.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace fp4;
using namespace fp4::simcuda;

//===----------------------------------------------------------------------===//
// Modules and libraries
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuModuleLoadData(Module **module, const void *image) {
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoadDataEx(Module **module, const void *image, unsigned, void *, void *) {
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoadFatBinary(Module **module, const void *image) {
  return loadImage(__func__, image, *module);
}

FP4_ENTRY int cuModuleLoad(Module **module, const char *path) {
  auto bytes = readFile(path);
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

FP4_ENTRY int cuModuleUnload(Module *module) {
  context().removeModule(module);
  return Success;
}

FP4_ENTRY int cuModuleGetFunction(Function **function, Module *module, const char *name) {
  FP4_REQUIRE(module);
  return getFunction(__func__, *module, name, *function);
}

FP4_ENTRY int cuModuleGetGlobal_v2(void **address, size_t *bytes, Module *module,
                                   const char *name) {
  FP4_REQUIRE(module);
  return getGlobal(__func__, *module, name, address, bytes);
}

FP4_ENTRY int cuLibraryLoadData(Module **library, const void *image, void *, void *, unsigned,
                                void *, void *, unsigned) {
  return loadImage(__func__, image, *library);
}
FP4_ENTRY int cuLibraryUnload(Module *library) { return cuModuleUnload(library); }
FP4_ENTRY int cuLibraryGetKernel(Function **kernel, Module *library, const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
FP4_ENTRY int cuLibraryGetModule(Module **module, Module *library) {
  *module = library;
  return Success;
}
FP4_ENTRY int cuLibraryGetGlobal(void **address, size_t *bytes, Module *library, const char *name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
FP4_ENTRY int cuKernelGetFunction(Function **function, Function *kernel) {
  *function = kernel;
  return Success;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuFuncSetAttribute(Function *function, int attribute, int value) {
  FP4_REQUIRE(function);
  return setFunctionAttribute(__func__, *function, attribute, value);
}
FP4_ENTRY int cuKernelSetAttribute(int attribute, int value, Function *kernel, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}

FP4_ENTRY int cuFuncGetAttribute(int *value, int attribute, Function *function) {
  FP4_REQUIRE(function);
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
  FP4_REQUIRE(function);
  *name = function->name.c_str();
  return Success;
}
FP4_ENTRY int cuFuncGetModule(Module **module, Function *function) {
  FP4_REQUIRE(function);
  *module = function->module;
  return Success;
}
FP4_ENTRY int cuFuncSetCacheConfig(Function *, int) { return Success; }

FP4_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, Function *function,
                                                                   int threads, size_t shared,
                                                                   unsigned) {
  FP4_REQUIRE(function);
  Code code = Success;
  const sim::KernelInfo *info = context().kernelOf(__func__, *function, code);
  *blocks = info ? context().residentBlocks(*info, threads, shared) : 0;
  return code;
}

FP4_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function,
                                                          int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

FP4_ENTRY int cuOccupancyMaxActiveClusters(int *clusters, Function *function,
                                           const DriverLaunchConfig *config) {
  FP4_REQUIRE(function && config);
  return activeClusters(__func__, *function, requestOf(*config), *clusters);
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
  if (!function || !context().resolve(function))
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
  return launchDriver("cuLaunchKernelEx", function, requestOf(*config), arguments, extra);
}
FP4_PER_THREAD(cuLaunchKernelEx, _ptsz)

FP4_ENTRY int cuLaunchCooperativeKernel(Function *function, unsigned gx, unsigned gy, unsigned gz,
                                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                        StreamHandle stream, void **arguments) {
  LaunchRequest request{.grid = {gx, gy, gz}, .block = {bx, by, bz}};
  request.dynamicShared = shared;
  request.stream = stream;
  request.cooperative = true;
  return launchDriver("cuLaunchCooperativeKernel", function, request, arguments, nullptr);
}
FP4_PER_THREAD(cuLaunchCooperativeKernel, _ptsz)

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

namespace {

/// What maps of tiles and of columns of pixels have in common.
struct TensorDescription {
  int type, interleave, swizzle, fill;
  unsigned rank;
  void *address;
  const uint64_t *dims, *strides;
  const uint32_t *elementStrides;
};

/// Completes `map`, which has its box, and writes our own 128 bytes, which the simulator's copies
/// read.
int encodeMap(const char *name, void *out, const TensorDescription &tensor, hw::TensorMap map) {
  map.elementType = static_cast<hw::TensorMapType>(tensor.type);
  map.rank = tensor.rank;
  map.address = reinterpret_cast<uint64_t>(tensor.address);
  for (unsigned i = 0; i < tensor.rank; ++i) {
    map.dims[i] = tensor.dims[i];
    map.elementStrides[i] = tensor.elementStrides[i];
    if (i + 1 < tensor.rank)
      map.strides[i] = tensor.strides[i];
  }
  map.interleave = static_cast<hw::TensorMapInterleave>(tensor.interleave);
  map.oobFill = static_cast<hw::TensorMapOobFill>(tensor.fill);
  auto mode = hw::swizzleFromTensorMapCode(static_cast<unsigned>(tensor.swizzle));
  if (!mode)
    return context().fail(name, NotSupported,
                          fmt::format("swizzle mode {} is not simulated", tensor.swizzle));
  map.swizzle = *mode;
  if (context().tracing())
    context().trace(fmt::format("{}: {} at {}, dims {}, strides {}, box {}, swizzle {}", name,
                                hw::stringify(map.elementType), tensor.address,
                                fmt::join(tensor.dims, tensor.dims + tensor.rank, "x"),
                                fmt::join(tensor.strides, tensor.strides + tensor.rank - 1, ","),
                                fmt::join(map.box.begin(), map.box.begin() + tensor.rank, "x"),
                                tensor.swizzle));
  auto encoded = map.encodeSimulator();
  if (!encoded)
    return context().fail(name, InvalidValue, encoded.error());
  std::memcpy(out, encoded->data(), encoded->size());
  return Success;
}

} // namespace

FP4_ENTRY int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides,
                                     const uint32_t *box, const uint32_t *elementStrides,
                                     int interleave, int swizzle, int, int fill) {
  FP4_REQUIRE(out && dims && (strides || rank == 1) && box && elementStrides && rank >= 1 &&
              rank <= 5);
  hw::TensorMap map;
  std::copy_n(box, rank, map.box.begin());
  return encodeMap(__func__, out,
                   {type, interleave, swizzle, fill, rank, address, dims, strides, elementStrides},
                   map);
}

FP4_ENTRY int cuTensorMapEncodeIm2col(void *out, int type, unsigned rank, void *address,
                                      const uint64_t *dims, const uint64_t *strides,
                                      const int *lower, const int *upper, unsigned channels,
                                      unsigned pixels, const uint32_t *elementStrides,
                                      int interleave, int swizzle, int, int fill) {
  FP4_REQUIRE(out && dims && strides && lower && upper && elementStrides && rank >= 3 && rank <= 5);
  hw::TensorMap map;
  map.box = {channels, pixels, 1, 1, 1};
  map.pixels.emplace();
  std::copy_n(lower, rank - 2, map.pixels->lower.begin());
  std::copy_n(upper, rank - 2, map.pixels->upper.begin());
  return encodeMap(__func__, out,
                   {type, interleave, swizzle, fill, rank, address, dims, strides, elementStrides},
                   map);
}

FP4_ENTRY int cuTensorMapReplaceAddress(void *encoded, void *address) {
  FP4_REQUIRE(encoded);
  auto map = hw::TensorMap::decodeSimulator(std::span<const std::byte, 128>(
      static_cast<const std::byte *>(encoded), hw::TensorMap::encodedBytes));
  if (!map)
    return context().fail(__func__, InvalidValue, map.error());
  map->address = reinterpret_cast<uint64_t>(address);
  auto again = map->encodeSimulator();
  if (!again)
    return context().fail(__func__, InvalidValue, again.error());
  std::memcpy(encoded, again->data(), again->size());
  return Success;
}
