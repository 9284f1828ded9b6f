//===- Traffic.cpp - Bytes and operations of launches ---------------------===//

#include "fp4/Benchmark/Benchmark.h"

#include "fp4/Reference/ProgramTypes.h"

namespace fp4::harness {
namespace {

/// "quantize" of "f_quantize_0". Empty when the name has another form.
std::string kindOf(const std::string &function, const std::string &module) {
  size_t begin = function.size() + 1, end = module.rfind('_');
  if (!module.starts_with(function + "_") || end == std::string::npos || end <= begin ||
      end + 1 == module.size() || module.find_first_not_of("0123456789", end + 1) != module.npos)
    return "";
  return module.substr(begin, end - begin);
}

/// The work of one launch: an operation, or half of one.
struct Part {
  const ProgramOp *op;
  std::vector<std::string> results;
};

/// Quantizers whose transform runs on tcgen05 have kernels called "transform", and their rowwise
/// half, where they have one, another called "quantize".
bool transforms(const ProgramOp &op) {
  auto it = op.attributes.find("columnwise_hadamard");
  return op.op == "fp4.quantize" && it != op.attributes.end() &&
         it->second.ends_with("tensor_core");
}

void appendTransform(std::vector<Part> &parts, const ProgramOp &op, const std::string &kind) {
  const size_t rowwise = op.results.size() == 4 ? 2 : 0;
  const auto middle = op.results.begin() + long(rowwise);
  if (kind == "transform")
    parts.push_back({&op, {middle, op.results.end()}});
  else if (kind == "quantize" && rowwise)
    parts.push_back({&op, {op.results.begin(), middle}});
}

/// The parts that have kernels of `kind`: operations of that name, or, if there are none, those
/// whose last words it is ("matmul" of fp4.blockscaled_matmul). `apart`: there are kernels that
/// transform.
std::vector<Part> partsOf(const std::vector<ProgramOp> &program, const std::string &kind,
                          bool apart) {
  if (kind == "amax_quantize") // the amax is an operand of the quantizer
    return partsOf(program, "quantize", apart);
  std::vector<Part> exact, alike;
  for (const ProgramOp &op : program)
    if (apart && transforms(op))
      appendTransform(exact, op, kind);
    else if (op.op == "fp4." + kind)
      exact.push_back({&op, op.results});
    else if (!kind.empty() && op.op.ends_with("_" + kind))
      alike.push_back({&op, op.results});
  return exact.empty() ? alike : exact;
}

/// Operations for the elements of a matmul, which need not be a result, and of a second matmul of
/// its lhs. A matmul of floats and weights has one rhs: its lhs has no scales in front of the rhs.
uint64_t flopsOf(const ProgramOp &op, const std::map<std::string, Type> &types) {
  constexpr size_t rhs2 = 7;
  const Type &lhs = types.at(op.operands[0]);
  uint64_t elements = types.at(op.results[0]).elements();
  if (op.attributes.contains("with_amax") || op.attributes.contains("quantize_recipe"))
    elements = uint64_t(lhs.shape[0]) * uint64_t(types.at(op.operands[2]).shape[0]);
  return (hasOperand(op, rhs2) ? 4 : 2) * elements * uint64_t(lhs.shape[1]);
}

Traffic trafficOf(const Part &part, const std::map<std::string, Type> &types) {
  Traffic traffic;
  for (const std::vector<std::string> *names : {&part.op->operands, &part.results})
    for (const std::string &name : *names)
      traffic.bytes += types.at(name).bufferBytes();
  if (part.op->op == "fp4.blockscaled_matmul")
    traffic.flops = flopsOf(*part.op, types);
  return traffic;
}

/// The traffic of the only kernel of a function, whatever it computes.
std::optional<Traffic> trafficOfFunction(const Function &function,
                                         const std::vector<Type> &arguments) {
  Traffic traffic;
  auto types = valueTypes(function.program, arguments);
  if (!types)
    return std::nullopt;
  for (const Type &argument : arguments)
    traffic.bytes += argument.bufferBytes();
  for (const std::string &name : function.returns) {
    auto type = types->find(name);
    if (type == types->end())
      return std::nullopt;
    traffic.bytes += type->second.bufferBytes();
  }
  return traffic;
}

} // namespace

std::vector<std::optional<Traffic>> launchTraffic(const Function &function,
                                                  std::span<const Tensor> arguments,
                                                  std::span<const std::string> modules) {
  std::vector<std::optional<Traffic>> traffics(modules.size());
  const std::vector<ProgramOp> &program =
      function.fused.empty() ? function.program : function.fused;
  std::vector<Type> argumentTypes;
  for (const Tensor &argument : arguments)
    argumentTypes.push_back(argument.type);
  auto types = valueTypes(program, argumentTypes);
  if (!types)
    return traffics;
  std::map<std::string, std::vector<size_t>> launches; ///< numbers of launches of each kind
  for (size_t i = 0; i < modules.size(); ++i)
    launches[kindOf(function.name, modules[i])].push_back(i);
  for (const auto &[kind, indices] : launches) {
    const std::vector<Part> parts = partsOf(program, kind, launches.contains("transform"));
    for (size_t k = 0; k < indices.size() && parts.size() == indices.size(); ++k)
      traffics[indices[k]] = trafficOf(parts[k], *types);
  }
  if (modules.size() == 1 && !traffics.front())
    traffics.front() = trafficOfFunction(function, argumentTypes);
  return traffics;
}

} // namespace fp4::harness
