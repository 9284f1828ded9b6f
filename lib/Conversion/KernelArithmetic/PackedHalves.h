//===- PackedHalves.h - Prepacked weights as bf16 or f16 ------------------===//
//
// What fp4/ISA/WeightLayout.h describes, in registers. A word of eight codes becomes four pairs with
// four shifts or rotations and four logical operations, and a multiplication for each pair:
//
//   bf16   value * 2^-126; a nvfp4 scale in its packed form is scale * 2^119
//   f16    three bits further to the left: value * 2^-14 and scale * 2^7
//
// so that both are value * scale * 2^-7, as numerics::convertElement has it. Scales of mxfp4 are
// powers of two, the exponent of a bf16; a code is multiplied by 2^126 and then by them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

class PackedHalves {
public:
  /// `block` elements share a scale; elements are `element`, bf16, or f16 where block is 16.
  PackedHalves(mlir::ImplicitLocOpBuilder &b, int64_t block, mlir::Type element)
      : b(b), isE4M3(block == 16), element(element) {}

  /// Words of scales that a thread has of a tile: of its two rows one each, or together.
  static constexpr int64_t numScaleWords(int64_t block) { return block == 16 ? 2 : 1; }
  /// The registers (i32) of the four steps of a tile, four each, of its words of codes and of
  /// scales.
  llvm::SmallVector<mlir::Value> convertTile(mlir::ValueRange codes, mlir::ValueRange scales);

private:
  /// Factors of a row for each step, in both lanes.
  using Factors = llvm::SmallVector<mlir::Value>;
  Factors factorsE4M3(mlir::Value scales);
  llvm::SmallVector<Factors> factorsE8M0(mlir::Value scales);
  mlir::Value inBothLanes(mlir::Value pair, int64_t lane);
  mlir::Value rotate(mlir::Value word, unsigned amount);
  mlir::Value masked(mlir::Value word, uint32_t mask);
  mlir::Value takePair(mlir::Value word, unsigned j);
  mlir::Value asPair(mlir::Value word);
  mlir::Value splat(double value);

  mlir::ImplicitLocOpBuilder &b;
  bool isE4M3;
  mlir::Type element;
};

} // namespace fp4
