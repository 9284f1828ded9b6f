//===- Foreign.cpp - Calls with tensors of other frameworks ---------------===//

#include "Foreign.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>

using namespace fp4;
using namespace fp4::capi;
using harness::ElementType;
using harness::Layout;
using harness::Operand;
using harness::Type;

namespace {

constexpr ForeignType kByte = {1, 8};

/// The types that a buffer of this element may have; the first is its own.
std::vector<ForeignType> typesOf(ElementType element) {
  switch (element) {
  case ElementType::BF16:
    return {{4, 16}, {1, 16}};
  case ElementType::F16:
    return {{2, 16}};
  case ElementType::F32:
    return {{2, 32}};
  case ElementType::I64:
    return {{0, 64}};
  case ElementType::I32:
    return {{0, 32}};
  case ElementType::I8:
    return {kByte, {0, 8}};
  case ElementType::F8E4M3FN:
    return {{10, 8}, kByte};
  case ElementType::F8E5M2:
    return {{12, 8}, kByte};
  case ElementType::F8E8M0FNU:
    return {{14, 8}, kByte};
  case ElementType::F4E2M1FN:
  case ElementType::F6E2M3FN:
  case ElementType::F6E3M2FN:
    return {kByte};
  }
  return {};
}

std::string nameOf(ForeignType type) {
  constexpr std::array<const char *, 5> kNames = {"int", "uint", "float", "opaque", "bfloat"};
  if (type.code < kNames.size())
    return fmt::format("{}{}", kNames[type.code], type.bits);
  for (ElementType element : {ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F8E8M0FNU})
    if (typesOf(element).front() == type)
      return std::string(harness::spelling(element));
  return fmt::format("a type of code {} and {} bits", type.code, type.bits);
}

std::string nameOf(const Foreign &tensor) {
  return fmt::format("{}[{}]", nameOf(tensor.type), fmt::join(tensor.shape, ", "));
}

Status checkType(const std::string &what, const Type &type, const Foreign &given) {
  const std::vector<ForeignType> types = typesOf(type.element);
  if (std::ranges::find(types, given.type) != types.end())
    return {};
  std::vector<std::string> names;
  for (ForeignType one : types)
    names.push_back(nameOf(one));
  return makeError(ErrorKind::Usage,
                   fmt::format("{} must be {} ({}), but got {}", what, type.str(),
                               fmt::join(names, " or "), nameOf(given)),
                   "nothing is converted: pass a tensor of this dtype");
}

int64_t elementsOf(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

/// The logical sizes of a linear operand.
Expected<std::vector<int64_t>> linearSizes(const std::string &what, const Type &type,
                                           const Foreign &given) {
  const std::vector<int64_t> pattern = type.bufferShape();
  const bool fits = std::ranges::equal(pattern, given.shape, [](int64_t wanted, int64_t size) {
    return size >= 0 && (wanted < 0 || wanted == size);
  });
  if (!fits)
    return makeError(
        ErrorKind::Usage,
        fmt::format("{} must be {}, a tensor of shape [{}], but got {}", what, type.str(),
                    fmt::join(pattern, ", "), nameOf(given)),
        "-1 is any size; other sizes are part of the program: pad the tensor, or compile for its "
        "shape");
  std::vector<int64_t> sizes = type.shape;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0)
      sizes[i] =
          given.shape[i] * (type.element == ElementType::F4E2M1FN && i + 1 == sizes.size() ? 2 : 1);
  return sizes;
}

using Named = std::map<std::string, int64_t>;

/// The logical sizes of tiled scales, whose buffer does not tell them.
Expected<std::vector<int64_t>> tiledSizes(const std::string &what, const Operand &operand,
                                          const Foreign &given, const Named &named) {
  Type type = operand.type;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    auto found = i < operand.dims.size() ? named.find(operand.dims[i]) : named.end();
    if (type.shape[i] >= 0)
      continue;
    if (found == named.end())
      return makeError(
          ErrorKind::Usage,
          fmt::format("{} is {}, and its buffer does not tell its rows", what, operand.type.str()),
          "name the dimension with fp4.dims on this and on another argument");
    type.shape[i] = found->second;
  }
  const std::vector<int64_t> shape = type.bufferShape();
  const std::array flat = {int64_t(type.bufferBytes())};
  if (!std::ranges::equal(given.shape, shape) && !std::ranges::equal(given.shape, flat))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} must be tiled scales of shape [{}] or [{}], but got {}", what,
                                 fmt::join(shape, ", "), flat[0], nameOf(given)),
                     "linear scales are never tiled silently");
  return type.shape;
}

/// Makes sizes that have one name equal.
Status unite(const std::string &what, const Operand &operand, const std::vector<int64_t> &sizes,
             Named &named) {
  for (size_t i = 0; i < std::min(sizes.size(), operand.dims.size()); ++i) {
    const std::string &name = operand.dims[i];
    if (name.empty() || name.find('/') != std::string::npos)
      continue;
    auto [found, isNew] = named.try_emplace(name, sizes[i]);
    if (found->second != sizes[i])
      return makeError(ErrorKind::Usage,
                       fmt::format("{} must have {} for dimension '{}', as another argument has, "
                                   "but got {}",
                                   what, found->second, name, sizes[i]),
                       "arguments with one dimension have one size in a call");
  }
  return {};
}

bool isDense(const Foreign &given) {
  int64_t expected = 1;
  for (size_t i = given.shape.size(); i-- > 0; expected *= given.shape[i])
    if (given.shape[i] != 1 && given.strides[i] != expected)
      return elementsOf(given.shape) == 0;
  return true;
}

/// Gives `tensor` the rows of `given`, where the operand may have gaps between them.
Status placeRows(const std::string &what, const Operand &operand, const Foreign &given,
                 fp4_tensor &tensor) {
  if (given.strides.empty() || isDense(given))
    return {};
  const size_t last = given.shape.size() - 1;
  if (!operand.strided || given.strides[last] != 1)
    return makeError(
        ErrorKind::Usage,
        fmt::format("{} must be contiguous and row-major, but its strides are [{}]", what,
                    fmt::join(given.strides, ", ")),
        "no copy is made: pass a contiguous tensor; one with fp4.strided may have gaps "
        "between rows");
  if (std::ranges::min(given.strides) < 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("{} must have strides of at least 0, but they are [{}]", what,
                                 fmt::join(given.strides, ", ")),
                     "pass a copy whose rows are in order");
  const int64_t perElement = tensor.element == FP4_F4E2M1FN ? 2 : 1;
  uint64_t end = uint64_t(given.shape[last]);
  for (size_t i = 0; i < last; ++i) {
    tensor.strides[i] = given.strides[i] * perElement;
    end += uint64_t(given.shape[i] - 1) * uint64_t(given.strides[i]);
  }
  tensor.strides[last] = 1;
  tensor.bytes = end * operand.type.storageBytes();
  return {};
}

Status checkCount(const std::string &name, const char *what, size_t expected, size_t got) {
  if (expected == got)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("'{}' expects {} {}, but got {}", name, expected, what, got),
                   "the arguments are followed by one tensor for each result");
}

Expected<fp4_tensor> argumentOf(const Operand &operand, const Foreign &given, Named &named) {
  const std::string what = fmt::format("argument '{}'", operand.name);
  FP4_TRY(checkType(what, operand.type, given));
  auto found = operand.type.layout == Layout::Tiled128x4 ? tiledSizes(what, operand, given, named)
                                                         : linearSizes(what, operand.type, given);
  FP4_ASSIGN(auto sizes, std::move(found));
  FP4_TRY(unite(what, operand, sizes, named));
  if (sizes.size() > FP4_MAX_RANK)
    return makeError(ErrorKind::Usage,
                     fmt::format("{} must have a rank of at most {}, but got {}", what,
                                 int(FP4_MAX_RANK), sizes.size()),
                     "merge leading dimensions");
  const Type type = {sizes, operand.type.element, operand.type.layout};
  fp4_tensor tensor = {};
  tensor.address = given.address;
  tensor.bytes = type.bufferBytes();
  tensor.element = int32_t(type.element);
  tensor.layout = int32_t(type.layout);
  tensor.rank = int32_t(sizes.size());
  std::ranges::copy(sizes, tensor.sizes);
  FP4_TRY(placeRows(what, operand, given, tensor));
  return tensor;
}

/// The memory of an operand: rows of `width` bytes, one every `pitch` bytes. Nobody touches the
/// bytes between rows.
struct Extent {
  uint64_t begin, end, width, pitch;

  static Extent of(const fp4_tensor &tensor) {
    Extent found = {tensor.address, tensor.address + tensor.bytes, tensor.bytes, tensor.bytes};
    if (tensor.rank != 2 || tensor.strides[0] == 0 || tensor.sizes[0] < 2)
      return found;
    found.pitch =
        Type{{tensor.strides[0]}, ElementType(tensor.element), Layout::Linear}.bufferBytes();
    found.width = tensor.bytes - uint64_t(tensor.sizes[0] - 1) * found.pitch;
    return found;
  }

  bool overlaps(const Extent &other) const {
    if (begin == end || other.begin == other.end || begin >= other.end || other.begin >= end)
      return false;
    if (pitch != other.pitch)
      return true;
    const auto &[first, second] = std::minmax(
        *this, other, [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
    const uint64_t distance = (second.begin - first.begin) % pitch; // columns of one array
    return distance < first.width || distance + second.width > pitch;
  }
};

/// Refuses results that overlap an argument or another result: kernels read arguments while they
/// write results.
Status requireOwnMemory(const harness::Function &function, std::span<const fp4_tensor> arguments,
                        std::span<const fp4_tensor> results) {
  std::vector<std::pair<std::string, Extent>> all;
  for (size_t i = 0; i < results.size(); ++i)
    all.emplace_back(fmt::format("result '{}'", function.results[i].name), Extent::of(results[i]));
  for (size_t i = 0; i < arguments.size(); ++i)
    all.emplace_back(fmt::format("argument '{}'", function.arguments[i].name),
                     Extent::of(arguments[i]));
  for (size_t one = 0; one < results.size(); ++one)
    for (size_t other = one + 1; other < all.size(); ++other)
      if (all[one].second.overlaps(all[other].second))
        return makeError(ErrorKind::Usage,
                         fmt::format("{} must have memory of its own, but overlaps {}",
                                     all[one].first, all[other].first),
                         "pass another tensor for the result");
  return {};
}

/// Device memory of one call in the simulator.
class Copies {
public:
  explicit Copies(fp4_device *device) : device_(device) {}
  Copies(const Copies &) = delete;
  ~Copies() {
    for (uint64_t address : owned_) // the error of the call is the one to tell
      OwnedError(fp4_device_free(device_, address));
  }

  /// Copies a tensor to the device, and gives it the address there.
  OwnedError upload(fp4_tensor &tensor) {
    const void *source = reinterpret_cast<const void *>(tensor.address);
    uint64_t address = 0;
    if (fp4_error *error = fp4_device_allocate(device_, tensor.bytes, &address))
      return OwnedError(error);
    owned_.push_back(address);
    tensor.address = address;
    return OwnedError(tensor.bytes ? fp4_device_copy_to(device_, address, source, tensor.bytes)
                                   : nullptr);
  }

private:
  fp4_device *device_;
  std::vector<uint64_t> owned_;
};

} // namespace

Expected<std::vector<fp4_tensor>> capi::argumentsOf(const harness::Function &function,
                                                    std::span<const Foreign> given) {
  FP4_TRY(checkCount(function.name, "arguments", function.arguments.size(), given.size()));
  std::vector<fp4_tensor> tensors(given.size());
  Named named;
  for (bool areTiled : {false, true})
    for (size_t i = 0; i < given.size(); ++i)
      if ((function.arguments[i].type.layout == Layout::Tiled128x4) == areTiled) {
        FP4_ASSIGN(tensors[i], argumentOf(function.arguments[i], given[i], named));
      }
  return tensors;
}

Status capi::placeResults(const harness::Function &function, std::span<const Foreign> given,
                          std::span<fp4_tensor> described) {
  FP4_TRY(checkCount(function.name, "results", function.results.size(), given.size()));
  for (size_t i = 0; i < given.size(); ++i) {
    Operand operand = function.results[i];
    operand.type.shape.assign(described[i].sizes, described[i].sizes + described[i].rank);
    const std::string what = fmt::format("result '{}'", operand.name);
    FP4_TRY(checkType(what, operand.type, given[i]));
    if (operand.type.layout == Layout::Tiled128x4) {
      FP4_TRY(tiledSizes(what, operand, given[i], {}));
    } else {
      FP4_TRY(linearSizes(what, operand.type, given[i]));
    }
    FP4_TRY(placeRows(what, operand, given[i], described[i]));
    described[i].address = given[i].address;
  }
  return {};
}

Deployment &Deployment::of(const fp4_program &program) {
  static std::mutex mutex;
  static auto &all = *new std::map<const Program *, Deployment *>;
  std::scoped_lock lock(mutex);
  Deployment *&kept = all[program.program.get()];
  if (!kept)
    kept = new Deployment(program);
  return *kept;
}

/// Opens a GPU, or a simulator of `target`, once in a process.
static OwnedError openOnce(const std::string &selector, const std::string &target,
                           fp4_device *&device) {
  static std::mutex mutex;
  static auto &all = *new std::map<std::pair<std::string, std::string>, fp4_device *>;
  const bool isSim = selector == "sim";
  std::scoped_lock lock(mutex);
  fp4_device *&kept = all[{selector, isSim ? target : ""}];
  fp4_device_options options = {};
  options.size = sizeof(options);
  options.target = isSim ? target.c_str() : nullptr;
  OwnedError error(kept ? nullptr : fp4_device_open(selector.c_str(), &options, &kept));
  device = kept;
  return error;
}

OwnedError Deployment::placeOn(const std::string &selector, Place &place) {
  std::scoped_lock lock(mutex_);
  Place &kept = places_[selector];
  if (!kept.executable) {
    if (OwnedError error = openOnce(selector, manifest().target, kept.device))
      return error;
    if (fp4_error *error = fp4_executable_create(&program_, kept.device, &kept.executable))
      return OwnedError(error);
  }
  place = kept;
  return nullptr;
}

OwnedError Deployment::prepare(const std::string &selector, const harness::Function &function,
                               std::span<const Foreign> arguments, std::span<const Foreign> results,
                               Prepared &prepared) {
  auto tensors = argumentsOf(function, arguments);
  if (!tensors)
    return OwnedError(wrap(tensors.error()));
  prepared.arguments = std::move(*tensors);
  prepared.results.resize(function.results.size());
  const char *name = function.name.c_str();
  if (fp4_error *error = fp4_program_describe(&program_, name, prepared.arguments.data(),
                                              prepared.arguments.size(), prepared.results.data(),
                                              prepared.results.size()))
    return OwnedError(error);
  if (Status status = placeResults(function, results, prepared.results); !status)
    return OwnedError(wrap(status));
  if (Status status = requireOwnMemory(function, prepared.arguments, prepared.results); !status)
    return OwnedError(wrap(status));
  if (OwnedError error = placeOn(selector, prepared.place))
    return error;
  return OwnedError(
      fp4_executable_get_function(prepared.place.executable, name, &prepared.function));
}

OwnedError Deployment::callOnHost(const harness::Function &function,
                                  std::span<const Foreign> arguments,
                                  std::span<const Foreign> results) {
  Prepared call;
  if (OwnedError error = prepare("sim", function, arguments, results, call))
    return error;
  Copies copies(call.place.device);
  for (fp4_tensor &tensor : call.arguments)
    if (OwnedError error = copies.upload(tensor))
      return error;
  std::vector<uint64_t> outputs;
  for (fp4_tensor &tensor : call.results) { // rows that no scatter writes stay as they are
    outputs.push_back(tensor.address);
    if (OwnedError error = copies.upload(tensor))
      return error;
  }
  if (fp4_error *error =
          fp4_function_call(call.function, call.arguments.data(), call.arguments.size(),
                            call.results.data(), call.results.size(), nullptr))
    return OwnedError(error);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (call.results[i].bytes)
      if (fp4_error *error =
              fp4_device_copy_from(call.place.device, reinterpret_cast<void *>(outputs[i]),
                                   call.results[i].address, call.results[i].bytes))
        return OwnedError(error);
  return nullptr;
}

/// Refuses arguments that could disagree about a size and nobody would notice: nothing stops a
/// kernel on a GPU that reads beyond a buffer which is too small.
static Status requireNames(const harness::Function &function) {
  auto isDynamic = [](const Operand &operand) { return operand.type.isDynamic(); };
  if (std::ranges::count_if(function.arguments, isDynamic) < 2)
    return {};
  for (const Operand &operand : function.arguments)
    for (size_t i = 0; i < operand.type.shape.size(); ++i)
      if (operand.type.shape[i] < 0 && (i >= operand.dims.size() || operand.dims[i].empty()))
        return makeError(
            ErrorKind::Usage,
            fmt::format("argument '{}' must name its dynamic sizes on a GPU, but is {} "
                        "without a name",
                        operand.name, operand.type.str()),
            "give sizes that are equal one name with fp4.dims");
  return {};
}

OwnedError Deployment::callOnCuda(int ordinal, const harness::Function &function,
                                  std::span<const Foreign> arguments,
                                  std::span<const Foreign> results,
                                  const fp4_call_options &options) {
  if (Status status = requireNames(function); !status)
    return OwnedError(wrap(status));
  Prepared call;
  if (OwnedError error =
          prepare(fmt::format("cuda:{}", ordinal), function, arguments, results, call))
    return error;
  return OwnedError(fp4_function_call(call.function, call.arguments.data(), call.arguments.size(),
                                      call.results.data(), call.results.size(), &options));
}
