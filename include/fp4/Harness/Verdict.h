//===- Verdict.h - Comparison of a device's results with the reference ----===//
//
//   * Everything but a GEMM is defined bit by bit, and must be bit-equal.
//   * A GEMM must be bit-equal to the model of the tensor core, and must lie within a
//     derived bound of the plain sum in fp64 (docs/reference/numerics.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Reference.h"

namespace fp4::harness {

/// The judgement of one result.
struct Verdict {
  std::string name;
  bool passed = false;
  std::string method; ///< method of the comparison
  uint64_t elements = 0, mismatches = 0;
  bool hasBound = false;      ///< true for a GEMM: the next three hold
  uint64_t outside = 0;       ///< elements beyond their bound
  double maxError = 0;        ///< largest distance from the plain sum in fp64
  double maxErrorOfBound = 0; ///< maxError divided by the derived bound; at most 1 passes
  std::string details;        ///< the first mismatches, one a line
};

/// Compares one result, where it is specified. Types must agree, or the verdict says how they
/// differ.
Verdict judge(const std::string &name, const Tensor &got, const ReferenceValue &expected);

} // namespace fp4::harness
