/* Stubs that call.py puts in the place of libfp4 and of the CUDA driver, to time the
 * code above each: calls succeed and do nothing.
 *
 *   cc -O2 -shared -fPIC -DLIBFP4 stubs.c -o libstub.so
 *   cc -O2 -shared -fPIC -Wl,-soname,libcuda.so.1 stubs.c -o libcuda.so
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NOTHING(name)                                                                              \
  int name(void) { return 0; }

#ifdef LIBFP4

void *fp4_function_call(void) { return NULL; }
void *fp4_device_allocate(void *device, uint64_t bytes, uint64_t *address) {
  (void)device, (void)bytes;
  *address = 4096;
  return NULL;
}
void *fp4_device_free(void) { return NULL; }
void *fp4_device_copy_to(void) { return NULL; }
void *fp4_device_copy_from(void) { return NULL; }
int32_t fp4_error_get_kind(const void *error) { return error ? 70 : 0; }
const char *fp4_error_get_message(const void *error) { return error ? "stub" : NULL; }
const char *fp4_error_get_note(const void *error) { return error ? "" : NULL; }
void fp4_error_destroy(void) {}

#else

size_t num_parameters = 0; /* of the kernel; call.py counts them in the PTX */

static char handle; /* of everything */
static int handleFor(void **out) {
  *out = &handle;
  return 0;
}
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  for (int i = 0; i < size && i < 5; ++i)
    name[i] = "stub"[i];
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device; /* compute capability 9.0, 227 KB of shared memory */
  return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 132, 0;
}
int cuDevicePrimaryCtxRetain(void **context) { return handleFor(context); }
int cuCtxGetCurrent(void **context) { return handleFor(context); }
int cuModuleLoadDataEx(void **module) { return handleFor(module); }
int cuModuleGetFunction(void **function) { return handleFor(function); }
int cuFuncGetAttribute(int *value) { return *value = 0, 0; }
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
  (void)function;
  *offset = 8 * index, *size = 8;
  return index < num_parameters ? 0 : 1;
}
int cuMemAlloc_v2(uint64_t *address) { return *address = 4096, 0; }
int cuMemHostAlloc(void **address) { return *address = calloc(1, 1 << 20), 0; }
int cuStreamGetId(void *stream, unsigned long long *number) {
  (void)stream;
  return *number = 1, 0;
}
int cuStreamGetCaptureInfo_v2(void *stream, int *status) {
  (void)stream;
  return *status = 0, 0;
}
int cuMemAllocAsync(uint64_t *address) { return *address = 4096, 0; }
int cuStreamCreate(void **stream) { return handleFor(stream); }
int cuEventCreate(void **event) { return handleFor(event); }
NOTHING(cuInit)
NOTHING(cuGetErrorName)
NOTHING(cuGetErrorString)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxSynchronize)
NOTHING(cuMemFree_v2)
NOTHING(cuMemFreeAsync)
NOTHING(cuMemcpyHtoD_v2)
NOTHING(cuMemcpyDtoH_v2)
NOTHING(cuMemcpy2DUnaligned_v2)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernelEx)
NOTHING(cuTensorMapEncodeTiled)
NOTHING(cuTensorMapEncodeIm2col)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuEventElapsedTime)
NOTHING(cuEventDestroy_v2)
NOTHING(cuDeviceGetPCIBusId)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemcpy2DAsync_v2)
NOTHING(cuMemsetD8Async)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuThreadExchangeStreamCaptureMode)
NOTHING(cuMemFreeHost)
NOTHING(cuStreamBeginCapture_v2)
NOTHING(cuStreamEndCapture)
NOTHING(cuGraphGetNodes)
NOTHING(cuGraphInstantiateWithFlags)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphDestroy)
NOTHING(cuGraphExecDestroy)

#endif
