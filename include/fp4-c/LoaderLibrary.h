/*===- fp4-c/LoaderLibrary.h - The libraries that loaders opened ------------------*- C -*-===*
 *
 * An emitted library has one table of functions, which all loaders of the process share.
 * fp4-c/LoaderImplementation.h includes this header.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_LOADER_LIBRARY_H
#define FP4_C_LOADER_LIBRARY_H

#include "fp4-c/LoaderState.h"

#include <dlfcn.h>
#include <pthread.h>

/* A function from an address: ISO C has no cast for it. */
#define FP4_LOADER_ASSIGN(function, address)                                                       \
  do {                                                                                             \
    void *found_ = (address);                                                                      \
    memcpy(&(function), &found_, sizeof(found_));                                                  \
  } while (0)

/* A library that loaders bound, which stays in the process. */
typedef struct fp4_loader_bound {
  void *library;
  struct fp4_loader_bound *next;
} fp4_loader_bound;

static fp4_loader_bound *fp4_loader_libraries;
static pthread_mutex_t fp4_loader_lock = PTHREAD_MUTEX_INITIALIZER;

/* Calls fp4_bind, and keeps the library in the list. */
static void fp4_loader_bind_table(fp4_loader *loader, fp4_bind_function bind, void *library,
                                  const char *path, const fp4rt_api *api) {
  char message[512];
  fp4_loader_bound *bound = (fp4_loader_bound *)calloc(1, sizeof(fp4_loader_bound));
  if (!bound) {
    fp4_loader_fail(loader, "the loader has no memory of the host", "end other programs");
  } else if (bind(api) != 0) {
    snprintf(message, sizeof(message),
             "'%s' needs more functions than the %llu bytes of this header's fp4rt_api", path,
             (unsigned long long)sizeof(fp4rt_api));
    fp4_loader_fail(loader, message,
                    "compile with the headers of the fp4 that emitted the library");
  } else {
    bound->library = library;
    bound->next = fp4_loader_libraries;
    fp4_loader_libraries = bound;
    return;
  }
  free(bound);
}

/* Opens the library, under the lock. Only the first loader binds: later ones share the table, which
 * calls may be reading. A library that others loaded may have another table. */
static void fp4_loader_bind_once(fp4_loader *loader, const char *path, const fp4rt_api *api) {
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void *library = loaded ? loaded : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const fp4_loader_bound *bound = fp4_loader_libraries;
  fp4_bind_function bind = NULL;
  char message[512];
  if (!library) {
    snprintf(message, sizeof(message), "'%s' cannot be loaded: %s", path, dlerror());
    fp4_loader_fail(loader, message, "fp4-runner --emit=so writes a library for its own host");
    return;
  }
  while (bound && bound->library != library)
    bound = bound->next;
  FP4_LOADER_ASSIGN(bind, dlsym(library, "fp4_bind"));
  if (!bind) {
    snprintf(message, sizeof(message), "'%s' must have the function fp4_bind, but has none", path);
    fp4_loader_fail(loader, message, "name a library that fp4-runner --emit=so wrote");
  } else if (!bound && loaded) {
    snprintf(message, sizeof(message),
             "'%s' must be a library that only loaders use, but the process has loaded it", path);
    fp4_loader_fail(loader, message, "open a copy of the file: one library has one table");
  } else if (!bound) {
    fp4_loader_bind_table(loader, bind, library, path, api);
  }
  if (loader->failed)
    dlclose(library);
  else
    loader->library = library;
}

static void fp4_loader_bind_library(fp4_loader *loader, const char *path, const fp4rt_api *api) {
  pthread_mutex_lock(&fp4_loader_lock);
  fp4_loader_bind_once(loader, path, api);
  pthread_mutex_unlock(&fp4_loader_lock);
}

#endif
