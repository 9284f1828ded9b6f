/*===- loader_faults.c - fp4-c/Loader.h with a driver whose functions fail once ---------------===*
 *
 * loader_faults LIBRARY [loaded | short]: with a library that the process has loaded, or that
 * refuses the table; both may stay in the process, so other checks run without them.
 *
 * Memory of the driver is memory of the host. `faults` names the function that fails next.
 *
 *===---------------------------------------------------------------------------------------===*/
#define _POSIX_C_SOURCE 200112L /* setenv */
#define FP4_LOADER_IMPLEMENTATION
#include "fp4-c/Loader.h"

_Static_assert(_Alignof(fp4_loader_attribute) == 8 && sizeof(fp4_loader_attribute) == 72,
               "the layout of CUlaunchAttribute");

static const char *faults = "";
static int answer = 2; /* of the function that fails: CUDA_ERROR_OUT_OF_MEMORY */
static int allocated;  /* pieces of memory that nobody freed */
static int wrong;

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "loader_faults.c:%d: error: expected %s\n", __LINE__, #condition);           \
      wrong = 1;                                                                                   \
    }                                                                                              \
  } while (0)

static int fails(const char *name) {
  if (strcmp(faults, name) != 0)
    return 0;
  faults = "";
  return answer;
}

static int say(int result, const char **text) {
  (void)result;
  *text = "a fault";
  return 0;
}

static int current(void **context) {
  *context = &allocated;
  return 0;
}

static int allocate(uint64_t *address, size_t bytes) {
  const int result = fails("cuMemAlloc_v2");
  if (result)
    return result;
  *address = (uintptr_t)malloc(bytes);
  memset(fp4_loader_pointer(*address), 0xcd, bytes);
  ++allocated;
  return 0;
}

static int release(uint64_t address) {
  free(fp4_loader_pointer(address));
  --allocated;
  return 0;
}

static int upload(uint64_t address, const void *bytes, size_t size) {
  const int result = fails("cuMemcpyHtoD_v2");
  if (!result)
    memcpy(fp4_loader_pointer(address), bytes, size);
  return result;
}

static int fill(uint64_t address, unsigned char value, size_t bytes, void *stream) {
  const int result = fails("cuMemsetD8Async");
  (void)stream;
  if (!result)
    memset(fp4_loader_pointer(address), value, bytes);
  return result;
}

static int synchronize(void *stream) {
  (void)stream;
  return fails("cuStreamSynchronize");
}

static int create_stream(void **stream, unsigned flags) {
  (void)flags;
  *stream = &allocated;
  return fails("cuStreamCreate");
}

static int load(void **module, const void *image, unsigned count, int *names, void **values) {
  (void)image, (void)count, (void)names, (void)values;
  *module = &allocated;
  return fails("cuModuleLoadDataEx");
}

static int nothing(void) { return 0; }

static void *find(void *context, const char *name) {
  void *found = NULL;
  if (context && strcmp((const char *)context, name) == 0)
    return NULL;
  FP4_LOADER_ASSIGN(found, (void *)(uintptr_t)nothing);
#define WITH(symbol, function)                                                                     \
  if (strcmp(name, symbol) == 0)                                                                   \
    return (void *)(uintptr_t)(function);
  WITH("cuGetErrorName", say)
  WITH("cuGetErrorString", say)
  WITH("cuCtxGetCurrent", current)
  WITH("cuMemAlloc_v2", allocate)
  WITH("cuMemFree_v2", release)
  WITH("cuMemcpyHtoD_v2", upload)
  WITH("cuMemsetD8Async", fill)
  WITH("cuStreamSynchronize", synchronize)
  WITH("cuStreamCreate", create_stream)
  WITH("cuModuleLoadDataEx", load)
#undef WITH
  return found;
}

static fp4_loader_options options = {find, NULL};

/* A function of the driver fails once: that call says so, and the next one has all memory anew. */
static void fail_once(const char *library, const char *function) {
  static const char zeros[64];
  fp4_loader *loader;
  uint64_t words[2] = {0, 0};
  void *args[] = {words};
  EXPECT(fp4_loader_open(library, &options, &loader) == 0);
  faults = function;
  EXPECT(fp4_loader_call(loader, "work", args, NULL, NULL, 0) != 0);
  EXPECT(*faults == '\0' && strstr(fp4_loader_message(loader), "a fault"));
  EXPECT(allocated == 0);
  EXPECT(fp4_loader_call(loader, "work", args, NULL, NULL, 0) == 0);
  EXPECT(words[0] && strcmp((const char *)fp4_loader_pointer(words[0]), "constant") == 0);
  EXPECT(words[1] && memcmp(fp4_loader_pointer(words[1]), zeros, sizeof(zeros)) == 0);
  EXPECT(allocated == 2);
  fp4_loader_close(loader);
  EXPECT(allocated == 0);
}

/* A loader that did not open answers every call with the error of fp4_loader_open. */
static void stay_closed(const char *library, const char *message) {
  fp4_loader *loader;
  uint64_t words[2] = {0, 0};
  void *args[] = {words};
  EXPECT(fp4_loader_open(library, &options, &loader) != 0);
  EXPECT(fp4_loader_call(loader, "work", args, NULL, NULL, 0) != 0);
  EXPECT(fp4_loader_finish(loader, NULL) != 0);
  EXPECT(fp4_loader_free(loader, words, NULL) != 0);
  EXPECT(fp4_loader_manifest(loader) == NULL);
  EXPECT(strstr(fp4_loader_message(loader), message));
  fp4_loader_close(loader);
}

/* Loaders without a driver, and with a library that refuses the table. */
static void open_in_vain(const char *library) {
  char without[] = "cuStreamSynchronize";
  options.context = without;
  stay_closed(library, "the CUDA driver has no function cuStreamSynchronize");
  options.context = NULL;
  setenv("LOADER_TABLE", "short", 1);
  stay_closed(library, "needs more functions than");
  unsetenv("LOADER_TABLE");
}

/* An entry function that does nothing is an error, and the next call works. */
static void refuse(const char *library) {
  fp4_loader *loader;
  uint64_t words[2] = {0, 0};
  void *args[] = {words};
  EXPECT(fp4_loader_open(library, &options, &loader) == 0);
  EXPECT(fp4_loader_call(loader, "refuse", args, NULL, NULL, 0) != 0);
  EXPECT(strstr(fp4_loader_message(loader), "bound to no functions"));
  EXPECT(fp4_loader_call(loader, "work", args, NULL, NULL, 0) == 0);
  EXPECT(fp4_loader_finish(loader, NULL) == 0);
  fp4_loader_close(loader);
}

/* Two loaders of one library bind it once. */
static void share(const char *library) {
  fp4_loader *first, *second;
  uint64_t before = 0, after = 0;
  void *args[] = {&before}, *again[] = {&after};
  EXPECT(fp4_loader_open(library, &options, &first) == 0);
  EXPECT(fp4_loader_call(first, "binds", args, NULL, NULL, 0) == 0 && before == 1);
  EXPECT(fp4_loader_open(library, &options, &second) == 0);
  EXPECT(fp4_loader_call(second, "binds", again, NULL, NULL, 0) == 0 && after == 1);
  fp4_loader_close(first);
  fp4_loader_close(second);
}

/* A library that another part of the process has loaded is refused, and stays as it was. */
static void refuse_loaded(const char *library) {
  void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  fp4_entry_function work = NULL;
  uint64_t words[2] = {0, 0};
  void *args[] = {words};
  EXPECT(loaded);
  stay_closed(library, "must be a library that only loaders use");
  FP4_LOADER_ASSIGN(work, dlsym(loaded, "fp4_entry_work"));
  EXPECT(work && work(args) == 1);
  dlclose(loaded);
}

/* A name of 256 letters is found, and a longer one is not taken for that one. */
static void call_long_name(const char *library) {
  fp4_loader *loader;
  char name[258] = {0};
  EXPECT(fp4_loader_open(library, &options, &loader) == 0);
  memset(name, 'a', 256);
  EXPECT(fp4_loader_call(loader, name, NULL, NULL, NULL, 0) == 0);
  name[256] = 'a';
  EXPECT(fp4_loader_call(loader, name, NULL, NULL, NULL, 0) != 0);
  EXPECT(strstr(fp4_loader_message(loader), "the library has no function"));
  fp4_loader_close(loader);
}

/* The last row of a strided result needs no bytes behind it, whichever the number of the result. */
static void call_strided(const char *library) {
  static _Alignas(16) char memory[26];
  fp4_loader *loader;
  fp4_loader_buffer results[18] = {{0, 0, 0}};
  uint64_t address = 0;
  void *args[] = {&address};
  EXPECT(fp4_loader_open(library, &options, &loader) == 0);
  results[17].address = (uintptr_t)memory;
  results[17].bytes = sizeof(memory);
  EXPECT(fp4_loader_call(loader, "strided", args, NULL, results, 18) == 0);
  EXPECT(address == results[17].address);
  results[17].bytes = sizeof(memory) - 1;
  EXPECT(fp4_loader_call(loader, "strided", args, NULL, results, 18) != 0);
  EXPECT(strstr(fp4_loader_message(loader), "must have at least 26 bytes"));
  fp4_loader_close(loader);
}

/* Want of memory is not a module for another device. */
static void load_module(const char *library, int result, const char *message) {
  fp4_loader *loader;
  EXPECT(fp4_loader_open(library, &options, &loader) == 0);
  faults = "cuModuleLoadDataEx";
  answer = result;
  EXPECT(fp4_loader_call(loader, "launch", NULL, NULL, NULL, 0) != 0);
  EXPECT(strstr(fp4_loader_message(loader), message));
  EXPECT(fp4_loader_call(loader, "launch", NULL, NULL, NULL, 0) == 0);
  answer = 2;
  fp4_loader_close(loader);
}

static void check_faults(const char *library) {
  static const char *const functions[] = {"cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemsetD8Async",
                                          "cuStreamSynchronize", "cuStreamCreate"};
  share(library);
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
    fail_once(library, functions[i]);
  refuse(library);
  call_long_name(library);
  call_strided(library);
  load_module(library, 2, "loading module 'kernels' failed: the driver answers a fault");
  load_module(library, 209, "is compiled for sm_100a, which this device (sm_");
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  if (argc == 3 && strcmp(argv[2], "loaded") == 0)
    refuse_loaded(argv[1]);
  else if (argc == 3)
    open_in_vain(argv[1]);
  else
    check_faults(argv[1]);
  if (!wrong)
    puts("every fault is an error of one call");
  return wrong;
}
