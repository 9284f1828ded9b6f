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

/* Microseconds of one cuLaunchKernel, or -1 where the graph is not one kernel. */
double launch(void *graph, void *stream, int count) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*nodes)(void *, void **, size_t *) = NULL;
  int (*params)(void *, KernelNode *) = NULL;
  int (*launchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **, void **) = NULL;
  if (!driver)
    return -1;
  *(void **)&nodes = dlsym(driver, "cuGraphGetNodes");
  *(void **)&params = dlsym(driver, "cuGraphKernelNodeGetParams_v2");
  *(void **)&launchKernel = dlsym(driver, "cuLaunchKernel");
  void *node = NULL;
  size_t numNodes = 1;
  KernelNode kernel;
  if (nodes(graph, &node, &numNodes) || numNodes != 1 || params(node, &kernel))
    return -1;
  double begin = now();
  for (int i = 0; i < count; ++i)
    if (launchKernel(kernel.function, kernel.grid[0], kernel.grid[1], kernel.grid[2],
                     kernel.block[0], kernel.block[1], kernel.block[2], kernel.shared, stream,
                     kernel.parameters, kernel.extra))
      return -1;
  return (now() - begin) / count;
}
