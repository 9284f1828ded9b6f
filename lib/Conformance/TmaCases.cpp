//===- TmaCases.cpp - Shared-memory images of TMA loads -------------------===//
//
// Every load fills shared memory with 0xEE, copies one box in and dumps the whole region. The image
// is compared with the layout authority's (hw::swizzleAddress), and saved, so
// that the simulator's image can be compared with a GPU's byte for byte.
//
// The coordinate of the innermost dimension is always a multiple of 16 bytes. No document says that
// it must be; a Hopper GPU answers any other with an illegal instruction (CtsFault shows it).
//
//===----------------------------------------------------------------------===//

#include "DeviceUnderTest.h"
#include "fp4/ISA/TensorMap.h"

#include <cstdlib>

namespace fp4::cts {
namespace {

using hw::SwizzleMode;
using hw::TensorMapType;

constexpr uint32_t kRegionBytes = 16384; ///< bytes of shared memory, dumped whole
constexpr std::byte kUntouched{0xee};

struct TmaCase {
  std::string name;
  TensorMapType type;
  SwizzleMode swizzle;
  std::vector<uint64_t> dims; ///< elements, innermost first
  std::vector<uint32_t> box;
  std::vector<int32_t> at; ///< coordinates of the box
  uint32_t offset = 0;     ///< offset of the destination, from a multiple of 1024

  uint32_t elementBytes() const { return hw::tensorMapTypeBits(type) / 8; }
  /// 16 bytes of elements: the unit of the innermost coordinate.
  int32_t unit() const { return int32_t(16 / elementBytes()); }
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
)" + fillCopyDump("0xeeeeeeee", "  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %tx;\n"
                                "  cp.async.bulk.tensor." +
                                    std::to_string(rank) +
                                    "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                                    "[%dst], [%map, {" +
                                    coordinates + "}], [%bar];\n");
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

/// Bytes from one row of the box to the next in shared memory. Rows narrower than the swizzle width
/// are that width apart, as a Hopper GPU stores them.
uint32_t rowBytes(const TmaCase &c) {
  const uint32_t dense = c.box[0] * c.elementBytes();
  const uint32_t widths[] = {dense, 32, 64, 128};
  return std::max(dense, widths[size_t(c.swizzle)]);
}

/// The image the layout authority predicts for `source`.
Bytes expectedImage(const TmaCase &c, const Bytes &source) {
  Bytes image(kRegionBytes, kUntouched);
  const uint32_t es = c.elementBytes();
  std::vector<uint64_t> pitch = strides(c);
  auto extent = [&](auto &list, size_t i) { return i < list.size() ? list[i] : 1; };
  auto at = [&](size_t i) { return i < c.at.size() ? c.at[i] : 0; };
  uint32_t row = c.offset;
  for (uint32_t z = 0; z < extent(c.box, 2); ++z)
    for (uint32_t y = 0; y < extent(c.box, 1); ++y, row += rowBytes(c))
      for (uint32_t x = 0; x < c.box[0]; ++x)
        for (uint32_t byte = 0; byte < es; ++byte) {
          const uint32_t linear = row + x * es + byte;
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
  FP4_ASSERT_OK(device()->encodeTensorMap(
      map, {source.address(), int32_t(c.type), int32_t(c.swizzle), c.dims, pitch, c.box}));
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
    c.at = {inner + c.unit(), 3};
    runCase(c);
  });
}

TEST(CtsTma, Rank2PastTheEndReadsZeros) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.name = "r2_past_" + c.name;
    c.at = {4 * inner, 30}; // three elements and ten rows are inside
    runCase(c);
  });
}

TEST(CtsTma, Rank2NegativeCoordinatesReadZeros) {
  forEachMode([](TmaCase c, int32_t) {
    c.name = "r2_negative_" + c.name;
    c.at = {-c.unit(), -5};
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
    c.at = {c.unit(), 2, 1};
    runCase(c);
    c.name = "r3_corner_" + base;
    c.at = {inner + c.unit(), 6, 3};
    runCase(c);
    c.name = "r3_negative_" + base;
    c.at = {-c.unit(), -1, -1};
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

// Rows narrower than the swizzle width leave gaps, which stay untouched.
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

//===----------------------------------------------------------------------===//
// Stores, reductions, multicast
//===----------------------------------------------------------------------===//

/// Word i of shared memory is i * 16777619 + 7; then one box leaves by `instruction`.
std::string storeKernel(const std::string &instruction) {
  return R"(
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry tma_store(.param .align 64 .b8 map[128], .param .u32 c0, .param .u32 c1) {
  .reg .b32 %t, %region, %at, %v, %c<2>; .reg .b64 %map; .reg .pred %p;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u32 %c0, [c0];
  ld.param.u32 %c1, [c1];
  mov.u32 %region, dynamic;
  add.u32 %region, %region, 1023;
  and.b32 %region, %region, 0xfffffc00;
  mov.u32 %t, %tid.x;
FILL:
  mad.lo.u32 %at, %t, 4, %region;
  mad.lo.u32 %v, %t, 16777619, 7;
  st.shared.u32 [%at], %v;
  add.u32 %t, %t, 128;
  setp.lt.u32 %p, %t, 4096;
  @%p bra FILL;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra END;
  )" + instruction +
         R"(.bulk_group [%map, {%c0, %c1}], [%region];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
  ret;
}
)";
}

Bytes storedBytes() {
  std::vector<uint32_t> words(kRegionBytes / 4);
  for (uint32_t i = 0; i < words.size(); ++i)
    words[i] = i * 16777619u + 7;
  auto bytes = bytesOf(words);
  return {bytes.begin(), bytes.end()};
}

/// Runs a store of case `c` into a tensor of 0x55 bytes and returns the tensor.
Bytes runStore(const TmaCase &c, const std::string &instruction) {
  uint64_t bytes = strides(c).back() * c.dims.back();
  Buffer target(bytes, 0x55);
  alignas(64) std::array<std::byte, 128> map{};
  encode(c, target, map);
  Params params;
  params.add(map).add(c.at[0]).add(c.at[1]);
  rt::LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = kRegionBytes + 1024;
  EXPECT_TRUE(runKernel(ptxModule(storeKernel(instruction)), "tma_store", shape, params)) << c.name;
  Bytes image = target.read();
  saveImage("tma_" + c.name, image);
  return image;
}

// The last 16 bytes of a row are written whole, past its last element: if the row is no multiple of
// 16 bytes, these bytes are the padding of its pitch. Rows behind the last are not touched.
TEST(CtsTma, StoresEndAtTheNext16Bytes) {
  forEachMode([](TmaCase c, int32_t inner) {
    c.name = "store_" + c.name;
    c.at = {4 * inner - c.unit(), 30};
    Bytes image = runStore(c, "cp.async.bulk.tensor.2d.global.shared::cta.tile");
    const uint32_t es = c.elementBytes();
    const uint64_t pitch = strides(c)[0];
    Bytes shared = storedBytes(), expected(image.size(), std::byte(0x55));
    const uint32_t rowBytes = c.box[0] * es;
    for (uint32_t y = 0; y < c.box[1]; ++y)
      for (uint32_t x = 0; x < rowBytes; ++x)
        if (uint64_t gx = uint64_t(c.at[0]) * es + x, gy = uint64_t(c.at[1]) + y;
            gx < pitch && gy < c.dims[1])
          expected[gy * pitch + gx] = shared[hw::swizzleAddress(c.swizzle, y * rowBytes + x)];
    EXPECT_TRUE(image == expected) << c.name;
  });
}

TEST(CtsTma, ReductionsAddInGlobalMemory) {
  for (uint64_t columns : {40u, 37u}) { // rows of 160 bytes, and of 148 with a pitch of 160
    TmaCase c{"reduce" + std::to_string(columns) + "_u32",
              TensorMapType::UInt32,
              SwizzleMode::None,
              {columns, 16},
              {16, 8},
              {28, 10}};
    Bytes image = runStore(c, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile");
    std::vector<uint32_t> expected(40 * 16, 0x55555555);
    Bytes shared = storedBytes();
    for (uint32_t y = 10; y < 16; ++y)
      for (uint32_t x = 28; x < 40; ++x)
        expected[y * 40 + x] += view<uint32_t>(shared)[(y - 10) * 16 + x - 28];
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(view<uint32_t>(image)[i], expected[i]) << columns << " columns, word " << i;
  }
}

const char *const kMulticastKernel = R"(
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 8 .b8 full[8];
.visible .entry multicast(.param .align 64 .b8 map[128], .param .u64 out) {
  .reg .b32 %t, %region, %at, %v, %bar, %rank, %zero, %block; .reg .b64 %map, %out, %o; .reg .b16 %mask;
  .reg .pred %p, %done;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %zero, 0;
  mov.u32 %bar, full;
  mov.u32 %region, dynamic;
  add.u32 %region, %region, 1023;
  and.b32 %region, %region, 0xfffffc00;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 2048;
READY:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  @%p bra WAIT;
  setp.ne.u32 %done, %rank, 0;
  @%done bra WAIT;
  mov.u16 %mask, 3;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%region], [%map, {%zero, %zero}], [%bar], %mask;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
  @!%done bra WAIT;
  mul.lo.u32 %block, %rank, 2048;
  shl.b32 %t, %t, 2;
DUMP:
  add.u32 %at, %region, %t;
  ld.shared.u32 %v, [%at];
  add.u32 %at, %block, %t;
  cvt.u64.u32 %o, %at;
  add.u64 %o, %out, %o;
  st.global.u32 [%o], %v;
  add.u32 %t, %t, 512;
  setp.lt.u32 %p, %t, 2048;
  @%p bra DUMP;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
)";

// A CTA loads for both CTAs of its cluster: data and bytes arrive in each.
TEST(CtsTma, MulticastFillsEveryBlockOfTheMask) {
  TmaCase c{"", TensorMapType::UInt8, SwizzleMode::B128, {128, 16}, {128, 16}, {0, 0}};
  Bytes contents = patternBytes(2048, 99);
  Buffer source(contents), out(4096, 0);
  alignas(64) std::array<std::byte, 128> map{};
  encode(c, source, map);
  Params params;
  params.add(map).add(out.address());
  rt::LaunchShape shape;
  shape.grid = {2, 1, 1};
  shape.block = {128, 1, 1};
  shape.cluster = {2, 1, 1};
  shape.dynamicSharedBytes = 2048 + 1024;
  ASSERT_TRUE(runKernel(ptxModule(kMulticastKernel), "multicast", shape, params));
  Bytes image = out.read();
  saveImage("tma_multicast", image);
  for (uint32_t i = 0; i < 2048; ++i) {
    uint32_t at = hw::swizzleAddress(SwizzleMode::B128, i);
    ASSERT_EQ(image[at], contents[i]) << i;
    ASSERT_EQ(image[2048 + at], contents[i]) << i;
  }
}

TEST(CtsTma, InvalidTensorMapsAreErrors) {
  Buffer source(4096, 0);
  TmaCase good{"", TensorMapType::UInt8, SwizzleMode::B128, {256, 8}, {128, 8}, {0, 0}};
  alignas(64) std::array<std::byte, 128> map{};
  encode(good, source, map);
  auto rejects = [&](const char *what, TmaCase bad, uint64_t shift, uint64_t pitch) {
    std::vector<uint64_t> stride = {pitch};
    Status status =
        device()->encodeTensorMap(map, {source.address() + shift, int32_t(bad.type),
                                        int32_t(bad.swizzle), bad.dims, stride, bad.box});
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

// Ends the context on a GPU, so the test runs alone: FP4_FAULTS=1 and
// --gtest_filter=CtsFault.Tma*.
TEST(CtsFault, TmaInnerCoordinatesAreMultiplesOf16Bytes) {
  if (device()->isHardware() && !std::getenv("FP4_FAULTS"))
    return;
  TmaCase c{"", TensorMapType::BFloat16, SwizzleMode::None, {256, 8}, {32, 8}, {4, 0}};
  Buffer source(256 * 8 * 2, 0), out(kRegionBytes, 0);
  alignas(64) std::array<std::byte, 128> map{};
  encode(c, source, map);
  Params params;
  params.add(map).add(out.address()).add(c.at[0]).add(c.at[1]).add(0).add(0u).add(512u);
  rt::LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = kRegionBytes + 1024;
  testing::AssertionResult result = runKernel(ptxModule(loadKernel(2)), "tma", shape, params);
  ASSERT_FALSE(result);
  std::string message = result.message();
  EXPECT_NE(message.find(device()->isHardware() ? "CUDA_ERROR_ILLEGAL_INSTRUCTION" : "16 bytes"),
            std::string::npos)
      << message;
}

} // namespace
} // namespace fp4::cts
