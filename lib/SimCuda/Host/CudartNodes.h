//===- CudartNodes.h - Parameters of graph nodes as work ------------------===//
#pragma once

#include "Graphs.h"

namespace fp4::simcuda {

/// Slices and rows of two pitched pointers; arrays are not simulated.
Code copyOf(const char *function, const Memcpy3DParms &params, CopyWork &work);
/// The address of `bytes` bytes at `offset` of a variable of the program.
Code symbolRange(const char *function, const void *symbol, size_t offset, size_t bytes,
                 std::byte *&address);

} // namespace fp4::simcuda
