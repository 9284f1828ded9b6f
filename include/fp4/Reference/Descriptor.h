//===- Descriptor.h - The memref descriptor of a boundary buffer ----------===//
//
// A descriptor of rank R is 3 + 2R words: allocated pointer, aligned pointer, offset in elements, R
// sizes, R strides in elements, for the dense buffer of a type (Type::bufferShape).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Manifest.h"

#include <span>

namespace fp4::harness {

namespace descriptor {
// Words.
constexpr size_t kAllocated = 0, kAligned = 1, kOffset = 2, kSizes = 3;
} // namespace descriptor

size_t descriptorWords(const Type &type);

/// Of a dense buffer of static `type` at `address`.
std::vector<uint64_t> makeDescriptor(const Type &type, uint64_t address);

/// Device address of the first element.
uint64_t descriptorAddress(const Type &type, const uint64_t *words);

/// The rows of what compiled code returned.
struct RowPitch {
  uint64_t rows = 0, width = 0, pitch = 0; ///< width and pitch in bytes
  bool isDense() const { return pitch == width; }
};
/// Rows follow each other without a gap, or with one gap per row. Usage error for other strides.
Expected<RowPitch> rowPitch(const Type &type, const uint64_t *words);

} // namespace fp4::harness
