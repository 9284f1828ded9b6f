//===- FragmentEpilogue.h - Products whose sums are in registers ----------===//
#pragma once

#include "ProductBuilder.h"

namespace fp4 {

class FragmentEpilogue : protected ProductBuilder {
protected:
  using ProductBuilder::ProductBuilder;

  /// The tiles along m, of the rows that the kernel is given where they are dynamic.
  mlir::Value countTilesM();
  /// A box of `map` from (row, column) on.
  mlir::Value load(mlir::Value map, mlir::Value row, mlir::Value column);
  /// 64 rows of one warpgroup, of the columns of a tile.
  pipe::FragmentType fragment();
  /// Converts the sums of the role's warpgroups, times 2^exponent, and stores them from (row, column)
  /// of the result on.
  void storeSums(mlir::Value acc, mlir::Value row, mlir::Value column, int exponent);
};

} // namespace fp4
