//===- DriverTensorMap.cpp - Tensor maps of the driver API ----------------===//
#include "EntryPoint.h"
#include "fp4/ISA/TensorMap.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

/// Fields that maps of tiles and of columns of pixels have in common.
struct TensorDescription {
  int type, interleave, swizzle, promotion, fill;
  unsigned rank;
  void *address;
  const uint64_t *dims, *strides;
  const uint32_t *elementStrides;
};

constexpr int lastSwizzle = 6; // of cuda.h

/// Completes `map`, which has its box, and writes the 128 bytes of the driver.
int encodeMap(const char *name, void *out, const TensorDescription &tensor, hw::TensorMap map) {
  map.elementType = static_cast<hw::TensorMapType>(tensor.type);
  map.rank = tensor.rank;
  map.address = reinterpret_cast<uint64_t>(tensor.address);
  for (unsigned i = 0; i < tensor.rank; ++i) {
    map.dims[i] = tensor.dims[i];
    map.elementStrides[i] = tensor.elementStrides[i];
    if (i + 1 < tensor.rank)
      map.strides[i] = tensor.strides[i];
  }
  map.interleave = static_cast<hw::TensorMapInterleave>(tensor.interleave);
  map.oobFill = static_cast<hw::TensorMapOobFill>(tensor.fill);
  map.promotion = static_cast<hw::TensorMapL2Promotion>(tensor.promotion);
  auto mode = hw::swizzleFromTensorMapCode(static_cast<unsigned>(tensor.swizzle));
  if (!mode) {
    const bool known = tensor.swizzle >= 0 && tensor.swizzle <= lastSwizzle;
    return context().fail(name,
                          known && context().chip().major() >= 10 ? NotSupported : InvalidValue,
                          fmt::format("swizzle mode {} is not simulated", tensor.swizzle));
  }
  map.swizzle = *mode;
  if (context().tracing())
    context().trace(fmt::format("{}: {} at {}, dims {}, strides {}, box {}, swizzle {}", name,
                                hw::stringify(map.elementType), tensor.address,
                                fmt::join(tensor.dims, tensor.dims + tensor.rank, "x"),
                                fmt::join(tensor.strides, tensor.strides + tensor.rank - 1, ","),
                                fmt::join(map.box.begin(), map.box.begin() + tensor.rank, "x"),
                                tensor.swizzle));
  if (Status valid = map.validateFor(context().chip().model()); !valid)
    return context().fail(name, InvalidValue, valid.error().message, valid.error().note);
  const hw::TensorMap::Encoded encoded = map.pack();
  std::memcpy(out, encoded.data(), encoded.size());
  return Success;
}

} // namespace

FP4_ENTRY int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides,
                                     const uint32_t *box, const uint32_t *elementStrides,
                                     int interleave, int swizzle, int promotion, int fill) {
  FP4_REQUIRE(out && dims && (strides || rank == 1) && box && elementStrides && rank >= 1 &&
              rank <= 5);
  hw::TensorMap map;
  std::copy_n(box, rank, map.box.begin());
  return encodeMap(
      __func__, out,
      {type, interleave, swizzle, promotion, fill, rank, address, dims, strides, elementStrides},
      map);
}

FP4_ENTRY int cuTensorMapEncodeIm2col(void *out, int type, unsigned rank, void *address,
                                      const uint64_t *dims, const uint64_t *strides,
                                      const int *lower, const int *upper, unsigned channels,
                                      unsigned pixels, const uint32_t *elementStrides,
                                      int interleave, int swizzle, int promotion, int fill) {
  FP4_REQUIRE(out && dims && strides && lower && upper && elementStrides && rank >= 3 && rank <= 5);
  hw::TensorMap map;
  map.box = {channels, pixels, 1, 1, 1};
  map.pixels.emplace();
  std::copy_n(lower, rank - 2, map.pixels->lower.begin());
  std::copy_n(upper, rank - 2, map.pixels->upper.begin());
  return encodeMap(
      __func__, out,
      {type, interleave, swizzle, promotion, fill, rank, address, dims, strides, elementStrides},
      map);
}

FP4_ENTRY int cuTensorMapReplaceAddress(void *encoded, void *address) {
  FP4_REQUIRE(encoded);
  const std::span<std::byte, hw::TensorMap::usedBytes> bytes(static_cast<std::byte *>(encoded),
                                                             hw::TensorMap::usedBytes);
  auto map = hw::TensorMap::decode(bytes);
  if (!map)
    return context().fail(__func__, InvalidValue, map.error().message, map.error().note);
  map->address = reinterpret_cast<uint64_t>(address);
  if (Status valid = map->validate(); !valid)
    return context().fail(__func__, InvalidValue, valid.error().message, valid.error().note);
  (void)hw::TensorMap::replace(bytes, hw::TensorMapField::GlobalAddress, 0, map->address);
  return Success;
}
