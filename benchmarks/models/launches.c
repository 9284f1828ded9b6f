/* Launches the only kernel of a captured graph again and again (host.py). */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

typedef struct { /* CUDA_KERNEL_NODE_PARAMS_v2 */
  void *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra, *kernel, *context;
} KernelNode;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

typedef struct { /* CUlaunchAttribute: a cooperative launch takes longer */
  int id;
  char pad[4];
  int value[16];
} Attribute;

typedef struct { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  void *stream;
  Attribute *attributes;
  unsigned numAttributes;
} Config;

enum { Cooperative = 2, ClusterDimension = 4 };

/* Microseconds of one cuLaunchKernelEx, or -1 where the graph is not one kernel. */
double launch(void *graph, void *stream, int count) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*nodes)(void *, void **, size_t *) = NULL;
  int (*params)(void *, KernelNode *) = NULL;
  int (*attribute)(void *, int, int *) = NULL;
  int (*launchKernel)(const Config *, void *, void **, void **) = NULL;
  if (!driver)
    return -1;
  *(void **)&nodes = dlsym(driver, "cuGraphGetNodes");
  *(void **)&params = dlsym(driver, "cuGraphKernelNodeGetParams_v2");
  *(void **)&attribute = dlsym(driver, "cuGraphKernelNodeGetAttribute");
  *(void **)&launchKernel = dlsym(driver, "cuLaunchKernelEx");
  void *node = NULL;
  size_t numNodes = 1;
  KernelNode kernel;
  if (nodes(graph, &node, &numNodes) || numNodes != 1 || params(node, &kernel))
    return -1;
  Attribute attributes[2] = {{Cooperative}, {ClusterDimension}};
  unsigned numAttributes = 0;
  for (int i = 0; i < 2; ++i) {
    Attribute found = attributes[i];
    if (attribute(node, found.id, found.value) == 0 && found.value[0] != 0)
      attributes[numAttributes++] = found;
  }
  Config config = {{kernel.grid[0], kernel.grid[1], kernel.grid[2]},
                   {kernel.block[0], kernel.block[1], kernel.block[2]},
                   kernel.shared,
                   stream,
                   attributes,
                   numAttributes};
  double begin = now();
  for (int i = 0; i < count; ++i)
    if (launchKernel(&config, kernel.function, kernel.parameters, kernel.extra))
      return -1;
  return (now() - begin) / count;
}
