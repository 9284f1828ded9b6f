//===- AddressSpace.h - Places of memory in addresses ---------------------===//
#pragma once

#include <cstdint>

namespace fp4::sim {

// Shared memory. Offsets start at kSharedBase (the first KiB is the system's), as on the device. An
// address in shared::cluster space is rank << 24 | offset.
inline constexpr uint32_t kSharedBase = 0x400;
inline constexpr uint32_t kSharedRankShift = 24;
inline constexpr uint32_t kSharedOffsetMask = (1u << kSharedRankShift) - 1;

// Generic addresses: windows of 4 GiB above every global address.
inline constexpr uint64_t kSharedWindow = 0x8FE0'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x8FE1'0000'0000;
inline constexpr uint64_t kParamWindow = 0x8FE2'0000'0000;
/// Pointers to device functions: no memory is there.
inline constexpr uint64_t kCodeWindow = 0x8FE3'0000'0000;
/// Addresses in .param from here on are the parameters of device functions, which lie in local
/// memory; below are the kernel's.
inline constexpr uint64_t kFunctionParams = 0x8000'0000;

} // namespace fp4::sim
