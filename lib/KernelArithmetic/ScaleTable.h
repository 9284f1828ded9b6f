//===- ScaleTable.h - Element factors by scale byte, in shared memory -----===//
//
// The factor of a block may follow from its scale byte and from the tensor alone. There are 128
// scale bytes then, and a CTA with many blocks computes the factor of each byte once, all threads
// together. An entry has what QuickBlock.h wants to know of a factor e:
//
//   factor   e * kAlign, negated where an element may lie halfway between codes
//   limit    a block is quick if its amax is below: nothing saturates, and e is in the range where
//            products are aligned exactly; 0 where e is outside
//
// Looking an entry up takes the place of decoding the byte, the refinement of a reciprocal and five
// tests. With a negative amax of the tensor the bytes have a sign bit, which is left out, and the
// factors of those without it are negative: each limit is 0.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RecipeEmitter.h"

namespace fp4 {

class ScaleTable {
public:
  static constexpr int64_t kEntries = 128, kTensorValues = 4;
  static constexpr int64_t kWords = 2 * kEntries + kTensorValues;

  /// Returns true when the factor of blocks of this recipe follows from the scale byte.
  static bool applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program);

  /// `shared` is a pointer to kWords words.
  ScaleTable(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder, mlir::Value shared)
      : s(scalars), b(builder), shared(shared) {}

  /// Stores entry number `byte` (i32) of a recipe whose tensor stage was emitted, for elements that
  /// were of type `stored`. With stochastic rounding there are no halfway values.
  void fill(RecipeEmitter &recipe, mlir::Value byte, mlir::Type stored, bool stochastic);

  struct Entry {
    mlir::Value factor, limit; ///< f32
  };
  /// Returns the entry of a scale byte; after a barrier.
  Entry entry(mlir::Value byte);
  /// Gives `recipe` what its scale bytes need of the tensor, in place of its tensor stage; after a
  /// barrier.
  void loadTensorValues(RecipeEmitter &recipe);

private:
  mlir::Value tensorValue(size_t i);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value shared;
};

} // namespace fp4
