//===- CudartGraph.cpp - Graphs of the runtime API ------------------------===//
//
// Capture, instantiation, launch and queries of graphs; CudartGraphNodes.cpp makes nodes. CUDA 13
// gave some functions an argument for the data of edges.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include "Graphs.h"
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaStreamBeginCapture(StreamHandle stream, int) {
  return beginCapture("cudaStreamBeginCapture", stream, nullptr, {});
}
FP4_PER_THREAD(cudaStreamBeginCapture, _ptsz)

FP4_ENTRY int cudaStreamBeginCaptureToGraph(StreamHandle stream, GraphHandle *graph,
                                            GraphNode *const *after, const EdgeData *edges,
                                            size_t count, int) {
  FP4_REQUIRE_LIVE(graph);
  return beginCapture("cudaStreamBeginCaptureToGraph", stream, graph, Edges({after, count}, edges));
}
FP4_PER_THREAD(cudaStreamBeginCaptureToGraph, _ptsz)

FP4_ENTRY int cudaStreamEndCapture(StreamHandle stream, GraphHandle **graph) {
  return endCapture("cudaStreamEndCapture", stream, graph);
}
FP4_PER_THREAD(cudaStreamEndCapture, _ptsz)

FP4_ENTRY int cudaStreamIsCapturing(StreamHandle stream, int *status) {
  FP4_REQUIRE(status);
  FP4_REQUIRE_LIVE(stream);
  *status = captureStatus(stream);
  return Success;
}
FP4_PER_THREAD(cudaStreamIsCapturing, _ptsz)

FP4_ENTRY int cudaThreadExchangeStreamCaptureMode(int *mode) {
  FP4_REQUIRE(mode);
  exchangeCaptureMode(*mode);
  return Success;
}

FP4_ENTRY int cudaStreamGetCaptureInfo_v3(StreamHandle stream, int *status, unsigned long long *id,
                                          GraphHandle **graph, GraphNode *const **last,
                                          const EdgeData **edges, size_t *count) {
  return captureInfo(__func__, stream, {status, id, graph, last, edges, count});
}
#if FP4_CUDART_MAJOR < 13
FP4_ENTRY int cudaStreamGetCaptureInfo_v2(StreamHandle stream, int *status, unsigned long long *id,
                                          GraphHandle **graph, GraphNode *const **last,
                                          size_t *count) {
  return captureInfo(__func__, stream, {status, id, graph, last, nullptr, count});
}
FP4_PER_THREAD(cudaStreamGetCaptureInfo_v2, _ptsz)
FP4_ENTRY int cudaStreamGetCaptureInfo(StreamHandle stream, int *status, unsigned long long *id) {
  return captureInfo(__func__, stream, {.status = status, .id = id});
}
#else
FP4_ENTRY decltype(cudaStreamGetCaptureInfo_v3) cudaStreamGetCaptureInfo
    __attribute__((alias("cudaStreamGetCaptureInfo_v3")));
#endif
FP4_PER_THREAD(cudaStreamGetCaptureInfo, _ptsz)

static Code updateDependencies(StreamHandle handle, GraphNode *const *nodes, const EdgeData *edges,
                               size_t count, unsigned flags) {
  constexpr unsigned set = 1;
  FP4_REQUIRE_LIVE(handle);
  for (size_t i = 0; i < count; ++i)
    FP4_REQUIRE_LIVE(nodes[i]);
  Stream *stream = capturing(handle);
  if (!stream)
    return context().quiet(IllegalState);
  if (flags == set)
    stream->last.clear();
  stream->last.add(Edges({nodes, count}, edges));
  return Success;
}

FP4_ENTRY int cudaStreamUpdateCaptureDependencies_v2(StreamHandle stream, GraphNode *const *nodes,
                                                     const EdgeData *edges, size_t count,
                                                     unsigned flags) {
  return updateDependencies(stream, nodes, edges, count, flags);
}
#if FP4_CUDART_MAJOR < 13
FP4_ENTRY int cudaStreamUpdateCaptureDependencies(StreamHandle stream, GraphNode *const *nodes,
                                                  size_t count, unsigned flags) {
  return updateDependencies(stream, nodes, nullptr, count, flags);
}
#else
FP4_ENTRY decltype(cudaStreamUpdateCaptureDependencies_v2) cudaStreamUpdateCaptureDependencies
    __attribute__((alias("cudaStreamUpdateCaptureDependencies_v2")));
#endif
FP4_PER_THREAD(cudaStreamUpdateCaptureDependencies, _ptsz)

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaGraphCreate(GraphHandle **graph, unsigned) {
  FP4_REQUIRE(graph);
  *graph = new GraphHandle(std::make_shared<Graph>());
  return Success;
}

FP4_ENTRY int cudaGraphDestroy(GraphHandle *graph) {
  if (graph)
    FP4_REQUIRE_LIVE(graph);
  delete graph;
  return Success;
}

FP4_ENTRY int cudaGraphClone(GraphHandle **clone, GraphHandle *graph) {
  FP4_REQUIRE(clone && graph);
  FP4_REQUIRE_LIVE(graph);
  *clone = new GraphHandle(graph->graph->clone());
  return Success;
}

FP4_ENTRY int cudaGraphInstantiate(GraphHandle **executable, GraphHandle *graph,
                                   unsigned long long flags) {
  FP4_REQUIRE(executable && graph);
  FP4_REQUIRE_LIVE(graph);
  *executable = nullptr;
  if (graph->graph->ordered().size() < graph->graph->nodes.size())
    return context().fail(__func__, InvalidValue, "the nodes of the graph form a cycle");
  *executable = new GraphHandle(graph->graph->clone());
  (*executable)->graph->flags = flags;
  return Success;
}
FP4_ENTRY decltype(cudaGraphInstantiate) cudaGraphInstantiateWithFlags
    __attribute__((alias("cudaGraphInstantiate")));

struct InstantiateParams { // cudaGraphInstantiateParams
  unsigned long long flags;
  StreamHandle uploadStream;
  GraphNode *errorNode;
  int result;
};

FP4_ENTRY int cudaGraphInstantiateWithParams(GraphHandle **executable, GraphHandle *graph,
                                             InstantiateParams *params) {
  FP4_REQUIRE(params);
  params->errorNode = nullptr;
  const int code = cudaGraphInstantiate(executable, graph, params->flags);
  params->result = code == Success ? 0 : 1;
  return code;
}
FP4_PER_THREAD(cudaGraphInstantiateWithParams, _ptsz)

FP4_ENTRY int cudaGraphExecGetFlags(GraphHandle *executable, unsigned long long *flags) {
  FP4_REQUIRE(flags);
  FP4_REQUIRE_LIVE(executable);
  *flags = executable->graph->flags;
  return Success;
}

FP4_ENTRY int cudaGraphExecDestroy(GraphHandle *executable) { return cudaGraphDestroy(executable); }

FP4_ENTRY int cudaGraphLaunch(GraphHandle *executable, StreamHandle stream) {
  FP4_REQUIRE(executable);
  FP4_REQUIRE_LIVE(executable);
  return enqueue("cudaGraphLaunch", stream, GraphWork{executable->graph});
}
FP4_PER_THREAD(cudaGraphLaunch, _ptsz)

FP4_ENTRY int cudaGraphUpload(GraphHandle *, StreamHandle) { return context().sticky(); }
FP4_PER_THREAD(cudaGraphUpload, _ptsz)

FP4_ENTRY int cudaGraphExecUpdate(GraphHandle *executable, GraphHandle *graph,
                                  GraphExecUpdateResult *result) {
  FP4_REQUIRE(executable && graph);
  FP4_REQUIRE_LIVE(executable, graph);
  constexpr int topologyChanged = 2;
  const bool updated = updateGraph(*executable->graph, *graph->graph);
  if (result)
    *result = {updated ? 0 : topologyChanged, nullptr, nullptr};
  return updated ? Success : context().quiet(GraphExecUpdateFailure);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// Gives as many nodes as `count` has places for, or their number if there are no places.
static Code giveNodes(const std::vector<GraphNode *> &found, GraphNode **nodes, size_t *count) {
  if (nodes)
    for (size_t i = 0; i < *count; ++i)
      nodes[i] = i < found.size() ? found[i] : nullptr;
  *count = nodes ? std::min(*count, found.size()) : found.size();
  return Success;
}

template <typename F> static std::vector<GraphNode *> nodesWhere(const Graph &graph, F &&f) {
  std::vector<GraphNode *> found;
  for (const auto &node : graph.nodes)
    if (f(*node))
      found.push_back(node.get());
  return found;
}

FP4_ENTRY int cudaGraphGetNodes(GraphHandle *graph, GraphNode **nodes, size_t *count) {
  FP4_REQUIRE(graph && count);
  FP4_REQUIRE_LIVE(graph);
  return giveNodes(nodesWhere(*graph->graph, [](auto &) { return true; }), nodes, count);
}

FP4_ENTRY int cudaGraphGetRootNodes(GraphHandle *graph, GraphNode **nodes, size_t *count) {
  FP4_REQUIRE(graph && count);
  FP4_REQUIRE_LIVE(graph);
  return giveNodes(nodesWhere(*graph->graph, [](auto &node) { return node.after.empty(); }), nodes,
                   count);
}

/// Edges in the form in which the functions below give them.
struct EdgeList {
  std::vector<GraphNode *> from, to;
  std::vector<EdgeData> data;
};

template <typename F> static EdgeList edgesWhere(const Graph &graph, F &&f) {
  EdgeList list;
  for (const auto &node : graph.nodes)
    for (size_t i = 0; i < node->after.size(); ++i)
      if (GraphNode *before = node->after.nodes()[i]; f(before)) {
        list.from.push_back(before);
        list.to.push_back(node.get());
        list.data.push_back(node->after.data()[i]);
      }
  return list;
}

/// Gives the data of as many edges as `count` has places for.
static void giveData(const std::vector<EdgeData> &found, EdgeData *data, size_t count) {
  for (size_t i = 0; data && i < count; ++i)
    data[i] = i < found.size() ? found[i] : EdgeData{};
}

static Code giveEdges(const EdgeList &edges, GraphNode **from, GraphNode **to, EdgeData *data,
                      size_t *count) {
  size_t places = *count;
  giveData(edges.data, data, places);
  if (from)
    (void)giveNodes(edges.from, from, &places);
  return giveNodes(edges.to, to, count);
}

static Code giveBefore(GraphNode *node, GraphNode **nodes, EdgeData *data, size_t *count) {
  giveData(node->after.data(), data, *count);
  return giveNodes(node->after.nodes(), nodes, count);
}

static Code giveDependents(GraphNode *node, GraphNode **nodes, EdgeData *data, size_t *count) {
  const auto leaves = [&](const GraphNode *from) { return from == node; };
  return giveEdges(edgesWhere(*node->graph, leaves), nullptr, nodes, data, count);
}

static bool isKernel(const GraphNode &node) {
  return std::holds_alternative<KernelWork>(node.work);
}

static Code link(const char *function, GraphHandle *graph, GraphNode *const *from,
                 GraphNode *const *to, const EdgeData *data, size_t count) {
  FP4_LIVE_IN(function, graph);
  for (size_t i = 0; i < count; ++i) {
    FP4_LIVE_IN(function, from[i], to[i]);
    const EdgeData edge = data ? data[i] : EdgeData{};
    const bool programmatic = edge.type == programmaticEdge;
    if (programmatic && (!isKernel(*from[i]) || !isKernel(*to[i]) || edge.fromPort == PortEnd))
      return context().fail(function, InvalidValue,
                            "a programmatic edge must go from the port Programmatic or "
                            "LaunchCompletion of a kernel to a kernel");
    to[i]->after.add(from[i], edge);
  }
  return Success;
}

static Code unlink(const char *function, GraphHandle *graph, GraphNode *const *from,
                   GraphNode *const *to, size_t count) {
  FP4_LIVE_IN(function, graph);
  for (size_t i = 0; i < count; ++i) {
    FP4_LIVE_IN(function, to[i]);
    to[i]->after.remove(from[i]);
  }
  return Success;
}

#define FP4_EDGE_FUNCTIONS(suffix, edges, data)                                                    \
  FP4_ENTRY int cudaGraphGetEdges##suffix(GraphHandle *graph, GraphNode **from,                    \
                                          GraphNode **to edges(EdgeData *), size_t *count) {       \
    FP4_REQUIRE(graph && count);                                                                   \
    FP4_REQUIRE_LIVE(graph);                                                                       \
    const auto all = [](const GraphNode *) { return true; };                                       \
    return giveEdges(edgesWhere(*graph->graph, all), from, to, data, count);                       \
  }                                                                                                \
  FP4_ENTRY int cudaGraphNodeGetDependencies##suffix(                                              \
      GraphNode *node, GraphNode **nodes edges(EdgeData *), size_t *count) {                       \
    FP4_REQUIRE(node && count);                                                                    \
    FP4_REQUIRE_LIVE(node);                                                                        \
    return giveBefore(node, nodes, data, count);                                                   \
  }                                                                                                \
  FP4_ENTRY int cudaGraphNodeGetDependentNodes##suffix(                                            \
      GraphNode *node, GraphNode **nodes edges(EdgeData *), size_t *count) {                       \
    FP4_REQUIRE(node && count);                                                                    \
    FP4_REQUIRE_LIVE(node);                                                                        \
    return giveDependents(node, nodes, data, count);                                               \
  }                                                                                                \
  FP4_ENTRY int cudaGraphAddDependencies##suffix(GraphHandle *graph, GraphNode *const *from,       \
                                                 GraphNode *const *to edges(const EdgeData *),     \
                                                 size_t count) {                                   \
    return link(__func__, graph, from, to, data, count);                                           \
  }                                                                                                \
  FP4_ENTRY int cudaGraphRemoveDependencies##suffix(GraphHandle *graph, GraphNode *const *from,    \
                                                    GraphNode *const *to edges(const EdgeData *),  \
                                                    size_t count) {                                \
    return unlink(__func__, graph, from, to, count);                                               \
  }
#define FP4_WITH_EDGES(type) , type edgeData
#define FP4_NO_EDGES(type)
#if FP4_CUDART_MAJOR < 13
FP4_EDGE_FUNCTIONS(, FP4_NO_EDGES, nullptr)
FP4_EDGE_FUNCTIONS(_v2, FP4_WITH_EDGES, edgeData)
#else
FP4_EDGE_FUNCTIONS(, FP4_WITH_EDGES, edgeData)
#endif

FP4_ENTRY int cudaGraphNodeGetType(GraphNode *node, int *type) {
  FP4_REQUIRE(node && type);
  FP4_REQUIRE_LIVE(node);
  *type = nodeType(node->work);
  return Success;
}

FP4_ENTRY int cudaGraphNodeFindInClone(GraphNode **found, GraphNode *original, GraphHandle *clone) {
  FP4_REQUIRE(found && clone);
  FP4_REQUIRE_LIVE(clone);
  *found = clone->graph->find(original);
  return *found ? Success : context().quiet(InvalidValue);
}

FP4_ENTRY int cudaGraphNodeSetEnabled(GraphHandle *executable, GraphNode *node, unsigned enabled) {
  FP4_REQUIRE_LIVE(executable);
  GraphNode *found = executable->graph->find(node);
  FP4_REQUIRE(found);
  found->enabled = enabled != 0;
  return Success;
}

FP4_ENTRY int cudaGraphNodeGetEnabled(GraphHandle *executable, GraphNode *node, unsigned *enabled) {
  FP4_REQUIRE(enabled);
  FP4_REQUIRE_LIVE(executable);
  const GraphNode *found = executable->graph->find(node);
  FP4_REQUIRE(found);
  *enabled = found->enabled;
  return Success;
}

FP4_ENTRY int cudaGraphDestroyNode(GraphNode *node) {
  FP4_REQUIRE_LIVE(node);
  node->graph->remove(node);
  return Success;
}

FP4_ENTRY int cudaGraphDebugDotPrint(GraphHandle *graph, const char *path, unsigned) {
  FP4_REQUIRE(graph && path);
  FP4_REQUIRE_LIVE(graph);
  std::string text = "digraph dot {\n";
  for (const auto &node : graph->graph->nodes) {
    text +=
        fmt::format("  \"{}\" [label=\"type {}\"];\n", fmt::ptr(node.get()), nodeType(node->work));
    for (const GraphNode *before : node->after)
      text += fmt::format("  \"{}\" -> \"{}\";\n", fmt::ptr(before), fmt::ptr(node.get()));
  }
  Status written = writeFile(path, text + "}\n");
  return written ? Success : context().fail(__func__, OperatingSystem, written.error());
}
