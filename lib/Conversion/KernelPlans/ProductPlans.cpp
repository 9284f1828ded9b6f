//===- ProductPlans.cpp - Plans of matrix products ------------------------===//

#include "CostModel.h"
#include "Families.h"
#include "RolePlans.h"

using namespace mlir;
using namespace fp4;

static LogicalResult requireTensorCore(Operation *op, const hw::TargetModel &target) {
  Status status = hw::requireFeature(target, &hw::TargetModel::hasTcgen05, "tcgen05");
  if (status)
    return success();
  InFlightDiagnostic diag = op->emitOpError(status.error().message);
  diag.attachNote() << status.error().note;
  return diag;
}

static KernelPlan proposeProduct(Operation *op, const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  auto result = cast<RankedTensorType>(product.getResult().getType());
  int64_t rows = lhs.isDynamicDim(0) ? kAssumedRows : lhs.getDimSize(0);
  MatmulSize size{rows, result.getDimSize(1), lhs.getDimSize(1), blockSize(product.getFormat())};
  KernelPlan plan = planOfFamily(KernelFamily::TileProduct);
  plan.tile = {kProductTileM, chooseTileN(size, target), kProductTileK};
  plan.schedule = neighboursAlongM(op->getContext());
  plan.roles = tensorMemoryRoles(op->getContext());
  plan.resident = 1;
  return plan;
}

/// The matrix instruction has 128 rows, and 128 bytes, which are 256 elements, are the widest
/// swizzle. A block needs most of the shared memory and all accumulators of tensor memory.
static LogicalResult checkProduct(Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  auto [m, n, k] = plan.tile;
  if (m != kProductTileM || k != kProductTileK || !llvm::is_contained(kProductTileNs, n))
    return misfit(op, "tile", "is [128, n, 256] with n = 64, 128, 192 or 256",
                  "[" + Twine(m) + ", " + Twine(n) + ", " + Twine(k) + "]");
  if (*plan.resident != 1)
    return misfit(op, "resident", "is 1", Twine(*plan.resident));
  using enum pipe::Engine;
  return checkTiling(op, plan, target, {Tma, Tensor, ScaleCopy, Threads});
}

constexpr FamilyRules fp4::kProductRules = {requireTensorCore, proposeProduct, checkProduct};
