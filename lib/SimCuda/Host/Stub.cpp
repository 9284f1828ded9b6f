//===- Stub.cpp - A libcuda to link with, not to run ----------------------===//
//
// Programs that call the driver are linked with -lcuda on machines that have none. This library has
// every name and the soname of the driver's, and nothing behind them.
//
//===----------------------------------------------------------------------===//

#define FP4_NAME(name)                                                                             \
  extern "C" __attribute__((visibility("default"))) int name() {                                   \
    return 34; /* CUDA_ERROR_STUB_LIBRARY */                                                       \
  }
#include FP4_NAMES
