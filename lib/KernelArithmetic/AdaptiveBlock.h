//===- AdaptiveBlock.h - Blocks with candidate scales, unexceptional ------===//
//
// Four-over-six quantizes a block with two scales and keeps the one with less error. As the recipe
// spells it, an element costs a conversion, the decoding of its code and a quotient for each. An
// unexceptional block needs less work. With a_t the amax of the tensor, f a scale, c the value of a
// code and D the range of the recipe:
//
//   1. Conversions are those of QuickBlock.h, under its conditions.
//   2. The value of a code is the f16 that it is made of, rounded: two integer operations round two
//      elements, and codes are packed once, those of the better scale.
//   3. The recipe's fp32(fp32(fp32(c * f) * a_t) / D) is fp32(c * f * a_t / D) where a_t has at
//      most 18 significant bits, as then c * f * a_t (2 + 4 + 18) is exact. The kernel computes it
//      as fma(c, high, c * low), with high + low = f * a_t / D to 47 bits. The result rounds right:
//      D has an odd factor of 3 or 21, so c * f * a_t / D is no number of 25 bits that it does not
//      equal in 24, and lies at least 2^-30 of itself from the others. If the odd factor is 3,
//      c * high rounds right too. unittests/Compiler/QuickBlockTest.cpp tries all products.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"

namespace fp4 {

class AdaptiveBlock {
public:
  /// Returns true when this class serves blocks of `recipe` with elements that were of type
  /// `stored`.
  static bool applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program,
                      mlir::Type stored, const hw::TargetModel &target);

  AdaptiveBlock(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder,
                const numerics::Recipe &description, RecipeEmitter &recipe, mlir::Value tensorAmax)
      : s(scalars), b(builder), description(description), recipe(recipe), tensorAmax(tensorAmax) {}

  /// Emits the block, where it is exceptional by `asSpelled`.
  BlockQuantizer::Block quantize(const BlockElements &elements,
                                 llvm::function_ref<BlockQuantizer::Block()> asSpelled);

private:
  struct Scale {
    mlir::Value byte, factor; ///< i8, f32
    mlir::Value high, low;    ///< f * a_t / D, times 2^14; low is null where it is not needed
  };
  struct Candidate {
    llvm::SmallVector<mlir::Value> halves; ///< f16x2 in i32: codes, in elements' order of packed()
    mlir::Value scale, error;
  };
  Scale emitScale(float stretch, mlir::Value amax, Scalars::QuickDivisions &divisions);
  mlir::Value emitConditions(mlir::Value holds, mlir::Value amax, llvm::ArrayRef<Scale> scales);
  mlir::Value errorOf(llvm::ArrayRef<mlir::Value> elements, llvm::ArrayRef<mlir::Value> halves,
                      const Scale &scale);
  BlockQuantizer::Block better(const Candidate &first, const Candidate &second);
  BlockQuantizer::Block emitQuick(const BlockElements &elements, llvm::ArrayRef<Scale> scales);
  float range() const { return 6.f * description.e4m3Max; } ///< D

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  const numerics::Recipe &description;
  RecipeEmitter &recipe;
  mlir::Value tensorAmax;
};

} // namespace fp4
