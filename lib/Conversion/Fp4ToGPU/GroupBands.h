//===- GroupBands.h - Groups of rows that only the device knows -----------===//
//
// A streaming kernel whose operation has `offsets` takes the rows of groups in bands of 128, the
// rows of a scale tile. A kernel before it makes the table of the bands, as before a grouped GEMM
// (GroupTiles.h), and checks the offsets. The table has room for any groups, and bands without a
// group are behind the others and have no rows. A row of no group is read only where all groups are
// empty. Band b has row b of scale tiles in the list of all groups.
//
//   GroupBands bands(op, op.getOffsets(), rows, context);    // launches the kernel of the table
//   KernelBuilder kernel(op, "quantize", context);
//   bands.enter(kernel);                                     // an operand of the kernel
//   GroupBands::Band band = bands.find(number);
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"

namespace fp4 {

class GroupBands {
public:
  static constexpr int64_t kRows = 128;

  /// `rows` rows are those of the operand that has groups.
  GroupBands(mlir::Operation *op, mlir::TypedValue<mlir::RankedTensorType> offsets, int64_t rows,
             const LoweringContext &context);

  /// Bands at most, with those that have no rows.
  int64_t count() const { return bands; }

  void enter(KernelBuilder &kernel);

  struct Band {
    Int32 group, firstRow;
    Int32 endRow; ///< end of the group: the band may end before. Without a group: firstRow
  };
  /// Band number `number`, in the kernel that was entered.
  Band find(Int32 number) const;

private:
  int64_t rows, bands;
  mlir::RankedTensorType type; ///< type of the table
  mlir::Value buffer;
  mlir::Value table; ///< the table in the kernel
};

/// Zeroes `buffer` of a result before the kernel, so that rows of no group stay zero.
void clearRowsOfNoGroup(KernelBuilder &kernel, mlir::Value buffer);

} // namespace fp4
