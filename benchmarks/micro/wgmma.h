// Products of a warpgroup of bf16 with sums of fp32: d += a x b for 16 of k, or d = a x b without
// `adds`. A is in shared memory (`a` is a descriptor) or in registers.
#pragma once

// The numbers of the operands that are sums, of 128 and of 176 columns, and the sums.
#define NAMES_64                                                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_88                                                                                   \
  NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "    \
           "%80, %81, %82, %83, %84, %85, %86, %87"
#define SUMS_8(d, i)                                                                               \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),      \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS_32(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24)
#define SUMS_64(d) SUMS_32(d, 0), SUMS_32(d, 32)
#define SUMS_88(d) SUMS_64(d), SUMS_8(d, 64), SUMS_8(d, 72), SUMS_8(d, 80)

#define WGMMA(columns, names, operands, adds)                                                      \
  "{ .reg .pred p; setp.ne.b32 p, " adds ", 0; "                                                   \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" names "}, " operands "; }"

__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b,
                                         int adds) {
  asm volatile(WGMMA("128", NAMES_64, "%64, %65, p, 1, 1, 0, 0", "%66")
               : SUMS_64(d)
               : "l"(a), "l"(b), "r"(adds));
}

__device__ __forceinline__ void multiply(float (&d)[88], unsigned long long a, unsigned long long b,
                                         int adds) {
  asm volatile(WGMMA("176", NAMES_88, "%88, %89, p, 1, 1, 0, 0", "%90")
               : SUMS_88(d)
               : "l"(a), "l"(b), "r"(adds));
}

/// B has its rows along k: it is transposed.
__device__ __forceinline__ void multiplyTransposed(float (&d)[64], const unsigned (&a)[4],
                                                   unsigned long long b, int adds) {
  asm volatile(WGMMA("128", NAMES_64, "{%64, %65, %66, %67}, %68, p, 1, 1, 1", "%69")
               : SUMS_64(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}

#undef NAMES_64
#undef NAMES_88
#undef SUMS_8
#undef SUMS_32
#undef SUMS_64
#undef SUMS_88
#undef WGMMA

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int n> __device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}

/// The sums of products that are under way stay where they are.
template <int n> __device__ __forceinline__ void keep(float (&x)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    asm volatile("" : "+f"(x[i])::"memory");
}
