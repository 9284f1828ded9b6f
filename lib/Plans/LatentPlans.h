//===- LatentPlans.h - Plans of attention whose values are columns of keys -===//
#pragma once

#include "Families.h"

namespace fp4 {

/// The rules of an fp4.attention with 'latent' in family tile_attention (Families.h).
llvm::LogicalResult requireLatent(AttentionOp op, const hw::TargetModel &target);
KernelPlan proposeLatent(AttentionOp op, const KernelPlan &partial, const hw::TargetModel &target);
llvm::LogicalResult checkLatent(AttentionOp op, const KernelPlan &plan,
                                const hw::TargetModel &target);

} // namespace fp4
