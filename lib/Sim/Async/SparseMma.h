//===- SparseMma.h - Structured sparse A of the matrix instructions -------===//
//
// Half of the elements of a row of A are stored; metadata says which k each of them stands for (PTX
// ISA, "Sparse matrix storage" of mma.sp, wgmma.mma_async.sp and tcgen05.mma.sp). Four bits of
// metadata serve one chunk of the row:
//
//   32-bit elements   1 of 2     0b0100 the first, 0b1110 the second
//   16 and 8 bits     2 of 4     two indices of two bits, the lower bits for the first stored one
//   4 bits            4 of 8     the same, of pairs of elements
//
// The product is that of the stored elements with the elements of B that they select: as if K were
// half as large. An index that PTX leaves undefined is an error where an element that it places is
// not zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Modifiers/TensorCore.h"
#include "fp4/Numerics/DenseRow.h"
#include "fp4/Support/Error.h"

namespace fp4::sim {

/// For every stored element of a row the k that it stands for.
using SparseRow = std::array<uint8_t, 64>;

struct SparseFormat {
  unsigned elementBits = 16; ///< 4, 8, 16, 32; types below 8 bits that fill a byte: 8
  SparseIndices indices = SparseIndices::Distinct;

  unsigned storedPerChunk() const { return elementBits == 32 ? 1 : elementBits == 4 ? 4 : 2; }
  /// Stored elements in the 32 bytes of a row.
  unsigned stored() const { return 256 / elementBits; }
};

/// Bits of containers: fp6 and fp4 as operands of 8 bits.
unsigned containerBits(hw::MmaType type);

/// `nonZero`: bit i for stored element i of row `row`, which messages name.
Status decodeSparseRow(const SparseFormat &format, uint64_t metadata, uint64_t nonZero,
                       unsigned row, SparseRow &out);

/// Returns a bit for each element packed in `bytes`: set where the element is not zero.
uint64_t nonZeroElements(std::span<const uint8_t> bytes, unsigned elementBits);

/// The elements of a column of B (64 bytes) that a row selects (32 bytes). For 8 and 4 bits.
void selectElements(const SparseRow &row, unsigned elementBits, const uint8_t *column,
                    uint8_t *out);

/// Metadata of row `row` of a warp's 16, from a register of its lanes. `full`: a row has 32 bytes
/// of stored elements (else 16). Selector: the lanes of each four that hold it, where not all do.
uint64_t warpMetadata(const uint32_t *lanes, const SparseFormat &format, bool full,
                      unsigned selector, unsigned row);
/// Returns the number of selectors of an instruction.
unsigned warpSelectors(const SparseFormat &format, bool full);

} // namespace fp4::sim
