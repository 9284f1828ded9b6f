/*===- loader_library.c - What loader_faults.c opens ------------------------------------------===*
 *
 * A library with the exports of an emitted one: `work` asks for a constant and for counters, and
 * writes both addresses to the words of args[0]. $LOADER_TABLE=short makes fp4_bind refuse.
 *
 *===---------------------------------------------------------------------------------------===*/
#include "fp4-c/Runtime.h"

#include <stdlib.h>
#include <string.h>

static fp4rt_api api;
static int binds;

const char fp4_manifest[] = "{\"functions\": []}";

int32_t fp4_bind(const fp4rt_api *table) {
  const char *kind = getenv("LOADER_TABLE");
  if (kind && strcmp(kind, "short") == 0)
    return 1;
  ++binds;
  memcpy(&api, table, sizeof(api));
  return 0;
}

int32_t fp4_entry_work(void **args) {
  static const char bytes[] = "constant";
  uint64_t *words = (uint64_t *)args[0];
  if (!api.size)
    return 1;
  words[0] = (uintptr_t)api.constant(bytes, sizeof(bytes));
  words[1] = (uintptr_t)api.counters(64);
  return 0;
}

/* Result 17 has two rows of ten bytes, at the pitch of the runtime. */
int32_t fp4_entry_strided(void **args) {
  const uint64_t pitch = api.result_pitch(17, 10);
  *(uint64_t *)args[0] = (uintptr_t)api.alloc_result(17, 2 * pitch);
  return 0;
}

int32_t fp4_entry_launch(void **args) {
  static const fp4rt_module module = {"kernels", "sm_100a", NULL, 0, "cubin", 5};
  (void)args;
  api.launch(&module, "kernel", 1, 1, 1, 1, 1, 1, 0, NULL, 0);
  return 0;
}

/* A name of 256 letters. */
#define JOIN_TOKENS(a, b) a##b
#define JOIN(a, b) JOIN_TOKENS(a, b)
#define A64 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
int32_t JOIN(JOIN(fp4_entry_, JOIN(A64, A64)), JOIN(A64, A64))(void **args) {
  (void)args;
  return 0;
}

/* An entry function that refuses, as that of a library without functions does. */
int32_t fp4_entry_refuse(void **args) {
  (void)args;
  return 1;
}

/* The number of calls of fp4_bind. */
int32_t fp4_entry_binds(void **args) {
  *(uint64_t *)args[0] = (uint64_t)binds;
  return 0;
}
