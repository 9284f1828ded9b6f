//===- LoadedProgram.cpp - Calls of emitted functions on device buffers ---===//

#include "fp4/Program/Program.h"

#include "fp4/Program/EntryPoint.h"
#include "fp4/Reference/Descriptor.h"
#include "fp4/Reference/ProgramTypes.h"
#include "fp4/Sim/Instruments.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4 {
using namespace harness;

namespace {

Status checkType(const Operand &operand, const Type &given) {
  const Type &type = operand.type;
  bool fits = type.element == given.element && type.layout == given.layout &&
              type.shape.size() == given.shape.size();
  for (size_t i = 0; fits && i < type.shape.size(); ++i)
    fits = type.shape[i] < 0 ? given.shape[i] > 0 : type.shape[i] == given.shape[i];
  if (fits)
    return {};
  return makeError(ErrorKind::Usage, fmt::format("argument '{}' must be {}, but got {}",
                                                 operand.name, type.str(), given.str()));
}

/// `kind` is "argument" or "result".
Status checkBuffer(const char *kind, const Operand &operand, const Buffer &buffer) {
  const uint64_t needed = buffer.type.bufferBytes();
  if (buffer.bytes < needed)
    return makeError(ErrorKind::Usage,
                     fmt::format("{} '{}' must have {} bytes for {}, but got {}", kind,
                                 operand.name, needed, buffer.type.str(), buffer.bytes));
  if (buffer.address % 16 != 0 || (!buffer.address && needed))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} '{}' must start at a multiple of 16 bytes, but got {:#x}",
                                 kind, operand.name, buffer.address));
  return {};
}

Status checkCount(const char *what, size_t expected, size_t given) {
  if (expected == given)
    return {};
  return makeError(ErrorKind::Usage, fmt::format("the function expects {} {}{}, but got {}",
                                                 expected, what, expected == 1 ? "" : "s", given));
}

/// Those that the simulator found since there were `before`.
Status newHazards(rt::Device &device, size_t before) {
  const sim::Instruments *instruments = device.instruments();
  if (!instruments)
    return {};
  std::vector<sim::HazardReport> reports = instruments->hazards();
  if (reports.size() <= before)
    return {};
  std::string text = fmt::format("{} hazard{} found", reports.size() - before,
                                 reports.size() - before == 1 ? "" : "s");
  for (size_t i = before; i < reports.size(); ++i)
    text += "\n" + reports[i].text();
  return makeError(ErrorKind::Simulation, std::move(text),
                   "the emitted code is wrong, or it was called with buffers that overlap");
}

size_t hazardCount(const rt::Device &device) {
  return device.instruments() ? device.instruments()->hazards().size() : 0;
}

} // namespace

Expected<std::vector<Type>> LoadedProgram::resultTypes(const Function &function,
                                                       std::span<const Type> arguments) const {
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

/// One call, step by step.
class LoadedProgram::Call {
public:
  Call(LoadedProgram &loaded, const Function &function, const CallOptions &options)
      : loaded_(loaded), device_(loaded.device_), function_(function), options_(options) {}

  Status check(std::span<const Buffer> arguments, std::span<Buffer> results) {
    FP4_TRY(checkCount("result", function_.results.size(), results.size()));
    std::vector<Type> types;
    for (const Buffer &argument : arguments)
      types.push_back(argument.type);
    FP4_ASSIGN(resultTypes_, loaded_.resultTypes(function_, types));
    for (size_t i = 0; i < arguments.size(); ++i)
      FP4_TRY(checkBuffer("argument", function_.arguments[i], arguments[i]));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].address)
        continue;
      if (results[i].type != resultTypes_[i])
        return makeError(ErrorKind::Usage,
                         fmt::format("result '{}' is {}, but the buffer is for {}",
                                     function_.results[i].name, resultTypes_[i].str(),
                                     results[i].type.str()));
      FP4_TRY(checkBuffer("result", function_.results[i], results[i]));
    }
    return {};
  }

  Status run(std::span<const Buffer> arguments, std::span<Buffer> results) {
    FP4_ASSIGN(void *address, loaded_.program_->resolve(function_.symbol));
    rt::Session session(device_, sessionOptions(results));
    std::vector<std::vector<uint64_t>> descriptors;
    for (const Buffer &argument : arguments)
      descriptors.push_back(makeDescriptor(argument.type, argument.address));
    FP4_TRY(callEntry(session, reinterpret_cast<fp4_entry_function>(address), function_,
                      descriptors, results_));
    FP4_TRY(session.status());
    return takeResults(session, results);
  }

private:
  rt::SessionOptions sessionOptions(std::span<const Buffer> results) const {
    rt::SessionOptions options{.stream = options_.stream,
                               .allocator = options_.allocator,
                               .cache = &loaded_.cache_,
                               .measure = false};
    for (size_t i = 0; i < results.size(); ++i)
      options.results.push_back(isPacked(i) ? rt::ResultBuffer{results[i].address, results[i].bytes}
                                            : rt::ResultBuffer{});
    return options;
  }

  /// The function writes rows without gaps. Rows of dynamic length are padded (docs/Libraries.md).
  bool isPacked(size_t result) const {
    const std::vector<int64_t> &shape = function_.results[result].type.shape;
    return shape.size() < 2 || shape.back() >= 0;
  }

  /// Results that nobody provided go to the caller, and padded rows are packed.
  Status takeResults(rt::Session &session, std::span<Buffer> results) {
    const uint64_t *words = results_.data();
    std::vector<Buffer> taken(results.begin(), results.end());
    for (size_t i = 0; i < results.size(); ++i) {
      FP4_ASSIGN(taken[i].address, resultAddress(session, i, words, results[i].address));
      taken[i].type = resultTypes_[i];
      taken[i].bytes = std::max(results[i].bytes, resultTypes_[i].bufferBytes());
      words += descriptorWords(function_.results[i].type);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      session.handOver(reinterpret_cast<void *>(taken[i].address));
      results[i] = std::move(taken[i]);
    }
    return {};
  }

  /// Where result `i` is, in rows without gaps: at `provided`, if that is not null.
  Expected<uint64_t> resultAddress(rt::Session &session, size_t i, const uint64_t *words,
                                   uint64_t provided) const {
    const Type &type = resultTypes_[i];
    FP4_ASSIGN(auto rows, rowPitch(type, words));
    uint64_t address = descriptorAddress(type, words);
    if (rows.isDense() && (!provided || provided == address))
      return address;
    void *packed =
        provided ? reinterpret_cast<void *>(provided) : session.allocate(type.bufferBytes());
    session.copy2D({reinterpret_cast<uint64_t>(packed), rows.width, address, rows.pitch, rows.width,
                    rows.rows});
    session.free(reinterpret_cast<void *>(address));
    FP4_TRY(session.status());
    return reinterpret_cast<uint64_t>(packed);
  }

  LoadedProgram &loaded_;
  rt::Device &device_;
  const Function &function_;
  const CallOptions &options_;
  std::vector<Type> resultTypes_;
  std::vector<uint64_t> results_; ///< descriptors, one after the other
};

Status LoadedProgram::call(const Function &function, std::span<const Buffer> arguments,
                           std::span<Buffer> results, const CallOptions &options) {
  const size_t hazards = hazardCount(device_);
  Call call(*this, function, options);
  FP4_TRY(call.check(arguments, results));
  Status status = call.run(arguments, results);
  Status found = newHazards(device_, hazards);
  return status ? found : status;
}

} // namespace fp4
