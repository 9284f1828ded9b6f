//===- TensorMemory.cpp - Tensor memory of one CTA ------------------------===//
#include "TensorMemory.h"
#include "Sim/Async/Fail.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

bool legalSize(uint32_t columns) {
  return std::has_single_bit(columns) && columns >= hw::tmemMinAllocColumns &&
         columns <= hw::tmemColumnCount;
}

} // namespace

uint32_t *TensorMemory::storage() {
  if (!cells) {
    cells = std::make_unique<uint32_t[]>(hw::tmemLaneCount * pitch);
    state.assign(pitch * granuleRows, 0);
  }
  return cells.get();
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

std::optional<uint32_t> TensorMemory::findFree(uint32_t columns, bool exclusive) const {
  if (exclusive)
    return live.empty() ? std::optional(0u) : std::nullopt;
  if (!live.empty() && live.front().exclusive)
    return std::nullopt;
  for (uint32_t first = 0; first + columns <= hw::tmemColumnCount; first += 32) {
    const bool free = std::none_of(live.begin(), live.end(), [&](const Allocation &a) {
      return a.column < first + columns && first < a.column + a.columns;
    });
    if (free)
      return first;
  }
  return std::nullopt;
}

std::string TensorMemory::describeAllocations() const {
  std::string text;
  for (const Allocation &a : live)
    text += fmt::format("{}columns {}..{} by warp {} at line {}", text.empty() ? "" : "; ",
                        a.column, a.column + a.columns - 1, a.actor.warp, a.at.line);
  return text.empty() ? "nothing is allocated" : text;
}

std::string TensorMemory::describeWaiters() const {
  if (!sm || live.empty() || ownerOf(live.front().ctaGroup).rank != self.rank)
    return "";
  return sm->describeWaiters(self);
}

Status TensorMemory::checkSize(const Allocation &request) const {
  const uint32_t columns = request.columns;
  if (!request.exclusive && !legalSize(columns))
    return fail(fmt::format("tcgen05.alloc expects a power of two of 32 to 512 columns, but got {}",
                            columns));
  if (request.exclusive && (columns % 32 || !columns || columns > columnCount))
    return fail(fmt::format("tcgen05.alloc.exclusive expects a multiple of 32 up to {} columns, "
                            "but got {}",
                            columnCount, columns));
  return {};
}

Expected<std::optional<uint32_t>> TensorMemory::allocate(const Allocation &request) {
  FP4_TRY(checkSize(request));
  if (relinquished)
    return fail("tcgen05.alloc after the CTA executed tcgen05.relinquish_alloc_permit");
  if (previousSize && request.columns > *previousSize)
    return fail(fmt::format("tcgen05.alloc of {} columns after one of {}: the sizes of a CTA's "
                            "allocations must not increase",
                            request.columns, *previousSize));
  auto column = sm ? sm->take(callOf(request)) : findFree(request.columns, request.exclusive);
  if (!column)
    return column;
  ++made;
  previousSize = request.columns;
  live.push_back(request);
  live.back().column = *column;
  storage();
  const TmemRange range{0, hw::tmemLaneCount, *column, request.columns};
  forEachGranule(range, [&](size_t index) { state[index] = 0; });
  return column;
}

Status TensorMemory::deallocate(uint32_t address, uint32_t columns, uint32_t ctaGroup,
                                bool exclusive) {
  const auto at = hw::TmemAddress::unpack(address);
  auto it = std::find_if(live.begin(), live.end(), [&](const Allocation &a) {
    return a.column == at.column && at.lane == 0;
  });
  if (it == live.end())
    return fail(
        fmt::format("tcgen05.dealloc of {:#x}, which tcgen05.alloc did not return", address),
        describeAllocations());
  if (it->columns != columns)
    return fail(fmt::format("tcgen05.dealloc of {} columns at {:#x}, but {} were allocated there",
                            columns, address, it->columns));
  if (it->ctaGroup != ctaGroup)
    return fail(fmt::format("tcgen05.dealloc.cta_group::{} of an allocation of cta_group::{}",
                            ctaGroup, it->ctaGroup));
  if (it->exclusive != exclusive)
    return fail(fmt::format("tcgen05.dealloc {} .exclusive of an allocation {} it",
                            exclusive ? "with" : "without", it->exclusive ? "with" : "without"));
  const TmemRange range{0, hw::tmemLaneCount, it->column, it->columns};
  if (const auto pending = owners(range); !pending.empty())
    return fail(fmt::format("tcgen05.dealloc of columns that ticket {} has still to write",
                            pending.front()),
                "wait for its completion first");
  if (sm)
    sm->give(ownerOf(ctaGroup), it->column, ctaGroup);
  live.erase(it);
  return {};
}

Status TensorMemory::relinquish() {
  relinquished = true;
  return {};
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

template <typename F> void TensorMemory::forEachGranule(const TmemRange &range, F &&f) const {
  const uint32_t first = range.lane / lanesPerGranule;
  const uint32_t last = (range.lane + range.lanes - 1) / lanesPerGranule;
  for (uint32_t column = range.column; column < range.column + range.columns; ++column)
    for (uint32_t row = first; row <= last; ++row)
      f(size_t(column) * granuleRows + row);
}

Status TensorMemory::checkAllocated(const TmemRange &range) const {
  // A debugger asks for any range: sums of 32 bits would wrap.
  const uint64_t lanesEnd = uint64_t(range.lane) + range.lanes;
  const uint64_t columnsEnd = uint64_t(range.column) + range.columns;
  if (lanesEnd > hw::tmemLaneCount)
    return fail(fmt::format("TMEM lanes {}..{} do not exist: there are {}", range.lane,
                            lanesEnd - 1, hw::tmemLaneCount));
  for (const Allocation &a : live)
    if (a.column <= range.column && columnsEnd <= a.column + a.columns)
      return {};
  return fail(fmt::format("tensor memory columns {}..{} are not inside one allocation",
                          range.column, columnsEnd - 1),
              describeAllocations());
}

void TensorMemory::poison(const TmemRange &range, uint64_t ticket) {
  forEachGranule(range, [&](size_t index) { state[index] = ticket; });
}

void TensorMemory::written(const TmemRange &range, uint64_t ticket) {
  forEachGranule(range, [&](size_t index) {
    if (state[index] == 0 || state[index] == ticket)
      state[index] = validOwner;
  });
}

std::optional<TensorMemory::BadCell> TensorMemory::firstBad(const TmemRange &range,
                                                            uint64_t reader) const {
  const uint32_t first = range.lane / lanesPerGranule;
  const uint32_t last = (range.lane + range.lanes - 1) / lanesPerGranule;
  for (uint32_t column = range.column; column < range.column + range.columns; ++column)
    for (uint32_t row = first; row <= last; ++row)
      if (const uint64_t owner = state[size_t(column) * granuleRows + row]; owner < reader)
        return BadCell{row * lanesPerGranule, column, owner};
  return std::nullopt;
}

bool TensorMemory::untouched(const TmemRange &range) const {
  bool none = true;
  forEachGranule(range, [&](size_t index) { none &= state[index] == 0; });
  return none;
}

std::vector<uint64_t> TensorMemory::owners(const TmemRange &range) const {
  std::vector<uint64_t> found;
  forEachGranule(range, [&](size_t index) {
    const uint64_t owner = state[index];
    if (owner && owner != validOwner && std::find(found.begin(), found.end(), owner) == found.end())
      found.push_back(owner);
  });
  return found;
}

} // namespace fp4::sim
