//===- Swizzle.h - Shared-memory XOR swizzles -----------------------------===//
//
// A swizzle permutes 16-byte (or 32-byte) chunks by XOR of absolute shared-memory address bits. TMA
// applies it when it writes or reads shared memory and tcgen05.mma/cp apply the same function when
// they read operands. All are involutions that act on the absolute shared address:
//
//   B32         address bit  4   ^= bit  7     repeats every  256 bytes
//   B64         address bits 5:4 ^= bits 8:7   repeats every  512 bytes
//   B128        address bits 6:4 ^= bits 9:7   repeats every 1024 bytes
//   B128Atom32  address bits 6:5 ^= bits 8:7   repeats every  512 bytes (32-byte chunks)
//
// Sources: PTX ISA "Swizzling modes" (TMA) and "Shared memory matrix layout" (tcgen05); CUTLASS
// Swizzle<1,4,3>, <2,4,3>, <3,4,3> and <2,5,2>.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp4::hw {

enum class SwizzleMode : uint8_t { None, B32, B64, B128, B128Atom32 };

/// Returns where the byte with linear (unswizzled) shared address `byteAddress` is stored. A
/// template, so that kernels emit it (Int32 of KernelArithmetic), there also for an offset in a
/// tile that starts where the pattern does.
template <typename Int> constexpr Int swizzle(SwizzleMode mode, Int byteAddress) {
  switch (mode) {
  case SwizzleMode::None:
    return byteAddress;
  case SwizzleMode::B32:
    return byteAddress ^ ((byteAddress >> 3) & 0x10);
  case SwizzleMode::B64:
    return byteAddress ^ ((byteAddress >> 3) & 0x30);
  case SwizzleMode::B128:
    return byteAddress ^ ((byteAddress >> 3) & 0x70);
  case SwizzleMode::B128Atom32:
    return byteAddress ^ ((byteAddress >> 2) & 0x60);
  }
  return byteAddress;
}
constexpr uint32_t swizzleAddress(SwizzleMode mode, uint32_t byteAddress) {
  return swizzle(mode, byteAddress);
}

/// Bytes after which the pattern repeats: the alignment a tile needs for its pattern to start at
/// phase 0. 16 (the TMA minimum) without swizzle.
constexpr uint32_t swizzleRepeatBytes(SwizzleMode mode) {
  switch (mode) {
  case SwizzleMode::None:
    return 16;
  case SwizzleMode::B32:
    return 256;
  case SwizzleMode::B64:
  case SwizzleMode::B128Atom32:
    return 512;
  case SwizzleMode::B128:
    return 1024;
  }
  return 16;
}

/// Width in bytes of one swizzled row (the inner box limit of a tensor map); 16 without swizzle
/// (the row of one core matrix).
constexpr uint32_t swizzleWidthBytes(SwizzleMode mode) {
  switch (mode) {
  case SwizzleMode::None:
    return 16;
  case SwizzleMode::B32:
    return 32;
  case SwizzleMode::B64:
    return 64;
  case SwizzleMode::B128:
  case SwizzleMode::B128Atom32:
    return 128;
  }
  return 16;
}

/// Bits 61-63 of a tcgen05 shared-memory descriptor.
unsigned descriptorSwizzleCode(SwizzleMode mode);
std::optional<SwizzleMode> swizzleFromDescriptorCode(unsigned code);

/// The CUtensorMapSwizzle value of cuda.h.
unsigned tensorMapSwizzleCode(SwizzleMode mode);
std::optional<SwizzleMode> swizzleFromTensorMapCode(unsigned code);

/// "none", "swizzle_32B", "swizzle_64B", "swizzle_128B", "swizzle_128B_atom_32B".
std::string_view stringify(SwizzleMode mode);
std::optional<SwizzleMode> parseSwizzleMode(std::string_view text);

} // namespace fp4::hw
