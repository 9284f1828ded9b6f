//===- DriverMemory.cpp - Memory, streams and events of the driver API ----===//
#include "EntryPoint.h"
#include "Streams.h"

using namespace fp4::simcuda;

using DevicePointer = unsigned long long;

static void *pointerTo(DevicePointer address) { return reinterpret_cast<void *>(address); }

FP4_ENTRY int cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  FP4_REQUIRE(pointer && bytes > 0);
  uint64_t address = 0;
  Code code = context().allocate("cuMemAlloc", address, bytes);
  *pointer = address;
  return code;
}

FP4_ENTRY int cuMemAllocAsync(DevicePointer *pointer, size_t bytes, StreamHandle) {
  return cuMemAlloc_v2(pointer, bytes);
}
FP4_PER_THREAD(cuMemAllocAsync, _ptsz)

FP4_ENTRY int cuMemAllocPitch_v2(DevicePointer *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned) {
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc_v2(pointer, *pitch * height);
}

FP4_ENTRY int cuMemFree_v2(DevicePointer pointer) {
  return context().release("cuMemFree", pointer);
}
FP4_ENTRY int cuMemFreeAsync(DevicePointer pointer, StreamHandle) {
  return context().release("cuMemFreeAsync", pointer);
}
FP4_PER_THREAD(cuMemFreeAsync, _ptsz)

FP4_ENTRY int cuMemAllocManaged(DevicePointer *pointer, size_t bytes, unsigned) {
  FP4_REQUIRE(pointer && bytes > 0);
  void *memory = nullptr;
  Code code = context().allocateHost("cuMemAllocManaged", memory, bytes, HostMemory::Managed);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  return code;
}
FP4_ENTRY int cuMemAllocHost_v2(void **pointer, size_t bytes) {
  FP4_REQUIRE(pointer);
  return context().allocateHost("cuMemAllocHost", *pointer, bytes, HostMemory::Pinned);
}
FP4_ENTRY int cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  FP4_REQUIRE(pointer);
  return context().allocateHost("cuMemHostAlloc", *pointer, bytes, HostMemory::Pinned);
}
FP4_ENTRY int cuMemFreeHost(void *pointer) {
  return context().releaseHost("cuMemFreeHost", pointer, HostMemory::Pinned);
}
FP4_ENTRY int cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned) {
  return context().registerHost("cuMemHostRegister", pointer, bytes);
}
FP4_ENTRY int cuMemHostUnregister(void *pointer) {
  return context().releaseHost("cuMemHostUnregister", pointer, HostMemory::Registered);
}
FP4_ENTRY int cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *host, unsigned) {
  const bool mapped = context().hostMemory(host).has_value();
  *pointer = mapped ? reinterpret_cast<DevicePointer>(host) : 0;
  return mapped ? Success : context().quiet(InvalidValue);
}
FP4_ENTRY int cuMemPrefetchAsync() { return context().sticky(); }
FP4_PER_THREAD(cuMemPrefetchAsync, _ptsz)
FP4_ENTRY int cuMemPrefetchAsync_v2() { return context().sticky(); }
FP4_ENTRY int cuMemAdvise() { return context().sticky(); }
FP4_ENTRY int cuMemAdvise_v2() { return context().sticky(); }

FP4_ENTRY int cuMemGetInfo_v2(size_t *available, size_t *total) {
  *total = context().chip().memoryBytes;
  *available = *total - std::min<size_t>(*total, context().bytesInUse());
  return Success;
}

FP4_ENTRY int cuMemGetAddressRange_v2(DevicePointer *base, size_t *bytes, DevicePointer pointer) {
  const fp4::sim::Allocation *found = context().find(pointer);
  if (!found)
    return context().quiet(InvalidValue);
  if (base)
    *base = found->address;
  if (bytes)
    *bytes = found->size;
  return Success;
}

/// CU_POINTER_ATTRIBUTE_...; device memory has no host pointer, nor has anything else an answer.
FP4_ENTRY int cuPointerGetAttribute(void *value, int attribute, DevicePointer pointer) {
  enum {
    MemoryType = 2,
    DeviceAddress = 3,
    IsManaged = 8,
    DeviceOrdinal = 9,
    RangeStart = 11,
    RangeSize = 12
  };
  const fp4::sim::Allocation *found = context().find(pointer);
  if (!found || !value)
    return context().quiet(InvalidValue);
  switch (attribute) {
  case MemoryType:
    *static_cast<unsigned *>(value) = 2; // device
    return Success;
  case DeviceAddress:
    *static_cast<DevicePointer *>(value) = pointer;
    return Success;
  case IsManaged:
  case DeviceOrdinal:
    *static_cast<unsigned *>(value) = 0;
    return Success;
  case RangeStart:
    *static_cast<DevicePointer *>(value) = found->address;
    return Success;
  case RangeSize:
    *static_cast<size_t *>(value) = found->size;
    return Success;
  default:
    return context().quiet(InvalidValue);
  }
}

//===----------------------------------------------------------------------===//
// Copies and fills
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return context().copy("cuMemcpy", pointerTo(to), pointerTo(from), bytes);
}
FP4_PER_THREAD(cuMemcpy, _ptds)
FP4_ENTRY int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, StreamHandle) {
  return cuMemcpy(to, from, bytes);
}
FP4_PER_THREAD(cuMemcpyAsync, _ptsz)
FP4_ENTRY int cuMemcpyHtoD_v2(DevicePointer to, const void *from, size_t bytes) {
  return context().copy("cuMemcpyHtoD", pointerTo(to), from, bytes, HostToDevice);
}
FP4_PER_THREAD(cuMemcpyHtoD_v2, _ptds)
FP4_ENTRY int cuMemcpyDtoH_v2(void *to, DevicePointer from, size_t bytes) {
  return context().copy("cuMemcpyDtoH", to, pointerTo(from), bytes, DeviceToHost);
}
FP4_PER_THREAD(cuMemcpyDtoH_v2, _ptds)
FP4_ENTRY int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return context().copy("cuMemcpyDtoD", pointerTo(to), pointerTo(from), bytes, DeviceToDevice);
}
FP4_PER_THREAD(cuMemcpyDtoD_v2, _ptds)
FP4_ENTRY int cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes, StreamHandle) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
FP4_PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz)
FP4_ENTRY int cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes, StreamHandle) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}
FP4_PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz)
FP4_ENTRY int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                                   StreamHandle) {
  return cuMemcpyDtoD_v2(to, from, bytes);
}
FP4_PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz)

FP4_ENTRY int cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t count) {
  return context().fill("cuMemsetD8", pointerTo(to), value, 1, count);
}
FP4_ENTRY int cuMemsetD16_v2(DevicePointer to, unsigned short value, size_t count) {
  return context().fill("cuMemsetD16", pointerTo(to), value, 2, count);
}
FP4_ENTRY int cuMemsetD32_v2(DevicePointer to, unsigned value, size_t count) {
  return context().fill("cuMemsetD32", pointerTo(to), value, 4, count);
}
FP4_ENTRY int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, StreamHandle) {
  return cuMemsetD8_v2(to, value, count);
}
FP4_PER_THREAD(cuMemsetD8Async, _ptsz)
FP4_ENTRY int cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count, StreamHandle) {
  return cuMemsetD16_v2(to, value, count);
}
FP4_PER_THREAD(cuMemsetD16Async, _ptsz)
FP4_ENTRY int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, StreamHandle) {
  return cuMemsetD32_v2(to, value, count);
}
FP4_PER_THREAD(cuMemsetD32Async, _ptsz)

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuStreamCreate(StreamHandle *stream, unsigned flags) {
  return createStream(stream, flags, 0);
}
FP4_ENTRY int cuStreamCreateWithPriority(StreamHandle *stream, unsigned flags, int priority) {
  return createStream(stream, flags, priority);
}
FP4_ENTRY int cuStreamDestroy_v2(StreamHandle stream) { return destroyStream(stream); }
FP4_ENTRY int cuStreamSynchronize(StreamHandle) { return context().sticky(); }
FP4_PER_THREAD(cuStreamSynchronize, _ptsz)
FP4_ENTRY int cuStreamQuery(StreamHandle) { return context().sticky(); }
FP4_PER_THREAD(cuStreamQuery, _ptsz)
FP4_ENTRY int cuStreamWaitEvent(StreamHandle, EventHandle, unsigned) { return context().sticky(); }
FP4_PER_THREAD(cuStreamWaitEvent, _ptsz)
FP4_ENTRY int cuStreamIsCapturing(StreamHandle, int *status) {
  *status = 0;
  return Success;
}
FP4_PER_THREAD(cuStreamIsCapturing, _ptsz)

FP4_ENTRY int cuEventCreate(EventHandle *event, unsigned flags) {
  return createEvent(event, flags);
}
FP4_ENTRY int cuEventDestroy_v2(EventHandle event) { return destroyEvent(event); }
FP4_ENTRY int cuEventRecord(EventHandle event, StreamHandle) { return recordEvent(event); }
FP4_PER_THREAD(cuEventRecord, _ptsz)
FP4_ENTRY int cuEventQuery(EventHandle) { return context().sticky(); }
FP4_ENTRY int cuEventSynchronize(EventHandle) { return context().sticky(); }
FP4_ENTRY int cuEventElapsedTime_v2(float *milliseconds, EventHandle from, EventHandle to) {
  return elapsed("cuEventElapsedTime", milliseconds, from, to);
}
FP4_ENTRY decltype(cuEventElapsedTime_v2) cuEventElapsedTime
    __attribute__((alias("cuEventElapsedTime_v2")));
