// Shared-memory and instruction descriptors.
//
// Sources: (1) PTX ISA, tables "Shared memory descriptor layout" and "Instruction descriptor
// format" (bit positions, walked one field at a time below) and "Matrix shape"; (2) constants that
// other compilers and kernels emit: Triton's lit tests (instruction descriptors, decimal), TVM TIRx
// and pyptx kernels (shared-memory descriptors), MMA-Sim's hardware tests.
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/ZeroColumnMask.h"
#include <array>
#include <gtest/gtest.h>
#include <set>

using namespace fp4;
using namespace fp4::hw;

namespace {

//===--- Shared memory ---------------------------------------------------===//

TEST(SmemDescriptor, constantsOfOthers) {
  // TIRx and pyptx: K-major 128-byte swizzle, LBO 1, SBO 64.
  EXPECT_EQ(SmemDescriptor::kMajorOperand(SwizzleMode::B128).encode(), 0x4000404000010000u);
  EXPECT_EQ(SmemDescriptor::kMajorOperand(SwizzleMode::B128, 0x8400).encode(), 0x4000404000010840u);
  // TIRx: scale factors, no swizzle, LBO 1, SBO 8.
  EXPECT_EQ(SmemDescriptor::scaleFactorBlock().encode(), 0x0000400800010000u);
  // MMA-Sim: no swizzle, LBO 128, SBO 256 bytes.
  EXPECT_EQ(SmemDescriptor::kMajorOperand(SwizzleMode::None).encode(),
            (8ull << 16) | (16ull << 32) | (1ull << 46));
}

TEST(SmemDescriptor, oneFieldAtATime) {
  const uint64_t version = 1ull << 46; // bits 46-48 are the constant 0b001
  const auto bits = [](SmemDescriptor d) { return d.encode(); };
  EXPECT_EQ(bits({}), version);
  EXPECT_EQ(bits({.startAddress = 16}), version | 1);
  EXPECT_EQ(bits({.startAddress = 0x3FFF0}), version | 0x3FFF);
  EXPECT_EQ(bits({.startAddress = 0x01000400}), version | 0x40); // rank 1's address: rank falls off
  EXPECT_EQ(bits({.leadingByteOffset = 0x3FFF0}), version | 0x3FFFull << 16);
  EXPECT_EQ(bits({.strideByteOffset = 0x3FFF0}), version | 0x3FFFull << 32);
  EXPECT_EQ(bits({.baseOffset = 7}), version | 7ull << 49);
  EXPECT_EQ(bits({.lboAbsolute = true}), version | 1ull << 52);
  EXPECT_EQ(bits({.swizzle = SwizzleMode::B128Atom32}), version | 1ull << 61);
  EXPECT_EQ(bits({.swizzle = SwizzleMode::B128}), version | 2ull << 61);
  EXPECT_EQ(bits({.swizzle = SwizzleMode::B64}), version | 4ull << 61);
  EXPECT_EQ(bits({.swizzle = SwizzleMode::B32}), version | 6ull << 61);
}

TEST(SmemDescriptor, startOfATileInACluster) {
  // The rank of a CTA lies above the 18 bits of its shared addresses.
  for (uint32_t address : {0u, 0x400u, 0x3FFF0u, 0x7000400u, 0x1040010u}) {
    SmemDescriptor d;
    d.startAddress = address;
    EXPECT_EQ(descriptorStart(address), d.encode() & 0x3FFF) << address;
    EXPECT_EQ(descriptorStart(address), (address & 0x3FFFF) / 16) << address;
  }
}

TEST(SmemDescriptor, decodesWhatItEncodes) {
  for (SwizzleMode mode : {SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128,
                           SwizzleMode::B128Atom32})
    for (uint32_t address = 0; address < 0x40000; address += 0x3A50) {
      const SmemDescriptor d{.startAddress = address,
                             .leadingByteOffset = 0x40,
                             .strideByteOffset = 0x400,
                             .baseOffset = uint8_t(address >> 4 & 7),
                             .lboAbsolute = (address & 32) != 0,
                             .swizzle = mode};
      const auto back = SmemDescriptor::decode(d.encode());
      ASSERT_TRUE(back) << format(back.error());
      EXPECT_EQ(*back, d);
    }
}

/// Rubin's CTAs have up to 327 KiB: one bit more for the two addresses.
TEST(SmemDescriptor, wideAddresses) {
  const uint64_t good = SmemDescriptor::kMajorOperand(SwizzleMode::B128).encode();
  const auto wide = SmemDescriptor::decode(good | 1ull << 14 | 1ull << 30, true);
  ASSERT_TRUE(wide) << format(wide.error());
  EXPECT_EQ(wide->startAddress, 0x40000u);
  EXPECT_EQ(wide->leadingByteOffset, 0x40010u);
  for (unsigned bit : {15, 31, 53, 60})
    EXPECT_FALSE(SmemDescriptor::decode(good | 1ull << bit, true)) << bit;
}

TEST(SmemDescriptor, rejectsWhatHardwareHasNot) {
  const uint64_t good = SmemDescriptor::kMajorOperand(SwizzleMode::B128).encode();
  ASSERT_TRUE(SmemDescriptor::decode(good));
  const auto messageOf = [](uint64_t bits) {
    const auto d = SmemDescriptor::decode(bits);
    return d ? std::string("accepted") : d.error().message;
  };
  EXPECT_EQ(messageOf(good & ~(1ull << 46)),
            "shared-memory descriptor 0x4000004000010000 must hold 0b001 in bits 46-48, but got "
            "0b000");
  for (unsigned swizzle : {3, 5, 7})
    EXPECT_NE(messageOf((good & ~(7ull << 61)) | uint64_t(swizzle) << 61)
                  .find("expects swizzle 0, 1, 2, 4 or 6, but got " + std::to_string(swizzle)),
              std::string::npos)
        << swizzle;
  for (unsigned bit : {14, 15, 30, 31, 53, 60})
    EXPECT_NE(messageOf(good | 1ull << bit).find("must be zero in bits"), std::string::npos) << bit;
}

// The canonical K-major layouts of PTX ISA and CUTLASS (mma_sm100_desc.hpp) in units of 16 bytes:
// none ((8,m),2):((1,SBO),LBO), 32B ((8,m),2):((2,SBO),1), 64B (4,SBO), 128B (8,SBO), before the
// swizzle.
TEST(SmemDescriptor, operandAddressesFollowCanonicalLayouts) {
  for (SwizzleMode mode :
       {SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128}) {
    SmemDescriptor d = SmemDescriptor::kMajorOperand(mode, 0x2000);
    if (mode == SwizzleMode::None) {
      d.leadingByteOffset = 128 * 16; // core matrices of a column contiguous
      d.strideByteOffset = 128;
    }
    const uint32_t rowUnits = mode == SwizzleMode::None ? 1 : swizzleWidthBytes(mode) / 16;
    std::set<uint32_t> seen;
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t byte = 0; byte < 32; ++byte) {
        const uint32_t half = byte / 16;
        const uint32_t linear =
            0x2000 + (row % 8) * rowUnits * 16 + (row / 8) * d.strideByteOffset +
            half * (mode == SwizzleMode::None ? d.leadingByteOffset : 16) + byte % 16;
        EXPECT_EQ(d.operandAddress(row, byte), swizzleAddress(mode, linear));
        seen.insert(d.operandAddress(row, byte));
      }
    EXPECT_EQ(seen.size(), 128u * 32u);
  }
}

TEST(SmemDescriptor, kStepsCoverASwizzledTile) {
  // A 128 x 128-byte tile as TMA writes it: four K steps read every byte once, in element order.
  const SmemDescriptor tile = SmemDescriptor::kMajorOperand(SwizzleMode::B128, 0x4400 - 0x400);
  for (uint32_t step = 0; step < 4; ++step) {
    const SmemDescriptor d = tile.atKStep(step);
    EXPECT_EQ(d.encode(), tile.encode() + 2 * step);
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t byte = 0; byte < 32; ++byte)
        EXPECT_EQ(d.operandAddress(row, byte),
                  swizzleAddress(SwizzleMode::B128, 0x4000 + row * 128 + step * 32 + byte));
  }
  const SmemDescriptor plain = SmemDescriptor::kMajorOperand(SwizzleMode::None, 0x1000);
  EXPECT_EQ(plain.atKStep(3).startAddress, 0x1000u + 3 * 2 * 128);
}

// The MN-major examples of PTX ISA ("Canonical Layouts", bf16): shape ((8,a,2),(8,2)) with strides
// in elements, LBO and SBO in elements.
// Eight slices of 48 bytes are three lines of 128; the third and the sixth go on in the next panel.
TEST(SmemDescriptor, slicesOfK96) {
  constexpr uint32_t panel = 128 * 128, tile = 4096;
  const std::array<std::pair<uint32_t, uint32_t>, 8> places = {{{0, 0},
                                                               {48, 0},
                                                               {96, panel},
                                                               {panel + 16, panel},
                                                               {panel + 64, panel},
                                                               {panel + 112, 2 * panel},
                                                               {2 * panel + 32, 2 * panel},
                                                               {2 * panel + 80, 2 * panel}}};
  for (uint32_t step = 0; step < places.size(); ++step) {
    const auto [start, next] = SmemDescriptor::k96Slice(step, panel);
    EXPECT_EQ(std::pair(start, next), places[step]) << step;
    auto d = SmemDescriptor::kMajorOperand(SwizzleMode::B128, tile + start);
    d.lboAbsolute = true;
    d.leadingByteOffset = tile + next;
    EXPECT_EQ(*SmemDescriptor::decode(d.encode()), d);
    for (uint32_t row : {0u, 5u, 8u, 127u})
      for (uint32_t byte = 0; byte < mmaK96RowBytes; byte += 16) { // TMA put that byte there
        const uint32_t k = 48 * step + byte;
        EXPECT_EQ(d.operandAddress(row, byte),
                  swizzleAddress(SwizzleMode::B128, tile + k / 128 * panel + 128 * row + k % 128))
            << step << ", row " << row << ", byte " << byte;
      }
  }
}

TEST(SmemDescriptor, transposedExamplesOfPtx) {
  struct Example {
    SwizzleMode mode;
    uint32_t middle, outer, inner, second, lbo, sbo; ///< ((1,8,outer),(inner,second)), a = middle
  };
  for (const Example &e : {Example{SwizzleMode::None, 1, 64, 8, 128, 128, 64},
                           Example{SwizzleMode::B32, 2, 128, 16, 256, 128, 256},
                           Example{SwizzleMode::B64, 4, 256, 32, 512, 256, 512}}) {
    const SmemDescriptor d{.startAddress = 0x4000,
                           .leadingByteOffset = 2 * e.lbo,
                           .strideByteOffset = 2 * e.sbo,
                           .swizzle = e.mode};
    std::set<uint32_t> seen;
    for (uint32_t mn = 0; mn < 16 * e.middle; ++mn)
      for (uint32_t k = 0; k < 16; ++k) {
        const uint32_t element = mn % 8 + mn / 8 % e.middle * 8 + mn / 8 / e.middle * e.outer +
                                 k % 8 * e.inner + k / 8 * e.second;
        EXPECT_EQ(d.transposedAddress(mn, k, 2), swizzleAddress(e.mode, 0x4000 + 2 * element));
        seen.insert(d.transposedAddress(mn, k, 2));
      }
    EXPECT_EQ(seen.size(), 16u * 16 * e.middle) << stringify(e.mode);
  }
}

// The shared-memory layouts that CuTe prints for TransformerEngine's fused Hadamard kernel: A
// Sw<3,4,3> o ((64,2),(8,2)),_,4 : ((1,512),(64,1024)),_,2048 and B Sw<1,4,3> o (16,16) : (1,16).
TEST(SmemDescriptor, transposedOperandsOfCute) {
  for (uint32_t step = 0; step < 4; ++step) {
    const SmemDescriptor a{.startAddress = 0x8000 + 2 * 2048 * step,
                           .leadingByteOffset = 2 * 512,
                           .strideByteOffset = 2 * 1024,
                           .swizzle = SwizzleMode::B128};
    for (uint32_t mn = 0; mn < 128; ++mn)
      for (uint32_t k = 0; k < 16; ++k)
        EXPECT_EQ(
            a.transposedAddress(mn, k, 2),
            swizzleAddress(SwizzleMode::B128, 0x8000 + 2 * (mn % 64 + mn / 64 * 512 + k % 8 * 64 +
                                                            k / 8 * 1024 + step * 2048)));
  }
  const SmemDescriptor b = SmemDescriptor::mnMajorOperand(SwizzleMode::B32, 16, 0x2100);
  for (uint32_t mn = 0; mn < 16; ++mn)
    for (uint32_t k = 0; k < 16; ++k)
      EXPECT_EQ(b.transposedAddress(mn, k, 2),
                swizzleAddress(SwizzleMode::B32, 0x2100 + 2 * (mn + 16 * k)));
}

// DeepGEMM's strides of an MN-major bf16 operand: LBO = BLOCK_K lines, SBO = 8 lines of 128 bytes.
// A TMA box of 64 columns and BLOCK_K rows fills such a panel.
TEST(SmemDescriptor, transposedPanelsOfTma) {
  const SmemDescriptor d = SmemDescriptor::mnMajorOperand(SwizzleMode::B128, 64, 0x4000);
  EXPECT_EQ(d.encode(), 0x4000400000000000u | 512ull << 16 | 64ull << 32 | 0x400);
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t column = 0; column < 128; ++column)
      EXPECT_EQ(d.transposedAddress(column, row, 2),
                swizzleAddress(SwizzleMode::B128,
                               0x4000 + column / 64 * 64 * 128 + row * 128 + column % 64 * 2));
  // tf32 takes 32-byte chunks and groups of 4 k.
  const SmemDescriptor tf32{
      .leadingByteOffset = 512, .strideByteOffset = 1024, .swizzle = SwizzleMode::B128Atom32};
  EXPECT_EQ(tf32.transposedAddress(33, 5, 4),
            swizzleAddress(SwizzleMode::B128Atom32, 512 + 1024 + 128 + 4));
}

TEST(SmemDescriptor, baseOffset) {
  EXPECT_EQ(baseOffsetFor(SwizzleMode::B128, 0x2000), 0);
  EXPECT_EQ(baseOffsetFor(SwizzleMode::B128, 0x2080), 1);
  EXPECT_EQ(baseOffsetFor(SwizzleMode::B64, 0x2200), 0);
  EXPECT_EQ(baseOffsetFor(SwizzleMode::B32, 0x2100), 0);
  EXPECT_EQ(baseOffsetFor(SwizzleMode::B32, 0x2080), 1);
}

// Without a swizzle a panel of eight columns is 16 bytes wide and as many lines long as k.
TEST(SmemDescriptor, plainPanelsOfTma) {
  const SmemDescriptor d = SmemDescriptor::mnMajorOperand(SwizzleMode::None, 16, 0x4000);
  EXPECT_EQ(d.leadingByteOffset, 128u);
  EXPECT_EQ(d.strideByteOffset, 256u);
  for (uint32_t k = 0; k < 16; ++k)
    for (uint32_t mn = 0; mn < 32; ++mn)
      EXPECT_EQ(d.transposedAddress(mn, k, 2), 0x4000 + mn / 8 * 256 + k * 16 + mn % 8 * 2);
}

// PTX ISA, matrix descriptor of wgmma; CUTLASS mma_sm90_desc.hpp has no version field.
TEST(SmemDescriptor, wgmmaHasNoVersion) {
  const SmemDescriptor d = SmemDescriptor::kMajorOperand(SwizzleMode::B128, 0x400);
  EXPECT_EQ(d.encodeWgmma(), 0x4000004000010040u);
  EXPECT_EQ(d.encodeWgmma() >> 46 & 7, 0u);
  ASSERT_TRUE(SmemDescriptor::decodeWgmma(d.encodeWgmma()));
  EXPECT_EQ(*SmemDescriptor::decodeWgmma(d.encodeWgmma()), d);
  EXPECT_FALSE(SmemDescriptor::decodeWgmma(d.encode()));
}

// [uncertain] The use of the base offset, as PTX ISA tells it: a pattern that starts at line `base`
// of an aligned window is read as if it started at its first line.
TEST(SmemDescriptor, baseOffsetMovesThePattern) {
  for (uint32_t base : {1u, 3u, 7u}) {
    SmemDescriptor d = SmemDescriptor::kMajorOperand(SwizzleMode::B128, 0x2000 + 128 * base);
    d.baseOffset = baseOffsetFor(SwizzleMode::B128, d.startAddress);
    ASSERT_EQ(d.baseOffset, base);
    EXPECT_EQ(d.encode() >> 49 & 7, base);
    for (uint32_t row = 0; row < 16; ++row)
      for (uint32_t byte = 0; byte < 32; byte += 16)
        EXPECT_EQ(d.operandAddress(row, byte),
                  (d.startAddress + 128 * row + byte) ^ (row % 8 << 4))
            << base << ": " << row << ", " << byte;
  }
}

//===--- Instruction descriptors -----------------------------------------===//

uint32_t encode(const BlockScaledInstrDesc &d) {
  const auto bits = d.encode();
  EXPECT_TRUE(bits) << format(bits.error());
  return bits.value_or(0);
}
uint32_t encode(const InstrDesc &d) {
  const auto bits = d.encode();
  EXPECT_TRUE(bits) << format(bits.error());
  return bits.value_or(0);
}

TEST(InstrDescriptor, constantsOfTriton) {
  using T = MmaType;
  EXPECT_EQ(encode(BlockScaledInstrDesc{.n = 256}), 138413184u); // mxf4nvf4, ue4m3
  BlockScaledInstrDesc mxf4{.kind = MmaKind::MXF4, .n = 256, .scaleType = ScaleType::UE8M0};
  EXPECT_EQ(encode(mxf4), 146801792u);
  mxf4.sfaId = mxf4.sfbId = 2;
  EXPECT_EQ(encode(mxf4), 1220543648u);
  BlockScaledInstrDesc mxf8{.kind = MmaKind::MXF8F6F4,
                            .n = 128,
                            .aType = T::E4M3,
                            .bType = T::E2M1,
                            .scaleType = ScaleType::UE8M0};
  EXPECT_EQ(encode(mxf8), 144708608u);
  mxf8.sfaId = mxf8.sfbId = 1;
  EXPECT_EQ(encode(mxf8), 681579536u);
  mxf8.transposeB = true;
  EXPECT_EQ(encode(mxf8), 681645072u);
  EXPECT_EQ(encode(InstrDesc{}), 136314896u); // f16, M 128, N 128, f32 accumulator
  EXPECT_EQ(encode(InstrDesc{.transposeB = true}), 136380432u);
  EXPECT_EQ(encode(InstrDesc{.transposeA = true, .transposeB = true}), 136413200u);
  InstrDesc i8{.kind = MmaKind::I8, .dType = AccumulatorType::S32, .aType = T::U8, .bType = T::U8};
  EXPECT_EQ(encode(i8), 136314912u);
  i8.aType = i8.bType = T::S8;
  EXPECT_EQ(encode(i8), 136316064u);
}

TEST(InstrDescriptor, constantsOfTirx) {
  const BlockScaledInstrDesc d{.kind = MmaKind::MXF8F6F4,
                               .n = 192,
                               .aType = MmaType::E4M3,
                               .bType = MmaType::E4M3,
                               .scaleType = ScaleType::UE8M0};
  EXPECT_EQ(encode(d), 0x08B00000u);
}

// PTX ISA's table of atype and btype; CUTLASS, enum MXF8F6F4Format: E2M3 = 3, E3M2 = 4.
TEST(InstrDescriptor, sixBitTypes) {
  BlockScaledInstrDesc scaled{.kind = MmaKind::MXF8F6F4,
                              .aType = MmaType::E2M3,
                              .bType = MmaType::E3M2,
                              .scaleType = ScaleType::UE8M0};
  EXPECT_EQ(encode(scaled), 0x08A01180u);
  std::swap(scaled.aType, scaled.bType);
  EXPECT_EQ(encode(scaled), 0x08A00E00u);
  EXPECT_EQ(encode(InstrDesc{
                .kind = MmaKind::F8F6F4, .aType = MmaType::E2M3, .bType = MmaType::E3M2}),
            0x08201190u);
  EXPECT_EQ(mmaTypeFromCode(MmaKind::MXF8F6F4, 3), MmaType::E2M3);
  EXPECT_EQ(mmaTypeFromCode(MmaKind::MXF8F6F4, 4), MmaType::E3M2);
}

TEST(InstrDescriptor, workedExamples) { // the formula of MMA-Sim's kernels
  for (unsigned m : {128u, 256u})
    for (unsigned n = 8; n <= 256; n += 8)
      for (ScaleType type : {ScaleType::UE4M3, ScaleType::UE8M0})
        EXPECT_EQ(encode(BlockScaledInstrDesc{.m = m, .n = n, .scaleType = type}),
                  (n >> 3 << 17) | (m >> 7 << 27) | (1u << 7) | (1u << 10) |
                      (unsigned(type) << 23));
  EXPECT_EQ(encode(BlockScaledInstrDesc{}), 0x08200480u);
  EXPECT_EQ(encode(BlockScaledInstrDesc{.m = 256, .n = 256}), 0x10400480u);
}

TEST(InstrDescriptor, oneFieldAtATime) {
  const uint32_t base = 0x08200480;
  using D = BlockScaledInstrDesc;
  EXPECT_EQ(encode(D{.sparse = true}), base | 1u << 2);
  EXPECT_EQ(encode(D{.sfbId = 2}), base | 2u << 4);
  EXPECT_EQ(encode(D{.negateA = true}), base | 1u << 13);
  EXPECT_EQ(encode(D{.negateB = true}), base | 1u << 14);
  EXPECT_EQ(encode(D{.scaleType = ScaleType::UE8M0}), base | 1u << 23);
  EXPECT_EQ(encode(D{.sfaId = 2}), base | 2u << 29);
  EXPECT_EQ(encode(D{.depth = MmaDepth::K96}), base | 1u << 31);
  EXPECT_EQ(encode(D{.depth = MmaDepth::Double}), base | 1u << 3);
  EXPECT_EQ(encode(D{.scaleType = ScaleType::UE5M3}), base | 2u << 23);
  EXPECT_EQ(encode(D{.scalesInLanes = true}), base | 1u << 26);
  const uint32_t plain = 0x08200010;
  EXPECT_EQ(encode(InstrDesc{.sparse = true, .sparsitySelector = 3}), plain | 7);
  EXPECT_EQ(encode(InstrDesc{.saturate = true}), plain | 1u << 3);
  EXPECT_EQ(encode(InstrDesc{.dType = AccumulatorType::F16}), plain & ~(3u << 4));
  EXPECT_EQ(encode(InstrDesc{.aType = MmaType::BF16}), plain | 1u << 7);
  EXPECT_EQ(encode(InstrDesc{.bType = MmaType::BF16}), plain | 1u << 10);
  EXPECT_EQ(encode(InstrDesc{.negateA = true, .negateB = true}), plain | 3u << 13);
  EXPECT_EQ(encode(InstrDesc{.maxShift = 3}), plain | 3u << 30);
  EXPECT_EQ(encode(InstrDesc{.m = 64}), (plain & ~(31u << 24)) | 4u << 24);
}

// The fields of sm_107a, as CUTLASS' mma_sm107_desc.hpp has them.
TEST(InstrDescriptor, doubleK) {
  const InstrDesc f8{.kind = MmaKind::F8F6F4, .aType = MmaType::E4M3, .bType = MmaType::E4M3};
  InstrDesc doubled = f8;
  doubled.doubleK = true;
  EXPECT_EQ(encode(doubled), encode(f8) | 1u << 29);
  EXPECT_EQ(*InstrDesc::decode(MmaKind::F8F6F4, encode(doubled)), doubled);
  BlockScaledInstrDesc mxf8{.kind = MmaKind::MXF8F6F4,
                            .aType = MmaType::E4M3,
                            .bType = MmaType::E5M2,
                            .scaleType = ScaleType::UE8M0,
                            .sfaId = 2};
  const uint32_t single = encode(mxf8);
  mxf8.depth = MmaDepth::Double;
  EXPECT_EQ(encode(mxf8), single | 1u << 31);
  EXPECT_EQ(*BlockScaledInstrDesc::decode(MmaKind::MXF8F6F4, encode(mxf8)), mxf8);
  const BlockScaledInstrDesc nvf4{
      .m = 256, .scaleType = ScaleType::UE5M3, .depth = MmaDepth::Double};
  EXPECT_EQ(encode(nvf4), 0x10200480u | 2u << 23 | 1u << 3);
  EXPECT_EQ(*BlockScaledInstrDesc::decode(MmaKind::MXF4NVF4, encode(nvf4)), nvf4);
  // Both bits of K, or of the type of scales, name nothing.
  EXPECT_FALSE(BlockScaledInstrDesc::decode(MmaKind::MXF4NVF4, 0x08200480 | 1u << 3 | 1u << 31));
  EXPECT_FALSE(BlockScaledInstrDesc::decode(MmaKind::MXF4NVF4, 0x08200480 | 3u << 23));
}

TEST(InstrDescriptor, everyBitDecodesOrIsRefused) {
  // Flipping a bit of a valid descriptor gives another valid one that encodes back, or an error.
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const uint32_t scaled = 0x08200480 ^ 1u << bit, plain = 0x08200010 ^ 1u << bit;
    if (const auto d = BlockScaledInstrDesc::decode(MmaKind::MXF4NVF4, scaled); d)
      EXPECT_EQ(d->encode().value_or(0), scaled) << bit;
    if (const auto d = InstrDesc::decode(MmaKind::F16, plain); d)
      EXPECT_EQ(d->encode().value_or(0), plain) << bit;
  }
  for (uint32_t bit : {0, 1, 6, 15, 16, 25})
    EXPECT_FALSE(BlockScaledInstrDesc::decode(MmaKind::MXF4NVF4, 0x08200480 | 1u << bit)) << bit;
  // Bit 12 of the fp4 kinds means nothing; it is part of the type of B in the others.
  for (MmaKind kind : {MmaKind::MXF4, MmaKind::MXF4NVF4}) {
    const auto d = BlockScaledInstrDesc::decode(kind, 0x08A00480 | 1u << 12);
    ASSERT_TRUE(d);
    EXPECT_EQ(d->bType, MmaType::E2M1);
  }
  EXPECT_TRUE(BlockScaledInstrDesc::decode(MmaKind::MXF8F6F4, 0x08A00000 | 5u << 10));
  EXPECT_FALSE(BlockScaledInstrDesc::decode(MmaKind::MXF8F6F4, 0x08A00000 | 6u << 10));
  for (uint32_t bit : {6, 23, 29})
    EXPECT_FALSE(InstrDesc::decode(MmaKind::F16, 0x08200010 | 1u << bit)) << bit;
}

TEST(InstrDescriptor, errorsNameTheValue) {
  const auto messageOf = [](const auto &d) {
    const auto bits = d.encode();
    return bits ? std::string("accepted") : bits.error().message;
  };
  EXPECT_EQ(messageOf(BlockScaledInstrDesc{.aType = MmaType::E4M3}),
            "kind::mxf4nvf4 has no operand type e4m3");
  EXPECT_EQ(messageOf(BlockScaledInstrDesc{.m = 64}),
            "M must be a multiple of 128 up to 256, but got 64");
  EXPECT_EQ(messageOf(BlockScaledInstrDesc{.n = 260}),
            "N must be a multiple of 8 up to 256, but got 260");
  EXPECT_EQ(messageOf(BlockScaledInstrDesc{.n = 264}),
            "N must be a multiple of 8 up to 256, but got 264");
  EXPECT_EQ(messageOf(BlockScaledInstrDesc{.n = 256}), "accepted");
  EXPECT_EQ(messageOf(InstrDesc{.kind = MmaKind::MXF4}),
            "kind::mxf4 expects a block-scaled instruction descriptor");
  EXPECT_EQ(messageOf(InstrDesc{}), "accepted");
}

//===--- Shapes ----------------------------------------------------------===//

TEST(MmaShape, tableOfPtx) {
  const auto legal = [](MmaKind kind, unsigned group, unsigned m, unsigned n) {
    return validateMmaShape(kind, group, m, n).has_value();
  };
  for (MmaKind kind : {MmaKind::MXF8F6F4, MmaKind::MXF4, MmaKind::MXF4NVF4}) {
    for (unsigned n = 0; n <= 264; ++n) {
      EXPECT_EQ(legal(kind, 1, 128, n), n && n <= 256 && n % 8 == 0) << n;
      EXPECT_FALSE(legal(kind, 1, 64, n)) << n;
      EXPECT_EQ(legal(kind, 2, 256, n), n && n <= 256 && n % 16 == 0) << n;
      EXPECT_EQ(legal(kind, 2, 128, n), n && n <= 256 && n % 16 == 0) << n;
    }
  }
  EXPECT_TRUE(legal(MmaKind::F16, 1, 64, 8));
  EXPECT_FALSE(legal(MmaKind::F16, 1, 256, 64));
  const std::set<unsigned> i8 = {8, 24};
  for (unsigned n = 8; n <= 256; n += 8)
    EXPECT_EQ(legal(MmaKind::I8, 1, 128, n), n % 16 == 0 || i8.contains(n)) << n;
  EXPECT_TRUE(legal(MmaKind::I8, 2, 256, 32));
  EXPECT_FALSE(legal(MmaKind::I8, 2, 256, 48));
  EXPECT_EQ(validateMmaShape(MmaKind::MXF4NVF4, 1, 64, 128).error().message,
            "kind::mxf4nvf4 with cta_group::1 expects M = 128, but got 64");
}

TEST(MmaShape, sparseAndWeightStationary) {
  const auto legal = [](MmaKind kind, unsigned group, unsigned m, unsigned n, MmaVariant v) {
    return validateMmaShape(kind, group, m, n, v).has_value();
  };
  for (MmaKind kind : {MmaKind::MXF8F6F4, MmaKind::MXF4, MmaKind::MXF4NVF4}) {
    EXPECT_TRUE(legal(kind, 2, 256, 64, {.sparse = true}));
    EXPECT_FALSE(legal(kind, 2, 128, 64, {.sparse = true}));
    EXPECT_FALSE(legal(kind, 1, 128, 64, {.weightStationary = true}));
  }
  for (MmaKind kind : {MmaKind::F16, MmaKind::TF32, MmaKind::F8F6F4, MmaKind::I8}) {
    EXPECT_TRUE(legal(kind, 2, 128, 64, {.sparse = true}));
    for (unsigned m : {32u, 64u, 128u, 256u})
      for (unsigned n = 8; n <= 256; n += 8) {
        const bool dense = m <= 128 && (n == 64 || n == 128 || n == 256);
        EXPECT_EQ(legal(kind, 1, m, n, {.weightStationary = true}), dense) << m << " " << n;
        EXPECT_EQ(legal(kind, 1, m, n, {.sparse = true, .weightStationary = true}),
                  dense && n < 256);
        EXPECT_FALSE(legal(kind, 2, m, n, {.weightStationary = true}));
      }
  }
}

/// Columns that are zero, the first on the right, as PTX ISA's examples write them.
std::string zeroColumnsOf(const ZeroColumnMask &mask, unsigned m, unsigned part) {
  const auto zero = ZeroColumnMask::decode(mask.encode())->zeroColumns(m, 64);
  const unsigned width = 64 * m / 128;
  std::string text;
  for (unsigned i = 0; i < 14; ++i)
    text.insert(0, 1, zero[part * width + i] ? '1' : '0');
  return text;
}

TEST(ZeroColumnMask, examplesOfPtx) {
  ZeroColumnMask mask;
  mask.skipSpan = 3;
  mask.useSpan = 4;
  EXPECT_EQ(zeroColumnsOf(mask, 128, 0), "00000000000000");
  mask.nonZero = true;
  EXPECT_EQ(zeroColumnsOf(mask, 128, 0), "11100001110000");
  mask.firstSkips = {true, false};
  EXPECT_EQ(zeroColumnsOf(mask, 64, 0), "00001110000111");
  EXPECT_EQ(zeroColumnsOf(mask, 64, 1), "11100001110000");
  mask.startCount = {0, 1, 2, 1};
  mask.firstSkips = {true, true, false, false};
  mask.columnShift = 2;
  EXPECT_EQ(zeroColumnsOf(mask, 32, 0), "00001110000111");
  EXPECT_EQ(zeroColumnsOf(mask, 32, 1).substr(1), "0000111000011");
  EXPECT_EQ(zeroColumnsOf(mask, 32, 2).substr(2), "111000011100");
  EXPECT_EQ(zeroColumnsOf(mask, 32, 3).substr(1), "1110000111000");
  EXPECT_EQ(*ZeroColumnMask::decode(mask.encode()), mask);
  EXPECT_FALSE(ZeroColumnMask::decode(1ull << 36));
}

// PTX ISA's shape table has K = 96 for dense fp4 kinds of pairs.
TEST(MmaShape, k96) {
  const MmaVariant k96 = {.depth = MmaDepth::K96};
  EXPECT_TRUE(validateMmaShape(MmaKind::MXF4NVF4, 2, 256, 192, k96));
  EXPECT_TRUE(validateMmaShape(MmaKind::MXF4, 2, 256, 16, k96));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF4NVF4, 1, 128, 128, k96));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF4NVF4, 2, 128, 128, k96));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF4NVF4, 2, 256, 8, k96));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF8F6F4, 2, 256, 128, k96));
  EXPECT_FALSE(
      validateMmaShape(MmaKind::MXF4, 2, 256, 128, {.sparse = true, .depth = MmaDepth::K96}));
}

// PTX ISA lists the double K of fp4 for pairs alone; CUTLASS has it for one CTA too.
TEST(MmaShape, doubleK) {
  const MmaVariant doubled = {.depth = MmaDepth::Double};
  EXPECT_TRUE(validateMmaShape(MmaKind::MXF4NVF4, 1, 128, 8, doubled));
  EXPECT_TRUE(validateMmaShape(MmaKind::MXF4, 2, 256, 240, doubled));
  EXPECT_TRUE(validateMmaShape(MmaKind::F8F6F4, 1, 128, 16, doubled));
  EXPECT_TRUE(validateMmaShape(MmaKind::MXF8F6F4, 2, 256, 256, doubled));
  EXPECT_FALSE(validateMmaShape(MmaKind::F8F6F4, 1, 128, 8, doubled));
  EXPECT_FALSE(validateMmaShape(MmaKind::F8F6F4, 1, 64, 16, doubled));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF4NVF4, 2, 128, 128, doubled));
  EXPECT_FALSE(validateMmaShape(MmaKind::MXF4NVF4, 2, 256, 8, doubled));
  EXPECT_FALSE(validateMmaShape(MmaKind::F16, 1, 128, 128, doubled));
  EXPECT_FALSE(
      validateMmaShape(MmaKind::MXF4, 2, 256, 128, {.sparse = true, .depth = MmaDepth::Double}));
}

TEST(MmaShape, depthAndScaleVectors) {
  EXPECT_EQ(mmaK(MmaKind::F16), 16u);
  EXPECT_EQ(mmaK(MmaKind::TF32), 8u);
  EXPECT_EQ(mmaK(MmaKind::F8F6F4), 32u);
  EXPECT_EQ(mmaK(MmaKind::MXF8F6F4), 32u);
  EXPECT_EQ(mmaK(MmaKind::MXF4NVF4), 64u);
  EXPECT_EQ(mmaK(MmaKind::MXF4NVF4, true), 128u);
  EXPECT_EQ(mmaK(MmaKind::MXF4NVF4, false, MmaDepth::K96), 96u);
  EXPECT_EQ(mmaK(MmaKind::MXF4NVF4, false, MmaDepth::Double), 128u);
  EXPECT_EQ(mmaK(MmaKind::MXF8F6F4, false, MmaDepth::Double), 64u);
  using K = MmaKind;
  using S = ScaleType;
  using V = ScaleVector;
  const std::set<std::tuple<K, S, V>> legal = {
      {K::MXF8F6F4, S::UE8M0, V::X1}, {K::MXF4, S::UE8M0, V::X2},
      {K::MXF4NVF4, S::UE8M0, V::X2}, {K::MXF4NVF4, S::UE8M0, V::X4},
      {K::MXF4NVF4, S::UE4M3, V::X2}, {K::MXF4NVF4, S::UE4M3, V::X4},
      {K::MXF4NVF4, S::UE5M3, V::X2}, {K::MXF4NVF4, S::UE5M3, V::X4}};
  for (K k : {K::F16, K::F8F6F4, K::MXF8F6F4, K::MXF4, K::MXF4NVF4})
    for (S s : {S::UE4M3, S::UE8M0, S::UE5M3})
      for (V v : {V::X1, V::X2, V::X4})
        EXPECT_EQ(isLegalScaleVector(k, s, v), legal.contains({k, s, v}));
}

} // namespace
