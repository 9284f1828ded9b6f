//===- RowAmax.h - Amaxes of what a row kernel computes -------------------===//
#pragma once

#include "Lowering.h"
#include "Rows/RowElements.h"
#include "Scalars.h"

namespace fp4 {

/// The amaxes (f32) of all elements of `matrix` in each row of this thread. All threads of the CTA
/// are here, outside of loops.
llvm::SmallVector<mlir::Value> emitAmaxesOfRows(RowElements &row, Scalars &scalars,
                                                mlir::Value matrix, NanPolicy nan);

/// Makes a row kernel of an fp4.amax of the whole matrix, or of each row. CTAs raise the amax of a
/// matrix in memory, which the host sets to zero before: no CTA waits for another one.
void lowerRowAmax(AmaxOp op, LoweringContext &context);

} // namespace fp4
