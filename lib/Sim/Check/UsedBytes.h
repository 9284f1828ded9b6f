//===- UsedBytes.h - Global memory used by many launches ------------------===//
//
// Many launches may have no wait behind them, and a launch that meets one of them is told of none
// in particular. The accesses of all together take two bits for each byte that any of them used.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ReaderSets.h"

#include <algorithm>
#include <memory>

namespace fp4::sim::check {

class UsedBytes {
public:
  /// Adds all that `launch` used.
  void add(const PastLaunch &launch) { add(launch.shadow, launch.readers); }
  void add(const GlobalShadow &shadow, const ReaderSets &readers) {
    shadow.forEachPage([&](uint64_t number, const GlobalShadow::Page &page) {
      Page &kept = writable(number);
      for (size_t i = 0; i < std::size(page.cells); ++i)
        add(readers, page.cells[i], kept[i]);
    });
  }
  /// Adds the bytes that other launches used.
  void add(const UsedBytes &others) {
    for (const auto &[number, page] : others.pages) {
      Page &kept = writable(number);
      for (size_t i = 0; i < kept.size(); ++i) {
        kept[i].read |= (*page)[i].read;
        kept[i].written |= (*page)[i].written;
      }
    }
  }

  /// Returns true when any launch wrote one of these bytes or, if `reads` count, read one.
  bool used(uint64_t address, uint64_t bytes, bool reads) const {
    for (const uint64_t end = address + bytes; address < end;) {
      const uint32_t from = address % cellBytes;
      const uint32_t part = uint32_t(std::min<uint64_t>(end - address, cellBytes - from));
      const auto page = pages.find(address >> GlobalShadow::pageShift);
      if (page != pages.end()) {
        const Masks &cell = (*page->second)[GlobalShadow::cellOf(address)];
        if ((cell.written | (reads ? cell.read : 0)) & byteMask(from, part))
          return true;
      }
      address += part;
    }
    return false;
  }

  /// Returns true when one of the two wrote in a cell that the other used too, be it other bytes.
  bool meets(const UsedBytes &others) const {
    return std::ranges::any_of(others.pages, [&](const auto &other) {
      const auto page = pages.find(other.first);
      return page != pages.end() &&
             !std::ranges::equal(*page->second, *other.second, [](const Masks &a, const Masks &b) {
               return !(a.written && (b.read | b.written)) && !(b.written && a.read);
             });
    });
  }
  /// Makes each byte used by somebody, in a shadow that has nothing yet.
  void copyTo(GlobalShadow &shadow) const {
    for (const auto &[number, page] : pages)
      for (uint32_t i = 0; i < GlobalShadow::pageCells; ++i) {
        Cell &cell = shadow.cell((number << GlobalShadow::pageShift) + i * cellBytes);
        if ((*page)[i].written)
          cell.add({.who = Record::writeBit, .mask = (*page)[i].written});
        if ((*page)[i].read)
          cell.add({.mask = (*page)[i].read});
      }
  }

  size_t numPages() const { return pages.size(); }

private:
  struct Masks {
    uint32_t read = 0, written = 0;
  };
  using Page = std::array<Masks, GlobalShadow::pageCells>;

  Page &writable(uint64_t number) {
    std::shared_ptr<Page> &page = pages[number];
    if (!page)
      page = std::make_shared<Page>();
    else if (page.use_count() > 1)
      page = std::make_shared<Page>(*page);
    return *page;
  }

  static void add(const ReaderSets &readers, const Cell &cell, Masks &masks) {
    const auto keep = [&](const Record &record) {
      (record.write() ? masks.written : masks.read) |= record.mask;
    };
    cell.forEach(keep);
    readers.forEach(cell.readers(), keep);
  }

  std::unordered_map<uint64_t, std::shared_ptr<Page>> pages; ///< copies share them
};

} // namespace fp4::sim::check
