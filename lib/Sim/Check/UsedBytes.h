//===- UsedBytes.h - What many launches did to global memory --------------===//
//
// Launches that nobody waited for may be many, and who meets one of them is told of none in
// particular. What they read and wrote together is two bits for each byte that any of them used.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ReaderSets.h"

namespace fp4::sim::check {

class UsedBytes {
public:
  /// Adds all that `launch` used.
  void add(const PastLaunch &launch) {
    launch.shadow.forEachPage([&](uint64_t number, const GlobalShadow::Page &page) {
      std::unique_ptr<Page> &kept = pages[number];
      if (!kept)
        kept = std::make_unique<Page>();
      for (size_t i = 0; i < std::size(page.cells); ++i)
        add(launch.readers, page.cells[i], (*kept)[i]);
    });
  }

  /// Whether any wrote one of these bytes, or where `reads` count, whether it used one.
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

  void clear() { pages.clear(); }
  size_t numPages() const { return pages.size(); }

private:
  struct Masks {
    uint32_t read = 0, written = 0;
  };
  using Page = std::array<Masks, GlobalShadow::pageCells>;

  static void add(const ReaderSets &readers, const Cell &cell, Masks &masks) {
    const auto keep = [&](const Record &record) {
      (record.write() ? masks.written : masks.read) |= record.mask;
    };
    cell.forEach(keep);
    readers.forEach(cell.readers(), keep);
  }

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
};

} // namespace fp4::sim::check
