//===- Abi.h - The binary interface of CUDA's host libraries --------------===//
//
// Layouts and numbers that programs were compiled with. CUDA's headers are not needed to build the
// stand-ins. If they are present, integration_test/sim/abi.cpp compares every layout with them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4::simcuda {

/// cudaError and CUresult: one numbering since CUDA 10, as far as these go.
enum Code : int {
  Success = 0,
  InvalidValue = 1,
  MemoryAllocation = 2,
  InitializationError = 3,
  InvalidConfiguration = 9, ///< runtime only
  InvalidSymbol = 13,       ///< runtime only
  InvalidDevicePointer = 17,
  InvalidMemcpyDirection = 21,
  InvalidDeviceFunction = 98,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidKernelImage = 200,
  InvalidContext = 201,
  NoKernelImageForDevice = 209,
  InvalidPtx = 218,
  UnsupportedExecAffinity = 224,
  FileNotFound = 301,
  OperatingSystem = 304,
  InvalidResourceHandle = 400,
  IllegalState = 401,
  SymbolNotFound = 500,
  NotReady = 600,
  AssertFailed = 710,
  HostMemoryAlreadyRegistered = 712,
  HostMemoryNotRegistered = 713,
  LaunchFailure = 719,
  CooperativeLaunchTooLarge = 720,
  NotSupported = 801,
  StreamCaptureUnsupported = 900,
  StreamCaptureInvalidated = 901,
  StreamCaptureMerge = 902,
  StreamCaptureUnmatched = 903,
  StreamCaptureUnjoined = 904,
  StreamCaptureImplicit = 906,
  CapturedEvent = 907,
  GraphExecUpdateFailure = 910,
  InvalidClusterSize = 912,
  Unknown = 999,
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

using StreamHandle = struct Stream *;
using EventHandle = struct Event *;

enum LaunchAttributeId : int {
#define FP4_ATTRIBUTE(number, runtime, driver, effect) Attribute##runtime = number,
#include "LaunchAttributes.def"
#undef FP4_ATTRIBUTE
};

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int flag;
    Dim3 dim;
    struct {
      EventHandle event;
      int flags;
      int triggerAtBlockStart; ///< field of ProgrammaticEvent alone
    } recorded;
  };
};

struct EdgeData { // cudaGraphEdgeData
  uint8_t fromPort = 0, toPort = 0;
  uint8_t type = 0; ///< cudaGraphDependencyType
  uint8_t reserved[5] = {};
  bool operator==(const EdgeData &) const = default;
};
/// The event, in all CTAs of a kernel node, after which a dependent node begins.
enum KernelNodePort : uint8_t { PortEnd, PortTrigger, PortBegin };
constexpr uint8_t programmaticEdge = 1;

struct RuntimeLaunchConfig { // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t dynamicSharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

struct DriverLaunchConfig { // CUlaunchConfig
  Dim3 grid, block;
  unsigned dynamicSharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

struct FuncAttributes { // cudaFuncAttributes
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
  int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
  int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
  int reserved[16];
};

struct PointerAttributes { // cudaPointerAttributes
  int type;                ///< 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void *devicePointer, *hostPointer;
  long reserved[8];
};

struct KernelNodeParams { // cudaKernelNodeParams
  void *function;
  Dim3 grid, block;
  unsigned dynamicSharedBytes;
  void **arguments;
  void **extra;
};
struct MemsetParams { // cudaMemsetParams
  void *to;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height;
};
struct HostNodeParams { // cudaHostNodeParams
  void (*function)(void *);
  void *argument;
};
struct GraphExecUpdateResult { // cudaGraphExecUpdateResultInfo
  int result;
  void *node, *fromNode;
};

struct PitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct Extent {
  size_t width, height, depth;
};
struct Position {
  size_t x, y, z;
};
struct Memcpy3DParms {
  void *sourceArray;
  Position sourcePosition;
  PitchedPtr source;
  void *destinationArray;
  Position destinationPosition;
  PitchedPtr destination;
  Extent extent;
  int kind;
};

enum CopyKind : int { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default };

enum FuncAttributeId : int { // cudaFuncAttribute and CUfunction_attribute
  AttrMaxThreadsPerBlock = 0,
  AttrSharedSizeBytes = 1,
  AttrConstSizeBytes = 2,
  AttrLocalSizeBytes = 3,
  AttrNumRegs = 4,
  AttrPtxVersion = 5,
  AttrBinaryVersion = 6,
  AttrCacheMode = 7,
  AttrMaxDynamicSharedBytes = 8,
  AttrPreferredCarveout = 9,
  AttrClusterDimMustBeSet = 10,
  AttrRequiredClusterWidth = 11,
  AttrRequiredClusterHeight = 12,
  AttrRequiredClusterDepth = 13,
  AttrNonPortableClusterSize = 14,
  AttrClusterSchedulingPolicy = 15,
  AttrSharedMemoryMode = 16, // CUDA 13.4
};

} // namespace fp4::simcuda
