//===- GemvPlans.cpp - Plans of GEMVs -------------------------------------===//
//
// A warp multiplies all rows of the lhs with four rows of the rhs, or of both rhs. Warps are
// independent, so the threads of a CTA only decide how CTAs share an SM.
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"

#include "fp4/Dialect/Fp4/IR/Signature.h"

using namespace mlir;
using namespace fp4;

/// Proposes a plan. Sixteen warps have the registers for two chunks each, so that ptxas leaves the
/// loads where they are; more rows have more sums. On an H200 CTAs of 64 threads are as fast as
/// those of 128 for one to four rows (notebook/gemm-fp4.md). A B200 is predicted to lose less in
/// the last wave, and least with one warp to a CTA if one row is multiplied
/// (notebook/blackwell.md). Four rows of a dual GEMM need a few registers more than eight CTAs
/// leave.
static KernelPlan proposeGemv(Operation *op, const KernelPlan &partial,
                              const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  int64_t rows =
      cast<RankedTensorType>(product.getLhs().getType()).getDimSize(0) / product.getNumGroups();
  KernelPlan plan = planOfFamily(KernelFamily::Gemv);
  bool isVector = rows == 1 && target.features.hasFp4Convert;
  plan.route = route::findRoute(signatureOf(product), target)->route;
  plan.threads = partial.threads.value_or(isVector ? 32 : 64);
  plan.ctasPerSm = std::clamp<int64_t>(mostCtasPerSm(*plan.threads, target), 1,
                                       rows > 4                        ? 6
                                       : isVector                      ? 16
                                       : rows == 4 && product.isDual() ? 7
                                                                       : 8);
  return plan;
}

static LogicalResult checkGemv(Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  return checkThreads(op, *plan.threads, plan.ctasPerSm.value_or(1), target);
}

constexpr FamilyRules fp4::kGemvRules = {KernelFamily::Gemv, requireGemmRoute, proposeGemv,
                                         checkGemv};
