//===- TensorMapCases.cpp - The bits of tensor maps, and their edits ------===//
//
// Thousands of random calls of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col: the driver that
// is there must make the same 128 bytes and refuse the same calls as fp4. The driver is that of the
// device under test, or the library that FP4_CTS_LIBCUDA names (the stand-in of fp4-sim run);
// without either the test holds encode and decode against each other.
//
//===----------------------------------------------------------------------===//
#include "DeviceUnderTest.h"
#include "TensorMapCall.h"
#include <dlfcn.h>
#include <random>

using namespace fp4;
using namespace fp4::cts;
using hw::TensorMap;
using hw::test::TensorMapCall;

namespace {

using Random = std::mt19937_64; // with these numbers alone: the same calls on every machine
uint64_t between(Random &random, uint64_t least, uint64_t most) {
  return least + random() % (most - least + 1);
}
/// A number of up to `bits` bits, small ones as often as large ones.
uint64_t ofAnySize(Random &random, unsigned bits) {
  const uint64_t low = 1ull << between(random, 0, bits);
  return between(random, low, 2 * low - 1);
}

void chooseSizes(Random &random, TensorMapCall &c, unsigned alignment) {
  const unsigned bits = hw::tensorMapTypeBits(hw::TensorMapType(c.type));
  for (unsigned i = 0; i < c.rank; ++i) {
    c.dims[i] = ofAnySize(random, random() % 8 ? 10 : 31);
    c.steps[i] = random() % 6 ? 1 : uint32_t(between(random, 1, 8));
    c.box[i] = uint32_t(between(random, 1, random() % 2 ? 16 : 256));
  }
  const unsigned width = c.swizzle == 0 ? 256 : c.swizzle < 3 ? 16u << c.swizzle : 128;
  c.box[0] = std::min<uint32_t>(uint32_t(between(random, 1, width / 16)) * 128 / bits, 256);
  if (c.type >= 13)
    c.dims[0] = (c.dims[0] + 127) / 128 * 128;
  uint64_t stride = (c.dims[0] * bits + 7) / 8;
  for (unsigned i = 0; i + 1 < c.rank; ++i) {
    stride = (stride + alignment - 1) / alignment * alignment;
    if (stride >= 1ull << 40)
      stride = ofAnySize(random, 39) / alignment * alignment;
    c.strides[i] = stride;
    stride *= c.dims[i + 1];
  }
}

void chooseCorners(Random &random, TensorMapCall &c) {
  const int limit = c.rank == 3 ? 1 << 15 : c.rank == 4 ? 1 << 7 : 1 << 4;
  const int reach = random() % 2 ? limit : 8;
  for (unsigned i = 0; i + 2 < c.rank; ++i) {
    c.lower[i] = int(random() % (2 * unsigned(reach))) - reach;
    c.upper[i] = int(random() % (2 * unsigned(reach))) - reach;
  }
  c.channels = c.box[0];
  c.pixels = uint32_t(between(random, 1, 1024));
}

void breakOneRule(Random &random, TensorMapCall &c) {
  switch (random() % 10) {
  case 0:
    c.address += between(random, 1, 15);
    break;
  case 1:
    c.dims[random() % c.rank] = random() % 2 ? 0 : (1ull << 32) + random() % 2;
    break;
  case 2:
    c.strides[0] += between(random, 1, 15);
    break;
  case 3:
    c.box[random() % c.rank] = random() % 2 ? 0 : 257;
    break;
  case 4:
    c.steps[random() % c.rank] = random() % 2 ? 0 : 9;
    break;
  case 5:
    c.type = 16;
    break;
  case 6:
    c.interleave = 3;
    break;
  case 7:
    c.promotion = 4;
    break;
  case 8:
    c.fill = 2;
    break;
  case 9:
    ++c.box[0], ++c.channels;
    break;
  }
}

TensorMapCall chooseCall(Random &random) {
  TensorMapCall c;
  c.im2col = random() % 4 == 3;
  c.type = uint32_t(random() % 8 ? random() % 13 : random() % 16);
  c.interleave = random() % 8 ? 0 : uint32_t(between(random, 1, 2));
  c.rank = uint32_t(between(random, c.im2col || c.interleave ? 3 : 1, 5));
  c.swizzle = uint32_t(random() % 8 ? random() % 4 : random() % 7);
  c.promotion = uint32_t(random() % 4);
  c.fill = (c.type >= 6 || random() % 8 == 0) && random() % 3 == 0;
  const unsigned alignment = c.interleave == 2 || c.type >= 14 ? 32 : 16;
  c.address = (random() & 0x7FFFFFFFFFFF) / alignment * alignment;
  chooseSizes(random, c, alignment);
  if (c.im2col)
    chooseCorners(random, c);
  if (random() % 5 == 0)
    breakOneRule(random, c);
  return c;
}

class Driver {
public:
  static std::optional<Driver> find() {
    const char *named = std::getenv("FP4_CTS_LIBCUDA");
    if (!named && device()->selector().substr(0, 4) != "cuda")
      return std::nullopt;
    void *library = dlopen(named ? named : "libcuda.so.1", RTLD_NOW);
    Driver driver;
    if (library) {
      driver.tiled = reinterpret_cast<Tiled>(dlsym(library, "cuTensorMapEncodeTiled"));
      driver.im2col = reinterpret_cast<Im2col>(dlsym(library, "cuTensorMapEncodeIm2col"));
      makeContextCurrent(library);
    }
    EXPECT_TRUE(driver.tiled && driver.im2col) << (library ? "no such function" : dlerror());
    return driver;
  }

  /// Calls the driver and returns its answer, and its bytes. The driver's enumerations are declared
  /// as the integers that they are passed as, which the sanitizer of calls takes for another
  /// function.
  __attribute__((no_sanitize("function"))) int operator()(const TensorMapCall &c,
                                                          TensorMap::Encoded &out) const {
    alignas(64) TensorMap::Encoded map{};
    void *address = reinterpret_cast<void *>(c.address);
    const int result =
        c.im2col
            ? im2col(map.data(), c.type, c.rank, address, c.dims.data(), c.strides.data(),
                     c.lower.data(), c.upper.data(), c.channels, c.pixels, c.steps.data(),
                     c.interleave, c.swizzle, c.promotion, c.fill)
            : tiled(map.data(), c.type, c.rank, address, c.dims.data(), c.strides.data(),
                    c.box.data(), c.steps.data(), c.interleave, c.swizzle, c.promotion, c.fill);
    out = map;
    return result;
  }

private:
  /// Makes a context current, as the driver encodes only on a thread with one and the device leaves
  /// this thread without one.
  static void makeContextCurrent(void *library) {
    auto retain =
        reinterpret_cast<int (*)(void **, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
    auto setCurrent = reinterpret_cast<int (*)(void *)>(dlsym(library, "cuCtxSetCurrent"));
    void *context = nullptr;
    if (retain && setCurrent && retain(&context, 0) == 0)
      setCurrent(context);
  }

  using Tiled = int (*)(void *, uint32_t, uint32_t, void *, const uint64_t *, const uint64_t *,
                        const uint32_t *, const uint32_t *, uint32_t, uint32_t, uint32_t, uint32_t);
  using Im2col = int (*)(void *, uint32_t, uint32_t, void *, const uint64_t *, const uint64_t *,
                         const int32_t *, const int32_t *, uint32_t, uint32_t, const uint32_t *,
                         uint32_t, uint32_t, uint32_t, uint32_t);
  Tiled tiled = nullptr;
  Im2col im2col = nullptr;
};

/// The map that fp4 makes of a call; nothing if it is refused.
std::optional<TensorMap> ours(const TensorMapCall &call) {
  const auto map = call.map();
  return map && map->validateFor(*hw::lookupTarget(device()->target())) ? map : std::nullopt;
}

TEST(CtsTensorMap, RandomCallsOfTheDriver) {
  constexpr int calls = 8192, refused = 1; // CUDA_ERROR_INVALID_VALUE
  const auto driver = Driver::find();
  Random random(20261120);
  Bytes image;
  int made = 0;
  for (int i = 0; i < calls; ++i) {
    const TensorMapCall call = chooseCall(random);
    const auto map = ours(call);
    TensorMap::Encoded bytes{}, theirs{};
    if (map) {
      bytes = map->pack();
      const auto back = TensorMap::decode(std::span(bytes).first<TensorMap::usedBytes>());
      ASSERT_TRUE(back) << "call " << i << ": " << format(back.error());
      ASSERT_EQ(*back, *map) << "call " << i;
    }
    const int result = driver ? (*driver)(call, theirs) : map ? 0 : refused;
    ASSERT_EQ(result, map ? 0 : refused) << "call " << i;
    if (driver && map)
      ASSERT_EQ(theirs, bytes) << "call " << i;
    image.insert(image.end(), bytes.begin(), bytes.end());
    made += map.has_value();
  }
  EXPECT_GT(made, calls / 4);
  saveImage("tensormap_encoded", image);
}

struct Edit {
  hw::TensorMapField field;
  const char *name, *type;
  std::vector<uint64_t> values;
  unsigned ordinals = 0; ///< 0: the field has none
};

/// Every field with its last and some other value; values of the fields without a register are in
/// the instruction.
std::vector<Edit> edits() {
  using Field = hw::TensorMapField;
  return {{Field::GlobalAddress, "global_address", "b64", {0x123456789ABCD0, 16}},
          {Field::Rank, "rank", "b32", {0, 4, 1}},
          {Field::BoxDim, "box_dim", "b32", {1, 256, 8}, 5},
          {Field::GlobalDim, "global_dim", "b32", {1, 0xFFFFFFFF, 77}, 5},
          {Field::GlobalStride, "global_stride", "b64", {0xFFFFFFFFF0, 16, 0x1000000000}, 4},
          {Field::ElementStride, "element_stride", "b32", {8, 1, 3}, 5},
          {Field::ElementType, "elemtype", "b32", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 4}},
          {Field::InterleaveLayout, "interleave_layout", "b32", {2, 1, 0}},
          {Field::SwizzleMode, "swizzle_mode", "b32", {3, 2, 1, 0}},
          {Field::FillMode, "fill_mode", "b32", {1, 0}}};
}

/// The PTX of one edit of the map at [%m]; the constant goes through a register if the field takes
/// one.
std::string ptxOf(const Edit &edit, unsigned ordinal, uint64_t value) {
  const bool wide = std::string_view(edit.type) == "b64";
  const bool constant = edit.field >= hw::TensorMapField::ElementType;
  const std::string number = std::to_string(value), reg = wide ? "%v64" : "%v32";
  return (constant ? "" : std::string("mov.") + edit.type + " " + reg + ", " + number + ";\n") +
         "tensormap.replace.tile." + edit.name + ".global.b1024." + edit.type + " [%m], " +
         (edit.ordinals ? std::to_string(ordinal) + ", " : "") + (constant ? number : reg) + ";\n" +
         "add.u64 %m, %m, 128;\n";
}

TEST(CtsTensorMap, Replace) {
  Random random(9);
  TensorMapCall call = chooseCall(random);
  while (call.im2col || call.rank < 5 || !ours(call))
    call = chooseCall(random);
  std::string body;
  std::vector<TensorMap::Encoded> maps;
  for (const Edit &edit : edits())
    for (unsigned ordinal = 0; ordinal < std::max(1u, edit.ordinals); ++ordinal)
      for (uint64_t value : edit.values) {
        TensorMap::Encoded map = ours(call)->pack();
        body += ptxOf(edit, ordinal, value);
        ASSERT_TRUE(TensorMap::replace(std::span(map).first<TensorMap::usedBytes>(), edit.field,
                                       ordinal, value));
        maps.push_back(map);
      }
  const std::vector<TensorMap::Encoded> before(maps.size(), ours(call)->pack());
  Buffer buffer(bytesOf(before));
  Params params;
  params.add(buffer.address());
  ASSERT_TRUE(runKernel(".version 8.3\n.target sm_90a\n.address_size 64\n"
                        ".visible .entry replace(.param .u64 maps) {\n"
                        ".reg .b64 %m, %v64;\n.reg .b32 %v32;\nld.param.u64 %m, [maps];\n"
                        "cvta.to.global.u64 %m, %m;\n" +
                            body + "ret;\n}\n",
                        "replace", {{1, 1, 1}, {1, 1, 1}}, params));
  const Bytes after = buffer.read();
  saveImage("tensormap_replace", after);
  for (size_t i = 0; i < maps.size(); ++i)
    ASSERT_EQ(std::memcmp(after.data() + i * sizeof maps[i], maps[i].data(), sizeof maps[i]), 0)
        << "edit " << i;
}

} // namespace
