/*===- fp4-c/Runtime.h - The C ABI between compiled host code and a device --*- C -*-===*
 *
 * Host code that the compiler emits, in-process or as a shared library, calls these functions and
 * nothing else. The program that runs it (fp4-runner, fp4-run, or any program that links
 * FP4Runtime) provides them and decides which device executes the work.
 *
 * Binding. An emitted library has a table of these functions. `fp4_bind` fills it with the table of
 * the caller, so no symbol has to be global. A library that nobody bound uses the functions that
 * the process exports under their names.
 *
 * Session. The calls act on the session that is current on the calling thread
 * (fp4::rt::Session::Scope). The first error sticks in the session; every later call does nothing:
 * allocations return null, the count of SMs is 1, tensor maps are left untouched. Host code thus
 * needs no error paths, and the tool reports the first error when the entry function returns.
 * Without a current session the calls do the same, silently.
 *
 * Memory. All pointers named "device" are device addresses: host code never dereferences them and
 * may add byte offsets to them. The session owns what fp4rt_alloc returned until fp4rt_free, or
 * until the session ends. All work is in order of issue, on the stream of the session.
 *
 * Threads. Each thread has a current session of its own, so several threads can run host code at
 * the same time, each in its session.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_RUNTIME_H
#define FP4_C_RUNTIME_H

#include <stdint.h>

#if defined(__GNUC__)
#define FP4RT_EXPORT __attribute__((visibility("default")))
#else
#define FP4RT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The kernels of one gpu.module. Lives at least as long as the session that launches from it. */
typedef struct fp4rt_module {
  const char *name;   /**< module name, for messages */
  const char *target; /**< target the code was emitted for, for example "sm_100a" */
  const char *ptx;    /**< PTX text; ptx_size bytes, no terminating NUL needed */
  uint64_t ptx_size;  /**< 0 when the module carries no PTX */
  const void *cubin;  /**< cubin for `target`; null when the module carries none */
  uint64_t cubin_size;
} fp4rt_module;

/** Allocates device memory, aligned to 256 bytes. The contents are undefined; bytes may be 0. */
FP4RT_EXPORT void *fp4rt_alloc(uint64_t bytes);

/** Memory for result number `index` of the entry function that runs, counted from 0: the buffer
 *  that the caller of the session provided, or its destination, if fp4rt_call has one that kernels
 *  can write (on the device, of as many bytes, aligned, apart from all other buffers of the call),
 *  else what fp4rt_alloc returns. */
FP4RT_EXPORT void *fp4rt_alloc_result(uint32_t index, uint64_t bytes);

/** Bytes from one row of result number `index` to the next, of a result that may be strided and has
 *  rows of `bytes` bytes: those of the buffer that the caller of the session provided, else `bytes`
 *  rounded up to a multiple of 16. fp4rt_alloc_result is then called with as many bytes as the rows
 *  take with this pitch, of which nobody uses those behind the last row. */
FP4RT_EXPORT uint64_t fp4rt_result_pitch(uint32_t index, uint64_t bytes);

/** Frees what fp4rt_alloc returned. Null is allowed. */
FP4RT_EXPORT void fp4rt_free(void *device);

/** Device memory that holds the `size` bytes at host address `bytes`, which the program carries and
 * nobody changes. The bytes are copied when the session first meets this address; the session owns
 * the memory, which must not be written or freed. */
FP4RT_EXPORT void *fp4rt_constant(const void *bytes, uint64_t size);

/** Device memory for counters, aligned to 256 bytes: it is zero, and every kernel that gets it
 * leaves it zero, so nobody has to clear it. The runtime owns it and gives it to all calls whose
 * work is in one order; calls on other streams, and those that a graph captures, get other memory.
 * The memory is valid as long as the constants of the program, and must not be freed. */
FP4RT_EXPORT void *fp4rt_counters(uint64_t bytes);

/** Sets `bytes` bytes of device memory to `value`. */
FP4RT_EXPORT void fp4rt_memset(void *device, uint8_t value, uint64_t bytes);

/** Copies `height` rows of `width` bytes between two device buffers; pitches in bytes, at least
 *  `width`. A contiguous copy is height 1. The buffers must not overlap. */
FP4RT_EXPORT void fp4rt_memcpy_2d(void *dst_device, uint64_t dst_pitch, const void *src_device,
                                  uint64_t src_pitch, uint64_t width, uint64_t height);

/** Encodes a tiled TMA tensor map into the 128 bytes at `out128` (host memory, 64-byte aligned).
 *  element_type, swizzle: values of CUtensorMapDataType and CUtensorMapSwizzle in cuda.h.
 *  dims and box: `rank` entries, innermost first, in elements. strides: `rank` - 1 entries in
 *  bytes, the stride of the innermost dimension being the element size. Element strides are 1,
 *  no interleave, out-of-bounds elements read as zero. */
FP4RT_EXPORT void fp4rt_tensor_map(void *out128, void *base_device, int32_t element_type,
                                   int32_t swizzle, int32_t rank, const uint64_t *dims,
                                   const uint64_t *strides, const uint32_t *box);

/** SMs of the device: the grid of a persistent kernel. */
FP4RT_EXPORT int32_t fp4rt_multiprocessor_count(void);

/** Makes the session fail with `message` and, if not null, a `note` that says what to do. For the
 *  checks of the host code itself, such as a dynamic size that no kernel covers. */
FP4RT_EXPORT void fp4rt_fail(const char *message, const char *note);

/** Makes the session fail unless min <= found <= max. `what` names the size in the message
 * ("argument 'x' dimension 0"); `note`, which may be null, says what to do. */
FP4RT_EXPORT void fp4rt_expect_size(const char *what, int64_t found, int64_t min, int64_t max,
                                    const char *note);

/** Launches `kernel` of `module`. params[i] points at the value of kernel parameter i, whose size
 *  and alignment are the kernel's own. shared_bytes is the dynamic shared memory. A grid with a
 *  zero extent launches nothing. Cluster dimensions are those the kernel declares
 *  (.reqnctapercluster), else 1. */
FP4RT_EXPORT void fp4rt_launch(const fp4rt_module *module, const char *kernel, uint32_t grid_x,
                               uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                               uint32_t block_z, uint32_t shared_bytes, void **params,
                               uint32_t num_params);

/** As fp4rt_launch, for a kernel that executes griddepcontrol.wait before it touches global memory: it
 *  may begin while the kernel before it on the stream ends (programmatic stream serialization). */
FP4RT_EXPORT void fp4rt_launch_dependent(const fp4rt_module *module, const char *kernel,
                                         uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                         uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                         uint32_t shared_bytes, void **params, uint32_t num_params);

/** As fp4rt_launch, for a kernel whose CTAs wait for each other: all of them run at the same time,
 * or the launch fails. */
FP4RT_EXPORT void fp4rt_launch_cooperative(const fp4rt_module *module, const char *kernel,
                                           uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                           uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                           uint32_t shared_bytes, void **params,
                                           uint32_t num_params);

/** As fp4rt_launch, for a kernel that runs in clusters of two sizes, in CTAs along x and y: of the
 * preferred size, which divides the grid, as far as the device has room, and of the other, which
 * divides the preferred one, elsewhere. The device decides which CTAs get which size. Needs a
 * driver of CUDA 12.8 or later and compute capability 10.0 or later. `dependent`: as
 * fp4rt_launch_dependent, if it is not 0. */
FP4RT_EXPORT void fp4rt_launch_clusters(const fp4rt_module *module, const char *kernel,
                                        uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                        uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                        uint32_t shared_bytes, void **params, uint32_t num_params,
                                        uint32_t dependent, uint32_t cluster_x, uint32_t cluster_y,
                                        uint32_t preferred_x, uint32_t preferred_y);

/** 64 bytes of device memory in which kernels report rows of groups that do not fit: eight numbers
 *  of 64 bits. A kernel that finds a group whose rows decrease or are not there changes the first
 *  from 0 to 1, writes the group, its begin, its end, the end of the groups before it and the rows
 *  that there are, and changes the first to 2 with release semantics. `what` names the operand; it
 *  stays at its address as long as the program. The runtime owns the memory. The error is that of
 *  the session, or of a later call or synchronization where nobody waits for this one. */
FP4RT_EXPORT void *fp4rt_group_report(const char *what);

/** The type of `fp4_entry_NAME`. args[0] points to the descriptors of the results, if there are
 * any; one pointer to a memref descriptor per argument follows. The function returns 0, or 1 where
 * the library is bound to no functions; nothing was done then. */
typedef int32_t (*fp4_entry_function)(void **args);

/** The memref of a buffer: its rank, and the bytes of an element. */
typedef struct fp4rt_memref_type {
  uint32_t rank;
  uint32_t element_bytes;
} fp4rt_memref_type;

/** Calls `entry`, a function fp4_entry_NAME, with buffers of the caller: this is what
 * _mlir_ciface_NAME does. `buffers` has the addresses of the descriptors of `num_arguments`
 * arguments and then of `num_results` destinations, which receive the results; `types` has their
 * types. All are dense. The buffers are in device memory, where kernels write the destinations that
 * they can (fp4rt_alloc_result), or in host memory where the session says so
 * (fp4::rt::Session::setCallerMemory); then they are copied to the device and back. */
FP4RT_EXPORT void fp4rt_call(fp4_entry_function entry, void *const *buffers,
                             const fp4rt_memref_type *types, uint32_t num_arguments,
                             uint32_t num_results);

/** The functions above, as a library is bound to them. Later versions append members. */
typedef struct fp4rt_api {
  uint64_t size; /**< sizeof(fp4rt_api) where the table was made */
  void *(*alloc)(uint64_t bytes);
  void *(*alloc_result)(uint32_t index, uint64_t bytes);
  void (*free)(void *device);
  void *(*constant)(const void *bytes, uint64_t size);
  void (*memset)(void *device, uint8_t value, uint64_t bytes);
  void (*memcpy_2d)(void *dst_device, uint64_t dst_pitch, const void *src_device,
                    uint64_t src_pitch, uint64_t width, uint64_t height);
  void (*tensor_map)(void *out128, void *base_device, int32_t element_type, int32_t swizzle,
                     int32_t rank, const uint64_t *dims, const uint64_t *strides,
                     const uint32_t *box);
  int32_t (*multiprocessor_count)(void);
  void (*fail)(const char *message, const char *note);
  void (*expect_size)(const char *what, int64_t found, int64_t min, int64_t max, const char *note);
  void (*launch)(const fp4rt_module *module, const char *kernel, uint32_t grid_x, uint32_t grid_y,
                 uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                 uint32_t shared_bytes, void **params, uint32_t num_params);
  void (*call)(fp4_entry_function entry, void *const *buffers, const fp4rt_memref_type *types,
               uint32_t num_arguments, uint32_t num_results);
  void (*launch_dependent)(const fp4rt_module *module, const char *kernel, uint32_t grid_x,
                           uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                           uint32_t block_z, uint32_t shared_bytes, void **params,
                           uint32_t num_params);
  void *(*counters)(uint64_t bytes);
  void (*launch_cooperative)(const fp4rt_module *module, const char *kernel, uint32_t grid_x,
                             uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                             uint32_t block_z, uint32_t shared_bytes, void **params,
                             uint32_t num_params);
  void (*launch_clusters)(const fp4rt_module *module, const char *kernel, uint32_t grid_x,
                          uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                          uint32_t block_z, uint32_t shared_bytes, void **params,
                          uint32_t num_params, uint32_t dependent, uint32_t cluster_x,
                          uint32_t cluster_y, uint32_t preferred_x, uint32_t preferred_y);
  void *(*group_report)(const char *what);
  uint64_t (*result_pitch)(uint32_t index, uint64_t bytes);
} fp4rt_api;

/** The table of this runtime, which lives as long as the process. */
FP4RT_EXPORT const fp4rt_api *fp4rt_get_api(void);

/** Export of every emitted library: `int32_t fp4_bind(const fp4rt_api *api)` copies the table. Call
 * it once, before the first entry function and not beside one. The call returns 0, or 1 where the
 * table is older than the library and lacks functions that it calls; nothing is bound then. */
typedef int32_t (*fp4_bind_function)(const fp4rt_api *api);

#ifdef __cplusplus
}
#endif
#endif
