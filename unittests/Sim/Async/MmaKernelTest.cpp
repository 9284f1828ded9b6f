// tcgen05.mma of every kind in PTX, cta_group 1 and 2, against the arithmetic of DenseMma.h and
// BlockScaledMma.h (tested on their own) and the layouts of lib/ISA.
#include "KernelHarness.h"
#include "Sim/Async/BlockScaledMma.h"
#include "fp4/Numerics/DenseMma.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/TmemLayout.h"

#include <bit>
#include <fmt/format.h>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using namespace fp4::numerics;
using hw::MmaKind;
using hw::MmaType;
using testing::HasSubstr;

namespace {

// The image of shared memory of one CTA, from `dynamic`: A of 128 rows of up to 64 bytes, B of 256
// rows, two blocks of scales of A, two of B.
constexpr uint32_t offsetB = 8192, offsetSfa = 24576, offsetSfb = 25600, imageBytes = 26624;
constexpr uint32_t dynamicBase = 0x800; ///< after one KiB of the system and the static variables

/// K-major without swizzle: core matrices of 8 rows by 16 bytes, those of a row adjacent.
uint32_t tileOffset(unsigned row, unsigned byte, unsigned rowBytes) {
  return row / 8 * 8 * rowBytes + row % 8 * 16 + byte / 16 * 128 + byte % 16;
}

struct Problem {
  /// MN-major operands of this many bytes per element, in panels of `swizzle`; 0: K-major.
  unsigned transposed = 0;
  hw::SwizzleMode swizzle = hw::SwizzleMode::None;
  MmaKind kind = MmaKind::F16;
  unsigned m = 128, n = 16, group = 1;
  uint32_t idesc = 0;
  std::string qualifier;                 ///< of block-scaled kinds
  std::string target = "sm_100a";
  unsigned rowBytes = 32;                ///< 64 of the double K
  std::vector<uint8_t> a, b;             ///< rows of rowBytes
  std::vector<uint8_t> scalesA, scalesB; ///< 4 or 8 per row

  Problem(MmaKind kind, unsigned m, unsigned n, unsigned group, uint32_t seed,
          unsigned rowBytes = 32)
      : kind(kind), m(m), n(n), group(group), rowBytes(rowBytes), a(rowBytes * m), b(rowBytes * n),
        scalesA(scales() * m), scalesB(scales() * n) {
    std::mt19937 rng(seed);
    for (auto *bytes : {&a, &b})
      for (uint8_t &byte : *bytes)
        byte = uint8_t(rng());
    for (auto *bytes : {&scalesA, &scalesB})
      for (uint8_t &byte : *bytes)
        byte = uint8_t(0x70 + rng() % 8);
  }
  bool scaled() const { return hw::isBlockScaled(kind); }
  unsigned scales() const { return rowBytes / 8; } ///< bytes of scales of a row

  /// Random bytes make NaNs of some types: keep exponents low.
  void tame(MmaType type) {
    for (auto *bytes : {&a, &b})
      for (size_t i = 0; i < bytes->size(); ++i) {
        uint8_t &byte = (*bytes)[i];
        if (type == MmaType::F16 || type == MmaType::BF16 || type == MmaType::TF32) {
          const size_t width = type == MmaType::TF32 ? 4 : 2;
          if (i % width == width - 1)
            byte = uint8_t((byte & 0x83) | 0x3C);
        } else if (type == MmaType::E4M3 || type == MmaType::E5M2) {
          byte &= 0xBF;
        }
      }
  }

  hw::SmemDescriptor operand(uint32_t start) const {
    if (transposed)
      return hw::SmemDescriptor::mnMajorOperand(swizzle, 32 / transposed, start);
    auto tile = hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::None, start);
    tile.strideByteOffset = 8 * rowBytes;
    return tile;
  }

  /// Returns the offset of byte `byte` of row `row` of an operand from the operand's start, by the
  /// swizzle's definition and not by lib/ISA's operand addresses.
  unsigned offset(unsigned row, unsigned byte) const {
    if (!transposed)
      return tileOffset(row, byte, rowBytes);
    const unsigned width = hw::swizzleWidthBytes(swizzle), perLine = width / transposed;
    const unsigned k = byte / transposed;
    return hw::swizzleAddress(swizzle, row / perLine * 32 / transposed * width + k * width +
                                           row % perLine * transposed) +
           byte % transposed;
  }

  std::vector<uint8_t> image(unsigned rank) const {
    std::vector<uint8_t> out(imageBytes);
    const unsigned rowsA = m / group, rowsB = n / group;
    for (unsigned row = 0; row < rowsA; ++row)
      for (unsigned byte = 0; byte < rowBytes; ++byte)
        out[offset(row, byte)] = a[rowBytes * (rank * rowsA + row) + byte];
    for (unsigned row = 0; row < rowsB; ++row)
      for (unsigned byte = 0; byte < rowBytes; ++byte)
        out[offsetB + offset(row, byte)] = b[rowBytes * (rank * rowsB + row) + byte];
    for (unsigned row = 0; row < rowsA; ++row)
      for (unsigned block = 0; block < scales(); ++block)
        out[offsetSfa + hw::tiled128x4Offset(row, block, scales())] =
            scalesA[scales() * (rank * rowsA + row) + block];
    for (unsigned row = 0; row < n; ++row)
      for (unsigned block = 0; block < scales(); ++block)
        out[offsetSfb + hw::tiled128x4Offset(row, block, scales())] =
            scalesB[scales() * row + block];
    return out;
  }

  std::string mma() const {
    const char *group2 = group == 2 ? "2" : "1";
    if (scaled())
      return fmt::format("  tcgen05.mma.cta_group::{}.kind::{}.block_scale{} [%r10], %rd6, %rd7, "
                         "%r30, [%r31], [%r32], 0;\n",
                         group2, stringify(kind), qualifier);
    return fmt::format("  tcgen05.mma.cta_group::{}.kind::{} [%r10], %rd6, %rd7, %r30, 0;\n",
                       group2, stringify(kind));
  }
};

/// The thread that issues the MMA behind the copies of thread 0: the same, or thread 32, with and
/// without the tcgen05 fences.
enum class Issue { OneThread, TwoThreads, TwoThreadsNoFences };

/// Thread 0 has issued the copies: thread 32 takes over, or thread 0 goes on.
std::string handOver(Issue issue) {
  if (issue == Issue::OneThread)
    return "";
  const bool fences = issue == Issue::TwoThreads;
  return std::string(fences ? "  tcgen05.fence::before_thread_sync;\n" : "") +
         "  mbarrier.arrive.shared::cta.b64 _, [%r4+8];\n  bra WAIT;\n"
         "SECOND:\n  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r4+8], 0;\n"
         "  @!%p7 bra SECOND;\n" +
         (fences ? "  tcgen05.fence::after_thread_sync;\n" : "");
}

/// One or two CTAs: load the image, copy scales, one MMA by rank 0, dump `columns` columns.
std::string mmaKernel(const Problem &p, unsigned columns, Issue issue = Issue::OneThread) {
  const hw::SmemDescriptor tile = p.operand(dynamicBase), second = p.operand(dynamicBase + offsetB);
  const auto scales = [](uint32_t offset) {
    return hw::SmemDescriptor::scaleFactorBlock(dynamicBase + offset).encode();
  };
  const char *g = p.group == 2 ? "2" : "1";
  std::string text = setUpMmas(imageBytes, imageBytes, 2, p.group);
  text += fmt::format("  add.u32 %r31, %r10, 256;\n  add.u32 %r32, %r10, 264;\n"
                      "  or.b32 %r7, %r2, %t;\n  setp.ne.u32 %p4, %r7, 0;\n"
                      "  setp.eq.u32 %p6, %r7, 32;\n{}  @%p4 bra WAIT;\n",
                      issue == Issue::OneThread ? "" : "  @%p6 bra SECOND;\n");
  if (p.scaled())
    text += fmt::format("  mov.b64 %rd3, {:#x};\n  mov.b64 %rd4, {:#x};\n  mov.b64 %rd5, {:#x};\n"
                        "  tcgen05.cp.cta_group::{}.32x128b.warpx4 [%r31], %rd3;\n"
                        "  tcgen05.cp.cta_group::{}.32x128b.warpx4 [%r32], %rd4;\n"
                        "  tcgen05.cp.cta_group::{}.32x128b.warpx4 [%r32+4], %rd5;\n",
                        scales(offsetSfa), scales(offsetSfb), scales(offsetSfb + 512), g, g, g);
  if (p.scaled() && p.scales() == 8)
    text += fmt::format("  mov.b64 %rd3, {:#x};\n"
                        "  tcgen05.cp.cta_group::{}.32x128b.warpx4 [%r31+4], %rd3;\n",
                        scales(offsetSfa + 512), g);
  text += handOver(issue);
  text += fmt::format("  mov.b64 %rd6, {:#x};\n  mov.b64 %rd7, {:#x};\n  mov.u32 %r30, {:#x};\n",
                      tile.encode(), second.encode(), p.idesc);
  text += p.mma();
  text += p.group == 2
              ? "  mov.u16 %h, 3;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one"
                ".shared::cluster.multicast::cluster.b64 [%r4], %h;\n"
              : "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n";
  text += fmt::format("WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;\n"
                      "  @!%p5 bra WAIT;\n  tcgen05.fence::after_thread_sync;\n"
                      "  shl.b32 %r11, %r1, 21;\n  add.u32 %r11, %r11, %r10;\n"
                      "  shl.b32 %r12, %r2, 7;\n  add.u32 %r12, %r12, %t;\n"
                      "  mul.wide.u32 %rd8, %r12, {};\n  add.u64 %rd8, %out, %rd8;\n"
                      "  add.u64 %rd8, %rd8, {};\n",
                      4 * columns, p.group * imageBytes);
  for (unsigned column = 0; column < columns; ++column)
    text += fmt::format("  tcgen05.ld.sync.aligned.{}.x1.b32 {{%v0}}, [%r11+{}];\n"
                        "  tcgen05.wait::ld.sync.aligned;\n  st.global.b32 [%rd8+{}], %v0;\n",
                        "32x32b", column, 4 * column);
  text += fmt::format("  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive.aligned;\n"
                      "  barrier.cluster.wait.aligned;\n  @%p3 bra END;\n"
                      "  tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r10, 512;\nEND:\n",
                      g);
  std::string ptx =
      kernelText(text, "  .shared .align 8 .b64 bar[2];\n  .shared .align 4 .b32 slot;\n");
  return ptx.insert(ptx.find("  .reg .b32 %t;"), "  .reg .b16 %h;\n");
}

struct MmaRun {
  std::string error;
  std::vector<uint32_t> cells; ///< CTA, lane, column
};

MmaRun run(const Problem &p, const SimOptions &base, unsigned columns, bool half = false,
           Issue issue = Issue::OneThread) {
  SimOptions options = base;
  options.target = p.target;
  if (half) // M = 64 leaves every other 16 lanes alone, and this test reads them too
    options.uninitializedReads = UninitializedReads::Ignore;
  auto program = Program::parse(mmaKernel(p, columns, issue), "mma.ptx");
  if (!program)
    return {program.error().message, {}};
  Simulator simulator(options);
  const size_t words = size_t(p.group) * 128 * columns;
  const uint64_t out = simulator.memory().allocate(p.group * imageBytes + 4 * words, "out");
  for (unsigned rank = 0; rank < p.group; ++rank) {
    const auto image = p.image(rank);
    EXPECT_TRUE(simulator.memory().write(out + rank * imageBytes, image.data(), image.size()));
  }
  Params params;
  params.add(out);
  LaunchConfig config;
  config.grid = config.cluster = {p.group, 1, 1};
  config.block = {128, 1, 1};
  config.dynamicSharedBytes = imageBytes;
  auto stats = simulator.launch(**program, "test", config, params.span());
  if (!stats)
    return {stats.error().message + "\n" + stats.error().note, {}};
  MmaRun result;
  result.cells.resize(words);
  EXPECT_TRUE(simulator.memory().read(out + p.group * imageBytes, result.cells.data(), 4 * words));
  return result;
}

/// Compares every element of D with `want(row, column)`.
template <typename F> void expectMatrix(const Problem &p, const std::string &name, F &&want) {
  const auto layout = *hw::accumulatorLayout(p.group, p.m, false, false);
  const unsigned columns = hw::accumulatorColumns(layout, p.n);
  const auto all = schedules(1);
  for (const SimOptions &options : {all[0], all[1], all[2]}) {
    const MmaRun result = run(p, options, columns, layout == hw::AccumulatorLayout::F);
    ASSERT_EQ(result.error, "") << name << ", " << describe(options);
    int wrong = 0;
    for (unsigned row = 0; row < p.m; ++row)
      for (unsigned column = 0; column < p.n; ++column) {
        const auto cell = hw::accumulatorCell(layout, row, column, p.n);
        wrong +=
            result.cells[(cell.cta * 128 + cell.lane) * columns + cell.column] != want(row, column);
      }
    EXPECT_EQ(wrong, 0) << name << ", " << describe(options);
  }
}

uint32_t denseIdesc(MmaKind kind, unsigned m, unsigned n, MmaType type, hw::AccumulatorType d) {
  hw::InstrDesc desc;
  desc.kind = kind;
  desc.m = m;
  desc.n = n;
  desc.aType = desc.bType = type;
  desc.dType = d;
  auto bits = desc.encode();
  EXPECT_TRUE(bits) << bits.error().message;
  return bits.value_or(0);
}

void expectDense(MmaKind kind, MmaType type, unsigned m, unsigned n, unsigned group,
                 hw::AccumulatorType d = hw::AccumulatorType::F32) {
  Problem p(kind, m, n, group, 17);
  p.tame(type);
  p.idesc = denseIdesc(kind, m, n, type, d);
  const unsigned k = hw::mmaK(kind);
  const auto rows = [&](const std::vector<uint8_t> &bytes) {
    std::vector<FactorRow> out(bytes.size() / 32);
    for (size_t i = 0; i < out.size(); ++i)
      decodeFactors(type, &bytes[32 * i], false, false, out[i]);
    return out;
  };
  const auto a = rows(p.a), b = rows(p.b);
  expectMatrix(
      p, fmt::format("{} {} M {} N {} group {}", stringify(kind), stringify(type), m, n, group),
      [&](unsigned row, unsigned column) {
        return denseElement({a[row].data(), k}, {b[column].data(), k}, 2 * fractionBits(type), 0, d,
                            0);
      });
}

TEST(MmaKernels, DenseKinds) {
  expectDense(MmaKind::F16, MmaType::F16, 128, 16, 1);
  expectDense(MmaKind::F16, MmaType::BF16, 128, 32, 1);
  expectDense(MmaKind::F16, MmaType::F16, 128, 16, 1, hw::AccumulatorType::F16);
  expectDense(MmaKind::F16, MmaType::F16, 64, 16, 1);
  expectDense(MmaKind::TF32, MmaType::TF32, 128, 16, 1);
  expectDense(MmaKind::F8F6F4, MmaType::E4M3, 128, 16, 1);
  expectDense(MmaKind::F8F6F4, MmaType::E5M2, 128, 16, 1);
  expectDense(MmaKind::F8F6F4, MmaType::E2M1, 128, 16, 1);
  expectDense(MmaKind::F8F6F4, MmaType::E3M2, 128, 16, 1);
}

TEST(MmaKernels, DensePairs) {
  expectDense(MmaKind::F16, MmaType::F16, 256, 32, 2);
  expectDense(MmaKind::F16, MmaType::F16, 128, 64, 2);
}

/// Both operands transposed, against the elements of the rows.
void expectTransposed(MmaKind kind, MmaType type, unsigned bytes, hw::SwizzleMode swizzle,
                      unsigned m, unsigned n, unsigned group) {
  Problem p(kind, m, n, group, 29);
  p.tame(type);
  p.transposed = bytes;
  p.swizzle = swizzle;
  hw::InstrDesc desc;
  desc.kind = kind;
  desc.m = m;
  desc.n = n;
  desc.aType = desc.bType = type;
  desc.transposeA = desc.transposeB = true;
  p.idesc = *desc.encode();
  expectMatrix(p, fmt::format("transposed {} {}", stringify(type), stringify(swizzle)),
               [&](unsigned row, unsigned column) {
                 FactorRow a, b;
                 decodeFactors(type, &p.a[32 * row], false, false, a);
                 decodeFactors(type, &p.b[32 * column], false, false, b);
                 const unsigned k = hw::mmaK(kind);
                 return denseElement({a.data(), k}, {b.data(), k}, 2 * fractionBits(type), 0,
                                     hw::AccumulatorType::F32, 0);
               });
}

TEST(MmaKernels, TransposedOperands) {
  using enum hw::SwizzleMode;
  for (hw::SwizzleMode swizzle : {None, B32, B64, B128})
    expectTransposed(MmaKind::F16, MmaType::BF16, 2, swizzle, 128, 64, 1);
  expectTransposed(MmaKind::F16, MmaType::F16, 2, B128, 256, 128, 2);
  expectTransposed(MmaKind::F8F6F4, MmaType::E4M3, 1, B128, 128, 128, 1);
}

TEST(MmaKernels, TransposedOperandErrors) {
  Problem p(MmaKind::F16, 128, 16, 1, 1);
  p.tame(MmaType::BF16);
  const SimOptions eager = schedules()[0];
  const auto errorOf = [&](MmaKind kind, MmaType type, hw::SwizzleMode swizzle) {
    hw::InstrDesc desc{.kind = kind, .m = 128, .n = 16};
    desc.aType = desc.bType = type;
    desc.transposeA = true;
    p.kind = kind;
    p.transposed = 2;
    p.swizzle = swizzle;
    p.idesc = *desc.encode();
    return run(p, eager, 1).error;
  };
  EXPECT_EQ(errorOf(MmaKind::F16, MmaType::BF16, hw::SwizzleMode::None), "");
  EXPECT_THAT(errorOf(MmaKind::F16, MmaType::BF16, hw::SwizzleMode::B128Atom32),
              HasSubstr("a transposed A of bf16 expects a swizzle of 16-byte chunks"));
  EXPECT_THAT(errorOf(MmaKind::TF32, MmaType::TF32, hw::SwizzleMode::B128),
              HasSubstr("a transposed A of tf32 expects swizzle_128B_atom_32B"));
  EXPECT_THAT(errorOf(MmaKind::F8F6F4, MmaType::E2M1, hw::SwizzleMode::B128),
              HasSubstr("a transposed A must have 8, 16 or 32 bits per element, but got e2m1"));
}

TEST(MmaKernels, Integers) {
  Problem p(MmaKind::I8, 128, 16, 1, 3);
  p.idesc = denseIdesc(MmaKind::I8, 128, 16, MmaType::S8, hw::AccumulatorType::S32);
  expectMatrix(p, "i8", [&](unsigned row, unsigned column) {
    return integerElement(&p.a[32 * row], &p.b[32 * column], true, true, false, 0);
  });
}

hw::BlockScaledInstrDesc scaledDesc(const Problem &p, hw::ScaleType type) {
  hw::BlockScaledInstrDesc desc;
  desc.kind = p.kind;
  desc.m = p.m;
  desc.n = p.n;
  desc.scaleType = type;
  return desc;
}

void expectScaled(MmaKind kind, hw::ScaleType type, const char *qualifier, unsigned vector,
                  unsigned id, unsigned m, unsigned n, unsigned group) {
  Problem p(kind, m, n, group, 23 + n);
  p.qualifier = qualifier;
  hw::BlockScaledInstrDesc desc = scaledDesc(p, type);
  desc.sfaId = desc.sfbId = id;
  auto bits = desc.encode();
  ASSERT_TRUE(bits) << bits.error().message;
  p.idesc = *bits;
  const auto bytes = [&](const std::vector<uint8_t> &scales, unsigned row) {
    std::array<uint8_t, 4> out;
    for (unsigned i = 0; i < 4; ++i)
      out[i] = scales[4 * row + id + i * vector / 4];
    return out;
  };
  expectMatrix(
      p, fmt::format("{}{} id {} M {} N {} group {}", stringify(kind), qualifier, id, m, n, group),
      [&](unsigned row, unsigned column) {
        return std::bit_cast<uint32_t>(
            blockScaledElement(&p.a[32 * row], &p.b[32 * column], bytes(p.scalesA, row).data(),
                               bytes(p.scalesB, column).data(), type, false, 0.0f));
      });
}

TEST(MmaKernels, BlockScaledFp4) {
  using enum hw::ScaleType;
  expectScaled(MmaKind::MXF4NVF4, UE4M3, ".block16", 4, 0, 128, 64, 1);
  expectScaled(MmaKind::MXF4NVF4, UE4M3, ".scale_vec::4X", 4, 0, 128, 8, 1);
  expectScaled(MmaKind::MXF4NVF4, UE8M0, ".block32", 2, 2, 128, 136, 1);
  expectScaled(MmaKind::MXF4, UE8M0, "", 2, 0, 128, 64, 1);
  expectScaled(MmaKind::MXF4, UE8M0, ".scale_vec::2X", 2, 2, 128, 192, 1);
}

TEST(MmaKernels, BlockScaledPairs) {
  expectScaled(MmaKind::MXF4NVF4, hw::ScaleType::UE4M3, ".block16", 4, 0, 256, 64, 2);
  expectScaled(MmaKind::MXF4, hw::ScaleType::UE8M0, ".block32", 2, 2, 256, 224, 2);
}

TEST(MmaKernels, BlockScaledFp8) {
  for (unsigned id = 0; id < 4; ++id) {
    Problem p(MmaKind::MXF8F6F4, 128, 32, 1, 40 + id);
    p.qualifier = id % 2 ? ".block32" : "";
    p.tame(MmaType::E4M3);
    hw::BlockScaledInstrDesc desc = scaledDesc(p, hw::ScaleType::UE8M0);
    desc.aType = desc.bType = MmaType::E4M3;
    desc.sfaId = desc.sfbId = id;
    auto bits = desc.encode();
    ASSERT_TRUE(bits) << bits.error().message;
    p.idesc = *bits;
    expectMatrix(p, "mxf8f6f4", [&](unsigned row, unsigned column) {
      FactorRow a, b;
      decodeFactors(MmaType::E4M3, &p.a[32 * row], false, false, a);
      decodeFactors(MmaType::E4M3, &p.b[32 * column], false, false, b);
      const int scale = p.scalesA[4 * row + id] + p.scalesB[4 * column + id] - 254;
      return denseElement(a, b, 6, scale, hw::AccumulatorType::F32, 0);
    });
  }
}

/// A problem of the double K for sm_107a, whose scales are those of `vector` and of `id`.
Problem doubleProblem(MmaKind kind, hw::ScaleType type, unsigned n, unsigned group,
                      unsigned id = 0) {
  Problem p(kind, 128 * group, n, group, 60 + n + id, 64);
  p.target = "sm_107a";
  hw::BlockScaledInstrDesc desc = scaledDesc(p, type);
  desc.depth = hw::MmaDepth::Double;
  desc.sfaId = desc.sfbId = id;
  if (kind == MmaKind::MXF8F6F4)
    desc.aType = desc.bType = MmaType::E4M3;
  p.idesc = *desc.encode();
  return p;
}

// K = 128 has eight scales of 16 elements, the last four in the next scale tile, or four of 32.
TEST(MmaKernels, DoubleKOfFp4) {
  using enum hw::ScaleType;
  for (auto [type, vector, group] : {std::tuple(UE4M3, 4u, 1u), {UE5M3, 4u, 2u}, {UE8M0, 2u, 1u}}) {
    Problem p = doubleProblem(MmaKind::MXF4NVF4, type, 64, group);
    p.qualifier = vector == 4 ? ".block16" : ".block32";
    const auto bytes = [&, vector = vector](const std::vector<uint8_t> &scales, unsigned row) {
      std::array<uint8_t, 8> out;
      for (unsigned i = 0; i < 8; ++i)
        out[i] = scales[8 * row + i * vector / 4];
      return out;
    };
    expectMatrix(p, fmt::format("K = 128 {}", stringify(type)),
                 [&, type = type](unsigned row, unsigned column) {
                   return std::bit_cast<uint32_t>(blockScaledElement(
                       &p.a[64 * row], &p.b[64 * column], bytes(p.scalesA, row).data(),
                       bytes(p.scalesB, column).data(), type, false, 0.0f, 8));
                 });
  }
}

/// Factors of the two blocks of a row of 64 bytes, times scales `id` and `id` + 1, if there are
/// any.
std::vector<Factor> factorsOf(const std::vector<uint8_t> &rows, const std::vector<uint8_t> *scales,
                              unsigned row, unsigned id) {
  std::vector<Factor> all;
  for (unsigned block = 0; block < 2; ++block) {
    FactorRow factors;
    decodeFactors(MmaType::E4M3, &rows[64 * row + 32 * block], false, false, factors);
    for (Factor f : factors) {
      f.exponent = int16_t(f.exponent + (scales ? (*scales)[8 * row + id + block] - 127 : 0));
      all.push_back(f);
    }
  }
  return all;
}

// K = 64 of bytes has two scales of a row, the first or the last two of a word.
TEST(MmaKernels, DoubleKOfBytes) {
  for (unsigned id : {0u, 2u}) {
    Problem p = doubleProblem(MmaKind::MXF8F6F4, hw::ScaleType::UE8M0, 48, id ? 2 : 1, id);
    p.tame(MmaType::E4M3);
    p.scalesA[8 * 5 + id + 1] = 0xFF; // row 5 has a NaN
    expectMatrix(p, "K = 64 mxf8f6f4", [&](unsigned row, unsigned column) {
      if (row == 5)
        return denseNaN;
      return denseElement(factorsOf(p.a, &p.scalesA, row, id),
                          factorsOf(p.b, &p.scalesB, column, id), 6, 0, hw::AccumulatorType::F32,
                          0);
    });
  }
  Problem p(MmaKind::F8F6F4, 128, 32, 1, 71, 64);
  p.target = "sm_107a";
  p.tame(MmaType::E4M3);
  p.idesc =
      denseIdesc(MmaKind::F8F6F4, 128, 32, MmaType::E4M3, hw::AccumulatorType::F32) | 1u << 29;
  expectMatrix(p, "K = 64 f8f6f4", [&](unsigned row, unsigned column) {
    return denseElement(factorsOf(p.a, nullptr, row, 0), factorsOf(p.b, nullptr, column, 0), 6, 0,
                        hw::AccumulatorType::F32, 0);
  });
}

// Blackwell would multiply half of K without a word.
TEST(MmaKernels, DoubleKNeedsItsTarget) {
  Problem fp4 = doubleProblem(MmaKind::MXF4NVF4, hw::ScaleType::UE4M3, 64, 1);
  fp4.qualifier = ".block16";
  Problem bytes(MmaKind::F8F6F4, 128, 32, 1, 71, 64);
  bytes.tame(MmaType::E4M3);
  bytes.idesc =
      denseIdesc(MmaKind::F8F6F4, 128, 32, MmaType::E4M3, hw::AccumulatorType::F32) | 1u << 29;
  const SimOptions eager = schedules()[0];
  for (Problem p : {fp4, bytes}) {
    p.target = "sm_107a";
    EXPECT_EQ(run(p, eager, 32).error, "");
    p.target = "sm_100a";
    EXPECT_THAT(run(p, eager, 32).error,
                HasSubstr("target 'sm_100a' has no product of the double K\n"
                          "targets with product of the double K: sm_107a"));
  }
  Problem scales(MmaKind::MXF4NVF4, 128, 64, 1, 3);
  scales.qualifier = ".block16";
  scales.idesc = *scaledDesc(scales, hw::ScaleType::UE5M3).encode();
  EXPECT_THAT(run(scales, eager, 1).error, HasSubstr("target 'sm_100a' has no scales of ue5m3"));
  scales.target = "sm_107a";
  EXPECT_EQ(run(scales, eager, 1).error, "");
  scales.idesc |= 1u << 26;
  EXPECT_THAT(run(scales, eager, 1).error, HasSubstr("in all TMEM lanes"));
  fp4.target = "sm_107a";
  fp4.idesc |= 1u << 4; // eight scales begin at byte 0
  EXPECT_THAT(run(fp4, eager, 1).error, HasSubstr("scale factor id 1 is not legal"));
}

TEST(MmaKernels, FencesOrderCopiesOfAnotherThread) {
  Problem p(MmaKind::MXF4NVF4, 128, 64, 1, 1);
  p.qualifier = ".block16";
  p.idesc = *scaledDesc(p, hw::ScaleType::UE4M3).encode();
  bool caught = false;
  for (const SimOptions &options : schedules(12)) {
    EXPECT_EQ(run(p, options, 64, false, Issue::TwoThreads).error, "") << describe(options);
    const MmaRun unfenced = run(p, options, 64, false, Issue::TwoThreadsNoFences);
    caught |= unfenced.error.find("too early") != std::string::npos;
  }
  EXPECT_TRUE(caught) << "without fences some schedule multiplies before the scales are there";
}

TEST(MmaKernels, DescriptorErrors) {
  Problem good(MmaKind::MXF4NVF4, 128, 64, 1, 1);
  good.qualifier = ".block16";
  good.idesc = *scaledDesc(good, hw::ScaleType::UE4M3).encode();
  const SimOptions eager = schedules()[0];
  EXPECT_EQ(run(good, eager, 64).error, "");

  Problem bad = good;
  bad.idesc |= 1; // reserved
  EXPECT_THAT(run(bad, eager, 1).error, HasSubstr("must be zero in bits"));
  bad = good;
  bad.idesc = (good.idesc & ~(0x3Fu << 17)) | 33u << 17; // N 264
  EXPECT_THAT(run(bad, eager, 1).error, HasSubstr("264"));
  bad = good;
  bad.idesc |= 1u << 29; // id 1 with four scales
  EXPECT_NE(run(bad, eager, 1).error, "");
  bad = good;
  bad.kind = MmaKind::MXF4; // its scales are ue8m0
  bad.qualifier = "";
  EXPECT_NE(run(bad, eager, 1).error, "");
  bad = good;
  bad.qualifier = "";
  EXPECT_THAT(run(bad, eager, 1).error, HasSubstr("mxf4nvf4"));
  bad = good;
  bad.m = 256;
  bad.a.resize(32 * 256);
  bad.scalesA.resize(1024);
  bad.idesc = *scaledDesc(bad, hw::ScaleType::UE4M3).encode();
  EXPECT_NE(run(bad, eager, 1).error, "") << "M 256 needs cta_group::2";
}

} // namespace
