//===- HalfOperands.h - Scaled fp4 elements as f16 or bf16 ----------------===//
//
// Operands of a tensor core of 16-bit floats: the elements that numerics::convertElement defines,
// two in a word. A code becomes a float whose exponent is small by a constant, since its exponent
// and fraction bits move into their place as they are:
//
//   f16    s.....eem......... -> value * 2^-14; the scale times 2^7 gives value * scale * 2^-7
//   bf16   s......ee m...     -> value * 2^-126; 2^122 and then the scale give
//                                value * scale * 2^-4
//
// Codes of 6 bits become bf16 in the same way, with three bits of exponent or of fraction: 2^126 or
// 2^124 and then the scale give value * scale.
//
// With scales of f8E4M3FN an element can be bf16 too, and the scale times 2^119 gives the same
// value * scale * 2^-7. With scales of f8E8M0FNU the conversion takes two multiplications, because
// bf16 has no power of two for both. If both operands are converted, a table gives 24 + value, and
// one fused multiply-add makes value * scale * 2^-4 of that.
//
// A target that converts E2M1 gives the f16 of a value at once: times the scale, and 2^-7 or 2^-4,
// in f16, or in f32, which is then rounded to bf16. All of it is exact. Conversions
// before products are left out where products of f16 may be f32.
//
// As f16 beside scales of f8E8M0FNU, a value is multiplied by the f16 of its scale times 2^7.
//
// Codes of 8 bits with scales of f8E8M0FNU become f16, then f32, are multiplied by the scale and
// rounded to bf16. Codes of f8E4M3FN without scales are moved as those of 4 bits: the f16 times 2^8
// and the bf16 times 2^120 are their values, and NaN is 480.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"

#include <array>

namespace fp4 {

class HalfOperands {
public:
  /// For scales of f8E4M3FN or f8E8M0FNU. Elements are `element`, with f8E8M0FNU f16 only for
  /// convertInOrder() of codes of 4 bits; null for the type that numerics::convertElement chooses.
  /// Codes are f4E2M1FN, or with scales of f8E8M0FNU `data`: f6E2M3FN, f6E3M2FN, or for convert()
  /// f8E4M3FN or f8E5M2. Without `scaleType` they are f8E4M3FN without scales.
  HalfOperands(mlir::ImplicitLocOpBuilder &b, const hw::TargetModel &target, mlir::Type scaleType,
               mlir::Type element = {}, mlir::Type data = {});

  /// Makes what convert() looks up, from the index of the thread in its CTA (i32), where all
  /// threads of a warp are.
  void keepTables(mlir::Value threadIndex);
  /// Moves the bits of E2M1 by multiplications, beside scales of f8E4M3FN: for kernels that the
  /// integer pipe limits. Call it before keepTables().
  void saveIntegers() { multiplies = true; }
  /// Elements that share a scale, and the type of an element: f16 or bf16.
  int64_t blockSize() const { return isE4M3 ? 16 : 32; }
  mlir::Type elementType() const { return element; }

  /// The factors of the first `count` of the four scales in a word (i32), each in both lanes of
  /// vector<2xelement>; f32 of codes of 8 bits, and of bf16 where the target converts E2M1, or f16
  /// of bf16 with scales of f8E4M3FN where products of f16 may be f32.
  llvm::SmallVector<mlir::Value> factors(mlir::Value scales, int64_t count = 4);
  /// The eight codes of a word, or of two of 6 or 8 bits, times `factor` and
  /// 2^numerics::convertedExponent: two vector<2xelement> of even codes and two of odd ones, or
  /// pairs of neighbours where the target converts E2M1. All words have the same order, which
  /// therefore does not matter to a sum: order(). Without scales, `factor` is null.
  llvm::SmallVector<mlir::Value> convert(mlir::ValueRange codes, mlir::Value factor);
  /// The number of each of the eight elements that convert() returns.
  std::array<int64_t, 8> order() const;
  /// True if convert() makes a pair of the same nibbles of two neighbouring bytes, so that a word
  /// whose bytes come from two rows in turn gives pairs of an element of each row.
  bool pairsBytes() const { return !hasConversion && !data && !isUnscaled && order()[1] == 2; }
  /// The factors of such words: pairs of a scale of `first` and of `second`, words (i32) with
  /// `count` scales each and zeros behind them.
  llvm::SmallVector<mlir::Value> factorsOfRows(mlir::Value first, mlir::Value second,
                                               int64_t count);
  /// Converts to four vector<2xelement> of neighbours, in ascending order: the first two pairs
  /// times `low`, the others times `high`.
  llvm::SmallVector<mlir::Value> convertInOrder(mlir::ValueRange codes, mlir::Value low,
                                                mlir::Value high);

private:
  llvm::SmallVector<mlir::Value> factorsE4M3(mlir::Value scales, int64_t count);
  llvm::SmallVector<mlir::Value> factorsE8M0(mlir::Value scales, int64_t count);
  double powerE4M3() const;
  mlir::Value pairE4M3(mlir::Value scales, int64_t first);
  mlir::Value pairE8M0(mlir::Value bytes);
  mlir::Value halfPowerOf(mlir::Value scales, int64_t number);
  mlir::Value inBothLanes(mlir::Value half);
  mlir::Value lookUp(mlir::Value codes);
  llvm::SmallVector<mlir::Value> convertE8M0(mlir::Value codes, mlir::Value factor);
  mlir::Value convertSix(mlir::ValueRange codes, uint32_t selector, mlir::Value factor);
  llvm::SmallVector<mlir::Value> convertBytes(mlir::ValueRange codes, mlir::Value factor);
  llvm::SmallVector<mlir::Value> convertUnscaled(mlir::ValueRange codes);
  llvm::SmallVector<mlir::Value> scale(mlir::ValueRange words, mlir::Value factor);
  llvm::SmallVector<mlir::Value> widenToF16(mlir::Value codes);
  llvm::SmallVector<mlir::Value> widenToBF16(mlir::Value codes);
  mlir::Value shifted(mlir::Value word, int64_t left);
  mlir::Value align(mlir::Value word, int64_t magnitudesLeft, uint32_t magnitudes,
                    int64_t signLeft, uint32_t signs);
  mlir::Value asPair(mlir::Value word);
  mlir::Value splat(double value);
  mlir::Value scaleInF32(mlir::Value pair, mlir::Value factor);

  mlir::ImplicitLocOpBuilder &b;
  Scalars s;
  bool isUnscaled, multiplies = false;
  bool isE4M3, hasConversion = false; ///< scales; the target converts codes of 4 bits
  bool mixesFloats = false;           ///< f16 times f16 is f32
  bool isSix = false;                 ///< codes of 6 bits, a byte each
  mlir::Type element, data;
  mlir::Value positives, negatives, upperByte; ///< the lower halves of tables, and 0x41
  mlir::Value two, sixteen; ///< numbers that ptxas does not know, so that it shifts by products
};

} // namespace fp4
