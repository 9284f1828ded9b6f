//===- Epilogue.h - Steps of an epilogue, by element ----------------------===//
//
// One description of the steps between the fp32 sum of a GEMM and the element that is stored. The
// model of the tensor core evaluates it, the bound propagates errors through it, and the kernel
// walks it to emit code, so that the three cannot disagree. docs/guides/add-an-epilogue-op.md
// says how to add a step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Support/Error.h"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::numerics {

/// Each step takes and gives fp32; Round gives an element of the result.
enum class EpilogueOp : uint8_t {
  Scale, ///< multiplication by alpha
  Relu,  ///< max(x, +0); a NaN stays one
  Round  ///< rounding to the result's type, to nearest even
};

/// "relu": as attributes and manifests say it. Scale and Round have no name there: they follow from
/// the operand alpha and from the type of the result.
std::string_view stringify(EpilogueOp op);
/// The error lists the names that exist.
Expected<EpilogueOp> parseEpilogueOp(std::string_view name);
/// "relu" and "relu,relu", and back; the empty text is no step.
std::string spellEpilogue(std::span<const EpilogueOp> steps);
Expected<std::vector<EpilogueOp>> parseEpilogue(std::string_view text);

/// All steps of a matmul: Scale if it has an alpha, the named ones in their order, Round.
std::vector<EpilogueOp> epilogueSteps(bool hasAlpha, std::span<const EpilogueOp> named);

/// A value in fp64 and how far the kernel's fp32 value may lie from it.
struct BoundedValue {
  double value = 0, error = 0;
};

class EpilogueProgram {
public:
  /// The steps of epilogueSteps, with the type of the result. An element has its own alpha, which
  /// is not looked at where there is none.
  EpilogueProgram(bool hasAlpha, std::span<const EpilogueOp> named, FloatType output);

  std::span<const EpilogueOp> steps() const { return ops; }

  /// The element of a sum, bit by bit as kernels compute it; exactly representable in the result's
  /// type.
  float apply(float sum, float alpha) const;
  /// Applies the steps in fp64, with the error of every step.
  BoundedValue bound(BoundedValue sum, float alpha) const;
  /// Returns true when a value within these bounds may have become infinite.
  bool mayOverflow(const BoundedValue &element, float alpha) const;

private:
  std::vector<EpilogueOp> ops;
  FloatType output;
};

} // namespace fp4::numerics
