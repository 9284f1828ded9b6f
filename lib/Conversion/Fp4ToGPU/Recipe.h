//===- Recipe.h - Block scales and encode factors of the recipes ----------===//
//
// A recipe is a set of decisions (docs/Numerics.md): how the tensor's amax becomes a scale and how
// it is guarded, in which order the block scale is computed, how the element factor is derived from
// the stored scale, and what NaN and infinity do. RecipeEmitter turns the decisions into
// operations.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// How a block's amax becomes its scale.
enum class BlockScale {
  AmaxTimesSixthOfS, ///< e4m3(a * (S * fp32(1/6)))
  SixthOfAmaxTimesS, ///< e4m3((a / 6) * S)
  ExponentFloor,     ///< exponent of a, minus 2
  ExponentCeil,      ///< exponent of a, minus 2, plus 1 unless a is a power of two
  ExponentEven,      ///< exponent of a rounded to one mantissa bit, minus 2
  SixthRoundedUp,    ///< e8m0 of a * fp32(1/6), rounded up
};

struct RecipeDecisions {
  BlockScale blockScale;
  bool tensorScale; ///< S = 2688 / amax with guards, and a factor that undoes it
  bool keepNaN;     ///< NaN elements make the block's scale NaN; otherwise they are skipped
};

RecipeDecisions decisions(Recipe recipe);

/// A block's scale as stored (i8), and what its elements are multiplied by (f32).
struct ScaledBlock {
  mlir::Value scale, factor;
};

class RecipeEmitter {
public:
  RecipeEmitter(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder, Recipe recipe)
      : s(scalars), b(builder), recipe(decisions(recipe)) {}

  bool keepsNaN() const { return recipe.keepNaN; }
  /// What is common to all blocks; `amax` is the tensor's, null without a tensor scale.
  void prepare(mlir::Value amax);
  /// Scale and factor of a block with this amax.
  ScaledBlock block(mlir::Value blockAmax);

private:
  ScaledBlock floatScale(mlir::Value blockAmax);
  ScaledBlock exponentScale(mlir::Value blockAmax);
  mlir::Value exponentByte(mlir::Value blockAmax, mlir::Value &isBad);
  mlir::Value roundedUpByte(mlir::Value x);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  RecipeDecisions recipe;
  mlir::Value encodeScale, decodeScale, sixthOfEncodeScale;
};

} // namespace fp4
