//===- Im2colCases.cpp - Tensor copies of columns of pixels ---------------===//
//
// cp.async.bulk.tensor in im2col mode: the corner of a filter goes through a box of the tensor and
// from image to image; one place of the filter sees the pixels that make a column. Shared memory is
// filled with 0xEE, loaded and dumped, and the dump compared with a list of pixels made here; a
// store in im2col_no_offs mode is compared in global memory.
//
//===----------------------------------------------------------------------===//

#include "DeviceUnderTest.h"
#include "fp4/ISA/Swizzle.h"

#include <algorithm>

namespace fp4::cts {
namespace {

using hw::SwizzleMode;

constexpr uint32_t kRegionBytes = 16384, kElementBytes = 2;
constexpr int32_t kFloat16 = 6; ///< CUtensorMapDataType
constexpr std::byte kUntouched{0xee};

/// Dimensions from channels to images.
struct Case {
  std::string name;
  std::vector<uint64_t> dims;
  /// Corners of all dimensions but channels and images, like steps and offsets.
  std::vector<int32_t> lower, upper;
  std::vector<uint32_t> steps;
  std::vector<int32_t> at;
  std::vector<uint32_t> offsets;
  uint32_t channels = 16, pixels = 32;
  SwizzleMode swizzle = SwizzleMode::None;

  unsigned rank() const { return unsigned(dims.size()); }
  uint32_t rowBytes() const {
    constexpr uint32_t widths[] = {0, 32, 64, 128};
    return std::max(channels * kElementBytes, widths[size_t(swizzle)]);
  }
  std::vector<uint64_t> strides() const {
    std::vector<uint64_t> bytes{dims[0] * kElementBytes};
    for (unsigned d = 1; d + 1 < rank(); ++d)
      bytes.push_back(bytes.back() * dims[d]);
    return bytes;
  }
};

std::string kernelText(const Case &c, bool store) {
  const std::string rank = std::to_string(c.rank());
  std::string coordinates, offsets;
  for (unsigned d = 0; d < c.rank(); ++d)
    coordinates += (d ? ", %c" : "%c") + std::to_string(d);
  for (unsigned d = 0; d + 2 < c.rank(); ++d)
    offsets += (d ? ", %h" : "%h") + std::to_string(d);
  const std::string load =
      "  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %tx;\n  cp.async.bulk.tensor." + rank +
      "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%region], [%map, {" +
      coordinates + "}], [%bar], {" + offsets + "};\n";
  const std::string put = "  mbarrier.arrive.shared.b64 _, [%bar];\n  cp.async.bulk.tensor." +
                          rank + "d.global.shared::cta.im2col_no_offs.bulk_group [%map, {" +
                          coordinates +
                          "}], [%region];\n  cp.async.bulk.commit_group;\n"
                          "  cp.async.bulk.wait_group 0;\n";
  return R"(
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 8 .b8 full[8];
.visible .entry im2col(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 at[5],
    .param .u32 offsets[3], .param .u32 tx) {
  .reg .b32 %t, %region, %at, %v, %bar, %c<5>, %w<3>, %tx; .reg .b16 %h<3>;
  .reg .b64 %map, %out, %o; .reg .pred %p, %done;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  ld.param.u32 %c0, [at]; ld.param.u32 %c1, [at+4]; ld.param.u32 %c2, [at+8];
  ld.param.u32 %c3, [at+12]; ld.param.u32 %c4, [at+16];
  ld.param.u32 %w0, [offsets]; ld.param.u32 %w1, [offsets+4]; ld.param.u32 %w2, [offsets+8];
  cvt.u16.u32 %h0, %w0; cvt.u16.u32 %h1, %w1; cvt.u16.u32 %h2, %w2;
  ld.param.u32 %tx, [tx];
  mov.u32 %bar, full;
  mov.u32 %region, dynamic;
)" + fillCopyDump(store ? "%t" : "0xeeeeeeee", store ? put : load);
}

/// Every corner of the filter from the first image on, in the order of columns: coordinates 1 up.
std::vector<std::vector<int64_t>> cornersOf(const Case &c) {
  std::vector<std::vector<int64_t>> corners{{}};
  for (unsigned d = c.rank() - 1; d >= 1; --d) { // images outermost
    const bool images = d == c.rank() - 1;
    const int64_t first = images ? 0 : c.lower[d - 1], step = images ? 1 : c.steps[d - 1];
    const int64_t end = images ? int64_t(c.dims[d]) + 64 : int64_t(c.dims[d]) + c.upper[d - 1];
    std::vector<std::vector<int64_t>> more;
    for (const auto &outer : corners)
      for (int64_t x = first; x < end; x += step) {
        more.push_back({x});
        more.back().insert(more.back().end(), outer.begin(), outer.end());
      }
    corners = std::move(more);
  }
  return corners;
}

/// Calls f(pixel, byte offset of its first channel in the tensor, inside).
template <typename F> void forEachPixel(const Case &c, bool withOffsets, F &&f) {
  const auto corners = cornersOf(c);
  const auto first =
      std::find(corners.begin(), corners.end(), std::vector<int64_t>(c.at.begin() + 1, c.at.end()));
  ASSERT_LE(c.pixels, size_t(corners.end() - first)) << "the case begins outside its box";
  const auto strides = c.strides();
  for (uint32_t pixel = 0; pixel < c.pixels; ++pixel) {
    bool inside = true;
    int64_t byte = int64_t(c.at[0]) * kElementBytes;
    for (unsigned d = 1; d < c.rank(); ++d) {
      const bool offset = withOffsets && d + 1 < c.rank();
      const int64_t x = first[pixel][d - 1] + (offset ? c.offsets[d - 1] : 0);
      inside &= x >= 0 && x < int64_t(c.dims[d]);
      byte += x * int64_t(strides[d - 1]);
    }
    f(pixel, byte, inside);
  }
}

/// Runs the copy and returns the dump of shared memory.
Bytes launch(const Case &c, const Buffer &tensor, bool store) {
  alignas(64) std::array<std::byte, 128> map{};
  std::vector<uint32_t> steps{1};
  steps.insert(steps.end(), c.steps.begin(), c.steps.end());
  steps.push_back(1);
  const uint32_t box[] = {c.channels, c.pixels};
  const auto strides = c.strides();
  const Status encoded =
      device()->encodeTensorMap(map, {tensor.address(), kFloat16, int32_t(c.swizzle), c.dims,
                                      strides, box, c.lower, c.upper, steps});
  EXPECT_TRUE(encoded.has_value()) << format(encoded.error());
  Buffer out(kRegionBytes, 0);
  std::array<int32_t, 5> at{};
  std::array<uint32_t, 3> offsets{};
  std::copy(c.at.begin(), c.at.end(), at.begin());
  std::copy(c.offsets.begin(), c.offsets.end(), offsets.begin());
  Params params;
  params.add(map).add(out.address()).add(at).add(offsets);
  params.add(uint32_t(c.channels * c.pixels * kElementBytes));
  rt::LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = kRegionBytes;
  EXPECT_TRUE(runKernel(ptxModule(kernelText(c, store)), "im2col", shape, params)) << c.name;
  return out.read();
}

Bytes tensorOf(const Case &c) { return patternBytes(c.strides().back() * c.dims.back(), 11); }

void load(const Case &c) {
  SCOPED_TRACE(c.name);
  const Bytes contents = tensorOf(c);
  Buffer tensor(contents);
  const Bytes image = launch(c, tensor, false);
  Bytes expected(kRegionBytes, kUntouched);
  forEachPixel(c, true, [&](uint32_t pixel, int64_t from, bool inside) {
    for (uint32_t byte = 0; byte < c.channels * kElementBytes; ++byte) {
      const bool there = inside && c.at[0] + byte / kElementBytes < c.dims[0];
      expected[hw::swizzleAddress(c.swizzle, pixel * c.rowBytes() + byte)] =
          there ? contents[size_t(from) + byte] : std::byte(0);
    }
  });
  EXPECT_TRUE(image == expected);
}

void store(const Case &c) {
  SCOPED_TRACE(c.name);
  Bytes contents = tensorOf(c);
  Buffer tensor(contents);
  const Bytes shared = launch(c, tensor, true);
  const Bytes result = tensor.read();
  forEachPixel(c, false, [&](uint32_t pixel, int64_t to, bool inside) {
    for (uint32_t byte = 0; inside && byte < c.channels * kElementBytes; ++byte)
      contents[size_t(to) + byte] =
          shared[hw::swizzleAddress(c.swizzle, pixel * c.rowBytes() + byte)];
  });
  EXPECT_TRUE(result == contents);
}

/// A 3x3 filter with one pixel of padding, in an image of 9 x 6.
const Case kPadded{"padded", {32, 9, 6, 3}, {-1, -1}, {-1, -1}, {1, 1}, {0, -1, -1, 0}, {0, 0}};

TEST(CtsIm2col, EveryPlaceOfAFilter) {
  for (uint32_t w : {0u, 1u, 2u})
    for (uint32_t h : {0u, 2u}) {
      Case c = kPadded;
      c.offsets = {w, h};
      c.name += "_" + std::to_string(w) + std::to_string(h);
      load(c);
    }
}

TEST(CtsIm2col, BeginsAnywhereAndGoesOnInTheNextImage) {
  const std::vector<int32_t> places[] = {{16, 7, 4, 0}, {0, 3, 2, 1}, {0, 7, 4, 2}, {24, -1, 0, 1}};
  for (const auto &at : places) {
    Case c = kPadded;
    c.at = at;
    c.offsets = {2, 1};
    c.pixels = 64;
    for (int32_t x : at)
      c.name += "_" + std::to_string(x);
    load(c);
  }
}

TEST(CtsIm2col, StepsAndUnevenCorners) {
  load({"steps", {64, 11, 8, 2}, {-2, -1}, {-3, 0}, {2, 3}, {0, 2, 2, 0}, {4, 1}});
  load({"dilated", {64, 11, 8, 2}, {0, 0}, {-4, -4}, {1, 1}, {32, 5, 1, 0}, {4, 4}});
}

TEST(CtsIm2col, Swizzles) {
  for (SwizzleMode swizzle : {SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128})
    for (uint32_t channels : {16u, 32u, 64u}) {
      if (channels > 16u << (size_t(swizzle) - 1))
        continue;
      Case c{std::string(hw::stringify(swizzle)) + "_" + std::to_string(channels),
             {64, 9, 6, 3},
             {-1, -1},
             {-1, -1},
             {1, 1},
             {0, 2, 1, 0},
             {1, 2},
             channels,
             96,
             swizzle};
      load(c);
    }
}

TEST(CtsIm2col, OneAndThreeDimensions) {
  load({"3d", {16, 40, 3}, {-3}, {-4}, {1}, {0, 30, 0}, {5}});
  load({"5d",
        {16, 5, 4, 6, 2},
        {-1, 0, -2},
        {-1, -2, 1},
        {1, 1, 2},
        {0, 3, 1, -2, 0},
        {2, 1, 3},
        16,
        128});
}

TEST(CtsIm2col, CornersHaveSixteenBits) {
  const uint64_t dims[] = {16, 40, 3}, strides[] = {32, 1280};
  const uint32_t box[] = {16, 32};
  Buffer tensor(3840, 0);
  const auto encoded = [&](int32_t lower, int32_t upper) {
    alignas(64) std::array<std::byte, 128> map{};
    return device()
        ->encodeTensorMap(map, {tensor.address(), kFloat16, 0, dims, strides, box,
                                std::span(&lower, 1), std::span(&upper, 1)})
        .has_value();
  };
  EXPECT_TRUE(encoded(0, 0));
  EXPECT_FALSE(encoded(0, 65536));
  EXPECT_FALSE(encoded(-65536, 0));
}

TEST(CtsIm2col, Stores) {
  Case c = kPadded;
  c.lower = {1, 0};
  c.upper = {-2, -1};
  c.at = {16, 3, 2, 1};
  store(c);
  c.name = "past_the_end";
  c.at = {0, 1, 3, 2};
  c.swizzle = SwizzleMode::B32;
  store(c);
}

} // namespace
} // namespace fp4::cts
