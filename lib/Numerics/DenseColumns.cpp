//===- DenseColumns.cpp - The operands of a dense GEMM, decoded -----------===//
#include "FactorDecoder.h"
#include "fp4/Numerics/DenseRow.h"

#include <algorithm>

namespace fp4::numerics {

//===--- A ---------------------------------------------------------------===//

DenseRows::DenseRows(hw::MmaType type, std::span<const uint8_t> bytes, bool unpacked, bool negate,
                     unsigned bytesPerRow)
    : k(bytesPerRow / 32 * factorsPerRow(type)) {
  constexpr unsigned partBytes = 32;
  const unsigned perPart = factorsPerRow(type);
  std::vector<uint32_t> codes(bytes.size() / bytesPerRow * k);
  for (size_t part = 0; part * partBytes < bytes.size(); ++part)
    loadCodes(type, &bytes[part * partBytes], unpacked, &codes[part * perPart], 1);
  significands.resize(codes.size());
  exponents.resize(codes.size());
  const bool any =
      decodeCodes(type, codes.data(), codes.size(), negate, significands.data(), exponents.data());
  widen();
  if (!any)
    return;
  kinds.resize(codes.size());
  special.resize(size());
  for (size_t i = 0; i < codes.size(); ++i)
    if ((kinds[i] = kindOf(type, codes[i])) != Factor::Finite)
      special[i / k] = true;
}

DenseRows::DenseRows(std::span<const FactorRow> rows, unsigned k) : k(k) {
  const unsigned parts = (k + maxDenseK - 1) / maxDenseK;
  const size_t count = rows.size() / parts;
  significands.resize(count * k);
  exponents.resize(count * k);
  for (size_t i = 0; i < significands.size(); ++i) {
    const Factor &f = rows[i / k * parts + i % k / maxDenseK][i % k % maxDenseK];
    significands[i] = f.significand;
    exponents[i] = f.significand ? f.exponent : absentExponent;
    if (f.kind == Factor::Finite)
      continue;
    kinds.resize(significands.size());
    special.resize(count);
    kinds[i] = f.kind;
    special[i / k] = true;
  }
  widen();
}

void DenseRows::scaleBlocks(std::span<const int32_t> scales) {
  isScaled = true;
  const unsigned blocks = k / maxDenseK;
  for (size_t i = 0; i < exponents.size(); ++i)
    exponents[i] += scales[i / k * blocks + i % k / maxDenseK];
}

uint64_t DenseRows::nonZero(unsigned row) const {
  uint64_t bits = 0;
  for (unsigned i = 0; i < k; ++i)
    bits |= uint64_t(significands[row * k + i] != 0) << i;
  return bits;
}

static Factor factorAt(size_t at, const std::vector<int32_t> &significands,
                       const std::vector<int32_t> &exponents, const std::vector<uint8_t> &kinds) {
  return {significands[at], int16_t(exponents[at]),
          kinds.empty() ? Factor::Finite : Factor::Class(kinds[at])};
}

Factor DenseRows::factor(unsigned row, unsigned i) const {
  return factorAt(size_t(row) * k + i, significands, exponents, kinds);
}

//===--- B ---------------------------------------------------------------===//

void DenseColumns::scaleBlocks(std::span<const int32_t> scales) {
  isScaled = true;
  const unsigned blocks = k / maxDenseK;
  for (unsigned j = 0; j < count; ++j)
    for (unsigned i = 0; i < k; ++i)
      exponents[place(j, i)] += scales[j * blocks + i / maxDenseK];
}

Factor DenseColumns::factor(unsigned column, unsigned i) const {
  return factorAt(place(column, i), significands, exponents, kinds);
}

/// Columns behind the last one, which fill a group of eight, are of zeros.
void DenseColumns::allocate(unsigned columns, unsigned depth) {
  k = depth;
  count = columns;
  const size_t size = size_t((columns + lanes - 1) / lanes) * lanes * depth;
  significands.resize(size);
  exponents.resize(size);
}

DenseColumns::DenseColumns(const std::vector<FactorRow> &columns, unsigned depth) {
  const unsigned parts = (depth + maxDenseK - 1) / maxDenseK;
  allocate(unsigned(columns.size()) / parts, depth);
  std::fill(exponents.begin(), exponents.end(), absentExponent);
  for (unsigned j = 0; j < count; ++j)
    for (unsigned i = 0; i < k; ++i) {
      const Factor &f = columns[j * parts + i / maxDenseK][i % maxDenseK];
      const size_t at = place(j, i);
      significands[at] = f.significand;
      exponents[at] = f.significand ? f.exponent : absentExponent;
      if (f.kind == Factor::Finite)
        continue;
      kinds.resize(significands.size());
      special.resize(count);
      kinds[at] = f.kind;
      special[j] = true;
    }
  widen();
}

DenseColumns::DenseColumns(hw::MmaType type, std::span<const uint8_t> bytes,
                           unsigned bytesPerColumn, bool unpacked, bool negate) {
  constexpr unsigned rowBytes = 32, mostParts = 2;
  const unsigned parts = bytesPerColumn / rowBytes, perPart = factorsPerRow(type);
  allocate(unsigned(bytes.size() / bytesPerColumn), parts * perPart);
  for (unsigned first = 0; first < count; first += lanes) {
    alignas(32) uint32_t codes[mostParts * maxDenseK * lanes] = {};
    const unsigned columns = std::min(lanes, count - first);
    for (unsigned i = 0; i < columns * parts; ++i)
      loadCodes(type, &bytes[(size_t(first) * parts + i) * rowBytes], unpacked,
                &codes[i % parts * perPart * lanes + i / parts], lanes);
    const size_t at = place(first, 0), size = size_t(k) * lanes;
    if (!decodeCodes(type, codes, size, negate, &significands[at], &exponents[at]))
      continue;
    kinds.resize(significands.size());
    special.resize(count);
    for (size_t i = 0; i < size; ++i)
      if ((kinds[at + i] = kindOf(type, codes[i])) != Factor::Finite)
        special[first + i % lanes] = true;
  }
  widen();
}

} // namespace fp4::numerics
