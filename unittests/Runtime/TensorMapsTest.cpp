//===- TensorMapsTest.cpp - Maps are known by their whole request ----------===//

#include "../../lib/Runtime/Cuda/TensorMaps.h"

#include <gtest/gtest.h>

using namespace fp4::rt;

namespace {

struct Request {
  std::vector<uint64_t> dims{64, 128}, strides{256};
  std::vector<uint32_t> box{64, 8}, steps = {};
  uint64_t base = 4096;
  int32_t element = 9, swizzle = 3;

  TensorMapRequest get() const {
    return {base, element, swizzle, dims, strides, box, {}, {}, steps};
  }
  TensorMaps::Key key() const { return *TensorMaps::keyOf(get()); }
};

std::array<std::byte, 128> filled(int value) {
  std::array<std::byte, 128> map;
  map.fill(std::byte(value));
  return map;
}

TEST(TensorMaps, AMapIsFoundByItsRequestAlone) {
  TensorMaps maps;
  const Request request;
  auto out = filled(0);
  EXPECT_FALSE(maps.find(request.key(), out));
  maps.keep(request.key(), filled(7));
  EXPECT_TRUE(maps.find(Request().key(), out));
  EXPECT_EQ(out, filled(7));
  std::vector<Request> others(8);
  others[0].base += 16;
  others[1].element = 6;
  others[2].swizzle = 2;
  others[3].dims[1] = 127;
  others[4].strides[0] = 512;
  others[5].box[1] = 16;
  others[6].steps = {1, 2};
  others[7].dims.push_back(1), others[7].strides.push_back(256), others[7].box.push_back(1);
  for (const Request &other : others)
    EXPECT_FALSE(maps.find(other.key(), out));
}

TEST(TensorMaps, MapsOfImagesAreNotKept) {
  Request request;
  const std::vector<int32_t> corners{0, 0};
  TensorMapRequest images = request.get();
  images.lower = images.upper = corners;
  EXPECT_FALSE(TensorMaps::keyOf(images));
}

TEST(TensorMaps, OldMapsMakeRoom) {
  TensorMaps maps;
  Request request;
  auto out = filled(0);
  for (int i = 0; i < 5000; ++i) {
    request.base += 16;
    maps.keep(request.key(), filled(i % 100));
  }
  EXPECT_TRUE(maps.find(request.key(), out));
  EXPECT_EQ(out, filled(4999 % 100));
  EXPECT_FALSE(maps.find(Request().key(), out));
}

} // namespace
