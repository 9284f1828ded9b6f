//===- AlignedBytes.h - Zeroed storage on a cache line boundary -----------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

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

} // namespace fp4::sim
