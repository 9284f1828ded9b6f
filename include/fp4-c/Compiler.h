/*===- fp4-c/Compiler.h - From .mlir text to code, from C ---------------------*- C -*-===*
 *
 * The compile driver without MLIR types: text in, and IR, PTX, cubins, a library or a program in
 * this process out. docs/concepts/phases.md explains the phases.
 *
 *   fp4_compiler *compiler;
 *   fp4_error *error = fp4_compiler_create(NULL, &compiler);
 *   if (!error) error = fp4_compiler_load_text(compiler, text, "linear.mlir");
 *   if (!error) error = fp4_compiler_compile_to(compiler, "cubin");
 *   if (!error) error = fp4_compiler_get_program(compiler, &program);
 *
 * One thread at a time uses a compiler; several compilers may work at the same time.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_COMPILER_H
#define FP4_C_COMPILER_H

#include "fp4-c/Program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fp4_compiler fp4_compiler;

/** Receives one diagnostic of the compiler: an error, a warning, a remark, with its location and
 *  notes, as lines of text. Called on the thread that calls the compiler. */
typedef void (*fp4_diagnostic_function)(void *context, const char *text);

/** Null strings and zeros are the defaults. */
typedef struct fp4_compiler_options {
  uint64_t size;       /**< sizeof(fp4_compiler_options) */
  const char *target;  /**< "sm_100a" */
  const char *ptxas;   /**< path; $FP4_PTXAS, else the one that is found */
  int32_t remarks;     /**< not 0: report which fusions fired, and why others did not */
  fp4_diagnostic_function diagnostic; /**< null: they are part of the error's message */
  void *context;       /**< handed to `diagnostic` */
  /** Kernels that begin while the one before them ends (programmatic dependent launch, PDL):
   * "none", "chosen" by plans (null), or "all". */
  const char *pdl;
  /** The product that plans are for, such as "h200"; null: all of the target. */
  const char *device;
} fp4_compiler_options;

FP4_EXPORT fp4_error *fp4_compiler_create(const fp4_compiler_options *options,
                                          fp4_compiler **compiler);
/** Null is allowed. Programs of the compiler live on. */
FP4_EXPORT void fp4_compiler_destroy(fp4_compiler *compiler);

/** Parses and verifies a program, once per compiler. Diagnostics call the text `name`. */
FP4_EXPORT fp4_error *fp4_compiler_load_text(fp4_compiler *compiler, const char *text,
                                             const char *name);
FP4_EXPORT fp4_error *fp4_compiler_load_file(fp4_compiler *compiler, const char *path);

/** Gives the dimension that arguments name with fp4.dims a size. Before any phase. */
FP4_EXPORT fp4_error *fp4_compiler_specialize(fp4_compiler *compiler, const char *name,
                                              int64_t size);

/** Runs the phases up to `phase`: "fused", ..., "ptx" or "cubin". An unknown name is a usage error
 *  whose note lists them. */
FP4_EXPORT fp4_error *fp4_compiler_compile_to(fp4_compiler *compiler, const char *phase);

/** The program as it is now, and the manifest, which exists after "ptx" or "cubin". The text lives
 *  until the next call of a function of this compiler. */
FP4_EXPORT const char *fp4_compiler_get_ir(fp4_compiler *compiler);
FP4_EXPORT const char *fp4_compiler_get_manifest(fp4_compiler *compiler);

/** The code of one kernel module. */
typedef struct fp4_kernel_code {
  const char *module;
  const char *ptx;
  uint64_t ptx_size;
  const void *cubin; /**< null unless "cubin" was reached */
  uint64_t cubin_size;
} fp4_kernel_code;

/** Kernel modules after "ptx" or "cubin", and until the host code is made. The strings that
 * fp4_compiler_get_kernel writes live as long as the compiler. */
FP4_EXPORT size_t fp4_compiler_get_num_kernels(fp4_compiler *compiler);
FP4_EXPORT fp4_error *fp4_compiler_get_kernel(fp4_compiler *compiler, size_t index,
                                              fp4_kernel_code *code);

/** Writes a library. The file is never half written. */
FP4_EXPORT fp4_error *fp4_compiler_write_library(fp4_compiler *compiler, const char *path);
/** Makes a program in this process. */
FP4_EXPORT fp4_error *fp4_compiler_get_program(fp4_compiler *compiler, fp4_program **program);

#ifdef __cplusplus
}
#endif
#endif
