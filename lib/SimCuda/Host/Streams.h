//===- Streams.h - Streams and events -------------------------------------===//
//
// All work happens in the order of the calls, so a stream is only a name and an event is a time.
// Launches that could run beside each other are known all the same (DependentLaunch.h). A stream
// may be captured (Graphs.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Context.h"

namespace fp4::simcuda {

FP4_HOST_API Code createStream(StreamHandle *stream, unsigned flags, int priority);
FP4_HOST_API Code destroyStream(const char *function, StreamHandle stream);
/// Returns null for the legacy default stream.
FP4_HOST_API Stream *streamOf(StreamHandle handle);
FP4_HOST_API uint64_t streamId(StreamHandle stream);
FP4_HOST_API StreamOrder &orderOf(StreamHandle stream);

FP4_HOST_API Code createEvent(EventHandle *event, unsigned flags);
FP4_HOST_API Code destroyEvent(const char *function, EventHandle event);
FP4_HOST_API Code recordEvent(const char *function, EventHandle event);
/// Returns the answer to a query of the event. All work before it is done.
FP4_HOST_API Code eventStatus(const char *function, EventHandle event);
/// Writes host milliseconds: the time that the simulation took, and not that of a device.
FP4_HOST_API Code elapsed(const char *function, float *milliseconds, EventHandle from,
                          EventHandle to);

} // namespace fp4::simcuda
