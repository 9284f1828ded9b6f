//===- ConcurrentBytes.h - Bytes that several host threads access ---------===//
//
// Clusters run on several host threads and access the same global memory, as their program does. A
// read or write of one lane is an acquire load or a release store on the host: a flag that
// publishes data in the program publishes the data on the host too, however the data was moved.
// Longer moves (rows, bulk copies) are plain, since a program must not let them race.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fp4::sim {

/// Returns true when one host instruction can access this T. Local memory has other alignments than
/// the host.
template <typename T> inline bool isHostElement(const std::byte *place) {
  return sizeof(T) <= 8 && reinterpret_cast<uintptr_t>(place) % sizeof(T) == 0;
}

template <typename T> inline T loadElement(const std::byte *from) {
  T value;
  if constexpr (sizeof(T) == 16) {
    const uint64_t halves[] = {loadElement<uint64_t>(from), loadElement<uint64_t>(from + 8)};
    std::memcpy(&value, halves, sizeof(value));
  } else if (isHostElement<T>(from)) {
    __atomic_load(reinterpret_cast<const T *>(from), &value, __ATOMIC_ACQUIRE);
  } else {
    std::memcpy(&value, from, sizeof(value));
  }
  return value;
}

template <typename T> inline void storeElement(std::byte *to, T value) {
  if constexpr (sizeof(T) == 16) {
    uint64_t halves[2];
    std::memcpy(halves, &value, sizeof(value));
    storeElement(to, halves[0]);
    storeElement(to + 8, halves[1]);
  } else if (isHostElement<T>(to)) {
    __atomic_store(reinterpret_cast<T *>(to), &value, __ATOMIC_RELEASE);
  } else {
    std::memcpy(to, &value, sizeof(value));
  }
}

/// The bytes that one lane accesses, of any size, as a value.
inline void loadBytes(void *to, const std::byte *from, size_t bytes) {
  auto *out = static_cast<std::byte *>(to);
  const auto take = [&]<typename T>(T) {
    const T value = loadElement<T>(from);
    std::memcpy(out, &value, sizeof(value));
    out += sizeof(T), from += sizeof(T), bytes -= sizeof(T);
  };
  while (bytes >= 8 && isHostElement<uint64_t>(from))
    take(uint64_t());
  while (bytes >= 4 && isHostElement<uint32_t>(from))
    take(uint32_t());
  while (bytes >= 2 && isHostElement<uint16_t>(from))
    take(uint16_t());
  while (bytes)
    take(uint8_t());
}

} // namespace fp4::sim
