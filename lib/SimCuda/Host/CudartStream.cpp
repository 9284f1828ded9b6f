//===- CudartStream.cpp - Streams and events of the runtime API -----------===//
#include "EntryPoint.h"
#include "Graphs.h"
#include "LaunchAttributes.h"
#include "Streams.h"
#include <cstring>

using namespace fp4::simcuda;

FP4_ENTRY int cudaStreamCreate(StreamHandle *stream) { return createStream(stream, 0, 0); }
FP4_ENTRY int cudaStreamCreateWithFlags(StreamHandle *stream, unsigned flags) {
  return createStream(stream, flags, 0);
}
FP4_ENTRY int cudaStreamCreateWithPriority(StreamHandle *stream, unsigned flags, int priority) {
  return createStream(stream, flags, priority);
}
FP4_ENTRY int cudaStreamDestroy(StreamHandle stream) { return destroyStream(__func__, stream); }

FP4_ENTRY int cudaStreamSynchronize(StreamHandle stream) {
  return synchronize("cudaStreamSynchronize", stream);
}
FP4_PER_THREAD(cudaStreamSynchronize, _ptsz)
FP4_ENTRY int cudaStreamQuery(StreamHandle stream) {
  return synchronize("cudaStreamQuery", stream);
}
FP4_PER_THREAD(cudaStreamQuery, _ptsz)
FP4_ENTRY int cudaStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return waitIn("cudaStreamWaitEvent", stream, event);
}
FP4_PER_THREAD(cudaStreamWaitEvent, _ptsz)

FP4_ENTRY int cudaStreamGetFlags(StreamHandle stream, unsigned *flags) {
  FP4_REQUIRE(flags);
  FP4_REQUIRE_LIVE(stream);
  *flags = streamId(stream) <= 2 ? 0 : stream->flags;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetFlags, _ptsz)
FP4_ENTRY int cudaStreamGetPriority(StreamHandle stream, int *priority) {
  FP4_REQUIRE(priority);
  FP4_REQUIRE_LIVE(stream);
  *priority = streamId(stream) <= 2 ? 0 : stream->priority;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetPriority, _ptsz)
FP4_ENTRY int cudaStreamGetId(StreamHandle stream, unsigned long long *id) {
  return identify("cudaStreamGetId", stream, id);
}
FP4_PER_THREAD(cudaStreamGetId, _ptsz)
FP4_ENTRY int cudaStreamGetDevice(StreamHandle, int *device) {
  FP4_REQUIRE(device);
  *device = 0;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetDevice, _ptsz)
/// Attributes of streams are hints.
FP4_ENTRY int cudaStreamSetAttribute(StreamHandle, int attribute, const void *) {
  if (!isKnownAttribute(attribute))
    warnOfAttribute("cudaStreamSetAttribute", attribute, /*driver=*/false);
  return Success;
}
FP4_PER_THREAD(cudaStreamSetAttribute, _ptsz)

FP4_ENTRY int cudaStreamGetAttribute(StreamHandle, int, void *value) {
  FP4_REQUIRE(value);
  std::memset(value, 0, sizeof(LaunchAttribute::bytes));
  return Success;
}
FP4_PER_THREAD(cudaStreamGetAttribute, _ptsz)
FP4_ENTRY int cudaStreamCopyAttributes(StreamHandle, StreamHandle) { return Success; }
FP4_PER_THREAD(cudaStreamCopyAttributes, _ptsz)

FP4_ENTRY int cudaLaunchHostFunc(StreamHandle stream, void (*function)(void *), void *argument) {
  FP4_REQUIRE(function);
  return enqueue("cudaLaunchHostFunc", stream, HostWork{function, argument});
}
FP4_PER_THREAD(cudaLaunchHostFunc, _ptsz)

FP4_ENTRY int cudaStreamAddCallback(StreamHandle stream,
                                    void (*function)(StreamHandle, int, void *), void *argument,
                                    unsigned) {
  FP4_REQUIRE(function);
  FP4_REQUIRE_LIVE(stream);
  if (Code code = synchronize("cudaStreamAddCallback", stream); captureStatus(stream) != 0)
    return code;
  function(stream, context().sticky(), argument);
  return Success;
}
FP4_PER_THREAD(cudaStreamAddCallback, _ptsz)

FP4_ENTRY int cudaEventCreate(EventHandle *event) { return createEvent(event, 0); }
FP4_ENTRY int cudaEventCreateWithFlags(EventHandle *event, unsigned flags) {
  return createEvent(event, flags);
}
FP4_ENTRY int cudaEventDestroy(EventHandle event) { return destroyEvent(__func__, event); }
FP4_ENTRY int cudaEventRecord(EventHandle event, StreamHandle stream) {
  return recordIn("cudaEventRecord", stream, event);
}
FP4_PER_THREAD(cudaEventRecord, _ptsz)
FP4_ENTRY int cudaEventRecordWithFlags(EventHandle event, StreamHandle stream, unsigned flags) {
  constexpr unsigned external = 1; // a node that records, instead of an edge
  return flags == external && event ? enqueue("cudaEventRecordWithFlags", stream, RecordWork{event})
                                    : recordIn("cudaEventRecordWithFlags", stream, event);
}
FP4_PER_THREAD(cudaEventRecordWithFlags, _ptsz)
FP4_ENTRY int cudaEventQuery(EventHandle event) { return eventStatus(__func__, event); }
FP4_ENTRY int cudaEventSynchronize(EventHandle event) { return eventStatus(__func__, event); }
FP4_ENTRY int cudaEventElapsedTime(float *milliseconds, EventHandle from, EventHandle to) {
  return elapsed("cudaEventElapsedTime", milliseconds, from, to);
}
FP4_ENTRY decltype(cudaEventElapsedTime) cudaEventElapsedTime_v2
    __attribute__((alias("cudaEventElapsedTime")));
