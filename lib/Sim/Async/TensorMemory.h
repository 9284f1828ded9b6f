//===- TensorMemory.h - Tensor memory of one CTA --------------------------===//
//
// PTX ISA, "Tensor Memory": 128 TMEM lanes of 512 columns of 32 bits, given out by tcgen05.alloc in
// units of 32 columns. Each CTA has cells of its own, though other CTAs of its SM may have some of
// the columns (SmColumns.h).
//
// Cells are stored row major, so that an accumulator row is contiguous. State is kept per granule
// of one column and 16 TMEM lanes, the smallest piece any tcgen05 operation but cp.4x256b writes
// whole: never written, written, or owned by a ticket that has still to write it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/SmColumns.h"
#include "fp4/ISA/TmemLayout.h"
#include "fp4/Sim/Actor.h"
#include "fp4/Support/Error.h"
#include <memory>
#include <optional>
#include <vector>

namespace fp4::sim {

/// A rectangle of cells.
struct TmemRange {
  uint32_t lane = 0, lanes = 0;
  uint32_t column = 0, columns = 0;
};

class TensorMemory {
public:
  static constexpr uint32_t pitch = hw::tmemMaxColumnCount; ///< words between TMEM lanes

  struct Allocation {
    uint32_t column = 0, columns = 0;
    Actor actor;
    CodePoint at;
    uint32_t ctaGroup = 1;
    bool exclusive = false; ///< true when no other allocation may live beside it
  };

  /// Columns of the target: 512, and more that only an exclusive allocation reaches.
  void setColumns(uint32_t ofTarget) { columnCount = ofTarget; }
  /// The CTA, which is `owner`, shares columns with others; `first`: the first CTA of its pair.
  void share(SmColumns &columns, const ColumnsOwner &owner, const ColumnsOwner &first) {
    sm = &columns;
    self = owner;
    firstOfPair = first;
  }
  bool shared() const { return sm; }

  // --- Allocation (PTX ISA, "tcgen05.alloc, tcgen05.dealloc, ...") ------------------------------
  /// First column of a new allocation, nothing when not enough contiguous columns are free now.
  /// Fails on a bad size, a size above the previous one, or after relinquish.
  Expected<std::optional<uint32_t>> allocate(const Allocation &request);
  /// Returns true when the allocation would succeed now.
  bool available(const Allocation &request) const {
    return sm ? sm->available(callOf(request))
              : findFree(request.columns, request.exclusive).has_value();
  }
  Status deallocate(uint32_t address, uint32_t columns, uint32_t ctaGroup, bool exclusive = false);
  Status relinquish();
  const std::vector<Allocation> &allocations() const { return live; }
  std::string describeAllocations() const;
  /// The columns that other CTAs of the SM have, if any.
  std::string describeOthers(uint32_t ctaGroup) const {
    return sm ? sm->describeOthers(ownerOf(ctaGroup)) : "";
  }
  /// The CTAs that wait for columns which this one has, if any.
  std::string describeWaiters() const;

  // --- Cells ------------------------------------------------------------------------------------
  /// Storage of a cell, rows `pitch` words apart. Allocated on first use.
  uint32_t *cell(uint32_t lane, uint32_t column) { return storage() + lane * pitch + column; }

  /// Fails unless the range lies in TMEM lanes 0..127 and in one live allocation.
  Status checkAllocated(const TmemRange &range) const;

  void poison(const TmemRange &range, uint64_t ticket);
  /// The ticket wrote the range: valid, and no longer owned unless a later ticket owns it.
  void written(const TmemRange &range, uint64_t ticket);

  struct BadCell {
    uint32_t lane = 0, column = 0; ///< first of the granule
    uint64_t ticket = 0;           ///< ticket that still has to write the granule; 0: never written
  };
  /// The first granule of the range that `reader` must not read: never written, or owned by a
  /// ticket issued before it. A granule that a later ticket will overwrite still holds the old
  /// data.
  std::optional<BadCell> firstBad(const TmemRange &range, uint64_t reader) const;
  /// Returns true when nothing in the range was ever written, and no ticket in flight will write
  /// there.
  bool untouched(const TmemRange &range) const;
  /// The tickets that still have to write into the range, without repetition.
  std::vector<uint64_t> owners(const TmemRange &range) const;

private:
  static constexpr uint32_t lanesPerGranule = 16;
  static constexpr uint32_t granuleRows = hw::tmemLaneCount / lanesPerGranule;
  /// Owner of a granule that was written and that no ticket in flight will write.
  static constexpr uint64_t validOwner = ~uint64_t(0);

  uint32_t *storage();
  std::optional<uint32_t> findFree(uint32_t columns, bool exclusive) const;
  Status checkSize(const Allocation &request) const;
  /// This CTA, or the first of its pair.
  const ColumnsOwner &ownerOf(uint32_t ctaGroup) const {
    return ctaGroup == 1 ? self : firstOfPair;
  }
  ColumnsCall callOf(const Allocation &request) const {
    return {ownerOf(request.ctaGroup), made, request.columns, request.exclusive, request.at.line};
  }
  template <typename F> void forEachGranule(const TmemRange &range, F &&f) const;

  std::unique_ptr<uint32_t[]> cells;
  /// Owner of each granule, at column * granuleRows + lane / 16: 0, validOwner or a ticket.
  std::vector<uint64_t> state;
  std::vector<Allocation> live;
  std::optional<uint32_t> previousSize;
  uint32_t made = 0;       ///< allocations that the CTA has made
  SmColumns *sm = nullptr; ///< null: the CTA is alone on its SM
  ColumnsOwner self, firstOfPair;
  bool relinquished = false;
  uint32_t columnCount = hw::tmemColumnCount;
};

} // namespace fp4::sim
