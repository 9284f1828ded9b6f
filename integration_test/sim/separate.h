#pragma once
extern __device__ int offset;
extern __device__ int twice(int x);
/// In both files, weak.
template <typename T> __device__ __noinline__ T inlined(T x) { return x + 1; }
