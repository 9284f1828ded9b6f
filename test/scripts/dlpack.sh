#!/usr/bin/env bash
# python/native/Dlpack.h against the header of DLPack that torch installs: every offset, size and
# number is equal, and a wrong declaration is noticed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
header=$("${FP4_PYTHON:-python3}" - <<'PY' || true
import importlib.util, pathlib
found = importlib.util.find_spec("torch")
path = found and pathlib.Path(found.origin).parent / "include" / "ATen" / "dlpack.h"
print(path if path and "DLPackExchangeAPI" in path.read_text() else "")
PY
)
if [ -z "$header" ]; then
  echo "FP4_PYTHON has no torch with the exchange API of DLPack"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/compare.cpp" <<'CPP'
#include "Dlpack.h"
#include HEADER
#include <cstddef>
namespace ours = fp4::dlpack;
#define SAME(A, a, B, b)                                                                           \
  static_assert(offsetof(ours::A, a) == offsetof(B, b) &&                                          \
                sizeof(ours::A::a) == sizeof(B::b), #A "::" #a)
#define SIZE(A, B) static_assert(sizeof(ours::A) == sizeof(B), #A)
static_assert(ours::kMajorVersion == DLPACK_MAJOR_VERSION);
static_assert(ours::kCpu == kDLCPU && ours::kCuda == kDLCUDA);
SIZE(Version, DLPackVersion);
SAME(Version, major, DLPackVersion, major);
SAME(Version, minor, DLPackVersion, minor);
SIZE(DataType, DLDataType);
SAME(DataType, code, DLDataType, code);
SAME(DataType, bits, DLDataType, bits);
SAME(DataType, lanes, DLDataType, lanes);
SIZE(Tensor, DLTensor);
SAME(Tensor, data, DLTensor, data);
SAME(Tensor, deviceType, DLTensor, device.device_type);
SAME(Tensor, deviceId, DLTensor, device.device_id);
SAME(Tensor, ndim, DLTensor, ndim);
SAME(Tensor, dtype, DLTensor, dtype);
SAME(Tensor, shape, DLTensor, shape);
SAME(Tensor, strides, DLTensor, strides);
SAME(Tensor, byteOffset, DLTensor, byte_offset);
SIZE(ManagedTensor, DLManagedTensorVersioned);
SAME(ManagedTensor, version, DLManagedTensorVersioned, version);
SAME(ManagedTensor, context, DLManagedTensorVersioned, manager_ctx);
SAME(ManagedTensor, deleter, DLManagedTensorVersioned, deleter);
SAME(ManagedTensor, flags, DLManagedTensorVersioned, flags);
SAME(ManagedTensor, tensor, DLManagedTensorVersioned, dl_tensor);
SIZE(ExchangeApi, DLPackExchangeAPI);
SAME(ExchangeApi, version, DLPackExchangeAPI, header.version);
SAME(ExchangeApi, previous, DLPackExchangeAPI, header.prev_api);
SAME(ExchangeApi, allocate, DLPackExchangeAPI, managed_tensor_allocator);
SAME(ExchangeApi, managedFromObject, DLPackExchangeAPI, managed_tensor_from_py_object_no_sync);
SAME(ExchangeApi, managedToObject, DLPackExchangeAPI, managed_tensor_to_py_object_no_sync);
SAME(ExchangeApi, tensorFromObject, DLPackExchangeAPI, dltensor_from_py_object_no_sync);
SAME(ExchangeApi, currentWorkStream, DLPackExchangeAPI, current_work_stream);
CPP
compiles() { # FOLDER of Dlpack.h
  "${CXX:-clang++-22}" -std=c++20 -fsyntax-only -Wno-invalid-offsetof -I"$1" \
    -DHEADER="\"$header\"" "$scratch/compare.cpp"
}
compiles "$root/python/native"
mkdir "$scratch/wrong"
sed 's/int32_t deviceType, deviceId;/int32_t deviceId, deviceType;/' "$root/python/native/Dlpack.h" \
  >"$scratch/wrong/Dlpack.h"
if compiles "$scratch/wrong" 2>/dev/null; then
  echo "a wrong declaration was not noticed"
  exit 1
fi
