//===- Reference.cpp - The program of a manifest, on the host -------------===//

#include "fp4/Tools/Reference.h"

#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Quantize.h"

#include <bit>
#include <charconv>
#include <fmt/format.h>

namespace fp4::tools {
namespace {

using numerics::BlockFormat;

numerics::FloatType floatType(ElementType type) {
  return type == ElementType::BF16  ? numerics::FloatType::BF16
         : type == ElementType::F16 ? numerics::FloatType::F16
                                    : numerics::FloatType::F32;
}

/// The values of a bf16, f16 or f32 tensor.
std::vector<float> floats(const Tensor &tensor) {
  return numerics::decodeFloats(floatType(tensor.type.element), tensor.bytes);
}

std::span<const uint8_t> codes(const Tensor &tensor) { return tensor.as<uint8_t>(); }

Tensor withBytes(Type type, std::span<const uint8_t> bytes) {
  Tensor tensor;
  tensor.type = std::move(type);
  tensor.bytes.assign(std::as_bytes(bytes).begin(), std::as_bytes(bytes).end());
  return tensor;
}

Tensor scalar(float value) {
  Tensor tensor(Type{{}, ElementType::F32, Layout::Linear});
  tensor.as<float>()[0] = value;
  return tensor;
}

/// Runs one operation at a time; values by name.
class Interpreter {
public:
  explicit Interpreter(unsigned threads) : threads_(threads) {}

  void define(const std::string &name, Tensor value) {
    values_[name] = ReferenceValue{std::move(value), false, {}, {}};
  }
  Status run(const ProgramOp &op);
  Expected<ReferenceValue> value(const std::string &name) const;

private:
  using Handler = Status (Interpreter::*)(const ProgramOp &);
  static const std::map<std::string, Handler> &handlers();

  Status constant(const ProgramOp &op);
  Status amax(const ProgramOp &op);
  Status quantize(const ProgramOp &op);
  Status dequantize(const ProgramOp &op);
  Status swizzle(const ProgramOp &op);
  Status unswizzle(const ProgramOp &op);
  Status alpha(const ProgramOp &op);
  Status matmul(const ProgramOp &op);

  /// Operand number i; Usage errors where the manifest has fewer or does not define it.
  Expected<const Tensor *> operand(const ProgramOp &op, size_t i) const;
  /// The operands, at least `atLeast` of them.
  Expected<std::vector<const Tensor *>> operands(const ProgramOp &op, size_t atLeast) const;
  Expected<std::string> attribute(const ProgramOp &op, const char *name) const;
  Expected<BlockFormat> format(const ProgramOp &op) const;
  /// Result type number i, its dynamic size replaced by the rows of the first operand.
  Expected<Type> resultType(const ProgramOp &op, size_t i) const;
  Status defineResult(const ProgramOp &op, size_t i, std::span<const uint8_t> bytes);

  unsigned threads_;
  std::map<std::string, ReferenceValue> values_;
};

/// Unwraps an Expected into `name`, or returns its error.
#define FP4_GET(name, expr)                                                                        \
  auto name##OrError = (expr);                                                                     \
  if (!name##OrError)                                                                              \
    return tl::unexpected<Error>(name##OrError.error());                                           \
  auto &name = *name##OrError

tl::unexpected<Error> badProgram(const ProgramOp &op, const std::string &what) {
  return makeError(ErrorKind::Usage, fmt::format("manifest: operation '{}' {}", op.op, what),
                   "the library and this tool may be of different versions; --no-verify runs it "
                   "without a reference");
}

const std::map<std::string, Interpreter::Handler> &Interpreter::handlers() {
  static const std::map<std::string, Handler> table = {
      {"arith.constant", &Interpreter::constant},
      {"fp4.amax", &Interpreter::amax},
      {"fp4.quantize", &Interpreter::quantize},
      {"fp4.dequantize", &Interpreter::dequantize},
      {"fp4.swizzle_scales", &Interpreter::swizzle},
      {"fp4.unswizzle_scales", &Interpreter::unswizzle},
      {"fp4.matmul_alpha", &Interpreter::alpha},
      {"fp4.blockscaled_matmul", &Interpreter::matmul}};
  return table;
}

Status Interpreter::run(const ProgramOp &op) {
  auto handler = handlers().find(op.op);
  if (handler == handlers().end())
    return badProgram(op, "is not known to the reference");
  return (this->*handler->second)(op);
}

Expected<ReferenceValue> Interpreter::value(const std::string &name) const {
  auto it = values_.find(name);
  if (it == values_.end())
    return makeError(ErrorKind::Usage, fmt::format("manifest: value '{}' is not defined", name));
  return it->second;
}

Expected<const Tensor *> Interpreter::operand(const ProgramOp &op, size_t i) const {
  if (i >= op.operands.size())
    return badProgram(op, fmt::format("has no operand {}", i));
  auto it = values_.find(op.operands[i]);
  if (it == values_.end())
    return badProgram(op, fmt::format("uses '{}', which is not defined", op.operands[i]));
  return &it->second.value;
}

Expected<std::vector<const Tensor *>> Interpreter::operands(const ProgramOp &op,
                                                            size_t atLeast) const {
  std::vector<const Tensor *> tensors;
  for (size_t i = 0; i < std::max(atLeast, op.operands.size()); ++i) {
    FP4_GET(tensor, operand(op, i));
    tensors.push_back(tensor);
  }
  return tensors;
}

Expected<std::string> Interpreter::attribute(const ProgramOp &op, const char *name) const {
  auto it = op.attributes.find(name);
  if (it == op.attributes.end())
    return badProgram(op, fmt::format("has no attribute '{}'", name));
  return it->second;
}

Expected<BlockFormat> Interpreter::format(const ProgramOp &op) const {
  FP4_GET(text, attribute(op, "format"));
  if (auto parsed = numerics::parseBlockFormat(text))
    return *parsed;
  return badProgram(op, fmt::format("has the unknown format '{}'", text));
}

Expected<Type> Interpreter::resultType(const ProgramOp &op, size_t i) const {
  if (i >= op.resultTypes.size())
    return badProgram(op, fmt::format("has no result {}", i));
  Type type = op.resultTypes[i];
  FP4_GET(first, operand(op, 0));
  for (int64_t &dim : type.shape)
    if (dim < 0 && !first->type.shape.empty())
      dim = first->type.shape[0];
  return type;
}

Status Interpreter::defineResult(const ProgramOp &op, size_t i, std::span<const uint8_t> bytes) {
  FP4_GET(type, resultType(op, i));
  if (bytes.size() != type.bufferBytes())
    return badProgram(op, fmt::format("has a result of type {}, which holds {} bytes, but {} were "
                                      "computed",
                                      type.str(), type.bufferBytes(), bytes.size()));
  define(op.results[i], withBytes(type, bytes));
  return {};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// One fp32 number, spelled by its bits in decimal.
Status Interpreter::constant(const ProgramOp &op) {
  FP4_GET(text, attribute(op, "value"));
  uint32_t bits = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size() || op.results.size() != 1)
    return badProgram(op, fmt::format("must have the bits of one fp32 number, but got '{}'", text));
  define(op.results[0], scalar(std::bit_cast<float>(bits)));
  return {};
}

Status Interpreter::amax(const ProgramOp &op) {
  FP4_GET(input, operand(op, 0));
  FP4_TRY(resultType(op, 0));
  define(op.results[0], scalar(numerics::amax(floats(*input))));
  return {};
}

Status Interpreter::quantize(const ProgramOp &op) {
  FP4_GET(inputs, operands(op, 1));
  FP4_GET(recipeName, attribute(op, "recipe"));
  FP4_GET(recipe, numerics::requireRecipe(recipeName));
  auto plain = [&](const char *name, const char *value) {
    auto it = op.attributes.find(name);
    return it == op.attributes.end() || it->second == value;
  };
  if (!plain("rounding", "nearest_even") || !plain("outputs", "rowwise") || op.results.size() != 2)
    return badProgram(op, "rounds or transposes in a way the reference does not know");
  const Type &type = inputs[0]->type;
  if (type.shape.size() != 2)
    return badProgram(op, "must have a matrix as its operand");
  std::optional<float> tensorAmax;
  if (inputs.size() > 1)
    tensorAmax = inputs[1]->as<float>()[0];
  FP4_GET(quantized, numerics::quantizeRows(*recipe, floats(*inputs[0]), uint64_t(type.shape[0]),
                                            uint64_t(type.shape[1]), tensorAmax));
  FP4_TRY(defineResult(op, 0, quantized.data));
  return defineResult(op, 1, quantized.scales);
}

Status Interpreter::dequantize(const ProgramOp &op) {
  FP4_GET(inputs, operands(op, 2));
  FP4_GET(blockFormat, format(op));
  const Type &type = inputs[0]->type;
  if (type.shape.size() != 2)
    return badProgram(op, "must have a matrix as its operand");
  float tensorAmax = inputs.size() > 2 ? inputs[2]->as<float>()[0] : 2688.f;
  FP4_GET(values,
          numerics::dequantizeRows(blockFormat, codes(*inputs[0]), codes(*inputs[1]),
                                   uint64_t(type.shape[0]), uint64_t(type.shape[1]), tensorAmax));
  FP4_GET(result, resultType(op, 0));
  std::vector<std::byte> bytes = numerics::encodeFloats(floatType(result.element), values);
  return defineResult(op, 0, {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

Status Interpreter::swizzle(const ProgramOp &op) {
  FP4_GET(input, operand(op, 0));
  const auto &shape = input->type.shape;
  FP4_GET(tiled,
          numerics::swizzleScales(codes(*input), uint64_t(shape.at(0)), uint64_t(shape.at(1))));
  return defineResult(op, 0, tiled);
}

Status Interpreter::unswizzle(const ProgramOp &op) {
  FP4_GET(input, operand(op, 0));
  const auto &shape = input->type.shape;
  FP4_GET(linear,
          numerics::unswizzleScales(codes(*input), uint64_t(shape.at(0)), uint64_t(shape.at(1))));
  return defineResult(op, 0, linear);
}

Status Interpreter::alpha(const ProgramOp &op) {
  FP4_GET(inputs, operands(op, 2));
  FP4_TRY(resultType(op, 0));
  define(op.results[0],
         scalar(numerics::matmulAlpha(inputs[0]->as<float>()[0], inputs[1]->as<float>()[0])));
  return {};
}

/// Scales in the linear order that the references read.
Expected<std::vector<uint8_t>> linearScales(const Tensor &scales) {
  if (scales.type.layout == Layout::Tiled128x4)
    return numerics::unswizzleScales(codes(scales), uint64_t(scales.type.shape.at(0)),
                                     uint64_t(scales.type.shape.at(1)));
  return std::vector<uint8_t>(codes(scales).begin(), codes(scales).end());
}

Status Interpreter::matmul(const ProgramOp &op) {
  FP4_GET(inputs, operands(op, 4));
  FP4_GET(blockFormat, format(op));
  FP4_GET(type, resultType(op, 0));
  FP4_GET(scalesA, linearScales(*inputs[1]));
  FP4_GET(scalesB, linearScales(*inputs[3]));
  const Type &lhs = inputs[0]->type, &rhs = inputs[2]->type;
  if (lhs.shape.size() != 2 || rhs.shape.size() != 2 || lhs.shape[1] != rhs.shape[1])
    return badProgram(op, fmt::format("must have matrices of equal depth, but got {} and {}",
                                      lhs.str(), rhs.str()));
  numerics::GemmProblem problem;
  problem.format = blockFormat;
  problem.depth = uint64_t(lhs.shape[1]);
  const uint64_t pitch = (problem.depth + 1) / 2;
  problem.a = {codes(*inputs[0]).data(), scalesA.data(), uint64_t(lhs.shape[0]), pitch, 0};
  problem.b = {codes(*inputs[2]).data(), scalesB.data(), uint64_t(rhs.shape[0]), pitch, 0};
  if (inputs.size() > 4)
    problem.alpha = inputs[4]->as<float>()[0];
  problem.output = floatType(type.element);
  problem.threads = threads_;
  FP4_GET(model, numerics::gemmMmaModel(problem));
  FP4_GET(plain, numerics::gemmReference(problem));
  ReferenceValue result;
  result.value = Tensor(type);
  result.value.bytes = numerics::encodeFloats(problem.output, model);
  result.isProduct = true;
  result.sums = std::move(plain.values);
  result.bounds = std::move(plain.bounds);
  values_[op.results.at(0)] = std::move(result);
  return {};
}

} // namespace

Expected<std::vector<ReferenceValue>>
runReference(const Function &function, std::span<const Tensor> arguments, unsigned threads) {
  Interpreter interpreter(threads);
  for (size_t i = 0; i < arguments.size(); ++i)
    interpreter.define("a" + std::to_string(i), arguments[i]);
  for (const ProgramOp &op : function.program)
    FP4_TRY(interpreter.run(op));
  std::vector<ReferenceValue> results;
  for (const std::string &name : function.returns) {
    FP4_GET(value, interpreter.value(name));
    results.push_back(std::move(value));
  }
  return results;
}

} // namespace fp4::tools
