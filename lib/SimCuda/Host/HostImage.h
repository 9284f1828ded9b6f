//===- HostImage.h - Code of both the runtime and the driver API ----------===//
#pragma once

#include "LaunchAttributes.h"
#include <type_traits>

namespace fp4::simcuda {

/// The container that `data` points to; its length is its own.
FP4_HOST_API std::span<const std::byte> fatbinAt(const void *data);

/// A fat binary or PTX text, as cuModuleLoadData takes it.
FP4_HOST_API Code loadImage(const char *function, const void *image, Module *&module);
FP4_HOST_API Code getFunction(const char *function, Module &module, const char *name,
                              Function *&kernel);
/// All kernels of a module, those that cannot run too.
FP4_HOST_API Code kernelsOf(const char *function, Module &module, std::vector<Function *> &kernels);
FP4_HOST_API Code getGlobal(const char *function, Module &module, const char *name, void **address,
                            size_t *bytes);

FP4_HOST_API Code setFunctionAttribute(const char *function, Function &kernel, int attribute,
                                       int value);
FP4_HOST_API Code functionAttributes(const char *function, Function &kernel,
                                     FuncAttributes &attributes);

/// Shape and attributes of a launch; arguments are the caller's.
template <typename Config>
Code requestOf(const char *function, const Config &config, LaunchRequest &request) {
  request.grid = config.grid;
  request.block = config.block;
  request.dynamicShared = config.dynamicSharedBytes;
  request.stream = config.stream;
  Code code = Success;
  for (unsigned i = 0; i < config.attributeCount && code == Success; ++i)
    code = applyAttribute(function, config.attributes[i], AttributeOf::Launch,
                          std::is_same_v<Config, DriverLaunchConfig>, request.asked);
  return code;
}

/// Launches in request.stream.
FP4_HOST_API Code launchIn(const char *function, Function &kernel, const LaunchRequest &request);

FP4_HOST_API Code activeClusters(const char *function, Function &kernel,
                                 const LaunchRequest &request, int &clusters);

/// Dynamic shared memory that lets `blocks` CTAs share an SM.
FP4_HOST_API Code availableShared(const char *function, Function &kernel, int blocks,
                                  size_t &bytes);
/// CTAs of `threads` threads that one SM can hold; 0 after an error.
FP4_HOST_API Code residentCtasPerSm(const char *function, Function &kernel, int threads,
                                    size_t shared, int &blocks);
/// Returns the offset of parameter `index` among all, and its size; `bytes` may be null.
FP4_HOST_API Code parameterOf(const char *function, Function &kernel, size_t index, size_t &offset,
                              size_t *bytes);
FP4_HOST_API int largestCluster(const Function &kernel);

/// Names and texts of errors; "unrecognized error code" where there is none.
enum class ErrorText : uint8_t { Runtime, Driver, Description };
FP4_HOST_API const char *errorText(int code, ErrorText what);

} // namespace fp4::simcuda
