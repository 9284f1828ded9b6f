/*===- fp4-c/Loader.h - Emitted libraries without a library of fp4 ----------------*- C -*-===*
 *
 * Runs what fp4-runner --emit=so wrote, on a GPU, with the CUDA driver alone: a serving engine
 * includes this header and links nothing of fp4. One source file defines FP4_LOADER_IMPLEMENTATION
 * before it includes the header; C11 and C++17 compile it (link with -ldl before glibc 2.34).
 *
 *   fp4_loader *loader;
 *   if (fp4_loader_open("linear.so", NULL, &loader)) ...  // fp4_loader_message(loader)
 *   uint64_t x[7], y[7];                                   // memref descriptors
 *   fp4_loader_describe(x, x_address, 2, (int64_t[]){rows, 256});
 *   void *args[] = {y, x};                                 // the results, then each argument
 *   fp4_loader_buffer result = {y_address, y_bytes, 0};
 *   if (fp4_loader_call(loader, "linear", args, stream, &result, 1)) ...
 *   if (fp4_loader_finish(loader, stream)) ...             // waits
 *   fp4_loader_close(loader);
 *
 * Driver. Functions of the CUDA driver come from libcuda.so.1, or from `find` of the caller. A CUDA
 * context must be current on the thread at every call, as cudaSetDevice makes one; a loader belongs
 * to one context and is used by one thread at a time. The error of a call is that of its first step
 * that fails, and the loader stays usable.
 *
 * Library. The first loader of a library binds its table, for good, under a lock: loaders of one
 * library may run on several threads. A library that the process loaded otherwise, as libfp4rt.so
 * does, is refused, and libfp4rt.so must not load one that loaders use: open a copy of the file.
 *
 * Memory. Temporary memory is allocated and freed in order of the stream. The loader owns modules,
 * constants and counters until it is closed, which is legal when its work has ended. A call may be
 * captured into a graph after one call of the same sizes was not. `_mlir_ciface_NAME` and strided
 * results without a buffer need libfp4rt.so.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_LOADER_H
#define FP4_C_LOADER_H

#include "fp4-c/Runtime.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fp4_loader fp4_loader;

/** Source of the functions of the driver. */
typedef struct fp4_loader_options {
  /** The function of a name of libcuda.so.1, such as "cuMemAllocAsync"; null: dlsym. */
  void *(*find)(void *context, const char *name);
  void *context;
} fp4_loader_options;

/** Memory for a result: its device address, a multiple of 16, its bytes, and the bytes from one row
 * to the next of a strided result, else 0. */
typedef struct fp4_loader_buffer {
  uint64_t address;
  uint64_t bytes;
  uint64_t pitch;
} fp4_loader_buffer;

/** Opens an emitted library. `options` may be null. Returns 0, or a value that is not 0; then
 * fp4_loader_message says why, other calls return this error, and the loader must be closed. */
extern int fp4_loader_open(const char *library, const fp4_loader_options *options,
                           fp4_loader **loader);

/** Issues the public function `function` to `stream` (a CUstream; null: the default stream). Result
 * number i is written to results[i], where i < num_results and its address is not 0, else to memory
 * that the call allocates, which fp4_loader_free frees. Returns 0, or another value; descriptors
 * that were zero have the address of what a failing call allocated, or zero, and the caller frees.
 */
extern int fp4_loader_call(fp4_loader *loader, const char *function, void **args, void *stream,
                           const fp4_loader_buffer *results, size_t num_results);

/** Waits for the stream and returns the error of its kernels: 0, or another value. */
extern int fp4_loader_finish(fp4_loader *loader, void *stream);

/** The JSON of the library (docs/guides/libraries.md); null where the loader did not open. */
extern const char *fp4_loader_manifest(const fp4_loader *loader);

/** The message and the remedy of the last call that did not return 0; "" after one that did. */
extern const char *fp4_loader_message(const fp4_loader *loader);
extern const char *fp4_loader_note(const fp4_loader *loader);

/** Frees a result that a call allocated, in order of the stream. */
extern int fp4_loader_free(fp4_loader *loader, void *address, void *stream);

/** Null is allowed. The code of the library stays in the process. */
extern void fp4_loader_close(fp4_loader *loader);

/** Fills the 3 + 2 * rank words of the descriptor of a dense buffer. */
extern void fp4_loader_describe(uint64_t *words, uint64_t address, uint32_t rank,
                                const int64_t *sizes);

#ifdef __cplusplus
}
#endif
#endif

#ifdef FP4_LOADER_IMPLEMENTATION
#include "fp4-c/LoaderImplementation.h"
#endif
