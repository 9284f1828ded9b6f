//===- Graphs.h - Graphs and stream capture -------------------------------===//
//
// A graph is a list of work with an order. Launching it does the work, one node after the other, in
// the order of creation, except where a dependency was added later. While a stream is captured, its
// work becomes nodes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Context.h"
#include "Work.h"
#include <span>

namespace fp4::simcuda {

struct GraphNode : Live<HandleKind::Node> {
  Graph *graph = nullptr;
  Work work;
  Edges after;         ///< nodes that this one depends on
  bool enabled = true; ///< false in executable graphs alone, which are not cloned
  const GraphNode *original = nullptr; ///< node that this one is a clone of
  std::vector<void *> arguments;       ///< cudaGraphKernelNodeGetParams points to these
};

struct FP4_HOST_API Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  uint64_t flags = 0; ///< flags of an executable graph's instantiation

  GraphNode *add(Edges after, Work work);
  void remove(GraphNode *node);
  std::shared_ptr<Graph> clone() const;
  /// The node that was cloned from `original`, or null.
  GraphNode *find(const GraphNode *original) const;
  /// Every node after those that it depends on; empty where they form a cycle.
  std::vector<GraphNode *> ordered() const;
};

/// cudaGraph_t and cudaGraphExec_t: what a program holds.
struct GraphHandle : Live<HandleKind::Graph> {
  explicit GraphHandle(std::shared_ptr<Graph> graph) : graph(std::move(graph)) {}
  std::shared_ptr<Graph> graph;
};

/// The numbers of cudaGraphNodeType.
FP4_HOST_API int nodeType(const Work &work);

/// A stream under capture, and those that joined it through events.
struct Capture {
  GraphHandle *handle = nullptr;
  Stream *origin = nullptr;
  std::vector<Stream *> streams;
  uint64_t id = 0;
  bool invalid = false;
};

/// Does the work now.
FP4_HOST_API Code perform(const char *function, const Work &work);
/// Does the work now, or makes it a node in a stream under capture.
FP4_HOST_API Code enqueue(const char *function, StreamHandle stream, Work work);
/// A wait for a stream (null: for the device) is an error while the stream is captured.
FP4_HOST_API Code synchronize(const char *function, StreamHandle stream);
/// cudaStreamGetId and cuStreamGetId, which the driver refuses while the stream is captured.
FP4_HOST_API Code identify(const char *function, StreamHandle stream, unsigned long long *id);

FP4_HOST_API Code beginCapture(const char *function, StreamHandle stream, GraphHandle *into,
                               Edges after);
FP4_HOST_API Code endCapture(const char *function, StreamHandle stream, GraphHandle **graph);
/// The stream is destroyed: its capture is no longer valid, and ends with it where it began there.
FP4_HOST_API void abandonCapture(Stream &stream);
/// Null where the stream is not captured.
FP4_HOST_API Stream *capturing(StreamHandle stream);
/// 0 none, 1 active, 2 invalidated.
FP4_HOST_API int captureStatus(StreamHandle stream);
/// The results of cudaStreamGetCaptureInfo and cuStreamGetCaptureInfo; all but the first may be
/// null.
struct CaptureInfo {
  int *status;
  unsigned long long *id = nullptr;
  GraphHandle **graph = nullptr;
  GraphNode *const **last = nullptr;
  const EdgeData **edges = nullptr;
  size_t *count = nullptr;
};
FP4_HOST_API Code captureInfo(const char *function, StreamHandle stream, const CaptureInfo &info);
/// Sets the capture mode of the thread and hands back the one before. The mode has no effect.
FP4_HOST_API void exchangeCaptureMode(int &mode);

FP4_HOST_API Code recordIn(const char *function, StreamHandle stream, EventHandle event);
FP4_HOST_API Code waitIn(const char *function, StreamHandle stream, EventHandle event);
/// cudaMallocAsync and cudaFreeAsync.
FP4_HOST_API Code allocateIn(const char *function, StreamHandle stream, uint64_t &address,
                             uint64_t bytes);
FP4_HOST_API Code freeIn(const char *function, StreamHandle stream, uint64_t address);

/// Gives `updated` the parameters of `graph`, if both have the same nodes in the same order.
FP4_HOST_API bool updateGraph(Graph &updated, const Graph &graph);

} // namespace fp4::simcuda
