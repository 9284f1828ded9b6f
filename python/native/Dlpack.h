//===- Dlpack.h - The structures of DLPack 1.x that the module exchanges --===//
//
// https://dmlc.github.io/dlpack/latest/c_api.html (version 1.3). Debian's libdlpack-dev is 0.6 and
// has no exchange API, so these few declarations stand here; test/scripts/dlpack.sh compares them
// with the header of torch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::dlpack {

constexpr uint32_t kMajorVersion = 1;
constexpr int32_t kCpu = 1, kCuda = 2;
constexpr uint8_t kUnsigned = 1; ///< code of a data type; signed integers have 0

struct Version {
  uint32_t major, minor;
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
  bool operator==(const DataType &) const = default;
};

struct Tensor { // DLTensor
  void *data;
  int32_t deviceType, deviceId;
  int32_t ndim;
  DataType dtype;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};

struct ManagedTensor { // DLManagedTensorVersioned
  Version version;
  void *context;
  void (*deleter)(ManagedTensor *);
  uint64_t flags;
  Tensor tensor;
};

/// DLPackExchangeAPI, the table behind type(x).__dlpack_c_exchange_api__. Functions return 0, or -1
/// with a Python exception set, but `allocate`, which calls setError and needs no lock of Python.
struct ExchangeApi {
  Version version;
  ExchangeApi *previous;
  int (*allocate)(Tensor *prototype, ManagedTensor **out, void *context,
                  void (*setError)(void *context, const char *kind, const char *message));
  int (*managedFromObject)(void *object, ManagedTensor **out);
  int (*managedToObject)(ManagedTensor *tensor, void **object);
  int (*tensorFromObject)(void *object, Tensor *out); ///< may be null
  int (*currentWorkStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

} // namespace fp4::dlpack
