//===- FilledPages.h - Pages that cost nothing until they are written ------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace fp4 {

/// Bytes of a part, of which every size and offset below is a multiple.
inline constexpr uint64_t kPagesPart = 64ull << 20;

/// Maps bytes of the value 0xCD. The host copies a page when it is written. Null where the host
/// refuses.
std::byte *mapFilledPages(uint64_t bytes);
/// Makes a part of mapped bytes zeros, and gives their pages back; false where the host refuses.
bool zeroPages(std::byte *at, uint64_t bytes);
void unmapPages(std::byte *at, uint64_t bytes);

} // namespace fp4
