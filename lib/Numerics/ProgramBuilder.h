// Writes RecipePrograms. Each call adds an instruction, in the stage of its latest operand, unless
// the same one is there already. Values that depend on the tensor only are thereby hoisted.
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/RecipeProgram.h"

namespace fp4::numerics {

class ProgramBuilder {
public:
  Value input(Op op, Stage stage) { return add({op, stage}); }
  Value constant(float x) { return add({Op::FloatConstant, Stage::Tensor, {}, bitsOf(x)}); }
  Value integer(uint32_t x) { return add({Op::IntConstant, Stage::Tensor, {}, x}); }
  Value operator()(Op op, Value a, Value b = noValue, Value c = noValue);
  Value multiply(Value a, Value b) { return (*this)(Op::Multiply, a, b); }
  Value divide(Value a, Value b) { return (*this)(Op::Divide, a, b); }
  Value select(Value condition, Value a, Value b) { return (*this)(Op::Select, condition, a, b); }

  /// Drops instructions that no result needs, sorts the code by stage and renumbers `program`'s
  /// values.
  void finish(RecipeProgram &program);

private:
  Value add(Instruction instruction);
  void markUsed(Value value, std::vector<bool> &used) const;

  std::vector<Instruction> code;
};

} // namespace fp4::numerics
