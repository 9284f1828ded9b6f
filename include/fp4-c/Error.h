/*===- fp4-c/Error.h - What a call of the C API returns -----------------------*- C -*-===*
 *
 * A function that can fail returns an fp4_error, which is null on success. The caller destroys it.
 * No function of the C API ends the process or lets a C++ exception pass.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_ERROR_H
#define FP4_C_ERROR_H

#include <stdint.h>

#if defined(__GNUC__)
#define FP4_EXPORT __attribute__((visibility("default")))
#else
#define FP4_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fp4_error fp4_error;

/** The classes of failure. The values are the exit codes of the tools (diagnostics.md). */
typedef enum fp4_error_kind {
  FP4_ERROR_MISMATCH = 1,   /**< a result differs from the reference */
  FP4_ERROR_USAGE = 2,      /**< an operand, a file or input data */
  FP4_ERROR_COMPILE = 3,    /**< the program does not verify or does not compile */
  FP4_ERROR_DEVICE = 4,     /**< the device, its driver or its resources */
  FP4_ERROR_SIMULATION = 5, /**< the simulated program is wrong: deadlock, access out of bounds */
  FP4_ERROR_HAZARD = 6,     /**< the simulator's checker found a race or a missing fence */
  FP4_ERROR_INTERNAL = 70   /**< a broken promise of fp4's own */
} fp4_error_kind;

FP4_EXPORT fp4_error_kind fp4_error_get_kind(const fp4_error *error);
/** Description with the value found and the value expected. Lives as long as `error`. */
FP4_EXPORT const char *fp4_error_get_message(const fp4_error *error);
/** Remedy of the error; may be empty. Lives as long as `error`. */
FP4_EXPORT const char *fp4_error_get_note(const fp4_error *error);
/** Null is allowed. */
FP4_EXPORT void fp4_error_destroy(fp4_error *error);

/** The version of the library, "0.1.0". */
FP4_EXPORT const char *fp4_version(void);

#ifdef __cplusplus
}
#endif
#endif
