//===- QuickBlock.h - Blocks in which nothing is exceptional --------------===//
//
// Without an instruction for E2M1, most of the cost of a block of 16-bit elements is spent on rare
// cases: quotients that overflow, elements that saturate, values halfway between two codes. One
// comparison for each case tells whether a block has any, and the few blocks that do are repaired.
// The other blocks need one multiplication and half a conversion per element. With e the factor of
// the block, a its amax (NaN if an element is), and x an element:
//
//   1. Quotients are an approximate reciprocal and its refinement, exact where the operands lie in
//      a range (Scalars::QuickDivisions), which is tested.
//   2. a * e < 7: as |x * e| <= a * e, rounding being monotone, no element saturates or is NaN.
//   3. e >= 2^-112: e * 2^-14 is exact and so has x the same product, aligned with f16, but for
//      those below 2^-112, whose code is 0.
//      A block that fails one of these is quantized as the recipe spells it.
//   4. Cut to f16, x * e has its code above the bit that says "half or more" (E2M1Steps.h), and is
//      rounded right unless it equals 0.25, 1.25, 2.5 or 5, whose even code is below. The two steps
//      that move these are done where such an element may be: t = 2^k or 1.25 * 2^k is a rounded
//      x * e only if x lies within 2^-24 of t / e, relatively. A block has none if neither 1 / e
//      nor 1.25 / e is, within kTieMargin last places, a number of as few bits as elements have.
//      unittests/Compiler/QuickBlockTest.cpp tries every significand of e.
//   5. Elements that a Hadamard transform has still to multiply by a power of two (BlockElements)
//      have the same code where e has that factor instead: it commutes with the rounding to bf16 of
//      what neither overflows (2 and 3 keep amax below 2^115) nor is subnormal before or after, and
//      what is subnormal has code 0 where e <= 2^120, and 2^116 where rounding is stochastic.
//
// Stochastic rounding has no ties, and it saturates element by element: it needs 1 and 3, and 2
// only for 5.
//
// Blocks that a thread has are quantized together: one branch for all of them leaves more to do
// between two branches, which hides latencies. If the tensor has one amax, a CTA looks factors up
// (ScaleTable.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"
#include "ScaleTable.h"

namespace fp4 {

class QuickBlock {
public:
  /// Returns true when this class serves blocks of `recipe` with elements that were of type
  /// `stored`.
  static bool applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program,
                      mlir::Type stored, bool stochastic, const hw::TargetModel &target);

  /// The operand of the element stage, where that is a product, that is no element.
  static numerics::Value factorOf(const numerics::RecipeProgram &program);
  /// Returns true when an element of a block with the factor 1 / `inverse` (4 above) may be halfway
  /// between codes.
  static mlir::Value mayTie(Scalars &s, mlir::ImplicitLocOpBuilder &b, mlir::Value inverse,
                            mlir::Type stored);

  /// Aligned values where halfway ones were moved if they `mayTie`.
  static llvm::SmallVector<mlir::Value> moveTies(Scalars &s, mlir::ImplicitLocOpBuilder &b,
                                                 llvm::ArrayRef<mlir::Value> aligned,
                                                 mlir::Value mayTie);

  /// `random` words (BlockQuantizer::quantize), the same number for each block, round
  /// stochastically. `table` may be null.
  QuickBlock(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder, RecipeEmitter &recipe,
             llvm::ArrayRef<mlir::Value> random, ScaleTable *table)
      : s(scalars), b(builder), recipe(recipe), random(random), table(table) {}

  /// The `count` blocks of `quick` where `likely` (i1) holds, and otherwise those of `asSpelled`.
  using Blocks = llvm::SmallVector<BlockQuantizer::Block>;
  static Blocks choose(mlir::ImplicitLocOpBuilder &b, mlir::Value likely, size_t count,
                       size_t codeWords, llvm::function_ref<Blocks()> quick,
                       llvm::function_ref<Blocks()> asSpelled);

  /// Emits the blocks, which have as many elements each; where one is exceptional, all by
  /// `asSpelled`.
  Blocks quantize(llvm::ArrayRef<BlockElements> blocks, llvm::function_ref<Blocks()> asSpelled);

private:
  /// Values of a block before its codes.
  struct Scale {
    mlir::Value byte; ///< i8
    mlir::Value
        factor; ///< aligned, of the block's elements; from a table negative where one may tie
    mlir::Value holds; ///< true when byte and factor, and the quick codes, are right
  };
  Scale emitScale(const BlockElements &elements);
  Scale lookUpScale(const BlockElements &elements, mlir::Value amax);
  Scale computeScale(const BlockElements &elements, mlir::Value amax);
  Blocks emitCodes(llvm::ArrayRef<BlockElements> blocks, llvm::ArrayRef<Scale> scales);
  mlir::Value anyMayTie(llvm::ArrayRef<BlockElements> blocks, llvm::ArrayRef<Scale> scales);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  RecipeEmitter &recipe;
  llvm::ArrayRef<mlir::Value> random;
  ScaleTable *table;
};

} // namespace fp4
