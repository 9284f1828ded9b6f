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

/* An entry function that refuses, as that of a library without functions does. */
int32_t fp4_entry_refuse(void **args) {
  (void)args;
  return 1;
}

/* How often the library was bound. */
int32_t fp4_entry_binds(void **args) {
  *(uint64_t *)args[0] = (uint64_t)binds;
  return 0;
}
