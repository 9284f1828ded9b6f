//===- TensorMapRequestTest.cpp - Encoding of tensor maps -----------------===//

#include "SimulatorDevice.h"

#include "fp4/ISA/TensorMap.h"

#include <array>

namespace fp4::rt {
namespace {

constexpr int32_t kBytes = 0; // CU_TENSOR_MAP_DATA_TYPE_UINT8

/// Returns the promotion of the map of 8 x 128 bytes in lines of `line` bytes.
hw::TensorMapL2Promotion promotionOf(hw::SwizzleMode swizzle, uint32_t line) {
  std::unique_ptr<Device> device = simulator();
  const std::array<uint64_t, 2> dims = {128, 8};
  const std::array<uint64_t, 1> strides = {128};
  const std::array<uint32_t, 2> box = {line, 8};
  TensorMapRequest request{.base = 1 << 20,
                           .elementType = kBytes,
                           .swizzle = int32_t(swizzle),
                           .dims = dims,
                           .strides = strides,
                           .box = box};
  alignas(64) std::array<std::byte, 128> map = {};
  Status encoded = device->encodeTensorMap(map, request);
  EXPECT_TRUE(encoded);
  auto decoded = hw::TensorMap::decode(std::span(map).first<hw::TensorMap::usedBytes>());
  EXPECT_TRUE(decoded);
  return decoded->promotion;
}

// The next 128 bytes of a row belong to the next k tile. Other lines may be all that anyone reads.
TEST(TensorMapRequest, MissesOfTheWidestLinesFetchTheNextOnes) {
  EXPECT_EQ(promotionOf(hw::SwizzleMode::B128, 128), hw::TensorMapL2Promotion::B256);
  EXPECT_EQ(promotionOf(hw::SwizzleMode::B64, 64), hw::TensorMapL2Promotion::B128);
  EXPECT_EQ(promotionOf(hw::SwizzleMode::None, 64), hw::TensorMapL2Promotion::B128);
}

} // namespace
} // namespace fp4::rt
