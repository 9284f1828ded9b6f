//===- WarpProducts.h - Block-scaled products of mma.sync -----------------===//
#pragma once

#include "Lowering.h"

namespace fp4 {

void populateWarpProductPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                 const KernelState &);

/// Rows of the fragments of all warps (GatherRows.cpp).
void populateGatherPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                            const KernelState &);

} // namespace fp4
