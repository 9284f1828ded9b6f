//===- ReferenceElementwise.cpp - Elementwise operations, on the host -----===//

#include "Interpreter.h"

#include "fp4/Numerics/Elementwise.h"

#include <fmt/format.h>
#include <limits>

namespace fp4::harness {
namespace {

/// An operand with the distance in elements that each dimension of the result moves it by.
struct Indexed {
  std::vector<float> values;
  std::vector<uint64_t> strides;
};

Expected<Indexed> indexed(Step &step, size_t number, const std::vector<size_t> &dimensions) {
  const Tensor &operand = *step.operands[number];
  const std::vector<int64_t> &shape = operand.type.shape, &result = step.types[0].shape;
  Indexed value{floats(operand), std::vector<uint64_t>(result.size(), 0)};
  if (shape.size() != dimensions.size())
    return step.wrong(fmt::format("has {} dimensions for operand {} of type {}", dimensions.size(),
                                  number, operand.type.str()));
  if (value.values.size() != operand.type.elements())
    return step.wrong(fmt::format("must have operand {} of f32, bf16, f16 or f8E4M3FN, but got {}",
                                  number, operand.type.str()));
  uint64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= static_cast<uint64_t>(shape[i])) {
    if (dimensions[i] == std::numeric_limits<size_t>::max() && shape[i] == 1)
      continue;
    if (dimensions[i] >= result.size() || shape[i] != result[dimensions[i]])
      return step.wrong(
          fmt::format("must have operand {} of the sizes of its result {}, but got {}", number,
                      step.types[0].str(), operand.type.str()));
    value.strides[dimensions[i]] = stride;
  }
  return value;
}

/// Counts through the elements of a shape in row-major order.
bool advance(std::vector<uint64_t> &at, const std::vector<int64_t> &shape) {
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (++at[dim] < static_cast<uint64_t>(shape[dim]))
      return true;
    at[dim] = 0;
  }
  return false;
}

} // namespace

Status runElementwise(Step &step) {
  FP4_ASSIGN(auto text, step.attribute("program"));
  FP4_ASSIGN(auto program, numerics::ElementProgram::parse(text));
  const auto dimensions = operandDimensions(step.op);
  FP4_TRY(step.expect(program.inputs, program.results.size()));
  if (dimensions.size() != step.operands.size() || program.inputs != step.operands.size())
    return step.wrong(
        fmt::format("has {} operands, but a program for {}", step.operands.size(), program.inputs));
  std::vector<Indexed> operands;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    FP4_ASSIGN(auto operand, indexed(step, i, dimensions[i]));
    operands.push_back(std::move(operand));
  }
  std::vector<std::vector<float>> results(program.results.size());
  std::vector<float> values(program.numValues());
  std::vector<uint64_t> at(step.types[0].shape.size(), 0);
  for (bool more = step.types[0].elements() > 0; more; more = advance(at, step.types[0].shape)) {
    for (size_t i = 0; i < operands.size(); ++i) {
      uint64_t place = 0;
      for (size_t dim = 0; dim < at.size(); ++dim)
        place += at[dim] * operands[i].strides[dim];
      values[i] = operands[i].values[place];
    }
    program.evaluate(values);
    for (size_t i = 0; i < results.size(); ++i)
      results[i].push_back(values[program.results[i]]);
  }
  for (size_t i = 0; i < results.size(); ++i)
    FP4_TRY(step.defineFloats(i, results[i]));
  return {};
}

} // namespace fp4::harness
