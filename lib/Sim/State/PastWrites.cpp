//===- PastWrites.cpp - Writes of launches that may still run -------------===//
#include "PastWrites.h"
#include <algorithm>
#include <mutex>

using namespace fp4::sim;

static constexpr uint64_t kBlock = 512; ///< bytes; allocations are aligned to as many

void WriteJournal::note(uint64_t address, uint64_t bytes) {
  const Allocation *allocation = memory.find(address, bytes);
  for (const uint64_t end = address + bytes; allocation && address < end;) {
    const uint64_t start = std::max(address / kBlock * kBlock, allocation->address);
    const uint64_t next =
        std::min(address / kBlock * kBlock + kBlock, allocation->address + allocation->size);
    keep(start, next - start);
    address = next;
  }
}

void WriteJournal::keep(uint64_t address, uint64_t bytes) {
  {
    std::shared_lock guard(lock);
    if (blocks.contains(address))
      return;
  }
  std::unique_lock guard(lock);
  const auto [block, isNew] = blocks.try_emplace(address);
  const std::byte *now = memory.translate(address, bytes);
  if (isNew)
    block->second.before.assign(now, now + bytes);
}

void WriteJournal::close() {
  for (auto &[address, block] : blocks)
    if (const std::byte *now = memory.translate(address, block.before.size()))
      block.after.assign(now, now + block.before.size());
}

/// Calls f(address of the block, byte in it, storage, before, after) for each byte that the launch
/// changed.
template <typename F> void WriteJournal::forEachChange(const F &f) const {
  for (const auto &[address, block] : blocks)
    if (std::byte *now = memory.translate(address, block.before.size()))
      for (size_t i = 0; i < block.after.size(); ++i)
        if (block.before[i] != block.after[i])
          f(address, i, now[i], block.before[i], block.after[i]);
}

void WriteJournal::undo() const {
  forEachChange([](uint64_t, size_t, std::byte &now, std::byte before, std::byte after) {
    if (now == after)
      now = before;
  });
}

void WriteJournal::redo(WriteJournal *beside) const {
  forEachChange([&](uint64_t address, size_t i, std::byte &now, std::byte, std::byte after) {
    now = after;
    if (!beside)
      return;
    if (const auto block = beside->blocks.find(address); block != beside->blocks.end())
      block->second.before[i] = after;
  });
}

/// Adds what is not there yet, in the order of the launches.
static void unite(Journals &to, const Journals &from) {
  for (const auto &journal : from)
    if (std::ranges::find(to, journal) == to.end())
      to.push_back(journal);
}

PastWrites::Beside PastWrites::besideOf(const Dependence &dependence) {
  std::erase_if(kept, [](const Kept &launch) { return launch.mark.expired(); });
  dependents += !dependence.on.empty();
  const auto depends = [&](const Kept &launch) {
    return std::ranges::count(dependence.on, launch.mark.lock(), &Prerequisite::launch) > 0;
  };
  Beside beside;
  for (const Kept &launch : kept)
    if (depends(launch)) {
      beside.waited.push_back(launch.journal);
      unite(beside.others, launch.running);
    }
  std::erase_if(beside.others, [&](const auto &journal) {
    return std::ranges::count(beside.waited, journal) > 0;
  });
  return beside;
}

void PastWrites::Beside::undo() const {
  for (const Journals *journals : {&waited, &others}) // awaited launches are the later ones
    for (size_t i = journals->size(); i-- > 0;)
      (*journals)[i]->undo();
}

void PastWrites::keep(const LaunchRef &mark, std::shared_ptr<WriteJournal> journal, Beside beside,
                      bool awaited) {
  Journals running = std::move(beside.others);
  if (!awaited)
    unite(running, beside.waited);
  kept.push_back({mark, std::move(journal), std::move(running)});
}
