//===- Streams.cpp - Streams and events -----------------------------------===//
#include "Streams.h"
#include <atomic>

using namespace fp4::simcuda;

Code fp4::simcuda::createStream(StreamHandle *stream, unsigned flags, int priority) {
  static std::atomic<uint64_t> next{10};
  if (!stream)
    return InvalidValue;
  *stream = new Stream;
  (*stream)->flags = flags;
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
    return handle;
  return reinterpret_cast<uintptr_t>(handle) == perThread ? &defaultOfThread : nullptr;
}

Code fp4::simcuda::destroyStream(StreamHandle stream) {
  if (isDefault(stream))
    return Context::get().quiet(InvalidResourceHandle);
  delete stream;
  return Success;
}

uint64_t fp4::simcuda::streamId(StreamHandle stream) {
  return isDefault(stream) ? reinterpret_cast<uintptr_t>(stream) : stream->id;
}

Code fp4::simcuda::createEvent(EventHandle *event, unsigned flags) {
  if (!event)
    return InvalidValue;
  *event = new Event;
  (*event)->flags = flags;
  return Success;
}

Code fp4::simcuda::destroyEvent(EventHandle event) {
  delete event;
  return Success;
}

Code fp4::simcuda::recordEvent(EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return Context::get().sticky();
}

Code fp4::simcuda::eventStatus(EventHandle event) {
  if (!event)
    return Context::get().quiet(InvalidResourceHandle);
  return event->capture ? Context::get().quiet(CapturedEvent) : Context::get().sticky();
}

Code fp4::simcuda::elapsed(const char *function, float *milliseconds, EventHandle from,
                           EventHandle to) {
  if (!from || !to || !from->recorded || !to->recorded)
    return Context::get().fail(function, InvalidResourceHandle,
                               "both events must have been recorded");
  if (!milliseconds)
    return InvalidValue;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return Success;
}
