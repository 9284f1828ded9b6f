//===- ReferenceElementwise.cpp - Elementwise operations, on the host -----===//
//
// Elementwise operations, and reductions of the rows of matrices whose elements such an operation
// computes.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "OperandIndices.h"

#include "fp4/Numerics/Elementwise.h"
#include "fp4/Numerics/RowReduction.h"
#include "fp4/Support/Parallel.h"

#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <optional>

namespace fp4::harness {
namespace {

/// The type of a tensor with an element for each evaluation of a program, and its name in errors:
/// the dimensions of the space index operands.
struct Space {
  Type type;
  const char *name;
};

/// The elements that each index of one dimension of the space moves an operand by.
struct OffsetTable {
  size_t dimension;
  std::vector<uint64_t> offsets;
};

/// An operand with the distance in elements that each dimension of the space moves it by: a stride,
/// or a table where the operand is indexed by an expression.
struct Indexed {
  std::vector<float> values;
  std::vector<uint64_t> strides;
  std::vector<OffsetTable> tables = {};

  float at(const std::vector<uint64_t> &indices) const {
    uint64_t place =
        std::inner_product(indices.begin(), indices.end(), strides.begin(), uint64_t(0));
    for (const OffsetTable &table : tables)
      place += table.offsets[indices[table.dimension]];
    return values[place];
  }
};

/// The offsets of an operand that `expression` finds in its dimension of `size` indices, `stride`
/// elements apart.
Expected<OffsetTable> offsetTable(const Step &step, std::string_view expression, int64_t size,
                                  uint64_t stride, const std::vector<int64_t> &sizes) {
  const auto dimension = dimensionOf(expression);
  if (!dimension || *dimension >= sizes.size())
    return step.wrong(fmt::format("has the index '{}' of an operand", expression));
  OffsetTable table{*dimension, {}};
  for (int64_t at = 0; at < sizes[*dimension]; ++at) {
    const auto index = evaluateIndex(expression, at);
    if (!index || *index < 0 || *index >= size)
      return step.wrong(fmt::format("must have an index '{}' below {}, the size of an operand, but "
                                    "has {} for index {} of the result",
                                    expression, size, index.value_or(-1), at));
    table.offsets.push_back(static_cast<uint64_t>(*index) * stride);
  }
  return table;
}

Expected<Indexed> indexed(const Step &step, size_t number, const std::vector<size_t> &dimensions,
                          const Space &space) {
  const Tensor &operand = *step.operands[number];
  const std::vector<int64_t> &shape = operand.type.shape, &sizes = space.type.shape;
  Indexed value{floats(operand), std::vector<uint64_t>(sizes.size(), 0)};
  if (shape.size() != dimensions.size())
    return step.wrong(fmt::format("has {} dimensions for operand {} of type {}", dimensions.size(),
                                  number, operand.type.str()));
  if (value.values.size() != operand.type.elements())
    return step.wrong(fmt::format("must have operand {} of f32, bf16, f16 or f8E4M3FN, but got {}",
                                  number, operand.type.str()));
  const std::vector<std::string> indices = operandIndices(step.op)[number];
  uint64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= static_cast<uint64_t>(shape[i])) {
    if (indices[i].starts_with('(')) {
      FP4_ASSIGN(auto table, offsetTable(step, indices[i], shape[i], stride, sizes));
      value.tables.push_back(std::move(table));
      continue;
    }
    if (dimensions[i] == std::numeric_limits<size_t>::max() && shape[i] == 1)
      continue;
    if (dimensions[i] >= sizes.size() || shape[i] != sizes[dimensions[i]])
      return step.wrong(fmt::format("must have operand {} of the sizes of its {} {}, but got {}",
                                    number, space.name, space.type.str(), operand.type.str()));
    value.strides[dimensions[i]] = stride;
  }
  return value;
}

Expected<std::vector<Indexed>> indexedOperands(const Step &step, const Space &space) {
  const auto dimensions = operandDimensions(step.op);
  std::vector<Indexed> operands;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    FP4_ASSIGN(auto operand, indexed(step, i, dimensions[i], space));
    operands.push_back(std::move(operand));
  }
  return operands;
}

/// The program of the operation, which has dimensions for each operand and one result for each of
/// the program, or `results`.
Expected<numerics::ElementProgram> readProgram(const Step &step, std::optional<size_t> results) {
  FP4_ASSIGN(auto text, step.attribute("program"));
  FP4_ASSIGN(auto program, numerics::ElementProgram::parse(text));
  FP4_TRY(step.expect(program.inputs - loopInputs(step.op).size(),
                      results.value_or(program.results.size())));
  const size_t inputs = step.operands.size() + loopInputs(step.op).size();
  if (operandDimensions(step.op).size() != step.operands.size() || program.inputs != inputs)
    return step.wrong(fmt::format("has {} operands, but a program for {}", inputs, program.inputs));
  return program;
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

//===----------------------------------------------------------------------===//
// Row reductions
//===----------------------------------------------------------------------===//

/// The matrix, or batch of matrices, whose rows are reduced: the innermost dimension, which
/// operands have, is that of the columns, and the others are those of the result.
Expected<Space> reducedMatrix(const Step &step) {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  const Type &result = step.types[0];
  const auto dimensions = operandDimensions(step.op);
  size_t columns = 0;
  for (const auto &ofOperand : dimensions)
    for (size_t dimension : ofOperand)
      columns = dimension == none ? columns : std::max(columns, dimension);
  const size_t rank = result.shape.size();
  if (columns == 0)
    return step.wrong("has no operand that is indexed by columns");
  if (result.element != ElementType::F32 ||
      !(rank == columns || (rank == columns + 1 && result.shape.back() == 1)))
    return step.wrong(
        fmt::format("must have one f32 for each row as its result, but got {}", result.str()));
  Space matrix{{{result.shape.begin(), result.shape.begin() + int64_t(columns)}, ElementType::F32},
               "matrix"};
  matrix.type.shape.push_back(-1);
  for (size_t i = 0; i < step.operands.size(); ++i)
    for (size_t j = 0; j < dimensions[i].size() && j < step.operands[i]->type.shape.size(); ++j)
      if (dimensions[i][j] == columns)
        matrix.type.shape[columns] = step.operands[i]->type.shape[j];
  return matrix;
}

/// The place in `operand` of the first element of row number `row` among those of all matrices.
uint64_t startOfRow(const Indexed &operand, const std::vector<int64_t> &shape, uint64_t row) {
  uint64_t start = 0;
  for (size_t dim = shape.size() - 1; dim-- > 0; row /= uint64_t(shape[dim]))
    start += row % uint64_t(shape[dim]) * operand.strides[dim];
  return start;
}

Expected<numerics::ElementOp> readCombination(const Step &step) {
  FP4_ASSIGN(auto text, step.attribute("combination"));
  const auto combination = numerics::parseElementOp(text);
  if (!combination || !numerics::isCombination(*combination))
    return step.wrong(
        fmt::format("expects a step that combines elements as 'combination', but got '{}'", text));
  return *combination;
}

/// The number that each row begins with, whose bits the manifest has.
Expected<float> readInitial(const Step &step) {
  FP4_ASSIGN(auto text, step.attribute("initial"));
  const char *first = text.data(), *last = first + text.size();
  uint32_t bits = 0;
  if (text.starts_with("0x")) {
    auto [end, error] = std::from_chars(first + 2, last, bits, 16);
    if (error == std::errc() && end == last)
      return numerics::floatOf(bits);
  }
  return step.wrong(
      fmt::format("expects bits such as '0x3f800000' as 'initial', but got '{}'", text));
}

} // namespace

Status runElementwise(Step &step) {
  FP4_ASSIGN(auto program, readProgram(step, {}));
  FP4_ASSIGN(auto operands, indexedOperands(step, {step.types[0], "result"}));
  const std::vector<size_t> loops = loopInputs(step.op);
  const std::vector<int64_t> &shape = step.types[0].shape;
  const uint64_t elements = step.types[0].elements();
  if (!loops.empty() && loops.back() >= shape.size())
    return step.wrong("reads an index that its result does not have");
  const uint64_t rows = shape.size() > 1 && elements ? uint64_t(shape[0]) : 1;
  std::vector<std::vector<float>> results(program.results.size(), std::vector<float>(elements));
  parallelFor(rows, step.threads, [&](uint64_t row) {
    std::vector<float> values(program.numValues());
    std::vector<uint64_t> at(shape.size(), 0);
    if (rows > 1)
      at[0] = row;
    for (uint64_t place = row * (elements / rows); place < (row + 1) * (elements / rows); ++place) {
      for (size_t i = 0; i < operands.size(); ++i)
        values[i] = operands[i].at(at);
      for (size_t i = 0; i < loops.size(); ++i)
        values[operands.size() + i] = numerics::floatOf(static_cast<uint32_t>(at[loops[i]]));
      program.evaluate(values);
      for (size_t i = 0; i < results.size(); ++i)
        results[i][place] = values[program.results[i]];
      advance(at, shape);
    }
  });
  for (size_t i = 0; i < results.size(); ++i)
    FP4_TRY(step.defineFloats(i, results[i]));
  return {};
}

Status runRowReduction(Step &step) {
  FP4_ASSIGN(auto program, readProgram(step, 1));
  if (program.results.size() != 1)
    return step.wrong(fmt::format("must have a program with 1 result, but has one with {}",
                                  program.results.size()));
  const std::vector<size_t> loops = loopInputs(step.op);
  FP4_ASSIGN(auto combination, readCombination(step));
  FP4_ASSIGN(auto initial, readInitial(step));
  FP4_ASSIGN(auto matrix, reducedMatrix(step));
  FP4_ASSIGN(auto operands, indexedOperands(step, matrix));
  const std::vector<int64_t> &shape = matrix.type.shape;
  const auto columns = uint64_t(shape.back());
  const uint64_t rows = step.types[0].elements();
  std::vector<float> results(rows);
  parallelFor(rows, step.threads, [&](uint64_t row) {
    std::vector<float> values(program.numValues()), elements(columns);
    std::vector<uint64_t> starts;
    for (const Indexed &operand : operands)
      starts.push_back(startOfRow(operand, shape, row));
    for (uint64_t column = 0; column < columns; ++column) {
      for (size_t i = 0; i < operands.size(); ++i)
        values[i] = operands[i].values[starts[i] + column * operands[i].strides.back()];
      for (size_t i = 0; i < loops.size(); ++i)
        values[operands.size() + i] =
            numerics::floatOf(static_cast<uint32_t>(loops[i] + 1 == shape.size() ? column : row));
      program.evaluate(values);
      elements[column] = values[program.results.front()];
    }
    results[row] = numerics::reduceRow(elements, combination, initial);
  });
  return step.defineFloats(0, results);
}

} // namespace fp4::harness
