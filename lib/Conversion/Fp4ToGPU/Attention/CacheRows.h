//===- CacheRows.h - Keys or values in the registers of a warp ------------===//
//
// Several lanes share a row of keys, or of values, of one head: each has a chunk of its elements,
// which it loads at once and converts to pairs of 16-bit floats. Codes of 4 and 8 bits are
// converted by HalfOperands.h. Elements of a pair lie in the order of that conversion, which does
// not matter to who takes the same order of the other operand, or of the result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HalfOperands.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Scalars.h"

#include <optional>

namespace fp4 {

/// Words (i32) of `bytes` bytes from `pointer` on, a multiple of these, in the widest accesses.
llvm::SmallVector<mlir::Value> loadWords(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                                         int64_t bytes);

class CacheRows {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Rows of `elements`, which are the last dimension of `codes`, and `scales` or null. `element`
  /// is the type of converted elements, but for codes of NVFP4, which become f16: the type that
  /// takes the fewest instructions. `lanes` share a row.
  CacheRows(KernelBuilder &kernel, const hw::TargetModel &target, mlir::Value codes,
            mlir::Value scales, mlir::Type element, int64_t lanes);

  /// Elements of a chunk, a multiple of 8, and words that load() returns for one.
  int64_t chunk() const { return elements / lanes; }
  int64_t words() const { return chunk() * bits / 32 + int64_t(bool(scales)); }
  /// The power of two by which converted elements are too large.
  int exponent() const;
  mlir::Type elementType() const { return element; }

  /// Makes what conversions look up, where all threads of a warp are.
  void begin(Int32 thread);
  /// The words of the chunk `lane` of the row that is `behind` rows behind `row`, codes first.
  Values load(Int32 row, Int32 lane, int64_t behind);
  /// The pairs (i32) of a loaded chunk.
  Values convert(llvm::ArrayRef<mlir::Value> words);
  /// The number in its chunk of element `half` of pair `pair`.
  int64_t elementOf(int64_t pair, int64_t half) const;
  /// The words (i32) of an element of each of two loaded chunks, and the number of the element of
  /// word `word` in its chunk.
  Values convertRows(llvm::ArrayRef<mlir::Value> first, llvm::ArrayRef<mlir::Value> second);
  int64_t elementOfRows(int64_t word) const;

private:
  bool pairsBytes() const { return halves && halves->pairsBytes(); }
  int64_t scalesOfChunk() const { return std::max<int64_t>(1, chunk() / block); }
  Values ofUnits(llvm::ArrayRef<mlir::Value> factors) const;

  mlir::ImplicitLocOpBuilder &b;
  Scalars s;
  mlir::Type element;
  mlir::Value codes, scales; ///< pointers; null without scales
  int64_t lanes, elements, bits, block = 0;
  std::optional<HalfOperands> halves; ///< none where elements are as they are
};

} // namespace fp4
