//===- CudartStream.cpp - Streams and events of the runtime API -----------===//
#include "EntryPoint.h"
#include "Streams.h"

using namespace fp4::simcuda;

FP4_ENTRY int cudaStreamCreate(StreamHandle *stream) { return createStream(stream, 0, 0); }
FP4_ENTRY int cudaStreamCreateWithFlags(StreamHandle *stream, unsigned flags) {
  return createStream(stream, flags, 0);
}
FP4_ENTRY int cudaStreamCreateWithPriority(StreamHandle *stream, unsigned flags, int priority) {
  return createStream(stream, flags, priority);
}
FP4_ENTRY int cudaStreamDestroy(StreamHandle stream) { return destroyStream(stream); }

FP4_ENTRY int cudaStreamSynchronize(StreamHandle) { return context().sticky(); }
FP4_PER_THREAD(cudaStreamSynchronize, _ptsz)
FP4_ENTRY int cudaStreamQuery(StreamHandle) { return context().sticky(); }
FP4_PER_THREAD(cudaStreamQuery, _ptsz)
FP4_ENTRY int cudaStreamWaitEvent(StreamHandle, EventHandle, unsigned) {
  return context().sticky();
}
FP4_PER_THREAD(cudaStreamWaitEvent, _ptsz)

FP4_ENTRY int cudaStreamGetFlags(StreamHandle stream, unsigned *flags) {
  *flags = streamId(stream) <= 2 ? 0 : stream->flags;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetFlags, _ptsz)
FP4_ENTRY int cudaStreamGetPriority(StreamHandle stream, int *priority) {
  *priority = streamId(stream) <= 2 ? 0 : stream->priority;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetPriority, _ptsz)
FP4_ENTRY int cudaStreamGetId(StreamHandle stream, unsigned long long *id) {
  *id = streamId(stream);
  return Success;
}
FP4_PER_THREAD(cudaStreamGetId, _ptsz)
FP4_ENTRY int cudaStreamGetDevice(StreamHandle, int *device) {
  *device = 0;
  return Success;
}
FP4_PER_THREAD(cudaStreamGetDevice, _ptsz)
FP4_ENTRY int cudaStreamSetAttribute(StreamHandle, int, const void *) { return Success; }
FP4_PER_THREAD(cudaStreamSetAttribute, _ptsz)

/// Graphs are not simulated, so nothing is ever captured.
FP4_ENTRY int cudaStreamIsCapturing(StreamHandle, int *status) {
  *status = 0;
  return Success;
}
FP4_PER_THREAD(cudaStreamIsCapturing, _ptsz)

FP4_ENTRY int cudaLaunchHostFunc(StreamHandle, void (*function)(void *), void *argument) {
  if (Code code = context().sticky(); code != Success)
    return code;
  function(argument);
  return Success;
}
FP4_PER_THREAD(cudaLaunchHostFunc, _ptsz)

FP4_ENTRY int cudaStreamAddCallback(StreamHandle stream,
                                    void (*function)(StreamHandle, int, void *), void *argument,
                                    unsigned) {
  function(stream, context().sticky(), argument);
  return Success;
}
FP4_PER_THREAD(cudaStreamAddCallback, _ptsz)

FP4_ENTRY int cudaEventCreate(EventHandle *event) { return createEvent(event, 0); }
FP4_ENTRY int cudaEventCreateWithFlags(EventHandle *event, unsigned flags) {
  return createEvent(event, flags);
}
FP4_ENTRY int cudaEventDestroy(EventHandle event) { return destroyEvent(event); }
FP4_ENTRY int cudaEventRecord(EventHandle event, StreamHandle) { return recordEvent(event); }
FP4_PER_THREAD(cudaEventRecord, _ptsz)
FP4_ENTRY int cudaEventRecordWithFlags(EventHandle event, StreamHandle, unsigned) {
  return recordEvent(event);
}
FP4_PER_THREAD(cudaEventRecordWithFlags, _ptsz)
FP4_ENTRY int cudaEventQuery(EventHandle) { return context().sticky(); }
FP4_ENTRY int cudaEventSynchronize(EventHandle) { return context().sticky(); }
FP4_ENTRY int cudaEventElapsedTime(float *milliseconds, EventHandle from, EventHandle to) {
  return elapsed(__func__, milliseconds, from, to);
}
