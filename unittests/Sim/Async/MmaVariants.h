//===- MmaVariants.h - One tcgen05.mma and its plain reference ------------===//
//
// A case, images of shared and tensor memory for it, the kernel that runs it and the D that it must
// give. Factors are small integers, so that every sum is exact and the reference is plain
// arithmetic on matrices. The places of elements and metadata are computed here, from the layouts
// of CUTLASS' fragments (mma_traits_sm100_frag.hpp) and not by lib/ISA.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelHarness.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/ZeroColumnMask.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <random>

namespace fp4::sim::test::variants {

using hw::MmaKind;
using hw::MmaType;

constexpr uint32_t offsetB = 4096, sharedBytes = 4096 + 288 * 64, dynamicBase = 0x800;
/// Columns of tensor memory: D, then what the MMA reads there.
constexpr uint32_t columnA = 256, columnMeta = 264, columnScales = 272, columnCount = 32;

struct Case {
  MmaKind kind = MmaKind::F16;
  MmaType type = MmaType::F16;
  unsigned m = 128, n = 64, group = 1;
  bool sparse = false, stationary = false, aInTmem = false;
  unsigned selector = 0;
  hw::AccumulatorType d = hw::AccumulatorType::F32;
  uint32_t lane = 0; ///< of D where it has 16 of 32: 0 or 16
  bool accumulate = true, shiftA = false;
  unsigned scaleD = 0;
  std::vector<uint32_t> disabled;
  std::optional<hw::ZeroColumnMask> mask;
  std::string collector = "";

  bool scaled() const { return hw::isBlockScaled(kind); }
  bool packed() const { return kind == MmaKind::MXF4 || kind == MmaKind::MXF4NVF4; }
  unsigned k() const { return hw::mmaK(kind, sparse); }
  unsigned stored() const { return hw::mmaK(kind); }
  unsigned rows() const { return m / group; }
  unsigned chunk() const { return packed() ? 8 : kind == MmaKind::TF32 ? 2 : 4; }
  bool halfLanes() const {
    return (group == 1 && m == 64 && !stationary) || (group == 2 && m == 128 && sparse);
  }
  /// Parts that D's columns are split in, one below the other.
  unsigned parts() const {
    return stationary ? 128 / m : group == 2 && m == 128 && !sparse ? 2 : 1;
  }
  unsigned columns() const { return n / parts(); }
  std::string name() const {
    return fmt::format("{} {} M {} N {} group {}{}{}{} selector {} lane {}", stringify(kind),
                       stringify(type), m, n, group, sparse ? " sparse" : "",
                       stationary ? " ws" : "", aInTmem ? " A in tmem" : "", selector, lane);
  }
};

inline uint32_t encode(MmaType type, int x) {
  static const std::map<MmaType, std::array<uint32_t, 3>> codes = {
      // 1, 2, sign
      {MmaType::F16, {0x3C00, 0x4000, 0x8000}},
      {MmaType::BF16, {0x3F80, 0x4000, 0x8000}},
      {MmaType::TF32, {0x3F800000, 0x40000000, 0x80000000}},
      {MmaType::E4M3, {0x38, 0x40, 0x80}},
      {MmaType::E5M2, {0x3C, 0x40, 0x80}},
      {MmaType::E2M3, {0x08, 0x10, 0x20}},
      {MmaType::E3M2, {0x0C, 0x10, 0x20}},
      {MmaType::E2M1, {2, 4, 8}}};
  if (type == MmaType::S8 || type == MmaType::U8)
    return uint8_t(x);
  const auto &[one, two, sign] = codes.at(type);
  return (x == 0 ? 0 : std::abs(x) == 1 ? one : two) | (x < 0 ? sign : 0);
}

inline unsigned bitsOf(MmaType type) {
  switch (type) {
  case MmaType::TF32:
    return 32;
  case MmaType::F16:
  case MmaType::BF16:
    return 16;
  case MmaType::E2M1:
    return 4;
  case MmaType::E2M3:
  case MmaType::E3M2:
    return 6;
  default:
    return 8;
  }
}

/// Puts element `i` of a row into the bytes of its K; in tensor memory each has a byte of its own.
inline void setElement(const Case &c, std::vector<uint8_t> &row, unsigned i, int x, bool inTmem) {
  const unsigned bits = bitsOf(c.type);
  const uint32_t code = encode(c.type, x);
  unsigned at = i * bits;
  if (bits < 8 && !c.packed() && inTmem)
    at = 8 * i + (bits == 4 ? 2 : 0);
  else if (bits < 8 && !c.packed())
    at = i / 16 * 128 + i % 16 * bits;
  for (unsigned b = 0; b < bits; ++b)
    row[(at + b) / 8] |= uint8_t((code >> b & 1) << ((at + b) % 8));
}

/// TMEM lane of row `row` of a CTA in copy `copy` of D's parts.
inline unsigned laneOf(const Case &c, unsigned row, unsigned copy) {
  return c.halfLanes() ? c.lane + 32 * (row / 16) + row % 16 : row + 128 / c.parts() * copy;
}

struct Problem {
  std::vector<int> a, b, d;                        ///< M x K, (N + shift) x K, M x N
  std::vector<std::vector<uint8_t>> shared;        ///< by CTA
  std::vector<std::vector<uint32_t>> tmem, before; ///< by CTA: 128 lanes of columnCount; of D
};

inline uint32_t resultBits(const Case &c, double x) {
  if (c.d == hw::AccumulatorType::S32)
    return uint32_t(int(x));
  if (c.d == hw::AccumulatorType::F16)
    return std::bit_cast<uint16_t>(_Float16(x));
  return std::bit_cast<uint32_t>(float(x));
}

/// K-major without swizzle: 8 rows of 16 bytes, the next 16 bytes of the rows 128 further.
inline unsigned tileOffset(unsigned row, unsigned byte, unsigned rowBytes) {
  return row / 8 * 8 * rowBytes + row % 8 * 16 + byte / 16 * 128 + byte % 16;
}

struct Builder {
  const Case &c;
  Problem &p;
  std::mt19937 random{5};

  int number() { return c.type == MmaType::U8 ? int(random() % 3) : int(random() % 5) - 2; }

  uint32_t &tmem(unsigned rank, unsigned lane, unsigned column) {
    return p.tmem[rank][lane * columnCount + column - columnA];
  }

  /// Four bits of metadata for chunk `chunk` of row `row` of a CTA, in every copy.
  void setMetadata(unsigned rank, unsigned row, unsigned chunk, uint32_t nibble) {
    for (unsigned copy = 0; copy < c.parts(); ++copy) {
      if (bitsOf(c.type) < 16) {
        tmem(rank, laneOf(c, row, copy), columnMeta + chunk / 8) |= nibble << (chunk % 8 * 4);
        continue;
      }
      // Rows r and r + 8 share words: the lane of r + 8 has the second half of K.
      const unsigned at = row % 16 % 8 + row / 16 * 16 + 8 * (chunk / 4);
      tmem(rank, laneOf(c, at, copy), columnMeta + c.selector) |=
          nibble << (16 * (row % 16 / 8) + chunk % 4 * 4);
    }
  }

  void makeRow(unsigned row) {
    static constexpr unsigned pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const unsigned rank = row / c.rows(), local = row % c.rows();
    std::vector<uint8_t> bytes(32);
    unsigned i = 0;
    const auto store = [&](unsigned k) {
      const int x = number();
      p.a[row * c.k() + k] = x;
      setElement(c, bytes, i++, x, c.aInTmem);
    };
    for (unsigned k = 0; k < c.k(); k += c.chunk()) {
      if (!c.sparse) {
        for (unsigned j = 0; j < c.chunk(); ++j)
          store(k + j);
      } else if (c.chunk() == 2) {
        const unsigned which = random() % 2;
        setMetadata(rank, local, k / 2, which ? 0b1110 : 0b0100);
        store(k + which);
      } else {
        const auto &[first, second] = pairs[random() % 6];
        setMetadata(rank, local, k / c.chunk(), first | second << 2);
        const unsigned unit = c.packed() ? 2 : 1;
        for (unsigned place : {first, second})
          for (unsigned j = 0; j < unit; ++j)
            store(k + place * unit + j);
      }
    }
    if (c.aInTmem)
      for (unsigned copy = 0; copy < c.parts(); ++copy)
        std::memcpy(&tmem(rank, laneOf(c, local, copy), columnA), bytes.data(), 32);
    else
      for (unsigned byte = 0; byte < 32; ++byte)
        p.shared[rank][tileOffset(local, byte, 32)] = bytes[byte];
  }

  void makeColumn(unsigned column) {
    const unsigned perCta = c.n / c.group, rank = c.group == 2 ? column / perCta : 0;
    const unsigned local = column - rank * perCta, rowBytes = c.sparse ? 64 : 32;
    // The 32 bytes of each half of K are rows of their own to setElement.
    for (unsigned half = 0; half < rowBytes / 32; ++half) {
      std::vector<uint8_t> bytes(32);
      for (unsigned i = 0; i < c.stored(); ++i) {
        const int x = number();
        p.b[column * c.k() + half * c.stored() + i] = x;
        setElement(c, bytes, i, x, false);
      }
      for (unsigned byte = 0; byte < 32; ++byte)
        p.shared[rank][offsetB + tileOffset(local, 32 * half + byte, rowBytes)] = bytes[byte];
    }
  }

  void make() {
    p.a.resize(c.m * c.k());
    p.b.resize((c.n + 32) * c.k());
    p.d.resize(c.m * c.n);
    p.shared.assign(c.group, std::vector<uint8_t>(sharedBytes));
    p.tmem.assign(c.group, std::vector<uint32_t>(128 * columnCount));
    p.before.assign(c.group, std::vector<uint32_t>(128 * c.columns(), 0x55));
    for (unsigned row = 0; row < c.m; ++row)
      makeRow(row);
    for (unsigned column = 0; column < c.n + (c.mask ? 32 : 0); ++column)
      makeColumn(column);
    for (auto &words : p.tmem) // ue8m0 scales of 1
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned column = columnScales; column < columnA + columnCount; ++column)
          words[lane * columnCount + column - columnA] = 0x7F7F7F7F;
    for (unsigned row = 0; row < c.m; ++row)
      for (unsigned column = 0; column < c.n; ++column) {
        p.d[row * c.n + column] = 8 * (int(random() % 3) - 1);
        p.before[row / c.rows()][cell(row, column)] = resultBits(c, p.d[row * c.n + column]);
      }
  }
  size_t cell(unsigned row, unsigned column) const {
    return laneOf(c, row % c.rows(), column / c.columns()) * c.columns() + column % c.columns();
  }
};

/// The product in plain arithmetic, and what the cells of D then hold.
inline std::vector<std::vector<uint32_t>> expected(const Case &c, const Problem &p,
                                                   const Builder &build) {
  auto cells = p.before;
  const auto zero = c.mask ? c.mask->zeroColumns(c.m, c.n) : std::vector<bool>(c.n);
  const unsigned shift = c.mask ? c.mask->columnShift : 0;
  for (unsigned row = 0; row < c.m; ++row)
    for (unsigned column = 0; column < c.n; ++column) {
      const unsigned lane = laneOf(c, row % c.rows(), column / c.columns());
      if (!c.disabled.empty() && c.disabled[row / c.rows() * 4 + lane / 32] >> (lane % 32) & 1)
        continue;
      const bool first = row % c.rows() == 0;
      const unsigned from = c.shiftA && !first ? row - 1 : row;
      double sum = c.accumulate ? p.d[row * c.n + column] * std::ldexp(1, -int(c.scaleD)) : 0;
      for (unsigned k = 0; k < c.k() && !zero[column]; ++k)
        sum += p.a[from * c.k() + k] * p.b[(column + shift) * c.k() + k];
      cells[row / c.rows()][build.cell(row, column)] = resultBits(c, sum);
    }
  return cells;
}

inline uint32_t idescOf(const Case &c) {
  if (c.scaled()) {
    hw::BlockScaledInstrDesc desc;
    desc.kind = c.kind;
    desc.m = c.m;
    desc.n = c.n;
    desc.aType = desc.bType = c.type;
    desc.scaleType = hw::ScaleType::UE8M0;
    desc.sparse = c.sparse;
    return desc.encode().value_or(0);
  }
  hw::InstrDesc desc;
  desc.kind = c.kind;
  desc.m = c.m;
  desc.n = c.n;
  desc.aType = desc.bType = c.type;
  desc.dType = c.d;
  desc.sparse = c.sparse;
  desc.sparsitySelector = c.selector;
  return desc.encode().value_or(0);
}

inline std::string instruction(const Case &c) {
  std::string text =
      fmt::format("  tcgen05.mma{}{}.cta_group::{}.kind::{}{}{}{} [%r10], {}, %rd7, {}%r30, ",
                  c.stationary ? ".ws" : "", c.sparse ? ".sp" : "", c.group, stringify(c.kind),
                  !c.scaled()                   ? ""
                  : c.kind == MmaKind::MXF4NVF4 ? ".block_scale.block32"
                                                : ".block_scale",
                  c.shiftA ? ".ashift" : "", c.collector, c.aInTmem ? "[%r31]" : "%rd6",
                  c.sparse ? "[%r32], " : "");
  if (c.scaled())
    text += "[%r33], [%r34], ";
  for (size_t i = 0; i < c.disabled.size(); ++i)
    text += (i ? ", " : "{") + fmt::format("{}", c.disabled[i]);
  text += c.disabled.empty() ? "" : "}, ";
  text += c.accumulate ? "1" : "0";
  if (c.mask)
    text += ", %rd9";
  else if (c.scaleD)
    text += fmt::format(", {}", c.scaleD);
  return text + ";\n";
}

inline hw::SmemDescriptor descriptorOf(const Case &c, bool ofB) {
  hw::SmemDescriptor d;
  d.startAddress = dynamicBase + (ofB ? offsetB : 0);
  d.leadingByteOffset = 128;
  d.strideByteOffset = ofB && c.sparse ? 512 : 256;
  return d;
}

/// Thread t moves TMEM lane t between the image and the columns from `first` on.
inline std::string moveColumns(bool in, unsigned first, unsigned count, const char *base) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += in ? fmt::format("  ld.global.b32 %v0, [{}+{}];\n"
                             "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+{}], {{%v0}};\n",
                             base, 4 * i, first + i)
               : fmt::format("  tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%r11+{}];\n"
                             "  tcgen05.wait::ld.sync.aligned;\n  st.global.b32 [{}+{}], %v0;\n",
                             first + i, base, 4 * i);
  return text + (in ? "  tcgen05.wait::st.sync.aligned;\n" : "");
}

/// Global memory of a CTA: image of shared memory, what is read of tensor memory, D.
inline std::string kernelOf(const Case &c) {
  const unsigned perCta = sharedBytes + 128 * 4 * (columnCount + c.columns());
  std::string text = setUpMmas(perCta, sharedBytes, 1, c.group) +
                     "  shl.b32 %r11, %r1, 21;\n  add.u32 %r11, %r11, %r10;\n";
  text +=
      fmt::format("  mul.wide.u32 %rd3, %t, {};\n  add.u64 %rd3, %rd3, %rd1;\n"
                  "  add.u64 %rd3, %rd3, {};\n  mul.wide.u32 %rd4, %t, {};\n"
                  "  add.u64 %rd4, %rd4, %rd1;\n  add.u64 %rd4, %rd4, {};\n",
                  4 * columnCount, sharedBytes, 4 * c.columns(), sharedBytes + 512 * columnCount);
  text +=
      moveColumns(true, columnA, columnCount, "%rd3") + moveColumns(true, 0, c.columns(), "%rd4");
  text += fmt::format(
      "  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive.aligned;\n"
      "  barrier.cluster.wait.aligned;\n  tcgen05.fence::after_thread_sync;\n"
      "  or.b32 %r7, %r2, %t;\n  setp.ne.u32 %p4, %r7, 0;\n  @%p4 bra WAIT;\n"
      "  add.u32 %r31, %r10, {};\n  add.u32 %r32, %r10, {};\n  add.u32 %r33, %r10, {};\n"
      "  add.u32 %r34, %r10, {};\n  add.u32 %r10, %r10, {};\n"
      "  mov.b64 %rd6, {:#x};\n  mov.b64 %rd7, {:#x};\n  mov.b64 %rd9, {:#x};\n"
      "  mov.u32 %r30, {:#x};\n",
      columnA + (c.lane << 16), columnMeta + (c.lane << 16), columnScales, columnScales + 4,
      c.lane << 16, descriptorOf(c, false).encode(), descriptorOf(c, true).encode(),
      c.mask ? c.mask->encode() : 0, idescOf(c));
  text += instruction(c);
  text += c.group == 2
              ? "  mov.u16 %h, 3;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one"
                ".shared::cluster.multicast::cluster.b64 [%r4], %h;\n"
              : "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n";
  text += "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;\n"
          "  @!%p5 bra WAIT;\n  tcgen05.fence::after_thread_sync;\n" +
          moveColumns(false, 0, c.columns(), "%rd4") +
          fmt::format("  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive.aligned;\n"
                      "  barrier.cluster.wait.aligned;\n  @%p3 bra END;\n  ld.shared.b32 %r10, "
                      "[%r9];\n  tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r10, 512;\nEND:\n",
                      c.group);
  std::string ptx =
      kernelText(text, "  .shared .align 8 .b64 bar;\n  .shared .align 4 .b32 slot;\n");
  return ptx.insert(ptx.find("  .reg .b32 %t;"), "  .reg .b16 %h;\n");
}

struct MmaRun {
  std::string error;
  std::vector<std::vector<uint32_t>> cells; ///< of D, by CTA
};

inline MmaRun run(const Case &c, const Problem &p, const SimOptions &options) {
  auto program = Program::parse(kernelOf(c), "mma.ptx");
  if (!program)
    return {program.error().message, {}};
  Simulator simulator(options);
  std::vector<uint8_t> image;
  const auto append = [&](const auto &values) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
    image.insert(image.end(), bytes, bytes + values.size() * sizeof(values[0]));
  };
  for (unsigned rank = 0; rank < c.group; ++rank) {
    append(p.shared[rank]);
    append(p.tmem[rank]);
    append(p.before[rank]);
  }
  const uint64_t out = simulator.memory().allocate(image.size(), "out");
  EXPECT_TRUE(simulator.memory().write(out, image.data(), image.size()));
  Params params;
  params.add(out);
  LaunchConfig config;
  config.grid = config.cluster = {c.group, 1, 1};
  config.block = {128, 1, 1};
  config.dynamicSharedBytes = sharedBytes;
  auto stats = simulator.launch(**program, "test", config, params.span());
  if (!stats)
    return {stats.error().message + "\n" + stats.error().note, {}};
  MmaRun result{"", p.before};
  for (unsigned rank = 0; rank < c.group; ++rank)
    EXPECT_TRUE(simulator.memory().read(out + (rank + 1) * image.size() / c.group -
                                            4 * p.before[rank].size(),
                                        result.cells[rank].data(), 4 * p.before[rank].size()));
  return result;
}

} // namespace fp4::sim::test::variants
