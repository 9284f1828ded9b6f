//===- CudartMemory.cpp - Memory of the runtime API -----------------------===//
//
// Pinned, registered and managed memory is the host's; kernels reach it at the same address.
//
//===----------------------------------------------------------------------===//
#include "CudartNodes.h"
#include "EntryPoint.h"
#include "HostImage.h"
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

static uint64_t addressOf(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

static Code allocateNow(const char *function, void **pointer, size_t bytes) {
  FP4_REQUIRE(pointer);
  uint64_t address = 0;
  Code code = context().allocate(function, address, bytes);
  *pointer = reinterpret_cast<void *>(address);
  return code;
}

FP4_ENTRY int cudaMalloc(void **pointer, size_t bytes) {
  return allocateNow(__func__, pointer, bytes);
}

static Code allocateInStream(const char *function, StreamHandle stream, void **pointer,
                             size_t bytes) {
  FP4_REQUIRE(pointer);
  uint64_t address = 0;
  const Code code = allocateIn(function, stream, address, bytes);
  *pointer = reinterpret_cast<void *>(address);
  return code;
}

FP4_ENTRY int cudaMallocAsync(void **pointer, size_t bytes, StreamHandle stream) {
  return allocateInStream("cudaMallocAsync", stream, pointer, bytes);
}
FP4_PER_THREAD(cudaMallocAsync, _ptsz)

FP4_ENTRY int cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *, StreamHandle stream) {
  return allocateInStream("cudaMallocFromPoolAsync", stream, pointer, bytes);
}
FP4_PER_THREAD(cudaMallocFromPoolAsync, _ptsz)

FP4_ENTRY int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  FP4_REQUIRE(pitch);
  *pitch = (width + 511) / 512 * 512;
  return allocateNow(__func__, pointer, *pitch * height);
}

FP4_ENTRY int cudaMalloc3D(PitchedPtr *pitched, Extent extent) {
  pitched->pitch = (extent.width + 511) / 512 * 512;
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return allocateNow(__func__, &pitched->ptr, pitched->pitch * extent.height * extent.depth);
}

FP4_ENTRY int cudaFree(void *pointer) {
  return context().release(__func__, reinterpret_cast<uint64_t>(pointer));
}

FP4_ENTRY int cudaFreeAsync(void *pointer, StreamHandle stream) {
  return freeIn("cudaFreeAsync", stream, reinterpret_cast<uint64_t>(pointer));
}
FP4_PER_THREAD(cudaFreeAsync, _ptsz)

FP4_ENTRY int cudaMallocManaged(void **pointer, size_t bytes, unsigned) {
  FP4_REQUIRE(pointer && bytes > 0);
  return context().allocateHost(__func__, *pointer, bytes, HostMemory::Managed);
}

//===----------------------------------------------------------------------===//
// Host memory
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
  FP4_REQUIRE(pointer);
  return context().allocateHost(__func__, *pointer, bytes, HostMemory::Pinned);
}

FP4_ENTRY int cudaMallocHost(void **pointer, size_t bytes) {
  FP4_REQUIRE(pointer);
  return context().allocateHost(__func__, *pointer, bytes, HostMemory::Pinned);
}

FP4_ENTRY int cudaFreeHost(void *pointer) {
  return context().releaseHost(__func__, pointer, HostMemory::Pinned);
}

FP4_ENTRY int cudaHostRegister(void *pointer, size_t bytes, unsigned) {
  return context().registerHost(__func__, pointer, bytes);
}

FP4_ENTRY int cudaHostUnregister(void *pointer) {
  return context().releaseHost(__func__, pointer, HostMemory::Registered);
}

FP4_ENTRY int cudaHostGetDevicePointer(void **pointer, void *host, unsigned) {
  FP4_REQUIRE(pointer);
  const bool mapped = context().hostMemory(host).has_value();
  *pointer = mapped ? host : nullptr;
  return mapped ? Success : context().quiet(InvalidValue);
}

FP4_ENTRY int cudaHostGetFlags(unsigned *flags, void *host) {
  FP4_REQUIRE(flags);
  *flags = 2; // mapped, as all pinned memory is
  return context().hostMemory(host) ? Success : context().quiet(InvalidValue);
}

// Hints: there is nothing to migrate. The two forms of CUDA 12 and 13 differ in how they name the
// place.
FP4_ENTRY int cudaMemPrefetchAsync() { return context().sticky(); }
FP4_PER_THREAD(cudaMemPrefetchAsync, _ptsz)
FP4_ENTRY int cudaMemPrefetchAsync_v2() { return context().sticky(); }
FP4_ENTRY int cudaMemAdvise() { return context().sticky(); }
FP4_ENTRY int cudaMemAdvise_v2() { return context().sticky(); }
FP4_ENTRY int cudaStreamAttachMemAsync(StreamHandle, void *, size_t, unsigned) {
  return context().sticky();
}
FP4_PER_THREAD(cudaStreamAttachMemAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Code copyIn(const char *function, StreamHandle stream, void *to, const void *from,
                   size_t bytes, int kind) {
  return enqueue(function, stream, CopyWork{.to = to, .from = from, .bytes = bytes, .kind = kind});
}

FP4_ENTRY int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  return copyIn("cudaMemcpy", nullptr, to, from, bytes, kind);
}
FP4_PER_THREAD(cudaMemcpy, _ptds)

FP4_ENTRY int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                              StreamHandle stream) {
  return copyIn("cudaMemcpyAsync", stream, to, from, bytes, kind);
}
FP4_PER_THREAD(cudaMemcpyAsync, _ptsz)

static Code copyPeer(const char *function, StreamHandle stream, void *to, int toDevice,
                     const void *from, int fromDevice, size_t bytes) {
  if (toDevice || fromDevice)
    return context().fail(
        function, InvalidDevice,
        fmt::format("expects device 0, the only one, but got {} and {}", toDevice, fromDevice));
  return copyIn(function, stream, to, from, bytes, DeviceToDevice);
}

FP4_ENTRY int cudaMemcpyPeer(void *to, int toDevice, const void *from, int fromDevice,
                             size_t bytes) {
  return copyPeer(__func__, nullptr, to, toDevice, from, fromDevice, bytes);
}

FP4_ENTRY int cudaMemcpyPeerAsync(void *to, int toDevice, const void *from, int fromDevice,
                                  size_t bytes, StreamHandle stream) {
  return copyPeer(__func__, stream, to, toDevice, from, fromDevice, bytes);
}

static Code copyRows(const char *function, StreamHandle stream, CopyWork work) {
  if (work.bytes > work.toPitch || work.bytes > work.fromPitch)
    return context().fail(function, InvalidValue,
                          fmt::format("rows of {} bytes do not fit pitches of {} and {}",
                                      work.bytes, work.toPitch, work.fromPitch));
  return enqueue(function, stream, work);
}

FP4_ENTRY int cudaMemcpy2D(void *to, size_t toPitch, const void *from, size_t fromPitch,
                           size_t width, size_t height, int kind) {
  return copyRows("cudaMemcpy2D", nullptr, {to, from, width, kind, height, toPitch, fromPitch});
}
FP4_PER_THREAD(cudaMemcpy2D, _ptds)

FP4_ENTRY int cudaMemcpy2DAsync(void *to, size_t toPitch, const void *from, size_t fromPitch,
                                size_t width, size_t height, int kind, StreamHandle stream) {
  return copyRows("cudaMemcpy2DAsync", stream, {to, from, width, kind, height, toPitch, fromPitch});
}
FP4_PER_THREAD(cudaMemcpy2DAsync, _ptsz)

static Code copy3D(const char *function, StreamHandle stream, const Memcpy3DParms *p) {
  FP4_REQUIRE(p);
  CopyWork work;
  const Code code = copyOf(function, *p, work);
  return code == Success ? copyRows(function, stream, work) : code;
}

FP4_ENTRY int cudaMemcpy3D(const Memcpy3DParms *p) { return copy3D("cudaMemcpy3D", nullptr, p); }
FP4_PER_THREAD(cudaMemcpy3D, _ptds)

FP4_ENTRY int cudaMemcpy3DAsync(const Memcpy3DParms *p, StreamHandle stream) {
  return copy3D("cudaMemcpy3DAsync", stream, p);
}
FP4_PER_THREAD(cudaMemcpy3DAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

static Code fillIn(const char *function, StreamHandle stream, void *to, int value, size_t width,
                   size_t rows = 1, size_t pitch = 0) {
  return enqueue(function, stream,
                 FillWork{to, static_cast<uint32_t>(value), 1, width, rows, pitch});
}

FP4_ENTRY int cudaMemset(void *to, int value, size_t bytes) {
  return fillIn("cudaMemset", nullptr, to, value, bytes);
}
FP4_PER_THREAD(cudaMemset, _ptds)

FP4_ENTRY int cudaMemsetAsync(void *to, int value, size_t bytes, StreamHandle stream) {
  return fillIn("cudaMemsetAsync", stream, to, value, bytes);
}
FP4_PER_THREAD(cudaMemsetAsync, _ptsz)

FP4_ENTRY int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return fillIn("cudaMemset2D", nullptr, to, value, width, height, pitch);
}
FP4_PER_THREAD(cudaMemset2D, _ptds)

FP4_ENTRY int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                StreamHandle stream) {
  return fillIn("cudaMemset2DAsync", stream, to, value, width, height, pitch);
}
FP4_PER_THREAD(cudaMemset2DAsync, _ptsz)

static Code fill3D(const char *function, StreamHandle stream, const PitchedPtr &to, int value,
                   const Extent &extent) {
  Code code = Success;
  for (size_t z = 0; z < extent.depth && code == Success; ++z)
    code = fillIn(function, stream, static_cast<std::byte *>(to.ptr) + z * to.pitch * to.ysize,
                  value, extent.width, extent.height, to.pitch);
  return code;
}

FP4_ENTRY int cudaMemset3D(PitchedPtr to, int value, Extent extent) {
  return fill3D("cudaMemset3D", nullptr, to, value, extent);
}
FP4_PER_THREAD(cudaMemset3D, _ptds)

FP4_ENTRY int cudaMemset3DAsync(PitchedPtr to, int value, Extent extent, StreamHandle stream) {
  return fill3D("cudaMemset3DAsync", stream, to, value, extent);
}
FP4_PER_THREAD(cudaMemset3DAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static Code symbolPlace(const char *function, const void *symbol, void **address, size_t *bytes) {
  const Symbol *found = context().findSymbol(symbol);
  // The symbol of a __managed__ variable is the variable.
  if (const sim::Allocation *shared = found ? nullptr : context().find(addressOf(symbol)))
    if (context().hostMemory(symbol) == HostMemory::Variable) {
      if (address)
        *address = const_cast<void *>(symbol);
      if (bytes)
        *bytes = shared->size;
      return Success;
    }
  if (!found)
    return context().fail(function, InvalidSymbol,
                          "the symbol is not a registered variable of the program");
  return getGlobal(function, *found->module, found->name.c_str(), address, bytes);
}

Code fp4::simcuda::symbolRange(const char *function, const void *symbol, size_t offset,
                               size_t bytes, std::byte *&address) {
  void *base = nullptr;
  size_t size = 0;
  if (Code code = symbolPlace(function, symbol, &base, &size); code != Success)
    return code;
  if (offset > size || bytes > size - offset)
    return context().fail(
        function, InvalidValue,
        fmt::format("{} bytes at offset {} of a variable that has {} bytes", bytes, offset, size));
  address = static_cast<std::byte *>(base) + offset;
  return Success;
}

FP4_ENTRY int cudaGetSymbolAddress(void **address, const void *symbol) {
  return symbolPlace(__func__, symbol, address, nullptr);
}

FP4_ENTRY int cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  return symbolPlace(__func__, symbol, nullptr, bytes);
}

static Code toSymbol(const char *function, StreamHandle stream, const void *symbol,
                     const void *from, size_t bytes, size_t offset, int kind) {
  std::byte *to = nullptr;
  const Code code = symbolRange(function, symbol, offset, bytes, to);
  return code == Success ? copyIn(function, stream, to, from, bytes, kind) : code;
}

static Code fromSymbol(const char *function, StreamHandle stream, void *to, const void *symbol,
                       size_t bytes, size_t offset, int kind) {
  std::byte *from = nullptr;
  const Code code = symbolRange(function, symbol, offset, bytes, from);
  return code == Success ? copyIn(function, stream, to, from, bytes, kind) : code;
}

FP4_ENTRY int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                 int kind) {
  return toSymbol("cudaMemcpyToSymbol", nullptr, symbol, from, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyToSymbol, _ptds)

FP4_ENTRY int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                   int kind) {
  return fromSymbol("cudaMemcpyFromSymbol", nullptr, to, symbol, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyFromSymbol, _ptds)

FP4_ENTRY int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                      size_t offset, int kind, StreamHandle stream) {
  return toSymbol("cudaMemcpyToSymbolAsync", stream, symbol, from, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz)

FP4_ENTRY int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                        int kind, StreamHandle stream) {
  return fromSymbol("cudaMemcpyFromSymbolAsync", stream, to, symbol, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Queries and pools
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaMemGetInfo(size_t *available, size_t *total) {
  FP4_REQUIRE(available && total);
  *total = context().chip().memoryBytes;
  *available = *total - std::min<size_t>(*total, context().bytesInUse());
  return Success;
}

FP4_ENTRY int cudaPointerGetAttributes(PointerAttributes *attributes, const void *pointer) {
  const bool known = context().isDevice(pointer);
  const auto host = context().hostMemory(pointer);
  void *address = const_cast<void *>(pointer);
  *attributes = {};
  attributes->device = known ? 0 : -2;
  if (!known)
    return Success;
  attributes->devicePointer = address;
  attributes->hostPointer = host ? address : nullptr;
  attributes->type = !host                                                           ? 2
                     : *host == HostMemory::Managed || *host == HostMemory::Variable ? 3
                                                                                     : 1;
  return Success;
}

// One pool, which keeps nothing: its thresholds change nothing either.
static int thePool;
FP4_ENTRY int cudaDeviceGetDefaultMemPool(void **pool, int) {
  FP4_REQUIRE(pool);
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaDeviceGetMemPool(void **pool, int) {
  FP4_REQUIRE(pool);
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaDeviceSetMemPool(int, void *) { return Success; }
FP4_ENTRY int cudaMemPoolCreate(void **pool, const void *) {
  FP4_REQUIRE(pool);
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaMemPoolDestroy(void *) { return Success; }
FP4_ENTRY int cudaMemPoolSetAttribute(void *, int, void *) { return Success; }
FP4_ENTRY int cudaMemPoolGetAttribute(void *, int, void *value) {
  *static_cast<uint64_t *>(value) = 0;
  return Success;
}
FP4_ENTRY int cudaMemPoolTrimTo(void *, size_t) { return Success; }
FP4_ENTRY int cudaMemPoolSetAccess(void *, const void *, size_t) { return Success; }
