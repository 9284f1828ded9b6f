//===- SmemDescriptor.h - Shared-memory matrix descriptors ----------------===//
//
// The 64-bit operand that tells tcgen05.mma, tcgen05.cp and wgmma.mma_async where a matrix lies in
// shared memory.
//
//   bits   0-13  start address >> 4          bits 46-48  constant 0b001
//   bits  16-29  leading byte offset >> 4    bits 49-51  base offset
//   bits  32-45  stride byte offset >> 4     bit  52     leading offset is an absolute address
//   bits  61-63  swizzle: 0 none, 1 128B with 32B atoms, 2 128B, 4 64B, 6 32B
//
// The descriptor of wgmma (sm_90a) has the same fields in the same places, but zeros in bits 46-48,
// 52 and 61: its swizzle, bits 62-63, is 0 none, 1 128B, 2 64B, 3 32B.
//
// Sources: PTX ISA, "Shared memory descriptor" and "Matrix descriptor format" of wgmma; CUTLASS
// cute/arch/mma_sm100_desc.hpp and mma_sm90_desc.hpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/Swizzle.h"
#include "fp4/Support/Error.h"
#include <cstdint>

namespace fp4::hw {

/// Bytes of K that one MMA reads of each row, whatever the element type (64 fp4, 32 fp8, 16 f16),
/// unless its depth says otherwise.
inline constexpr uint32_t mmaRowBytes = 32;
/// Bytes of K in a row of an MMA of K = 96, and elements of K in three panels of 128 bytes, which
/// are whole slices.
inline constexpr uint32_t mmaK96RowBytes = 48, mmaK96TileK = 768;
/// Bytes of K that one dense MMA of this depth reads of each row.
constexpr uint32_t mmaRowBytesOf(MmaDepth depth) {
  return depth == MmaDepth::Single ? mmaRowBytes
         : depth == MmaDepth::K96  ? mmaK96RowBytes
                                   : 2 * mmaRowBytes;
}

/// The start-address field of a descriptor for a shared address. A template, so that kernels emit
/// it (Int32 of KernelArithmetic): a CTA of a cluster has its rank above the 18 bits of the
/// address.
template <typename Int> constexpr Int descriptorStart(Int sharedAddress) {
  return (sharedAddress >> 4) & 0x3FFF;
}

struct SmemDescriptor {
  uint32_t startAddress = 0;      ///< CTA-local shared address in bytes, multiple of 16
  uint32_t leadingByteOffset = 0; ///< LBO; or an absolute address if lboAbsolute
  uint32_t strideByteOffset = 0;  ///< SBO; what the two are strides of, the address functions say
  uint8_t baseOffset = 0;         ///< 0..7, see baseOffsetFor
  bool lboAbsolute = false;       ///< K = 96 only
  SwizzleMode swizzle = SwizzleMode::None;

  bool operator==(const SmemDescriptor &) const = default;

  /// The 64-bit value. Addresses are taken modulo 256 KiB, as the hardware fields do; bits of a
  /// shared::cluster address above them fall off.
  uint64_t encode() const;

  /// Fails on a wrong constant field, a swizzle code that does not exist, or reserved bits. Start
  /// and leading offset have 14 bits, and 15 where a CTA may have more than 256 KiB (`wide`).
  static Expected<SmemDescriptor> decode(uint64_t bits, bool wide = false);

  /// Encodes a descriptor for wgmma. Expects neither lboAbsolute nor B128Atom32.
  uint64_t encodeWgmma() const;
  static Expected<SmemDescriptor> decodeWgmma(uint64_t bits);

  /// Shared address of byte `byte` of row `row` of a K-major operand, with byte 0..31 inside the
  /// 32-byte K slice of one MMA (element k of an fp4 operand lies in byte k / 2). Also the source
  /// address of tcgen05.cp, where byte / 16 counts 16-byte atoms of the row. With K = 96
  /// (lboAbsolute) byte 0..47: bytes behind the line of 128 that the slice begins in are those of
  /// the line that LBO is the address of.
  ///   no swizzle: start + (row/8)*SBO + (row%8)*16 + (byte/16)*LBO + byte%16
  ///   swizzled:   swizzle(start + (row/8)*SBO + (row%8)*W + byte), W the swizzle width
  uint32_t operandAddress(uint32_t row, uint32_t byte) const;

  /// Shared address of element (mn, k) of an MN-major ("transposed") operand, whose elements of
  /// equal k are contiguous; mn is the row of A or the column of B. With T = 16 / elementBytes
  /// elements in 16 bytes and P = W / elementBytes in a swizzled line of W bytes:
  ///   no swizzle: start + (mn/T)*SBO + (k/8)*LBO + (k%8)*16 + (mn%T)*elementBytes
  ///   swizzled:   swizzle(start + (mn/P)*LBO + (k/8)*SBO + (k%8)*W + (mn%P)*elementBytes), and
  ///   groups
  ///               of 4 instead of 8 k for B128Atom32
  uint32_t transposedAddress(uint32_t mn, uint32_t k, uint32_t elementBytes) const;

  /// The descriptor of the `step`-th 32-byte K slice: +32 bytes inside a swizzled row, +2 LBO
  /// without swizzle.
  SmemDescriptor atKStep(uint32_t step) const;

  /// Byte offsets, in a tile of panels of `panelBytes` bytes, of the `step`-th slice of K = 96: of
  /// its start, and of the line that goes on where the first one ends (of its own panel where none
  /// does).
  struct K96Slice {
    uint32_t start = 0, next = 0;
  };
  static constexpr K96Slice k96Slice(uint32_t step, uint32_t panelBytes) {
    const uint32_t byte = step * mmaK96RowBytes, panel = byte / 128, within = byte % 128;
    return {panel * panelBytes + within,
            (within + mmaK96RowBytes > 128 ? panel + 1 : panel) * panelBytes};
  }

  /// A K-major operand tile whose rows are one swizzle width long, packed (SBO = 8 rows). Without
  /// swizzle: the two 8x16-byte core matrices of a K slice adjacent (LBO 128, SBO 256).
  static SmemDescriptor kMajorOperand(SwizzleMode mode, uint32_t startAddress = 0);

  /// An MN-major operand in panels of one swizzle width, as TMA boxes of `k` rows fill them: panel
  /// after panel (LBO a panel), lines of equal k packed (SBO 8 lines). With swizzles of 16-byte
  /// chunks.
  static SmemDescriptor mnMajorOperand(SwizzleMode mode, uint32_t k, uint32_t startAddress = 0);

  /// The scale tile that one tcgen05.cp.32x128b.warpx4 copies: no swizzle, SBO 128.
  static SmemDescriptor scaleFactorBlock(uint32_t startAddress = 0);
};

/// The base offset field of a tile whose swizzle pattern starts at `patternStart`: 0 when aligned
/// to swizzleRepeatBytes. The effect of a non-zero value on the hardware is not established, so the
/// compiler always aligns.
uint8_t baseOffsetFor(SwizzleMode mode, uint32_t patternStart);

} // namespace fp4::hw
