//===- TensorMapCall.h - A call of cuTensorMapEncode... -------------------===//
#pragma once

#include "fp4/ISA/TensorMap.h"

namespace fp4::hw::test {

/// The arguments, as cuda.h numbers them.
struct TensorMapCall {
  uint32_t im2col = 0, type = 0, rank = 0, interleave = 0, swizzle = 0, promotion = 0, fill = 0;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 4> strides{};
  std::array<uint32_t, 5> box{}, steps{};
  std::array<int32_t, 3> lower{}, upper{};
  uint32_t channels = 0, pixels = 0;

  /// The map of the call; nothing where the simulator does not have its swizzle.
  std::optional<TensorMap> map() const {
    const auto mode = swizzleFromTensorMapCode(swizzle);
    if (!mode)
      return std::nullopt;
    TensorMap map;
    map.elementType = TensorMapType(type);
    map.rank = rank;
    map.address = address;
    map.swizzle = *mode;
    map.interleave = TensorMapInterleave(interleave);
    map.promotion = TensorMapL2Promotion(promotion);
    map.oobFill = TensorMapOobFill(fill);
    for (unsigned i = 0; i < rank && i < TensorMap::maxRank; ++i) {
      map.dims[i] = dims[i];
      map.box[i] = box[i];
      map.elementStrides[i] = steps[i];
      if (i + 1 < rank && i < strides.size())
        map.strides[i] = strides[i];
    }
    if (im2col) {
      map.box = {channels, pixels, 1, 1, 1};
      map.pixels = TensorMap::PixelBox{};
      for (unsigned i = 0; i + 2 < rank && i < 3; ++i) {
        map.pixels->lower[i] = lower[i];
        map.pixels->upper[i] = upper[i];
      }
    }
    return map;
  }
};

} // namespace fp4::hw::test
