//===- PackedHalves.h - Prepacked weights as bf16 or f16 ------------------===//
//
// The layout of fp4/ISA/WeightLayout.h, in registers. Two words of eight codes each become eight
// pairs with seven shifts, rotations or permutations, a logical operation and a multiplication for
// each pair:
//
//   bf16   value * 2^-126; a nvfp4 scale in its packed form is scale * 2^119
//   f16    three bits further to the left: value * 2^-14 and scale * 2^7
//
// so that both are value * scale * 2^-7, as numerics::convertElement has it. Scales of mxfp4 are
// powers of two, the exponent of a bf16; a code is multiplied by 2^122 and then by them, which is
// value * scale * 2^-4. For a scale up to 32, 2^122 times the scale is a bf16 too, and one
// multiplication is enough; small scales are those of them that one subtraction tells
// (hw::powersThatAreNotSmall). Either way nothing is rounded: a product is a code times a power of
// two, at least 2^-132. As f16, a code of mxfp4 is multiplied by 2^14 and then by the f16 of its
// scale times 2^7 (numerics::convertElement).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/WeightLayout.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

class PackedHalves {
public:
  /// `block` elements share a scale; elements are `element`, bf16 or f16.
  /// `upperBits` is kUpperBits, where it is needed.
  PackedHalves(mlir::ImplicitLocOpBuilder &b, int64_t block, mlir::Type element,
               mlir::Value upperBits)
      : b(b), isE4M3(block == 16), element(element), upperBits(upperBits) {}

  /// The upper exponent bits of two scales of nvfp4 as bf16.
  static constexpr uint32_t kUpperBits = 0x70007000;
  static bool needsUpperBits(int64_t block, mlir::Type element) {
    return block == 16 && element.isBF16();
  }

  /// Words of scales that a thread has of a tile: of its two rows one each, or together.
  static constexpr int64_t numScaleWords(int64_t block) { return block == 16 ? 2 : 1; }
  /// Knowledge of the scales of mxfp4. Small ones are 2^-123 to 16.
  enum class Powers { Any, Small };
  /// The registers (i32) of the four steps of a tile, four each, of its words of codes and of
  /// scales.
  llvm::SmallVector<mlir::Value> convertTile(mlir::ValueRange codes, mlir::ValueRange scales,
                                             Powers powers = Powers::Any);

private:
  /// Factors of a row for each step, in both lanes.
  using Factors = llvm::SmallVector<mlir::Value>;
  Factors factorsE4M3(mlir::Value scales);
  llvm::SmallVector<Factors> factorsE8M0(mlir::Value scales, Powers powers);
  mlir::Value powersOf(mlir::Value bits, Powers powers);
  mlir::Value powersAsHalves(mlir::Value powers);
  mlir::Value inBothLanes(mlir::Value pair, int64_t lane);
  mlir::Value rotate(mlir::Value word, unsigned amount);
  mlir::Value masked(mlir::Value word, uint32_t mask);
  mlir::Value moved(mlir::Value word, const hw::WeightMove &move);
  llvm::SmallVector<mlir::Value> movePairs(mlir::ValueRange words);
  mlir::Value takePair(mlir::Value moved);
  mlir::Value asPair(mlir::Value word);
  mlir::Value splat(double value);

  mlir::ImplicitLocOpBuilder &b;
  bool isE4M3;
  mlir::Type element;
  mlir::Value upperBits;
};

} // namespace fp4
