//===- Program.h - Declarations for all parts of the test program ---------===//
#pragma once

#include "CudaApi.h"
#include <cstdio>
#include <cstdlib>

// Shadows of the device's names on the host: only their addresses matter.
extern char scaleHost, clusterHost, wildHost, unknownHost, countHost, racyHost, idleHost;
extern unsigned factorHost;
extern unsigned *managedHost; ///< points to the __managed__ variable
extern void **handle;         ///< of the program's fat binary

/// Every call must succeed.
inline void must(int code, const char *what) {
  if (code == 0)
    return;
  std::printf("%s: %s\n", what, cudaGetErrorName(code));
  std::exit(10);
}
#define MUST(call) must(call, #call)

/// As the code that nvcc generates for <<<grid, block, shared, stream>>>.
int launch(const void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared = 0,
           void *stream = nullptr);
unsigned *deviceWords(size_t count);

// Modes, by the argument that chooses them.
int managed();
int managedVariable();
int mapped();
int readWords(unsigned count);
int capture();
int captureErrors();
int graphNodes();
int graphMemory();
int pitchedCopies();
int slicedCopies();
int orderedNodes();
int updatedNodes();
int limits();
int refusals();
