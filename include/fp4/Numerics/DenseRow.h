//===- DenseRow.h - A row of a dense matrix product, vectorized -----------===//
//
// The arithmetic of DenseMma.h for one row of D at a time, in 32-bit integers over its columns:
//
//   e_k    = exponent(a_k) + exponent(b_k) + scale     far below all others for a zero product
//   emax   = max over k of e_k, exponent(C), -133
//   term_k = |a_k b_k| 2^(align - bits) >> (emax - e_k), with the product's sign
//
// A term is below 2^27, so 16 of them fit in 32 bits; their sums and C's add up exactly in double
// precision, whose low bits are cut for the rounding toward zero. Elements with NaN, infinity or an
// exponent near the ends of fp32's range go to the definition, denseElement.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/DenseMma.h"
#include <vector>

namespace fp4::numerics {

/// The columns of B, decoded: significands and exponents by k, then by column.
class DenseColumns {
public:
  /// A column of more than maxDenseK factors is given as two rows.
  DenseColumns(std::vector<FactorRow> columns, unsigned k);
  unsigned size() const { return count; }

private:
  friend class DenseRowKernel;
  const Factor &factor(unsigned column, unsigned i) const {
    return rows[column * parts + i / maxDenseK][i % maxDenseK];
  }
  std::vector<FactorRow> rows; ///< `parts` per column
  unsigned k, parts, count;
  std::vector<int32_t> significands, exponents;
  std::vector<int32_t> special; ///< by column: has NaN or infinity
};

struct DenseRowOptions {
  unsigned bits = 0; ///< fraction bits of a product
  hw::AccumulatorType dType = hw::AccumulatorType::F32;
  DensePrecision precision;
  const uint8_t *selection = nullptr; ///< sparse A: the k of each of its elements, half as many
  int addendShift = 0;                ///< C counts 2^-addendShift of itself
};

/// d[j] = sum over k of a_k b_jk 2^scales[j] + d[j], for every column; as denseElement has it.
void denseRow(const FactorRow &a, const DenseColumns &b, std::span<const int32_t> scales,
              std::span<uint32_t> d, const DenseRowOptions &options);

} // namespace fp4::numerics
