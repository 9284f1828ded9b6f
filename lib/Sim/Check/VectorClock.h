//===- VectorClock.h - An epoch for every slot ----------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fp4::sim::check {

class VectorClock {
public:
  uint32_t at(uint32_t slot) const { return slot < epochs.size() ? epochs[slot] : 0; }
  void raise(uint32_t slot, uint32_t epoch) {
    if (slot >= epochs.size())
      epochs.resize(slot + 1);
    epochs[slot] = std::max(epochs[slot], epoch);
  }
  /// Knows less of a slot than before.
  void lower(uint32_t slot, uint32_t epoch) {
    if (slot < epochs.size())
      epochs[slot] = std::min(epochs[slot], epoch);
  }
  void join(const VectorClock &other) {
    if (epochs.size() < other.epochs.size())
      epochs.resize(other.epochs.size());
    uint32_t *mine = epochs.data();
    const uint32_t *theirs = other.epochs.data();
    for (size_t i = 0, end = other.epochs.size(); i < end; ++i)
      mine[i] = mine[i] < theirs[i] ? theirs[i] : mine[i];
  }
  /// Returns whether a join with `other` changes nothing.
  bool covers(const VectorClock &other) const {
    for (uint32_t slot = 0; slot < other.epochs.size(); ++slot)
      if (at(slot) < other.epochs[slot])
        return false;
    return true;
  }
  /// Knows nothing, and keeps its memory.
  void clear() { epochs.clear(); }
  bool empty() const { return epochs.empty(); }
  bool operator==(const VectorClock &) const = default;

private:
  std::vector<uint32_t> epochs;
};

} // namespace fp4::sim::check
