// Quantization of the elements of one scale by a recipe's program, which all quantizers share.
#pragma once

#include "RecipeEvaluator.h"
#include "fp4/Numerics/StochasticRounding.h"
#include <array>
#include <span>

namespace fp4::numerics {

/// Elements that one scale serves at most: 16 x 16.
inline constexpr size_t maxTile = 256;

/// The way in which scaled elements become codes. Without bytes they round to nearest, ties to
/// even.
struct ElementRounding {
  std::span<const uint8_t> bytes = {}; ///< one per element
  StochasticArithmetic arithmetic = StochasticArithmetic::Truncate;
};

class BlockQuantizer {
public:
  explicit BlockQuantizer(const RecipeProgram &program) : evaluator(program) {
    evaluator.setTensor(0.f); // constants
  }
  void setTensor(float tensorAmax) { evaluator.setTensor(tensorAmax); }

  /// Quantizes `values`, rows of `width` elements (one row if 0) that share a scale, to one code
  /// per byte, and returns the scale byte.
  uint8_t quantize(std::span<const float> values, std::span<uint8_t> codes, size_t width = 0,
                   const ElementRounding &rounding = {});

private:
  float encode(std::span<const float> values, std::span<uint8_t> codes, size_t width,
               const ElementRounding &rounding);

  RecipeEvaluator evaluator;
};

} // namespace fp4::numerics
