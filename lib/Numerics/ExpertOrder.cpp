// Tokens in the order of their experts, by a list for each expert.
#include "fp4/Numerics/ExpertOrder.h"

namespace fp4::numerics {

ExpertOrder expertOrder(std::span<const int32_t> ids, uint64_t perToken, const Experts &experts) {
  std::vector<std::vector<uint64_t>> members(experts.count);
  for (uint64_t i = 0; i < ids.size(); ++i) {
    const int64_t expert = int64_t(ids[i]) - int64_t(experts.first);
    if (expert >= 0 && expert < int64_t(experts.count))
      members[uint64_t(expert)].push_back(i);
  }
  ExpertOrder order;
  order.rows.assign(ids.size(), -1);
  order.tokens.assign(ids.size() + experts.count * (experts.multiple - 1), 0);
  uint64_t row = 0;
  for (const std::vector<uint64_t> &ofExpert : members) {
    order.offsets.push_back(int64_t(row));
    for (uint64_t j = 0; j < ofExpert.size(); ++j) {
      order.rows[ofExpert[j]] = int64_t(row + j);
      order.tokens[row + j] = int64_t(ofExpert[j] / perToken);
    }
    row += (ofExpert.size() + experts.multiple - 1) / experts.multiple * experts.multiple;
  }
  order.offsets.push_back(int64_t(row));
  return order;
}

} // namespace fp4::numerics
