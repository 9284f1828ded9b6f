//===- LanePromotion.h - Sums of TMEM lanes, promoted to fp32 -------------===//
#pragma once

#include "Lowering.h"

namespace fp4 {

void populateLanePromotionPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                   const KernelState &);

/// Weights that become 16-bit floats in tensor memory (WeightLanes.cpp).
void populateWeightLanePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                const KernelState &);

} // namespace fp4
