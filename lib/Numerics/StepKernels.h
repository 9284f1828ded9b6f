//===- StepKernels.h - The inner loops of the references of a GEMM --------===//
//
// Products of one row of A and one panel of B over one step of K = 64. Each kernel has several
// implementations, for processors with and without byte dot products; all give the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmSteps.h"
#include <span>

namespace fp4::numerics {

/// The state of the reference of one row against a panel (docs/reference/numerics.md, error bound).
struct ReferenceState {
  alignas(64) double sum[panelColumns] = {};       ///< exact sum so far
  alignas(64) double magnitude[panelColumns] = {}; ///< sum of |term| so far
  alignas(64) double error[panelColumns] = {};     ///< bound on |model accumulator - sum|
  alignas(64) double reach[panelColumns] = {};     ///< largest |sum| + error after any step
};

/// The rounding of a step, relative to `most`, the largest value that its accumulator may have:
///   error += cut * most + align * max(product * pa * pb + factor * (pa + pb), most)
/// with the powers pa and pb of the largest scales.
struct StepRounding {
  double cut = 0, align = 0, product = 0, factor = 0;
  double least = 0x1p-148; ///< the loss of a subnormal sum
  int largestScale = 1 << 20; ///< exponent of a scale above which a factor may be infinite
};

struct StepKernels {
  const char *name;
  bool (*supported)();
  /// The model: d[j] becomes the step's result where fp64 gives it exactly. Other elements keep
  /// d[j]; the set bits of the returned mask name them.
  uint32_t (*addExactly)(const StepRow &a, const StepPanel &b, float *d);
  /// The plain sum and its bound.
  void (*addReference)(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                       ReferenceState &state);
};

/// All kernels, the fastest first; and the first kernel that this processor supports.
std::span<const StepKernels> allStepKernels();
const StepKernels &stepKernels();

} // namespace fp4::numerics
