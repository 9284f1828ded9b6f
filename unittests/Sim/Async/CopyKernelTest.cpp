// TMA and bulk copies in PTX: the kernels of integration_test/cuda-sm90 (which also run on a Hopper
// GPU), multicast, and the rules whose violation is an error.
#include "KernelHarness.h"
#include "Sim/Async/TensorBox.h"

#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

const char *path = "integration_test/cuda-sm90/tma.ptx";

/// A simulator with one tensor of random bytes.
struct Device {
  Simulator simulator;
  std::vector<std::byte> bytes;
  uint64_t tensor = 0;

  Device(SimOptions options, size_t size, uint32_t seed) : simulator(sm90(options)), bytes(size) {
    std::mt19937 rng(seed);
    for (auto &byte : bytes)
      byte = std::byte(rng());
    tensor = simulator.memory().allocate(size, "tensor");
    EXPECT_TRUE(simulator.memory().write(tensor, bytes.data(), size));
  }
  static SimOptions sm90(SimOptions options) {
    options.target = "sm_90a";
    return options;
  }
  std::vector<std::byte> read(uint64_t address, size_t size) {
    std::vector<std::byte> out(size);
    EXPECT_TRUE(simulator.memory().read(address, out.data(), size));
    return out;
  }
};

hw::TensorMap makeMap(uint64_t address, unsigned rank, hw::SwizzleMode swizzle) {
  hw::TensorMap map;
  map.elementType = hw::TensorMapType::UInt16;
  map.rank = rank;
  map.address = address;
  map.swizzle = swizzle;
  map.dims = {100, 20, 3, 3, 2};
  map.strides = {208, 208 * 20, 208 * 60, 208 * 180};
  const uint32_t row = swizzle == hw::SwizzleMode::None ? 48 : hw::swizzleWidthBytes(swizzle);
  map.box = {row / 2, 9, 2, 1, 2};
  return map;
}

constexpr size_t tensorBytes = 208 * 360;

/// Returns the bytes of shared memory after the load, from readBox and swizzleInto (tested on their
/// own).
std::vector<std::byte> expectedImage(Device &device, const hw::TensorMap &map,
                                     const Coordinates &at, size_t dump) {
  auto data = readBox(
      map, at,
      [&](uint64_t address, uint64_t) -> Expected<std::byte *> {
        return device.bytes.data() + (address - device.tensor);
      },
      [](uint64_t, uint32_t) {});
  EXPECT_TRUE(data);
  std::vector<std::byte> image(dump, std::byte{0xEE});
  swizzleInto(map, 0x400, image.data(), *data);
  return image;
}

TEST(TmaKernels, ImagesOfEveryRankAndSwizzle) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  const hw::SwizzleMode modes[] = {hw::SwizzleMode::None, hw::SwizzleMode::B32,
                                   hw::SwizzleMode::B64, hw::SwizzleMode::B128,
                                   hw::SwizzleMode::B128Atom32};
  for (const SimOptions &options : schedules(1))
    for (unsigned rank = 1; rank <= 5; ++rank)
      for (hw::SwizzleMode mode : modes) {
        Device device(options, tensorBytes, rank);
        const hw::TensorMap map = makeMap(device.tensor, rank, mode);
        const Coordinates at = {64, -2, 1, 0, 1};
        const uint32_t dump = (sharedExtent(map) + 1023) / 1024 * 1024;
        const uint64_t out = device.simulator.memory().allocate(dump, "out");
        Params params;
        params.map(map).add(out).add(uint32_t(map.transactionBytes())).add(dump);
        for (unsigned d = 0; d < rank; ++d)
          params.add(at[d]);
        params.add(uint32_t(0));
        LaunchConfig config;
        config.block = {128, 1, 1};
        config.dynamicSharedBytes = dump;
        auto stats = device.simulator.launch(*program, "tma_image_" + std::to_string(rank) + "d",
                                             config, params.span());
        ASSERT_TRUE(stats) << stats.error().message;
        Coordinates used{};
        std::copy_n(at.begin(), rank, used.begin());
        EXPECT_EQ(device.read(out, dump), expectedImage(device, map, used, dump))
            << "rank " << rank << ", " << stringify(mode) << ", " << describe(options);
      }
}

/// Launches tma_store_2d or tma_reduce_add_2d with `input` as the image of shared memory.
Status launchStore(Device &device, const Program &program, const char *kernel,
                   const hw::TensorMap &map, const std::vector<std::byte> &input, int32_t c0,
                   int32_t c1) {
  const uint64_t in = device.simulator.memory().allocate(input.size(), "in");
  FP4_TRY(device.simulator.memory().write(in, input.data(), input.size()));
  Params params;
  params.map(map).add(in).add(uint32_t(input.size())).add(c0).add(c1);
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.dynamicSharedBytes = uint32_t(input.size());
  FP4_TRY(device.simulator.launch(program, kernel, config, params.span()));
  return {};
}

TEST(TmaKernels, StoresAreClipped) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  for (const SimOptions &options : schedules(2)) {
    Device device(options, tensorBytes, 7);
    hw::TensorMap map = makeMap(device.tensor, 2, hw::SwizzleMode::B64);
    std::vector<std::byte> image(map.boxSharedBytes());
    for (size_t i = 0; i < image.size(); ++i)
      image[i] = std::byte(i * 7 + i / 256);
    const Status stored = launchStore(device, *program, "tma_store_2d", map, image, 80, 15);
    ASSERT_TRUE(stored) << stored.error().message;
    std::vector<std::byte> want = device.bytes;
    const auto dense = unswizzle(map, 0x400, image.data());
    for (uint32_t row = 0; row < 9; ++row)
      for (uint32_t element = 0; element < 32; ++element)
        if (80 + element < 104 && 15 + row < 20) // 100, and the rest of the last 16 bytes
          std::memcpy(&want[(15 + row) * 208 + (80 + element) * 2], &dense[row * 64 + element * 2],
                      2);
    EXPECT_EQ(device.read(device.tensor, tensorBytes), want) << describe(options);
  }
}

TEST(TmaKernels, ReduceAdds) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  Device device(schedules()[1], 64 * 64, 8);
  std::vector<float> old(1024), image(4 * 8);
  for (size_t i = 0; i < old.size(); ++i)
    old[i] = float(i);
  ASSERT_TRUE(device.simulator.memory().write(device.tensor, old.data(), 4096));
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = float(i) / 4;
  hw::TensorMap map;
  map.elementType = hw::TensorMapType::Float32;
  map.address = device.tensor;
  map.dims = {32, 32};
  map.strides = {128};
  map.box = {8, 4};
  std::vector<std::byte> bytes(image.size() * 4);
  std::memcpy(bytes.data(), image.data(), bytes.size());
  for (int repeat = 0; repeat < 2; ++repeat)
    ASSERT_TRUE(launchStore(device, *program, "tma_reduce_add_2d", map, bytes, 4, 2));
  std::vector<float> got(1024);
  ASSERT_TRUE(device.simulator.memory().read(device.tensor, got.data(), 4096));
  for (uint32_t row = 0; row < 4; ++row)
    for (uint32_t column = 0; column < 8; ++column)
      old[(2 + row) * 32 + 4 + column] += 2 * image[row * 8 + column];
  EXPECT_EQ(got, old);
}

TEST(TmaKernels, BulkCopy) {
  const auto program = parse(readFile(path), path);
  ASSERT_TRUE(program);
  for (const SimOptions &options : schedules(2)) {
    Device device(options, 4096, 9);
    const uint64_t out = device.simulator.memory().allocate(4096, "out");
    ASSERT_TRUE(device.simulator.memory().fill(out, 0, 4096));
    Params params;
    params.add(device.tensor + 16).add(out + 32).add(uint32_t(2000));
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.dynamicSharedBytes = 4096;
    ASSERT_TRUE(device.simulator.launch(*program, "bulk_copy", config, params.span()));
    const auto got = device.read(out, 4096);
    EXPECT_EQ(std::memcmp(got.data() + 32, device.bytes.data() + 16, 2000), 0);
    EXPECT_EQ(got[31], std::byte{0});
    EXPECT_EQ(got[2032], std::byte{0});
  }
}

std::string boxError(const hw::TensorMap &base, int32_t c0, uint32_t destination,
                     uint64_t mapOffset = 0) {
  const auto program = parse(readFile(path), path);
  SimOptions options;
  options.hostThreads = 1;
  Device device(options, tensorBytes, 1);
  hw::TensorMap map = base;
  map.address = device.tensor + mapOffset;
  const uint64_t out = device.simulator.memory().allocate(8192, "out");
  Params params;
  params.map(map).add(out).add(uint32_t(map.transactionBytes())).add(uint32_t(8192));
  params.add(c0).add(0).add(destination);
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dynamicSharedBytes = 8192;
  auto stats = device.simulator.launch(*program, "tma_image_2d", config, params.span());
  return stats ? "" : stats.error().message;
}

TEST(TmaKernels, Rules) {
  const hw::TensorMap map = makeMap(0, 2, hw::SwizzleMode::B128);
  EXPECT_EQ(boxError(map, 8, 1024), "");
  EXPECT_THAT(boxError(map, 4, 1024), HasSubstr("first coordinate that is a multiple of 16 bytes"));
  EXPECT_THAT(boxError(map, 8, 64), HasSubstr("shared memory address that is a multiple of 128"));
  EXPECT_THAT(boxError(map, 8, 8192), HasSubstr("outside the CTA's shared memory"));
  EXPECT_THAT(boxError(map, 8, 1024, 208 * 355), HasSubstr("tensor"));
}

//===----------------------------------------------------------------------===//
// Bulk copies written for the test
//===----------------------------------------------------------------------===//

/// Thread 0 of every CTA initialises `bar` with one arrival; `body` follows after a barrier of the
/// CTA or the cluster.
std::string withBarrier(const std::string &body, bool cluster = false) {
  return kernelText("  setp.ne.u32 %p1, %t, 0;\n"
                    "  mov.u32 %r0, dynamic;\n  mov.u32 %r1, bar;\n"
                    "  @%p1 bra READY;\n"
                    "  mbarrier.init.shared::cta.b64 [%r1], 1;\n"
                    "  fence.mbarrier_init.release.cluster;\nREADY:\n" +
                        std::string(cluster ? "  barrier.cluster.arrive.aligned;\n"
                                              "  barrier.cluster.wait.aligned;\n"
                                            : "  bar.sync 0;\n") +
                        body,
                    "  .shared .align 8 .b64 bar;\n");
}

const std::string wait = "WAIT:\n"
                         "  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n"
                         "  @!%p2 bra WAIT;\n";

/// Every thread stores the word it finds at 4 * thread in `dynamic`.
const std::string dumpWords = "  shl.b32 %r8, %t, 2;\n  add.u32 %r9, %r0, %r8;\n"
                              "  ld.shared.b32 %v0, [%r9];\n"
                              "  cvt.u64.u32 %rd0, %r8;\n  add.u64 %rd1, %out, %rd0;\n"
                              "  st.global.b32 [%rd1], %v0;\n";

LaunchConfig oneWarp(uint32_t clusterSize = 1) {
  LaunchConfig config;
  config.grid = {clusterSize, 1, 1};
  config.cluster = {clusterSize, 1, 1};
  config.block = {32, 1, 1};
  config.dynamicSharedBytes = 4096;
  return config;
}

TEST(BulkCopies, ReadingBeforeTheWaitIsAnError) {
  const std::string load = "  @%p1 bra ISSUED;\n"
                           "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
                           "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                           "[%r0], [%out], 128, [%r1];\nISSUED:\n";
  const std::string good = withBarrier(load + wait + dumpWords);
  const std::string bad = withBarrier(load + dumpWords + wait);
  for (const SimOptions &options : schedules(2)) {
    const RunResult result = runText(good, options, oneWarp(), 64);
    EXPECT_EQ(result.error, "") << describe(options);
  }
  SimOptions lazy = schedules()[1];
  const RunResult result = runText(bad, lazy, oneWarp(), 64);
  EXPECT_THAT(result.error, HasSubstr("asynchronous copy has not written yet"));
  EXPECT_THAT(result.note, HasSubstr("cp.async.bulk.shared::cluster.global"));
}

TEST(BulkCopies, MulticastReachesEveryCtaOfTheMask) {
  const std::string text = withBarrier(
      "  mov.u32 %r2, %cluster_ctarank;\n"
      "  @%p1 bra ISSUED;\n"
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
      "  setp.ne.u32 %p3, %r2, 0;\n  @%p3 bra ISSUED;\n"
      "  mov.u16 %h, 3;\n"
      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%r0], [%out], 128, [%r1], %h;\nISSUED:\n" +
          wait +
          "  shl.b32 %r8, %t, 2;\n  add.u32 %r9, %r0, %r8;\n  ld.shared.b32 %v0, [%r9];\n"
          "  add.u32 %v0, %v0, %r2;\n  mad.lo.u32 %r8, %r2, 128, %r8;\n  add.u32 %r8, %r8, 128;\n"
          "  cvt.u64.u32 %rd0, %r8;\n  add.u64 %rd1, %out, %rd0;\n"
          "  st.global.b32 [%rd1], %v0;\n"
          "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n",
      true);
  std::string ptx = text;
  ptx.insert(ptx.find("  .reg .b32 %t;"), "  .reg .b16 %h;\n");
  for (const SimOptions &options : schedules(3)) {
    const RunResult result = runText(ptx, options, oneWarp(2), 128);
    ASSERT_EQ(result.error, "") << describe(options);
    for (uint32_t i = 0; i < 32; ++i) {
      EXPECT_EQ(result.out[32 + i], 0u);
      EXPECT_EQ(result.out[64 + i], 1u) << "rank 1 added its rank";
    }
  }
}

/// One copy into both CTAs of a pair; both parts are counted by the barrier of the CTA that the
/// operand names, odd or even.
TEST(TmaKernels, APairSignalsTheCtaThatTheBarrierNames) {
  const auto kernel = [](const std::string &owner) {
    std::string map;
    for (const char *field : {"box_dim", "global_dim"})
      map += std::string("  tensormap.replace.tile.") + field +
             ".global.b1024.b32 [%rd5], 0, 32;\n";
    return withBarrier(
        "  .reg .b16 %h;\n  mov.u32 %r2, %cluster_ctarank;\n  add.u64 %rd5, %out, 512;\n"
        "  @%p1 bra ISSUED;\n  setp.ne.u32 %p3, %r2, " +
            owner +
            ";\n  @%p3 bra EXPECTED;\n"
            "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;\nEXPECTED:\n"
            "  setp.ne.u32 %p4, %r2, 0;\n  @%p4 bra ISSUED;\n" +
            map +
            "  tensormap.replace.tile.elemtype.global.b1024.b32 [%rd5], 2;\n"
            "  tensormap.replace.tile.global_address.global.b1024.b64 [%rd5], %out;\n"
            "  mov.u16 %h, 3;\n  mov.u32 %r9, 0;\n  mapa.shared::cluster.u32 %r7, %r1, " +
            owner +
            ";\n  cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            ".multicast::cluster.cta_group::2 [%r0], [%rd5, {%r9}], [%r7], %h;\nISSUED:\n"
            "  setp.ne.u32 %p3, %r2, " +
            owner + ";\n  @%p3 bra DONE;\n" + wait +
            "DONE:\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
            "  shl.b32 %r8, %t, 2;\n  add.u32 %r9, %r0, %r8;\n  ld.shared.b32 %v0, [%r9];\n"
            "  add.u32 %v0, %v0, 5;\n  mad.lo.u32 %r8, %r2, 128, %r8;\n"
            "  cvt.u64.u32 %rd0, %r8;\n  add.u64 %rd1, %out, %rd0;\n"
            "  st.global.b32 [%rd1+128], %v0;\n",
        true);
  };
  for (const char *owner : {"0", "1"})
    for (const SimOptions &options : schedules(2)) {
      const RunResult result = runText(kernel(owner), options, oneWarp(2), 160);
      ASSERT_EQ(result.error, "") << owner << ", " << describe(options) << result.note;
      EXPECT_EQ(std::vector(result.out.begin() + 32, result.out.begin() + 96),
                std::vector<uint32_t>(64, 5));
    }
}

TEST(BulkCopies, GroupsWaitForTheOldest) {
  const auto store = [](const std::string &waitGroup) {
    return kernelText("  mov.u32 %r0, dynamic;\n  mov.u32 %r2, 7;\n"
                      "  st.shared.v4.b32 [%r0], {%r2, %r2, %r2, %r2};\n"
                      "  fence.proxy.async.shared::cta;\n"
                      "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r0], 16;\n"
                      "  cp.async.bulk.commit_group;\n" +
                      waitGroup +
                      "  mov.u32 %r2, 9;\n"
                      "  st.shared.v4.b32 [%r0], {%r2, %r2, %r2, %r2};\n"
                      "  fence.proxy.async.shared::cta;\n"
                      "  cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%r0], 16;\n"
                      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n");
  };
  LaunchConfig config = oneWarp();
  config.block = {1, 1, 1};
  for (const SimOptions &options : schedules(2)) {
    const RunResult good =
        runText(store("  cp.async.bulk.wait_group.read 0;\n"), options, config, 8);
    ASSERT_EQ(good.error, "");
    EXPECT_EQ(good.out, (std::vector<uint32_t>{7, 7, 7, 7, 9, 9, 9, 9})) << describe(options);
  }
  const RunResult bad =
      runText(store("  cp.async.bulk.wait_group.read 1;\n"), schedules()[1], config, 8);
  EXPECT_EQ(bad.out, (std::vector<uint32_t>{9, 9, 9, 9, 9, 9, 9, 9}))
      << "the first store reads what the second one stored";
}

TEST(BulkCopies, StoresOutliveTheirThreadsButLoadsMustNot) {
  const std::string store = kernelText("  mov.u32 %r0, dynamic;\n  mov.u32 %r2, 7;\n"
                                       "  st.shared.v4.b32 [%r0], {%r2, %r2, %r2, %r2};\n"
                                       "  cp.async.bulk.global.shared::cta.bulk_group [%out], "
                                       "[%r0], 16;\n  cp.async.bulk.commit_group;\n");
  LaunchConfig config = oneWarp();
  config.block = {1, 1, 1};
  for (const SimOptions &options : schedules(1)) {
    const RunResult result = runText(store, options, config, 4);
    EXPECT_EQ(result.error, "") << describe(options);
    EXPECT_EQ(result.out, (std::vector<uint32_t>(4, 7))) << describe(options);
  }
  const std::string load = withBarrier(
      "  @%p1 bra DONE;\n  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32;\n"
      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%out], 32, "
      "[%r1];\nDONE:\n");
  EXPECT_EQ(runText(load, schedules()[0], oneWarp(), 64).error, "");
  EXPECT_THAT(runText(load, schedules()[1], oneWarp(), 64).error,
              HasSubstr("exits while this operation is in flight to its memory"));
}

TEST(BulkCopies, Reductions) {
  const std::string text =
      kernelText("  mov.u32 %r0, dynamic;\n  mov.u32 %r2, 5;\n"
                 "  st.shared.v4.b32 [%r0], {%r2, %r2, %r2, %r2};\n"
                 "  fence.proxy.async.shared::cta;\n"
                 "  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%r0], 16;\n"
                 "  cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%out+16], [%r0], "
                 "16;\n"
                 "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n");
  LaunchConfig config = oneWarp();
  config.grid = {3, 1, 1};
  config.block = {1, 1, 1};
  const RunResult result = runText(text, schedules()[1], config, 8);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.out, (std::vector<uint32_t>{15, 15, 15, 15, 5, 5, 5, 5}));
}

TEST(BulkCopies, SizesAndAddresses) {
  const auto copy = [](const std::string &operands) {
    return withBarrier("  @%p1 bra DONE;\n"
                       "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32;\n"
                       "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " +
                       operands + ";\n" + wait + "DONE:\n");
  };
  const SimOptions options = schedules()[0];
  EXPECT_EQ(runText(copy("[%r0], [%out], 32, [%r1]"), options, oneWarp(), 64).error, "");
  EXPECT_THAT(runText(copy("[%r0], [%out], 24, [%r1]"), options, oneWarp(), 64).error,
              HasSubstr("a size that is a multiple of 16 bytes, but got 0x18"));
  EXPECT_THAT(runText(copy("[%r0+8], [%out], 32, [%r1]"), options, oneWarp(), 64).error,
              HasSubstr("shared memory address"));
  EXPECT_THAT(runText(copy("[%r0], [%out+4], 32, [%r1]"), options, oneWarp(), 64).error,
              HasSubstr("global address"));
  EXPECT_THAT(runText(copy("[%r0], [%out], 32, [%r0]"), options, oneWarp(), 64).error,
              HasSubstr("no mbarrier is initialised"));
  EXPECT_THAT(runText(copy("[%r0], [%out+4096], 32, [%r1]"), options, oneWarp(), 64).error,
              HasSubstr("out"));
}

TEST(TmaKernels, UnsupportedModesAreNamed) {
  const auto parsed = [](const std::string &mode) {
    return Program::parse(
        kernelText("  .reg .b16 %h<4>;\n  cp.async.bulk.tensor.4d.shared::cta.global." + mode +
                   ".mbarrier::complete_tx::bytes [%r0], [%out, {%r1, %r2, %r3, %r4}], [%r5], "
                   "{%h0, %h1};\n"),
        "x.ptx");
  };
  EXPECT_TRUE(parsed("im2col"));
  const auto program = parsed("im2col::w");
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("is not simulated: of the modes for pixels"));
}

} // namespace
