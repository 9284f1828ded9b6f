//===- PackedBytes.h - Prepacked weights as e4m3 --------------------------===//
//
// Tiles for activations of e4m3 (fp4/ISA/WeightLayout.h), in registers. The e4m3 of the eight
// magnitudes are a table of two words, whose bytes but for that of zero grow by 8 with the exponent
// of the block: two multiplications and additions for the eight codes of a word. prmt takes the
// four bytes that four nibbles select, and one logical operation adds their signs. Exponents and
// the upper four nibbles come out of their words by shifts, or by dot products of bytes, which the
// pipe of multiplications executes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

class PackedBytes {
public:
  /// The way by which fields come out of their words. Mixed: the upper nibbles of all instructions
  /// of a tile but the first by shifts, other fields by dot products.
  enum class Fields : uint8_t { Shifted, Mixed, Dotted };
  explicit PackedBytes(mlir::ImplicitLocOpBuilder &b, Fields fields = Fields::Shifted)
      : b(b), fields(fields) {}

  /// Words of codes that a thread has of a tile, by 32 columns and of these by row, and words of
  /// its two rows.
  static constexpr int64_t numCodeWords = 8, numRowWords = 2;
  /// The registers (i32) of the four instructions of a tile, four each.
  llvm::SmallVector<mlir::Value> convertTile(mlir::ValueRange codes, mlir::ValueRange rows);
  /// Converts `count` instructions from number `first` on.
  llvm::SmallVector<mlir::Value> convertSteps(mlir::ValueRange codes, mlir::ValueRange rows,
                                              int64_t first, int64_t count);
  /// The power of two (f32) of a row in its tile.
  mlir::Value powerOf(mlir::Value row);

private:
  std::pair<mlir::Value, mlir::Value> convertWord(mlir::Value codes, mlir::Value row, int64_t step);
  mlir::Value exponentOf(mlir::Value row, int64_t step);
  mlir::Value upperHalfOf(mlir::Value word, int64_t step);
  mlir::Value constant(uint32_t value);
  mlir::Value call(llvm::StringRef intrinsic, mlir::ValueRange arguments);

  mlir::ImplicitLocOpBuilder &b;
  Fields fields;
};

} // namespace fp4
