//===- Storage.cpp - Host storage of device memory -------------------------===//
#include "Sim/State/Storage.h"
#include "fp4/Support/FilledPages.h"
#include <algorithm>
#include <cstring>
#include <new>

using namespace fp4;
using namespace fp4::sim;

static constexpr uint64_t kLarge = 4 * kPagesPart;

Storage fp4::sim::makeStorage(uint64_t size) {
  if (size >> 40)
    return nullptr;
  if (size >= kLarge) {
    const uint64_t bytes = (size + kPagesPart - 1) / kPagesPart * kPagesPart;
    if (std::byte *pages = mapFilledPages(bytes))
      return {pages, StorageDeleter{.mapped = bytes}};
  }
  Storage storage(new (std::nothrow) std::byte[std::max<uint64_t>(size, 1)]);
  if (storage)
    std::memset(storage.get(), 0xCD, size);
  return storage;
}

void fp4::sim::fillStorage(const Storage &storage, uint64_t offset, uint8_t value, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  const uint64_t first = (offset + kPagesPart - 1) / kPagesPart * kPagesPart;
  const uint64_t last = end / kPagesPart * kPagesPart;
  const bool parts = storage.get_deleter().mapped && value == 0 && first < last;
  if (!parts || !zeroPages(storage.get() + first, last - first)) {
    std::memset(storage.get() + offset, value, bytes);
    return;
  }
  std::memset(storage.get() + offset, value, first - offset);
  std::memset(storage.get() + last, value, end - last);
}

void StorageDeleter::operator()(std::byte *bytes) const {
  if (mapped)
    unmapPages(bytes, mapped);
  else if (owned)
    delete[] bytes;
}

WrittenBits fp4::sim::makeBits(uint64_t bytes) {
  return WrittenBits(static_cast<uint64_t *>(std::calloc(bytes / 64 + 1, sizeof(uint64_t))));
}
