//===- ExpertOrder.h - Tokens in the order of their experts ---------------===//
//
// The reference of fp4.expert_order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fp4::numerics {

/// The most ids that a kernel orders: one cluster of CTAs has them all.
inline constexpr int64_t mostOrderedIds = 1 << 20;

/// The experts that have rows: ids from `first` on.
struct Experts {
  uint64_t count = 1, first = 0;
  uint64_t multiple = 1; ///< alignment of each expert's first row, in rows
};

struct ExpertOrder {
  std::vector<int64_t> offsets; ///< first rows of experts, and the end of the last
  std::vector<int64_t> rows;    ///< row of each id; -1 for an id that names no expert
  std::vector<int64_t> tokens;  ///< token of each row; 0 for a row without an id
};

/// Orders `ids`, of which each token has `perToken`, one after the other.
ExpertOrder expertOrder(std::span<const int32_t> ids, uint64_t perToken, const Experts &experts);

} // namespace fp4::numerics
