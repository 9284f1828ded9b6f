//===- Missing.cpp - The functions that we do not have --------------------===//
//
// A weak definition of every name of the library, so that programs load and the call of a missing
// function says which one it was. Definitions that are written elsewhere take precedence.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"

#define FP4_NAME(name)                                                                             \
  extern "C" __attribute__((weak, visibility("default"))) int name() {                             \
    fp4::simcuda::reportMissing(#name);                                                            \
    return fp4::simcuda::Context::get().quiet(fp4::simcuda::NotSupported);                         \
  }
#include FP4_NAMES
