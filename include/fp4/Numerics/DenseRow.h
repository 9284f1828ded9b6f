//===- DenseRow.h - Rows of a dense MMA, vectorized -----------------------===//
//
// The arithmetic of DenseMma.h for rows of D, in 32-bit integers over their columns:
//
//   e_k    = exponent(a_k) + exponent(b_k) + scale     far below all others for a zero product
//   emax   = max over k of e_k, exponent(C), -133
//   term_k = |a_k b_k| 2^(align - bits) >> (emax - e_k), with the product's sign
//
// A term is below 2^27, so 16 of them fit in 32 bits; their sums and C's add up exactly in double
// precision, whose low bits are cut for the rounding toward zero. Elements with NaN, infinity or an
// exponent near the ends of fp32's range go to the definition, denseElement. With AVX-512 products
// are fp32, and their conversion truncates them (DenseRow512.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/DenseMma.h"
#include <vector>

namespace fp4::numerics {

class DenseColumns;
struct DenseRow;
struct DenseRowOptions;

/// The rows of A, decoded: significands and exponents by row, then by k.
class DenseRows {
public:
  /// Rows of `bytesPerRow` bytes, 32 by 32 as decodeFactors has them.
  DenseRows(hw::MmaType type, std::span<const uint8_t> bytes, bool unpacked, bool negate,
            unsigned bytesPerRow = 32);
  /// The first `k` factors of each row; more than maxDenseK are given as two rows.
  DenseRows(std::span<const FactorRow> rows, unsigned k);
  /// Multiplies by 2^exponents: by row, and in a row by blocks of maxDenseK factors.
  void scaleBlocks(std::span<const int32_t> exponents);
  unsigned size() const { return unsigned(significands.size() / k); }
  /// A bit for every factor of a row that is not zero.
  uint64_t nonZero(unsigned row) const;

private:
  friend class DenseRowKernel;
  friend class DenseFloatKernel;
  friend uint32_t denseByDefinition(const DenseRows &, const DenseColumns &, const DenseRow &,
                                    unsigned, unsigned, uint32_t, const DenseRowOptions &);
  friend bool areScaled(const DenseRows &, const DenseColumns &);
  void widen();
  Factor factor(unsigned row, unsigned i) const;
  bool isSpecial(unsigned row) const { return !special.empty() && special[row]; }

  unsigned k = 0;
  std::vector<int32_t> significands, exponents;
  std::vector<uint8_t> kinds;   ///< Factor::Class of each element; empty where all are finite
  std::vector<uint8_t> special; ///< flag of each row with NaN or infinity; empty where none has one
  bool isScaled = false;        ///< fp32 may not hold a factor
  // For AVX-512 alone.
  std::vector<float> values;  ///< significand * 2^(exponent - 10)
  std::vector<int32_t> pairs; ///< the exponent, in 16 bits, twice
};

/// The columns of B, decoded: significands and exponents in blocks of 8 columns, and in a block by
/// k, then by column.
class DenseColumns {
public:
  /// A column of more than maxDenseK factors is given as two rows.
  DenseColumns(const std::vector<FactorRow> &columns, unsigned k);
  /// Columns of `bytesPerColumn` bytes of K, in rows of 32 as decodeFactors has them.
  DenseColumns(hw::MmaType type, std::span<const uint8_t> bytes, unsigned bytesPerColumn,
               bool unpacked, bool negate);
  /// Multiplies by 2^exponents: by column, and in a column by blocks of maxDenseK factors.
  void scaleBlocks(std::span<const int32_t> exponents);
  unsigned size() const { return count; }
  unsigned depth() const { return k; }

private:
  friend class DenseRowKernel;
  friend class DenseFloatKernel;
  friend uint32_t denseByDefinition(const DenseRows &, const DenseColumns &, const DenseRow &,
                                    unsigned, unsigned, uint32_t, const DenseRowOptions &);
  friend bool areScaled(const DenseRows &, const DenseColumns &);
  static constexpr unsigned lanes = 8, wide = 32;
  void widen();

  void allocate(unsigned columns, unsigned depth);
  size_t place(unsigned column, unsigned i) const {
    return (size_t(column / lanes) * k + i) * lanes + column % lanes;
  }
  Factor factor(unsigned column, unsigned i) const;
  bool isSpecial(unsigned column) const { return !special.empty() && special[column]; }

  unsigned k = 0, count = 0;
  std::vector<int32_t> significands, exponents;
  std::vector<uint8_t> kinds;   ///< Factor::Class of each element; empty where all are finite
  std::vector<uint8_t> special; ///< flag of each column with NaN or infinity; empty: none has one
  bool isScaled = false;
  // For AVX-512 alone, in blocks of 32 columns: as in DenseRows.
  std::vector<float> values;
  std::vector<int16_t> shortExponents;
};

struct DenseRowOptions {
  unsigned bits = 0; ///< fraction bits of a product
  hw::AccumulatorType dType = hw::AccumulatorType::F32;
  DensePrecision precision;
  int addendShift = 0; ///< C counts 2^-addendShift of itself
};

/// A row of D, which has as many columns as B.
struct DenseRow {
  uint32_t *d = nullptr;              ///< C, and then the result
  const int32_t *scales = nullptr;    ///< exponent of the scale of each column; null: no scales
  const uint8_t *selection = nullptr; ///< sparse A: the k of each of its elements, half as many
};

/// d[j] = sum over k of a_k b_jk 2^scales[j] + d[j], for the first rows of A and every column; as
/// denseElement has it.
void denseRows(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
               const DenseRowOptions &options);

/// The ways to do that, the fastest first; all of them give the same bits.
struct DenseRowMethod {
  const char *name;
  bool takesScaled; ///< factors that scaleBlocks multiplied
  bool (*supported)();
  void (*run)(const DenseRows &, const DenseColumns &, std::span<const DenseRow>,
              const DenseRowOptions &);
};
std::span<const DenseRowMethod> denseRowMethods();

/// Computes one dense row.
void denseRow(const FactorRow &a, const DenseColumns &b, std::span<const int32_t> scales,
              std::span<uint32_t> d, const DenseRowOptions &options);

} // namespace fp4::numerics
