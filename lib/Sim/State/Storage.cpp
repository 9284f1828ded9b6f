//===- Storage.cpp - Host storage of device memory -------------------------===//
//
// Large storage is made of private mappings of one file of 0xCD bytes. The host copies a page of it
// when the page is written.
//
//===----------------------------------------------------------------------===//
#include "Sim/State/Storage.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::sim;

static constexpr uint64_t kFresh = 0xCD;       ///< byte of fresh storage
static constexpr uint64_t kPart = 64ull << 20; ///< bytes of the file, which a mapping has at most
static constexpr uint64_t kLarge = 4 * kPart;

/// The file of 0xCD bytes; negative where the host has none.
static int freshFile() {
  static const int file = [] {
    const int made = memfd_create("fp4-sim-fresh", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, kPart) != 0)
      return -1;
    void *bytes = mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (bytes == MAP_FAILED)
      return -1;
    std::memset(bytes, kFresh, kPart);
    munmap(bytes, kPart);
    return made;
  }();
  return file;
}

static void *mapPart(std::byte *at, uint64_t bytes, int file) {
  const int kind = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  return mmap(at, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
}

static Storage makeLarge(uint64_t size) {
  const uint64_t bytes = (size + kPart - 1) / kPart * kPart;
  void *place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return nullptr;
  Storage storage(static_cast<std::byte *>(place), StorageDeleter{.mapped = bytes});
  for (uint64_t at = 0; at < bytes; at += kPart)
    if (mapPart(storage.get() + at, kPart, freshFile()) == MAP_FAILED)
      return nullptr;
  return storage;
}

Storage fp4::sim::makeStorage(uint64_t size) {
  if (size >> 40)
    return nullptr;
  if (size >= kLarge && freshFile() >= 0)
    return makeLarge(size);
  Storage storage(new (std::nothrow) std::byte[std::max<uint64_t>(size, 1)]);
  if (storage)
    std::memset(storage.get(), kFresh, size);
  return storage;
}

void fp4::sim::fillStorage(const Storage &storage, uint64_t offset, uint8_t value, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  const uint64_t first = (offset + kPart - 1) / kPart * kPart, last = end / kPart * kPart;
  const bool parts = storage.get_deleter().mapped && value == 0 && first < last;
  if (!parts || mapPart(storage.get() + first, last - first, -1) == MAP_FAILED) {
    std::memset(storage.get() + offset, value, bytes);
    return;
  }
  std::memset(storage.get() + offset, value, first - offset);
  std::memset(storage.get() + last, value, end - last);
}

void StorageDeleter::operator()(std::byte *bytes) const {
  if (mapped)
    munmap(bytes, mapped);
  else if (owned)
    delete[] bytes;
}

WrittenBits fp4::sim::makeBits(uint64_t bytes) {
  return WrittenBits(static_cast<uint64_t *>(std::calloc(bytes / 64 + 1, sizeof(uint64_t))));
}
