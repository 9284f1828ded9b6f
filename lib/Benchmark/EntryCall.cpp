//===- EntryCall.cpp - Calling compiled host code -------------------------===//

#include "fp4/Benchmark/EntryCall.h"

#include "fp4/Program/EntryPoint.h"
#include "fp4/Reference/Descriptor.h"
#include "fp4/Reference/ProgramTypes.h"

#include <fmt/format.h>

namespace fp4::harness {
using namespace descriptor;

namespace {

Error badResult(const Operand &result, const std::string &what) {
  return {ErrorKind::Internal,
          fmt::format("the compiled code returned result '{}' {}", result.name, what),
          "the library and its manifest do not belong together, or the compiler is wrong"};
}

} // namespace

Status EntryCall::upload(std::span<const Tensor> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor &tensor = arguments[i];
    void *device = session_.allocate(tensor.bytes.size());
    if (!device)
      return session_.finish();
    FP4_TRY(session_.device().copyToDevice(reinterpret_cast<rt::DevicePtr>(device), tensor.bytes));
    arguments_.push_back(makeDescriptor(tensor.type, reinterpret_cast<uint64_t>(device)));
    if (function_.arguments[i].type.isDynamic() && !dynamicSize_)
      dynamicSize_ = tensor.type.shape[0];
  }
  std::vector<Type> types;
  for (const Tensor &tensor : arguments)
    types.push_back(tensor.type);
  if (auto values = valueTypes(function_.program, types)) // else descriptors have to do
    types_ = std::move(*values);
  return {};
}

Status EntryCall::call(EntryFunction entry) {
  results_.assign(resultWords(function_), 0);
  std::vector<void *> descriptors;
  if (!results_.empty())
    descriptors.push_back(results_.data());
  for (std::vector<uint64_t> &argument : arguments_)
    descriptors.push_back(argument.data());
  FP4_TRY(callEntry(session_, entry, function_, descriptors));
  return session_.finish();
}

Expected<std::vector<Tensor>> EntryCall::download() {
  std::vector<Tensor> tensors;
  const uint64_t *descriptor = results_.data();
  for (size_t i = 0; i < function_.results.size(); ++i) {
    FP4_ASSIGN(auto tensor, downloadOne(i, descriptor));
    tensors.push_back(std::move(tensor));
    descriptor += descriptorWords(function_.results[i].type);
  }
  return tensors;
}

Expected<Type> EntryCall::resolveResult(size_t i, const uint64_t *descriptor) const {
  const Operand &result = function_.results[i];
  Type type = result.type;
  const auto known =
      i < function_.returns.size() ? types_.find(function_.returns[i]) : types_.end();
  for (size_t dim = 0; dim < type.shape.size(); ++dim) {
    if (type.shape[dim] >= 0)
      continue;
    if (known != types_.end() && known->second.shape.size() == type.shape.size())
      type.shape[dim] = known->second.shape[dim];
    else // rows of a tiled scale buffer are those of the argument
      type.shape[dim] =
          type.layout == Layout::Tiled128x4 ? dynamicSize_ : int64_t(descriptor[kSizes + dim]);
  }
  std::vector<int64_t> expected = type.bufferShape();
  for (size_t dim = 0; dim < expected.size(); ++dim)
    if (uint64_t(expected[dim]) != descriptor[kSizes + dim])
      return tl::unexpected<Error>(
          badResult(result, fmt::format("with size {} of its buffer equal to {}, but {} has {}",
                                        dim, descriptor[kSizes + dim], type.str(), expected[dim])));
  return type;
}

Expected<Tensor> EntryCall::downloadOne(size_t i, const uint64_t *descriptor) {
  const Operand &result = function_.results[i];
  FP4_ASSIGN(auto type, resolveResult(i, descriptor));
  Tensor tensor(type);
  if (tensor.bytes.empty())
    return tensor;
  if (!descriptor[kAligned])
    return tl::unexpected<Error>(badResult(result, "without a buffer"));
  auto rows = rowPitch(type, descriptor);
  if (!rows)
    return tl::unexpected<Error>(badResult(result, "with " + rows.error().message));
  uint64_t address = descriptorAddress(type, descriptor);
  if (!rows->isDense()) { // pack the rows on the device first
    void *packed = session_.allocate(tensor.bytes.size());
    if (!packed)
      return tl::unexpected<Error>(session_.finish().error());
    FP4_TRY(session_.device().copy2D({reinterpret_cast<uint64_t>(packed), rows->width, address,
                                      rows->pitch, rows->width, rows->rows}));
    address = reinterpret_cast<uint64_t>(packed);
  }
  FP4_TRY(session_.device().copyToHost(tensor.bytes, address));
  return tensor;
}

} // namespace fp4::harness
