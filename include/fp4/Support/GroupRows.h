//===- GroupRows.h - Rows of groups that only the device has --------------===//
//
// The offsets of a grouped matmul are numbers on the device (docs/reference/semantics.md). The kernels check them
// and leave a report; the reference on the host checks the same numbers. The kernels and the
// reference report a fault in the same words.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstdint>
#include <optional>
#include <span>

namespace fp4 {

/// Fault of a group, as a kernel writes it: numbers of 64 bits.
struct GroupReport {
  /// Values of `state`: a kernel takes the place, writes the other numbers, and says so.
  static constexpr int64_t kNone = 0, kClaimed = 1, kWritten = 2;

  int64_t state = kNone;
  int64_t group = 0;
  int64_t begin = 0, end = 0; ///< rows of the group
  int64_t before = 0;         ///< the end of the groups before it
  int64_t limit = 0;          ///< the rows that there are
  int64_t reserved[2] = {};
};

/// The first group whose rows are not in 0 to `limit`, decrease, or are among those of a group
/// before it. `step` of the offsets belong to a group: 1, or 2 where each has a begin and an end. A
/// range without rows may be anywhere.
std::optional<GroupReport> findWrongGroup(std::span<const int64_t> offsets, size_t step,
                                          int64_t limit);

/// The error of a report; `what` is the operand, "operand 'offsets'".
Error groupError(const std::string &what, const GroupReport &report);

} // namespace fp4
