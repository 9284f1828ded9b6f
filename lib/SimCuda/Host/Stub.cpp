//===- Stub.cpp - A libcuda to link with, not to run ----------------------===//
//
// Programs that call the driver are linked with -lcuda on machines without a driver. This library
// has every name and the soname of the driver, and no implementation.
//
//===----------------------------------------------------------------------===//

#define FP4_NAME(name)                                                                             \
  extern "C" __attribute__((visibility("default"))) int name() {                                   \
    return 34; /* CUDA_ERROR_STUB_LIBRARY */                                                       \
  }
#include FP4_NAMES
