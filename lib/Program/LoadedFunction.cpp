//===- LoadedFunction.cpp - Calls of one function on device buffers -------===//

#include "fp4/Program/Program.h"

#include "fp4/Program/EntryPoint.h"
#include "fp4/Reference/Descriptor.h"
#include "fp4/Reference/ProgramTypes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4 {
using namespace harness;

namespace {

Status checkType(const Operand &operand, const Type &given) {
  const Type &type = operand.type;
  bool fits = type.element == given.element && type.layout == given.layout &&
              type.shape.size() == given.shape.size();
  for (size_t i = 0; fits && i < type.shape.size(); ++i)
    fits = type.shape[i] < 0 ? given.shape[i] >= 0 : type.shape[i] == given.shape[i];
  if (fits)
    return {};
  return makeError(ErrorKind::Usage, fmt::format("argument '{}' must be {}, but got {}",
                                                 operand.name, type.str(), given.str()));
}

/// Checks memory of an operand; `kind` is "argument" or "result".
Status checkMemory(const char *kind, const Operand &operand, const Type &type, uint64_t needed,
                   const Memory &memory) {
  if (memory.bytes < needed)
    return makeError(ErrorKind::Usage,
                     fmt::format("{} '{}' must have {} bytes for {}, but got {}", kind,
                                 operand.name, needed, type.str(), memory.bytes));
  if (memory.address % 16 != 0 || (!memory.address && needed))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} '{}' must start at a multiple of 16 bytes, but got {:#x}",
                                 kind, operand.name, memory.address));
  return {};
}

Status checkCount(const char *what, size_t expected, size_t given) {
  if (expected == given)
    return {};
  return makeError(ErrorKind::Usage, fmt::format("the function expects {} {}{}, but got {}",
                                                 expected, what, expected == 1 ? "" : "s", given));
}

/// Reports hazards that the simulator found since there were `before`, also if an earlier call had
/// them too.
Status newHazards(const rt::Device &device, uint64_t before) {
  const uint64_t found = device.hazardCount() - before;
  if (!found)
    return {};
  const std::vector<std::string> reports = device.hazardsSince(before);
  // A simulator describes only so many hazards in its life.
  const uint64_t number = reports.empty() ? found : reports.size();
  std::string text = fmt::format("{} hazard{} found", number, number == 1 ? "" : "s");
  for (const std::string &report : reports)
    text += "\n" + report;
  return makeError(ErrorKind::Hazard, std::move(text),
                   "the emitted code is wrong, or it was called with buffers that overlap");
}

Expected<std::vector<Type>> typesOfResults(const Function &function,
                                           std::span<const Type> arguments) {
  FP4_TRY(checkCount("argument", function.arguments.size(), arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    FP4_TRY(checkType(function.arguments[i], arguments[i]));
  auto isDynamic = [](const Operand &operand) { return operand.type.isDynamic(); };
  const bool anyResult = std::ranges::any_of(function.results, isDynamic);
  std::vector<Type> types;
  for (const Operand &result : function.results)
    types.push_back(result.type);
  if (!anyResult && std::ranges::none_of(function.arguments, isDynamic))
    return types;
  if (anyResult && !function.hasProgram)
    return makeError(ErrorKind::Usage,
                     fmt::format("the sizes of the results of '{}' are dynamic, and its manifest "
                                 "has no program that would tell them",
                                 function.name),
                     "give the arguments static sizes");
  FP4_ASSIGN(auto values, valueTypes(function.program, arguments));
  for (size_t i = 0; anyResult && i < types.size(); ++i)
    types[i] = values.at(function.returns[i]);
  return types;
}

void append(const std::vector<uint64_t> &descriptor, std::vector<uint64_t> &words,
            std::vector<size_t> &offsets) {
  offsets.push_back(words.size());
  words.insert(words.end(), descriptor.begin(), descriptor.end());
}

/// The descriptor of an argument without its address.
Expected<std::vector<uint64_t>> argumentDescriptor(const Operand &operand, const Type &type,
                                                   const Strides &strides) {
  if (!strides.empty() && !operand.strided)
    return makeError(ErrorKind::Usage,
                     fmt::format("argument '{}' must be dense, but got strides ({})", operand.name,
                                 fmt::join(strides, ", ")),
                     "give the argument the attribute fp4.strided in the program, or pass a copy");
  if (!operand.strided)
    return makeDescriptor(type, 0);
  Strides dense(type.shape.size(), 1);
  for (size_t i = dense.size(); i-- > 1;)
    dense[i - 1] = dense[i] * type.shape[i];
  auto words = makeDescriptor(type, strides.empty() ? dense : strides);
  if (!words)
    words.error().message = fmt::format("argument '{}': {}", operand.name, words.error().message);
  return words;
}

} // namespace

Expected<CallPlan> LoadedFunction::planOf(const Function &function, std::span<const Type> arguments,
                                          std::span<const Strides> strides) {
  CallPlan plan;
  FP4_ASSIGN(plan.results, typesOfResults(function, arguments));
  plan.arguments.assign(arguments.begin(), arguments.end());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Operand &operand = function.arguments[i];
    FP4_ASSIGN(auto words,
               argumentDescriptor(operand, arguments[i], strides.empty() ? Strides() : strides[i]));
    plan.argumentBytes.push_back(operand.strided ? stridedBytes(arguments[i], words)
                                                 : arguments[i].bufferBytes());
    append(words, plan.argumentWords, plan.argumentOffsets);
  }
  for (const Type &type : plan.results) {
    plan.resultBytes.push_back(type.bufferBytes());
    append(makeDescriptor(type, 0), plan.resultWords, plan.resultOffsets);
  }
  return plan;
}

Expected<Memory> LoadedFunction::placeOf(const Function &function, const CallPlan &plan,
                                         size_t index, const Buffer &buffer) {
  const Operand &operand = function.results[index];
  const Type &type = plan.results[index];
  if (buffer.type != type)
    return makeError(ErrorKind::Usage, fmt::format("result '{}' is {}, but the buffer is for {}",
                                                   operand.name, type.str(), buffer.type.str()));
  Memory memory{buffer.address, buffer.bytes};
  if (buffer.strides.empty())
    return memory;
  if (!operand.strided)
    return makeError(ErrorKind::Usage,
                     fmt::format("result '{}' must be dense, but got strides ({})", operand.name,
                                 fmt::join(buffer.strides, ", ")),
                     "give the result the attribute fp4.strided in the program, or take a dense "
                     "result and copy its rows");
  auto words = makeDescriptor(type, buffer.strides);
  if (!words) {
    words.error().message = fmt::format("result '{}': {}", operand.name, words.error().message);
    return tl::unexpected<Error>(words.error());
  }
  memory.pitch = (*words)[descriptor::kSizes + type.shape.size()] * type.storageBytes();
  return memory;
}

/// Executes a call step by step.
class LoadedFunction::Call {
public:
  Call(const LoadedFunction &loaded, const CallPlan &plan, const CallOptions &options)
      : loaded_(loaded), function_(loaded.function_), plan_(plan), options_(options) {}

  Status check(std::span<const Memory> arguments, std::span<const Memory> results) const {
    FP4_TRY(checkCount("argument", function_.arguments.size(), arguments.size()));
    FP4_TRY(checkCount("result", function_.results.size(), results.size()));
    for (size_t i = 0; i < arguments.size(); ++i)
      FP4_TRY(checkMemory("argument", function_.arguments[i], plan_.arguments[i],
                          plan_.argumentBytes[i], arguments[i]));
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].address)
        FP4_TRY(checkMemory("result", function_.results[i], plan_.results[i],
                            bytesOf(i, results[i].pitch), results[i]));
    return {};
  }

  Status run(std::span<const Memory> arguments, std::span<Memory> results) {
    rt::Session session(loaded_.loaded_.device(), sessionOptions(results));
    words_.reserve(plan_.resultWords.size() + plan_.argumentWords.size());
    words_.resize(plan_.resultWords.size());
    words_.insert(words_.end(), plan_.argumentWords.begin(), plan_.argumentWords.end());
    std::vector<void *> descriptors;
    descriptors.reserve(1 + arguments.size());
    if (!plan_.resultWords.empty())
      descriptors.push_back(words_.data());
    for (size_t i = 0; i < arguments.size(); ++i) {
      uint64_t *descriptor = words_.data() + plan_.resultWords.size() + plan_.argumentOffsets[i];
      descriptor[descriptor::kAllocated] = descriptor[descriptor::kAligned] = arguments[i].address;
      descriptors.push_back(descriptor);
    }
    FP4_TRY(callEntry(session, loaded_.entry_, function_, descriptors));
    FP4_TRY(session.status());
    FP4_TRY(loaded_.loaded_.device().groupReports().take(&loaded_.loaded_.cache()));
    return takeResults(session, results);
  }

private:
  rt::SessionOptions sessionOptions(std::span<const Memory> results) const {
    rt::SessionOptions options{.stream = options_.stream,
                               .allocator = options_.allocator,
                               .results = {results.begin(), results.end()},
                               .cache = &loaded_.loaded_.cache(),
                               .measure = false};
    for (size_t i = 0; i < results.size(); ++i)
      if (!isPlaced(i, results[i].pitch))
        options.results[i] = {};
    return options;
  }

  /// Bytes of a row of result `i`, a matrix.
  uint64_t rowBytes(size_t i) const {
    const Type &type = plan_.results[i];
    return uint64_t(type.bufferShape().back()) * type.storageBytes();
  }

  /// Bytes of result `i` whose rows are `pitch` apart, or without gaps where that is 0.
  uint64_t bytesOf(size_t i, uint64_t pitch) const {
    if (!pitch || !plan_.resultBytes[i])
      return plan_.resultBytes[i];
    return (uint64_t(plan_.results[i].shape.front()) - 1) * pitch + rowBytes(i);
  }

  /// Returns true when the function writes the rows where the caller wants them. Packed rows of
  /// dynamic length are padded (docs/guides/libraries.md), and so are those of strided results if they are
  /// not multiples of 16 bytes.
  bool isPlaced(size_t i, uint64_t pitch) const {
    const Operand &result = function_.results[i];
    if (result.strided)
      return pitch || rowBytes(i) % kStrideBytes == 0;
    const std::vector<int64_t> &shape = result.type.shape;
    return shape.size() < 2 || shape.back() >= 0 || result.type.element != ElementType::F4E2M1FN ||
           rowBytes(i) % kStrideBytes == 0;
  }

  /// Hands results that nobody provided to the caller, and packs padded rows.
  Status takeResults(rt::Session &session, std::span<Memory> results) const {
    std::vector<Memory> taken(results.begin(), results.end());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!plan_.resultBytes[i])
        continue; // a result without elements needs no memory
      FP4_ASSIGN(taken[i].address, resultAddress(session, i, results[i]));
      taken[i].bytes = std::max(results[i].bytes, plan_.resultBytes[i]);
    }
    for (size_t i = 0; i < results.size(); ++i)
      session.handOver(reinterpret_cast<void *>(taken[i].address));
    std::ranges::copy(taken, results.begin());
    return {};
  }

  /// The address of result `i`: `provided`, if that has an address, else rows without gaps.
  Expected<uint64_t> resultAddress(rt::Session &session, size_t i, const Memory &provided) const {
    const Type &type = plan_.results[i];
    const uint64_t *words = words_.data() + plan_.resultOffsets[i];
    const uint64_t address = descriptorAddress(type, words);
    if (provided.pitch ? provided.address == address
                       : isDense(i) && (!provided.address || provided.address == address))
      return address;
    FP4_ASSIGN(auto rows, rowPitch(type, words));
    void *packed = provided.address ? reinterpret_cast<void *>(provided.address)
                                    : session.allocate(type.bufferBytes());
    session.copy2D({reinterpret_cast<uint64_t>(packed), rows.width, address, rows.pitch, rows.width,
                    rows.rows});
    session.free(reinterpret_cast<void *>(address));
    FP4_TRY(session.status());
    return reinterpret_cast<uint64_t>(packed);
  }

  /// Returns true when the strides that the entry point wrote are those of a dense buffer.
  bool isDense(size_t i) const {
    const size_t begin = plan_.resultOffsets[i];
    const size_t end =
        i + 1 < plan_.resultOffsets.size() ? plan_.resultOffsets[i + 1] : plan_.resultWords.size();
    const size_t rank = (end - begin - descriptor::kSizes) / 2;
    return std::equal(words_.begin() + ptrdiff_t(end - rank), words_.begin() + ptrdiff_t(end),
                      plan_.resultWords.begin() + ptrdiff_t(end - rank));
  }

  const LoadedFunction &loaded_;
  const Function &function_;
  const CallPlan &plan_;
  const CallOptions &options_;
  std::vector<uint64_t> words_; ///< descriptors of the results, then those of the arguments
};

Status LoadedFunction::call(const CallPlan &plan, std::span<const Memory> arguments,
                            std::span<Memory> results, const CallOptions &options) const {
  const rt::Device &device = loaded_.device();
  const uint64_t hazards = device.hazardCount();
  Call call(*this, plan, options);
  FP4_TRY(call.check(arguments, results));
  Status status = call.run(arguments, results);
  Status found = newHazards(device, hazards);
  if (!status && !found) // hazards may be the reason
    status.error().message += "\n" + found.error().message;
  return status ? found : status;
}

} // namespace fp4
