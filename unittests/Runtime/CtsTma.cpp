//===- CtsTma.cpp - Shared-memory images of TMA loads ---------------------===//
//
// Every load fills shared memory with 0xEE, copies one box in and dumps the whole region. The image
// is compared with the layout authority's (hw::swizzleAddress over the dense box), and saved, so
// that the simulator's image can be compared with a GPU's byte for byte.
//
//===----------------------------------------------------------------------===//

#include "Cts.h"
#include "fp4/ISA/TensorMap.h"

namespace fp4::cts {
namespace {

using hw::SwizzleMode;
using hw::TensorMapType;

constexpr uint32_t kRegionBytes = 16384; ///< of shared memory, dumped whole
constexpr std::byte kUntouched{0xee};

struct TmaCase {
  std::string name;
  TensorMapType type;
  SwizzleMode swizzle;
  std::vector<uint64_t> dims;  ///< elements, innermost first
  std::vector<uint32_t> box;
  std::vector<int32_t> at;     ///< coordinates of the box
  uint32_t offset = 0;         ///< of the destination, from a multiple of 1024

  uint32_t elementBytes() const { return hw::tensorMapTypeBits(type) / 8; }
};

std::string loadKernel(size_t rank) {
  std::string coordinates = "%c0";
  for (size_t i = 1; i < rank; ++i)
    coordinates += ", %c" + std::to_string(i);
  return R"(
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 8 .b8 full[8];
.visible .entry tma(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 c0, .param .u32 c1,
    .param .u32 c2, .param .u32 offset, .param .u32 tx) {
  .reg .b32 %t, %region, %at, %v, %bar, %c<3>, %tx, %dst; .reg .b64 %map, %out, %o;
  .reg .pred %p, %done;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  ld.param.u32 %c0, [c0];
  ld.param.u32 %c1, [c1];
  ld.param.u32 %c2, [c2];
  ld.param.u32 %dst, [offset];
  ld.param.u32 %tx, [tx];
  mov.u32 %bar, full;
  mov.u32 %region, dynamic;
  add.u32 %region, %region, 1023;
  and.b32 %region, %region, 0xfffffc00;
  add.u32 %dst, %dst, %region;
  mov.u32 %t, %tid.x;
  shl.b32 %t, %t, 2;
FILL:
  add.u32 %at, %region, %t;
  mov.u32 %v, 0xeeeeeeee;
  st.shared.u32 [%at], %v;
  add.u32 %t, %t, 512;
  setp.lt.u32 %p, %t, 16384;
  @%p bra FILL;
  fence.proxy.async;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.proxy.async;
READY:
  bar.sync 0;
  @%p bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %tx;
  cp.async.bulk.tensor.)" +
         std::to_string(rank) +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%dst], [%map, {" +
         coordinates + R"(}], [%bar];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
  @!%done bra WAIT;
  shl.b32 %t, %t, 2;
DUMP:
  add.u32 %at, %region, %t;
  ld.shared.u32 %v, [%at];
  cvt.u64.u32 %o, %t;
  add.u64 %o, %out, %o;
  st.global.u32 [%o], %v;
  add.u32 %t, %t, 512;
  setp.lt.u32 %p, %t, 16384;
  @%p bra DUMP;
  ret;
}
)";
}

/// Row strides in bytes: each dimension padded to a multiple of 16.
std::vector<uint64_t> strides(const TmaCase &c) {
  std::vector<uint64_t> bytes;
  uint64_t pitch = (c.dims[0] * c.elementBytes() + 15) / 16 * 16;
  for (size_t i = 1; i < c.dims.size(); ++i) {
    bytes.push_back(pitch);
    pitch *= c.dims[i];
  }
  return bytes;
}

/// The image the layout authority predicts for `source`.
Bytes expectedImage(const TmaCase &c, const Bytes &source) {
  Bytes image(kRegionBytes, kUntouched);
  const uint32_t es = c.elementBytes();
  std::vector<uint64_t> pitch = strides(c);
  auto extent = [&](auto &list, size_t i) { return i < list.size() ? list[i] : 1; };
  auto at = [&](size_t i) { return i < c.at.size() ? c.at[i] : 0; };
  uint32_t linear = c.offset;
  for (uint32_t z = 0; z < extent(c.box, 2); ++z)
    for (uint32_t y = 0; y < extent(c.box, 1); ++y)
      for (uint32_t x = 0; x < c.box[0]; ++x)
        for (uint32_t byte = 0; byte < es; ++byte, ++linear) {
          const int64_t g[3] = {at(0) + int64_t(x), at(1) + int64_t(y), at(2) + int64_t(z)};
          bool inside = true;
          for (size_t i = 0; i < c.dims.size(); ++i)
            inside &= g[i] >= 0 && g[i] < int64_t(c.dims[i]);
          uint64_t from = uint64_t(g[0]) * es + byte;
          for (size_t i = 1; i < c.dims.size(); ++i)
            from += uint64_t(g[i]) * pitch[i - 1];
          image[hw::swizzleAddress(c.swizzle, linear)] = inside ? source[from] : std::byte(0);
        }
  return image;
}

void encode(const TmaCase &c, const Buffer &source, std::span<std::byte, 128> map) {
  std::vector<uint64_t> pitch = strides(c);
  FP4_ASSERT_OK(device()->encodeTensorMap(map, {source.address(), int32_t(c.type),
                                                int32_t(c.swizzle), c.dims, pitch, c.box}));
}

void runCase(const TmaCase &c) {
  SCOPED_TRACE(c.name);
  uint64_t bytes = strides(c).back() * c.dims.back();
  Bytes contents = patternBytes(bytes, uint32_t(bytes + c.offset));
  Buffer source(contents), out(kRegionBytes, 0);
  alignas(64) std::array<std::byte, 128> map{};
  encode(c, source, map);
  uint32_t tx = c.elementBytes();
  for (uint32_t extent : c.box)
    tx *= extent;
  Params params;
  params.add(map).add(out.address());
  for (size_t i = 0; i < 3; ++i)
    params.add(i < c.at.size() ? c.at[i] : 0);
  params.add(c.offset).add(tx);
  rt::LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = kRegionBytes + 1024;
  ASSERT_TRUE(runKernel(ptxModule(loadKernel(c.dims.size())), "tma", shape, params));
  Bytes image = out.read();
  saveImage("tma_" + c.name, image);
  Bytes expected = expectedImage(c, contents);
  size_t wrong = 0;
  for (size_t i = 0; i < image.size(); ++i)
    if (image[i] != expected[i] && wrong++ < 4)
      ADD_FAILURE() << c.name << ": byte " << i << " is " << int(image[i]) << ", expected "
                    << int(expected[i]);
  EXPECT_EQ(wrong, 0u) << c.name;
}

struct Mode {
  const char *name;
  SwizzleMode mode;
  uint32_t span; ///< bytes of the widest inner box
};
const Mode kModes[] = {{"none", SwizzleMode::None, 64},
                       {"32b", SwizzleMode::B32, 32},
                       {"64b", SwizzleMode::B64, 64},
                       {"128b", SwizzleMode::B128, 128}};
struct Element {
  const char *name;
  TensorMapType type;
  uint32_t bytes;
};
const Element kElements[] = {{"u8", TensorMapType::UInt8, 1}, {"bf16", TensorMapType::BFloat16, 2}};

/// Calls `fn` with a case of every mode and element; the tensor is 4 boxes wide.
template <typename Fn> void forEachMode(Fn fn) {
  for (const Mode &mode : kModes)
    for (const Element &element : kElements) {
      TmaCase c;
      c.name = std::string(mode.name) + "_" + element.name;
      c.type = element.type;
      c.swizzle = mode.mode;
      uint32_t inner = mode.span / element.bytes;
      c.dims = {4 * inner + 3, 40};
      c.box = {inner, 24};
      fn(c, int32_t(inner));
    }
}

TEST(CtsTma, Rank2InsideTheTensor) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.name = "r2_inside_" + c.name;
    c.at = {inner + 5, 3};
    runCase(c);
  });
}

TEST(CtsTma, Rank2PastTheEndReadsZeros) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.name = "r2_past_" + c.name;
    c.at = {4 * inner - 7, 30};
    runCase(c);
  });
}

TEST(CtsTma, Rank2NegativeCoordinatesReadZeros) {
  forEachMode([](TmaCase c, int32_t) {
    c.name = "r2_negative_" + c.name;
    c.at = {-3, -5};
    runCase(c);
  });
}

TEST(CtsTma, Rank2WhollyOutsideReadsZeros) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.name = "r2_outside_" + c.name;
    c.at = {8 * inner, -100};
    runCase(c);
  });
}

TEST(CtsTma, Rank3) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.dims = {uint64_t(2 * inner + 1), 9, 5};
    c.box = {uint32_t(inner), 5, 3};
    std::string base = c.name;
    c.name = "r3_inside_" + base;
    c.at = {1, 2, 1};
    runCase(c);
    c.name = "r3_corner_" + base;
    c.at = {inner + 2, 6, 3};
    runCase(c);
    c.name = "r3_negative_" + base;
    c.at = {-1, -1, -1};
    runCase(c);
  });
}

// The XOR acts on the absolute address: a destination inside the pattern starts at its phase.
TEST(CtsTma, DestinationsInsideThePattern) {
  forEachMode([](TmaCase c, int32_t inner) {
    std::string base = c.name;
    for (uint32_t offset : {128u, 384u, 896u}) {
      c.name = "r2_offset" + std::to_string(offset) + "_" + base;
      c.offset = offset;
      c.at = {inner, 1};
      runCase(c);
    }
  });
}

// A box narrower than the swizzle span is packed densely, then swizzled.
TEST(CtsTma, BoxesNarrowerThanTheSwizzleSpan) {
  for (const Mode &mode : kModes)
    for (uint32_t inner : {16u, 48u, 96u}) {
      if (mode.mode == SwizzleMode::None ? inner != 48 : inner >= mode.span)
        continue;
      TmaCase c;
      c.name = "r2_narrow" + std::to_string(inner) + "_" + mode.name + "_u8";
      c.type = TensorMapType::UInt8;
      c.swizzle = mode.mode;
      c.dims = {256, 40};
      c.box = {inner, 24};
      c.at = {16, 2};
      runCase(c);
    }
}

TEST(CtsTma, InvalidTensorMapsAreErrors) {
  Buffer source(4096, 0);
  TmaCase good{"", TensorMapType::UInt8, SwizzleMode::B128, {256, 8}, {128, 8}, {0, 0}};
  alignas(64) std::array<std::byte, 128> map{};
  encode(good, source, map);
  auto rejects = [&](const char *what, TmaCase bad, uint64_t shift, uint64_t pitch) {
    std::vector<uint64_t> stride = {pitch};
    Status status = device()->encodeTensorMap(
        map, {source.address() + shift, int32_t(bad.type), int32_t(bad.swizzle), bad.dims, stride,
              bad.box});
    EXPECT_FALSE(status.has_value()) << what;
  };
  TmaCase wide = good;
  wide.box[0] = 256;
  rejects("a box wider than the swizzle span", wide, 0, 256);
  TmaCase tall = good;
  tall.box[1] = 257;
  rejects("a box of more than 256 rows", tall, 0, 256);
  TmaCase odd = good;
  odd.box[0] = 24;
  rejects("a box row that is no multiple of 16 bytes", odd, 0, 256);
  rejects("a misaligned address", good, 8, 256);
  rejects("a pitch that is no multiple of 16", good, 0, 264);
}

} // namespace
} // namespace fp4::cts
