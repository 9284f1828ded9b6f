//===- StepKernels.h - The inner loops of the references of a product -----===//
//
// One row of A against one panel of B over one step of K = 64. Each kernel has several
// implementations, for processors with and without byte dot products; all give the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ProductSteps.h"
#include <span>

namespace fp4::numerics {

/// Running quantities of one row against a panel (docs/reference/numerics.md, error bound).
struct ReferenceState {
  alignas(64) double sum[panelColumns] = {};       ///< exact sum so far
  alignas(64) double magnitude[panelColumns] = {}; ///< sum of |term| so far
  alignas(64) double error[panelColumns] = {};     ///< bound on |model accumulator - sum|
  alignas(64) double reach[panelColumns] = {};     ///< largest |sum| + error after any step
};

/// What a step rounds, relative to the largest that its accumulator may be:
///   error += cut * most + align * max(product * pa * pb + factor * (pa + pb), most)
/// with the powers pa and pb of the largest scales.
struct StepRounding {
  double cut = 0, align = 0, product = 0, factor = 0;
  double least = 0x1p-148; ///< what sums that are subnormal lose
  int largestScale = 1 << 20; ///< exponent of a scale above which a factor may be infinite
};

struct StepKernels {
  const char *name;
  bool (*supported)();
  /// The model: d[j] becomes the step's result where fp64 gives it exactly. The others keep d[j];
  /// they are the set bits of what is returned.
  uint32_t (*addExactly)(const StepRow &a, const StepPanel &b, float *d);
  /// The plain sum and its bound.
  void (*addReference)(const StepRow &a, const StepPanel &b, const StepRounding &rounding,
                       ReferenceState &state);
};

/// All of them, the fastest first; and the first that this processor supports.
std::span<const StepKernels> allStepKernels();
const StepKernels &stepKernels();

} // namespace fp4::numerics
