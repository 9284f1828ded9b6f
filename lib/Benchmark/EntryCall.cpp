//===- EntryCall.cpp - Calling compiled host code -------------------------===//

#include "fp4/Benchmark/EntryCall.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/Program/EntryPoint.h"
#include "fp4/Reference/Descriptor.h"
#include "fp4/Reference/ProgramTypes.h"

#include <algorithm>
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

/// The byte between the rows of strided results.
static constexpr uint8_t kGapByte = 0xB5;

/// Strides that no kernel can guess: a gap behind each row, and the matrices of a batch
/// interleaved.
static Strides stridesWithGaps(const Type &type) {
  const size_t rank = type.shape.size();
  const int64_t perByte = type.element == ElementType::F4E2M1FN ? 2 : 1;
  const int64_t rowBytes = hw::quotientUp(type.shape.back(), perByte) * type.storageBytes();
  const int64_t step = hw::quotientUp(rowBytes, kStrideBytes) * kStrideBytes + kStrideBytes;
  Strides strides(rank, 1);
  strides[0] = step * perByte / type.storageBytes();
  if (rank > 2)
    strides[1] = strides[0] * type.shape[0];
  return strides;
}

/// Copies the rows and nothing between them; on a GPU, the bytes there are NaN.
Status EntryCall::uploadRows(const Tensor &tensor) {
  rt::Device &device = session_.device();
  FP4_ASSIGN(auto words, makeDescriptor(tensor.type, stridesWithGaps(tensor.type)));
  const uint64_t bytes = stridedBytes(tensor.type, words);
  void *packed = session_.allocate(tensor.bytes.size()), *memory = session_.allocate(bytes);
  if (!packed || !memory)
    return session_.finish();
  const auto from = reinterpret_cast<uint64_t>(packed), to = reinterpret_cast<uint64_t>(memory);
  FP4_TRY(device.copyToDevice(from, tensor.bytes));
  if (device.isHardware())
    FP4_TRY(device.memset(to, 0xFF, bytes, 0));
  for (const MatrixRows &matrix : matricesOf(tensor.type, words))
    FP4_TRY(device.copy2D({to + matrix.offset, matrix.pitch, from + matrix.dense, matrix.width,
                           matrix.width, matrix.rows}));
  FP4_TRY(device.synchronize());
  session_.free(packed);
  words[kAllocated] = words[kAligned] = to;
  arguments_.push_back(std::move(words));
  return {};
}

Status EntryCall::uploadDense(const Tensor &tensor) {
  void *memory = session_.allocate(tensor.bytes.size());
  if (!memory)
    return session_.finish();
  const auto address = reinterpret_cast<uint64_t>(memory);
  FP4_TRY(session_.device().copyToDevice(address, tensor.bytes));
  arguments_.push_back(makeDescriptor(tensor.type, address));
  return {};
}

Status EntryCall::upload(std::span<const Tensor> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor &tensor = arguments[i];
    FP4_TRY(function_.arguments[i].strided ? uploadRows(tensor) : uploadDense(tensor));
    if (function_.arguments[i].type.isDynamic() && !dynamicSize_)
      dynamicSize_ = tensor.type.shape[0];
  }
  std::vector<Type> types;
  for (const Tensor &tensor : arguments)
    types.push_back(tensor.type);
  if (auto values = valueTypes(function_.program, types)) // otherwise descriptors must do
    types_ = std::move(*values);
  return {};
}

/// Allocates memory with a gap behind each row, which has a byte that no kernel writes by chance.
Status EntryCall::placeResult(size_t i, const Type &type) {
  FP4_ASSIGN(auto words, makeDescriptor(type, stridesWithGaps(type)));
  const uint64_t bytes = stridedBytes(type, words);
  void *memory = session_.allocate(bytes);
  if (!memory)
    return session_.finish();
  const auto address = reinterpret_cast<uint64_t>(memory);
  FP4_TRY(session_.device().memset(address, kGapByte, bytes, 0));
  places_[i] = {address, bytes, matricesOf(type, words).front().pitch};
  return {};
}

Status EntryCall::placeResults() {
  const auto isStrided = [](const Operand &result) { return result.strided; };
  if (!places_.empty() || std::ranges::none_of(function_.results, isStrided))
    return {};
  places_.resize(function_.results.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    const Operand &result = function_.results[i];
    const auto known =
        i < function_.returns.size() ? types_.find(function_.returns[i]) : types_.end();
    const Type &type = known == types_.end() ? result.type : known->second;
    if (result.strided && !type.isDynamic() && type.elements())
      FP4_TRY(placeResult(i, type));
  }
  return session_.device().synchronize();
}

Status EntryCall::checkGaps(size_t i, const Type &type) const {
  if (i >= places_.size() || !places_[i].address)
    return {};
  const uint64_t pitch = places_[i].pitch, rows = uint64_t(type.shape.front()),
                 width = type.bufferBytes() / rows;
  std::vector<std::byte> memory(places_[i].bytes);
  FP4_TRY(session_.device().copyToHost(memory, places_[i].address));
  for (uint64_t row = 0; row + 1 < rows; ++row)
    for (uint64_t at = row * pitch + width; at < (row + 1) * pitch; ++at)
      if (memory[at] != std::byte{kGapByte})
        return tl::unexpected<Error>(
            badResult(function_.results[i],
                      fmt::format("and wrote byte {} behind its row {}", at - row * pitch, row)));
  return {};
}

Status EntryCall::call(EntryFunction entry) {
  FP4_TRY(placeResults());
  session_.provideResults(places_);
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
  FP4_TRY(checkGaps(i, type));
  return tensor;
}

} // namespace fp4::harness
