//===- AttentionBlocks.h - Operands of attention with scales of blocks -----===//
#pragma once

#include "fp4/Numerics/Attention.h"
#include "fp4/Numerics/DenseRow.h"

#include <vector>

namespace fp4::numerics {

/// The exponent of 2 of the factor of powers that have not grown.
inline double shiftOf(const AttentionBlocks &blocks) {
  return blocks.havePackedValues() ? kPackedShift : kByteShift;
}

/// Rows of operand A, or columns of operand B, with their scales: of e4m3 with 32 elements of a
/// block, or of e2m1 with 16.
class ScaledOperand {
public:
  /// Adds a row of numbers, zeros behind them up to `elements`, and the scales of row `place`.
  void addRow(const AttentionBlocks &blocks, std::span<const float> numbers,
              std::span<const uint8_t> scales, uint64_t place, uint64_t elements = 0);
  /// Adds numbers of all keys from `first` on, whose scales are a part of row `place` of those of
  /// `tokens` keys.
  void addValues(const AttentionBlocks &blocks, std::span<const float> numbers, uint64_t place,
                 uint64_t first, uint64_t tokens);
  /// A row of powers, quantized.
  static ScaledOperand ofPowers(const AttentionBlocks &blocks, std::span<const float> powers);

  /// Adds the products of the first row and each row of `b` to `sums`, instruction by instruction.
  void multiply(const ScaledOperand &b, std::span<uint32_t> sums,
                const DenseRowOptions &options) const;

private:
  void addCodes(std::span<const float> numbers, uint64_t elements);
  void multiplyPacked(const ScaledOperand &b, std::span<uint32_t> sums) const;

  bool isPacked_ = false;
  uint64_t rows_ = 0, bytesOfRow_ = 0, scalesOfRow_ = 0;
  std::vector<uint8_t> codes_, scales_;
};

} // namespace fp4::numerics
