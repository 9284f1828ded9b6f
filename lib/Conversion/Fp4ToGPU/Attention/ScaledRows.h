//===- ScaledRows.h - Rows of codes whose blocks mma.sync scales ----------===//
//
// Rows of codes of one head, of tokens or of elements of values, go to mma.sync as they are
// (fp4/ISA/WarpOperands.h): an instruction takes 32 bytes of a row, of which the lane of two words
// has eight. Scales lie in tiles of 128 rows (fp4/ISA/ScaleLayout.h), where four of a row are a
// word: those of one instruction of NVFP4, or of four of MXFP8. Each head of a sequence begins a
// tile of rows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"

namespace fp4 {

class ScaledRows {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Rows of `codes`, which have its last dimension. A head of a sequence has `rows` of them.
  ScaledRows(KernelBuilder &kernel, mlir::Value codes, mlir::Value scales, int64_t rows);

  mlir::Type elementType() const { return element; }
  /// Returns true for NVFP4, and false for MXFP8.
  bool isPacked() const { return mlir::isa<mlir::Float4E2M1FNType>(element); }
  /// Instructions of a row, and words that load() and loadScales() return.
  int64_t steps() const { return rowBytes / kStepBytes; }
  int64_t words() const { return 2 * steps(); }
  int64_t scaleWords() const { return tiles; }

  /// The words of a lane of row `row` of all tokens and heads: two for each instruction.
  Values load(Int32 row, Int32 lane);
  /// The words of the scales of a row of head `matrix` of all heads of sequences.
  Values loadScales(Int32 matrix, Int32 row);
  /// The two words of a lane for instruction `step` of the row that is `behind` rows behind `row`.
  /// Words behind the end of a row are its last one.
  Values loadStep(Int32 row, int64_t behind, Int32 lane, Int32 step);
  /// The scales of instruction `step` of a row, from the first byte of a word on.
  Value loadScalesOfStep(Int32 matrix, Int32 row, Int32 step);
  /// The word of the scales of an instruction, and the place of the first one in it.
  int64_t wordOf(int64_t step) const { return step / stepsOfWord(); }
  int64_t byteOf(int64_t step) const { return step % stepsOfWord(); }

private:
  static constexpr int64_t kStepBytes = 32;

  int64_t stepsOfWord() const { return isPacked() ? 1 : 4; }

  Value placeOfScales(Int32 matrix, Int32 row, Int32 column);

  mlir::ImplicitLocOpBuilder &b;
  Value codes, scales; ///< pointers
  mlir::Type element;
  int64_t rowBytes, tiles; ///< bytes of a row, and scale tiles beside each other
  int64_t rowTiles;        ///< scale tiles of a head below each other
};

} // namespace fp4
