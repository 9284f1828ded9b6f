#include "separate.h"

__device__ int offset = 7;
__device__ int twice(int x) { return 2 * x + inlined(x) - x - 1; }
