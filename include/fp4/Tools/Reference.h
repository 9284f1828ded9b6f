//===- Reference.h - The program of a manifest, on the host ---------------===//
//
// Executes the fp4 operations of a function with lib/Numerics, one after the other, and judges what
// a device computed:
//   * everything but a matrix product is defined bit by bit, and must be bit-equal;
//   * a matrix product must be bit-equal to the model of the tensor core, and must lie within a
//     derived bound of the plain sum in fp64 (docs/Numerics.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Tools/Tensor.h"

#include <functional>

namespace fp4::tools {

/// The judgement of one result.
struct Verdict {
  std::string name;
  bool passed = false;
  std::string method; ///< what it was compared with
  uint64_t elements = 0, mismatches = 0;
  bool hasBound = false;      ///< it is a matrix product: the next three hold
  uint64_t outside = 0;       ///< elements beyond their bound
  double maxError = 0;        ///< largest distance from the plain sum in fp64
  double maxErrorOfBound = 0; ///< the same divided by the derived bound; at most 1 passes
  std::string details;        ///< where it failed: the first mismatches, one a line
};

/// A reference value with, for matrix products, the plain sum and its bounds.
struct ReferenceValue {
  Tensor value;
  bool isProduct = false;
  std::vector<double> sums = {}, bounds = {};
  std::vector<uint8_t> mayOverflow = {}; ///< numerics::GemmReference
};

/// Finds the bytes of a constant by the symbol that the manifest gives it.
using DataResolver = std::function<Expected<const void *>(const std::string &symbol)>;

/// One value per result of `function`. Fails (Usage) where the program has an operation that this
/// tool does not know: it is older than the compiler.
Expected<std::vector<ReferenceValue>> runReference(const Function &function,
                                                   std::span<const Tensor> arguments,
                                                   unsigned threads, const DataResolver &data = {});

/// Compares one result. Types must agree, or the verdict says how they differ.
Verdict judge(const std::string &name, const Tensor &got, const ReferenceValue &expected);

} // namespace fp4::tools
