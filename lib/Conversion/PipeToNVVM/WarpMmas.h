//===- WarpMmas.h - Block-scaled GEMMs of mma.sync --------------------===//
#pragma once

#include "Lowering.h"

namespace fp4 {

void populateWarpMmaPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);

/// Rows of the fragments of all warps (GatherRows.cpp).
void populateGatherPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                            const KernelState &);

/// Lets the lanes of a warp meet again behind the last store of a segment that pipe.gather_rows has
/// given, because aligned instructions follow. Lanes whose rows or columns do not exist store
/// nothing.
void meetBehindSegments(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4
