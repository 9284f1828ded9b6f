/*===- fp4-c/LoaderState.h - The driver that a loader calls, and what it owns -----*- C -*-===*
 *
 * Structures and functions of libcuda.so.1 as the 64-bit driver has them, so that nobody needs
 * cuda.h; then the loader and its list of modules, constants and counters.
 * fp4-c/LoaderImplementation.h includes this header.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_LOADER_STATE_H
#define FP4_C_LOADER_STATE_H

#include "fp4-c/Loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fp4_loader_copy { /* CUDA_MEMCPY2D */
  size_t src_x, src_y;
  unsigned src_type;
  const void *src_host;
  uint64_t src;
  void *src_array;
  size_t src_pitch, dst_x, dst_y;
  unsigned dst_type;
  void *dst_host;
  uint64_t dst;
  void *dst_array;
  size_t dst_pitch, width, height;
} fp4_loader_copy;

typedef struct fp4_loader_attribute { /* CUlaunchAttribute */
  int id;
  char pad[4];
  union {
    char bytes[64];
    unsigned cluster[3];
    void *address; /* the alignment of the driver's union */
  } value;
} fp4_loader_attribute;

typedef struct fp4_loader_config { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  void *stream;
  fp4_loader_attribute *attributes;
  unsigned count;
} fp4_loader_config;

/* X(name, symbol, parameter types...): the calls of the driver, by the symbols of libcuda.so.1. */
#define FP4_LOADER_CALLS(X)                                                                        \
  X(error_name, "cuGetErrorName", int, const char **)                                              \
  X(error_text, "cuGetErrorString", int, const char **)                                            \
  X(current, "cuCtxGetCurrent", void **)                                                           \
  X(device, "cuCtxGetDevice", int *)                                                               \
  X(device_attribute, "cuDeviceGetAttribute", int *, int, int)                                     \
  X(allocate, "cuMemAlloc_v2", uint64_t *, size_t)                                                 \
  X(release, "cuMemFree_v2", uint64_t)                                                             \
  X(allocate_on, "cuMemAllocAsync", uint64_t *, size_t, void *)                                    \
  X(release_on, "cuMemFreeAsync", uint64_t, void *)                                                \
  X(allocate_host, "cuMemHostAlloc", void **, size_t, unsigned)                                    \
  X(release_host, "cuMemFreeHost", void *)                                                         \
  X(upload, "cuMemcpyHtoD_v2", uint64_t, const void *, size_t)                                     \
  X(copy_2d, "cuMemcpy2DAsync_v2", const fp4_loader_copy *, void *)                                \
  X(fill, "cuMemsetD8Async", uint64_t, unsigned char, size_t, void *)                              \
  X(load, "cuModuleLoadDataEx", void **, const void *, unsigned, int *, void **)                   \
  X(unload, "cuModuleUnload", void *)                                                              \
  X(function, "cuModuleGetFunction", void **, void *, const char *)                                \
  X(get_attribute, "cuFuncGetAttribute", int *, int, void *)                                       \
  X(set_attribute, "cuFuncSetAttribute", void *, int, int)                                         \
  X(launch, "cuLaunchKernelEx", const fp4_loader_config *, void *, void **, void **)               \
  X(encode, "cuTensorMapEncodeTiled", void *, int, uint32_t, void *, const uint64_t *,             \
    const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int)                      \
  X(create_stream, "cuStreamCreate", void **, unsigned)                                            \
  X(destroy_stream, "cuStreamDestroy_v2", void *)                                                  \
  X(synchronize, "cuStreamSynchronize", void *)                                                    \
  X(capture_info, "cuStreamGetCaptureInfo_v2", void *, int *, unsigned long long *, void **,       \
    void **, size_t *)                                                                             \
  X(capture_mode, "cuThreadExchangeStreamCaptureMode", int *)

#ifdef __cplusplus
#define FP4_LOADER_THREAD static thread_local
#else
#define FP4_LOADER_THREAD static _Thread_local
#endif

typedef struct fp4_loader_driver {
#define FP4_LOADER_POINTER(name, symbol, ...) int (*name)(__VA_ARGS__);
  FP4_LOADER_CALLS(FP4_LOADER_POINTER)
#undef FP4_LOADER_POINTER
} fp4_loader_driver;

typedef enum fp4_loader_kind {
  FP4_LOADER_MODULE,   /* key: the fp4rt_module; value: a CUmodule */
  FP4_LOADER_KERNEL,   /* key: the module, second: its name; value: a CUfunction, size: shared */
  FP4_LOADER_CONSTANT, /* key: the bytes; value: an address */
  FP4_LOADER_COUNTERS, /* key: the stream, number: its capture; value: an address, size: bytes */
  FP4_LOADER_REPORT    /* key: the operand; value: memory of the host */
} fp4_loader_kind;

/* A thing that the loader owns; the list is short, and looked through once for each use. */
typedef struct fp4_loader_entry {
  fp4_loader_kind kind;
  const void *key;
  const char *second;
  uint64_t number;
  uint64_t value;
  uint64_t size;
  struct fp4_loader_entry *next;
} fp4_loader_entry;

struct fp4_loader {
  fp4_loader_driver driver;
  void *library;
  fp4_loader_entry *entries;
  void *stream;
  const fp4_loader_buffer *results;
  size_t num_results;
  uint64_t *gaps; /* of each result: the bytes behind its last row, which nobody writes */
  size_t most_gaps;
  int failed;
  char message[1024];
  char note[256];
};

FP4_LOADER_THREAD fp4_loader *fp4_loader_current;

/* The first error stays, and every later step does nothing. */
static void fp4_loader_fail(fp4_loader *loader, const char *message, const char *note) {
  if (loader->failed)
    return;
  loader->failed = 1;
  snprintf(loader->message, sizeof(loader->message), "%s", message);
  snprintf(loader->note, sizeof(loader->note), "%s", note ? note : "");
}

/* Returns 1 where the driver answered 0. */
static int fp4_loader_check(fp4_loader *loader, int result, const char *doing, const char *what) {
  const char *name = NULL, *text = NULL;
  char message[768];
  if (result == 0)
    return 1;
  loader->driver.error_name(result, &name);
  loader->driver.error_text(result, &text);
  snprintf(message, sizeof(message), "%s '%s' failed: the driver answers %s (%s)", doing, what,
           name ? name : "an unknown error", text ? text : "");
  fp4_loader_fail(
      loader, message,
      "compute-sanitizer names a wrong access; CUDA_LAUNCH_BLOCKING=1 names the kernel");
  return 0;
}

static fp4_loader *fp4_loader_working(void) {
  return fp4_loader_current && !fp4_loader_current->failed ? fp4_loader_current : NULL;
}

static fp4_loader_entry *fp4_loader_find(fp4_loader *loader, fp4_loader_kind kind, const void *key,
                                         const char *second, uint64_t number) {
  fp4_loader_entry *entry = loader->entries;
  while (entry && !(entry->kind == kind && entry->key == key && entry->number == number &&
                    (!second || strcmp(entry->second, second) == 0)))
    entry = entry->next;
  return entry;
}

static fp4_loader_entry *fp4_loader_add(fp4_loader *loader, fp4_loader_kind kind, const void *key,
                                        uint64_t value) {
  fp4_loader_entry *entry = (fp4_loader_entry *)calloc(1, sizeof(fp4_loader_entry));
  if (!entry) {
    fp4_loader_fail(loader, "the loader has no memory of the host", "end other programs");
    return NULL;
  }
  entry->kind = kind;
  entry->key = key;
  entry->value = value;
  entry->next = loader->entries;
  loader->entries = entry;
  return entry;
}

static void *fp4_loader_pointer(uint64_t address) { return (void *)(uintptr_t)address; }

#endif
