//===- AlignedBytes.h - Zeroed storage on a cache line boundary -----------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace fp4::sim {

class AlignedBytes {
public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size)
      : storage(static_cast<std::byte *>(::operator new(size ? size : 1, std::align_val_t(64)))) {
    std::memset(storage.get(), 0, size);
  }
  std::byte *bytes() const { return storage.get(); }

private:
  struct Free {
    void operator()(std::byte *p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<std::byte, Free> storage;
};

/// Storage of one size that nobody uses any more. Clearing it costs less than new pages, which the
/// host clears too.
class SpareBytes {
public:
  AlignedBytes take(size_t size) {
    AlignedBytes found;
    {
      const std::lock_guard guard(lock);
      if (spare.empty() || size != sizeOfAll)
        return AlignedBytes(size);
      found = std::move(spare.back());
      spare.pop_back();
    }
    std::memset(found.bytes(), 0, size);
    return found;
  }
  /// Gives back bytes that take(size) returned.
  void give(AlignedBytes bytes, size_t size) {
    const std::lock_guard guard(lock);
    if (size != sizeOfAll)
      spare.clear();
    sizeOfAll = size;
    spare.push_back(std::move(bytes));
  }

private:
  std::mutex lock;
  std::vector<AlignedBytes> spare;
  size_t sizeOfAll = 0;
};

} // namespace fp4::sim
