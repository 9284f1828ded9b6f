// Runs a RecipeProgram: the reference's way of reading the description that kernels are made from.
#pragma once

#include "fp4/Numerics/RecipeProgram.h"
#include <array>
#include <span>
#include <vector>

namespace fp4::numerics {

/// The most elements of a row that one scale block has.
inline constexpr size_t maxBlock = 32;

class RecipeEvaluator {
public:
  explicit RecipeEvaluator(const RecipeProgram &program);

  /// Runs the tensor stage.
  void setTensor(float tensorAmax);
  /// Runs the block stage (`stretch`: the candidate's) and returns the scale byte, or the bits of
  /// an f32 scale.
  uint32_t setBlock(float blockAmax, float stretch = 1.f);
  /// Runs the block stage of a dequantizer.
  void setScaleByte(uint32_t byte);
  /// Runs the element stage on one element.
  float element(float x);
  /// Runs the element stage of a format with more than 4 bits and returns the code.
  uint8_t elementCode(float x);
  /// Runs the element stage of a dequantizer on one code.
  float decode(uint8_t code);
  /// Runs the error stage; element(x) ran before.
  float error(float decoded);

  /// A value of the tensor or block stage; `otherwise` where there is none.
  float valueOr(Value value, float otherwise) const;
  const RecipeProgram &program() const { return recipe; }

private:
  void run(Stage stage);
  uint32_t evaluate(const Instruction &instruction) const;

  const RecipeProgram &recipe;
  std::array<std::pair<Value, Value>, stageCount> ranges;
  std::vector<uint32_t> values;
  std::array<uint32_t, 7> inputs{}; ///< values by Op
};

} // namespace fp4::numerics
