//===- Arguments.cpp - From a command line to the tensors a function gets -===//

#include "Arguments.h"

#include "fp4/Harness/Inputs.h"
#include "fp4/Harness/TensorNpy.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/Formats.h"
#include "fp4/Reference/ProgramTypes.h"
#include "fp4/Support/Host.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>

namespace fp4::harness {
namespace {

constexpr int64_t kDefaultRows = 256;
constexpr std::string_view kShaped = "MNK"; ///< the dimensions of --shape, in its order
constexpr const char *kFixedNote =
    "this size was fixed when the function was compiled; compile it for another";

Expected<int64_t> parseSize(const std::string &text, const char *option) {
  int64_t size = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0 || size > INT32_MAX)
    return makeError(ErrorKind::Usage, fmt::format("{} expects a size from 0 to {}, but got '{}'",
                                                   option, INT32_MAX, text));
  return size;
}

/// A dimension of an argument, and its entry of --shape.
struct ShapedDim {
  const Operand &argument;
  size_t dim, entry;
};

/// The dimensions of arguments that --shape M,N,K sizes: those that are called so; if there are
/// none, those of x, which is M x K, and w, which is N x K.
std::vector<ShapedDim> shapedDims(const Function &function) {
  std::vector<ShapedDim> dims;
  std::vector<const Operand *> matrices;
  bool named = false;
  for (const Operand &argument : function.arguments) {
    named |= !argument.dims.empty();
    if (argument.type.shape.size() == 2)
      matrices.push_back(&argument);
    for (size_t i = 0; i < argument.dims.size(); ++i)
      if (argument.dims[i].size() == 1 && kShaped.find(argument.dims[i]) != kShaped.npos)
        dims.push_back({argument, i, kShaped.find(argument.dims[i])});
  }
  if (named || matrices.empty())
    return dims;
  dims.push_back({*matrices[0], 0, 0});
  if (matrices.size() > 1)
    dims.push_back({*matrices[1], 0, 1});
  dims.push_back({*matrices[0], 1, 2});
  return dims;
}

/// Checks that the sizes of --shape are those the library was compiled for, and those of other
/// options: `types` are the types of arguments so far.
Status checkFixedShape(const Function &function, const std::vector<Type> &types,
                       const std::vector<int64_t> &shape) {
  for (const ShapedDim &dim : shapedDims(function)) {
    const Type &type = types[size_t(&dim.argument - function.arguments.data())];
    const int64_t fixed = type.shape[dim.dim];
    if (dim.entry < shape.size() && fixed >= 0 && fixed != shape[dim.entry])
      return makeError(ErrorKind::Usage,
                       fmt::format("--shape has {} = {}, but argument '{}' is {}", kShaped[dim.entry],
                                   shape[dim.entry], dim.argument.name, type.str()),
                       dim.argument.type.shape[dim.dim] < 0
                           ? "--dim or --input gave it this size"
                           : kFixedNote);
  }
  return {};
}

/// The state of one binding: values appear as they become known.
class Binder {
public:
  Binder(const Function &function, const RunOptions &options)
      : function_(function), options_(options), values_(function.arguments.size()) {
    bound_.sources.resize(values_.size());
    for (const Operand &argument : function.arguments)
      types_.push_back(argument.type);
  }

  Expected<BoundArguments> bind() {
    FP4_TRY(fixNamedSizes());
    FP4_TRY(loadFiles(/*ofTiles=*/false));
    FP4_TRY(checkFixedShape(function_, types_, options_.shape));
    fixKnownSizes();
    FP4_TRY(loadFiles(/*ofTiles=*/true)); // such files do not give their sizes
    fixCommonSize();
    FP4_TRY(checkMemory());
    FP4_TRY(generate());
    for (auto &value : values_)
      bound_.values.push_back(std::move(*value));
    return std::move(bound_);
  }

private:
  Status fixNamedSizes();
  bool isDimName(std::string_view name) const;
  Status fixDimension(std::string_view name, int64_t size);
  Status loadFiles(bool ofTiles);
  void fixKnownSizes();
  void fixCommonSize();
  Status checkMemory() const;
  bool isFactor(size_t index) const;
  uint64_t blocksOfTiles(size_t index, const std::map<std::string, Type> &types) const;
  std::optional<int64_t> rowsOfGroups(size_t index, const std::map<std::string, Type> &types) const;
  std::optional<int64_t> rowsOfMove(std::string_view move, size_t index,
                                    const std::map<std::string, Type> &types) const;
  std::string behindViews(std::string name) const;
  Status generate();

  const Function &function_;
  const RunOptions &options_;
  std::vector<Type> types_;
  std::vector<std::optional<Tensor>> values_;
  std::optional<int64_t> sizeFromFile_;
  BoundArguments bound_;
};

/// "M" of "M" and "M/16".
static std::string_view dimName(std::string_view dim) { return dim.substr(0, dim.find('/')); }

/// The number of elements of a dimension called "M" that are one of `dim`: 16 of "M/16", and 1 of
/// "M".
static int64_t unitOf(const std::string &dim) {
  const size_t slash = dim.find('/');
  return slash == std::string::npos ? 1 : std::max(1L, std::atol(dim.c_str() + slash + 1));
}

bool Binder::isDimName(std::string_view name) const {
  for (const Operand &argument : function_.arguments)
    for (const std::string &dim : argument.dims)
      if (dimName(dim) == name)
        return true;
  return false;
}

/// The size of `dim` if the dimension that it is named after has `size`: M or K of "M" and "K/16".
static int64_t sizeOfDim(const std::string &dim, int64_t size) {
  return (size + unitOf(dim) - 1) / unitOf(dim);
}

/// Fixes all dimensions that fp4.dims calls so; "M/16" gets as many scale blocks of 16 as M needs.
/// Static dimensions must have that size already.
Status Binder::fixDimension(std::string_view name, int64_t size) {
  for (size_t i = 0; i < types_.size(); ++i) {
    const Operand &argument = function_.arguments[i];
    for (size_t d = 0; d < argument.dims.size(); ++d) {
      if (dimName(argument.dims[d]) != name)
        continue;
      const int64_t wanted = sizeOfDim(argument.dims[d], size);
      int64_t &dim = types_[i].shape[d];
      if (dim >= 0 && dim != wanted)
        return makeError(ErrorKind::Usage,
                         fmt::format("--dim has {} = {}, but argument '{}' is {}", name, size,
                                     argument.name, types_[i].str()),
                         argument.type.shape[d] < 0 ? "another --dim gave it this size"
                                                    : kFixedNote);
      dim = wanted;
    }
  }
  return {};
}

Status Binder::fixNamedSizes() {
  for (const std::string &text : options_.dims) {
    FP4_ASSIGN(auto pair, splitAssignment(text, "--dim"));
    FP4_ASSIGN(auto size, parseSize(pair.second, "--dim"));
    auto index = findOperand(function_.arguments, pair.first, "argument");
    if (!index && isDimName(pair.first)) {
      FP4_TRY(fixDimension(pair.first, size));
      continue;
    }
    if (!index)
      return tl::unexpected<Error>(index.error());
    Type &type = types_[*index];
    if (!type.isDynamic())
      return makeError(ErrorKind::Usage,
                       fmt::format("--dim names argument '{}', which has no dynamic size: {}",
                                   pair.first, type.str()));
    for (int64_t &dim : type.shape)
      dim = dim < 0 ? size : dim;
  }
  return {};
}

Status Binder::loadFiles(bool ofTiles) {
  for (const std::string &text : options_.inputs) {
    FP4_ASSIGN(auto pair, splitAssignment(text, "--input"));
    FP4_ASSIGN(auto index, findOperand(function_.arguments, pair.first, "argument"));
    if ((types_[index].layout == Layout::Tiled128x4) != ofTiles)
      continue;
    FP4_ASSIGN(auto array, readNpy(pair.second));
    bool dynamic = types_[index].isDynamic();
    FP4_ASSIGN(auto tensor, fromNpy(array, types_[index], pair.first));
    types_[index] = tensor.type;
    if (dynamic && !sizeFromFile_)
      sizeFromFile_ = tensor.type.shape[0];
    values_[index] = std::move(tensor);
    bound_.sources[index] = pair.second;
  }
  return {};
}

/// Gives dimensions that fp4.dims names like others, or a part of them, the sizes of these, and
/// dynamic dimensions M, N and K the sizes of --shape M,N,K.
void Binder::fixKnownSizes() {
  std::map<std::string_view, int64_t> known;
  for (size_t i = 0; i < types_.size(); ++i) {
    const std::vector<std::string> &dims = function_.arguments[i].dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (!dims[d].empty() && types_[i].shape[d] >= 0 && dims[d] == dimName(dims[d]))
        known.try_emplace(dims[d], types_[i].shape[d]);
  }
  for (size_t entry = 0; entry < std::min(options_.shape.size(), kShaped.size()); ++entry)
    known.try_emplace(kShaped.substr(entry, 1), options_.shape[entry]);
  for (size_t i = 0; i < types_.size(); ++i) {
    const std::vector<std::string> &dims = function_.arguments[i].dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (auto size = known.find(dimName(dims[d])); size != known.end() && types_[i].shape[d] < 0)
        types_[i].shape[d] = sizeOfDim(dims[d], size->second);
  }
}

void Binder::fixCommonSize() {
  bool assumed = options_.shape.empty() && !sizeFromFile_;
  int64_t rows = !options_.shape.empty() ? options_.shape[0] : sizeFromFile_.value_or(kDefaultRows);
  bool used = false;
  for (size_t i = 0; i < types_.size(); ++i)
    for (size_t d = 0; d < types_[i].shape.size(); ++d)
      if (int64_t &dim = types_[i].shape[d]; dim < 0) {
        const std::vector<std::string> &dims = function_.arguments[i].dims;
        dim = d < dims.size() ? sizeOfDim(dims[d], rows) : rows;
        used = true;
      }
  if (assumed && used)
    bound_.notes.push_back(fmt::format("dynamic size taken as {}; choose it with --shape M", rows));
}

/// Checks that a machine can hold the sizes, since larger ones are a mistake and should be reported
/// as one. The arguments and all computed values count, each once on the device and once here, and
/// the reference's fp32 copy of elements that are no bytes.
Status Binder::checkMemory() const {
  const uint64_t memory = hostMemoryBytes();
  uint64_t sum = 0;
  auto add = [&](const Type &type) {
    const uint64_t bytes = type.bufferBytes(), copies = type.storageBytes() > 1 ? 4 : 2;
    sum = std::min(sum + std::min(bytes, memory) * copies, 2 * memory);
    return bytes;
  };
  for (size_t i = 0; i < types_.size(); ++i)
    if (uint64_t bytes = add(types_[i]); bytes > memory / 2)
      return makeError(ErrorKind::Usage,
                       fmt::format("argument '{}', {}, must fit half of this machine's {} bytes of "
                                   "memory, but has {}",
                                   function_.arguments[i].name, types_[i].str(), memory, bytes));
  if (auto values = valueTypes(function_.program, types_))
    for (const ProgramOp &op : function_.program)
      for (const std::string &name : op.results)
        add(values->at(name));
  if (sum > memory)
    return makeError(ErrorKind::Usage,
                     fmt::format("arguments, results and what is between them must fit this "
                                 "machine's {} bytes of memory, but have about {}",
                                 memory, sum),
                     "choose a smaller --shape");
  return {};
}

/// Places of operands in the definition of fp4.blockscaled_matmul.
enum MatmulOperand : size_t { kLhs, kLhsScales, kRhs, kRhsScales, kRhs2 = 7, kRhs2Scales };

static bool isAnyOf(const ProgramOp &op, const std::string &name,
                    std::initializer_list<MatmulOperand> places) {
  return std::ranges::any_of(places, [&](size_t at) { return operandAt(op, at) == name; });
}

/// Returns true when argument `index` is an operand of a matmul.
bool Binder::isFactor(size_t index) const {
  const std::string name = "a" + std::to_string(index);
  return std::ranges::any_of(function_.program, [&](const ProgramOp &op) {
    return op.op == "fp4.blockscaled_matmul" && isAnyOf(op, name, {kLhs, kRhs, kRhs2});
  });
}

/// Scales in a row of argument `index` if a grouped matmul takes it as a list of tiles, or 0.
uint64_t Binder::blocksOfTiles(size_t index, const std::map<std::string, Type> &types) const {
  const std::string name = "a" + std::to_string(index);
  if (types_[index].layout != Layout::Tiled128x4 || types.empty())
    return 0;
  for (const ProgramOp &op : function_.program) {
    if (!isGroupedGemm(op))
      continue;
    const bool isOfLhs = operandAt(op, kLhsScales) == name;
    if (!isOfLhs && !isAnyOf(op, name, {kRhsScales, kRhs2Scales}))
      continue;
    auto format = op.attributes.find(isOfLhs ? "format" : "rhs_format");
    format = format == op.attributes.end() ? op.attributes.find("format") : format;
    if (auto known = numerics::parseBlockFormat(format->second))
      return hw::scalesPerRow(uint64_t(types.at(op.operands[0]).shape.back()),
                              numerics::blockSizeOf(*known));
  }
  return 0;
}

/// The rows that argument `index` shares out among groups; nothing if it is another operand.
std::optional<int64_t> Binder::rowsOfGroups(size_t index,
                                            const std::map<std::string, Type> &types) const {
  const std::string name = "a" + std::to_string(index);
  for (const ProgramOp &op : function_.program)
    if (auto input = types.find(op.operands.empty() ? "" : op.operands[0]);
        offsetsOf(op) == name && input != types.end() && !input->second.shape.empty())
      return input->second.shape[0];
  return std::nullopt;
}

/// The value that another one is a view of.
std::string Binder::behindViews(std::string name) const {
  for (size_t i = function_.program.size(); i-- > 0;) {
    const ProgramOp &op = function_.program[i];
    const bool isView = op.op == "tensor.expand_shape" || op.op == "tensor.collapse_shape";
    if (isView && !op.results.empty() && op.results[0] == name)
      name = op.operands[0];
  }
  return name;
}

/// The rows among which argument `index` has row numbers of an operation `move`, "tensor.gather" or
/// "tensor.scatter"; nothing if it is another operand.
std::optional<int64_t> Binder::rowsOfMove(std::string_view move, size_t index,
                                          const std::map<std::string, Type> &types) const {
  const std::string name = "a" + std::to_string(index);
  for (const ProgramOp &op : function_.program) {
    if (op.op != move || op.operands.size() < 2 || behindViews(op.operands[1]) != name)
      continue;
    const auto matrix = types.find(move == "tensor.gather" ? op.operands[0] : op.results[0]);
    if (matrix != types.end() && !matrix->second.shape.empty())
      return matrix->second.shape[0];
  }
  return std::nullopt;
}

Status Binder::generate() {
  // Sizes that contradict each other are reported by the call.
  const auto types = valueTypes(function_.program, types_).value_or(std::map<std::string, Type>());
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i])
      continue;
    if (auto rows = rowsOfGroups(i, types)) {
      values_[i] = makeOffsets(types_[i], *rows, options_.seed, unsigned(i));
      bound_.sources[i] = fmt::format("groups of {} rows, seed {}", *rows, options_.seed);
      continue;
    }
    if (auto rows = rowsOfMove("tensor.gather", i, types)) {
      values_[i] = makeRowNumbers(types_[i], *rows, options_.seed, unsigned(i));
      bound_.sources[i] = fmt::format("rows below {}, seed {}", *rows, options_.seed);
      continue;
    }
    if (auto rows = rowsOfMove("tensor.scatter", i, types)) {
      values_[i] = makeSlots(types_[i], *rows, options_.seed, unsigned(i));
      bound_.sources[i] = fmt::format("slots of {}, seed {}", *rows, options_.seed);
      continue;
    }
    FP4_ASSIGN(auto tensor,
               makeInput(types_[i], options_.distribution, options_.seed, unsigned(i), isFactor(i)));
    if (uint64_t blocks = blocksOfTiles(i, types))
      clearTilePadding(tensor, blocks);
    values_[i] = std::move(tensor);
    bound_.sources[i] = types_[i].element == ElementType::I64
                            ? fmt::format("seed {}, offset {}", options_.seed, i)
                            : fmt::format("{}, seed {}", options_.distribution, options_.seed);
  }
  return {};
}

} // namespace

Expected<std::pair<std::string, std::string>> splitAssignment(const std::string &text,
                                                              const char *option) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects NAME=VALUE, but got '{}'", option, text));
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Expected<size_t> findOperand(const std::vector<Operand> &operands, const std::string &name,
                             const char *what) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == name)
      return i;
    names.push_back(operands[i].name);
  }
  return makeError(ErrorKind::Usage, fmt::format("the function has no {} named '{}'", what, name),
                   fmt::format("its {}s are {}", what, fmt::join(names, ", ")));
}

Expected<BoundArguments> bindArguments(const Function &function, const RunOptions &options) {
  return Binder(function, options).bind();
}

} // namespace fp4::harness
