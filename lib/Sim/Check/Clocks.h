//===- Clocks.h - What an agent knows to have happened --------------------===//
//
// A vector clock: for every warp of a cluster an epoch, for every ticket whether it is done. Warps
// begin at epoch 1 and advance whenever others may learn what they did; a ticket is one event.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fp4::sim {

class VectorClock {
public:
  uint32_t warp(uint32_t index) const { return index < epochs.size() ? epochs[index] : 0; }
  void setWarp(uint32_t index, uint32_t epoch) {
    if (index >= epochs.size())
      epochs.resize(index + 1);
    epochs[index] = epoch;
  }
  bool ticket(uint64_t id) const {
    return id / 64 < done.size() && (done[id / 64] >> (id % 64) & 1);
  }
  void addTicket(uint64_t id) {
    if (id / 64 >= done.size())
      done.resize(id / 64 + 1);
    done[id / 64] |= 1ull << (id % 64);
  }
  void join(const VectorClock &other) {
    if (epochs.size() < other.epochs.size())
      epochs.resize(other.epochs.size());
    for (size_t i = 0; i < other.epochs.size(); ++i)
      epochs[i] = std::max(epochs[i], other.epochs[i]);
    if (done.size() < other.done.size())
      done.resize(other.done.size());
    for (size_t i = 0; i < other.done.size(); ++i)
      done[i] |= other.done[i];
  }
  bool empty() const { return epochs.empty() && done.empty(); }

private:
  std::vector<uint32_t> epochs; ///< by warp index in the cluster
  std::vector<uint64_t> done;   ///< bit set by ticket id
};

/// The clocks that travel together.
struct Clocks {
  VectorClock generic; ///< visible to generic-proxy accesses
  VectorClock async;   ///< visible to the async proxy: follows `generic` at proxy fences
  VectorClock loose;   ///< as if nothing were .relaxed or out of scope; only words depend on it

  void join(const Clocks &other) {
    generic.join(other.generic);
    async.join(other.async);
    loose.join(other.loose);
  }
  void joinLoose(const Clocks &other) { loose.join(other.loose); }
  void addTicket(uint64_t id) {
    generic.addTicket(id);
    async.addTicket(id);
    loose.addTicket(id);
  }
};

} // namespace fp4::sim
