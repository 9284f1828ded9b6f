//===- WeightGemms.h - Activations without scales, fp4 weights ---------===//
//
// A GEMM of weights of 4 bits and of activations that have no scales (W4A16, W4A8) has a kernel on
// a target if a row of the table says so. Each row names a fact of the target, and what the kernel
// makes of the operands. All of it is exact, so that a pair has the same factors everywhere.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include <span>

namespace fp4::hw {

enum class Activation : uint8_t { Half, E4M3 }; ///< bf16 and f16; f8E4M3FN
enum class Weights : uint8_t {
  Scaled,
  Prepacked
}; ///< codes with tiled scales; fp4.prepack's tiles

/// Ways in which the tensor core gets the operands of a pair.
enum class WeightRoute : uint8_t {
  Registers,  ///< weights become 16-bit floats or e4m3 in registers: operand A of wgmma or mma.sync
  UnitScales, ///< operands as they are, to kind mxf8f6f4, with unit scales beside the activations
  Lanes,      ///< weights become 16-bit floats in tensor memory: operand A of tcgen05.mma kind::f16
};

struct WeightGemm {
  Activation activation;
  Weights weights;
  bool TargetModel::*needs;
  WeightRoute route;
};

/// The rows of the table.
std::span<const WeightGemm> weightGemms();

/// Returns the way in which `target` multiplies such a pair. The error names the targets that do.
Expected<WeightRoute> requireWeightGemm(const TargetModel &target, Activation activation,
                                        Weights weights);

} // namespace fp4::hw
