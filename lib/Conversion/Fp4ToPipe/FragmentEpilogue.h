//===- FragmentEpilogue.h - Products whose sums are in registers ----------===//
#pragma once

#include "ProductBuilder.h"

namespace fp4 {

class FragmentEpilogue : protected ProductBuilder {
protected:
  using ProductBuilder::ProductBuilder;

  /// 64 rows of one warpgroup, of the columns of a tile.
  pipe::FragmentType fragment();
  /// Converts the sums of the role's warpgroups, times 2^exponent, and stores them from (row, column)
  /// of the result on.
  void storeSums(mlir::Value acc, mlir::Value row, mlir::Value column, int exponent);
};

} // namespace fp4
