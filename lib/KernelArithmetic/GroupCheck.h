//===- GroupCheck.h - Checks of groups on the device ----------------------===//
//
// Checks of the rows of groups that only the device has. A kernel that reads them anyway leaves its
// findings in memory that the host reads (fp4rt_group_report).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// Numbers of 64 bits in a report, those of support::GroupReport.
inline constexpr int64_t kGroupReportWords = 8;

/// Place of the rows of `groups` groups: `step` numbers of `bytes` bytes belong to each, 1 or 2
/// (docs/reference/semantics.md). None exceeds `limit`, an i64. The first number of packed
/// sequences is 0.
struct GroupOffsets {
  mlir::Value pointer;
  int64_t groups, step;
  mlir::Value limit;
  int64_t bytes = 8;
  bool arePacked = false;
};

/// Reads the number at `place`, as an i64.
mlir::Value readOffset(mlir::ImplicitLocOpBuilder &b, const GroupOffsets &offsets,
                       mlir::Value place);

/// Numbers of a group as they are in memory, i64.
struct GroupNumbers {
  mlir::Value begin, end;
};

/// Returns (i1) true where group `number` (i32) does not fit behind groups that end at `before`
/// (i64).
mlir::Value isWrongGroup(mlir::ImplicitLocOpBuilder &b, const GroupOffsets &offsets,
                         mlir::Value number, const GroupNumbers &group, mlir::Value before);
/// Writes a wrong group to `report`, unless a report is there already.
void claimReport(mlir::ImplicitLocOpBuilder &b, const GroupOffsets &offsets, mlir::Value report,
                 mlir::Value number, const GroupNumbers &group, mlir::Value before);

/// One thread finds the first group that does not fit and writes it to `report`, unless a report is
/// there already.
void emitGroupCheck(mlir::ImplicitLocOpBuilder &b, const GroupOffsets &offsets, mlir::Value report);

} // namespace fp4
