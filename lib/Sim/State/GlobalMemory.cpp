//===- GlobalMemory.cpp - The simulated device memory ---------------------===//
#include "fp4/Sim/GlobalMemory.h"
#include "PastWrites.h"
#include "Sim/State/Storage.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

static constexpr uint64_t kAlign = 512;
static constexpr uint64_t kGap = 4096; ///< bytes between allocations, which are never valid

static auto lowerBound(const std::vector<std::unique_ptr<Allocation>> &table, uint64_t address) {
  return std::lower_bound(table.begin(), table.end(), address,
                          [](const auto &a, uint64_t value) { return a->address < value; });
}

uint64_t GlobalMemory::allocate(uint64_t size, std::string name) {
  Storage storage = makeStorage(size);
  WrittenBits written = tracking && storage ? makeBits(size) : nullptr;
  if (!storage || (tracking && !written))
    return 0;
  uint64_t address = nextAddress;
  nextAddress += (size + kGap + kAlign - 1) / kAlign * kAlign;
  if (name.empty())
    name = fmt::format("allocation {}", serial);
  ++serial;
  auto allocation = std::make_unique<Allocation>();
  allocation->name = std::move(name);
  allocation->address = address;
  allocation->size = size;
  allocation->bytes = std::move(storage);
  allocation->written = std::move(written);
  inUse += size;
  table.insert(lowerBound(table, address), std::move(allocation));
  return address;
}

Status GlobalMemory::insert(std::unique_ptr<Allocation> allocation) {
  auto place = lowerBound(table, allocation->address);
  const auto overlaps = [&](const Allocation &other) {
    return other.address < allocation->address + allocation->size &&
           allocation->address < other.address + other.size;
  };
  for (auto at : {place, place == table.begin() ? table.end() : std::prev(place)})
    if (at != table.end() && overlaps(**at))
      return makeError(ErrorKind::Usage,
                       fmt::format("'{}' overlaps '{}'", allocation->name, (*at)->name));
  inUse += allocation->shared() ? 0 : allocation->size;
  table.insert(place, std::move(allocation));
  return {};
}

Status GlobalMemory::reserve(uint64_t address, uint64_t size, std::string name, bool readOnly) {
  auto allocation = std::make_unique<Allocation>();
  allocation->name = std::move(name);
  allocation->address = address;
  allocation->size = size;
  allocation->readOnly = readOnly;
  allocation->bytes.reset(new std::byte[std::max<uint64_t>(size, 1)]());
  return insert(std::move(allocation));
}

Status GlobalMemory::share(void *host, uint64_t size, std::string name) {
  auto allocation = std::make_unique<Allocation>();
  allocation->name = std::move(name);
  allocation->address = reinterpret_cast<uint64_t>(host);
  allocation->size = size;
  allocation->bytes = {static_cast<std::byte *>(host), StorageDeleter{false}};
  return insert(std::move(allocation));
}

Status GlobalMemory::lend(void *host, uint64_t size, std::string name, bool written) {
  FP4_TRY(share(host, size, std::move(name)));
  Allocation &made = **lowerBound(table, reinterpret_cast<uint64_t>(host));
  made.lent = true;
  if (tracking && !written)
    made.written = makeBits(size);
  return {};
}

Status GlobalMemory::free(uint64_t address) {
  auto place = lowerBound(table, address);
  if (place == table.end() || (*place)->address != address)
    return makeError(
        ErrorKind::Usage,
        fmt::format("free expects the address of an allocation, but got {:#x}", address),
        explain(address, 1));
  inUse -= (*place)->shared() ? 0 : (*place)->size;
  table.erase(place);
  return {};
}

const Allocation *GlobalMemory::find(uint64_t address, uint64_t bytes) const {
  auto place = std::upper_bound(table.begin(), table.end(), address,
                                [](uint64_t value, const auto &a) { return value < a->address; });
  if (place == table.begin())
    return nullptr;
  const Allocation &allocation = **std::prev(place);
  uint64_t offset = address - allocation.address;
  bool inside = offset <= allocation.size && bytes <= allocation.size - offset;
  return inside ? &allocation : nullptr;
}

std::byte *GlobalMemory::translate(uint64_t address, uint64_t bytes) const {
  const Allocation *allocation = find(address, bytes);
  return allocation ? allocation->bytes.get() + (address - allocation->address) : nullptr;
}

std::string GlobalMemory::explain(uint64_t address, uint64_t bytes) const {
  auto place = std::upper_bound(table.begin(), table.end(), address,
                                [](uint64_t value, const auto &a) { return value < a->address; });
  if (table.empty())
    return fmt::format("{:#x} is no device address: nothing is allocated", address);
  if (place == table.begin())
    return fmt::format("{:#x} is below every allocation; the lowest is '{}' at {:#x}", address,
                       table.front()->name, table.front()->address);
  const Allocation &near = **std::prev(place);
  uint64_t offset = address - near.address;
  if (offset < near.size)
    return fmt::format("{} bytes at {:#x} begin at byte {} of '{}', which has only {} bytes", bytes,
                       address, offset, near.name, near.size);
  return fmt::format("{:#x} is {} bytes past the end of '{}' ({} bytes at {:#x})", address,
                     offset - near.size, near.name, near.size, near.address);
}

Status GlobalMemory::read(uint64_t address, void *destination, uint64_t bytes) const {
  const std::byte *source = translate(address, bytes);
  if (!source)
    return makeError(ErrorKind::Device, "read of device memory is out of bounds",
                     explain(address, bytes));
  std::memcpy(destination, source, bytes);
  return {};
}

Status GlobalMemory::write(uint64_t address, const void *source, uint64_t bytes) {
  std::byte *destination = translate(address, bytes);
  if (!destination)
    return makeError(ErrorKind::Device, "write of device memory is out of bounds",
                     explain(address, bytes));
  std::memcpy(destination, source, bytes);
  markWritten(address, bytes);
  return {};
}

Status GlobalMemory::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  const Allocation *allocation = find(address, bytes);
  if (!allocation)
    return makeError(ErrorKind::Device, "fill of device memory is out of bounds",
                     explain(address, bytes));
  fillStorage(allocation->bytes, address - allocation->address, value, bytes);
  markWritten(address, bytes);
  return {};
}

//===----------------------------------------------------------------------===//
// Bytes that were written
//===----------------------------------------------------------------------===//

/// Calls f(word, mask) for the words of `bytes` bits from `first` on, until it returns false.
template <typename F> static void forBits(uint64_t first, uint64_t bytes, F &&f) {
  for (uint64_t at = first; at < first + bytes;) {
    const uint64_t from = at % 64, part = std::min(first + bytes - at, 64 - from);
    const uint64_t mask = (part == 64 ? ~0ull : (1ull << part) - 1) << from;
    if (!f(at / 64, mask))
      return;
    at += part;
  }
}

void GlobalMemory::noteWrite(uint64_t address, uint64_t bytes) const {
  journal->note(address, bytes);
}

void GlobalMemory::markPolled(uint64_t address) {
  for (const auto &allocation : table)
    if (allocation->address == address)
      polled = allocation->polled = true;
}

void GlobalMemory::markWritten(uint64_t address, uint64_t bytes) const {
  const Allocation *allocation = tracking ? find(address, bytes) : nullptr;
  if (!allocation || !allocation->written)
    return;
  forBits(address - allocation->address, bytes, [&](uint64_t word, uint64_t mask) {
    allocation->written[word] |= mask;
    return true;
  });
}

std::optional<uint64_t> GlobalMemory::firstUnwritten(uint64_t address, uint64_t bytes) const {
  const Allocation *allocation = tracking ? find(address, bytes) : nullptr;
  if (!allocation || !allocation->written)
    return std::nullopt;
  std::optional<uint64_t> found;
  forBits(address - allocation->address, bytes, [&](uint64_t word, uint64_t mask) {
    const uint64_t missing = mask & ~allocation->written[word];
    if (missing)
      found = allocation->address + 64 * word + uint64_t(std::countr_zero(missing));
    return !missing;
  });
  return found;
}
