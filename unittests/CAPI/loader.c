/*===- loader.c - An emitted library with fp4-c/Loader.h alone --------------------------------===*
 *
 * loader LIBRARY FUNCTION [in:RANK:SIZES:FILE.npy...] [out:RANK:BYTES:FILE...]
 *
 * Calls a function with tensors of files and writes the bytes of its results, as a serving engine
 * would: only the CUDA driver is loaded. The results are made twice, in memory of the caller and in
 * memory of the call, and must be equal. `fp4-sim run` has a driver where there is no GPU.
 *
 *===---------------------------------------------------------------------------------------===*/
#define FP4_LOADER_IMPLEMENTATION
#include "fp4-c/Loader.h"

enum { MOST = 16, WORDS = 3 + 2 * 8 };

typedef struct operand {
  uint64_t words[WORDS];
  uint64_t address, bytes;
  char *file;
  int is_result;
} operand;

static int (*init)(unsigned);
static int (*retain)(void **, int);
static int (*set_current)(void *);
static int (*allocate)(uint64_t *, size_t);
static int (*upload)(uint64_t, const void *, size_t);
static int (*download)(void *, uint64_t, size_t);

static int fail(const char *what) {
  fprintf(stderr, "error: %s\n", what);
  return 2;
}

static int explain(const fp4_loader *loader) {
  fprintf(stderr, "error: %s\nnote: %s\n", fp4_loader_message(loader), fp4_loader_note(loader));
  return 3;
}

static int no_context(void **context) {
  *context = NULL;
  return 0;
}

/* The driver of the caller, of which the loader gets the functions that it asks for. $WITHOUT names
 * one that is not there, or cuCtxGetCurrent, which then finds no context. */
static void *driver;
static int asked;
static void *find(void *context, const char *name) {
  const char *without = getenv("WITHOUT");
  void *found = NULL;
  int (*current)(void **) = no_context;
  ++asked;
  if (!without || strcmp(without, name) != 0)
    return dlsym(context, name);
  if (strcmp(name, "cuCtxGetCurrent") == 0)
    memcpy(&found, &current, sizeof(found));
  return found;
}

static int open_driver(void) {
  void *context = NULL;
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver)
    return fail(dlerror());
  FP4_LOADER_ASSIGN(init, dlsym(driver, "cuInit"));
  FP4_LOADER_ASSIGN(retain, dlsym(driver, "cuDevicePrimaryCtxRetain"));
  FP4_LOADER_ASSIGN(set_current, dlsym(driver, "cuCtxSetCurrent"));
  FP4_LOADER_ASSIGN(allocate, dlsym(driver, "cuMemAlloc_v2"));
  FP4_LOADER_ASSIGN(upload, dlsym(driver, "cuMemcpyHtoD_v2"));
  FP4_LOADER_ASSIGN(download, dlsym(driver, "cuMemcpyDtoH_v2"));
  if (init(0) || retain(&context, 0) || set_current(context))
    return fail("the CUDA driver has no device");
  return 0;
}

/* Reads the data of a .npy file to the device. */
static int read_file(operand *x) {
  unsigned char head[10];
  FILE *file = fopen(x->file, "rb");
  char *data;
  long begin, end;
  if (!file || fread(head, 1, 10, file) != 10)
    return fail(x->file);
  begin = 10 + head[8] + 256 * head[9];
  fseek(file, 0, SEEK_END);
  end = ftell(file);
  fseek(file, begin, SEEK_SET);
  x->bytes = (uint64_t)(end - begin);
  data = malloc(x->bytes);
  if (!data || fread(data, 1, x->bytes, file) != x->bytes)
    return fail(x->file);
  fclose(file);
  if (allocate(&x->address, x->bytes) || upload(x->address, data, x->bytes))
    return fail("no memory for an argument");
  free(data);
  return 0;
}

/* in:RANK:SIZES:FILE and out:RANK:BYTES:FILE. */
static int parse(char *text, operand *x) {
  char *kind = strtok(text, ":"), *rank = strtok(NULL, ":"), *number = strtok(NULL, ":");
  int64_t sizes[8] = {0};
  uint32_t count = 0;
  x->file = strtok(NULL, "");
  if (!kind || !rank || !number || !x->file)
    return fail("an operand is in:RANK:SIZES:FILE or out:RANK:BYTES:FILE");
  x->is_result = strcmp(kind, "out") == 0;
  if (x->is_result) {
    x->bytes = strtoull(number, NULL, 10);
    return allocate(&x->address, x->bytes) ? fail("no memory for a result") : 0;
  }
  while (count < 8 && *number) {
    sizes[count++] = strtoll(number, &number, 10);
    number += *number == 'x';
  }
  if (read_file(x))
    return 2;
  fp4_loader_describe(x->words, x->address, (uint32_t)atoi(rank), sizes);
  return 0;
}

static char *bytes_of(uint64_t address, uint64_t bytes) {
  char *data = malloc(bytes);
  return data && download(data, address, bytes) == 0 ? data : NULL;
}

/* Compares the result that a call made at `made` with that in memory of the caller, and writes it.
 */
static int write_result(const operand *x, uint64_t made) {
  char *given = bytes_of(x->address, x->bytes), *own = bytes_of(made, x->bytes);
  FILE *file = fopen(x->file, "wb");
  if (!given || !own || !file || fwrite(given, 1, x->bytes, file) != x->bytes || fclose(file))
    return fail(x->file);
  if (memcmp(given, own, x->bytes) != 0)
    return fail("the two results differ");
  free(given);
  free(own);
  return 0;
}

int main(int argc, char **argv) {
  operand operands[MOST];
  uint64_t results[WORDS * MOST] = {0};
  fp4_loader_buffer buffers[MOST];
  void *args[MOST + 1];
  size_t num_args = 0, num_results = 0, word = 0;
  fp4_loader *loader;
  fp4_loader_options options = {find, NULL};
  if (argc < 3 || argc - 3 > MOST)
    return fail("loader LIBRARY FUNCTION OPERAND...");
  memset(operands, 0, sizeof(operands));
  if (getenv("WITHOUT_DRIVER") == NULL && open_driver())
    return 2;
  options.context = driver;
  if (fp4_loader_open(argv[1], driver ? &options : NULL, &loader))
    return explain(loader);
  if (asked == 0 || !strstr(fp4_loader_manifest(loader), "\"functions\""))
    return fail("the functions of the driver must be asked for, and the manifest be read");
  for (int i = 3; i < argc; ++i)
    if (parse(argv[i], &operands[i]))
      return 2;
  for (int i = 3; i < argc; ++i) {
    if (operands[i].is_result) {
      fp4_loader_buffer buffer = {operands[i].address, operands[i].bytes, 0};
      buffers[num_results++] = buffer;
    }
  }
  args[num_args++] = results;
  for (int i = 3; i < argc; ++i)
    if (!operands[i].is_result)
      args[num_args++] = operands[i].words;
  if (num_results == 0) /* a function without results begins with its arguments */
    return fail("a function must have results");
  if (fp4_loader_call(loader, argv[2], args, NULL, buffers, num_results) ||
      fp4_loader_finish(loader, NULL))
    return explain(loader);
  if (results[1] != buffers[0].address)
    return fail("the result is not in memory of the caller");
  if (fp4_loader_call(loader, argv[2], args, NULL, NULL, 0) || fp4_loader_finish(loader, NULL))
    return explain(loader);
  for (int i = 3; i < argc; ++i) {
    if (!operands[i].is_result)
      continue;
    if (write_result(&operands[i], results[word + 1]))
      return 2;
    if (fp4_loader_free(loader, (void *)(uintptr_t)results[word], NULL))
      return explain(loader);
    word += 3 + 2 * (size_t)atoi(argv[i] + 4); /* "out" and a NUL, then the rank */
  }
  fp4_loader_close(loader);
  puts("equal, with and without memory of the caller");
  return 0;
}
