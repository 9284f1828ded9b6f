//===- Graphs.cpp - Graphs ------------------------------------------------===//
#include "Graphs.h"
#include "LaunchAttributes.h"
#include "Streams.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <unordered_map>

using namespace fp4;
using namespace fp4::simcuda;

GraphNode *Graph::add(Edges after, Work work) {
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->work = std::move(work);
  node->after = std::move(after);
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

void Graph::remove(GraphNode *node) {
  for (auto &other : nodes)
    other->after.remove(node);
  std::erase_if(nodes, [&](const auto &each) { return each.get() == node; });
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::unordered_map<const GraphNode *, GraphNode *> twin;
  for (const auto &node : nodes) {
    GraphNode *made = copy->add({}, node->work);
    made->original = node.get();
    twin[node.get()] = made;
  }
  for (const auto &node : nodes)
    for (size_t i = 0; i < node->after.size(); ++i)
      twin[node.get()]->after.add(twin[node->after.nodes()[i]], node->after.data()[i]);
  return copy;
}

GraphNode *Graph::find(const GraphNode *original) const {
  for (const auto &node : nodes)
    if (node->original == original || node.get() == original)
      return node.get();
  return nullptr;
}

std::vector<GraphNode *> Graph::ordered() const {
  std::vector<GraphNode *> order;
  std::set<const GraphNode *> done;
  for (bool progress = true; progress && order.size() < nodes.size();) {
    progress = false;
    for (const auto &node : nodes) {
      const bool ready = std::all_of(node->after.begin(), node->after.end(),
                                     [&](GraphNode *before) { return done.count(before); });
      if (!ready || !done.insert(node.get()).second)
        continue;
      order.push_back(node.get());
      progress = true;
    }
  }
  if (order.size() < nodes.size())
    order.clear();
  return order;
}

int fp4::simcuda::nodeType(const Work &work) {
  // Numbers of node types in the order of Work's alternatives.
  static constexpr int numbers[] = {5, 0, 1, 2, 3, 7, 6, 10, 11, 4};
  static_assert(std::size(numbers) == std::variant_size_v<Work>);
  return numbers[work.index()];
}

bool fp4::simcuda::updateGraph(Graph &updated, const Graph &graph) {
  const auto sameNode = [](const auto &a, const auto &b) {
    return a->work.index() == b->work.index() && a->after.data() == b->after.data();
  };
  if (!std::equal(updated.nodes.begin(), updated.nodes.end(), graph.nodes.begin(),
                  graph.nodes.end(), sameNode))
    return false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    updated.nodes[i]->work = graph.nodes[i]->work;
    updated.nodes[i]->original = graph.nodes[i].get();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Doing the work
//===----------------------------------------------------------------------===//

namespace {

/// The launches of one run of a graph that others depend on by programmatic edges.
class GraphRun {
public:
  explicit GraphRun(const Graph &graph) {
    for (const auto &node : graph.nodes)
      for (size_t i = 0; i < node->after.size(); ++i)
        if (node->after.isProgrammatic(i))
          marks[node->after.nodes()[i]];
  }
  Code perform(const char *function, const GraphNode &node) {
    const auto *kernel = std::get_if<KernelWork>(&node.work);
    return kernel ? Context::get().launch(function, *kernel, dependenceOf(node, *kernel))
                  : simcuda::perform(function, node.work);
  }

private:
  sim::Dependence dependenceOf(const GraphNode &node, const KernelWork &work);
  std::unordered_map<const GraphNode *, sim::LaunchRef> marks;
};

/// Finds the nodes that have ended when `node` begins: all in front of those it waits for, and all
/// that had ended when those began beside which it may run.
void findEnded(const GraphNode &node, std::set<const GraphNode *> &ended,
               std::set<const GraphNode *> &begun) {
  std::vector<const GraphNode *> open;
  for (size_t i = 0; i < node.after.size(); ++i) {
    const GraphNode *before = node.after.nodes()[i];
    if (!node.after.isProgrammatic(i))
      open.push_back(before);
    else if (begun.insert(before).second)
      findEnded(*before, ended, begun);
  }
  while (!open.empty()) {
    const GraphNode *before = open.back();
    open.pop_back();
    if (ended.insert(before).second)
      open.insert(open.end(), before->after.begin(), before->after.end());
  }
}

sim::Dependence GraphRun::dependenceOf(const GraphNode &node, const KernelWork &work) {
  sim::Dependence made;
  std::set<const GraphNode *> ended, begun;
  if (node.after.size() > 1)
    findEnded(node, ended, begun);
  for (size_t i = 0; i < node.after.size(); ++i) {
    const GraphNode *before = node.after.nodes()[i];
    if (node.after.isProgrammatic(i) && marks[before] && !ended.contains(before))
      made.on.push_back({marks[before], node.after.data()[i].fromPort != PortBegin});
  }
  made.by =
      work.asked.dependence.serialized
          ? attributeName(AttributeProgrammaticStreamSerialization, work.asked.dependence.driver)
          : "an edge of type cudaGraphDependencyTypeProgrammatic";
  if (const auto own = marks.find(&node); own != marks.end())
    made.mark = own->second = std::make_shared<sim::LaunchMark>();
  return made;
}

struct Performer {
  const char *function;

  Code operator()(const EmptyWork &) { return Success; }
  Code operator()(const KernelWork &work) { return Context::get().launch(function, work, {}); }
  Code operator()(const CopyWork &work) {
    Code code = Success;
    for (size_t slice = 0; slice < work.slices; ++slice)
      for (size_t row = 0; row < work.rows && code == Success; ++row)
        code = Context::get().copy(
            function, static_cast<std::byte *>(work.to) + slice * work.toSlice + row * work.toPitch,
            static_cast<const std::byte *>(work.from) + slice * work.fromSlice +
                row * work.fromPitch,
            work.bytes, work.kind);
    return code;
  }
  Code operator()(const FillWork &work) {
    Code code = Success;
    for (size_t row = 0; row < work.rows && code == Success; ++row)
      code = Context::get().fill(function, static_cast<std::byte *>(work.to) + row * work.pitch,
                                 work.value, work.elementBytes, work.count);
    return code;
  }
  Code operator()(const HostWork &work) {
    work.function(work.argument);
    return Success;
  }
  Code operator()(const RecordWork &work) { return recordEvent(function, work.event); }
  Code operator()(const WaitWork &) { return Success; }
  Code operator()(const AllocateWork &work) {
    return Context::get().allocateAt(function, work.address, work.bytes);
  }
  Code operator()(const FreeWork &work) { return Context::get().release(function, work.address); }
  Code operator()(const GraphWork &work) {
    const auto order = work.graph->ordered();
    if (order.size() < work.graph->nodes.size())
      return Context::get().fail(function, InvalidValue, "the nodes of the graph form a cycle");
    GraphRun run(*work.graph);
    for (const GraphNode *node : order)
      if (Code code = node->enabled ? run.perform(function, *node) : Success; code != Success)
        return code;
    return Success;
  }
};

} // namespace

Code fp4::simcuda::perform(const char *function, const Work &work) {
  if (Code code = Context::get().sticky(); code != Success)
    return code;
  return std::visit(Performer{function}, work);
}
