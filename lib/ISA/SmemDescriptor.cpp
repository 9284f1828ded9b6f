// Packing of the shared-memory descriptor and its address function.
#include "fp4/ISA/SmemDescriptor.h"
#include <fmt/format.h>
#include <utility>

namespace fp4::hw {
namespace {

constexpr uint64_t versionBits = 1ull << 46;
/// Bits between the fields of the header comment.
constexpr uint64_t reservedBits = (3ull << 14) | (3ull << 30) | (0xFFull << 53),
                   wideBits = (1ull << 14) | (1ull << 30);

uint64_t field14(uint32_t bytes) { return descriptorStart(bytes); }
uint32_t bytesOf(uint64_t bits, unsigned shift, unsigned width = 14) {
  return static_cast<uint32_t>((bits >> shift) & ((1u << width) - 1)) << 4;
}

// [uncertain] The effect of a non-zero base offset on the XOR: taken as a rotation of the row
// phase, so that a pattern starting at row `baseOffset` of an aligned 1024-byte window is seen as
// phase 0.
uint32_t swizzleWithBase(SwizzleMode mode, uint32_t address, uint8_t baseOffset) {
  const uint32_t shift = static_cast<uint32_t>(baseOffset) << 7;
  const uint32_t phased = address - shift;
  return address ^ phased ^ swizzleAddress(mode, phased);
}

} // namespace

uint64_t SmemDescriptor::encode() const {
  return field14(startAddress) | field14(leadingByteOffset) << 16 |
         field14(strideByteOffset) << 32 | versionBits |
         static_cast<uint64_t>(baseOffset & 7) << 49 | static_cast<uint64_t>(lboAbsolute) << 52 |
         static_cast<uint64_t>(descriptorSwizzleCode(swizzle)) << 61;
}

Expected<SmemDescriptor> SmemDescriptor::decode(uint64_t bits, bool wide) {
  const auto fail = [&](const std::string &what) {
    return makeError(ErrorKind::Simulation,
                     fmt::format("shared-memory descriptor 0x{:016x} {}", bits, what),
                     "descriptors are built by hw::SmemDescriptor; see PTX ISA, shared memory "
                     "descriptor");
  };
  if (const unsigned version = (bits >> 46) & 7; version != 1)
    return fail(fmt::format("must hold 0b001 in bits 46-48, but got {:#05b}", version));
  if (bits & reservedBits & ~(wide ? wideBits : 0))
    return fail(wide ? "must be zero in bits 15, 31 and 53-60"
                     : "must be zero in bits 14-15, 30-31 and 53-60");
  const auto mode = swizzleFromDescriptorCode(static_cast<unsigned>(bits >> 61));
  if (!mode)
    return fail(fmt::format("expects swizzle 0, 1, 2, 4 or 6, but got {}", bits >> 61));
  SmemDescriptor d;
  d.startAddress = bytesOf(bits, 0, wide ? 15 : 14);
  d.leadingByteOffset = bytesOf(bits, 16, wide ? 15 : 14);
  d.strideByteOffset = bytesOf(bits, 32);
  d.baseOffset = static_cast<uint8_t>((bits >> 49) & 7);
  d.lboAbsolute = (bits >> 52) & 1;
  d.swizzle = *mode;
  return d;
}

// The swizzle codes of wgmma are those of tcgen05 without the lowest bit.
uint64_t SmemDescriptor::encodeWgmma() const { return encode() & ~versionBits; }

Expected<SmemDescriptor> SmemDescriptor::decodeWgmma(uint64_t bits) {
  constexpr uint64_t zeroBits = 3ull << 14 | 3ull << 30 | 7ull << 46 | 0x3FFull << 52;
  if (bits & zeroBits)
    return makeError(ErrorKind::Simulation,
                     fmt::format("wgmma matrix descriptor 0x{:016x} must be zero in bits 14-15, "
                                 "30-31, 46-48 and 52-61",
                                 bits),
                     "see PTX ISA, wgmma, matrix descriptor format");
  return decode(bits | versionBits);
}

uint32_t SmemDescriptor::operandAddress(uint32_t row, uint32_t byte) const {
  // [derived] CUTLASS' descriptors of K = 96 give both lines a start of their own.
  constexpr uint32_t line = 128;
  if (const uint32_t at = startAddress % line + byte; lboAbsolute && at >= line)
    return swizzleAddress(SwizzleMode::B128, leadingByteOffset + (row / 8) * strideByteOffset +
                                                 row % 8 * line + at - line);
  const uint32_t group = startAddress + (row / 8) * strideByteOffset;
  if (swizzle == SwizzleMode::None)
    return group + (row % 8) * 16 + (byte / 16) * leadingByteOffset + byte % 16;
  return swizzleWithBase(swizzle, group + (row % 8) * swizzleWidthBytes(swizzle) + byte,
                         baseOffset);
}

uint32_t SmemDescriptor::transposedAddress(uint32_t mn, uint32_t k, uint32_t elementBytes) const {
  const uint32_t width = swizzleWidthBytes(swizzle), perLine = width / elementBytes;
  const uint32_t group = swizzle == SwizzleMode::B128Atom32 ? 4 : 8;
  const bool plain = swizzle == SwizzleMode::None;
  const uint32_t lineStride = plain ? strideByteOffset : leadingByteOffset;
  const uint32_t groupStride = plain ? leadingByteOffset : strideByteOffset;
  return swizzleWithBase(swizzle,
                         startAddress + (mn / perLine) * lineStride + (k / group) * groupStride +
                             (k % group) * width + (mn % perLine) * elementBytes,
                         baseOffset);
}

SmemDescriptor SmemDescriptor::atKStep(uint32_t step) const {
  SmemDescriptor d = *this;
  d.startAddress += step * (swizzle == SwizzleMode::None ? 2 * leadingByteOffset : mmaRowBytes);
  return d;
}

SmemDescriptor SmemDescriptor::kMajorOperand(SwizzleMode mode, uint32_t startAddress) {
  SmemDescriptor d;
  d.startAddress = startAddress;
  d.swizzle = mode;
  const bool plain = mode == SwizzleMode::None;
  // The swizzled K-major modes do not read LBO; Triton and CUTLASS write 16 (field 1).
  d.leadingByteOffset = plain ? 128 : 16;
  d.strideByteOffset = plain ? 256 : 8 * swizzleWidthBytes(mode);
  return d;
}

SmemDescriptor SmemDescriptor::mnMajorOperand(SwizzleMode mode, uint32_t k, uint32_t startAddress) {
  SmemDescriptor d;
  d.startAddress = startAddress;
  d.swizzle = mode;
  const uint32_t line = swizzleWidthBytes(mode);
  d.leadingByteOffset = k * line;
  d.strideByteOffset = 8 * line;
  if (mode == SwizzleMode::None)
    std::swap(d.leadingByteOffset, d.strideByteOffset);
  return d;
}

SmemDescriptor SmemDescriptor::scaleFactorBlock(uint32_t startAddress) {
  SmemDescriptor d;
  d.startAddress = startAddress;
  d.leadingByteOffset = 16;
  d.strideByteOffset = 128;
  return d;
}

uint8_t baseOffsetFor(SwizzleMode mode, uint32_t patternStart) {
  if (patternStart % swizzleRepeatBytes(mode) == 0)
    return 0;
  return static_cast<uint8_t>((patternStart >> 7) & 7);
}

} // namespace fp4::hw
