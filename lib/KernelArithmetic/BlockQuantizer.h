//===- BlockQuantizer.h - The elements of one block scale, in registers ---===//
//
// Quantizes the elements of one scale, which a kernel has brought into registers: the recipe's
// program of lib/Numerics (RecipeEmitter.h) together with the amax, the conversion to E2M1 and the
// choice among candidate scales.
//
//   BlockQuantizer quantizer(scalars, builder, recipe);
//   quantizer.setTensorAmax(amax);                       // emits what depends on the tensor alone
//   auto [codes, scale] = quantizer.quantize(elements);  // once or more per thread
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RecipeEmitter.h"
#include "ScaleTable.h"

#include <functional>

namespace fp4 {

/// The elements of one scale in registers, and how to emit their amax (f32).
struct BlockElements {
  llvm::SmallVector<mlir::Value> values; ///< f32
  size_t rows = 1;                       ///< rows of a square block, one after the other
  mlir::Type stored;                     ///< type of the elements before they were widened
  std::function<mlir::Value(bool keepNaN)> amax;
  /// A power of two by which the elements are still to be multiplied, rounded to `stored`. The
  /// rounding changes nothing unless the product overflows, or a factor or it is subnormal.
  float scale = 1;
  /// Emits the elements as they are, for blocks where the rounding makes a difference, or `values`
  /// hold for finite words only.
  std::function<BlockElements()> exact = {};

  /// Packed elements of type `type` (bf16, f16 or f32) in i32 words.
  static BlockElements packed(Scalars &s, llvm::ArrayRef<mlir::Value> words, mlir::Type type);
  /// One of two columns of bf16 or f16: the low (0) or high (1) halves of `words`.
  static BlockElements column(Scalars &s, llvm::ArrayRef<mlir::Value> words, mlir::Type type,
                              unsigned half);
  /// Packed elements, with values that hold where no element of `words` is infinite or NaN.
  static BlockElements finite(Scalars &s, llvm::ArrayRef<mlir::Value> words, mlir::Type type);
  static BlockElements finiteColumn(Scalars &s, llvm::ArrayRef<mlir::Value> words, mlir::Type type,
                                    unsigned half);
};

class BlockQuantizer {
public:
  BlockQuantizer(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder,
                 const numerics::Recipe &recipe);

  /// Emits the tensor stage; `amax` (f32) is null for recipes that have no tensor scale. Everything
  /// below must be emitted where this dominates.
  void setTensorAmax(mlir::Value amax);

  struct Block {
    llvm::SmallVector<mlir::Value> codes; ///< i32 of eight codes each, or four: first in low bits
    mlir::Value scale;                    ///< i8, or the bits of an f32 in an i32
  };

  /// Combines the errors (f32) of a candidate scale, one for each of the thread's rows, also over
  /// the threads that share the scale. All these threads must get the same result.
  using FoldErrors = llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)>;

  /// Quantizes `elements` (a multiple of 8). `blockAmax` (f32) replaces their own amax where
  /// threads share a scale; see amax and FoldErrors. With `random` words (i32, one for four
  /// elements; Philox.h), rounding is stochastic.
  Block quantize(const BlockElements &elements, mlir::Value blockAmax = {}, FoldErrors fold = {},
                 llvm::ArrayRef<mlir::Value> random = {});
  /// Quantizes packed elements of type `type` (bf16, f16 or f32) in i32 words.
  Block quantize(llvm::ArrayRef<mlir::Value> words, mlir::Type type, mlir::Value blockAmax = {},
                 FoldErrors fold = {}, llvm::ArrayRef<mlir::Value> random = {}) {
    return quantize(BlockElements::packed(s, words, type), blockAmax, fold, random);
  }

  /// Returns true when quantizeTogether serves blocks of elements of type `stored` of this recipe,
  /// whose tensor has one amax; useTable comes before it.
  bool isQuick(mlir::Type stored, bool stochastic) const;
  /// Quantizes blocks of a thread, which may share words, with factors from `table`. isQuick must
  /// be true. `random` has the words of all blocks, or none.
  llvm::SmallVector<Block> quantizeTogether(llvm::ArrayRef<BlockElements> blocks, ScaleTable &table,
                                            llvm::ArrayRef<mlir::Value> random);
  /// Emits entry `byte` (i32) of `table`, of a tensor with this amax.
  void fillTable(ScaleTable &table, mlir::Value tensorAmax, mlir::Value byte, mlir::Type stored,
                 bool stochastic);
  /// Loads the values of the tensor from `table`, after a barrier behind fillTable.
  void useTable(ScaleTable &table) { table.loadTensorValues(recipe); }

  /// The amax (f32) of packed elements, as the recipe treats NaN; what threads that share a scale
  /// exchange.
  mlir::Value amax(llvm::ArrayRef<mlir::Value> words, mlir::Type type);
  /// Returns true when a NaN among exchanged amaxes must win: they then combine by maximumOrNaN.
  bool keepsNaN() const;

  /// Combines two errors of a scale: their sum, or the largest (a NaN stays).
  mlir::Value combineErrors(mlir::Value a, mlir::Value b);

private:
  Block quantizeAdaptively(const BlockElements &elements);
  struct Candidate {
    Block block;
    mlir::Value error; ///< null where there is one candidate
  };
  Block quantizeAsSpelled(const BlockElements &elements, mlir::Value blockAmax, FoldErrors fold,
                          llvm::ArrayRef<mlir::Value> random);
  mlir::Value valueOf(mlir::Value element, numerics::Value value);
  mlir::Value encodeFour(llvm::ArrayRef<mlir::Value> elements);
  Block encodeWide(const BlockElements &elements);
  Candidate encode(const BlockElements &elements, float stretch, FoldErrors fold,
                   llvm::ArrayRef<mlir::Value> random);
  mlir::Value errorOf(llvm::ArrayRef<mlir::Value> elements, llvm::ArrayRef<mlir::Value> codes);
  void keepSmaller(const Candidate &candidate, Candidate &best);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  numerics::Recipe description;
  mlir::Value tensorAmax;
  Scalars::QuickDivisions *errorDivisions = nullptr; ///< divisions of quantizeAdaptively
  RecipeEmitter recipe;
};

} // namespace fp4
