//===- GlobalMemory.h - The simulated device memory -----------------------===//
//
// Device pointers are made-up 64-bit addresses, so using a host pointer as a device pointer (or the
// reverse) is an error that names what was expected. Only memory that host and device share has one
// address for both. Every allocation has a name and bounds. Gaps between allocations are never
// valid, and freed addresses are not reused soon.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fp4::sim {

class WriteJournal;

/// Frees the storage of an allocation unless it belongs to the host.
struct StorageDeleter {
  bool owned = true;
  uint64_t mapped = 0; ///< bytes of storage that takes pages of the host only where it is written
  void operator()(std::byte *bytes) const;
};
using Storage = std::unique_ptr<std::byte[], StorageDeleter>;

/// A bit for each byte. The host clears pages when they are used first.
struct WrittenBitsDeleter {
  void operator()(uint64_t *bits) const { std::free(bits); }
};
using WrittenBits = std::unique_ptr<uint64_t[], WrittenBitsDeleter>;

/// A named allocation of device memory. `bytes.get()` is the host storage of [address,
/// address+size).
struct Allocation {
  std::string name;
  uint64_t address = 0; ///< 512-byte aligned fake device pointer, or that of the host's memory
  uint64_t size = 0;    ///< bytes
  Storage bytes;
  bool readOnly = false; ///< .const variables: the device may not write them
  bool polled = false;   ///< memory that the host reads while kernels run
  bool lent = false;     ///< host memory that the host leaves alone while kernels run
  WrittenBits written;   ///< null: nobody keeps track

  /// Returns true when host and device share the memory and use one address.
  bool shared() const { return !bytes.get_deleter().owned; }
  /// Returns true when the host may write the memory while a kernel runs.
  bool hostWrites() const { return shared() && !lent; }
};

/// The allocation table. Host threads may call everything but allocate, free, reserve and share
/// concurrently; the table does not change while a kernel runs.
class GlobalMemory {
public:
  GlobalMemory() = default;
  GlobalMemory(const GlobalMemory &) = delete;
  GlobalMemory &operator=(const GlobalMemory &) = delete;

  /// Allocates `size` bytes (0 is allowed and gives a unique address). Contents are 0xCD bytes.
  /// Returns 0 when the host has no memory left.
  uint64_t allocate(uint64_t size, std::string name = "");
  /// Frees an allocation; `address` must be what allocate returned.
  Status free(uint64_t address);
  /// Creates an allocation at a fixed address (module-scope .global and .const variables).
  Status reserve(uint64_t address, uint64_t size, std::string name, bool readOnly);
  /// Makes memory of the host (managed, mapped) valid on the device at its own address. The host
  /// still owns it: free only forgets it.
  Status share(void *host, uint64_t size, std::string name);
  /// Makes memory of the host device memory at its own address, until free: the host leaves it
  /// alone while kernels run, and tells what it writes between them (markWritten). `written`: it
  /// has written all of it already.
  Status lend(void *host, uint64_t size, std::string name, bool written);

  Status read(uint64_t address, void *destination, uint64_t bytes) const;
  Status write(uint64_t address, const void *source, uint64_t bytes);
  Status fill(uint64_t address, uint8_t value, uint64_t bytes);

  /// The allocation that contains [address, address + bytes), or null.
  const Allocation *find(uint64_t address, uint64_t bytes) const;
  /// Host storage of the range, or null when it is not inside one allocation.
  std::byte *translate(uint64_t address, uint64_t bytes) const;
  /// Why [address, address + bytes) is not valid: names the nearest allocation and the distance.
  std::string explain(uint64_t address, uint64_t bytes) const;

  /// The host reads the allocation at `address` while kernels run.
  void markPolled(uint64_t address);
  /// Returns true when the host reads an allocation while kernels run.
  bool isPolled() const { return polled; }

  uint64_t bytesInUse() const { return inUse; }
  /// All allocations, by address.
  const std::vector<std::unique_ptr<Allocation>> &allocations() const { return table; }

  /// Makes allocations remember from now on which of their bytes were written by write and fill of
  /// this class and by callers of markWritten.
  void trackWrites() { tracking = true; }
  bool tracksWrites() const { return tracking; }
  void markWritten(uint64_t address, uint64_t bytes) const;
  /// The first byte of the range that was never written. None without the record.
  std::optional<uint64_t> firstUnwritten(uint64_t address, uint64_t bytes) const;

  /// Tells `other` of bytes before a kernel writes them, from now on; null: tells nobody.
  void tell(WriteJournal *other) { journal = other; }
  void aboutToWrite(uint64_t address, uint64_t bytes) const {
    if (journal) [[unlikely]]
      noteWrite(address, bytes);
  }

private:
  void noteWrite(uint64_t address, uint64_t bytes) const;
  Status insert(std::unique_ptr<Allocation> allocation);

  std::vector<std::unique_ptr<Allocation>> table; ///< sorted by address
  uint64_t nextAddress = 0x10'0000'0000;
  uint64_t inUse = 0;
  uint64_t serial = 0;
  bool tracking = false;
  bool polled = false;
  WriteJournal *journal = nullptr;
};

} // namespace fp4::sim
