//===- GroupRows.cpp - Rows of groups that only the device has ------------===//

#include "fp4/Support/GroupRows.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4 {

std::optional<GroupReport> findWrongGroup(std::span<const int64_t> offsets, size_t step,
                                          int64_t limit) {
  int64_t before = 0;
  for (size_t i = 0; i + 1 < offsets.size(); i += step) {
    const int64_t begin = offsets[i], end = offsets[i + 1];
    const bool overlaps = step == 2 && begin < before && begin != end;
    if (begin < 0 || end < begin || end > limit || overlaps)
      return GroupReport{GroupReport::kWritten, int64_t(i / step), begin, end, before, limit};
    before = std::max(before, end);
  }
  return std::nullopt;
}

static std::string wrongRows(const GroupReport &report) {
  if (report.begin < 0)
    return fmt::format("must not be negative, but group {} begins at row {}", report.group,
                       report.begin);
  if (report.end < report.begin)
    return fmt::format("must not decrease, but group {} begins at row {} and ends at row {}",
                       report.group, report.begin, report.end);
  if (report.end > report.limit)
    return fmt::format("must not exceed the {} rows of the matrix, but group {} begins at row {} and ends "
                       "at row {}",
                       report.limit, report.group, report.begin, report.end);
  if (report.group == 0)
    return fmt::format("must begin with 0, but group 0 begins at row {}", report.begin);
  return fmt::format("must be of groups that have no row in common, but group {} begins at row {} "
                     "and ends at row {}, and the groups before it end at row {}",
                     report.group, report.begin, report.end, report.before);
}

Error groupError(const std::string &what, const GroupReport &report) {
  return {ErrorKind::Usage, what + " " + wrongRows(report),
          "no row outside of the matrix was read and none of the result was written twice, but the result "
          "is not that of these groups: mend the offsets and call again"};
}

} // namespace fp4
