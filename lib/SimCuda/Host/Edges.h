//===- Edges.h - Edges to a node of a graph -------------------------------===//
#pragma once

#include "Abi.h"
#include <algorithm>
#include <span>
#include <vector>

namespace fp4::simcuda {

struct GraphNode;

/// Nodes, and for each the data of the edge from it, side by side as CUDA hands them out.
class Edges {
public:
  Edges() = default;
  /// `data` may be null: ordinary edges.
  Edges(std::span<GraphNode *const> from, const EdgeData *data = nullptr) {
    for (size_t i = 0; i < from.size(); ++i)
      add(from[i], data ? data[i] : EdgeData{});
  }

  void add(GraphNode *node, EdgeData data = {}) {
    from.push_back(node);
    kinds.push_back(data);
  }
  void add(const Edges &more) {
    from.insert(from.end(), more.from.begin(), more.from.end());
    kinds.insert(kinds.end(), more.kinds.begin(), more.kinds.end());
  }
  void remove(const GraphNode *node) {
    for (size_t i = from.size(); i-- > 0;)
      if (from[i] == node) {
        from.erase(from.begin() + std::ptrdiff_t(i));
        kinds.erase(kinds.begin() + std::ptrdiff_t(i));
      }
  }
  void clear() { *this = {}; }

  size_t size() const { return from.size(); }
  bool empty() const { return from.empty(); }
  const std::vector<GraphNode *> &nodes() const { return from; }
  const std::vector<EdgeData> &data() const { return kinds; }
  auto begin() const { return from.begin(); }
  auto end() const { return from.end(); }
  bool contains(const GraphNode *node) const { return std::ranges::count(from, node) > 0; }
  bool isProgrammatic(size_t index) const { return kinds[index].type == programmaticEdge; }

private:
  std::vector<GraphNode *> from;
  std::vector<EdgeData> kinds;
};

} // namespace fp4::simcuda
