//===- CudartMemory.cpp - Memory of the runtime API -----------------------===//
//
// Host memory is the host's own: cudaHostAlloc is malloc, registration does nothing. Kernels reach
// device memory alone, so mapped and managed memory answer cudaErrorNotSupported.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include "HostImage.h"
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

static Code allocateAt(const char *function, void **pointer, size_t bytes) {
  FP4_REQUIRE(pointer);
  uint64_t address = 0;
  Code code = context().allocate(function, address, bytes);
  *pointer = reinterpret_cast<void *>(address);
  return code;
}

FP4_ENTRY int cudaMalloc(void **pointer, size_t bytes) {
  return allocateAt(__func__, pointer, bytes);
}

FP4_ENTRY int cudaMallocAsync(void **pointer, size_t bytes, StreamHandle) {
  return allocateAt("cudaMallocAsync", pointer, bytes);
}
FP4_PER_THREAD(cudaMallocAsync, _ptsz)

FP4_ENTRY int cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *, StreamHandle) {
  return allocateAt("cudaMallocFromPoolAsync", pointer, bytes);
}
FP4_PER_THREAD(cudaMallocFromPoolAsync, _ptsz)

FP4_ENTRY int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocateAt(__func__, pointer, *pitch * height);
}

FP4_ENTRY int cudaMalloc3D(PitchedPtr *pitched, Extent extent) {
  pitched->pitch = (extent.width + 511) / 512 * 512;
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return allocateAt(__func__, &pitched->ptr, pitched->pitch * extent.height * extent.depth);
}

FP4_ENTRY int cudaFree(void *pointer) {
  return context().release(__func__, reinterpret_cast<uint64_t>(pointer));
}

FP4_ENTRY int cudaFreeAsync(void *pointer, StreamHandle) {
  return context().release("cudaFreeAsync", reinterpret_cast<uint64_t>(pointer));
}
FP4_PER_THREAD(cudaFreeAsync, _ptsz)

FP4_ENTRY int cudaMallocManaged(void **pointer, size_t, unsigned) {
  *pointer = nullptr;
  reportMissing(__func__);
  return context().fail(__func__, NotSupported, "managed memory is not simulated",
                        "allocate with cudaMalloc and copy with cudaMemcpy");
}

//===----------------------------------------------------------------------===//
// Host memory
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *pointer || bytes == 0 ? Success : context().quiet(MemoryAllocation);
}

FP4_ENTRY int cudaMallocHost(void **pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

FP4_ENTRY int cudaFreeHost(void *pointer) {
  std::free(pointer);
  return Success;
}

FP4_ENTRY int cudaHostRegister(void *, size_t, unsigned) { return Success; }
FP4_ENTRY int cudaHostUnregister(void *) { return Success; }

FP4_ENTRY int cudaHostGetDevicePointer(void **pointer, void *, unsigned) {
  *pointer = nullptr;
  reportMissing(__func__);
  return context().fail(__func__, NotSupported, "mapped host memory is not simulated",
                        "copy to memory of cudaMalloc");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  return context().copy("cudaMemcpy", to, from, bytes, kind);
}
FP4_PER_THREAD(cudaMemcpy, _ptds)

FP4_ENTRY int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, StreamHandle) {
  return context().copy("cudaMemcpyAsync", to, from, bytes, kind);
}
FP4_PER_THREAD(cudaMemcpyAsync, _ptsz)

FP4_ENTRY int cudaMemcpyPeer(void *to, int, const void *from, int, size_t bytes) {
  return context().copy(__func__, to, from, bytes, DeviceToDevice);
}

FP4_ENTRY int cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes,
                                  StreamHandle) {
  return context().copy(__func__, to, from, bytes, DeviceToDevice);
}

static Code copyRows(const char *function, void *to, size_t toPitch, const void *from,
                     size_t fromPitch, size_t width, size_t rows, int kind) {
  if (width > toPitch || width > fromPitch)
    return context().fail(
        function, InvalidValue,
        fmt::format("rows of {} bytes do not fit pitches of {} and {}", width, toPitch, fromPitch));
  Code code = Success;
  for (size_t row = 0; row < rows && code == Success; ++row)
    code = context().copy(function, static_cast<std::byte *>(to) + row * toPitch,
                          static_cast<const std::byte *>(from) + row * fromPitch, width, kind);
  return code;
}

FP4_ENTRY int cudaMemcpy2D(void *to, size_t toPitch, const void *from, size_t fromPitch,
                           size_t width, size_t height, int kind) {
  return copyRows("cudaMemcpy2D", to, toPitch, from, fromPitch, width, height, kind);
}
FP4_PER_THREAD(cudaMemcpy2D, _ptds)

FP4_ENTRY int cudaMemcpy2DAsync(void *to, size_t toPitch, const void *from, size_t fromPitch,
                                size_t width, size_t height, int kind, StreamHandle) {
  return copyRows("cudaMemcpy2DAsync", to, toPitch, from, fromPitch, width, height, kind);
}
FP4_PER_THREAD(cudaMemcpy2DAsync, _ptsz)

FP4_ENTRY int cudaMemcpy3D(const Memcpy3DParms *p) {
  if (p->sourceArray || p->destinationArray) {
    reportMissing("cudaMemcpy3D of arrays");
    return context().quiet(NotSupported);
  }
  auto plane = [](const PitchedPtr &side, const Position &at, size_t z) {
    return static_cast<std::byte *>(side.ptr) + ((at.z + z) * side.ysize + at.y) * side.pitch +
           at.x;
  };
  Code code = Success;
  for (size_t z = 0; z < p->extent.depth && code == Success; ++z)
    code = copyRows("cudaMemcpy3D", plane(p->destination, p->destinationPosition, z),
                    p->destination.pitch, plane(p->source, p->sourcePosition, z), p->source.pitch,
                    p->extent.width, p->extent.height, p->kind);
  return code;
}
FP4_PER_THREAD(cudaMemcpy3D, _ptds)

FP4_ENTRY int cudaMemcpy3DAsync(const Memcpy3DParms *p, StreamHandle) { return cudaMemcpy3D(p); }
FP4_PER_THREAD(cudaMemcpy3DAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaMemset(void *to, int value, size_t bytes) {
  return context().fill("cudaMemset", to, static_cast<uint32_t>(value), 1, bytes);
}
FP4_PER_THREAD(cudaMemset, _ptds)

FP4_ENTRY int cudaMemsetAsync(void *to, int value, size_t bytes, StreamHandle) {
  return context().fill("cudaMemsetAsync", to, static_cast<uint32_t>(value), 1, bytes);
}
FP4_PER_THREAD(cudaMemsetAsync, _ptsz)

FP4_ENTRY int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  Code code = Success;
  for (size_t row = 0; row < height && code == Success; ++row)
    code = context().fill("cudaMemset2D", static_cast<std::byte *>(to) + row * pitch,
                          static_cast<uint32_t>(value), 1, width);
  return code;
}
FP4_PER_THREAD(cudaMemset2D, _ptds)

FP4_ENTRY int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                StreamHandle) {
  return cudaMemset2D(to, pitch, value, width, height);
}
FP4_PER_THREAD(cudaMemset2DAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static Code symbolPlace(const char *function, const void *symbol, void **address, size_t *bytes) {
  const Symbol *found = context().findSymbol(symbol);
  if (!found)
    return context().fail(function, InvalidSymbol,
                          "the symbol is not a registered variable of the program");
  return getGlobal(function, *found->module, found->name.c_str(), address, bytes);
}

/// [offset, offset + bytes) of a symbol.
static Code symbolRange(const char *function, const void *symbol, size_t offset, size_t bytes,
                        std::byte *&address) {
  void *base = nullptr;
  size_t size = 0;
  if (Code code = symbolPlace(function, symbol, &base, &size); code != Success)
    return code;
  if (offset > size || bytes > size - offset)
    return context().fail(function, InvalidValue,
                          fmt::format("{} bytes at offset {} of '{}', which has {} bytes", bytes,
                                      offset, context().findSymbol(symbol)->name, size));
  address = static_cast<std::byte *>(base) + offset;
  return Success;
}

FP4_ENTRY int cudaGetSymbolAddress(void **address, const void *symbol) {
  return symbolPlace(__func__, symbol, address, nullptr);
}

FP4_ENTRY int cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  return symbolPlace(__func__, symbol, nullptr, bytes);
}

FP4_ENTRY int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                 int kind) {
  std::byte *to = nullptr;
  Code code = symbolRange("cudaMemcpyToSymbol", symbol, offset, bytes, to);
  return code == Success ? context().copy("cudaMemcpyToSymbol", to, from, bytes, kind) : code;
}
FP4_PER_THREAD(cudaMemcpyToSymbol, _ptds)

FP4_ENTRY int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                   int kind) {
  std::byte *from = nullptr;
  Code code = symbolRange("cudaMemcpyFromSymbol", symbol, offset, bytes, from);
  return code == Success ? context().copy("cudaMemcpyFromSymbol", to, from, bytes, kind) : code;
}
FP4_PER_THREAD(cudaMemcpyFromSymbol, _ptds)

FP4_ENTRY int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                      size_t offset, int kind, StreamHandle) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz)

FP4_ENTRY int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                        int kind, StreamHandle) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
FP4_PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz)

//===----------------------------------------------------------------------===//
// Queries and pools
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaMemGetInfo(size_t *available, size_t *total) {
  *total = context().chip().memoryBytes;
  *available = *total - std::min<size_t>(*total, context().bytesInUse());
  return Success;
}

FP4_ENTRY int cudaPointerGetAttributes(PointerAttributes *attributes, const void *pointer) {
  bool device = context().isDevice(pointer);
  *attributes = {};
  attributes->type = device ? 2 : 0;
  attributes->device = device ? 0 : -2;
  attributes->devicePointer = device ? const_cast<void *>(pointer) : nullptr;
  return Success;
}

// One pool, which keeps nothing: its thresholds change nothing either.
static int thePool;
FP4_ENTRY int cudaDeviceGetDefaultMemPool(void **pool, int) {
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaDeviceGetMemPool(void **pool, int) {
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaDeviceSetMemPool(int, void *) { return Success; }
FP4_ENTRY int cudaMemPoolCreate(void **pool, const void *) {
  *pool = &thePool;
  return Success;
}
FP4_ENTRY int cudaMemPoolDestroy(void *) { return Success; }
FP4_ENTRY int cudaMemPoolSetAttribute(void *, int, void *) { return Success; }
FP4_ENTRY int cudaMemPoolTrimTo(void *, size_t) { return Success; }
FP4_ENTRY int cudaMemPoolSetAccess(void *, const void *, size_t) { return Success; }
