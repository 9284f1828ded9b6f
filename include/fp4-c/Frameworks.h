/*===- fp4-c/Frameworks.h - Emitted functions in XLA and apache-tvm-ffi ----------*- C -*-===*
 *
 * Functions of a program for callers of XLA's FFI and apache-tvm-ffi, with buffers of
 * docs/guides/libraries.md. Tiled scales with dynamic rows need fp4.dims.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_FRAMEWORKS_H
#define FP4_C_FRAMEWORKS_H

#include "fp4-c/Program.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Keeps `program` for calls that name `key`, until the process ends. The first program of a key
 * stays. */
FP4_EXPORT fp4_error *fp4_xla_add(const char *key, const fp4_program *program);

/** XLA_FFI_Handlers with the attributes `program`, a key, and `function`. The first is for platform
 * Host and runs in the simulator, the second for CUDA. */
FP4_EXPORT void *fp4_xla_call_sim(void *frame);
FP4_EXPORT void *fp4_xla_call_cuda(void *frame);

/** Makes a function the global `name` of tvm-ffi, for tensors on the CPU (the simulator) or on a
 * GPU (the stream of its environment). libtvm_ffi.so must be in the process. */
FP4_EXPORT fp4_error *fp4_tvm_ffi_add(const fp4_program *program, const char *function,
                                      const char *name);

#ifdef __cplusplus
}
#endif
#endif
