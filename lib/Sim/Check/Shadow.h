//===- Shadow.h - The accesses that a later one could race with -----------===//
//
// Memory is shadowed in cells: 32 bytes of shared or global memory, or one column of 32 lanes of
// tensor memory. A cell keeps records, each of one agent at one time, with a mask of the bytes (or
// lanes) concerned. A write replaces what it covers, a read the reads that are known to precede it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fp4::sim::check {

constexpr uint32_t cellBytes = 32;

/// How a strong (not .weak) access is scoped; two that include each other do not race.
enum Strength : uint8_t { Weak, StrongCta, StrongCluster, StrongGpu };

struct Record {
  uint32_t cluster = 0;
  uint32_t epoch = 0;
  uint16_t slot = 0;
  int8_t laneBase = 0; ///< byte b was accessed by lane laneBase + (b >> laneShift)
  uint8_t laneShift : 3 = 0;
  uint8_t write : 1 = 0;
  uint8_t strength : 2 = 0;
  uint8_t async : 1 = 0;     ///< by a ticket
  uint8_t manyLanes : 1 = 0; ///< several lanes accessed the same bytes
  uint32_t mask = 0;         ///< of the cell's bytes; 0: no record
  uint32_t pc = 0;
  uint32_t sequence = 0; ///< in the order of events of its cluster

  bool sameAgent(const Record &other) const {
    return slot == other.slot && cluster == other.cluster;
  }
  /// The same lanes of one agent in the same epoch, in the same way but for `write`.
  bool sameThread(const Record &other) const {
    return when() == other.when() && ((who() ^ other.who()) & ~writeBit) == 0;
  }
  /// ... doing the same: one record is enough.
  bool repeats(const Record &other) const { return sameThread(other) && write == other.write; }
  int laneOf(uint32_t byte) const { return laneBase + int(byte >> laneShift); }

  uint64_t when() const { return uint64_t(cluster) << 32 | epoch; }
  /// slot, laneBase, and the bits from laneShift on.
  uint32_t who() const {
    uint32_t bits;
    std::memcpy(&bits, &slot, sizeof(bits));
    return bits;
  }
  static constexpr uint32_t writeBit = 1u << 27; ///< in who()
  static constexpr uint32_t laneBaseShift = 16;  ///< in who()
};

/// Records of one cell. Most cells have one.
class Cell {
public:
  Record first;
  std::unique_ptr<std::vector<Record>> more;

  template <typename F> void forEach(F &&f) {
    if (first.mask)
      f(first);
    if (more)
      for (Record &record : *more)
        f(record);
  }
  bool single() const { return !more || more->empty(); }
  /// Whether an access, by Record::when and who, only repeats what the one record says: the same
  /// again, or a read of what the lane itself wrote. The hot path of a kernel that is right.
  bool repeated(uint64_t when, uint32_t who, uint32_t mask, const Record &access) {
    const uint32_t difference = who ^ first.who();
    if ((mask & ~first.mask) || first.when() != when || (difference & ~Record::writeBit) ||
        !single())
      return false;
    if (difference)
      return first.write;
    first.sequence = access.sequence;
    first.pc = access.pc;
    return true;
  }
  /// Remembers an access when nobody else was here since: the first one, the same again, or a read
  /// of what the lane itself wrote (who races with that read races with the write).
  bool rememberOwn(const Record &record) {
    if (!first.mask) {
      first = record;
      return true;
    }
    if (!record.sameThread(first) || !single())
      return false;
    const bool covered = !(record.mask & ~first.mask);
    if (covered && record.write == first.write) {
      first.sequence = record.sequence;
      first.pc = record.pc;
      return true;
    }
    if (covered && first.write)
      return true;
    if (!record.write || (first.mask & ~record.mask))
      return false;
    first = record;
    return true;
  }
  /// Drops the records with an empty mask.
  void compact() {
    if (more)
      std::erase_if(*more, [](const Record &record) { return !record.mask; });
    if (!first.mask && more && !more->empty()) {
      first = more->back();
      more->pop_back();
    }
  }
  size_t size() const { return (first.mask != 0) + (more ? more->size() : 0); }
  void add(const Record &record) {
    if (!first.mask) {
      first = record;
      return;
    }
    if (!more)
      more = std::make_unique<std::vector<Record>>();
    more->push_back(record);
  }
  void clear() {
    first.mask = 0;
    if (more)
      more->clear();
  }
};

/// Shadow of global memory: pages, made when they are first touched.
class GlobalShadow {
public:
  static constexpr uint32_t pageShift = 12;
  struct Page {
    Cell cells[(1u << pageShift) / cellBytes];
  };
  /// The cell of an address; those of the same page follow it.
  Cell &cell(uint64_t address) {
    const uint64_t number = address >> pageShift;
    if (number != lastNumber) {
      std::unique_ptr<Page> &page = pages[number];
      if (!page)
        page = std::make_unique<Page>();
      last = page.get();
      lastNumber = number;
    }
    return last->cells[(address & ((1u << pageShift) - 1)) / cellBytes];
  }
  void clear() {
    pages.clear();
    lastNumber = ~0ull;
  }

private:
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  uint64_t lastNumber = ~0ull;
  Page *last = nullptr;
};

} // namespace fp4::sim::check
