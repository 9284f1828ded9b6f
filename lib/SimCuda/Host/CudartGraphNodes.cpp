//===- CudartGraphNodes.cpp - Nodes of graphs in the runtime API ----------===//
#include "CudartNodes.h"
#include "EntryPoint.h"
#include "HostImage.h"
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

using Nodes = GraphNode *const *;

static Code addNode(const char *function, GraphNode **node, GraphHandle *graph, Nodes after,
                    size_t count, Work work) {
  if (!node || !graph)
    return context().fail(function, InvalidValue, "the node and the graph must not be null");
  FP4_LIVE_IN(function, graph);
  for (size_t i = 0; i < count; ++i)
    FP4_LIVE_IN(function, after[i]);
  *node = graph->graph->add(Edges({after, count}), std::move(work));
  return Success;
}

/// The node itself, or what it became in an executable graph; null after an error.
static GraphNode *nodeIn(const char *function, GraphHandle *executable, GraphNode *node) {
  const Code dead = executable ? checkLive(function, executable) : checkLive(function, node);
  if (dead != Success)
    return nullptr;
  GraphNode *found = executable && node ? executable->graph->find(node) : node;
  if (!found)
    (void)context().fail(function, InvalidValue, "the node is not one of the graph");
  return found;
}

template <typename Kind>
static Code setWork(const char *function, GraphHandle *executable, GraphNode *node, Kind work) {
  GraphNode *found = nodeIn(function, executable, node);
  if (!found)
    return InvalidValue;
  if (!std::holds_alternative<Kind>(found->work))
    return context().fail(function, InvalidValue, "the node is of another kind");
  found->work = std::move(work);
  return Success;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static Code kernelOf(const char *function, const KernelNodeParams *params, KernelWork &work) {
  Function *kernel = params ? context().resolve(params->function) : nullptr;
  if (!kernel)
    return context().fail(function, InvalidDeviceFunction,
                          "the kernel is not one of the program's registered kernels");
  LaunchRequest request{.grid = params->grid, .block = params->block};
  request.dynamicShared = params->dynamicSharedBytes;
  request.arguments = params->arguments;
  return context().prepare(function, *kernel, request, work);
}

FP4_ENTRY int cudaGraphAddKernelNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                     size_t count, const KernelNodeParams *params) {
  KernelWork work;
  const Code code = kernelOf(__func__, params, work);
  return code == Success ? addNode(__func__, node, graph, after, count, std::move(work)) : code;
}

static Code setKernel(const char *function, GraphHandle *executable, GraphNode *node,
                      const KernelNodeParams *params) {
  KernelWork work;
  if (const Code code = kernelOf(function, params, work); code != Success)
    return code;
  GraphNode *found = nodeIn(function, executable, node);
  if (found && std::holds_alternative<KernelWork>(found->work))
    work.asked = std::get<KernelWork>(found->work).asked; // attributes stay
  return setWork(function, executable, node, std::move(work));
}

FP4_ENTRY int cudaGraphKernelNodeSetParams(GraphNode *node, const KernelNodeParams *params) {
  return setKernel(__func__, nullptr, node, params);
}
FP4_ENTRY int cudaGraphExecKernelNodeSetParams(GraphHandle *executable, GraphNode *node,
                                               const KernelNodeParams *params) {
  return setKernel(__func__, executable, node, params);
}

FP4_ENTRY int cudaGraphKernelNodeGetParams(GraphNode *node, KernelNodeParams *params) {
  FP4_REQUIRE_LIVE(node);
  FP4_REQUIRE(node && params && std::holds_alternative<KernelWork>(node->work));
  auto &work = std::get<KernelWork>(node->work);
  const auto info = context().kernelOf(__func__, *work.function);
  if (!info)
    return info.error();
  node->arguments.clear();
  for (const sim::ParamInfo &param : (*info)->params)
    node->arguments.push_back(work.parameters.data() + param.offset);
  *params = {work.function,          work.grid, work.block, work.dynamicShared,
             node->arguments.data(), nullptr};
  return Success;
}

FP4_ENTRY int cudaGraphKernelNodeSetAttribute(GraphNode *node, int attribute, const void *value) {
  FP4_REQUIRE_LIVE(node);
  FP4_REQUIRE(node && value && std::holds_alternative<KernelWork>(node->work));
  LaunchAttribute given{attribute, 0, {}};
  std::memcpy(given.bytes, value, sizeof given.bytes);
  return applyAttribute(__func__, given, AttributeOf::Node, /*driver=*/false,
                        std::get<KernelWork>(node->work).asked);
}

FP4_ENTRY int cudaGraphKernelNodeCopyAttributes(GraphNode *to, GraphNode *from) {
  FP4_REQUIRE_LIVE(to, from);
  FP4_REQUIRE(to && from && std::holds_alternative<KernelWork>(to->work) &&
              std::holds_alternative<KernelWork>(from->work));
  std::get<KernelWork>(to->work).asked = std::get<KernelWork>(from->work).asked;
  return Success;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Code fp4::simcuda::copyOf(const char *function, const Memcpy3DParms &p, CopyWork &work) {
  if (p.sourceArray || p.destinationArray) {
    reportMissing(fmt::format("{} of arrays", function).c_str());
    return context().quiet(NotSupported);
  }
  const auto start = [](const PitchedPtr &side, const Position &at) {
    return static_cast<std::byte *>(side.ptr) + (at.z * side.ysize + at.y) * side.pitch + at.x;
  };
  work = {.to = start(p.destination, p.destinationPosition),
          .from = start(p.source, p.sourcePosition),
          .bytes = p.extent.width,
          .kind = p.kind,
          .rows = p.extent.height,
          .toPitch = p.destination.pitch,
          .fromPitch = p.source.pitch,
          .slices = p.extent.depth,
          .toSlice = p.destination.pitch * p.destination.ysize,
          .fromSlice = p.source.pitch * p.source.ysize};
  return Success;
}

static CopyWork plainCopy(void *to, const void *from, size_t bytes, int kind) {
  return {.to = to, .from = from, .bytes = bytes, .kind = kind};
}

FP4_ENTRY int cudaGraphAddMemcpyNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                     size_t count, const Memcpy3DParms *params) {
  FP4_REQUIRE(params);
  CopyWork work;
  const Code code = copyOf(__func__, *params, work);
  return code == Success ? addNode(__func__, node, graph, after, count, work) : code;
}

FP4_ENTRY int cudaGraphAddMemcpyNode1D(GraphNode **node, GraphHandle *graph, Nodes after,
                                       size_t count, void *to, const void *from, size_t bytes,
                                       int kind) {
  return addNode(__func__, node, graph, after, count, plainCopy(to, from, bytes, kind));
}

FP4_ENTRY int cudaGraphAddMemcpyNodeToSymbol(GraphNode **node, GraphHandle *graph, Nodes after,
                                             size_t count, const void *symbol, const void *from,
                                             size_t bytes, size_t offset, int kind) {
  std::byte *to = nullptr;
  const Code code = symbolRange(__func__, symbol, offset, bytes, to);
  return code == Success
             ? addNode(__func__, node, graph, after, count, plainCopy(to, from, bytes, kind))
             : code;
}

FP4_ENTRY int cudaGraphAddMemcpyNodeFromSymbol(GraphNode **node, GraphHandle *graph, Nodes after,
                                               size_t count, void *to, const void *symbol,
                                               size_t bytes, size_t offset, int kind) {
  std::byte *from = nullptr;
  const Code code = symbolRange(__func__, symbol, offset, bytes, from);
  return code == Success
             ? addNode(__func__, node, graph, after, count, plainCopy(to, from, bytes, kind))
             : code;
}

static Code setCopy(const char *function, GraphHandle *executable, GraphNode *node,
                    const Memcpy3DParms *params) {
  FP4_REQUIRE(params);
  CopyWork work;
  const Code code = copyOf(function, *params, work);
  return code == Success ? setWork(function, executable, node, work) : code;
}

FP4_ENTRY int cudaGraphMemcpyNodeSetParams(GraphNode *node, const Memcpy3DParms *params) {
  return setCopy(__func__, nullptr, node, params);
}
FP4_ENTRY int cudaGraphExecMemcpyNodeSetParams(GraphHandle *executable, GraphNode *node,
                                               const Memcpy3DParms *params) {
  return setCopy(__func__, executable, node, params);
}
FP4_ENTRY int cudaGraphMemcpyNodeSetParams1D(GraphNode *node, void *to, const void *from,
                                             size_t bytes, int kind) {
  return setWork(__func__, nullptr, node, plainCopy(to, from, bytes, kind));
}
FP4_ENTRY int cudaGraphExecMemcpyNodeSetParams1D(GraphHandle *executable, GraphNode *node, void *to,
                                                 const void *from, size_t bytes, int kind) {
  return setWork(__func__, executable, node, plainCopy(to, from, bytes, kind));
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

static FillWork fillOf(const MemsetParams &p) {
  return {p.to, p.value, p.elementBytes, p.width, p.height, p.pitch};
}

FP4_ENTRY int cudaGraphAddMemsetNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                     size_t count, const MemsetParams *params) {
  FP4_REQUIRE(params && (params->elementBytes == 1 || params->elementBytes == 2 ||
                         params->elementBytes == 4));
  return addNode(__func__, node, graph, after, count, fillOf(*params));
}
FP4_ENTRY int cudaGraphMemsetNodeSetParams(GraphNode *node, const MemsetParams *params) {
  FP4_REQUIRE(params);
  return setWork(__func__, nullptr, node, fillOf(*params));
}
FP4_ENTRY int cudaGraphExecMemsetNodeSetParams(GraphHandle *executable, GraphNode *node,
                                               const MemsetParams *params) {
  FP4_REQUIRE(params);
  return setWork(__func__, executable, node, fillOf(*params));
}
FP4_ENTRY int cudaGraphMemsetNodeGetParams(GraphNode *node, MemsetParams *params) {
  FP4_REQUIRE_LIVE(node);
  FP4_REQUIRE(node && params && std::holds_alternative<FillWork>(node->work));
  const auto &work = std::get<FillWork>(node->work);
  *params = {work.to, work.pitch, work.value, work.elementBytes, work.count, work.rows};
  return Success;
}

//===----------------------------------------------------------------------===//
// Host functions, events, memory, graphs
//===----------------------------------------------------------------------===//

FP4_ENTRY int cudaGraphAddHostNode(GraphNode **node, GraphHandle *graph, Nodes after, size_t count,
                                   const HostNodeParams *params) {
  FP4_REQUIRE(params && params->function);
  return addNode(__func__, node, graph, after, count, HostWork{params->function, params->argument});
}
FP4_ENTRY int cudaGraphHostNodeSetParams(GraphNode *node, const HostNodeParams *params) {
  FP4_REQUIRE(params && params->function);
  return setWork(__func__, nullptr, node, HostWork{params->function, params->argument});
}
FP4_ENTRY int cudaGraphExecHostNodeSetParams(GraphHandle *executable, GraphNode *node,
                                             const HostNodeParams *params) {
  FP4_REQUIRE(params && params->function);
  return setWork(__func__, executable, node, HostWork{params->function, params->argument});
}
FP4_ENTRY int cudaGraphHostNodeGetParams(GraphNode *node, HostNodeParams *params) {
  FP4_REQUIRE_LIVE(node);
  FP4_REQUIRE(node && params && std::holds_alternative<HostWork>(node->work));
  const auto &work = std::get<HostWork>(node->work);
  *params = {work.function, work.argument};
  return Success;
}

FP4_ENTRY int cudaGraphAddEmptyNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                    size_t count) {
  return addNode(__func__, node, graph, after, count, EmptyWork{});
}

FP4_ENTRY int cudaGraphAddEventRecordNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                          size_t count, EventHandle event) {
  FP4_REQUIRE(event);
  FP4_REQUIRE_LIVE(event);
  return addNode(__func__, node, graph, after, count, RecordWork{event});
}
FP4_ENTRY int cudaGraphAddEventWaitNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                        size_t count, EventHandle event) {
  FP4_REQUIRE(event);
  FP4_REQUIRE_LIVE(event);
  return addNode(__func__, node, graph, after, count, WaitWork{event});
}

FP4_ENTRY int cudaGraphAddChildGraphNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                         size_t count, GraphHandle *child) {
  FP4_REQUIRE(child);
  FP4_REQUIRE_LIVE(child);
  return addNode(__func__, node, graph, after, count, GraphWork{child->graph->clone()});
}

FP4_ENTRY int cudaGraphAddMemFreeNode(GraphNode **node, GraphHandle *graph, Nodes after,
                                      size_t count, void *pointer) {
  return addNode(__func__, node, graph, after, count,
                 FreeWork{reinterpret_cast<uint64_t>(pointer)});
}
