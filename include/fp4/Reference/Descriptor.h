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
// Places of words.
constexpr size_t kAllocated = 0, kAligned = 1, kOffset = 2, kSizes = 3;
} // namespace descriptor

size_t descriptorWords(const Type &type);

/// Makes the descriptor of a dense buffer of static `type` at `address`.
std::vector<uint64_t> makeDescriptor(const Type &type, uint64_t address);

/// Logical elements from one index of each dimension to the next; none: those of a dense buffer.
using Strides = std::vector<int64_t>;

/// Bytes of which all strides but the last are multiples.
inline constexpr int64_t kStrideBytes = 16;

/// Makes the descriptor of a linear matrix or batch of static `type` with these strides. The stride
/// of a dimension of one index does not matter. Usage errors for rows that do not begin at
/// multiples of 16 bytes, and for elements of a row that do not follow each other.
Expected<std::vector<uint64_t>> makeDescriptor(const Type &type, const Strides &strides);

/// Bytes of a buffer with strides, from its first element to the end of its last.
uint64_t stridedBytes(const Type &type, const std::vector<uint64_t> &words);

/// The rows of one matrix, in bytes: where it begins in a dense buffer and in a strided one.
struct MatrixRows {
  uint64_t dense = 0, offset = 0, rows = 0, width = 0, pitch = 0;
};
/// The matrices of such a buffer.
std::vector<MatrixRows> matricesOf(const Type &type, const std::vector<uint64_t> &words);

/// Device address of the first element.
uint64_t descriptorAddress(const Type &type, const uint64_t *words);

/// The rows of what compiled code returned.
struct RowPitch {
  uint64_t rows = 0, width = 0, pitch = 0; ///< width and pitch in bytes
  bool isDense() const { return pitch == width; }
};
/// Returns the pitch of rows that follow each other, with or without a gap. Other strides are a
/// Usage error.
Expected<RowPitch> rowPitch(const Type &type, const uint64_t *words);

} // namespace fp4::harness
