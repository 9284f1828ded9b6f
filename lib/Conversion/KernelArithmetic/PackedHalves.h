//===- PackedHalves.h - Prepacked weights as bf16 or f16 ------------------===//
//
// What fp4/ISA/WeightLayout.h describes, in registers. A word of eight codes becomes four pairs with
// four rotations and five logical operations, and a multiplication for each pair:
//
//   bf16   value * 2^-126; a nvfp4 scale in its packed form is scale * 2^119
//   f16    three bits further to the left: value * 2^-14 and scale * 2^7
//
// so that both are value * scale * 2^-7, as numerics::convertElement has it. Scales of mxfp4 are powers
// of two; with 2^126 they are normal bf16 unless they are 2^2 or more, or 2^-127. A tile with such a
// scale multiplies twice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HalfOperands.h"

namespace fp4 {

class PackedHalves {
public:
  /// `block` elements share a scale; elements are `element`, bf16, or f16 where block is 16.
  PackedHalves(mlir::ImplicitLocOpBuilder &b, const hw::TargetModel &target, int64_t block,
               mlir::Type element);

  /// Words of scales that a thread has of a tile: of its two rows one each, or together.
  int64_t numScaleWords() const { return isE4M3 ? 2 : 1; }
  /// The registers (i32) of the four steps of a tile, four each, of its words of codes and of scales.
  llvm::SmallVector<mlir::Value> convertTile(mlir::ValueRange codes, mlir::ValueRange scales);

private:
  /// Factors of a row for each step, in both lanes.
  using Factors = llvm::SmallVector<mlir::Value>;
  llvm::SmallVector<mlir::Value> multiply(mlir::ValueRange codes, const Factors &upper,
                                          const Factors &lower, bool twice);
  Factors factorsE4M3(mlir::Value scales);
  llvm::SmallVector<mlir::Value> convertPowers(mlir::ValueRange codes, mlir::Value scales);
  mlir::Value increment(mlir::Value bytes);
  mlir::Value inBothLanes(mlir::Value pair, int64_t lane);
  mlir::Value rotate(mlir::Value word, unsigned amount);
  mlir::Value masked(mlir::Value word, uint32_t mask);
  mlir::Value takePair(mlir::Value word, unsigned j);
  mlir::Value asPair(mlir::Value word);

  mlir::ImplicitLocOpBuilder &b;
  HalfOperands scaled; ///< for any scales of mxfp4
  bool isE4M3;
  mlir::Type element;
};

} // namespace fp4
