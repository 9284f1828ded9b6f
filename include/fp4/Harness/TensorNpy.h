//===- TensorNpy.h - Tensors from and to .npy files -----------------------===//
#pragma once

#include "fp4/Harness/Npy.h"
#include "fp4/Reference/Tensor.h"

namespace fp4::harness {

/// An array from a file as a value of `type`, whose dynamic dimension it fixes. Floating-point
/// files are rounded once, to nearest even; diagnostics.md lists what is accepted. `name` is
/// the argument's, for messages.
Expected<Tensor> fromNpy(const NpyArray &array, const Type &type, const std::string &name);

/// The elements of a file as fp32, without a type of an argument: '<f8' is rounded to nearest even,
/// others are exact. `type` ("f8E4M3FN", "bf16", ...) says what the bytes of '|u1', '<V1' and '<u2'
/// are; empty: fp32.
Expected<std::vector<float>> valuesOf(const NpyArray &array, const std::string &type,
                                      const std::string &name);

/// Converts back; bf16 becomes '<f4', which holds it exactly and needs no extension to read.
NpyArray toNpy(const Tensor &tensor);

} // namespace fp4::harness
