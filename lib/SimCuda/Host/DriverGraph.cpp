//===- DriverGraph.cpp - Graphs of the driver API -------------------------===//
//
// Capture, instantiation and launch, and kernel nodes; other nodes made by hand are the runtime's.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include "Graphs.h"
#include "HostImage.h"

using namespace fp4::simcuda;

FP4_ENTRY int cuStreamBeginCapture_v2(StreamHandle stream, int) {
  return beginCapture("cuStreamBeginCapture", stream, nullptr, {});
}
FP4_PER_THREAD(cuStreamBeginCapture_v2, _ptsz)

FP4_ENTRY int cuStreamEndCapture(StreamHandle stream, GraphHandle **graph) {
  return endCapture("cuStreamEndCapture", stream, graph);
}
FP4_PER_THREAD(cuStreamEndCapture, _ptsz)

FP4_ENTRY int cuStreamIsCapturing(StreamHandle stream, int *status) {
  FP4_REQUIRE(status);
  FP4_REQUIRE_LIVE(stream);
  *status = captureStatus(stream);
  return Success;
}
FP4_PER_THREAD(cuStreamIsCapturing, _ptsz)

FP4_ENTRY int cuStreamGetCaptureInfo(StreamHandle stream, int *status, unsigned long long *id) {
  return captureInfo(__func__, stream, {.status = status, .id = id});
}
FP4_PER_THREAD(cuStreamGetCaptureInfo, _ptsz)

FP4_ENTRY int cuStreamGetCaptureInfo_v2(StreamHandle stream, int *status, unsigned long long *id,
                                        GraphHandle **graph, GraphNode *const **last,
                                        size_t *count) {
  return captureInfo(__func__, stream, {status, id, graph, last, nullptr, count});
}
FP4_PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz)

FP4_ENTRY int cuStreamGetCaptureInfo_v3(StreamHandle stream, int *status, unsigned long long *id,
                                        GraphHandle **graph, GraphNode *const **last,
                                        const EdgeData **edges, size_t *count) {
  return captureInfo(__func__, stream, {status, id, graph, last, edges, count});
}

FP4_ENTRY int cuThreadExchangeStreamCaptureMode(int *mode) {
  FP4_REQUIRE(mode);
  exchangeCaptureMode(*mode);
  return Success;
}

FP4_ENTRY int cuLaunchHostFunc(StreamHandle stream, void (*function)(void *), void *argument) {
  FP4_REQUIRE(function);
  return enqueue("cuLaunchHostFunc", stream, HostWork{function, argument});
}
FP4_PER_THREAD(cuLaunchHostFunc, _ptsz)

FP4_ENTRY int cuGraphCreate(GraphHandle **graph, unsigned) {
  FP4_REQUIRE(graph);
  *graph = new GraphHandle(std::make_shared<Graph>());
  return Success;
}
FP4_ENTRY int cuGraphDestroy(GraphHandle *graph) {
  if (graph)
    FP4_REQUIRE_LIVE(graph);
  delete graph;
  return Success;
}
FP4_ENTRY int cuGraphExecDestroy(GraphHandle *executable) { return cuGraphDestroy(executable); }

FP4_ENTRY int cuGraphInstantiateWithFlags(GraphHandle **executable, GraphHandle *graph,
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

FP4_ENTRY int cuGraphLaunch(GraphHandle *executable, StreamHandle stream) {
  FP4_REQUIRE(executable);
  FP4_REQUIRE_LIVE(executable);
  return enqueue("cuGraphLaunch", stream, GraphWork{executable->graph});
}
FP4_PER_THREAD(cuGraphLaunch, _ptsz)

FP4_ENTRY int cuGraphUpload(GraphHandle *, StreamHandle) { return context().sticky(); }

FP4_ENTRY int cuGraphExecUpdate_v2(GraphHandle *executable, GraphHandle *graph,
                                   GraphExecUpdateResult *result) {
  FP4_REQUIRE(executable && graph);
  FP4_REQUIRE_LIVE(executable, graph);
  constexpr int topologyChanged = 2;
  const bool updated = updateGraph(*executable->graph, *graph->graph);
  if (result)
    *result = {updated ? 0 : topologyChanged, nullptr, nullptr};
  return updated ? Success : context().quiet(GraphExecUpdateFailure);
}

FP4_ENTRY int cuGraphNodeGetType(GraphNode *node, int *type) {
  FP4_REQUIRE(node && type);
  FP4_REQUIRE_LIVE(node);
  *type = nodeType(node->work);
  return Success;
}

FP4_ENTRY int cuGraphGetNodes(GraphHandle *graph, GraphNode **nodes, size_t *count) {
  FP4_REQUIRE(graph && count);
  FP4_REQUIRE_LIVE(graph);
  const auto &all = graph->graph->nodes;
  for (size_t i = 0; nodes && i < *count; ++i)
    nodes[i] = i < all.size() ? all[i].get() : nullptr;
  *count = nodes ? std::min(*count, all.size()) : all.size();
  return Success;
}

struct DriverKernelNodeParams { // CUDA_KERNEL_NODE_PARAMS_v2
  Function *function;
  Dim3 grid, block;
  unsigned dynamicSharedBytes;
  void **arguments, **extra;
  Function *kernel; ///< instead of `function`
  void *context;
};

static Code kernelOf(const char *name, const DriverKernelNodeParams *params, KernelWork &work) {
  Function *function = params->function ? params->function : params->kernel;
  if (!function || !context().resolve(function))
    return context().fail(name, InvalidResourceHandle,
                          "the function is not one of a loaded module");
  LaunchRequest request{.grid = params->grid, .block = params->block};
  request.dynamicShared = params->dynamicSharedBytes;
  request.arguments = params->arguments;
  return context().prepare(name, *function, request, work);
}

FP4_ENTRY int cuGraphAddKernelNode_v2(GraphNode **node, GraphHandle *graph, GraphNode *const *after,
                                      size_t count, const DriverKernelNodeParams *params) {
  FP4_REQUIRE(node && graph && params && params->arguments);
  FP4_REQUIRE_LIVE(graph);
  KernelWork work;
  if (Code code = kernelOf(__func__, params, work); code != Success)
    return code;
  for (size_t i = 0; i < count; ++i)
    FP4_REQUIRE_LIVE(after[i]);
  *node = graph->graph->add(Edges({after, count}), std::move(work));
  return Success;
}

FP4_ENTRY int cuGraphExecKernelNodeSetParams_v2(GraphHandle *executable, GraphNode *node,
                                                const DriverKernelNodeParams *params) {
  FP4_REQUIRE(executable && params && params->arguments);
  FP4_REQUIRE_LIVE(executable);
  GraphNode *found = executable->graph->find(node);
  FP4_REQUIRE(found && std::holds_alternative<KernelWork>(found->work));
  KernelWork work;
  if (Code code = kernelOf(__func__, params, work); code != Success)
    return code;
  work.asked = std::get<KernelWork>(found->work).asked; // attributes stay
  found->work = std::move(work);
  return Success;
}
