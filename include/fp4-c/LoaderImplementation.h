/*===- fp4-c/LoaderImplementation.h - The functions of fp4-c/Loader.h -------------*- C -*-===*
 *
 * fp4-c/Loader.h includes this header in the source file that defines FP4_LOADER_IMPLEMENTATION. An
 * emitted library is bound to a table of the static functions below, which act on the loader of the
 * call that runs on this thread.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_LOADER_IMPLEMENTATION_H
#define FP4_C_LOADER_IMPLEMENTATION_H

#include "fp4-c/LoaderLibrary.h"

#ifdef __cplusplus
extern "C" {
#endif

static void *fp4_loader_alloc(uint64_t bytes) {
  fp4_loader *loader = fp4_loader_working();
  uint64_t address = 0;
  if (loader)
    fp4_loader_check(loader,
                     loader->driver.allocate_on(&address, bytes ? bytes : 1, loader->stream),
                     "allocating memory for", "temporary tensors");
  return fp4_loader_pointer(address);
}

static void *fp4_loader_alloc_result(uint32_t index, uint64_t bytes) {
  fp4_loader *loader = fp4_loader_working();
  char message[160];
  const fp4_loader_buffer *buffer;
  uint64_t needed = bytes;
  if (!loader)
    return NULL;
  if (index >= loader->num_results || !loader->results[index].address)
    return fp4_loader_alloc(bytes);
  buffer = &loader->results[index];
  needed -= needed < loader->gaps[index] ? needed : loader->gaps[index];
  if (buffer->bytes >= needed && buffer->address % 16 == 0)
    return fp4_loader_pointer(buffer->address);
  snprintf(
      message, sizeof(message),
      "the buffer of result %u must have at least %llu bytes at a multiple of 16, but got %llu at "
      "%#llx",
      index, (unsigned long long)needed, (unsigned long long)buffer->bytes,
      (unsigned long long)buffer->address);
  fp4_loader_fail(loader, message, "the manifest of the library has the type of the result");
  return NULL;
}

static uint64_t fp4_loader_result_pitch(uint32_t index, uint64_t bytes) {
  fp4_loader *loader = fp4_loader_working();
  uint64_t pitch = (bytes + 15) / 16 * 16, given = 0;
  if (!loader)
    return pitch;
  if (index < loader->num_results)
    given = loader->results[index].pitch;
  if (given && (given < bytes || given % 16))
    fp4_loader_fail(loader, "the pitch of a result must be a multiple of 16 that holds a row",
                    "rows must not overlap, and TMA writes them where multiples of 16 begin");
  else if (given)
    pitch = given;
  if (index < loader->num_results)
    loader->gaps[index] = pitch - bytes;
  return pitch;
}

static void fp4_loader_release(void *address) {
  fp4_loader *loader = fp4_loader_current; /* after an error, too */
  if (loader && address)
    fp4_loader_check(loader, loader->driver.release_on((uintptr_t)address, loader->stream),
                     "freeing", "temporary tensors");
}

/* Zeroed memory that outlives the call, or 0. A stream of its own zeroes, because `stream` of the
 * call may be captured. */
static uint64_t fp4_loader_zeroed(fp4_loader *loader, uint64_t bytes, const char *what) {
  const fp4_loader_driver *driver = &loader->driver;
  uint64_t address = 0;
  void *stream = NULL;
  int mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
  driver->capture_mode(&mode);
  if (fp4_loader_check(loader, driver->allocate(&address, bytes), "allocating memory for", what) &&
      fp4_loader_check(loader, driver->create_stream(&stream, 1), "creating a stream for", what)) {
    fp4_loader_check(loader, driver->fill(address, 0, bytes, stream), "zeroing", what);
    fp4_loader_check(loader, driver->synchronize(stream), "zeroing", what);
    driver->destroy_stream(stream);
  }
  if (loader->failed && address) {
    driver->release(address);
    address = 0;
  }
  driver->capture_mode(&mode);
  return address;
}

static void *fp4_loader_constant(const void *bytes, uint64_t size) {
  fp4_loader *loader = fp4_loader_working();
  fp4_loader_entry *entry;
  uint64_t address;
  if (!loader)
    return NULL;
  entry = fp4_loader_find(loader, FP4_LOADER_CONSTANT, bytes, NULL, 0);
  if (entry)
    return fp4_loader_pointer(entry->value);
  address = fp4_loader_zeroed(loader, size ? size : 1, "a constant");
  if (loader->failed)
    return NULL;
  if ((!size || fp4_loader_check(loader, loader->driver.upload(address, bytes, size), "copying",
                                 "a constant")) &&
      fp4_loader_add(loader, FP4_LOADER_CONSTANT, bytes, address))
    return fp4_loader_pointer(address);
  loader->driver.release(address);
  return NULL;
}

/* Counters of one order of work: of a stream, and of each of its captures. */
static void *fp4_loader_counters(uint64_t bytes) {
  fp4_loader *loader = fp4_loader_working();
  fp4_loader_entry *entry;
  unsigned long long capture = 0;
  int state = 0;
  if (!loader)
    return NULL;
  if (loader->stream &&
      !fp4_loader_check(
          loader, loader->driver.capture_info(loader->stream, &state, &capture, NULL, NULL, NULL),
          "asking for the capture of", "the stream"))
    return NULL;
  if (state != 1) /* CU_STREAM_CAPTURE_STATUS_ACTIVE */
    capture = 0;
  entry = fp4_loader_find(loader, FP4_LOADER_COUNTERS, loader->stream, NULL, capture);
  while (entry && entry->size < bytes) { /* earlier work may still use smaller ones */
    entry->number = ~0ULL;
    entry = fp4_loader_find(loader, FP4_LOADER_COUNTERS, loader->stream, NULL, capture);
  }
  if (!entry) {
    const uint64_t size = bytes < 4096 ? 4096 : bytes;
    const uint64_t address = fp4_loader_zeroed(loader, size, "counters");
    if (loader->failed)
      return NULL;
    entry = fp4_loader_add(loader, FP4_LOADER_COUNTERS, loader->stream, address);
    if (!entry) {
      loader->driver.release(address);
      return NULL;
    }
    entry->number = capture;
    entry->size = size;
  }
  return fp4_loader_pointer(entry->value);
}

static void *fp4_loader_group_report(const char *what) {
  fp4_loader *loader = fp4_loader_working();
  fp4_loader_entry *entry;
  void *memory = NULL;
  int mode = 2;
  if (!loader)
    return NULL;
  entry = fp4_loader_find(loader, FP4_LOADER_REPORT, what, NULL, 0);
  if (entry)
    return fp4_loader_pointer(entry->value);
  loader->driver.capture_mode(&mode);
  if (fp4_loader_check(loader, loader->driver.allocate_host(&memory, 64, 3),
                       "allocating a report of", what)) {
    memset(memory, 0, 64);
    fp4_loader_add(loader, FP4_LOADER_REPORT, what, (uintptr_t)memory);
  }
  loader->driver.capture_mode(&mode);
  return memory;
}

static void fp4_loader_memset(void *device, uint8_t value, uint64_t bytes) {
  fp4_loader *loader = fp4_loader_working();
  if (loader && bytes)
    fp4_loader_check(loader, loader->driver.fill((uintptr_t)device, value, bytes, loader->stream),
                     "setting", "device memory");
}

static void fp4_loader_memcpy_2d(void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                                 uint64_t width, uint64_t height) {
  fp4_loader *loader = fp4_loader_working();
  fp4_loader_copy copy;
  if (!loader || !width || !height)
    return;
  memset(&copy, 0, sizeof(copy));
  copy.src_type = copy.dst_type = 2; /* CU_MEMORYTYPE_DEVICE */
  copy.src = (uintptr_t)src;
  copy.src_pitch = src_pitch;
  copy.dst = (uintptr_t)dst;
  copy.dst_pitch = dst_pitch;
  copy.width = width;
  copy.height = height;
  fp4_loader_check(loader, loader->driver.copy_2d(&copy, loader->stream), "copying",
                   "device memory");
}

static void fp4_loader_tensor_map(void *out128, void *base, int32_t element_type, int32_t swizzle,
                                  int32_t rank, const uint64_t *dims, const uint64_t *strides,
                                  const uint32_t *box) {
  static const uint32_t ones[5] = {1, 1, 1, 1, 1};
  fp4_loader *loader = fp4_loader_working();
  /* Promotion to 256 bytes of L2 beside the widest swizzle, else to 128. */
  if (loader)
    fp4_loader_check(loader,
                     loader->driver.encode(out128, element_type, (uint32_t)rank, base, dims,
                                           strides, box, ones, 0, swizzle, swizzle == 3 ? 3 : 2, 0),
                     "encoding", "a tensor map");
}

static int32_t fp4_loader_device_number(fp4_loader *loader, int attribute) {
  int device = 0, value = 1;
  fp4_loader_check(loader, loader->driver.device(&device), "asking for",
                   "the device of the context");
  fp4_loader_check(loader, loader->driver.device_attribute(&value, attribute, device),
                   "asking for an attribute of", "the device");
  return value;
}

static int32_t fp4_loader_multiprocessors(void) {
  fp4_loader *loader = fp4_loader_working();
  return loader ? fp4_loader_device_number(loader, 16) : 1;
}

static void fp4_loader_user_error(const char *message, const char *note) {
  fp4_loader *loader = fp4_loader_working();
  if (loader)
    fp4_loader_fail(loader, message ? message : "host code failed", note);
}

static void fp4_loader_expect_size(const char *what, int64_t found, int64_t min, int64_t max,
                                   const char *note) {
  fp4_loader *loader = fp4_loader_working();
  char message[512];
  if (!loader || (min <= found && found <= max))
    return;
  if (min == max)
    snprintf(message, sizeof(message), "%s must be %lld, but got %lld", what ? what : "a size",
             (long long)min, (long long)found);
  else
    snprintf(message, sizeof(message), "%s must be from %lld to %lld, but got %lld",
             what ? what : "a size", (long long)min, (long long)max, (long long)found);
  fp4_loader_fail(loader, message, note);
}

/* Answers of the driver about code that is not for the device: another try can help. */
static int fp4_loader_is_unfit(int result) {
  return result == 200 || result == 209 || result == 218 || result == 222 || result == 300;
}

/* The module of the driver: the cubin, else the PTX, which the driver compiles. */
static void *fp4_loader_module(fp4_loader *loader, const fp4rt_module *module) {
  fp4_loader_entry *entry = fp4_loader_find(loader, FP4_LOADER_MODULE, module, NULL, 0);
  void *handle = NULL;
  char message[256];
  int result = 209; /* CUDA_ERROR_NO_BINARY_FOR_GPU */
  if (entry)
    return fp4_loader_pointer(entry->value);
  if (module->cubin)
    result = loader->driver.load(&handle, module->cubin, 0, NULL, NULL);
  if (fp4_loader_is_unfit(result) && module->ptx_size) { /* the driver wants a NUL at the end */
    char *text = (char *)calloc(1, module->ptx_size + 1);
    if (!text) {
      fp4_loader_fail(loader, "the loader has no memory of the host", "end other programs");
      return NULL;
    }
    memcpy(text, module->ptx, module->ptx_size);
    result = loader->driver.load(&handle, text, 0, NULL, NULL);
    free(text);
  }
  if (fp4_loader_is_unfit(result)) {
    const int major = fp4_loader_device_number(loader, 75),
              minor = fp4_loader_device_number(loader, 76);
    snprintf(
        message, sizeof(message),
        "module '%s' is compiled for %s, which this device (sm_%d%d) does not load: the driver "
        "answers %d",
        module->name, module->target, major, minor, result);
    fp4_loader_fail(loader, message, "compile the library with --target of this device");
    return NULL;
  }
  if (!fp4_loader_check(loader, result, "loading module", module->name))
    return NULL;
  entry = fp4_loader_add(loader, FP4_LOADER_MODULE, module, (uintptr_t)handle);
  return entry ? handle : NULL;
}

static fp4_loader_entry *fp4_loader_kernel(fp4_loader *loader, const fp4rt_module *module,
                                           const char *kernel) {
  fp4_loader_entry *entry = fp4_loader_find(loader, FP4_LOADER_KERNEL, module, kernel, 0);
  void *handle, *function = NULL;
  if (entry)
    return entry;
  handle = fp4_loader_module(loader, module);
  if (!handle || !fp4_loader_check(loader, loader->driver.function(&function, handle, kernel),
                                   "looking for kernel", kernel))
    return NULL;
  entry = fp4_loader_add(loader, FP4_LOADER_KERNEL, module, (uintptr_t)function);
  if (entry)
    entry->second = kernel;
  return entry;
}

static void fp4_loader_attribute_add(fp4_loader_config *config, int id, unsigned x, unsigned y) {
  fp4_loader_attribute *attribute = &config->attributes[config->count++];
  memset(attribute, 0, sizeof(*attribute));
  attribute->id = id;
  attribute->value.cluster[0] = x; /* or a flag, in the same place */
  attribute->value.cluster[1] = y;
  attribute->value.cluster[2] = y ? 1 : 0;
}

/* Launches with the attributes of `config`; `cluster` has the sizes of the launch, or zeros. */
static void fp4_loader_start(const fp4rt_module *module, const char *kernel,
                             fp4_loader_config *config, void **params, const uint32_t cluster[4]) {
  fp4_loader *loader = fp4_loader_working();
  fp4_loader_entry *entry = loader ? fp4_loader_kernel(loader, module, kernel) : NULL;
  int required[3] = {0, 0, 0};
  void *function;
  if (!entry || !config->grid[0] || !config->grid[1] || !config->grid[2])
    return;
  function = fp4_loader_pointer(entry->value);
  if (config->shared > entry->size &&
      fp4_loader_check(loader, loader->driver.set_attribute(function, 8, (int)config->shared),
                       "allowing shared memory of", kernel))
    entry->size = config->shared;
  for (int i = 0; i < 3; ++i)
    fp4_loader_check(loader, loader->driver.get_attribute(&required[i], 11 + i, function),
                     "reading the cluster of", kernel);
  if (cluster[0] && !required[0])
    fp4_loader_attribute_add(config, 4, cluster[0], cluster[1]);
  if (cluster[2])
    fp4_loader_attribute_add(config, 11, cluster[2], cluster[3]);
  if (required[0] * required[1] * required[2] > 8 || cluster[0] * cluster[1] > 8 ||
      cluster[2] * cluster[3] > 8)
    fp4_loader_check(loader, loader->driver.set_attribute(function, 14, 1),
                     "allowing the cluster of", kernel);
  config->stream = loader->stream;
  if (!loader->failed)
    fp4_loader_check(loader, loader->driver.launch(config, function, params, NULL), "launching",
                     kernel);
}

#define FP4_LOADER_SHAPE                                                                           \
  const fp4rt_module *module, const char *kernel, uint32_t grid_x, uint32_t grid_y,                \
      uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,                       \
      uint32_t shared_bytes, void **params, uint32_t num_params
#define FP4_LOADER_CONFIG                                                                          \
  fp4_loader_attribute attributes[4];                                                              \
  fp4_loader_config config = {                                                                     \
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, NULL, attributes, 0};   \
  uint32_t cluster[4] = {0, 0, 0, 0};                                                              \
  (void)num_params

static void fp4_loader_launch(FP4_LOADER_SHAPE) {
  FP4_LOADER_CONFIG;
  fp4_loader_start(module, kernel, &config, params, cluster);
}

static void fp4_loader_launch_dependent(FP4_LOADER_SHAPE) {
  FP4_LOADER_CONFIG;
  fp4_loader_attribute_add(&config, 6, 1, 0); /* programmatic stream serialization */
  fp4_loader_start(module, kernel, &config, params, cluster);
}

static void fp4_loader_launch_cooperative(FP4_LOADER_SHAPE) {
  FP4_LOADER_CONFIG;
  fp4_loader_attribute_add(&config, 2, 1, 0);
  fp4_loader_start(module, kernel, &config, params, cluster);
}

static void fp4_loader_launch_clusters(FP4_LOADER_SHAPE, uint32_t dependent, uint32_t cluster_x,
                                       uint32_t cluster_y, uint32_t preferred_x,
                                       uint32_t preferred_y) {
  FP4_LOADER_CONFIG;
  cluster[0] = cluster_x;
  cluster[1] = cluster_y;
  cluster[2] = preferred_x;
  cluster[3] = preferred_y;
  if (dependent)
    fp4_loader_attribute_add(&config, 6, 1, 0);
  fp4_loader_start(module, kernel, &config, params, cluster);
}

static void fp4_loader_interface(fp4_entry_function entry, void *const *buffers,
                                 const fp4rt_memref_type *types, uint32_t num_arguments,
                                 uint32_t num_results) {
  (void)entry, (void)buffers, (void)types, (void)num_arguments, (void)num_results;
  fp4_loader_user_error(
      "_mlir_ciface_NAME needs libfp4rt.so, but the library is bound to fp4-c/Loader.h",
      "call fp4_loader_call with the name of the function");
}

static const fp4rt_api fp4_loader_api = {sizeof(fp4rt_api),          fp4_loader_alloc,
                                         fp4_loader_alloc_result,    fp4_loader_release,
                                         fp4_loader_constant,        fp4_loader_memset,
                                         fp4_loader_memcpy_2d,       fp4_loader_tensor_map,
                                         fp4_loader_multiprocessors, fp4_loader_user_error,
                                         fp4_loader_expect_size,     fp4_loader_launch,
                                         fp4_loader_interface,       fp4_loader_launch_dependent,
                                         fp4_loader_counters,        fp4_loader_launch_cooperative,
                                         fp4_loader_launch_clusters, fp4_loader_group_report,
                                         fp4_loader_result_pitch};

static void *fp4_loader_lookup(void *context, const char *name) { return dlsym(context, name); }

/* Fills the table of the driver. */
static void fp4_loader_bind_driver(fp4_loader *loader, fp4_loader_options options) {
  char message[256];
  if (!options.find) {
    options.find = fp4_loader_lookup;
    options.context = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!options.context) {
      snprintf(message, sizeof(message), "no CUDA driver can be loaded: %s", dlerror());
      fp4_loader_fail(loader, message,
                      "install the NVIDIA driver, or run the library with fp4-run, "
                      "whose simulator needs none");
      return;
    }
  }
#define FP4_LOADER_FILL(name, symbol, ...)                                                         \
  FP4_LOADER_ASSIGN(loader->driver.name, options.find(options.context, symbol));                   \
  if (!loader->driver.name && !loader->failed) {                                                   \
    fp4_loader_fail(loader, "the CUDA driver has no function " symbol,                             \
                    "update the driver to CUDA 12.7 or later");                                    \
    return;                                                                                        \
  }
  FP4_LOADER_CALLS(FP4_LOADER_FILL)
#undef FP4_LOADER_FILL
}

int fp4_loader_open(const char *library, const fp4_loader_options *options, fp4_loader **result) {
  static const fp4_loader_options none = {NULL, NULL};
  fp4_loader *loader = (fp4_loader *)calloc(1, sizeof(fp4_loader));
  void *context = NULL;
  *result = loader;
  if (!loader)
    return 1;
  fp4_loader_bind_driver(loader, options ? *options : none);
  if (!loader->failed && (loader->driver.current(&context) != 0 || !context))
    fp4_loader_fail(loader, "a CUDA context must be current on the calling thread, but none is",
                    "call cudaSetDevice, or cuDevicePrimaryCtxRetain and cuCtxSetCurrent, first");
  if (!loader->failed)
    fp4_loader_bind_library(loader, library, &fp4_loader_api);
  return loader->failed;
}

/* Returns 0 for a loader that did not open, which keeps the error of fp4_loader_open. */
static int fp4_loader_begin(fp4_loader *loader, void *stream) {
  if (!loader->library)
    return 0;
  loader->failed = 0;
  loader->message[0] = loader->note[0] = '\0';
  loader->stream = stream;
  return 1;
}

/* Makes room for the gaps of as many results. */
static void fp4_loader_clear_gaps(fp4_loader *loader, size_t num_results) {
  if (num_results > loader->most_gaps) {
    free(loader->gaps);
    loader->gaps = (uint64_t *)calloc(num_results, sizeof(uint64_t));
    loader->most_gaps = loader->gaps ? num_results : 0;
    if (!loader->gaps)
      fp4_loader_fail(loader, "the loader has no memory of the host", "end other programs");
  } else if (num_results) {
    memset(loader->gaps, 0, num_results * sizeof(uint64_t));
  }
}

/* Looks for an entry function. */
static fp4_entry_function fp4_loader_entry_of(fp4_loader *loader, const char *function) {
  static const char prefix[] = "fp4_entry_";
  const size_t size = sizeof(prefix) + strlen(function);
  char *symbol = (char *)malloc(size);
  char message[512];
  fp4_entry_function entry = NULL;
  if (!symbol) {
    fp4_loader_fail(loader, "the loader has no memory of the host", "end other programs");
    return NULL;
  }
  snprintf(symbol, size, "%s%s", prefix, function);
  FP4_LOADER_ASSIGN(entry, dlsym(loader->library, symbol));
  free(symbol);
  if (entry)
    return entry;
  snprintf(message, sizeof(message), "the library has no function '%s'", function);
  fp4_loader_fail(loader, message, "fp4_loader_manifest lists its functions");
  return NULL;
}

int fp4_loader_call(fp4_loader *loader, const char *function, void **args, void *stream,
                    const fp4_loader_buffer *results, size_t num_results) {
  fp4_loader *previous = fp4_loader_current;
  fp4_entry_function entry;
  if (!fp4_loader_begin(loader, stream))
    return 1;
  entry = fp4_loader_entry_of(loader, function);
  fp4_loader_clear_gaps(loader, num_results);
  if (loader->failed)
    return 1;
  loader->results = results;
  loader->num_results = num_results;
  fp4_loader_current = loader;
  if (entry(args) != 0)
    fp4_loader_fail(loader, "the function did nothing: its library is bound to no functions",
                    "name a library that fp4-runner --emit=so wrote");
  fp4_loader_current = previous;
  return loader->failed;
}

/* The error of rows of groups that a kernel found, once. */
static void fp4_loader_take_report(fp4_loader *loader, const fp4_loader_entry *entry) {
  int64_t *report = (int64_t *)fp4_loader_pointer(entry->value);
  char message[512];
  if (__atomic_load_n(&report[0], __ATOMIC_ACQUIRE) != 2) /* written, by a release of the GPU */
    return;
  report[0] = 0;
  snprintf(
      message, sizeof(message),
      "%s must have groups in 0 to %lld that do not decrease, but group %lld begins at row %lld "
      "and ends at row %lld, and the groups before it end at row %lld",
      (const char *)entry->key, (long long)report[5], (long long)report[1], (long long)report[2],
      (long long)report[3], (long long)report[4]);
  fp4_loader_fail(loader, message, "the result is not that of these groups: mend the offsets");
}

int fp4_loader_finish(fp4_loader *loader, void *stream) {
  const fp4_loader_entry *entry;
  if (!fp4_loader_begin(loader, stream))
    return 1;
  fp4_loader_check(loader, loader->driver.synchronize(stream), "running", "the kernels");
  for (entry = loader->entries; entry; entry = entry->next)
    if (entry->kind == FP4_LOADER_REPORT && !loader->failed)
      fp4_loader_take_report(loader, entry);
  return loader->failed;
}

int fp4_loader_free(fp4_loader *loader, void *address, void *stream) {
  if (!fp4_loader_begin(loader, stream))
    return 1;
  if (address)
    fp4_loader_check(loader, loader->driver.release_on((uintptr_t)address, stream), "freeing",
                     "a result");
  return loader->failed;
}

const char *fp4_loader_manifest(const fp4_loader *loader) {
  return loader && loader->library ? (const char *)dlsym(loader->library, "fp4_manifest") : NULL;
}

const char *fp4_loader_message(const fp4_loader *loader) {
  return loader ? loader->message : "the loader has no memory of the host";
}

const char *fp4_loader_note(const fp4_loader *loader) { return loader ? loader->note : ""; }

void fp4_loader_close(fp4_loader *loader) {
  if (!loader)
    return;
  while (loader->entries) {
    fp4_loader_entry *entry = loader->entries;
    loader->entries = entry->next;
    if (entry->kind == FP4_LOADER_MODULE)
      loader->driver.unload(fp4_loader_pointer(entry->value));
    else if (entry->kind == FP4_LOADER_REPORT)
      loader->driver.release_host(fp4_loader_pointer(entry->value));
    else if (entry->kind != FP4_LOADER_KERNEL)
      loader->driver.release(entry->value);
    free(entry);
  }
  free(loader->gaps);
  free(loader);
}

void fp4_loader_describe(uint64_t *words, uint64_t address, uint32_t rank, const int64_t *sizes) {
  uint64_t stride = 1;
  words[0] = words[1] = address;
  words[2] = 0;
  for (uint32_t i = rank; i-- > 0;) {
    words[3 + i] = (uint64_t)sizes[i];
    words[3 + rank + i] = stride;
    stride *= (uint64_t)sizes[i];
  }
}

#ifdef __cplusplus
}
#endif

#endif
