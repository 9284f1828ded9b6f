//===- GemmSteps.h - Operands of a GEMM, step by step ------------------===//
//
// The model and the fp64 reference of a GEMM (BlockScaledGemm.h) walk K in steps of 64. The
// operands of a step are decoded here: one row of A, and a panel of 16 columns of B. Twice an E2M1
// value is an integer of at most 12, so that StepKernels.h sums products exactly in integers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include <algorithm>
#include <array>
#include <cstdint>

namespace fp4::numerics {

constexpr unsigned stepGroups = 4, groupSize = 16, stepQuads = fp4MmaK / 4;
/// Columns of B that are handled at once.
constexpr unsigned panelColumns = 16;

/// The types and the number of a step's scales.
struct StepKind {
  hw::ScaleType type;
  hw::ScaleVector vector;
  unsigned scalesPerStep() const { return vector == hw::ScaleVector::X4 ? 4 : 2; }
};

/// The exponents of some scales: all lie in [lo, hi]. Without a nonzero scale lo > hi; with a NaN
/// hi is huge.
struct ExponentRange {
  int lo = 1000, hi = -1000;
  void add(const ExponentRange &other) {
    lo = std::min(lo, other.lo);
    hi = std::max(hi, other.hi);
  }
};

/// One row of A in one step.
struct StepRow {
  alignas(64) int8_t values[fp4MmaK];     ///< twice the value
  alignas(64) int8_t magnitudes[fp4MmaK]; ///< magnitudes without sign
  int32_t correction[stepGroups];         ///< -12 * the group's sum: undoes the offset of B
  double scales[stepGroups];              ///< a quarter of the value, as both operands are doubled
  double power;                           ///< 2^exponent of the largest scale that is not zero
  ExponentRange exponents;
};

/// A panel of columns of B in one step; columns that do not exist are zero. Bytes 4 * column ..
/// 4 * column + 3 of quad q belong to k = 4 * q .. 4 * q + 3.
struct StepPanel {
  alignas(64) uint8_t offset[stepQuads][4 * panelColumns];     ///< twice the value, plus 12
  alignas(64) uint8_t magnitudes[stepQuads][4 * panelColumns]; ///< twice the value without sign
  alignas(64) double scales[stepGroups][panelColumns];
  alignas(64) double powers[panelColumns];
  ExponentRange exponents; ///< exponents of all columns
};

StepRow decodeStepRow(StepKind kind, const Fp4MmaOperand &row);
/// Decodes `columns` <= panelColumns rows of `b` as columns.
void decodeStepPanel(StepKind kind, const Fp4MmaOperand &b, unsigned columns, StepPanel &panel);

/// Runs one step of the tensor core: d[j] becomes its sum with the products of a row and column j
/// of the panel, for j < columns. `a` and `b` are the operands from that row and from the panel's
/// first column on, for elements that need the definition. d has panelColumns elements.
void addStep(StepKind kind, const StepRow &row, const Fp4MmaOperand &a, const StepPanel &panel,
             const Fp4MmaOperand &b, unsigned columns, float *d);

} // namespace fp4::numerics
