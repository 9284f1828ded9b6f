//===- CudaApi.h - The calls that the test program makes ------------------===//
//
// Declared as a program compiled by nvcc would see them, without CUDA's headers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../../lib/SimCuda/Host/Abi.h"

using fp4::simcuda::Dim3;
using fp4::simcuda::RuntimeLaunchConfig;

extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                            void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(Dim3, Dim3, size_t, void *);
int __cudaPopCallConfiguration(Dim3 *, Dim3 *, size_t *, void *);
int cudaLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
int cudaLaunchCooperativeKernel(const void *, Dim3, Dim3, void **, size_t, void *);
int cudaLaunchKernelExC(const RuntimeLaunchConfig *, const void *, void **);
int cudaMalloc(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
int cudaMemcpy3D(const fp4::simcuda::Memcpy3DParms *);
int cudaMemGetInfo(size_t *, size_t *);
int cudaMemset(void *, int, size_t);
int cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
int cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
int cudaDeviceSynchronize();
int cudaGetLastError();
int cudaFuncSetAttribute(const void *, int, int);
int cudaFuncGetAttributes(void *, const void *);
int cudaOccupancyMaxActiveClusters(int *, const void *, const RuntimeLaunchConfig *);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
int cudaGetDeviceProperties(void *, int);
int cudaDeviceGetAttribute(int *, int, int);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *);
int cudaStreamCreate(void **);
int cudaStreamDestroy(void *);
int cudaEventCreate(void **);
int cudaEventRecord(void *, void *);
int cudaEventElapsedTime(float *, void *, void *);
int cudaEventDestroy(void *);
int cudaMallocAsync(void **, size_t, void *);
int cudaIpcGetMemHandle(void *, void *);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
char __cudaInitModule(void **);
int cudaHostAlloc(void **, size_t, unsigned);
int cudaFreeHost(void *);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaHostGetDevicePointer(void **, void *, unsigned);
int cudaPointerGetAttributes(fp4::simcuda::PointerAttributes *, const void *);
int cudaFreeAsync(void *, void *);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemsetAsync(void *, int, size_t, void *);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaStreamSynchronize(void *);
int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaStreamIsCapturing(void *, int *);
int cudaGraphCreate(void **, unsigned);
int cudaGraphDestroy(void *);
int cudaGraphInstantiate(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, void *);
int cudaGraphExecDestroy(void *);
int cudaGraphExecUpdate(void *, void *, void *);
int cudaGraphGetNodes(void *, void **, size_t *);
int cudaGraphAddKernelNode(void **, void *, void *const *, size_t,
                           const fp4::simcuda::KernelNodeParams *);
int cudaGraphAddMemsetNode(void **, void *, void *const *, size_t,
                           const fp4::simcuda::MemsetParams *);
int cudaGraphAddMemcpyNode1D(void **, void *, void *const *, size_t, void *, const void *, size_t,
                             int);
int cudaGraphAddDependencies(void *, void *const *, void *const *, const void *, size_t);
int cudaGraphAddHostNode(void **, void *, void *const *, size_t,
                         const fp4::simcuda::HostNodeParams *);
int cudaGraphKernelNodeGetParams(void *, fp4::simcuda::KernelNodeParams *);
int cudaGraphExecKernelNodeSetParams(void *, void *, const fp4::simcuda::KernelNodeParams *);
int cudaGraphNodeGetType(void *, int *);
int cudaGraphNodeSetEnabled(void *, void *, unsigned);
int cudaGraphNodeGetEnabled(void *, void *, unsigned *);
int cudaMemcpy_ptds(void *, const void *, size_t, int);
const char *cudaGetErrorName(int);
}
