//===- Reference.cpp - The program of a manifest, on the host -------------===//

#include "Interpreter.h"

#include <charconv>
#include <fmt/format.h>
#include <set>

namespace fp4::harness {
namespace {

/// The handler of an operation, and the attributes that the handler knows: an unknown one may
/// change the meaning of the operation.
struct Entry {
  Handler run;
  std::set<std::string_view> attributes = {};
};

Entry entryOfAttention() {
  return {runAttention, {"scale", "softcap", "causal", "window", "heads_first", "order", "latent"}};
}
Entry entryOfHadamardAmax() {
  return {runHadamardAmax, {"size", "dimension", "sign_mask", "arithmetic", "nan", "groups"}};
}

const std::map<std::string, Entry> &entries() {
  static const std::map<std::string, Entry> table = {
      {"arith.constant", {runConstant, {"value", "symbol"}}},
      {"tensor.cast", {runReshape}},
      {"tensor.collapse_shape", {runReshape, {"reassociation"}}},
      {"tensor.concat", {runConcat, {"dim"}}},
      {"tensor.empty", {runEmpty}},
      {"tensor.expand_shape", {runReshape, {"reassociation", "static_output_shape"}}},
      {"tensor.extract_slice", {runSlice, {"static_offsets", "static_sizes", "static_strides"}}},
      {"tensor.gather", {runGather, {"gather_dims", "unique"}}},
      {"tensor.scatter", {runScatter, {"scatter_dims", "unique"}}},
      {"linalg.generic", {runElementwise, {"program", "dimensions"}}},
      {"linalg.reduce", {runRowReduction, {"program", "dimensions", "combination", "initial"}}},
      {"linalg.transpose", {runTranspose, {"permutation"}}},
      {"fp4.amax", {runAmax, {"nan", "groups", "per_row", "per_column"}}},
      {"fp4.attention", entryOfAttention()},
      {"fp4.attention_backward", {runAttentionBackward, {"scale", "softcap", "causal", "window"}}},
      {"fp4.hadamard", {runHadamard, {"size", "dimension", "sign_mask", "arithmetic"}}},
      {"fp4.hadamard_amax", entryOfHadamardAmax()},
      {"fp4.quantize",
       {runQuantize,
        {"format", "recipe", "rounding", "outputs", "block", "hadamard", "columnwise_hadamard",
         "philox", "groups", "per_row", "unspecified_rows"}}},
      {"fp4.dequantize", {runDequantize, {"format", "recipe", "per_row"}}},
      {"fp4.swizzle_scales", {runSwizzle}},
      {"fp4.unswizzle_scales", {runUnswizzle}},
      {"fp4.stack_scales", {runStackScales}},
      {"fp4.interleave_shards", {runInterleaveShards, {"shards"}}},
      {"fp4.expert_order", {runExpertOrder, {"experts", "first", "multiple"}}},
      {"fp4.top_k", {runTopK, {"k", "num_groups", "top_groups"}}},
      {"fp4.prepack", {runPrepack, {"format", "groups"}}},
      {"fp4.unprepack", {runUnprepack, {"format", "groups"}}},
      {"fp4.matmul_alpha", {runAlpha, {"lhs_recipe", "rhs_recipe", "per_group"}}},
      {"fp4.blockscaled_matmul",
       {runMatmul,
        {"format", "rhs_format", "epilogue", "split_k", "split_rows", "stream_k", "groups",
         "expected_rows", "unspecified_rows", "arithmetic", "program", "quantize_recipe",
         "quantize_outputs"}}}};
  return table;
}

Status checkAttributes(const ProgramOp &op, const Entry &entry) {
  for (const auto &[name, value] : op.attributes)
    if (name != "operand_segments" && !entry.attributes.contains(name))
      return badProgram(
          op, fmt::format("has the attribute '{}', which the reference does not know", name));
  return {};
}

/// Runs one operation at a time; values have names.
class Interpreter {
public:
  Interpreter(unsigned threads, const DataResolver &data, const hw::TargetModel &target)
      : threads_(threads), data_(data), target_(target) {}

  void define(const std::string &name, Tensor value) {
    values_[name] = ReferenceValue{.value = std::move(value)};
  }
  Status run(const ProgramOp &op);
  Status passUnspecified(Step &step) const;
  Expected<ReferenceValue> value(const std::string &name) const;

private:
  unsigned threads_;
  const DataResolver &data_;
  const hw::TargetModel &target_;
  std::map<std::string, ReferenceValue> values_;
};

/// Returns true when `op` reads the groups that `value`, an operand of it, has, and no other row.
static bool readsSameGroups(const ProgramOp &op, const std::string &name,
                            const ReferenceValue &value) {
  constexpr size_t first = 0, lhsScales = 1;
  return !value.offsets.empty() && offsetsOf(op) == value.offsets &&
         (operandAt(op, first) == name || (isGroupedGemm(op) && operandAt(op, lhsScales) == name));
}

Status Interpreter::run(const ProgramOp &op) {
  auto entry = entries().find(op.op);
  if (entry == entries().end())
    return badProgram(op, "is not known to the reference");
  FP4_TRY(checkAttributes(op, entry->second));
  std::vector<const Tensor *> operands;
  std::vector<Type> operandTypes;
  for (const std::string &name : op.operands) {
    auto it = values_.find(name);
    if (it == values_.end())
      return badProgram(op, fmt::format("uses '{}', which is not defined", name));
    if (!it->second.unspecified.empty() && entry->second.run != runReshape &&
        entry->second.run != runElementwise && !readsSameGroups(op, name, it->second))
      return makeError(
          ErrorKind::Usage,
          fmt::format("operation '{}' uses rows that 'unspecified_rows' leaves as they "
                      "are, so there is no reference",
                      op.op),
          "leave the attribute out, or run it with --no-verify");
    operands.push_back(&it->second.value);
    operandTypes.push_back(it->second.value.type);
  }
  FP4_ASSIGN(auto types, resultTypes(op, operandTypes));
  Step step(op, std::move(operands), std::move(types), threads_, data_, target_);
  FP4_TRY(entry->second.run(step));
  if (entry->second.run == runReshape) { // a GEMM in another shape is judged as a GEMM
    ReferenceValue same = values_.at(op.operands[0]);
    same.value = std::move(step.results[0].value);
    step.results[0] = std::move(same);
  }
  if (entry->second.run == runElementwise)
    FP4_TRY(passUnspecified(step));
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!step.results[i].unspecified.empty() && step.results[i].offsets.empty())
      step.results[i].offsets = offsetsOf(op);
    values_[op.results[i]] = std::move(step.results[i]);
  }
  return {};
}

/// Marks rows of an elementwise operation's results as unspecified if those of an operand are.
Status Interpreter::passUnspecified(Step &step) const {
  const auto dimensions = operandDimensions(step.op);
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const ReferenceValue &from = values_.at(step.op.operands[i]);
    if (from.unspecified.empty())
      continue;
    const std::vector<int64_t> &shape = from.value.type.shape;
    if (shape != step.types[0].shape || dimensions[i].empty() || dimensions[i][0] != 0)
      return makeError(ErrorKind::Usage,
                       fmt::format("operation '{}' moves rows that 'unspecified_rows' leaves as "
                                   "they are, so there is no reference",
                                   step.op.op),
                       "leave the attribute out, or run it with --no-verify");
    const uint64_t rows = std::max<uint64_t>(1, uint64_t(shape[0]));
    const uint64_t pitch = from.value.bytes.size() / rows;
    const bool isFirst = step.results[0].unspecified.empty();
    for (ReferenceValue &result : step.results) {
      result.offsets = isFirst || result.offsets == from.offsets ? from.offsets : "";
      for (const ByteRange &range : from.unspecified) {
        const uint64_t ofResult = result.value.bytes.size() / rows;
        result.unspecified.push_back(
            {range.begin / pitch * ofResult, range.size / pitch * ofResult});
      }
    }
  }
  for (ReferenceValue &result : step.results)
    clearUnspecified(result.value, result.unspecified);
  return {};
}

Expected<ReferenceValue> Interpreter::value(const std::string &name) const {
  auto it = values_.find(name);
  if (it == values_.end())
    return makeError(ErrorKind::Usage, fmt::format("manifest: value '{}' is not defined", name));
  return it->second;
}

} // namespace

//===----------------------------------------------------------------------===//
// Step
//===----------------------------------------------------------------------===//

numerics::FloatType floatType(ElementType type) {
  return type == ElementType::BF16       ? numerics::FloatType::BF16
         : type == ElementType::F16      ? numerics::FloatType::F16
         : type == ElementType::F8E4M3FN ? numerics::FloatType::E4M3
                                         : numerics::FloatType::F32;
}

std::vector<float> floats(const Tensor &tensor) {
  return numerics::decodeFloats(floatType(tensor.type.element), tensor.bytes);
}

Status Step::expect(size_t operandCount, size_t resultCount) const {
  if (operands.size() < operandCount)
    return wrong(fmt::format("has no operand {}", operands.size()));
  if (op.results.size() != resultCount)
    return wrong(fmt::format("must have {} result{}, but has {}", resultCount,
                             resultCount == 1 ? "" : "s", op.results.size()));
  return {};
}

/// The operands that exist are told by "operand_segments", "1,0,1": one number per operand of the
/// operation's definition. Without that attribute, all operands are there, or missing from the end.
Expected<std::span<const Tensor *const>> Step::segment(size_t i) const {
  const std::span<const Tensor *const> all = operands;
  auto it = op.attributes.find("operand_segments");
  if (it == op.attributes.end())
    return i < all.size() ? all.subspan(i, 1) : all.first(0);
  size_t number = 0, before = 0;
  for (const char *at = it->second.data(), *last = at + it->second.size(); at < last; ++at) {
    size_t count = 0;
    at = std::from_chars(at, last, count).ptr;
    if (count > all.size() - before)
      return wrong(fmt::format("has fewer operands than its segments '{}'", it->second));
    if (number++ == i)
      return all.subspan(before, count);
    before += count;
  }
  return wrong(fmt::format("has no operand segment {}", i));
}

Expected<const Tensor *> Step::optional(size_t i) const {
  FP4_ASSIGN(auto found, segment(i));
  return found.size() == 1 ? found.front() : nullptr;
}

Expected<std::string> Step::attribute(const char *name) const {
  auto it = op.attributes.find(name);
  if (it == op.attributes.end())
    return wrong(fmt::format("has no attribute '{}'", name));
  return it->second;
}

std::string Step::attributeOr(const char *name, const char *otherwise) const {
  auto it = op.attributes.find(name);
  return it == op.attributes.end() ? otherwise : it->second;
}

Expected<uint64_t> Step::integer(const char *name, uint64_t otherwise) const {
  auto it = op.attributes.find(name);
  if (it == op.attributes.end())
    return otherwise;
  uint64_t value = 0;
  const std::string &text = it->second;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return wrong(fmt::format("expects a number as '{}', but got '{}'", name, text));
  return value;
}

Expected<std::pair<uint64_t, uint64_t>> Step::matrix(size_t i) const {
  const Type &type = operands[i]->type;
  if (type.shape.size() != 2)
    return wrong(fmt::format("must have a matrix as operand {}, but got {}", i, type.str()));
  return std::pair{uint64_t(type.shape[0]), uint64_t(type.shape[1])};
}

Status Step::define(size_t i, std::span<const uint8_t> bytes) {
  const Type &type = types[i];
  if (bytes.size() != type.bufferBytes())
    return wrong(fmt::format("has a result of type {}, which holds {} bytes, but {} were computed",
                             type.str(), type.bufferBytes(), bytes.size()));
  Tensor tensor;
  tensor.type = type;
  tensor.bytes.assign(std::as_bytes(bytes).begin(), std::as_bytes(bytes).end());
  results[i] = ReferenceValue{.value = std::move(tensor)};
  return {};
}

Status Step::defineFloats(size_t i, std::span<const float> values) {
  std::vector<std::byte> bytes = numerics::encodeFloats(floatType(types[i].element), values);
  return define(i, {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

Expected<std::vector<ReferenceValue>> runReference(const Function &function,
                                                   std::span<const Tensor> arguments,
                                                   unsigned threads, const DataResolver &data,
                                                   const hw::TargetModel *target) {
  Interpreter interpreter(threads, data, target ? *target : hw::targets().front());
  for (size_t i = 0; i < arguments.size(); ++i)
    interpreter.define("a" + std::to_string(i), arguments[i]);
  for (const ProgramOp &op : function.program)
    FP4_TRY(interpreter.run(op));
  std::vector<ReferenceValue> results;
  for (const std::string &name : function.returns) {
    FP4_ASSIGN(auto value, interpreter.value(name));
    results.push_back(std::move(value));
  }
  return results;
}

} // namespace fp4::harness
