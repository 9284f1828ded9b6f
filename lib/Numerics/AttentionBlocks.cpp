//===- AttentionBlocks.cpp - Operands of attention with scales of blocks ---===//
#include "AttentionBlocks.h"

#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/UE8M0.h"

#include <bit>

namespace fp4::numerics {

void ScaledOperand::addPacked(std::span<const float> numbers, uint64_t elements) {
  const size_t first = codes_.size();
  codes_.resize(first + elements / 2);
  for (size_t i = 0; i < numbers.size(); ++i)
    codes_[first + i / 2] |= uint8_t(encodeE2M1(numbers[i]) << 4 * (i % 2));
}

void ScaledOperand::addRow(const AttentionBlocks &blocks, std::span<const float> numbers,
                           std::span<const uint8_t> scales, uint64_t place, uint64_t elements) {
  elements = std::max<uint64_t>(elements, numbers.size());
  isPacked_ = blocks.arePacked();
  bytesOfRow_ = isPacked_ ? elements / 2 : elements;
  scalesOfRow_ = elements / blocks.size;
  ++rows_;
  if (isPacked_)
    addPacked(numbers, elements);
  else
    for (uint64_t i = 0; i < elements; ++i)
      codes_.push_back(i < numbers.size() ? encodeE4M3(numbers[i]) : 0);
  const auto from = scales.subspan(place * scalesOfRow_, scalesOfRow_);
  scales_.insert(scales_.end(), from.begin(), from.end());
}

void ScaledOperand::addValues(std::span<const float> numbers, std::span<const uint8_t> scales,
                              uint64_t place, uint64_t first, uint64_t tokens) {
  constexpr uint64_t block = 16;
  isPacked_ = true;
  bytesOfRow_ = numbers.size() / 2;
  scalesOfRow_ = numbers.size() / block;
  ++rows_;
  addPacked(numbers, numbers.size());
  const uint64_t ofRow = (tokens + block - 1) / block;
  for (uint64_t i = first / block; i < first / block + scalesOfRow_; ++i)
    scales_.push_back(i < ofRow ? scales[place * ofRow + i] : 0);
}

ScaledOperand ScaledOperand::ofPowers(std::span<const float> powers) {
  constexpr uint64_t block = 16;
  static const Recipe recipe = *parseRecipe(kPowerRecipe);
  ScaledOperand row;
  row.isPacked_ = true;
  row.rows_ = 1;
  row.bytesOfRow_ = powers.size() / 2;
  row.scalesOfRow_ = powers.size() / block;
  row.codes_.resize(row.bytesOfRow_);
  for (uint64_t i = 0; i < row.scalesOfRow_; ++i) {
    std::array<uint8_t, block> codes;
    row.scales_.push_back(
        quantizeBlock(recipe, GlobalScale(), powers.subspan(i * block, block), codes));
    for (uint64_t j = 0; j < block; ++j)
      row.codes_[(i * block + j) / 2] |= uint8_t(codes[j] << 4 * (j % 2));
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
