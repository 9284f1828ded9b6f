//===- Capture.cpp - Work that streams make nodes of graphs ---------------===//
#include "Graphs.h"
#include "Streams.h"
#include <algorithm>
#include <set>

using namespace fp4;
using namespace fp4::simcuda;

/// Captures in progress.
static std::vector<Capture *> &captures() {
  static std::vector<Capture *> list;
  return list;
}

Stream *fp4::simcuda::capturing(StreamHandle handle) {
  Stream *stream = streamOf(handle);
  return stream && stream->capture ? stream : nullptr;
}

int fp4::simcuda::captureStatus(StreamHandle handle) {
  const Stream *stream = capturing(handle);
  return !stream ? 0 : stream->capture->invalid ? 2 : 1;
}

Code fp4::simcuda::captureInfo(const char *function, StreamHandle handle, const CaptureInfo &info) {
  FP4_LIVE_IN(function, handle);
  if (!info.status)
    return InvalidValue;
  const Stream *stream = capturing(handle);
  *info.status = captureStatus(handle);
  if (info.id)
    *info.id = stream ? stream->capture->id : 0;
  if (info.graph)
    *info.graph = stream ? stream->capture->handle : nullptr;
  if (info.last)
    *info.last = stream ? stream->last.nodes().data() : nullptr;
  if (info.edges)
    *info.edges = stream ? stream->last.data().data() : nullptr;
  if (info.count)
    *info.count = stream ? stream->last.size() : 0;
  return Success;
}

void fp4::simcuda::exchangeCaptureMode(int &mode) {
  static thread_local int current = 0;
  std::swap(mode, current);
}

static Code invalidate(const char *function, Capture &capture, Code code, const char *why) {
  capture.invalid = true;
  return Context::get().fail(function, code, why,
                             "the capture that is in progress is no longer valid");
}

/// A capture of a stream that synchronizes with the legacy stream, or null.
static Capture *blockingCapture() {
  constexpr unsigned nonBlocking = 1;
  for (Capture *capture : captures())
    if (!(capture->origin->flags & nonBlocking))
      return capture;
  return nullptr;
}

/// A launch that may begin before the one before it in the stream has ended comes after that by a
/// programmatic edge.
static Edges edgesTo(const Stream &stream, const Work &work) {
  const auto *kernel = std::get_if<KernelWork>(&work);
  Edges edges;
  for (size_t i = 0; i < stream.last.size(); ++i) {
    GraphNode *before = stream.last.nodes()[i];
    const bool overlaps = kernel && kernel->asked.dependence.serialized &&
                          before == stream.captured &&
                          std::holds_alternative<KernelWork>(before->work);
    edges.add(before,
              overlaps ? EdgeData{PortTrigger, 0, programmaticEdge} : stream.last.data()[i]);
  }
  return edges;
}

/// The event of a launch that triggers or begins: those that wait for it come after that.
static void recordNode(Event &event, const Stream &stream, GraphNode *node, int attribute) {
  event.capture = stream.capture;
  event.nodes.clear();
  event.nodes.add(node, {attribute == AttributeProgrammaticEvent ? PortTrigger : PortBegin, 0,
                         programmaticEdge});
}

static void addTo(Stream &stream, Work work) {
  Edges edges = edgesTo(stream, work);
  GraphNode *node = stream.capture->handle->graph->add(std::move(edges), std::move(work));
  stream.last.clear();
  stream.last.add(node);
  stream.captured = node;
  if (const auto *kernel = std::get_if<KernelWork>(&node->work))
    if (const DependentLaunch &dependent = kernel->asked.dependence; dependent.event)
      recordNode(*dependent.event, stream, node, dependent.eventAttribute);
}

/// Runs a kernel beside which others of the stream may still run.
static Code launchBeside(const char *function, StreamOrder &order, const KernelWork &work) {
  const DependentLaunch &dependent = work.asked.dependence;
  const Code code = Context::get().launch(function, work, order.launch(dependent));
  if (Event *event = dependent.event) {
    event->capture.reset();
    event->nodes.clear();
    event->moment = order.momentOfLaunch(dependent);
    (void)recordEvent(function, event);
  }
  return code;
}

Code fp4::simcuda::enqueue(const char *function, StreamHandle handle, Work work) {
  FP4_LIVE_IN(function, handle);
  if (Stream *stream = capturing(handle)) {
    if (stream->capture->invalid)
      return Context::get().quiet(StreamCaptureInvalidated);
    addTo(*stream, std::move(work));
    return Success;
  }
  if (!streamOf(handle))
    if (Capture *capture = blockingCapture())
      return invalidate(function, *capture, StreamCaptureImplicit,
                        "the default stream waits for a stream that is being captured");
  StreamOrder &order = orderOf(handle);
  if (const auto *kernel = std::get_if<KernelWork>(&work))
    return launchBeside(function, order, *kernel);
  if (!std::holds_alternative<RecordWork>(work))
    order.settle();
  return perform(function, work);
}

Code fp4::simcuda::synchronize(const char *function, StreamHandle handle) {
  FP4_LIVE_IN(function, handle);
  Capture *capture = capturing(handle) ? capturing(handle)->capture.get() : nullptr;
  if (!handle && !captures().empty())
    capture = captures().front();
  if (capture)
    return invalidate(function, *capture, StreamCaptureUnsupported,
                      "waits for work that is only being captured");
  if (handle)
    orderOf(handle).settle();
  else
    hostWaited();
  return Context::get().sticky();
}

Code fp4::simcuda::identify(const char *function, StreamHandle handle, unsigned long long *id) {
  FP4_LIVE_IN(function, handle);
  if (capturing(handle))
    return Context::get().fail(function, StreamCaptureUnsupported,
                               "the stream is being captured, and has no number meanwhile",
                               "ask before, or take its handle");
  if (!id)
    return InvalidValue;
  *id = streamId(handle);
  return Success;
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

Code fp4::simcuda::beginCapture(const char *function, StreamHandle handle, GraphHandle *into,
                                Edges after) {
  static uint64_t captureIds = 0;
  FP4_LIVE_IN(function, handle);
  for (GraphNode *node : after)
    FP4_LIVE_IN(function, node);
  Stream *stream = streamOf(handle);
  if (!stream)
    return Context::get().fail(function, StreamCaptureUnsupported,
                               "the default stream cannot be captured",
                               "create a stream with cudaStreamCreate");
  if (stream->capture)
    return Context::get().fail(function, IllegalState, "the stream is being captured already");
  auto capture = std::make_shared<Capture>();
  capture->handle = into ? into : new GraphHandle(std::make_shared<Graph>());
  capture->origin = stream;
  capture->streams = {stream};
  capture->id = ++captureIds;
  stream->capture = capture;
  stream->last = std::move(after);
  stream->captured = nullptr;
  captures().push_back(capture.get());
  return Success;
}

/// Returns true when the last node of the origin depends on all that `stream` captured.
static bool joined(const Stream &stream, const Stream &origin) {
  std::set<const GraphNode *> before;
  std::vector<const GraphNode *> open(origin.last.begin(), origin.last.end());
  while (!open.empty()) {
    const GraphNode *node = open.back();
    open.pop_back();
    if (before.insert(node).second)
      open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return std::all_of(stream.last.begin(), stream.last.end(),
                     [&](const GraphNode *node) { return before.count(node); });
}

Code fp4::simcuda::endCapture(const char *function, StreamHandle handle, GraphHandle **graph) {
  FP4_LIVE_IN(function, handle);
  if (!graph)
    return InvalidValue;
  *graph = nullptr;
  Stream *stream = capturing(handle);
  if (!stream)
    return Context::get().fail(function, IllegalState, "the stream is not being captured");
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream)
    return Context::get().fail(function, StreamCaptureUnmatched,
                               "the capture began in another stream");
  bool complete = true;
  for (const Stream *other : capture->streams)
    complete &= joined(*other, *stream);
  for (Stream *other : capture->streams) {
    other->capture.reset();
    other->last.clear();
  }
  std::erase(captures(), capture.get());
  if (capture->invalid)
    return Context::get().quiet(StreamCaptureInvalidated);
  if (!complete)
    return Context::get().fail(function, StreamCaptureUnjoined,
                               "work of a stream that joined the capture was not joined again",
                               "record an event there and let the first stream wait for it");
  *graph = capture->handle;
  return Success;
}

void fp4::simcuda::abandonCapture(Stream &stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  capture->invalid = true;
  std::erase(capture->streams, &stream);
  if (capture->origin != &stream)
    return;
  for (Stream *other : capture->streams) {
    other->capture.reset();
    other->last.clear();
  }
  std::erase(captures(), capture.get());
}

//===----------------------------------------------------------------------===//
// Events and memory
//===----------------------------------------------------------------------===//

Code fp4::simcuda::recordIn(const char *function, StreamHandle handle, EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  FP4_LIVE_IN(function, event, handle);
  Stream *stream = capturing(handle);
  event->capture = stream ? stream->capture : nullptr;
  event->nodes = stream ? stream->last : Edges{};
  if (stream)
    return Success;
  event->moment = orderOf(handle).moment();
  return enqueue(function, handle, RecordWork{event});
}

Code fp4::simcuda::waitIn(const char *function, StreamHandle handle, EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  FP4_LIVE_IN(function, event, handle);
  Stream *stream = streamOf(handle);
  if (!event->capture && !(stream && stream->capture))
    orderOf(handle).wait(event->moment);
  if (!event->capture || event->capture->handle == nullptr || !stream)
    return Context::get().sticky();
  if (stream->capture && stream->capture != event->capture)
    return invalidate(function, *stream->capture, StreamCaptureMerge,
                      "waits for an event of another capture");
  if (!stream->capture) {
    if (std::find(captures().begin(), captures().end(), event->capture.get()) == captures().end())
      return Context::get().sticky(); // that capture has ended
    stream->capture = event->capture;
    stream->capture->streams.push_back(stream);
    stream->captured = nullptr;
  }
  stream->last.add(event->nodes);
  return Success;
}

Code fp4::simcuda::allocateIn(const char *function, StreamHandle stream, uint64_t &address,
                              uint64_t bytes) {
  FP4_LIVE_IN(function, stream);
  Code code = Context::get().allocate(function, address, bytes);
  if (code != Success || !capturing(stream) || !address)
    return code;
  (void)Context::get().release(function, address); // the launch of the graph brings it back
  return enqueue(function, stream, AllocateWork{address, bytes});
}

Code fp4::simcuda::freeIn(const char *function, StreamHandle stream, uint64_t address) {
  return enqueue(function, stream, FreeWork{address});
}
