//===- TopK.h - The k best of a row of scores -----------------------------===//
//
// The reference of fp4.top_k. The smaller column is the better one of equal scores, -0 equals 0,
// and NaN is better than every number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp4::numerics {

/// The numbers of results and of groups.
struct TopK {
  size_t k = 1;
  size_t numGroups = 1; ///< groups of consecutive columns, all of one size
  size_t topGroups = 1; ///< groups that are chosen, by the f32 sum of their two best scores
};

/// The columns of the `k` best scores, the best first. There are as many in the groups that are
/// chosen, and a group has two columns where there are several.
std::vector<int32_t> topK(std::span<const float> scores, const TopK &what);

} // namespace fp4::numerics
