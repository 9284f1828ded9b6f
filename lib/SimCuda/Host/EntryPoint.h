//===- EntryPoint.h - Macros for the C functions of both libraries --------===//
#pragma once

#include "Context.h"

#define FP4_ENTRY extern "C" __attribute__((visibility("default")))

/// Programs built with a default stream per thread call NAME_ptsz or NAME_ptds. One stream at a
/// time runs here, so it is the same function.
#define FP4_PER_THREAD(name, suffix)                                                               \
  FP4_ENTRY decltype(name) name##suffix __attribute__((alias(#name)));

namespace fp4::simcuda {

inline Context &context() { return Context::get(); }

/// A result that the caller must have given a place for.
#define FP4_REQUIRE(condition)                                                                     \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return context().fail(__func__, InvalidValue, #condition " does not hold");                  \
  } while (false)

} // namespace fp4::simcuda
