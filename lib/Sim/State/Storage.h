//===- Storage.h - Host storage of device memory ---------------------------===//
#pragma once

#include "fp4/Sim/GlobalMemory.h"

namespace fp4::sim {

/// Storage of 0xCD bytes; null where the host has none. Programs allocate tens of gigabytes and use
/// a few: large storage takes pages of the host only where it is written.
Storage makeStorage(uint64_t size);

/// Fills a part of a storage; zeros of large storage take no pages.
void fillStorage(const Storage &storage, uint64_t offset, uint8_t value, uint64_t bytes);

/// Null where the host has no memory.
WrittenBits makeBits(uint64_t bytes);

} // namespace fp4::sim
