//===- AttentionBlocks.cpp - Operands of attention with scales of blocks ---===//
#include "AttentionBlocks.h"

#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/UE8M0.h"

#include <bit>

namespace fp4::numerics {

void ScaledOperand::addCodes(std::span<const float> numbers, uint64_t elements) {
  const size_t first = codes_.size();
  codes_.resize(first + (isPacked_ ? elements / 2 : elements));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (isPacked_)
      codes_[first + i / 2] |= uint8_t(encodeE2M1(numbers[i]) << 4 * (i % 2));
    else
      codes_[first + i] = encodeE4M3(numbers[i]);
}

void ScaledOperand::addRow(const AttentionBlocks &blocks, std::span<const float> numbers,
                           std::span<const uint8_t> scales, uint64_t place, uint64_t elements) {
  elements = std::max<uint64_t>(elements, numbers.size());
  isPacked_ = blocks.arePacked();
  bytesOfRow_ = isPacked_ ? elements / 2 : elements;
  scalesOfRow_ = elements / blocks.size;
  ++rows_;
  addCodes(numbers, elements);
  const auto from = scales.subspan(place * scalesOfRow_, scalesOfRow_);
  scales_.insert(scales_.end(), from.begin(), from.end());
}

void ScaledOperand::addValues(const AttentionBlocks &blocks, std::span<const float> numbers,
                              uint64_t place, uint64_t first, uint64_t tokens) {
  isPacked_ = blocks.arePacked();
  bytesOfRow_ = isPacked_ ? numbers.size() / 2 : numbers.size();
  scalesOfRow_ = numbers.size() / blocks.size;
  ++rows_;
  addCodes(numbers, numbers.size());
  const uint64_t ofRow = (tokens + blocks.size - 1) / blocks.size;
  for (uint64_t i = first / blocks.size; i < first / blocks.size + scalesOfRow_; ++i)
    scales_.push_back(i < ofRow ? blocks.values[place * ofRow + i] : 0);
}

ScaledOperand ScaledOperand::ofPowers(const AttentionBlocks &blocks,
                                      std::span<const float> powers) {
  static const Recipe packed = *parseRecipe(kPowerRecipe), bytes = *parseRecipe(kBytePowerRecipe);
  ScaledOperand row;
  row.isPacked_ = blocks.arePacked();
  row.rows_ = 1;
  row.bytesOfRow_ = row.isPacked_ ? powers.size() / 2 : powers.size();
  row.scalesOfRow_ = powers.size() / blocks.size;
  row.codes_.resize(row.bytesOfRow_);
  for (uint64_t i = 0; i < row.scalesOfRow_; ++i) {
    std::vector<uint8_t> codes(blocks.size);
    row.scales_.push_back(quantizeBlock(row.isPacked_ ? packed : bytes, GlobalScale(),
                                        powers.subspan(i * blocks.size, blocks.size), codes));
    for (uint64_t j = 0; j < blocks.size; ++j) {
      const uint64_t place = i * blocks.size + j;
      row.codes_[row.isPacked_ ? place / 2 : place] |=
          uint8_t(codes[j] << (row.isPacked_ ? 4 * (j % 2) : 0));
    }
  }
  return row;
}

void ScaledOperand::multiplyPacked(const ScaledOperand &b, std::span<uint32_t> sums) const {
  std::vector<float> d(sums.size());
  for (size_t j = 0; j < d.size(); ++j)
    d[j] = std::bit_cast<float>(sums[j]);
  for (uint64_t step = 0; step < bytesOfRow_ / fp4MmaRowBytes; ++step) {
    auto of = [&](const ScaledOperand &operand) {
      return Fp4MmaOperand{operand.codes_.data() + step * fp4MmaRowBytes, operand.bytesOfRow_,
                           operand.scales_.data() + step * 4, operand.scalesOfRow_};
    };
    fp4MmaStep(hw::ScaleType::UE4M3, hw::ScaleVector::X4, 1, unsigned(d.size()), of(*this), of(b),
               d.data(), d.size(), /*accumulate=*/true);
  }
  for (size_t j = 0; j < d.size(); ++j)
    sums[j] = std::bit_cast<uint32_t>(d[j]);
}

void ScaledOperand::multiply(const ScaledOperand &b, std::span<uint32_t> sums,
                             const DenseRowOptions &options) const {
  if (isPacked_)
    return multiplyPacked(b, sums);
  constexpr unsigned k = 32; // of an instruction, and of a block
  for (uint64_t step = 0; step < scalesOfRow_; ++step) {
    std::vector<uint8_t> columns;
    std::vector<int32_t> exponents;
    for (uint64_t j = 0; j < b.rows_; ++j) {
      const uint8_t *row = b.codes_.data() + j * bytesOfRow_ + step * k;
      columns.insert(columns.end(), row, row + k);
      exponents.push_back(int32_t(scales_[step]) + b.scales_[j * scalesOfRow_ + step] -
                          2 * ue8m0One);
    }
    FactorRow row;
    decodeFactors(hw::MmaType::E4M3, codes_.data() + step * k, /*unpacked=*/false,
                  /*negate=*/false, row);
    denseRow(row, DenseColumns(hw::MmaType::E4M3, columns, k, /*unpacked=*/false, /*negate=*/false),
             exponents, sums, options);
  }
}

} // namespace fp4::numerics
