//===- Shadow.h - The accesses that a later one could race with -----------===//
//
// Memory is shadowed in cells: 32 bytes of shared or global memory, or one column of 32 lanes of
// tensor memory. A cell keeps records, each of one actor at one time, with a mask of the bytes (or
// lanes) concerned. A write replaces what it covers, a read the reads that are known to precede it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fp4::sim::check {

constexpr uint32_t cellBytes = 32;
/// Returns a mask of `count` bytes of a cell.
constexpr uint32_t byteMask(uint32_t from, uint32_t count) {
  return (count >= 32 ? ~0u : (1u << count) - 1) << from;
}
/// laneShift where one lane, or none in particular, accesses all bytes of a cell.
constexpr uint32_t wholeCells = 7;

/// The scope of a strong (not .weak) access; two accesses that include each other do not race.
enum Strength : uint8_t { Weak, StrongCta, StrongCluster, StrongGpu };

/// An access by one actor at one time. Two words tell whether another is the same: they are built
/// and compared whole.
struct Record {
  uint64_t when = 0; ///< cluster << 32 | epoch
  uint32_t who = 0;  ///< slot, lanes and kind: the bits below
  uint32_t mask = 0; ///< of the cell's bytes; 0: no record
  uint32_t pc = 0;
  uint32_t sequence = 0; ///< in the order of events of its cluster

  // Bits of `who`; byte b was accessed by lane laneBase + (b >> laneShift).
  static constexpr uint32_t slotBits = 0xFFFF;
  static constexpr uint32_t laneBaseAt = 16, laneShiftAt = 24, strengthAt = 28;
  static constexpr uint32_t laneFields = 0x7Fu << laneBaseAt | 7u << laneShiftAt;
  static constexpr uint32_t storedLoadBit = 1u << 23;
  static constexpr uint32_t writeBit = 1u << 27, asyncBit = 1u << 30, manyLanesBit = 1u << 31;

  static constexpr uint64_t time(uint32_t cluster, uint32_t epoch) {
    return uint64_t(cluster) << 32 | epoch;
  }
  static constexpr uint32_t laneBits(int laneBase) {
    return (uint32_t(laneBase) & 0x7F) << laneBaseAt;
  }

  uint32_t cluster() const { return uint32_t(when >> 32); }
  uint32_t epoch() const { return uint32_t(when); }
  uint32_t slot() const { return who & slotBits; }
  bool write() const { return who & writeBit; }
  bool async() const { return who & asyncBit; }         ///< by a ticket
  bool manyLanes() const { return who & manyLanesBit; } ///< several accessed the same bytes
  Strength strength() const { return Strength(who >> strengthAt & 3); }
  int laneOf(uint32_t byte) const {
    const int base = int8_t(who >> laneBaseAt << 1) >> 1;
    return base + int(byte >> (who >> laneShiftAt & 7));
  }

  bool sameAgent(const Record &other) const {
    return ((who ^ other.who) & slotBits) == 0 && cluster() == other.cluster();
  }
  /// A load whose instruction matters: only stores use its value.
  bool isStoredLoad() const { return who & storedLoadBit; }
  /// Returns true when a report of a race with `old` also covers this read.
  bool speaksFor(const Record &old) const {
    return !isStoredLoad() || (old.isStoredLoad() && old.pc == pc);
  }
  /// Returns true when both accesses are of one actor's same lanes in one epoch, and of one kind
  /// but for `write`: such accesses are in program order, and one record may stand for both.
  bool sameThread(const Record &other) const {
    return when == other.when && ((who ^ other.who) & ~writeBit) == 0 &&
           (pc == other.pc || !isStoredLoad());
  }
  /// Returns true when the same thread does the same: one record is enough.
  bool repeats(const Record &other) const { return who == other.who && sameThread(other); }
  bool operator==(const Record &) const = default;
};

/// Records of one cell. Most cells have one. An operation accesses cells in runs that had the same
/// history: copies of a cell share all records but the first until one of them changes.
class Cell {
public:
  Record first;

  /// All but `readers`, which may change.
  template <typename F> void change(F &&f) {
    if (first.mask)
      f(first);
    if (more && !more->records.empty())
      for (Record &record : own().records)
        f(record);
  }
  template <typename F> void forEach(F &&f) const {
    if (first.mask)
      f(first);
    if (more)
      for (const Record &record : std::as_const(more->records))
        f(record);
  }
  bool single() const { return !more || (more->records.empty() && !more->readers); }
  uint32_t readers() const { return more ? more->readers : 0; }
  /// Remembers an access when nobody else was here since: the first one, the same again, or a read
  /// of what the lane itself wrote since lanes have met, at `met` (who races with that read races
  /// with the write).
  bool rememberOwn(const Record &record, uint32_t met = 0) {
    if (!first.mask) {
      first = record;
      return true;
    }
    if (!record.sameThread(first) || !single())
      return false; // else the hot path of a kernel that is right
    const bool covered = !(record.mask & ~first.mask);
    if (covered && record.write() == first.write()) {
      first.sequence = record.sequence;
      first.pc = record.pc;
      return true;
    }
    if (covered && first.write())
      return first.sequence >= met;
    if (!record.write() || (first.mask & ~record.mask))
      return false;
    first = record;
    return true;
  }
  /// Drops the records with an empty mask.
  void compact() {
    if (!more)
      return;
    auto &records = own().records;
    std::erase_if(records, [](const Record &record) { return !record.mask; });
    if (!first.mask && !records.empty()) {
      first = records.back();
      records.pop_back();
    }
    if (single())
      more = nullptr; // like a cell that was never shared
  }
  size_t size() const { return (first.mask != 0) + (more ? more->records.size() : 0); }
  void add(const Record &record) {
    if (!first.mask) {
      first = record;
      return;
    }
    own().records.push_back(record);
  }
  /// The oldest read of `more` becomes a member of `readers`.
  template <typename Sets> void moveReader(Sets &sets) {
    auto &[records, readers] = own();
    auto oldest = std::find_if(records.begin(), records.end(),
                               [](const Record &record) { return !record.write(); });
    readers = sets.add(readers, *oldest);
    records.erase(oldest);
  }
  /// The readers in a set without the bytes of `mask`.
  template <typename Sets> void dropReaders(Sets &sets, uint32_t mask) {
    if (readers())
      own().readers = sets.without(readers(), mask);
  }
  void clear() {
    first.mask = 0;
    more = nullptr;
  }
  /// Returns true for cells with the same history; others may have the same records too.
  bool isCopyOf(const Cell &other) const { return more == other.more && first == other.first; }

private:
  struct More {
    std::vector<Record> records;
    uint32_t readers = 0; ///< of global memory: a set of ReaderSets
  };
  /// Returns records that no other cell has, a copy where they are shared.
  More &own() {
    constexpr size_t room = 3; // most cells have no more
    if (more && more.use_count() == 1)
      return *more;
    auto mine = std::make_shared<More>();
    mine->records.reserve(more ? more->records.size() + 1 : room);
    if (more) {
      mine->records.insert(mine->records.end(), more->records.begin(), more->records.end());
      mine->readers = more->readers;
    }
    more = std::move(mine);
    return *more;
  }

  std::shared_ptr<More> more;
};

/// Changes that an operation made to cells. Cells of the same history change alike, so that their
/// records are compared once. A line of a swizzled tile has cells of several slabs of K, whose
/// histories differ.
class Changes {
public:
  /// Makes the same change to a cell with the history of an earlier one; false for others.
  bool repeat(Cell &cell, uint32_t mask) const {
    for (const Made &made : kept)
      if (made.mask == mask && cell.isCopyOf(made.before)) {
        cell = made.after;
        return true;
      }
    return false;
  }
  /// Makes and keeps a change. One that `make` does not call repeatable is forgotten: each cell has
  /// reports of its own.
  template <typename Make> void note(Cell &cell, uint32_t mask, const Make &make) {
    Made &made = kept[next++ % kept.size()];
    made.mask = 0;
    made.before = cell;
    if (make()) {
      made.mask = mask;
      made.after = cell;
    }
  }
  /// Another operation begins, or the same one knows more.
  void clear() {
    for (Made &made : kept)
      made.mask = 0;
  }

private:
  struct Made {
    uint32_t mask = 0; ///< 0: there is none
    Cell before, after;
  };
  std::array<Made, 8> kept;
  unsigned next = 0;
};

/// Shadow of global memory: pages, made when they are first touched.
class GlobalShadow {
public:
  static constexpr uint32_t pageShift = 12, pageCells = (1u << pageShift) / cellBytes;
  struct Page {
    Cell cells[pageCells];
  };
  /// The number in its page of the cell of an address.
  static uint32_t cellOf(uint64_t address) {
    return uint32_t(address & ((1u << pageShift) - 1)) / cellBytes;
  }
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
    return last->cells[cellOf(address)];
  }
  /// Returns true when body(cell, mask) is true for a part of these bytes.
  template <typename Body> bool any(uint64_t address, uint64_t bytes, const Body &body) const {
    for (const uint64_t end = address + bytes; address < end;) {
      const uint32_t from = address % cellBytes;
      const uint32_t part = uint32_t(std::min<uint64_t>(end - address, cellBytes - from));
      const auto page = pages.find(address >> pageShift);
      if (page != pages.end() && body(page->second->cells[cellOf(address)], byteMask(from, part)))
        return true;
      address += part;
    }
    return false;
  }
  template <typename Body> void forEachPage(const Body &body) const {
    for (const auto &[number, page] : pages)
      body(number, *page);
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

/// Reads that a warp lately made of cells that others use too. To read again in the same epoch,
/// with nothing between that orders lanes, changes nothing: who races with it raced with the first.
class ReadFilter {
public:
  /// Returns true when `read` repeats an earlier one since `since`, and records it.
  bool repeats(uint64_t cell, const Record &read, uint64_t since) {
    Entry &entry = entries[(cell / cellBytes ^ read.slot() * spread) % entries.size()];
    const bool same = entry.cell == cell && entry.when == read.when && entry.who == read.who &&
                      entry.since == since && (entry.pc == read.pc || !read.isStoredLoad());
    if (same && !(read.mask & ~entry.mask))
      return true;
    entry = {cell, read.when, read.who, read.mask | (same ? entry.mask : 0), read.pc, since};
    return false;
  }

private:
  static constexpr uint32_t spread = 257; ///< warps that read the same do not meet
  struct Entry {
    uint64_t cell = ~0ull, when = 0;
    uint32_t who = 0, mask = 0, pc = 0;
    uint64_t since = 0; ///< the number of the last event between
  };
  std::array<Entry, 4096> entries;
};

} // namespace fp4::sim::check
