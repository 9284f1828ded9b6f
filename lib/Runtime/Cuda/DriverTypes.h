//===- DriverTypes.h - The part of the CUDA driver ABI that we call -------===//
//
// The binary interface of libcuda.so.1 as facts: names, values and structure layouts of the calls
// CudaDevice makes, so that the runtime builds and starts on machines without a CUDA toolkit. The
// layouts are those of the 64-bit driver and are asserted below.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4::rt::cuda {

using Result = int;
using DeviceOrdinal = int;
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;
using Event = struct EventOpaque *;
using Graph = struct GraphOpaque *;
using GraphExec = struct GraphExecOpaque *;

// CUresult values that get a hint of their own.
enum : Result {
  Success = 0,
  ErrorInvalidValue = 1,
  ErrorOutOfMemory = 2,
  ErrorNotInitialized = 3,
  ErrorStubLibrary = 34,
  ErrorNoDevice = 100,
  ErrorInvalidDevice = 101,
  ErrorInvalidImage = 200,
  ErrorNoBinaryForGpu = 209,
  ErrorInvalidPtx = 218,
  ErrorUnsupportedPtxVersion = 222,
  ErrorNotFound = 500,
  ErrorIllegalAddress = 700,
  ErrorLaunchOutOfResources = 701,
  ErrorLaunchTimeout = 702,
  ErrorIllegalInstruction = 715,
  ErrorMisalignedAddress = 716,
  ErrorCooperativeLaunchTooLarge = 720,
  ErrorLaunchFailed = 719,
  ErrorSystemDriverMismatch = 803,
};

enum DeviceAttribute : int {
  SmCount = 16,
  L2CacheBytes = 38,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  StaticSharedBytes = 1,
  LocalBytes = 3,
  Registers = 4,
  MaxDynamicSharedBytes = 8,
  RequiredClusterWidth = 11,
  RequiredClusterHeight = 12,
  RequiredClusterDepth = 13,
  NonPortableClusterAllowed = 14,
};

enum JitOption : int {
  InfoLogBuffer = 3,
  InfoLogBufferBytes = 4,
  ErrorLogBuffer = 5,
  ErrorLogBufferBytes = 6,
};

enum CaptureMode : int { CaptureThreadLocal = 1, CaptureRelaxed = 2 };

enum CaptureStatus : int { CaptureActive = 1 };

enum MemoryType : unsigned { DeviceMemory = 2 };

struct Memcpy2D {
  size_t srcX = 0, srcY = 0;
  MemoryType srcType = DeviceMemory;
  const void *srcHost = nullptr;
  uint64_t srcDevice = 0;
  void *srcArray = nullptr;
  size_t srcPitch = 0;
  size_t dstX = 0, dstY = 0;
  MemoryType dstType = DeviceMemory;
  void *dstHost = nullptr;
  uint64_t dstDevice = 0;
  void *dstArray = nullptr;
  size_t dstPitch = 0;
  size_t width = 0, height = 0;
};
static_assert(sizeof(Memcpy2D) == 128 && offsetof(Memcpy2D, dstPitch) == 104);

enum LaunchAttributeId : int {
  Cooperative = 2,
  ClusterDimension = 4,
  ProgrammaticStreamSerialization = 6,
  PreferredClusterDimension = 11
};

struct LaunchAttribute {
  LaunchAttributeId id = ClusterDimension;
  char pad[4] = {};
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int allowed; ///< value of Cooperative and ProgrammaticStreamSerialization
  } value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(LaunchConfig) == 56);

} // namespace fp4::rt::cuda

// FP4_CUDA_CALLS(X): X(name, symbol, parameter types...). The symbol carries the version suffix
// that cuda.h would have added by macro.
#define FP4_CUDA_CALLS(X)                                                                          \
  X(Init, "cuInit", unsigned)                                                                      \
  X(DriverGetVersion, "cuDriverGetVersion", int *)                                                 \
  X(GetErrorName, "cuGetErrorName", Result, const char **)                                         \
  X(GetErrorString, "cuGetErrorString", Result, const char **)                                     \
  X(DeviceGetCount, "cuDeviceGetCount", int *)                                                     \
  X(DeviceGet, "cuDeviceGet", DeviceOrdinal *, int)                                                \
  X(DeviceGetName, "cuDeviceGetName", char *, int, DeviceOrdinal)                                  \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", int *, DeviceAttribute, DeviceOrdinal)             \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Context *, DeviceOrdinal)                  \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", DeviceOrdinal)                        \
  X(CtxGetCurrent, "cuCtxGetCurrent", Context *)                                                   \
  X(CtxSetCurrent, "cuCtxSetCurrent", Context)                                                     \
  X(CtxSynchronize, "cuCtxSynchronize")                                                            \
  X(MemAlloc, "cuMemAlloc_v2", uint64_t *, size_t)                                                 \
  X(MemFree, "cuMemFree_v2", uint64_t)                                                             \
  X(MemAllocAsync, "cuMemAllocAsync", uint64_t *, size_t, Stream)                                  \
  X(MemFreeAsync, "cuMemFreeAsync", uint64_t, Stream)                                              \
  X(MemHostAlloc, "cuMemHostAlloc", void **, size_t, unsigned)                                     \
  X(MemFreeHost, "cuMemFreeHost", void *)                                                          \
  X(MemcpyHtoD, "cuMemcpyHtoD_v2", uint64_t, const void *, size_t)                                 \
  X(MemcpyDtoH, "cuMemcpyDtoH_v2", void *, uint64_t, size_t)                                       \
  X(Memcpy2DUnaligned, "cuMemcpy2DUnaligned_v2", const Memcpy2D *)                                 \
  X(ModuleLoadDataEx, "cuModuleLoadDataEx", Module *, const void *, unsigned, JitOption *,         \
    void **)                                                                                       \
  X(ModuleUnload, "cuModuleUnload", Module)                                                        \
  X(ModuleGetFunction, "cuModuleGetFunction", Function *, Module, const char *)                    \
  X(FuncGetAttribute, "cuFuncGetAttribute", int *, FunctionAttribute, Function)                    \
  X(FuncSetAttribute, "cuFuncSetAttribute", Function, FunctionAttribute, int)                      \
  X(FuncGetParamInfo, "cuFuncGetParamInfo", Function, size_t, size_t *, size_t *)                  \
  X(LaunchKernelEx, "cuLaunchKernelEx", const LaunchConfig *, Function, void **, void **)          \
  X(TensorMapEncodeTiled, "cuTensorMapEncodeTiled", void *, int, uint32_t, void *,                 \
    const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int)    \
  X(TensorMapEncodeIm2col, "cuTensorMapEncodeIm2col", void *, int, uint32_t, void *,               \
    const uint64_t *, const uint64_t *, const int *, const int *, uint32_t, uint32_t,              \
    const uint32_t *, int, int, int, int)                                                          \
  X(EventCreate, "cuEventCreate", Event *, unsigned)                                               \
  X(EventRecord, "cuEventRecord", Event, Stream)                                                   \
  X(EventSynchronize, "cuEventSynchronize", Event)                                                 \
  X(EventElapsedTime, "cuEventElapsedTime", float *, Event, Event)                                 \
  X(EventDestroy, "cuEventDestroy_v2", Event)                                                      \
  X(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", char *, int, DeviceOrdinal)                          \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", uint64_t, uint64_t, size_t, Stream)                   \
  X(Memcpy2DAsync, "cuMemcpy2DAsync_v2", const Memcpy2D *, Stream)                                 \
  X(MemsetD8Async, "cuMemsetD8Async", uint64_t, unsigned char, size_t, Stream)                     \
  X(StreamCreate, "cuStreamCreate", Stream *, unsigned)                                            \
  X(StreamSynchronize, "cuStreamSynchronize", Stream)                                              \
  X(StreamDestroy, "cuStreamDestroy_v2", Stream)                                                   \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", Stream, CaptureMode)                            \
  X(StreamGetId, "cuStreamGetId", Stream, unsigned long long *)                                    \
  X(StreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", Stream, CaptureStatus *,                    \
    unsigned long long *, Graph *, void **, size_t *)                                              \
  X(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", CaptureMode *)           \
  X(StreamEndCapture, "cuStreamEndCapture", Stream, Graph *)                                       \
  X(GraphGetNodes, "cuGraphGetNodes", Graph, void **, size_t *)                                    \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags", GraphExec *, Graph, unsigned long long)       \
  X(GraphLaunch, "cuGraphLaunch", GraphExec, Stream)                                               \
  X(GraphDestroy, "cuGraphDestroy", Graph)                                                         \
  X(GraphExecDestroy, "cuGraphExecDestroy", GraphExec)
