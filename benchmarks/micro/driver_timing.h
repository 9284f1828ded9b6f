// Common parts of programs that launch cubins by the driver: checked calls, the context of the first
// GPU with a stream, and the time between two events.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda.h>

inline void check(CUresult error, const char *file, int line) {
  const char *text = nullptr;
  if (!error)
    return;
  cuGetErrorString(error, &text);
  fprintf(stderr, "%s:%d: %s\n", file, line, text);
  exit(1);
}
#define CHECK(call) check(call, __FILE__, __LINE__)

/// The primary context of the first GPU, current, with a stream and two events.
struct Timer {
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUevent begin, end;

  Timer() {
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&begin, 0));
    CHECK(cuEventCreate(&end, 0));
  }

  /// Microseconds of the stream between the events before and behind `work`.
  template <typename Work> float microsecondsOf(Work work) {
    float milliseconds;
    CHECK(cuEventRecord(begin, stream));
    work();
    CHECK(cuEventRecord(end, stream));
    CHECK(cuEventSynchronize(end));
    CHECK(cuEventElapsedTime(&milliseconds, begin, end));
    return milliseconds * 1e3f;
  }
};
