//===- TvmFfi.h - The structures of apache-tvm-ffi that a function reads --===//
//
// https://github.com/apache/tvm-ffi/blob/main/include/tvm/ffi/c_api.h, whose ABI is stable.
// Functions come from the libtvm_ffi.so of the process, so that nothing links it.
// test/scripts/frameworks.sh compares the declarations with the header of the package.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4::tvm {

constexpr int32_t kNone = 0, kTensorPointer = 7, kTensor = 70; ///< types of a value
constexpr size_t kTensorOffset = 24; ///< bytes from an object to its DLTensor
constexpr int32_t kCpu = 1, kCuda = 2;

struct Any {
  int32_t type;
  uint32_t padding;
  void *value;
};

struct Text {
  const char *data;
  size_t size;
};

struct Tensor { // DLTensor
  void *data;
  int32_t deviceType, deviceId;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};

using SafeCall = int (*)(void *self, const Any *arguments, int32_t count, Any *result);

struct Api {
  int (*createFunction)(void *self, SafeCall call, void (*deleter)(void *), void **function);
  int (*setGlobal)(const Text *name, void *function, int override);
  int (*decRef)(void *object);
  void (*setRaised)(const char *kind, const char *message);
  void *(*getStream)(int32_t deviceType, int32_t deviceId);
};

} // namespace fp4::tvm
