//===- SideQuantizer.h - Quantization of one output -----------------------===//
//
// Takes a block of fp4.quantize from the words of its elements to codes and scale: the Hadamard
// transform with its round trip through bf16, random words, and the recipe. Kernels differ in how
// they load the words and where they store the results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"
#include "Hadamard/Butterfly.h"
#include "Philox.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include <optional>

namespace fp4 {

/// A block of the output; i32.
struct BlockPlace {
  mlir::Value row, block; ///< row, and number there; or null, and
  mlir::Value index;      ///< number, counted through all rows
};

class SideQuantizer {
public:
  /// The row-wise or the column-wise output of `op`. `amax` is a value (f32), `rng` a pointer; null
  /// where the operation has none, or where setTensorAmax follows for each row. `groupsPerRow`
  /// (i32): groups of 16 elements in a row of the output, rounded up; `firstGroup` (i64): those of
  /// the matrices before this one, none is 0. Emit it outside of loops.
  SideQuantizer(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder, QuantizeOp op,
                bool columnwise, mlir::Value amax, mlir::Value rng, mlir::Value groupsPerRow,
                mlir::Value firstGroup = {});

  /// Emits what depends on the amax of a row alone.
  void setTensorAmax(mlir::Value amax) { quantizer.setTensorAmax(amax); }

  /// Lanes that exchange elements: where more than one, neighbours must hold neighbouring blocks of
  /// a row, and whole warps be here.
  unsigned lanes() const { return butterfly ? butterfly->lanes(blockSize) : 1; }
  /// The recipe, for threads that share a scale.
  BlockQuantizer &recipe() { return quantizer; }

  /// Quantizes the packed elements `words` of a block of the output, or of rows of a square block
  /// that have a place each; the rest is BlockQuantizer's.
  BlockQuantizer::Block quantize(llvm::ArrayRef<mlir::Value> words,
                                 llvm::ArrayRef<BlockPlace> places, mlir::Value blockAmax = {},
                                 BlockQuantizer::FoldErrors fold = {});

  /// Quantizes one of two columns of 16-bit elements: the low (0) or high (1) halves of `words`.
  BlockQuantizer::Block quantizeColumn(llvm::ArrayRef<mlir::Value> words, unsigned half,
                                       const BlockPlace &place, mlir::Value blockAmax = {});

  /// Returns true when the following functions are for this output: factors come from a table, and
  /// blocks are quantized together.
  bool isQuick() const;
  /// Emits entry `byte` (i32) of the table of a tensor with this amax.
  void fillTable(ScaleTable &table, mlir::Value amax, mlir::Value byte);
  /// Makes the two functions below use `table`; after a barrier.
  void useTable(ScaleTable &table) { quantizer.useTable(table); }
  /// Blocks of the output, the packed elements of each in `words`.
  llvm::SmallVector<BlockQuantizer::Block>
  quantizeTogether(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> words,
                   llvm::ArrayRef<BlockPlace> places, ScaleTable &table);
  /// The two columns of 16-bit elements in `words`.
  llvm::SmallVector<BlockQuantizer::Block> quantizeColumns(llvm::ArrayRef<mlir::Value> words,
                                                           llvm::ArrayRef<BlockPlace> places,
                                                           ScaleTable &table);

private:
  llvm::SmallVector<BlockQuantizer::Block>
  quantizeTogether(llvm::MutableArrayRef<BlockElements> blocks, llvm::ArrayRef<BlockPlace> places,
                   ScaleTable &table);
  llvm::SmallVector<mlir::Value> randomWords(llvm::ArrayRef<BlockPlace> places);
  BlockQuantizer::Block quantize(BlockElements elements, llvm::ArrayRef<BlockPlace> places,
                                 mlir::Value blockAmax, BlockQuantizer::FoldErrors fold);

  Scalars &s;

  mlir::Type element;
  int64_t blockSize;
  BlockQuantizer quantizer;
  std::optional<Butterfly> butterfly;
  std::optional<GroupRandom> random;
};

/// The facts that the random words of an output of `op` need; see SideQuantizer.
RandomSide randomSideOf(QuantizeOp op, bool columnwise, mlir::Value groupsPerRow,
                        mlir::Value firstGroup = {});

/// Replaces the arithmetic of a block in a twin without arithmetic (Lowering.h): every bit of
/// `words` and of `amax` (f32 or null) takes part in the codes and the scale, in as few operations
/// as that takes.
BlockQuantizer::Block mixBits(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<mlir::Value> words,
                              mlir::Value amax, int64_t codeWords);

} // namespace fp4
