//===- DriverMemory.cpp - Memory, streams and events of the driver API ----===//
#include "EntryPoint.h"
#include "Graphs.h"
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

FP4_ENTRY int cuMemAllocAsync(DevicePointer *pointer, size_t bytes, StreamHandle stream) {
  FP4_REQUIRE(pointer && bytes > 0);
  uint64_t address = 0;
  const Code code = allocateIn("cuMemAllocAsync", stream, address, bytes);
  *pointer = address;
  return code;
}
FP4_PER_THREAD(cuMemAllocAsync, _ptsz)

FP4_ENTRY int cuMemAllocPitch_v2(DevicePointer *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned) {
  FP4_REQUIRE(pitch);
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc_v2(pointer, *pitch * height);
}

FP4_ENTRY int cuMemFree_v2(DevicePointer pointer) {
  return context().release("cuMemFree", pointer);
}
FP4_ENTRY int cuMemFreeAsync(DevicePointer pointer, StreamHandle stream) {
  return freeIn("cuMemFreeAsync", stream, pointer);
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
// No functions of CUDA: python/fp4/sim/driver.py calls them for tensors that torch keeps.
FP4_ENTRY int cuFp4Lend(void *pointer, size_t bytes, int written) {
  return context().lend(__func__, pointer, bytes, written != 0);
}
FP4_ENTRY int cuFp4Return(void *pointer) {
  return context().releaseHost(__func__, pointer, HostMemory::Lent);
}
FP4_ENTRY int cuFp4Written(const void *pointer, size_t bytes) {
  return context().markWritten(__func__, pointer, bytes);
}

FP4_ENTRY int cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *host, unsigned) {
  FP4_REQUIRE(pointer);
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
  FP4_REQUIRE(available && total);
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
  const auto host = context().hostMemory(pointerTo(pointer));
  const bool managed = host == HostMemory::Managed || host == HostMemory::Variable;
  switch (attribute) {
  case MemoryType:
    *static_cast<unsigned *>(value) = host && !managed ? 1 : 2; // host, device
    return Success;
  case DeviceAddress:
    *static_cast<DevicePointer *>(value) = pointer;
    return Success;
  case IsManaged:
    *static_cast<unsigned *>(value) = managed;
    return Success;
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

static Code copyIn(const char *function, StreamHandle stream, void *to, const void *from,
                   size_t bytes, int kind) {
  return enqueue(function, stream, CopyWork{.to = to, .from = from, .bytes = bytes, .kind = kind});
}

#define FP4_COPY(name, To, toHost, From, fromHost, kind)                                           \
  FP4_ENTRY int name##_v2(To to, From from, size_t bytes) {                                        \
    return copyIn(#name, nullptr, toHost(to), fromHost(from), bytes, kind);                        \
  }                                                                                                \
  FP4_PER_THREAD(name##_v2, _ptds)                                                                 \
  FP4_ENTRY int name##Async_v2(To to, From from, size_t bytes, StreamHandle stream) {              \
    return copyIn(#name "Async", stream, toHost(to), fromHost(from), bytes, kind);                 \
  }                                                                                                \
  FP4_PER_THREAD(name##Async_v2, _ptsz)
FP4_COPY(cuMemcpyHtoD, DevicePointer, pointerTo, const void *, , HostToDevice)
FP4_COPY(cuMemcpyDtoH, void *, , DevicePointer, pointerTo, DeviceToHost)
FP4_COPY(cuMemcpyDtoD, DevicePointer, pointerTo, DevicePointer, pointerTo, DeviceToDevice)
FP4_ENTRY int cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return copyIn("cuMemcpy", nullptr, pointerTo(to), pointerTo(from), bytes, Default);
}
FP4_PER_THREAD(cuMemcpy, _ptds)
FP4_ENTRY int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                            StreamHandle stream) {
  return copyIn("cuMemcpyAsync", stream, pointerTo(to), pointerTo(from), bytes, Default);
}
FP4_PER_THREAD(cuMemcpyAsync, _ptsz)

#define FP4_FILL(name, Element, width)                                                             \
  FP4_ENTRY int name##_v2(DevicePointer to, Element value, size_t count) {                         \
    return enqueue(#name, nullptr, FillWork{pointerTo(to), value, width, count});                  \
  }                                                                                                \
  FP4_ENTRY int name##Async(DevicePointer to, Element value, size_t count, StreamHandle stream) {  \
    return enqueue(#name "Async", stream, FillWork{pointerTo(to), value, width, count});           \
  }                                                                                                \
  FP4_PER_THREAD(name##Async, _ptsz)
FP4_FILL(cuMemsetD8, unsigned char, 1)
FP4_FILL(cuMemsetD16, unsigned short, 2)
FP4_FILL(cuMemsetD32, unsigned, 4)

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

FP4_ENTRY int cuStreamCreate(StreamHandle *stream, unsigned flags) {
  return createStream(stream, flags, 0);
}
FP4_ENTRY int cuStreamCreateWithPriority(StreamHandle *stream, unsigned flags, int priority) {
  return createStream(stream, flags, priority);
}
FP4_ENTRY int cuStreamGetId(StreamHandle stream, unsigned long long *id) {
  return identify("cuStreamGetId", stream, id);
}
FP4_PER_THREAD(cuStreamGetId, _ptsz)
FP4_ENTRY int cuStreamGetFlags(StreamHandle stream, unsigned *flags) {
  FP4_REQUIRE(flags);
  FP4_REQUIRE_LIVE(stream);
  const Stream *found = streamOf(stream);
  *flags = found ? found->flags : 0;
  return Success;
}
FP4_PER_THREAD(cuStreamGetFlags, _ptsz)
FP4_ENTRY int cuStreamGetPriority(StreamHandle stream, int *priority) {
  FP4_REQUIRE(priority);
  FP4_REQUIRE_LIVE(stream);
  const Stream *found = streamOf(stream);
  *priority = found ? found->priority : 0;
  return Success;
}
FP4_PER_THREAD(cuStreamGetPriority, _ptsz)
FP4_ENTRY int cuStreamGetDevice(StreamHandle, int *device) {
  FP4_REQUIRE(device);
  *device = 0;
  return Success;
}
FP4_PER_THREAD(cuStreamGetDevice, _ptsz)
FP4_ENTRY int cuStreamDestroy_v2(StreamHandle stream) { return destroyStream(__func__, stream); }
FP4_ENTRY int cuStreamSynchronize(StreamHandle stream) {
  return synchronize("cuStreamSynchronize", stream);
}
FP4_PER_THREAD(cuStreamSynchronize, _ptsz)
FP4_ENTRY int cuStreamQuery(StreamHandle stream) { return synchronize("cuStreamQuery", stream); }
FP4_PER_THREAD(cuStreamQuery, _ptsz)
FP4_ENTRY int cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return waitIn("cuStreamWaitEvent", stream, event);
}
FP4_PER_THREAD(cuStreamWaitEvent, _ptsz)

FP4_ENTRY int cuEventCreate(EventHandle *event, unsigned flags) {
  return createEvent(event, flags);
}
FP4_ENTRY int cuEventDestroy_v2(EventHandle event) { return destroyEvent(__func__, event); }
FP4_ENTRY int cuEventRecord(EventHandle event, StreamHandle stream) {
  return recordIn("cuEventRecord", stream, event);
}
FP4_PER_THREAD(cuEventRecord, _ptsz)
FP4_ENTRY int cuEventQuery(EventHandle event) { return eventStatus(__func__, event); }
FP4_ENTRY int cuEventSynchronize(EventHandle event) { return eventStatus(__func__, event); }
FP4_ENTRY int cuEventElapsedTime_v2(float *milliseconds, EventHandle from, EventHandle to) {
  return elapsed("cuEventElapsedTime", milliseconds, from, to);
}
FP4_ENTRY decltype(cuEventElapsedTime_v2) cuEventElapsedTime
    __attribute__((alias("cuEventElapsedTime_v2")));
