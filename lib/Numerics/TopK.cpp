// The k best of a row of scores, by sorting.
#include "fp4/Numerics/TopK.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fp4::numerics {
namespace {

bool isBetter(float x, float y) {
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) && !std::isnan(y);
  return x > y;
}

/// The numbers of all scores, the best first.
std::vector<int32_t> order(std::span<const float> scores) {
  std::vector<int32_t> numbers(scores.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::sort(numbers, [&](int32_t x, int32_t y) {
    const float first = scores[size_t(x)], second = scores[size_t(y)];
    return isBetter(first, second) || (!isBetter(second, first) && x < y);
  });
  return numbers;
}

/// The scores of groups: the sums of the two best of each.
std::vector<float> groupScores(std::span<const float> scores, size_t groups) {
  const size_t size = scores.size() / groups;
  std::vector<float> sums;
  for (size_t group = 0; group < groups; ++group) {
    const auto members = scores.subspan(group * size, size);
    const std::vector<int32_t> best = order(members);
    sums.push_back(members[size_t(best[0])] + members[size_t(best[1])]);
  }
  return sums;
}

} // namespace

std::vector<int32_t> topK(std::span<const float> scores, const TopK &what) {
  std::vector<int32_t> columns = order(scores);
  if (what.numGroups > 1) {
    std::vector<bool> isChosen(what.numGroups);
    const std::vector<int32_t> groups = order(groupScores(scores, what.numGroups));
    for (size_t i = 0; i < what.topGroups; ++i)
      isChosen[size_t(groups[i])] = true;
    const size_t size = scores.size() / what.numGroups;
    std::erase_if(columns, [&](int32_t column) { return !isChosen[size_t(column) / size]; });
  }
  columns.resize(what.k);
  return columns;
}

} // namespace fp4::numerics
