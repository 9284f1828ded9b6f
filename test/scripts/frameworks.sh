#!/usr/bin/env bash
# XlaFfi.h and TvmFfi.h of lib/CAPI/Runtime against the headers of jaxlib and apache-tvm-ffi: every
# offset and number is equal, and a wrong declaration is noticed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder_of() { # MODULE: the include folder of a package
  "${FP4_PYTHON:-python3}" - "$1" <<'PY' || true
import importlib.util, pathlib, sys
found = importlib.util.find_spec(sys.argv[1])
print(pathlib.Path(found.origin).parent / "include" if found else "")
PY
}
xla=$(folder_of jaxlib) tvm=$(folder_of tvm_ffi)
if [ ! -f "$xla/xla/ffi/api/c_api.h" ] || [ ! -f "$tvm/tvm/ffi/c_api.h" ]; then
  echo "FP4_PYTHON has no jaxlib or no apache-tvm-ffi with its headers"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/xla.cpp" <<'CPP'
#include "XlaFfi.h"
#include "xla/ffi/api/c_api.h"
namespace ours = fp4::xla;
#define SAME(A, a, B, b)                                                                           \
  static_assert(offsetof(ours::A, a) == offsetof(XLA_FFI_##B, b) &&                                \
                sizeof(ours::A::a) == sizeof(XLA_FFI_##B::b), #A "::" #a)
#define TYPE(a, b) static_assert(int(ours::a) == XLA_FFI_DataType_##b)
static_assert(ours::kMajorVersion == XLA_FFI_API_MAJOR &&
              ours::kMinorVersion <= XLA_FFI_API_MINOR);
static_assert(ours::kMetadata == XLA_FFI_Extension_Metadata &&
              ours::kExecute == XLA_FFI_ExecutionStage_EXECUTE &&
              ours::kBuffer == XLA_FFI_ArgType_BUFFER && ours::kBuffer == XLA_FFI_RetType_BUFFER &&
              ours::kString == XLA_FFI_AttrType_STRING);
static_assert(ours::kInvalidArgument == XLA_FFI_Error_Code_INVALID_ARGUMENT &&
              ours::kNotFound == XLA_FFI_Error_Code_NOT_FOUND &&
              ours::kFailedPrecondition == XLA_FFI_Error_Code_FAILED_PRECONDITION &&
              ours::kInternal == XLA_FFI_Error_Code_INTERNAL &&
              ours::kUnavailable == XLA_FFI_Error_Code_UNAVAILABLE);
TYPE(kS8, S8); TYPE(kS32, S32); TYPE(kS64, S64); TYPE(kU8, U8); TYPE(kU16, U16);
TYPE(kF16, F16); TYPE(kF32, F32); TYPE(kBF16, BF16); TYPE(kF8E5M2, F8E5M2);
TYPE(kF8E4M3FN, F8E4M3FN); TYPE(kF8E8M0FNU, F8E8M0FNU);
SAME(Extension, size, Extension_Base, struct_size);
SAME(Extension, type, Extension_Base, type);
SAME(Extension, next, Extension_Base, next);
SAME(Version, header.extensions, Api_Version, extension_start);
SAME(Version, major, Api_Version, major_version);
SAME(Version, minor, Api_Version, minor_version);
SAME(Metadata, version, Metadata, api_version);
SAME(Metadata, traits, Metadata, traits);
SAME(MetadataExtension, metadata, Metadata_Extension, metadata);
SAME(Buffer, type, Buffer, dtype);
SAME(Buffer, data, Buffer, data);
SAME(Buffer, rank, Buffer, rank);
SAME(Buffer, dims, Buffer, dims);
SAME(Span, begin, ByteSpan, ptr);
SAME(Span, size, ByteSpan, len);
SAME(Operands, size, Args, size);
SAME(Operands, types, Args, types);
SAME(Operands, values, Args, args);
SAME(Operands, size, Rets, size);
SAME(Operands, types, Rets, types);
SAME(Operands, values, Rets, rets);
SAME(Attributes, size, Attrs, size);
SAME(Attributes, types, Attrs, types);
SAME(Attributes, names, Attrs, names);
SAME(Attributes, values, Attrs, attrs);
SAME(ErrorArguments, message, Error_Create_Args, message);
SAME(ErrorArguments, code, Error_Create_Args, errc);
SAME(DestroyArguments, error, Error_Destroy_Args, error);
SAME(StreamArguments, context, Stream_Get_Args, ctx);
SAME(StreamArguments, stream, Stream_Get_Args, stream);
SAME(OrdinalArguments, context, DeviceOrdinal_Get_Args, ctx);
SAME(OrdinalArguments, ordinal, DeviceOrdinal_Get_Args, device_ordinal);
SAME(AllocateArguments, context, DeviceMemory_Allocate_Args, ctx);
SAME(AllocateArguments, bytes, DeviceMemory_Allocate_Args, size);
SAME(AllocateArguments, alignment, DeviceMemory_Allocate_Args, alignment);
SAME(AllocateArguments, data, DeviceMemory_Allocate_Args, data);
SAME(FreeArguments, context, DeviceMemory_Free_Args, ctx);
SAME(FreeArguments, bytes, DeviceMemory_Free_Args, size);
SAME(FreeArguments, data, DeviceMemory_Free_Args, data);
SAME(Api, version, Api, api_version);
SAME(Api, createError, Api, XLA_FFI_Error_Create);
SAME(Api, destroyError, Api, XLA_FFI_Error_Destroy);
SAME(Api, getStream, Api, XLA_FFI_Stream_Get);
SAME(Api, allocate, Api, XLA_FFI_DeviceMemory_Allocate);
SAME(Api, free, Api, XLA_FFI_DeviceMemory_Free);
SAME(Api, getOrdinal, Api, XLA_FFI_DeviceOrdinal_Get);
SAME(Frame, header.extensions, CallFrame, extension_start);
SAME(Frame, api, CallFrame, api);
SAME(Frame, context, CallFrame, ctx);
SAME(Frame, stage, CallFrame, stage);
SAME(Frame, arguments, CallFrame, args);
SAME(Frame, results, CallFrame, rets);
SAME(Frame, attributes, CallFrame, attrs);
CPP
cat >"$scratch/tvm.cpp" <<'CPP'
#include "TvmFfi.h"
#include "tvm/ffi/extra/c_env_api.h"
#include <type_traits>
namespace ours = fp4::tvm;
#define SAME(A, a, B, b)                                                                           \
  static_assert(offsetof(ours::A, a) == offsetof(B, b) &&                                          \
                sizeof(ours::A::a) == sizeof(B::b), #A "::" #a)
static_assert(ours::kNone == kTVMFFINone && ours::kTensorPointer == kTVMFFIDLTensorPtr &&
              ours::kTensor == kTVMFFITensor && ours::kTensorOffset == sizeof(TVMFFIObject));
static_assert(ours::kCpu == kDLCPU && ours::kCuda == kDLCUDA);
static_assert(sizeof(ours::Any) == sizeof(TVMFFIAny));
SAME(Any, type, TVMFFIAny, type_index);
SAME(Any, padding, TVMFFIAny, zero_padding);
SAME(Any, value, TVMFFIAny, v_ptr);
SAME(Text, data, TVMFFIByteArray, data);
SAME(Text, size, TVMFFIByteArray, size);
SAME(Tensor, data, DLTensor, data);
SAME(Tensor, deviceType, DLTensor, device.device_type);
SAME(Tensor, deviceId, DLTensor, device.device_id);
SAME(Tensor, ndim, DLTensor, ndim);
SAME(Tensor, code, DLTensor, dtype.code);
SAME(Tensor, bits, DLTensor, dtype.bits);
SAME(Tensor, lanes, DLTensor, dtype.lanes);
SAME(Tensor, shape, DLTensor, shape);
SAME(Tensor, strides, DLTensor, strides);
SAME(Tensor, byteOffset, DLTensor, byte_offset);
// Functions have the parameters of theirs, where these are pointers to any struct.
template <typename> struct Count;
template <typename R, typename... P> struct Count<R (*)(P...)> {
  static constexpr size_t value = sizeof...(P);
};
#define FUNCTION(a, b) static_assert(Count<decltype(ours::Api::a)>::value ==                       \
                                     Count<decltype(&b)>::value, #a)
FUNCTION(createFunction, TVMFFIFunctionCreate);
FUNCTION(setGlobal, TVMFFIFunctionSetGlobal);
FUNCTION(decRef, TVMFFIObjectDecRef);
FUNCTION(setRaised, TVMFFIErrorSetRaisedFromCStr);
FUNCTION(getStream, TVMFFIEnvGetStream);
static_assert(Count<ours::SafeCall>::value == Count<TVMFFISafeCallType>::value);
CPP
compiles() { # SOURCE FOLDER of our headers
  "${CXX:-clang++-22}" -std=c++20 -fsyntax-only -Wno-invalid-offsetof -I"$2" -I"$xla" -I"$tvm" \
    "$scratch/$1.cpp"
}
compiles xla "$root/lib/CAPI/Runtime"
compiles tvm "$root/lib/CAPI/Runtime"
mkdir "$scratch/wrong"
sed 's/void \*others3\[4\]/void *others3[3]/' "$root/lib/CAPI/Runtime/XlaFfi.h" >"$scratch/wrong/XlaFfi.h"
sed 's/kTensor = 70/kTensor = 71/' "$root/lib/CAPI/Runtime/TvmFfi.h" >"$scratch/wrong/TvmFfi.h"
for source in xla tvm; do
  if compiles "$source" "$scratch/wrong" 2>/dev/null; then
    echo "a wrong declaration of $source was not noticed"
    exit 1
  fi
done
