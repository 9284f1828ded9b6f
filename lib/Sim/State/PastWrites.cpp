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
  if (!isNew)
    return;
  const Allocation &owner = *memory.find(address, bytes);
  const std::byte *now = owner.bytes.get() + (address - owner.address);
  block->second.before.assign(now, now + bytes);
  owners.try_emplace(owner.address, owner.name);
}

/// Returns the bytes of a block, or null if its memory was freed: another allocation may be there.
std::byte *WriteJournal::find(uint64_t address, const Block &block) const {
  const Allocation *owner = memory.find(address, block.before.size());
  const auto known = owner ? owners.find(owner->address) : owners.end();
  return known != owners.end() && known->second == owner->name
             ? owner->bytes.get() + (address - owner->address)
             : nullptr;
}

void WriteJournal::close() {
  for (auto &[address, block] : blocks)
    if (const std::byte *now = find(address, block))
      block.after.assign(now, now + block.before.size());
}

void WriteJournal::undo() {
  for (auto &[address, block] : blocks) {
    std::byte *now = find(address, block);
    block.undone.assign(block.after.size(), false);
    for (size_t i = 0; now && i < block.after.size(); ++i)
      if (block.before[i] != block.after[i] && now[i] == block.after[i]) {
        now[i] = block.before[i];
        block.undone[i] = true;
      }
  }
}

void WriteJournal::redo(WriteJournal *beside) {
  for (auto &[address, block] : blocks) {
    std::byte *now = find(address, block);
    Block *other = nullptr;
    if (beside)
      if (const auto found = beside->blocks.find(address); found != beside->blocks.end())
        other = &found->second;
    for (size_t i = 0; now && i < block.undone.size(); ++i) {
      if (!block.undone[i])
        continue;
      now[i] = block.after[i];
      if (other)
        other->before[i] = block.after[i];
    }
    block.undone.clear();
  }
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
