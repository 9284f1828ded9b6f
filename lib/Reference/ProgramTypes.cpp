//===- ProgramTypes.cpp - The sizes of a program's values -----------------===//

#include "fp4/Reference/ProgramTypes.h"

#include "OperandIndices.h"

#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/Formats.h"

#include <fmt/format.h>
#include <limits>
#include <sstream>

namespace fp4::harness {
namespace {

using Shape = std::vector<int64_t>;

std::string attributeOr(const ProgramOp &op, const char *name, const char *otherwise) {
  auto it = op.attributes.find(name);
  return it == op.attributes.end() ? otherwise : it->second;
}

/// Data and scales of one output; `blockRows` have one row of scales.
void appendSide(std::vector<Shape> &shapes, int64_t rows, int64_t columns, int64_t block,
                int64_t blockRows = 1) {
  shapes.push_back({rows, columns});
  shapes.push_back({(rows + blockRows - 1) / blockRows, (columns + block - 1) / block});
}

std::vector<Shape> quantizedShapes(const ProgramOp &op, const Shape &input) {
  const auto format = numerics::parseBlockFormat(attributeOr(op, "format", ""));
  const int64_t block = numerics::blockSizeOf(format.value_or(numerics::BlockFormat::NVFP4));
  const std::string outputs = attributeOr(op, "outputs", "rowwise");
  std::vector<Shape> shapes;
  const std::string shape = attributeOr(op, "block", "");
  const bool square = shape == "128,128", isRow = shape == fmt::format("1,{}", input[1]);
  const int64_t columns = isRow ? std::max<int64_t>(input[1], 1) : block;
  if (outputs != "columnwise")
    appendSide(shapes, input[0], input[1], columns, square ? block : 1);
  if (outputs != "rowwise")
    appendSide(shapes, input[1], input[0], block);
  return shapes;
}

/// `result` with as many elements as `source`.
Shape reshaped(Shape result, const Shape &source) {
  int64_t elements = 1, fixed = 1;
  for (int64_t size : source)
    elements *= size;
  for (int64_t size : result)
    fixed *= size < 0 ? 1 : size;
  for (int64_t &size : result)
    size = size < 0 && fixed > 0 ? elements / fixed : size;
  return result;
}

/// Sizes of the result that operands of an elementwise operation or row reduction have. The static
/// columns of a reduction's result, if it has any, are left as they are by resultTypes.
Shape elementwiseShape(const ProgramOp &op, std::span<const Type> operands) {
  const auto dimensions = operandDimensions(op);
  Shape shape = op.resultTypes.empty() ? Shape{} : op.resultTypes[0].shape;
  for (size_t i = 0; i < operands.size() && i < dimensions.size(); ++i)
    for (size_t j = 0; j < dimensions[i].size() && j < operands[i].shape.size(); ++j)
      if (dimensions[i][j] < shape.size())
        shape[dimensions[i][j]] = operands[i].shape[j];
  return shape;
}

/// Shapes of the results of a matmul: rows are those of lhs, and columns of the elements the rows
/// of rhs.
std::vector<Shape> gemmShapes(const ProgramOp &op, int64_t rows, int64_t columns) {
  std::vector<Shape> shapes;
  for (const Type &type : op.resultTypes) {
    Shape &shape = shapes.emplace_back(type.shape);
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] < 0)
        shape[dim] = dim == 0 ? rows : columns;
  }
  return shapes;
}

/// Columns of a matmul with prepacked weights, which have rows of tiles: those of an alpha of 1 x
/// N, or of all rows of tiles.
int64_t columnsOfTiles(const ProgramOp &op, std::span<const Type> operands, size_t rhs) {
  constexpr size_t alpha = 4;
  const bool isRow = hasOperand(op, alpha) && operands.size() > rhs + 1 &&
                     operands[rhs + 1].shape.size() == 2 && operands[rhs + 1].shape[1] != 1;
  return isRow ? operands[rhs + 1].shape[1] : operands[rhs].shape[0] * hw::weightTileRows;
}

/// Shapes of the results of a matmul whose rhs is operand `rhs`.
std::vector<Shape> matmulShapes(const ProgramOp &op, std::span<const Type> operands, size_t rhs) {
  const Shape &weights = operands[rhs].shape;
  return gemmShapes(op, operands[0].shape[0],
                    weights.size() == 3 ? columnsOfTiles(op, operands, rhs) : weights[0]);
}

/// Shapes of offsets, which are static, rows, and tokens: all ids, and the padding of experts.
std::vector<Shape> expertShapes(const ProgramOp &op, const Shape &ids) {
  const auto number = [&](const char *name, const char *otherwise) {
    return std::strtoll(attributeOr(op, name, otherwise).c_str(), nullptr, 10);
  };
  const int64_t experts = number("experts", "0"), multiple = number("multiple", "1");
  return {{experts + 1}, ids, {ids[0] * ids[1] + experts * (multiple - 1)}};
}

/// Shapes of what a tensor operation moves: a reshape has the elements of its operand, and a gather
/// a row for each row number.
std::vector<Shape> shapesOfView(const ProgramOp &op, std::span<const Type> operands) {
  const Shape first = operands.empty() ? Shape{} : operands[0].shape;
  if ((op.op == "tensor.collapse_shape" || op.op == "tensor.expand_shape") &&
      op.resultTypes.size() == 1)
    return {reshaped(op.resultTypes[0].shape, first)};
  if (op.op == "tensor.gather" && operands.size() > 1 && !operands[1].shape.empty() &&
      first.size() == 2)
    return {{operands[1].shape[0], first[1]}};
  return std::vector<Shape>(op.resultTypes.size(), first);
}

std::vector<Shape> staticShapes(const ProgramOp &op) {
  std::vector<Shape> shapes;
  for (const Type &type : op.resultTypes)
    shapes.push_back(type.shape);
  return shapes;
}

/// Queries with the elements of a head of values, and without elements.
std::vector<Shape> attentionShapes(const ProgramOp &op, const Shape &query, const Shape &value) {
  Shape result = query, sums = query;
  result.back() = value.empty() ? 0 : value.back();
  if (!op.resultTypes.empty() && !op.resultTypes[0].shape.empty()) // values may be elements of keys
    result.back() = op.resultTypes[0].shape.back();
  sums.pop_back();
  return {result, sums};
}

/// The shapes of the results, if the operation makes matrices of other sizes than its first
/// operand's.
std::vector<Shape> resultShapes(const ProgramOp &op, std::span<const Type> operands) {
  const Shape first = operands.empty() ? Shape{} : operands[0].shape;
  if (op.attributes.contains("per_row") && op.op == "fp4.amax" && !first.empty())
    return {{first[0]}};
  if (op.attributes.contains("per_column") && op.op == "fp4.amax" && first.size() == 2)
    return {{first[1]}};
  if (op.op == "linalg.generic" || op.op == "linalg.reduce")
    return std::vector<Shape>(op.resultTypes.size(), elementwiseShape(op, operands));
  if (op.op == "fp4.amax" || op.op == "fp4.hadamard_amax") // one number per group
    return std::vector<Shape>(op.resultTypes.size(), Shape(1));
  if (op.op == "fp4.matmul_alpha" && first.size() == 1)
    return {{first[0], 1}};
  if (op.op == "fp4.matmul_alpha" && operands.size() > 1 && operands[1].shape.size() == 1)
    return {{1, operands[1].shape[0]}};
  if (op.op == "fp4.quantize" && first.size() == 2)
    return quantizedShapes(op, first);
  if (const size_t rhs = hasLhsScales(op) ? 2 : 1; // behind lhs, and its scales
      op.op == "fp4.blockscaled_matmul" && first.size() == 2 && operands.size() > rhs &&
      operands[rhs].shape.size() >= 2)
    return matmulShapes(op, operands, rhs);
  if (op.op == "fp4.prepack" || op.op == "fp4.unprepack")
    return staticShapes(op);
  if (op.op == "fp4.attention" && operands.size() > 2 && !first.empty())
    return attentionShapes(op, first, operands[2].shape);
  if (op.op == "fp4.attention_backward" && operands.size() > 2)
    return {first, operands[1].shape, operands[2].shape};
  if (op.op.starts_with("tensor."))
    return shapesOfView(op, operands);
  if (op.op == "fp4.expert_order" && first.size() == 2)
    return expertShapes(op, first);
  if (op.op == "fp4.stack_scales" && first.size() == 2) {
    Shape sum = {0, first[1]};
    for (const Type &shard : operands)
      sum[0] += shard.shape.empty() ? 0 : shard.shape[0];
    return {sum};
  }
  return std::vector<Shape>(op.resultTypes.size(), first);
}

/// Checks operands whose rows are dynamic, which can contradict each other: data and its scales,
/// rows and their amaxes, packed keys and values.
Status checkRows(const ProgramOp &op, std::span<const Type> operands) {
  std::vector<std::pair<size_t, size_t>> pairs;
  if (op.op == "fp4.dequantize")
    pairs = {{0, 1}};
  if (op.op == "fp4.blockscaled_matmul" && !isGroupedGemm(op) && hasLhsScales(op)) {
    pairs = {{0, 1}, {2, 3}};
    const auto format = numerics::parseBlockFormat(attributeOr(op, "format", ""));
    const bool hasScales = hasOperand(op, 3) || !op.attributes.contains("operand_segments");
    if (!hasScales || (format && numerics::hasF32Scales(*format))) // those of 128 rows, or none
      pairs.pop_back();
  }
  if (op.op == "fp4.quantize" && op.attributes.contains("per_row") &&
      attributeOr(op, "outputs", "rowwise") != "columnwise")
    pairs = {{0, 1}};
  if (op.op == "fp4.attention")
    pairs = {{1, 2}};
  if (op.op == "fp4.attention_backward")
    pairs = {{1, 2}, {0, 3}, {0, 4}, {0, 5}};
  for (auto [first, second] : pairs) {
    if (second >= operands.size() || operands[first].shape.empty() ||
        operands[second].shape.empty() || operands[first].shape[0] == operands[second].shape[0])
      continue;
    return makeError(ErrorKind::Usage,
                     fmt::format("operands {} and {} of '{}' must have as many rows, but got {} "
                                 "and {}",
                                 first, second, op.op, operands[first].str(),
                                 operands[second].str()),
                     "pass the scales, the amaxes, or the values, of the same rows");
  }
  return {};
}

} // namespace

bool isGroupedGemm(const ProgramOp &op) {
  return op.op == "fp4.blockscaled_matmul" &&
         (op.attributes.contains("groups") || !offsetsOf(op).empty());
}

std::string offsetsOf(const ProgramOp &op) {
  if (op.op == "fp4.blockscaled_matmul" && op.attributes.contains("operand_segments"))
    return operandAt(op, 6);
  if (op.op == "fp4.quantize" && op.attributes.contains("operand_segments"))
    return operandAt(op, 4);
  bool isOptional = op.op == "fp4.amax" || op.op == "fp4.swizzle_scales";
  return isOptional && op.operands.size() > 1 ? op.operands[1] : "";
}

bool hasLhsScales(const ProgramOp &op) {
  return !op.attributes.contains("operand_segments") || hasOperand(op, 1);
}

bool hasOperand(const ProgramOp &op, size_t place) {
  return op.attributes.contains("operand_segments") && !operandAt(op, place).empty();
}

std::string operandAt(const ProgramOp &op, size_t place) {
  std::istringstream segments(attributeOr(op, "operand_segments", ""));
  std::string count;
  size_t before = 0, number = 1;
  for (size_t i = 0; i < place; before += number, ++i)
    number = std::getline(segments, count, ',') ? std::strtoul(count.c_str(), nullptr, 10) : 1;
  bool isThere = !op.attributes.contains("operand_segments") ||
                 (std::getline(segments, count, ',') && count != "0");
  return isThere && before < op.operands.size() ? op.operands[before] : "";
}

std::vector<std::vector<size_t>> operandDimensions(const ProgramOp &op) {
  std::vector<std::vector<size_t>> dimensions;
  for (const std::vector<std::string> &indices : operandIndices(op)) {
    std::vector<size_t> &numbers = dimensions.emplace_back();
    for (const std::string &index : indices) // tensors have few dimensions
      numbers.push_back(index.size() == 1 && index[0] >= '0' && index[0] <= '9'
                            ? static_cast<size_t>(index[0] - '0')
                            : std::numeric_limits<size_t>::max());
  }
  return dimensions;
}

tl::unexpected<Error> badProgram(const ProgramOp &op, const std::string &what) {
  return makeError(ErrorKind::Usage, fmt::format("manifest: operation '{}' {}", op.op, what),
                   "the library and this tool may be of different versions; --no-verify runs it "
                   "without a reference");
}

Expected<std::vector<Type>> resultTypes(const ProgramOp &op, std::span<const Type> operands) {
  std::vector<Type> types = op.resultTypes;
  const std::vector<Shape> shapes = resultShapes(op, operands);
  for (size_t i = 0; i < types.size(); ++i) {
    Shape &shape = types[i].shape;
    if (!types[i].isDynamic())
      continue;
    if (i >= shapes.size() || shapes[i].size() != shape.size())
      return badProgram(op,
                        fmt::format("has a result {} of unexpected type {}", i, types[i].str()));
    for (size_t dim = 0; dim < shape.size(); ++dim)
      shape[dim] = shape[dim] < 0 ? shapes[i][dim] : shape[dim];
  }
  return types;
}

Expected<std::map<std::string, Type>> valueTypes(std::span<const ProgramOp> program,
                                                 std::span<const Type> arguments) {
  std::map<std::string, Type> types;
  for (size_t i = 0; i < arguments.size(); ++i)
    types["a" + std::to_string(i)] = arguments[i];
  for (const ProgramOp &op : program) {
    std::vector<Type> operands;
    for (const std::string &name : op.operands) {
      auto it = types.find(name);
      if (it == types.end())
        return badProgram(op, fmt::format("uses '{}', which is not defined", name));
      operands.push_back(it->second);
    }
    FP4_TRY(checkRows(op, operands));
    FP4_ASSIGN(auto results, resultTypes(op, operands));
    for (size_t i = 0; i < results.size(); ++i)
      types[op.results[i]] = results[i];
  }
  return types;
}

} // namespace fp4::harness
