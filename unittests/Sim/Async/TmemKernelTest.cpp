// Tensor memory in PTX: allocation, every shape of tcgen05.ld, st and cp against the layouts of
// lib/ISA, waits, and what reading too early or leaking reports.
#include "KernelHarness.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/TmemLayout.h"

#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

LaunchConfig block(uint32_t threads) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.dynamicSharedBytes = 8192;
  return config;
}

/// "{%v0, %v1, ...}"
std::string registers(unsigned count, unsigned first = 0) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("{}%v{}", i ? ", " : "", first + i);
  return text + "}";
}

/// Four warps; warp 0 allocates 64 columns, address in %r10; %r11 is the warp's quarter of it; 64
/// columns are set to lane * 1000 + column. After `body` the tensor memory is given back.
std::string tmemKernel(const std::string &body, bool initialise = true) {
  std::string text = "  shr.u32 %r1, %t, 5;\n  mov.u32 %r9, slot;\n"
                     "  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra ALLOCATED;\n"
                     "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 64;\n"
                     "ALLOCATED:\n  bar.sync 0;\n  ld.shared.b32 %r10, [%r9];\n"
                     "  shl.b32 %r11, %r1, 21;\n  add.u32 %r11, %r11, %r10;\n"
                     "  mul.lo.u32 %r12, %t, 1000;\n";
  for (unsigned i = 0; i < 64; ++i)
    text += fmt::format("  add.u32 %v{}, %r12, {};\n", i, i);
  if (initialise)
    text += "  tcgen05.st.sync.aligned.32x32b.x64.b32 [%r11], " + registers(64) +
            ";\n  tcgen05.wait::st.sync.aligned;\n";
  text += body + "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @%p1 bra END;\n"
                 "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;\nEND:\n";
  return kernelText(text, "  .shared .align 4 .b32 slot;\n  .shared .align 8 .b64 bar;\n");
}

/// Stores %v0..%v(count-1) of every thread at out[thread * count + i].
std::string dump(unsigned count) {
  std::string text =
      fmt::format("  mul.wide.u32 %rd1, %t, {};\n  add.u64 %rd1, %out, %rd1;\n", 4 * count);
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("  st.global.b32 [%rd1+{}], %v{};\n", 4 * i, i);
  return text;
}

struct ShapeCase {
  hw::LoadShape shape;
  unsigned num;
  unsigned split = 0;
};
const ShapeCase shapes[] = {{hw::LoadShape::S32x32b, 1},      {hw::LoadShape::S32x32b, 16},
                            {hw::LoadShape::S16x64b, 1},      {hw::LoadShape::S16x64b, 8},
                            {hw::LoadShape::S16x128b, 1},     {hw::LoadShape::S16x128b, 4},
                            {hw::LoadShape::S16x256b, 1},     {hw::LoadShape::S16x256b, 2},
                            {hw::LoadShape::S16x32bx2, 2, 8}, {hw::LoadShape::S16x32bx2, 4, 16}};

std::string spelled(const ShapeCase &c, const char *qualifier = "") {
  return fmt::format("{}.x{}{}.b32", stringify(c.shape), c.num, qualifier);
}

TEST(TmemKernels, LoadsOfEveryShape) {
  for (const ShapeCase &c : shapes)
    for (bool packed : {false, true}) {
      const unsigned count = *hw::loadRegisters(c.shape, c.num);
      const std::string text =
          tmemKernel(fmt::format("  tcgen05.ld.sync.aligned.{} {}, [%r11+4]{};\n"
                                 "  tcgen05.wait::ld.sync.aligned;\n",
                                 spelled(c, packed ? ".pack::16b" : ""), registers(count),
                                 c.split ? fmt::format(", {}", c.split) : "") +
                     dump(count));
      for (const SimOptions &options : {schedules()[0], schedules()[1]}) {
        const RunResult result = runText(text, options, block(128), 128 * count);
        ASSERT_EQ(result.error, "") << spelled(c);
        for (unsigned thread = 0; thread < 128; ++thread)
          for (unsigned i = 0; i < count; ++i) {
            const unsigned warp = thread / 32, lane = thread % 32;
            const hw::TmemAddress base{32 * warp, 4};
            const auto value = [&](hw::TmemAddress cell) { return cell.lane * 1000 + cell.column; };
            uint32_t want = value(hw::loadCell(c.shape, warp, lane, i, base, c.split));
            if (packed) {
              const auto low = hw::loadCellPacked(c.shape, warp, lane, i, 0, base, c.split);
              const auto high = hw::loadCellPacked(c.shape, warp, lane, i, 1, base, c.split);
              want = (value(low) & 0xFFFF) | value(high) << 16;
            }
            ASSERT_EQ(result.out[thread * count + i], want)
                << spelled(c) << " packed " << packed << " thread " << thread << " register " << i;
          }
      }
    }
}

TEST(TmemKernels, StoresOfEveryShape) {
  for (const ShapeCase &c : shapes) {
    const unsigned count = *hw::loadRegisters(c.shape, c.num);
    std::string body;
    for (unsigned i = 0; i < count; ++i)
      body += fmt::format("  mad.lo.u32 %v{}, %t, 256, {};\n", i, 0x1000000 + i);
    body += fmt::format("  tcgen05.st.sync.aligned.{} [%r11+4]{}, {};\n"
                        "  tcgen05.wait::st.sync.aligned;\n"
                        "  tcgen05.ld.sync.aligned.32x32b.x64.b32 {}, [%r11];\n"
                        "  tcgen05.wait::ld.sync.aligned;\n",
                        spelled(c), c.split ? fmt::format(", {}", c.split) : "", registers(count),
                        registers(64));
    for (const SimOptions &options : {schedules()[0], schedules()[1]}) {
      const RunResult result = runText(tmemKernel(body + dump(64)), options, block(128), 128 * 64);
      ASSERT_EQ(result.error, "") << spelled(c);
      std::vector<uint32_t> want(128 * 64);
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned column = 0; column < 64; ++column)
          want[lane * 64 + column] = lane * 1000 + column;
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned i = 0; i < count; ++i) {
          const auto cell =
              hw::loadCell(c.shape, thread / 32, thread % 32, i, {32 * (thread / 32), 4}, c.split);
          want[cell.lane * 64 + cell.column] = thread * 256 + 0x1000000 + i;
        }
      EXPECT_EQ(result.out, want) << spelled(c);
    }
  }
}

TEST(TmemKernels, CopiesOfEveryShape) {
  using hw::CopyShape;
  for (CopyShape shape :
       {CopyShape::C32x128bWarpx4, CopyShape::C64x128bWarpx2_01_23, CopyShape::C64x128bWarpx2_02_13,
        CopyShape::C128x128b, CopyShape::C128x256b, CopyShape::C4x256b}) {
    hw::SmemDescriptor source;
    source.startAddress = 0x400 + 1024; // `dynamic` is the next multiple of 1024 after the statics
    source.strideByteOffset = 128;
    source.leadingByteOffset = 2048;
    const std::string body = fmt::format(
        "  mov.u32 %r20, dynamic;\n  shl.b32 %r21, %t, 5;\n  add.u32 %r22, %r20, %r21;\n"
        "  shl.b32 %r23, %t, 3;\n"
        "  add.u32 %r24, %r23, 1;\n  add.u32 %r25, %r23, 2;\n  add.u32 %r26, %r23, 3;\n"
        "  st.shared.v4.b32 [%r22], {{%r23, %r24, %r25, %r26}};\n"
        "  add.u32 %r23, %r23, 4;\n  add.u32 %r24, %r24, 4;\n  add.u32 %r25, %r25, 4;\n"
        "  add.u32 %r26, %r26, 4;\n  st.shared.v4.b32 [%r22+16], {{%r23, %r24, %r25, %r26}};\n"
        "  fence.proxy.async.shared::cta;\n  mov.u32 %r27, bar;\n  setp.ne.u32 %p2, %t, 0;\n"
        "  @%p2 bra READY;\n  mbarrier.init.shared::cta.b64 [%r27], 1;\nREADY:\n"
        "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
        "  tcgen05.fence::after_thread_sync;\n  @%p2 bra ISSUED;\n"
        "  mov.b64 %rd5, {:#x};\n"
        "  tcgen05.cp.cta_group::1.{} [%r10+8], %rd5;\n"
        "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r27];\n"
        "ISSUED:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r27], 0;\n"
        "  @!%p3 bra ISSUED;\n  tcgen05.fence::after_thread_sync;\n"
        "  tcgen05.ld.sync.aligned.32x32b.x64.b32 {}, [%r11];\n"
        "  tcgen05.wait::ld.sync.aligned;\n",
        source.encode(), stringify(shape), registers(64));
    for (const SimOptions &options : schedules(1)) {
      const RunResult result = runText(tmemKernel(body + dump(64)), options, block(128), 128 * 64);
      ASSERT_EQ(result.error, "") << stringify(shape) << " " << describe(options);
      std::vector<uint32_t> want(128 * 64);
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned column = 0; column < 64; ++column)
          want[lane * 64 + column] = lane * 1000 + column;
      for (unsigned row = 0; row < hw::copyRows(shape); ++row)
        for (unsigned word = 0; word < hw::copyColumns(shape); ++word) {
          const auto cells = hw::copyCells(shape, row, word);
          for (unsigned i = 0; i < cells.count; ++i)
            want[cells.cells[i].lane * 64 + 8 + cells.cells[i].column] =
                (source.operandAddress(row, 4 * word) - source.startAddress) / 4;
        }
      EXPECT_EQ(result.out, want) << stringify(shape) << " " << describe(options);
    }
  }
}

/// Thread 0 issues `operation` (of tcgen05) and commits; all wait for it.
std::string issueAndWait(const std::string &operation) {
  return "  mov.u32 %r27, bar;\n  setp.ne.u32 %p2, %t, 0;\n  @%p2 bra READY;\n"
         "  mbarrier.init.shared::cta.b64 [%r27], 1;\nREADY:\n"
         "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
         "  tcgen05.fence::after_thread_sync;\n  @%p2 bra ISSUED;\n" +
         operation +
         "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r27];\n"
         "ISSUED:\n  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r27], 0;\n"
         "  @!%p3 bra ISSUED;\n  tcgen05.fence::after_thread_sync;\n"
         "  tcgen05.ld.sync.aligned.32x32b.x64.b32 " +
         registers(64) + ", [%r11];\n  tcgen05.wait::ld.sync.aligned;\n";
}

/// 16 elements of 4 or 6 bits at the start of every 16 bytes become 16 bytes.
TEST(TmemKernels, CopiesThatDecompress) {
  for (unsigned bits : {4u, 6u}) {
    hw::SmemDescriptor source;
    source.startAddress = 0x400 + 1024;
    source.strideByteOffset = 128;
    const std::string fill =
        "  mov.u32 %r20, dynamic;\n  shl.b32 %r21, %t, 4;\n  add.u32 %r22, %r20, %r21;\n"
        "  mul.lo.u32 %r23, %t, 0x9E3779B1;\n  mul.lo.u32 %r24, %r23, 0x85EBCA77;\n"
        "  st.shared.v4.b32 [%r22], {%r23, %r24, %r23, %r24};\n"
        "  fence.proxy.async.shared::cta;\n";
    const std::string body =
        fill + issueAndWait(fmt::format("  mov.b64 %rd5, {:#x};\n  tcgen05.cp.cta_group::1.128x128b"
                                        ".b8x16.b{}x16_p{} [%r10+8], %rd5;\n",
                                        source.encode(), bits, bits == 4 ? 64 : 32));
    const RunResult result =
        runText(tmemKernel(body + dump(64)), schedules()[1], block(128), 128 * 64);
    ASSERT_EQ(result.error, "");
    for (uint32_t row = 0; row < 128; ++row) {
      const uint32_t first = row * 0x9E3779B1, second = first * 0x85EBCA77;
      const uint64_t low = first | uint64_t(second) << 32; // and again
      for (unsigned i = 0; i < 16; ++i) {
        const unsigned at = i * bits, up = at % 64;
        const uint64_t moved = low >> up | (up ? low << (64 - up) : 0);
        const uint32_t element = uint32_t(moved) & ((1u << bits) - 1);
        const uint32_t byte = result.out[row * 64 + 8 + i / 4] >> (8 * (i % 4)) & 0xFF;
        ASSERT_EQ(byte, bits == 4 ? element << 2 : element) << "row " << row << " element " << i;
      }
    }
  }
}

TEST(TmemKernels, ShiftsMoveRowsOfAWarpDown) {
  const std::string body = issueAndWait("  add.u32 %r28, %r10, 0x200004;\n"
                                        "  tcgen05.shift.cta_group::1.down [%r28];\n");
  const RunResult result =
      runText(tmemKernel(body + dump(64)), schedules()[1], block(128), 128 * 64);
  ASSERT_EQ(result.error, "");
  for (unsigned lane = 0; lane < 128; ++lane)
    for (unsigned column = 0; column < 64; ++column) {
      const bool moved = lane > 32 && lane < 64 && column >= 4 && column < 12;
      ASSERT_EQ(result.out[lane * 64 + column], (lane - moved) * 1000 + column)
          << lane << " " << column;
    }
}

TEST(TmemKernels, StoresThatUnpack) {
  const std::string body = "  mov.b32 %v0, 0x22221111;\n  mov.b32 %v1, 0x44443333;\n"
                           "  tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r11+4], {%v0, "
                           "%v1};\n  tcgen05.wait::st.sync.aligned;\n"
                           "  tcgen05.ld.sync.aligned.32x32b.x8.b32 " +
                           registers(8) + ", [%r11+2];\n  tcgen05.wait::ld.sync.aligned;\n";
  const RunResult result = runText(tmemKernel(body + dump(8)), schedules()[1], block(128), 1024);
  ASSERT_EQ(result.error, "");
  const std::vector<uint32_t> want = {1002, 1003, 0x1111, 0x2222, 0x3333, 0x4444, 1008, 1009};
  EXPECT_EQ(std::vector(result.out.begin() + 8, result.out.begin() + 16), want);
}

//===----------------------------------------------------------------------===//
// Waits and rules
//===----------------------------------------------------------------------===//

const std::string loadOne = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11];\n";
const std::string waitLoad = "  tcgen05.wait::ld.sync.aligned;\n";

TEST(TmemKernels, RegistersArriveWithTheWait) {
  for (const SimOptions &options : schedules(2))
    EXPECT_EQ(runText(tmemKernel(loadOne + waitLoad + dump(1)), options, block(128), 128).error,
              "");
  SimOptions lazy = schedules()[1];
  const std::string early = tmemKernel(loadOne + dump(1) + waitLoad);
  for (const SimOptions &options : schedules(2)) // whether or not the data is there
    EXPECT_THAT(runText(early, options, block(128), 128).error,
                HasSubstr("uses a register of the tcgen05.ld"));
  lazy.judgement = Judgement::Practice;
  const RunResult drained = runText(early, lazy, block(128), 128);
  EXPECT_EQ(drained.error, "");
  EXPECT_EQ(drained.out[5], 5000u);
}

TEST(TmemKernels, LoadAfterStoreNeedsTheWait) {
  const std::string store = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%r12};\n";
  const std::string wait = "  tcgen05.wait::st.sync.aligned;\n";
  for (const SimOptions &options : schedules(2))
    EXPECT_EQ(
        runText(tmemKernel(store + wait + loadOne + waitLoad + dump(1)), options, block(128), 128)
            .error,
        "");
  EXPECT_THAT(runText(tmemKernel(store + loadOne + wait + waitLoad + dump(1)), schedules()[1],
                      block(128), 128)
                  .error,
              HasSubstr("too early"));
}

// Address + (rank of the CTA * 128 + 96) lanes, whatever the quarter of the warp.
TEST(TmemKernels, TheLaneCountsWithinTheQuarter) {
  LaunchConfig pair = block(128);
  pair.grid = pair.cluster = {2, 1, 1};
  const std::string text = tmemKernel(
      "  mov.u32 %r2, %cluster_ctarank;\n  shl.b32 %r2, %r2, 23;\n  add.u32 %r11, %r10, %r2;\n"
      "  add.u32 %r11, %r11, 0x600000;\n" +
      loadOne + waitLoad + dump(1));
  SimOptions options = schedules()[0];
  EXPECT_THAT(runText(text, options, pair, 128).error, HasSubstr("may access TMEM lanes"));
  options.judgement = Judgement::Practice;
  const RunResult result = runText(text, options, pair, 128); // both CTAs store the same
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.out[77], 77000u);
}

// As after an MMA with M = 64. All ones are a NaN of every type.
TEST(TmemKernels, HalfOfTheLanesMayBeUntouched) {
  const std::string store = "  tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r11+16], 2, {%v0, %v1};\n"
                            "  tcgen05.wait::st.sync.aligned;\n";
  const auto run = [&](const char *load, Judgement judgement) {
    SimOptions options = schedules()[0];
    options.judgement = judgement;
    return runText(tmemKernel("  mov.u32 %v0, %t;\n" + store + load + waitLoad + dump(1), false),
                   options, block(128), 128);
  };
  const char *written = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11+16];\n";
  EXPECT_THAT(run(written, Judgement::Letter).error, HasSubstr("never written"));
  const RunResult result = run(written, Judgement::Practice);
  ASSERT_EQ(result.error, "");
  for (unsigned lane = 0; lane < 128; ++lane)
    EXPECT_EQ(result.out[lane], lane % 32 < 16 ? lane : ~0u) << lane;
  const RunResult least = run("  tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%v1, %v2}, %v0, "
                              "[%r11+16];\n",
                              Judgement::Practice);
  ASSERT_EQ(least.error, "");
  for (unsigned lane = 0; lane < 128; ++lane)
    EXPECT_EQ(least.out[lane], lane % 32 < 16 ? lane : ~0u) << lane;
  // A column that does not exist has no halves.
  for (const char *column : {"64", "4096", "60000"})
    EXPECT_THAT(run(("  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11+" + std::string(column) +
                     "];\n").c_str(),
                    Judgement::Practice)
                    .error,
                HasSubstr("not inside one allocation"));
}

// As before a loop without iterations, whose first load Triton issues all the same.
TEST(TmemKernels, AllOfALoadMayBeUntouched) {
  const std::string store = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+16], {%v0};\n"
                            "  tcgen05.wait::st.sync.aligned;\n";
  const auto run = [&](const std::string &load, Judgement judgement) {
    SimOptions options = schedules()[0];
    options.judgement = judgement;
    return runText(
        tmemKernel("  mov.u32 %v0, 7;\n  mov.u32 %v1, 7;\n" + store + load + waitLoad + dump(2),
                   false),
        options, block(128), 256);
  };
  const std::string untouched = "  tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0, %v1}, [%r11+17];\n";
  EXPECT_THAT(run(untouched, Judgement::Letter).error, HasSubstr("never written"));
  for (const std::string &load :
       {untouched, std::string("  tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%v0, %v1}, [%r11+20], "
                               "4;\n")}) {
    const RunResult result = run(load, Judgement::Practice);
    ASSERT_EQ(result.error, "") << load;
    EXPECT_THAT(result.out, testing::Each(~0u)) << load;
  }
}

// As a loop without iterations loads a wider accumulator than the loop before it left in its place.
TEST(TmemKernels, ColumnsOfALoadMayBeUntouched) {
  const auto run = [&](const std::string &load, Judgement judgement) {
    SimOptions options = schedules()[0];
    options.judgement = judgement;
    return runText(tmemKernel("  mov.u32 %v0, 7;\n  mov.u32 %v1, 7;\n"
                              "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+16], {%v0};\n"
                              "  tcgen05.wait::st.sync.aligned;\n" +
                                  load + waitLoad + dump(2),
                              false),
                   options, block(128), 256);
  };
  const std::string wide = "  tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0, %v1}, [%r11+16];\n";
  const RunResult result = run(wide, Judgement::Practice);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(std::ranges::count(result.out, 7u), 128);
  EXPECT_EQ(std::ranges::count(result.out, ~0u), 128);
  EXPECT_THAT(run(wide, Judgement::Letter).error, HasSubstr("never written"));
  for (const char *other : {"  tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%v0, %v1}, [%r11+16], 4;\n",
                            "  tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%v0, %v1}, %r12, "
                            "[%r11+16];\n"})
    EXPECT_THAT(run(other, Judgement::Practice).error, HasSubstr("never written"));
}

struct Rule {
  const char *name, *good, *bad, *error;
};

TEST(TmemKernels, Rules) {
  const Rule rules[] = {
      {"never written", "", "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11+20];\n",
       "never written"},
      {"not allocated", "", "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+64], {%r12};\n",
       "not inside one allocation"},
      {"lanes of another warp", "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%r12};\n",
       "  add.u32 %r11, %r11, 0x200000;\n"
       "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%r12};\n",
       "may access TMEM lanes"},
      {"larger than before", "",
       "  @%p1 bra N;\n"
       "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 128;\nN:\n",
       "must not increase"},
      {"wrong size given back", "",
       "  @%p1 bra N;\n  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\nN:\n",
       "but 64 were allocated"},
      {"after relinquishing", "",
       "  @%p1 bra N;\n  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
       "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;\nN:\n",
       "relinquish_alloc_permit"},
      {"beside the allocation", "", "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+64], {%r12};\n",
       ": tcgen05.st: tensor memory columns 64..64 are not inside one allocation"},
      {"leak", "",
       "  @%p1 bra N;\n"
       "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;\nN:\n",
       "exits with tensor memory allocated: columns 64..95"},
  };
  for (const Rule &rule : rules) {
    const std::string stores = "  tcgen05.wait::st.sync.aligned;\n";
    EXPECT_EQ(runText(tmemKernel(rule.good + stores, false), schedules()[0], block(128), 1).error,
              "")
        << rule.name;
    EXPECT_THAT(runText(tmemKernel(rule.bad + stores, false), schedules()[0], block(128), 1).error,
                HasSubstr(rule.error))
        << rule.name;
  }
}

TEST(TmemKernels, AllocationBlocksUntilColumnsAreFree) {
  // Warp 1 wants 512 columns while warp 0 has them; with `giveBack` it gets them.
  const auto text = [](bool giveBack) {
    return kernelText(
        std::string("  mov.u32 %r9, slot;\n  setp.ge.u32 %p1, %t, 32;\n  @%p1 bra SECOND;\n"
                    "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 512;\n"
                    "  bar.sync 1, 64;\n  ld.shared.b32 %r10, [%r9];\n") +
            (giveBack ? "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;\n" : "") +
            "  ret;\nSECOND:\n  bar.sync 1, 64;\n"
            "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9+4], 512;\n"
            "  ld.shared.b32 %r10, [%r9+4];\n"
            "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;\n",
        "  .shared .align 4 .b32 slot[2];\n");
  };
  for (const SimOptions &options : schedules(2))
    EXPECT_EQ(runText(text(true), options, block(64), 1).error, "") << describe(options);
  EXPECT_THAT(runText(text(false), schedules()[0], block(64), 1).error,
              HasSubstr("512 free columns of tensor memory"));
}

/// Expects a reduction of columns of tensor memory to give `want` in lane 1: columns hold 1000 +
/// column, the first of them `first`.
std::string reduced(const std::string &op, const std::string &first, uint32_t want) {
  const RunResult run = runText(
      tmemKernel("  mov.b32 %v0, " + first +
                 ";\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11], {%v0};\n"
                 "  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.red.sync.aligned.32x32b.x4." +
                 op + " {%v1, %v2, %v3, %v4}, %v0, [%r11];\n  tcgen05.wait::ld.sync.aligned;\n" +
                 dump(2)),
      schedules(0)[1], block(128), 256);
  if (!run.error.empty())
    return run.error;
  return run.out[2] == want && run.out[3] != want ? "" : fmt::format("{:#x}", run.out[2]);
}

TEST(TmemKernels, LoadsWithAReduction) {
  EXPECT_EQ(reduced("min.u32", "0xFFFFFFFF", 1001), "");
  EXPECT_EQ(reduced("max.s32", "-5", 1003), "");
  // 1001 .. 1003 are tiny positive numbers as floats.
  EXPECT_EQ(reduced("max.f32", "0xBF800000", 1003), "");
  EXPECT_EQ(reduced("min.f32", "0x7FC00000", 1001), "");
  EXPECT_EQ(reduced("min.NaN.f32", "0x7FC00000", 0x7FFFFFFF), "");
  EXPECT_EQ(reduced("max.abs.f32", "0xBF800000", 0x3F800000), "");
  EXPECT_THAT(reduced("min.abs.u32", "0", 0), HasSubstr(".abs and .NaN expect .f32"));
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Both CTAs of a pair allocate and free; `before` comes first in the odd one.
std::string pairKernel(const std::string &odd, const std::string &columns = "64") {
  return kernelText("  mov.u32 %r9, slot;\n  mov.u32 %r2, %cluster_ctarank;\n"
                    "  setp.eq.u32 %p1, %r2, 0;\n  mov.u32 %r3, 64;\n  @%p1 bra BOTH;\n" +
                        odd + "  mov.u32 %r3, " + columns +
                        ";\nBOTH:\n"
                        "  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r9], %r3;\n"
                        "  ld.shared.b32 %r10, [%r9];\n"
                        "  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, %r3;\n"
                        "  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n",
                    "  .shared .align 4 .b32 slot;\n");
}

RunResult runPair(const std::string &text, uint32_t ctas = 2) {
  LaunchConfig config = block(32);
  config.grid = config.cluster = {ctas, 1, 1};
  return runText(text, schedules(0)[0], config, 4);
}

TEST(TmemPairs, WarpsOfBothCtasAllocateTogether) {
  EXPECT_EQ(runPair(pairKernel("")).error, "");
  EXPECT_EQ(runPair(pairKernel("  nanosleep.u32 100;\n")).error, "");
}

TEST(TmemPairs, AnAllocationWithoutThePeerNeverEnds) {
  const RunResult result = runPair(pairKernel("  ret;\n"));
  EXPECT_THAT(result.error + result.note,
              HasSubstr("a warp of the peer CTA, rank 1, to execute tcgen05.alloc.cta_group::2"));
}

TEST(TmemPairs, BothAskForTheSame) {
  EXPECT_THAT(runPair(pairKernel("", "128")).error,
              HasSubstr("tcgen05.alloc.cta_group::2 of 128 columns, but the peer CTA executes "
                        "tcgen05.alloc of 64 columns"));
  EXPECT_THAT(runPair(pairKernel(""), 1).error, HasSubstr("expects a pair of CTAs"));
}

} // namespace
