//===- Multiversion.h - One loop, compiled for several processors ---------===//
//
// multiversion<Body>(arguments...) calls Body::run, which must be always_inline, compiled for what
// this processor has. All versions come from one source and give the same bits. Loops with vectors
// of 32 bytes (FP4_VECTORS) are compiled with FP4_VECTOR_TARGET: one register of AVX2, or two of
// NEON, which each Arm host has.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <utility>

#if defined(__x86_64__) && defined(__clang__)
#define FP4_MULTIVERSION_X86 1
#define FP4_VECTORS "avx2"
#define FP4_VECTOR_TARGET gnu::target("avx2")
#elif defined(__aarch64__) && defined(__clang__)
#define FP4_VECTORS "neon"
#define FP4_VECTOR_TARGET gnu::unused
#endif

namespace fp4::numerics {

#ifdef FP4_MULTIVERSION_X86
inline bool hasAVX2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
template <typename Body, typename... Arguments>
[[gnu::target("avx2")]] auto runAVX2(Arguments... arguments) {
  return Body::run(arguments...);
}
inline bool hasVectors() { return hasAVX2(); }
#else
inline bool hasVectors() { return true; }
#endif

template <typename Body, typename... Arguments> auto multiversion(Arguments... arguments) {
#ifdef FP4_MULTIVERSION_X86
  if (hasAVX2())
    return runAVX2<Body, Arguments...>(arguments...);
#endif
  return Body::run(arguments...);
}

} // namespace fp4::numerics
