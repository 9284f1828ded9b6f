/*===- fp4-c/Program.h - Emitted functions on a device, from C ----------------*- C -*-===*
 *
 * Opens a GPU or the simulator, loads what the compiler emitted, and calls its functions with
 * device buffers, on the caller's stream and with the caller's memory.
 *
 *   fp4_device *device;
 *   fp4_program *program;
 *   fp4_executable *executable;
 *   fp4_error *error = fp4_device_open("auto", NULL, &device);
 *   if (!error) error = fp4_program_load("linear.so", &program);
 *   if (!error) error = fp4_executable_create(program, device, &executable);
 *   if (!error) error = fp4_executable_call(executable, "linear", arguments, 2, results, 1, NULL);
 *
 * A handle or a place for a result that is null is an error, and getters of null handles give the
 * empty string or 0. Strings are UTF-8 and end with NUL. A pointer to an options struct may be
 * null, which means its defaults. `size` in such a struct is sizeof of the struct where the caller
 * was compiled: members that a later version appended have their defaults then.
 *
 * Threads. Different threads may use one device, one program and one executable at the same time.
 * Each object must outlive what was made of it: a device its executables.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_PROGRAM_H
#define FP4_C_PROGRAM_H

#include "fp4-c/Error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------------------===*
 * Devices
 *===----------------------------------------------------------------------------------===*/

typedef struct fp4_device fp4_device;

/** Options of the simulator; a GPU takes `target` of it, and that only with "auto". Null strings
 *  and zeros are the defaults. */
typedef struct fp4_device_options {
  uint64_t size;        /**< sizeof(fp4_device_options) */
  const char *target;   /**< what the code is for; "sm_100a" */
  const char *check;    /**< hazard checker: "off", "default", "strict"; "default" */
  const char *policy;   /**< order of completion: "eager", "lazy", "random", "delay"; "eager" */
  uint64_t seed;        /**< of the random policy; 1 */
  const char *timeline; /**< file for a Perfetto trace; none */
  uint32_t threads;     /**< host threads; all */
} fp4_device_options;

/** Opens "sim", "cuda", "cuda:N", or "auto": a GPU that runs the target, else the simulator. */
FP4_EXPORT fp4_error *fp4_device_open(const char *selector, const fp4_device_options *options,
                                      fp4_device **device);
/** Ends the timeline, if there is one, and gives the device back. Null is allowed. */
FP4_EXPORT fp4_error *fp4_device_close(fp4_device *device);

/** "simulator" or the GPU's own name; "sim" or "cuda:N"; "sm_90a". The strings live as long as the
 * device. */
FP4_EXPORT const char *fp4_device_get_name(const fp4_device *device);
FP4_EXPORT const char *fp4_device_get_selector(const fp4_device *device);
FP4_EXPORT const char *fp4_device_get_target(const fp4_device *device);
FP4_EXPORT int32_t fp4_device_is_hardware(const fp4_device *device);
/** "h200" of "NVIDIA H200", a name of CUDA; null where plans know no such product. */
FP4_EXPORT const char *fp4_find_product(const char *name);

/** Device memory, aligned to 256 bytes. Addresses are numbers, 0 is none. */
FP4_EXPORT fp4_error *fp4_device_allocate(fp4_device *device, uint64_t bytes, uint64_t *address);
FP4_EXPORT fp4_error *fp4_device_free(fp4_device *device, uint64_t address);
/** Copies that are complete on return. */
FP4_EXPORT fp4_error *fp4_device_copy_to(fp4_device *device, uint64_t destination,
                                         const void *source, uint64_t bytes);
FP4_EXPORT fp4_error *fp4_device_copy_from(fp4_device *device, void *destination, uint64_t source,
                                           uint64_t bytes);
/** Waits for all work on the device. */
FP4_EXPORT fp4_error *fp4_device_synchronize(fp4_device *device);

/*===----------------------------------------------------------------------------------===*
 * Programs
 *===----------------------------------------------------------------------------------===*/

typedef struct fp4_program fp4_program;

/** Loads a library that was emitted (fp4-runner --emit=so, fp4_compiler_write_library). The code of
 * the library stays in the process until the end. */
FP4_EXPORT fp4_error *fp4_program_load(const char *path, fp4_program **program);
/** JSON (docs/guides/libraries.md); lives as long as `program`. */
FP4_EXPORT const char *fp4_program_get_manifest(const fp4_program *program);
/** Null is allowed. Executables keep what they need of it. */
FP4_EXPORT void fp4_program_destroy(fp4_program *program);

/*===----------------------------------------------------------------------------------===*
 * Calls
 *===----------------------------------------------------------------------------------===*/

enum { FP4_MAX_RANK = 4 };

typedef enum fp4_element_type {
  FP4_BF16,
  FP4_F16,
  FP4_F32,
  FP4_F4E2M1FN, /**< two to a byte, even column in the low nibble */
  FP4_F6E2M3FN,
  FP4_F6E3M2FN,
  FP4_F8E4M3FN,
  FP4_F8E5M2,
  FP4_F8E8M0FNU,
  FP4_I64,
  FP4_I8, /**< a byte of prepacked weights */
  FP4_I32
} fp4_element_type;

typedef enum fp4_layout {
  FP4_LINEAR,      /**< row-major and dense, and prepacked weights of other layouts */
  FP4_TILED_128X4, /**< block scales as tensor cores read them (docs/reference/fp4-attributes.md) */
  FP4_WGMMA_ROWS   /**< prepacked weights whose rows have one power of two */
} fp4_layout;

/** A buffer in device memory (docs/guides/libraries.md has its bytes). The buffer is dense, except
 * that an argument with fp4.strided may have rows with strides of their own. */
typedef struct fp4_tensor {
  uint64_t address; /**< a multiple of 16; of a result: 0 if the call shall allocate it */
  uint64_t bytes;   /**< of the buffer */
  int32_t element;  /**< an fp4_element_type */
  int32_t layout;   /**< an fp4_layout */
  int32_t rank;
  int64_t sizes[FP4_MAX_RANK]; /**< logical: columns of 4-bit elements count elements */
  /** Logical elements from one index to the next, the last 1; all 0: dense. A multiple of 16 bytes
   *  each but the last. `bytes` then counts from the first element to behind the last. */
  int64_t strides[FP4_MAX_RANK];
} fp4_tensor;

/** Memory of the caller. Temporary memory is freed when its last use has been issued, so it may be
 *  given to other work only in the order of the stream. */
typedef struct fp4_allocator {
  void *context; /**< handed to the functions */
  /** Returns memory that is aligned to 256 bytes, or 0 where there is none. */
  uint64_t (*allocate)(void *context, uint64_t bytes, uint64_t stream);
  void (*free)(void *context, uint64_t address, uint64_t stream);
} fp4_allocator;

typedef struct fp4_call_options {
  uint64_t size;                  /**< sizeof(fp4_call_options) */
  uint64_t stream;                /**< CUstream or cudaStream_t; the default stream */
  const fp4_allocator *allocator; /**< for temporary memory and results; the device's own */
} fp4_call_options;

/** Writes element, layout, rank, sizes and `bytes` of the results that `function` has for arguments
 *  of such types, and no address. Addresses of arguments are not read. An empty or null `function`
 *  is the only one. */
FP4_EXPORT fp4_error *fp4_program_describe(const fp4_program *program, const char *function,
                                           const fp4_tensor *arguments, size_t num_arguments,
                                           fp4_tensor *results, size_t num_results);

typedef struct fp4_executable fp4_executable;

/** A program on a device: modules are loaded, and constants copied, at their first use. */
FP4_EXPORT fp4_error *fp4_executable_create(const fp4_program *program, fp4_device *device,
                                            fp4_executable **executable);
/** Waits for the device. Null is allowed. */
FP4_EXPORT void fp4_executable_destroy(fp4_executable *executable);

/** As fp4_program_describe. */
FP4_EXPORT fp4_error *fp4_executable_describe(const fp4_executable *executable,
                                              const char *function, const fp4_tensor *arguments,
                                              size_t num_arguments, fp4_tensor *results,
                                              size_t num_results);

/** Issues the work of `function`. Results without an address are allocated and become the caller's
 *  to free. On a GPU the call does not wait. With a simulator the work is done on return, and
 *  hazards that it found are an error of kind FP4_ERROR_HAZARD, whatever the results. A kernel that
 *  fails is one of kind FP4_ERROR_SIMULATION, whose message has the hazards that may be why. */
FP4_EXPORT fp4_error *fp4_executable_call(fp4_executable *executable, const char *function,
                                          const fp4_tensor *arguments, size_t num_arguments,
                                          fp4_tensor *results, size_t num_results,
                                          const fp4_call_options *options);

/** Compares results with the reference model of the program (numerics.md) on the host. Waits
 *  for the device. A difference is an error of kind FP4_ERROR_MISMATCH that says where. */
FP4_EXPORT fp4_error *fp4_executable_verify(fp4_executable *executable, const char *function,
                                            const fp4_tensor *arguments, size_t num_arguments,
                                            const fp4_tensor *results, size_t num_results);

/*===----------------------------------------------------------------------------------===*
 * Many calls of one function
 *===----------------------------------------------------------------------------------===*/

/** A function that is resolved: its calls look nothing up by name, and types that they meet again
 *  are not checked again. The calls above find it themselves. */
typedef struct fp4_function fp4_function;

/** The function of this name; an empty or null name is that of the only one. The function lives as
 * long as `executable`, and threads may share it. */
FP4_EXPORT fp4_error *fp4_executable_get_function(fp4_executable *executable, const char *name,
                                                  fp4_function **function);

/** As fp4_executable_call. With a stream, results that have addresses, and no temporary memory or
 *  an allocator that may be called while a graph is captured, a second call with the same types can
 *  be captured. */
FP4_EXPORT fp4_error *fp4_function_call(fp4_function *function, const fp4_tensor *arguments,
                                        size_t num_arguments, fp4_tensor *results,
                                        size_t num_results, const fp4_call_options *options);

#ifdef __cplusplus
}
#endif
#endif
