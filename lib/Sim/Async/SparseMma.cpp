//===- SparseMma.cpp - Structured sparse A of the matrix instructions -----===//
#include "SparseMma.h"
#include "fp4/ISA/SmemDescriptor.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
using namespace numerics;
namespace {

bool isDefined(const SparseFormat &format, unsigned first, unsigned second) {
  if (first == second)
    return false;
  switch (format.indices) {
  case SparseIndices::Distinct:
    return true;
  case SparseIndices::Ascending:
    return first < second;
  case SparseIndices::Tcgen05:
    return first < second || (first == 2 && second == 1);
  }
  return false;
}

/// The places of a chunk's stored parts (elements, or pairs of 4-bit ones); false if undefined.
bool decodeChunk(const SparseFormat &format, unsigned bits, unsigned (&places)[2]) {
  if (format.elementBits == 32) {
    places[0] = bits == 0b1110;
    return bits == 0b1110 || bits == 0b0100;
  }
  places[0] = bits & 3;
  places[1] = bits >> 2;
  return isDefined(format, places[0], places[1]);
}

} // namespace

unsigned containerBits(hw::MmaType type) { return 256 / factorsPerRow(type); }

Status decodeSparseRow(const SparseFormat &format, uint64_t metadata, uint64_t nonZero,
                       unsigned row, SparseRow &out) {
  const unsigned perChunk = format.storedPerChunk();
  const unsigned unit = format.elementBits == 4 ? 2 : 1; // elements that one index places
  for (unsigned chunk = 0; chunk < format.stored() / perChunk; ++chunk) {
    const unsigned bits = metadata >> (4 * chunk) & 15;
    const uint64_t elements = nonZero >> (chunk * perChunk) & ((1u << perChunk) - 1);
    unsigned places[2] = {0, 1};
    if (!decodeChunk(format, bits, places)) {
      if (elements)
        return makeError(ErrorKind::Simulation,
                         fmt::format("sparse A has metadata {:#06b} for elements {}..{} of row {}, "
                                     "which the PTX ISA does not define",
                                     bits, 2 * chunk * perChunk, 2 * (chunk + 1) * perChunk - 1,
                                     row),
                         "see PTX ISA, sparse matrix storage, for the meaningful values");
      places[0] = 0, places[1] = 1;
    }
    for (unsigned i = 0; i < perChunk; ++i)
      out[chunk * perChunk + i] =
          uint8_t(2 * chunk * perChunk + places[i / unit] * unit + i % unit);
  }
  return {};
}

uint64_t nonZeroElements(std::span<const uint8_t> bytes, unsigned elementBits) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t element = i * 8 / elementBits;
    if (elementBits == 4)
      bits |= (uint64_t((bytes[i] & 15) != 0) | uint64_t(bytes[i] >> 4 != 0) << 1) << element;
    else
      bits |= uint64_t(bytes[i] != 0) << element;
  }
  return bits;
}

void selectElements(const SparseRow &row, unsigned elementBits, const uint8_t *column,
                    uint8_t *out) {
  for (unsigned i = 0; i < hw::mmaRowBytes; ++i)
    out[i] = elementBits == 8 ? column[row[i]] : column[row[2 * i] / 2];
}

// CUTLASS' layouts of the metadata operand (mma_traits_sm90_gmma_sparse, mma_traits_sm120_sparse),
// lane 4 (row % 8) + ..:
//   16 and 32 bits, full    + 2 selector + (half of the row), bits 16 (row / 8) .. + 15
//   8 and 4 bits, full      + row / 8 + 2 (half of the row), all 32 bits
// The shapes with half as much K are the first half of the others; their selector then has one more
// bit (CtsMma on an H200).
uint64_t warpMetadata(const uint32_t *lanes, const SparseFormat &format, bool full,
                      unsigned selector, unsigned row) {
  const bool wide = format.elementBits >= 16;
  const unsigned bits = wide ? 16 : 32;
  uint64_t metadata = 0;
  for (unsigned half = 0; half < (full ? 2 : 1); ++half) {
    const unsigned lane = 4 * (row % 8) + (wide ? (full ? 2 * selector + half : selector)
                                                : row / 8 + 2 * (full ? half : selector));
    const uint32_t word = wide ? lanes[lane] >> (16 * (row / 8)) & 0xFFFF : lanes[lane];
    metadata |= uint64_t(word) << (bits * half);
  }
  return metadata;
}

unsigned warpSelectors(const SparseFormat &format, bool full) {
  return (format.elementBits >= 16 ? 4 : 2) / (full ? 2 : 1);
}

} // namespace fp4::sim
