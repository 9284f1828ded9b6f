// The part of TVM FFI's runtime that kernels of the CuTe DSL call, so that programs without TVM FFI
// call them: a stream that the caller sets, and errors that are printed.
#include <stdint.h>
#include <stdio.h>

static void *stream;

void set_stream(void *given) { stream = given; }

void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id) {
  (void)device_type, (void)device_id;
  return stream;
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  fprintf(stderr, "error: %s: %s\n", kind, message);
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  fprintf(stderr, "error: %s: ", kind);
  for (int32_t i = 0; i < count; ++i)
    fprintf(stderr, "%s", parts[i] ? parts[i] : "");
  fprintf(stderr, "\n");
}

void CuteDSLRT_TVMFFISetRaisedCudaError(int32_t code) {
  fprintf(stderr, "error: CUDA call failed with %d\n", code);
}
