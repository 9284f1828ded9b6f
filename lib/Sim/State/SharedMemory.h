//===- SharedMemory.h - Shared memory of one CTA, with poison -------------===//
//
// Each byte is valid, unwritten, or in flight: an
// asynchronous write to it is not done, and a read now comes too early. A byte to which a thread
// stored a poisoned value (State/Poison.h) is unwritten again, with a mask of the bits concerned.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/AddressSpace.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fp4::sim {

/// The origin of a poisoned value: a load, and the unwritten byte that it read.
struct PoisonOrigin {
  uint32_t pc = 0;      ///< program counter of the load
  uint32_t address = 0; ///< shared::cluster address of the byte
};

/// A byte of memory that holds poisoned bits.
struct PoisonedByte {
  std::byte bits{0};
  PoisonOrigin origin;
};

class SharedMemory {
public:
  /// `bytes` of user data: valid offsets are [kSharedBase, kSharedBase + bytes).
  void reset(uint32_t bytes);
  uint32_t end() const { return kSharedBase + static_cast<uint32_t>(data.size()); }

  bool contains(uint32_t offset, uint32_t bytes) const {
    return offset >= kSharedBase && uint64_t(offset) + bytes <= end();
  }
  /// Storage of `offset`, which must be contained. Does not touch the state of the bytes.
  std::byte *at(uint32_t offset) { return data.data() + (offset - kSharedBase); }
  const std::byte *at(uint32_t offset) const { return data.data() + (offset - kSharedBase); }

  /// Returns true when every byte of the range is valid. Fast.
  bool valid(uint32_t offset, uint32_t bytes) const;
  /// `valid` for a naturally aligned access of 1, 2, 4, 8, 16 or 32 bytes.
  bool validAligned(uint32_t offset, uint32_t bytes) const {
    uint32_t index = offset - kSharedBase;
    uint64_t mask = (bytes == 64 ? ~0ull : (1ull << bytes) - 1) << (index % 64);
    return (validBits[index / 64] & mask) == mask;
  }
  void markValidAligned(uint32_t offset, uint32_t bytes) {
    uint32_t index = offset - kSharedBase;
    validBits[index / 64] |= (bytes == 64 ? ~0ull : (1ull << bytes) - 1) << (index % 64);
  }
  /// Makes a range valid that was written by a warp, or by a ticket that completed.
  void markValid(uint32_t offset, uint32_t bytes);
  /// Makes a range the destination of a ticket that was issued and will write it.
  void poison(uint32_t offset, uint32_t bytes, uint64_t ticket);
  /// Makes a range undefined (mbarrier.inval).
  void markUninitialized(uint32_t offset, uint32_t bytes);
  /// Keeps the poisoned bits of a byte that a thread stored.
  void storePoison(uint32_t offset, PoisonedByte byte);

  struct BadByte {
    uint32_t offset = 0;
    uint64_t ticket = 0; ///< ticket in flight to this byte; 0: the byte was never written
    const PoisonedByte *stored = nullptr; ///< the poison that a thread stored there
  };
  /// The first byte of the range that is not valid.
  std::optional<BadByte> firstBad(uint32_t offset, uint32_t bytes) const;

private:
  struct Poison {
    uint32_t begin, end;
    uint64_t ticket;
  };
  std::vector<std::byte> data;
  std::vector<uint64_t> validBits; ///< one bit per byte of data
  std::vector<Poison> inFlight;    ///< lazily pruned: consulted only for invalid bytes
  std::unordered_map<uint32_t, PoisonedByte> stored; ///< poison that threads stored, by offset
};

} // namespace fp4::sim
