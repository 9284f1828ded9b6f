// Construction and printing of recipe programs.
#include "ProgramBuilder.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::numerics {
namespace {

struct OpFacts {
  Op op;
  std::string_view name;
  uint8_t operands;
  ValueType type;
};

using enum ValueType;

/// Rows are in the order of the enumeration.
constexpr auto opFacts = std::to_array<OpFacts>({
    {Op::TensorAmax, "tensor_amax", 0, F32},
    {Op::BlockAmax, "block_amax", 0, F32},
    {Op::Stretch, "stretch", 0, F32},
    {Op::ScaleByte, "scale_byte", 0, I32},
    {Op::Element, "element", 0, F32},
    {Op::Code, "code", 0, I32},
    {Op::Decoded, "decoded", 0, F32},
    {Op::FloatConstant, "constant", 0, F32},
    {Op::IntConstant, "integer", 0, I32},
    {Op::Multiply, "multiply", 2, F32},
    {Op::Divide, "divide", 2, F32},
    {Op::Subtract, "subtract", 2, F32},
    {Op::ReciprocalApprox, "reciprocal_approx", 1, F32},
    {Op::Absolute, "absolute", 1, F32},
    {Op::MinDropNaN, "min_drop_nan", 2, F32},
    {Op::MinKeepNaN, "min_keep_nan", 2, F32},
    {Op::MaxKeepNaN, "max_keep_nan", 2, F32},
    {Op::RoundBF16, "round_bf16", 1, F32},
    {Op::Truncate, "truncate", 1, I32},
    {Op::FloatEqual, "float_equal", 2, I1},
    {Op::FloatGreater, "float_greater", 2, I1},
    {Op::IsNaN, "is_nan", 1, I1},
    {Op::IntEqual, "int_equal", 2, I1},
    {Op::IntAtLeast, "int_at_least", 2, I1},
    {Op::BitsOf, "bits_of", 1, I32},
    {Op::FloatOf, "float_of", 1, F32},
    {Op::Add, "add", 2, I32},
    {Op::SubtractInt, "subtract_int", 2, I32},
    {Op::ShiftLeft, "shift_left", 2, I32},
    {Op::ShiftRight, "shift_right", 2, I32},
    {Op::MinSigned, "min_signed", 2, I32},
    {Op::MaxSigned, "max_signed", 2, I32},
    {Op::Select, "select", 3, F32}, // or I32: RecipeProgram::typeOf looks at its operands
    {Op::ToE4M3, "to_e4m3", 1, I32},
    {Op::FromE4M3, "from_e4m3", 1, F32},
    {Op::ToUE8M0Up, "to_ue8m0_up", 1, I32},
});
static_assert([] {
  for (unsigned i = 0; i < opFacts.size(); ++i)
    if (opFacts[i].op != static_cast<Op>(i))
      return false;
  return opFacts.back().op == Op::ToUE8M0Up;
}());

const OpFacts &factsOf(Op op) { return opFacts[static_cast<unsigned>(op)]; }

std::string_view stageName(Stage stage) {
  constexpr std::array<std::string_view, stageCount> names = {"tensor", "block", "element",
                                                              "error"};
  return names[static_cast<unsigned>(stage)];
}

std::string line(const RecipeProgram &program, Value value) {
  const Instruction &in = program.code[value];
  std::string text = fmt::format("  %{} = {}", value, stringify(in.op));
  if (in.op == Op::FloatConstant)
    return text + fmt::format(" {:.9g}\n", floatOf(in.immediate));
  if (in.op == Op::IntConstant)
    return text + fmt::format(" {:#x}\n", in.immediate);
  for (unsigned i = 0; i < operandCount(in.op); ++i)
    text += fmt::format("{}%{}", i ? ", " : " ", in.operands[i]);
  return text + "\n";
}

} // namespace

std::string_view stringify(Op op) { return factsOf(op).name; }
unsigned operandCount(Op op) { return factsOf(op).operands; }

//===--- RecipeProgram ---------------------------------------------------===//

std::pair<Value, Value> RecipeProgram::range(Stage stage) const {
  const auto range = std::ranges::equal_range(code, stage, {}, &Instruction::stage);
  return {static_cast<Value>(range.begin() - code.begin()),
          static_cast<Value>(range.end() - code.begin())};
}

ValueType RecipeProgram::typeOf(Value value) const {
  const Instruction &in = code[value];
  return in.op == Op::Select ? typeOf(in.operands[1]) : factsOf(in.op).type;
}

std::string RecipeProgram::text() const {
  std::string text = amaxNaN == NanPolicy::Drop ? "amax drops nan\n" : "amax keeps nan\n";
  for (Value v = 0; v < code.size(); ++v) {
    if (v == 0 || code[v].stage != code[v - 1].stage)
      text += fmt::format("{}:\n", stageName(code[v].stage));
    text += line(*this, v);
  }
  const std::array<std::pair<std::string_view, Value>, 4> results = {
      {{"scale byte", scaleByte}, {"element", element}, {"code", elementCode}, {"error", error}}};
  for (auto [name, value] : results)
    if (value != noValue)
      text += fmt::format("{} %{}\n", name, value);
  if (candidates.size() > 1)
    text += fmt::format("candidates {} by {} error\n", fmt::join(candidates, ", "),
                        errorIsLargest ? "largest" : "summed");
  return text;
}

//===--- ProgramBuilder --------------------------------------------------===//

Value ProgramBuilder::add(Instruction instruction) {
  const auto same = std::find(code.begin(), code.end(), instruction);
  if (same != code.end())
    return static_cast<Value>(same - code.begin());
  code.push_back(instruction);
  return static_cast<Value>(code.size() - 1);
}

Value ProgramBuilder::operator()(Op op, Value a, Value b, Value c) {
  Instruction in{op, Stage::Tensor, {a, b, c}};
  for (unsigned i = 0; i < operandCount(op); ++i)
    in.stage = std::max(in.stage, code[in.operands[i]].stage);
  return add(in);
}

void ProgramBuilder::markUsed(Value value, std::vector<bool> &used) const {
  if (value == noValue || used[value])
    return;
  used[value] = true;
  for (Value operand : code[value].operands)
    markUsed(operand, used);
}

void ProgramBuilder::finish(RecipeProgram &program) {
  const std::array<Value *, 6> results = {&program.encodeScale, &program.decodeScale,
                                          &program.scaleByte,   &program.element,
                                          &program.elementCode, &program.error};
  std::vector<bool> used(code.size());
  for (const Value *result : results)
    markUsed(*result, used);
  std::vector<Value> renamed(code.size(), noValue);
  for (unsigned stage = 0; stage < stageCount; ++stage)
    for (Value v = 0; v < code.size(); ++v) {
      Instruction in = code[v];
      if (!used[v] || in.stage != static_cast<Stage>(stage))
        continue;
      for (Value &operand : in.operands)
        operand = operand == noValue ? noValue : renamed[operand];
      renamed[v] = static_cast<Value>(program.code.size());
      program.code.push_back(in);
    }
  for (Value *result : results)
    *result = *result == noValue ? noValue : renamed[*result];
}

} // namespace fp4::numerics
