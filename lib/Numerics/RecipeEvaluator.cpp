// Evaluation of a RecipeProgram, one case for each operation; compiled without contraction.
#include "RecipeEvaluator.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Reciprocal.h"
#include "fp4/Numerics/UE8M0.h"
#include <cmath>

namespace fp4::numerics {
namespace {

int32_t asSigned(uint32_t x) { return static_cast<int32_t>(x); }

} // namespace

RecipeEvaluator::RecipeEvaluator(const RecipeProgram &program)
    : recipe(program), values(program.code.size()) {
  for (unsigned s = 0; s < stageCount; ++s)
    ranges[s] = program.range(static_cast<Stage>(s));
}

uint32_t RecipeEvaluator::evaluate(const Instruction &in) const {
  const auto u = [&](unsigned i) { return values[in.operands[i]]; };
  const auto f = [&](unsigned i) { return floatOf(values[in.operands[i]]); };
  switch (in.op) {
  case Op::TensorAmax:
  case Op::BlockAmax:
  case Op::Stretch:
  case Op::ScaleByte:
  case Op::Element:
  case Op::Code:
  case Op::Decoded:
    return inputs[static_cast<unsigned>(in.op)];
  case Op::FloatConstant:
  case Op::IntConstant:
    return in.immediate;
  case Op::Multiply:
    return bitsOf(f(0) * f(1));
  case Op::Divide:
    return bitsOf(f(0) / f(1));
  case Op::Subtract:
    return bitsOf(f(0) - f(1));
  case Op::ReciprocalApprox:
    return bitsOf(approximateReciprocal(f(0)));
  case Op::Absolute:
    return u(0) & 0x7FFFFFFF;
  case Op::MinDropNaN:
    return bitsOf(std::fmin(f(0), f(1)));
  case Op::MinKeepNaN:
    return f(0) > f(1) || std::isnan(f(1)) ? u(1) : u(0);
  case Op::MaxKeepNaN:
    return f(0) < f(1) || std::isnan(f(1)) ? u(1) : u(0);
  case Op::RoundBF16:
    return bitsOf(roundTo(FloatType::BF16, f(0)));
  case Op::Truncate: // no recipe reads a value that is out of range
    return f(0) >= 0 && f(0) < 0x1p31f ? static_cast<uint32_t>(f(0)) : 0;
  case Op::FloatEqual:
    return f(0) == f(1);
  case Op::FloatGreater:
    return f(0) > f(1);
  case Op::IsNaN:
    return std::isnan(f(0));
  case Op::IntEqual:
    return u(0) == u(1);
  case Op::IntAtLeast:
    return u(0) >= u(1);
  case Op::BitsOf:
  case Op::FloatOf:
    return u(0);
  case Op::Add:
    return u(0) + u(1);
  case Op::SubtractInt:
    return u(0) - u(1);
  case Op::ShiftLeft:
    return u(0) << u(1);
  case Op::ShiftRight:
    return u(0) >> u(1);
  case Op::MinSigned:
    return asSigned(u(0)) < asSigned(u(1)) ? u(0) : u(1);
  case Op::MaxSigned:
    return asSigned(u(0)) > asSigned(u(1)) ? u(0) : u(1);
  case Op::Select:
    return u(0) ? u(1) : u(2);
  case Op::ToE4M3:
    return encodeE4M3(f(0));
  case Op::FromE4M3:
    return bitsOf(decodeE4M3(static_cast<uint8_t>(u(0))));
  case Op::ToUE8M0Up:
    return encodeUE8M0Up(f(0));
  }
  return 0;
}

void RecipeEvaluator::run(Stage stage) {
  const auto [first, last] = ranges[static_cast<unsigned>(stage)];
  for (Value v = first; v < last; ++v)
    values[v] = evaluate(recipe.code[v]);
}

void RecipeEvaluator::setTensor(float tensorAmax) {
  inputs[static_cast<unsigned>(Op::TensorAmax)] = bitsOf(tensorAmax);
  run(Stage::Tensor);
}

uint32_t RecipeEvaluator::setBlock(float blockAmax, float stretch) {
  inputs[static_cast<unsigned>(Op::BlockAmax)] = bitsOf(blockAmax);
  inputs[static_cast<unsigned>(Op::Stretch)] = bitsOf(stretch);
  run(Stage::Block);
  return values[recipe.scaleByte];
}

void RecipeEvaluator::setScaleByte(uint32_t byte) {
  inputs[static_cast<unsigned>(Op::ScaleByte)] = byte;
  run(Stage::Block);
}

float RecipeEvaluator::element(float x) {
  inputs[static_cast<unsigned>(Op::Element)] = bitsOf(x);
  run(Stage::Element);
  return floatOf(values[recipe.element]);
}

uint8_t RecipeEvaluator::elementCode(float x) {
  element(x);
  return static_cast<uint8_t>(values[recipe.elementCode]);
}

float RecipeEvaluator::decode(uint8_t code) {
  inputs[static_cast<unsigned>(Op::Code)] = code;
  return element(decodeE2M1(code));
}

float RecipeEvaluator::error(float decoded) {
  inputs[static_cast<unsigned>(Op::Decoded)] = bitsOf(decoded);
  run(Stage::Error);
  return floatOf(values[recipe.error]);
}

float RecipeEvaluator::valueOr(Value value, float otherwise) const {
  return value == noValue ? otherwise : floatOf(values[value]);
}

} // namespace fp4::numerics
