//===- ReaderSets.h - Readers of memory that many warps read --------------===//
//
// Weights, tables and tiles of global memory are read by many warps, in runs of cells that the same
// warps read one after the other. Such cells share one list: lists are immutable, two that are
// equal are the same, and adding a reader to a list gives the number of another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Shadow.h"

namespace fp4::sim::check {

class ReaderSets {
public:
  using Set = uint32_t; ///< 0 is the empty one

  /// `set` and `reader`; what the reader's actor read before is forgotten where it is at hand.
  Set add(Set set, Record reader) {
    if (nodes[set].size >= keptPerCell)
      return set;
    reader.sequence = 0; // lanes of one warp are not compared through a set
    reader.who &= ~(Record::laneFields | Record::manyLanesBit);
    Record newer[searched];
    Set at = set;
    for (unsigned n = 0; n < searched && at; ++n, at = nodes[at].rest) {
      const Record &old = nodes[at].record;
      if (old.repeats(reader) && !(reader.mask & ~old.mask))
        return set;
      if (old.sameAgent(reader) && reader.speaksFor(old) && !(old.mask & ~reader.mask)) {
        set = nodes[at].rest;
        while (n)
          set = cons(set, newer[--n]);
        break;
      }
      newer[n] = old;
    }
    return cons(set, reader);
  }

  /// Without the bytes of `mask`, which were written.
  Set without(Set set, uint32_t mask) {
    Set result = 0;
    if (mask == ~0u)
      return result;
    forEach(set, [&](Record record) {
      record.mask &= ~mask;
      if (record.mask)
        result = cons(result, record);
    });
    return result;
  }

  template <typename F> void forEach(Set set, F &&f) const {
    for (; set; set = nodes[set].rest)
      f(Record(nodes[set].record));
  }

  void clear() {
    nodes.resize(1);
    table.clear();
  }

private:
  static constexpr unsigned searched = 8;
  static constexpr uint32_t keptPerCell = 64; ///< beyond, readers are forgotten
  static constexpr size_t kept = 1 << 22;     ///< readers of all cells

  struct Node {
    Record record;
    Set rest = 0;
    uint32_t size = 0;
  };

  static size_t hash(Set rest, const Record &record) {
    uint64_t h = (record.when ^ uint64_t(rest) << 40 ^ rest) * 0x9E3779B97F4A7C15ull;
    h = (h ^ h >> 32 ^ record.who ^ uint64_t(record.mask) << 32 ^ record.pc) *
        0xD6E8FEB86659FD93ull;
    return size_t(h ^ h >> 32);
  }
  static bool same(const Record &a, const Record &b) {
    return a.repeats(b) && a.mask == b.mask && a.pc == b.pc;
  }

  /// The list that begins with `record` and goes on with `rest`.
  Set cons(Set rest, const Record &record) {
    if (2 * nodes.size() >= table.size())
      grow();
    size_t place = hash(rest, record) & (table.size() - 1);
    for (; table[place]; place = (place + 1) & (table.size() - 1)) {
      const Node &node = nodes[table[place]];
      if (node.rest == rest && same(node.record, record))
        return table[place];
    }
    if (nodes.size() >= kept)
      return rest;
    table[place] = Set(nodes.size());
    nodes.push_back({record, rest, nodes[rest].size + 1});
    return table[place];
  }

  void grow() {
    table.assign(std::max<size_t>(1024, 4 * nodes.size()), 0);
    table.resize(std::bit_ceil(table.size()));
    for (Set set = 1; set < nodes.size(); ++set) {
      size_t place = hash(nodes[set].rest, nodes[set].record) & (table.size() - 1);
      while (table[place])
        place = (place + 1) & (table.size() - 1);
      table[place] = set;
    }
  }

  std::vector<Node> nodes{1};
  std::vector<Set> table; ///< of nodes, open addressing; a power of two
};

/// Accesses of a launch to global memory, for launches that may run beside its end.
struct PastLaunch {
  GlobalShadow shadow;
  ReaderSets readers;
  std::string kernel;

  /// Returns true when the launch wrote any of these bytes or, if `reads` count, read any.
  bool used(uint64_t address, uint64_t bytes, bool reads) const {
    return shadow.any(address, bytes, [&](Cell &cell, uint32_t mask) {
      bool found = false;
      const auto compare = [&](const Record &old) {
        found |= (reads || old.write()) && (old.mask & mask);
      };
      cell.forEach(compare);
      if (reads)
        readers.forEach(cell.readers(), compare);
      return found;
    });
  }
};

} // namespace fp4::sim::check
