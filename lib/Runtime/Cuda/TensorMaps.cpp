//===- TensorMaps.cpp - Tensor maps that the driver has encoded -----------===//

#include "CudaDevice.h"

#include <fmt/format.h>

#include <algorithm>

namespace fp4::rt {
using namespace cuda;

std::optional<TensorMaps::Key> TensorMaps::keyOf(const TensorMapRequest &request) {
  constexpr size_t most = 5; // dimensions of a map
  const size_t rank = request.dims.size();
  if (!request.lower.empty() || rank > most || request.strides.size() >= most ||
      request.box.size() > most || request.elementStrides.size() > most)
    return std::nullopt;
  Key key{request.base, uint64_t(uint32_t(request.elementType)) << 32 |
                            uint64_t(uint8_t(request.swizzle)) << 8 | rank};
  auto *next = key.data() + 2;
  auto append = [&](auto values, size_t places) {
    std::ranges::copy(values, next);
    next += places;
  };
  append(request.dims, most);
  append(request.strides, most - 1);
  append(request.box, most);
  append(request.elementStrides, most);
  return key;
}

size_t TensorMaps::Hash::operator()(const Key &key) const {
  uint64_t value = 0xCBF29CE484222325; // FNV-1a, a word at a time
  for (uint64_t word : key)
    value = (value ^ word) * 0x100000001B3;
  return value ^ value >> 32;
}

bool TensorMaps::find(const Key &key, std::span<std::byte, 128> out) {
  std::scoped_lock lock(mutex_);
  auto found = maps_.find(key);
  if (found == maps_.end())
    return false;
  std::ranges::copy(found->second, out.begin());
  return true;
}

void TensorMaps::keep(const Key &key, std::span<const std::byte, 128> map) {
  std::scoped_lock lock(mutex_);
  if (maps_.size() >= kMost)
    maps_.clear();
  std::ranges::copy(map, maps_[key].begin());
}

Status CudaDevice::encodeTensorMap(std::span<std::byte, 128> out, const TensorMapRequest &request) {
  const std::optional<TensorMaps::Key> key = TensorMaps::keyOf(request);
  if (key && maps_.find(*key, out))
    return {};
  FP4_TRY(encode(out, request));
  if (key)
    maps_.keep(*key, out);
  return {};
}

Status CudaDevice::encode(std::span<std::byte, 128> out, const TensorMapRequest &request) const {
  Entered entered(*this);
  FP4_TRY(entered.status);
  alignas(64) std::byte map[128];
  const uint32_t ones[5] = {1, 1, 1, 1, 1};
  const uint32_t *steps = request.elementStrides.empty() ? ones : request.elementStrides.data();
  const auto rank = uint32_t(request.dims.size());
  auto *base = reinterpret_cast<void *>(request.base);
  constexpr int noInterleave = 0, fillZeros = 0;
  const auto promotion = int(request.promotion());
  const std::string doing =
      fmt::format("encoding a tensor map of rank {} with element type {} and swizzle {}", rank,
                  request.elementType, request.swizzle);
  if (request.lower.empty())
    FP4_TRY(check(driver_.TensorMapEncodeTiled(map, request.elementType, rank, base,
                                               request.dims.data(), request.strides.data(),
                                               request.box.data(), steps, noInterleave,
                                               request.swizzle, promotion, fillZeros),
                  "cuTensorMapEncodeTiled", doing));
  else
    FP4_TRY(check(driver_.TensorMapEncodeIm2col(map, request.elementType, rank, base,
                                                request.dims.data(), request.strides.data(),
                                                request.lower.data(), request.upper.data(),
                                                request.box[0], request.box[1], steps, noInterleave,
                                                request.swizzle, promotion, fillZeros),
                  "cuTensorMapEncodeIm2col", doing));
  std::copy(std::begin(map), std::end(map), out.begin());
  return {};
}

} // namespace fp4::rt
