/* Loops in C: what a launch and a call of the C API cost on the host, without Python.
 *
 *   cc -O2 -shared -fPIC loops.c -o libloops.so
 */
#include <stddef.h>
#include <time.h>

typedef int (*launch_function)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared_bytes, void *stream, void **parameters,
                               void **extra);
typedef void *(*call_function)(void *function, const void *arguments, size_t num_arguments,
                               void *results, size_t num_results, const void *options);

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct kernel_node {
  void *function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  void *kernel, *context;
};

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* Microseconds of one launch, the mean of `count`; negative where one fails. */
double time_launches(launch_function launch, const struct kernel_node *node, void *stream,
                     int count) {
  const double begin = microseconds();
  for (int i = 0; i < count; ++i)
    if (launch(node->function, node->grid[0], node->grid[1], node->grid[2], node->block[0],
               node->block[1], node->block[2], node->shared_bytes, stream, node->parameters,
               node->extra) != 0)
      return -1;
  return (microseconds() - begin) / count;
}

double time_calls(call_function call, void *function, const void *arguments, size_t num_arguments,
                  void *results, size_t num_results, const void *options, int count) {
  const double begin = microseconds();
  for (int i = 0; i < count; ++i)
    if (call(function, arguments, num_arguments, results, num_results, options))
      return -1;
  return (microseconds() - begin) / count;
}
