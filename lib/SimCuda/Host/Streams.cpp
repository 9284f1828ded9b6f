//===- Streams.cpp - Streams and events -----------------------------------===//
#include "Streams.h"
#include "Graphs.h"
#include <atomic>

using namespace fp4::simcuda;

Code fp4::simcuda::createStream(StreamHandle *stream, unsigned flags, int priority) {
  static std::atomic<uint64_t> next{10};
  if (!stream)
    return InvalidValue;
  *stream = new Stream;
  constexpr unsigned nonBlocking = 1;
  (*stream)->flags = flags;
  (*stream)->order =
      StreamOrder(flags & nonBlocking ? StreamKind::NonBlocking : StreamKind::Blocking);
  (*stream)->priority = priority;
  (*stream)->id = next++;
  return Success;
}

/// The handles 0, 1 and 2 are the default streams.
static bool isDefault(StreamHandle stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

Stream *fp4::simcuda::streamOf(StreamHandle handle) {
  constexpr uintptr_t perThread = 2;
  static thread_local Stream defaultOfThread;
  if (!isDefault(handle))
    return isLive(handle) ? handle : nullptr;
  return reinterpret_cast<uintptr_t>(handle) == perThread ? &defaultOfThread : nullptr;
}

StreamOrder &fp4::simcuda::orderOf(StreamHandle handle) {
  static StreamOrder *legacy = new StreamOrder(StreamKind::Legacy);
  Stream *stream = streamOf(handle);
  return stream ? stream->order : *legacy;
}

Code fp4::simcuda::destroyStream(const char *function, StreamHandle stream) {
  if (isDefault(stream))
    return Context::get().quiet(InvalidResourceHandle);
  FP4_LIVE_IN(function, stream);
  if (stream->capture)
    abandonCapture(*stream);
  delete stream;
  return Success;
}

uint64_t fp4::simcuda::streamId(StreamHandle stream) {
  if (isDefault(stream))
    return reinterpret_cast<uintptr_t>(stream);
  return isLive(stream) ? stream->id : 0;
}

Code fp4::simcuda::createEvent(EventHandle *event, unsigned flags) {
  if (!event)
    return InvalidValue;
  *event = new Event;
  (*event)->flags = flags;
  return Success;
}

Code fp4::simcuda::destroyEvent(const char *function, EventHandle event) {
  if (event)
    FP4_LIVE_IN(function, event);
  delete event;
  return Success;
}

Code fp4::simcuda::recordEvent(const char *function, EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  FP4_LIVE_IN(function, event);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return Context::get().sticky();
}

Code fp4::simcuda::eventStatus(const char *function, EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  FP4_LIVE_IN(function, event);
  hostWaited(event->moment);
  return event->capture ? Context::get().quiet(CapturedEvent) : Context::get().sticky();
}

Code fp4::simcuda::elapsed(const char *function, float *milliseconds, EventHandle from,
                           EventHandle to) {
  if (from && to)
    FP4_LIVE_IN(function, from, to);
  if (!from || !to || !from->recorded || !to->recorded)
    return Context::get().fail(function, InvalidResourceHandle,
                               "both events must have been recorded");
  if (!milliseconds)
    return InvalidValue;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return Success;
}
