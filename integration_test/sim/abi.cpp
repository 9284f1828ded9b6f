// Holds lib/SimCuda/Host/Abi.h and DeviceProp.h against the toolkit's headers. Compiling it is the
// test.
#include "lib/SimCuda/Host/Abi.h"
#include "lib/SimCuda/Host/DeviceProp.h"
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace ours = fp4::simcuda;

#define SAME_SIZE(mine, theirs) static_assert(sizeof(ours::mine) == sizeof(theirs))
#define SAME_MEMBER(mine, myMember, theirs, theirMember)                                           \
  static_assert(offsetof(ours::mine, myMember) == offsetof(theirs, theirMember))

SAME_SIZE(Dim3, dim3);
SAME_SIZE(LaunchAttribute, cudaLaunchAttribute);
SAME_SIZE(LaunchAttribute, CUlaunchAttribute);
SAME_MEMBER(LaunchAttribute, flag, cudaLaunchAttribute, val);
SAME_SIZE(RuntimeLaunchConfig, cudaLaunchConfig_t);
SAME_MEMBER(RuntimeLaunchConfig, dynamicSharedBytes, cudaLaunchConfig_t, dynamicSmemBytes);
SAME_MEMBER(RuntimeLaunchConfig, attributeCount, cudaLaunchConfig_t, numAttrs);
SAME_SIZE(DriverLaunchConfig, CUlaunchConfig);
SAME_MEMBER(DriverLaunchConfig, dynamicSharedBytes, CUlaunchConfig, sharedMemBytes);
SAME_MEMBER(DriverLaunchConfig, stream, CUlaunchConfig, hStream);
SAME_MEMBER(DriverLaunchConfig, attributeCount, CUlaunchConfig, numAttrs);
SAME_SIZE(FuncAttributes, cudaFuncAttributes);
SAME_MEMBER(FuncAttributes, numRegs, cudaFuncAttributes, numRegs);
SAME_MEMBER(FuncAttributes, nonPortableClusterSizeAllowed, cudaFuncAttributes,
            nonPortableClusterSizeAllowed);
SAME_SIZE(PointerAttributes, cudaPointerAttributes);
SAME_MEMBER(PointerAttributes, hostPointer, cudaPointerAttributes, hostPointer);
SAME_SIZE(PitchedPtr, cudaPitchedPtr);
SAME_SIZE(Extent, cudaExtent);
SAME_SIZE(Memcpy3DParms, cudaMemcpy3DParms);
SAME_MEMBER(Memcpy3DParms, destination, cudaMemcpy3DParms, dstPtr);
SAME_MEMBER(Memcpy3DParms, kind, cudaMemcpy3DParms, kind);

#define SAME_PROPERTY(member) SAME_MEMBER(DeviceProp, member, cudaDeviceProp, member)
SAME_SIZE(DeviceProp, cudaDeviceProp);
SAME_PROPERTY(totalGlobalMem);
SAME_PROPERTY(maxGridSize);
SAME_PROPERTY(totalConstMem);
SAME_PROPERTY(textureAlignment);
SAME_PROPERTY(multiProcessorCount);
SAME_PROPERTY(maxTexture2DLinear);
SAME_PROPERTY(maxSurface3D);
SAME_PROPERTY(surfaceAlignment);
SAME_PROPERTY(asyncEngineCount);
SAME_PROPERTY(l2CacheSize);
SAME_PROPERTY(sharedMemPerMultiprocessor);
SAME_PROPERTY(cooperativeLaunch);
SAME_PROPERTY(sharedMemPerBlockOptin);
SAME_PROPERTY(reservedSharedMemPerBlock);
SAME_PROPERTY(clusterLaunch);
SAME_PROPERTY(reserved);

#define FP4_ATTRIBUTE(number, runtime, driver, effect)                                             \
  static_assert(ours::Attribute##runtime == cudaLaunchAttribute##runtime);
#include "lib/SimCuda/Host/LaunchAttributes.def"
#undef FP4_ATTRIBUTE
static_assert(sizeof(ours::EdgeData) == sizeof(cudaGraphEdgeData));
static_assert(offsetof(ours::EdgeData, type) == offsetof(cudaGraphEdgeData, type));
static_assert(ours::programmaticEdge == cudaGraphDependencyTypeProgrammatic);
static_assert(ours::PortTrigger == cudaGraphKernelNodePortProgrammatic);
static_assert(ours::PortBegin == cudaGraphKernelNodePortLaunchCompletion);
static_assert(offsetof(ours::LaunchAttribute, recorded.triggerAtBlockStart) ==
              offsetof(cudaLaunchAttribute, val.programmaticEvent.triggerAtBlockStart));
static_assert(ours::AttrMaxDynamicSharedBytes == cudaFuncAttributeMaxDynamicSharedMemorySize);
static_assert(ours::AttrNonPortableClusterSize ==
              cudaFuncAttributeNonPortableClusterSizeAllowed);
static_assert(ours::LaunchFailure == cudaErrorLaunchFailure);
static_assert(ours::NotSupported == cudaErrorNotSupported);
static_assert(ours::NoKernelImageForDevice == cudaErrorNoKernelImageForDevice);
static_assert(ours::InvalidClusterSize == cudaErrorInvalidClusterSize);
static_assert(ours::InvalidDeviceFunction == cudaErrorInvalidDeviceFunction);
static_assert(static_cast<int>(ours::SymbolNotFound) == CUDA_ERROR_NOT_FOUND);
