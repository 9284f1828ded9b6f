//===- AttentionKeys.h - Keys that a query of an attention sees ------------===//
#pragma once

#include "fp4/Numerics/Attention.h"

#include <algorithm>

namespace fp4::numerics {

/// Usage error where operands have not the sizes of `shape`, in elements.
Status checkAttention(const AttentionShape &shape, size_t query, size_t key, size_t value);

/// The keys of a sequence, and those of them that one head of a token sees: `count` from `first`
/// on.
class SeenKeys {
public:
  SeenKeys() = default;
  SeenKeys(const AttentionShape &shape, uint64_t token, uint64_t head)
      : group(head / (shape.heads / shape.keyHeads)), shape(&shape) {
    findSequence(token);
    const int64_t end = shape.causal ? std::clamp<int64_t>(place + 1, 0, keys) : keys;
    const int64_t seen = shape.window ? std::min(end, int64_t(shape.window)) : end;
    first = uint64_t(end - seen);
    count = uint64_t(seen);
  }

  /// The elements of key `j` of the sequence in `rows`, which have `elements` each; null where its
  /// page does not exist.
  const float *elementsOf(std::span<const float> rows, uint64_t j, uint64_t elements) const {
    if (shape->pages.empty())
      return rows.data() + ((firstKey + j) * shape->keyHeads + group) * elements;
    const uint64_t pagesOfSequence = shape->keyTokens / shape->pages.tokens;
    const int32_t page = shape->pages.numbers[batch * pagesOfSequence + j / shape->pages.tokens];
    const uint64_t rowsOfPage = shape->pages.tokens * shape->keyHeads;
    if (page < 0 || uint64_t(page) >= rows.size() / (rowsOfPage * elements))
      return nullptr;
    const uint64_t token = j % shape->pages.tokens;
    const uint64_t row = shape->pages.headsFirst ? group * shape->pages.tokens + token
                                                 : token * shape->keyHeads + group;
    return rows.data() + (uint64_t(page) * rowsOfPage + row) * elements;
  }

  uint64_t batch = 0, group = 0; ///< sequence, and head of keys
  int64_t keys = 0, place = 0;   ///< keys of the sequence, and the key at the place of the query
  uint64_t first = 0, count = 0; ///< keys that the query sees

private:
  /// Finds the sequence of a token, of all. Queries behind all packed sequences have no keys.
  void findSequence(uint64_t token) {
    batch = token / shape->queryTokens;
    int64_t left = int64_t(shape->queryTokens) - int64_t(token % shape->queryTokens);
    if (shape->isPacked()) {
      const auto next = std::ranges::upper_bound(shape->queryOffsets, int64_t(token));
      if (next == shape->queryOffsets.end()) {
        keys = 0;
        return;
      }
      batch = uint64_t(next - shape->queryOffsets.begin()) - 1;
      left = *next - int64_t(token);
    }
    const auto all = int64_t(shape->keyTokens);
    firstKey = batch * shape->keyTokens;
    keys = shape->lengths.empty() ? all : std::clamp<int64_t>(shape->lengths[batch], 0, all);
    if (!shape->keyOffsets.empty()) {
      firstKey = uint64_t(shape->keyOffsets[batch]);
      keys = shape->keyOffsets[batch + 1] - shape->keyOffsets[batch];
    }
    place = keys - left;
  }

  const AttentionShape *shape = nullptr;
  uint64_t firstKey = 0; ///< first key of the sequence, among the keys of all
};

} // namespace fp4::numerics
