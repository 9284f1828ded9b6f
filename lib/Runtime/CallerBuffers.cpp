//===- CallerBuffers.cpp - Compiled functions on buffers of their callers -===//
//
// Calls from a program of another compiler to an entry point. An entry point makes its results, and
// the program has places for them. Buffers in host memory are copied to the device, and every
// result goes to its destination. A result on the device is made at its destination, unless another
// buffer of the call lies in the same place, or kernels could not address it.
//
//===----------------------------------------------------------------------===//

#include "fp4/Runtime/Session.h"

#include <fmt/format.h>

#include <algorithm>

namespace fp4::rt {
namespace {

/// A memref descriptor: {allocated, aligned, offset, sizes..., strides...}, 8 bytes each.
class Descriptor {
public:
  Descriptor(void *words, const fp4rt_memref_type &type)
      : words_(static_cast<uint64_t *>(words)), type_(type) {}

  static uint64_t wordsOf(const fp4rt_memref_type &type) { return 3 + 2 * uint64_t(type.rank); }

  int64_t size(uint32_t dimension) const { return static_cast<int64_t>(words_[3 + dimension]); }
  uint64_t address() const { return words_[1] + words_[2] * type_.element_bytes; }
  uint64_t allocated() const { return words_[0]; }

  uint64_t bytes() const {
    uint64_t bytes = type_.element_bytes;
    for (uint32_t i = 0; i < type_.rank; ++i)
      bytes *= words_[3 + i];
    return bytes;
  }

  /// Returns true for a row-major buffer without gaps; strides of dimensions of one element do not
  /// matter.
  bool isDense() const {
    int64_t stride = 1;
    for (uint32_t i = type_.rank; i-- > 0; stride *= size(i))
      if (size(i) != 1 && static_cast<int64_t>(words_[3 + type_.rank + i]) != stride)
        return false;
    return true;
  }

  std::string shape() const {
    std::string text;
    for (uint32_t i = 0; i < type_.rank; ++i)
      text += (i ? "x" : "") + std::to_string(size(i));
    return text.empty() ? "a scalar" : text;
  }

  bool hasShapeOf(const Descriptor &other) const {
    for (uint32_t i = 0; i < type_.rank; ++i)
      if (size(i) != other.size(i))
        return false;
    return true;
  }

  /// The descriptor of the same shape at another address.
  std::vector<uint64_t> at(void *address) const {
    std::vector<uint64_t> copy(words_, words_ + wordsOf(type_));
    copy[0] = copy[1] = reinterpret_cast<uint64_t>(address);
    copy[2] = 0;
    return copy;
  }

private:
  uint64_t *words_;
  fp4rt_memref_type type_;
};

Error notDense(const char *what, size_t index) {
  return {ErrorKind::Usage,
          fmt::format("{} {} of a compiled function must be dense and row-major", what, index),
          "copy it to a buffer without gaps; one-shot-bufferize does, where a call takes a memref "
          "without a layout"};
}

/// Executes one call.
class Call {
public:
  Call(Session &session, bool onHost, void *const *buffers, const fp4rt_memref_type *types,
       uint32_t numArguments, uint32_t numResults)
      : session(session), onHost(onHost) {
    for (uint32_t i = 0; i < numArguments; ++i)
      arguments.emplace_back(buffers[i], types[i]);
    uint64_t words = 0;
    for (uint32_t i = 0; i < numResults; ++i) {
      destinations.emplace_back(buffers[numArguments + i], types[numArguments + i]);
      words += Descriptor::wordsOf(types[numArguments + i]);
    }
    returned.resize(words);
    uint64_t *next = returned.data();
    for (uint32_t i = 0; i < numResults; next += Descriptor::wordsOf(types[numArguments + i++]))
      results.emplace_back(next, types[numArguments + i]);
    if (numResults)
      parameters.push_back(returned.data());
    parameters.insert(parameters.end(), buffers, buffers + numArguments);
  }

  /// The destinations that an entry point can write itself.
  std::vector<ResultBuffer> writable() const {
    std::vector<ResultBuffer> memory(destinations.size());
    for (size_t i = 0; i < destinations.size() && !onHost; ++i)
      if (destinations[i].address() % kAlignment == 0 && isAlone(destinations[i]))
        memory[i] = {destinations[i].address(), destinations[i].bytes()};
    return memory;
  }

  Status run(fp4_entry_function entry) {
    for (size_t i = 0; i < arguments.size(); ++i)
      FP4_TRY(pass(i));
    for (size_t i = 0; i < destinations.size(); ++i)
      if (!destinations[i].isDense())
        return tl::unexpected(notDense("destination", i));
    entry(parameters.data());
    for (size_t i = 0; i < results.size() && !session.failed(); ++i)
      FP4_TRY(receive(i));
    for (std::vector<uint64_t> &copy : copies)
      session.free(reinterpret_cast<void *>(copy[0]));
    return {};
  }

private:
  /// The alignment that fp4rt_alloc promises.
  static constexpr uint64_t kAlignment = 256;

  bool isAlone(const Descriptor &destination) const {
    auto overlaps = [&](const Descriptor &other) {
      return &other != &destination &&
             other.address() < destination.address() + destination.bytes() &&
             destination.address() < other.address() + other.bytes();
    };
    return std::ranges::none_of(arguments, overlaps) &&
           std::ranges::none_of(destinations, overlaps);
  }

  Status pass(size_t index) {
    const Descriptor &argument = arguments[index];
    if (!argument.isDense())
      return tl::unexpected(notDense("argument", index));
    if (!onHost)
      return {};
    void *memory = session.allocate(argument.bytes());
    copies.push_back(argument.at(memory));
    parameters[!results.empty() + index] = copies.back().data();
    if (session.failed())
      return {};
    std::span bytes(reinterpret_cast<const std::byte *>(argument.address()), argument.bytes());
    return session.device().copyToDevice(reinterpret_cast<DevicePtr>(memory), bytes);
  }

  Status receive(size_t index) {
    const Descriptor &from = results[index], &to = destinations[index];
    if (!from.hasShapeOf(to) || !from.isDense())
      return makeError(ErrorKind::Usage,
                       fmt::format("destination {} of a compiled function must be {}, but got {}",
                                   index, from.shape(), to.shape()),
                       "the sizes of a result follow from those of the arguments");
    if (from.address() == to.address())
      return {}; // the result was made there
    if (onHost) {
      std::span bytes(reinterpret_cast<std::byte *>(to.address()), to.bytes());
      FP4_TRY(session.device().copyToHost(bytes, from.address()));
    } else if (to.bytes()) {
      session.copy2D({to.address(), to.bytes(), from.address(), to.bytes(), to.bytes(), 1});
    }
    session.free(reinterpret_cast<void *>(from.allocated()));
    return {};
  }

  Session &session;
  bool onHost;
  std::vector<Descriptor> arguments, destinations, results;
  std::vector<uint64_t> returned;            ///< the descriptors that the entry point writes
  std::vector<std::vector<uint64_t>> copies; ///< descriptors of arguments on the device
  std::vector<void *> parameters;
};

} // namespace

void Session::call(fp4_entry_function entry, void *const *buffers, const fp4rt_memref_type *types,
                   uint32_t numArguments, uint32_t numResults) {
  if (failed())
    return;
  if (!entry || (numArguments + numResults && (!buffers || !types)))
    return fail({ErrorKind::Internal, "fp4rt_call expects an entry point and its buffers", ""});
  Call call(*this, callerMemory_ == CallerMemory::Host, buffers, types, numArguments, numResults);
  std::vector<ResultBuffer> outer = std::exchange(destinations_, call.writable());
  check(call.run(entry));
  destinations_ = std::move(outer);
}

} // namespace fp4::rt
