//===- Lz4.h - The LZ4 block format ---------------------------------------===//
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fp4::simcuda {

/// Decompresses one LZ4 block to exactly `size` bytes; false when it is malformed.
bool decompressLz4(std::span<const std::byte> block, size_t size, std::string &out);

} // namespace fp4::simcuda
