//===- DeviceProp.h - cudaDeviceProp of CUDA 12 and 13 --------------------===//
//
// The structure lost eleven members between the two; the rest kept its order. FP4_CUDART_MAJOR
// says which one this translation unit is for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

#if FP4_CUDART_MAJOR < 13
#define FP4_ONLY_12(...) __VA_ARGS__
#define FP4_ONLY_13(...)
#else
#define FP4_ONLY_12(...)
#define FP4_ONLY_13(...) __VA_ARGS__
#endif

namespace fp4::simcuda {

struct DeviceProp {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  FP4_ONLY_12(int clockRate;)
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  FP4_ONLY_12(int deviceOverlap;)
  int multiProcessorCount;
  FP4_ONLY_12(int kernelExecTimeoutEnabled;)
  int integrated, canMapHostMemory;
  FP4_ONLY_12(int computeMode;)
  int maxTexture1D, maxTexture1DMipmap;
  FP4_ONLY_12(int maxTexture1DLinear;)
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
  int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
  int maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
  int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
  int asyncEngineCount, unifiedAddressing;
  FP4_ONLY_12(int memoryClockRate;)
  int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  FP4_ONLY_12(int singleToDoublePrecisionPerfRatio;)
  int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
  int canUseHostPointerForRegisteredMem, cooperativeLaunch;
  FP4_ONLY_12(int cooperativeMultiDeviceLaunch;)
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
  int unifiedFunctionPointers;
  FP4_ONLY_12(int reserved2[2]; int reserved1[1]; int reserved[60];)
  FP4_ONLY_13(int deviceNumaConfig; int deviceNumaId; int mpsEnabled; int hostNumaId;
              unsigned gpuPciDeviceID; unsigned gpuPciSubsystemID;
              int hostNumaMultinodeIpcSupported; int reserved[56];)
};

#if FP4_CUDART_MAJOR < 13
static_assert(sizeof(DeviceProp) == 1032);
#else
static_assert(sizeof(DeviceProp) == 1008);
#endif

} // namespace fp4::simcuda
