//===- ProductPlans.cpp - Plans of matrix products ------------------------===//

#include "CostModel.h"
#include "Families.h"
#include "RolePlans.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

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

static KernelPlan proposeProduct(Operation *op, const KernelPlan &wish,
                                 const hw::TargetModel &target) {
  auto product = cast<BlockScaledMatmulOp>(op);
  auto lhs = cast<RankedTensorType>(product.getLhs().getType());
  auto result = cast<RankedTensorType>(product.getResult().getType());
  int64_t rows = lhs.isDynamicDim(0) ? kAssumedRows : lhs.getDimSize(0);
  MatmulSize size{rows, result.getDimSize(1), lhs.getDimSize(1), blockSize(product.getFormat())};
  KernelPlan plan = planOfFamily(KernelFamily::TileProduct);
  plan.tile = {kProductTileM, chooseTileN(size, target), kProductTileK};
  if (wish.pair) {
    plan.tile = {2 * kProductTileM, 2 * kProductTileM, kProductTileK};
    plan.cluster = {2, 1};
  } else if (wish.cluster[0]) { // an accumulator and the next one fit
    plan.tile[1] = kProductTileM;
  }
  plan.schedule = neighboursAlongM(op->getContext());
  plan.roles = tensorMemoryRoles(op->getContext());
  plan.resident = 1;
  return plan;
}

static std::string spell(const std::array<int64_t, 3> &sizes) {
  auto said = llvm::make_filter_range(sizes, [](int64_t size) { return size != 0; });
  return "[" +
         llvm::join(llvm::map_range(said, [](int64_t n) { return std::to_string(n); }), ", ") + "]";
}

/// The matrix instruction has 128 rows in a block, and 128 bytes, which are 256 elements, are the
/// widest swizzle. Blocks of a cluster load whole blocks of 128 rows of scales.
static LogicalResult checkTile(Operation *op, const KernelPlan &plan) {
  auto [m, n, k] = plan.tile;
  bool inCluster = plan.cluster[0] != 0;
  int64_t rows = plan.pair ? 2 * kProductTileM : kProductTileM;
  if (m == rows && k == kProductTileK && llvm::is_contained(kProductTileNs, n) &&
      (!inCluster || n % kProductTileM == 0))
    return success();
  return misfit(op, "tile",
                "is [" + Twine(rows) +
                    ", n, 256] with n = " + (inCluster ? "128 or 256" : "64, 128, 192 or 256"),
                spell(plan.tile));
}

static LogicalResult checkCluster(Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  auto [m, n, none] = plan.cluster;
  if (plan.pair && m != 2)
    return misfit(op, "cluster", "has 2 blocks along m, which are the pair", spell(plan.cluster));
  if (m == 0)
    return success();
  int64_t most = target.maxClusterSize;
  if (!llvm::isPowerOf2_64(m) || !llvm::isPowerOf2_64(n) || m > most || n > most / m)
    return misfit(op, "cluster",
                  "has powers of two, of at most " + Twine(most) + " blocks on " +
                      StringRef(target.name),
                  spell(plan.cluster));
  return success();
}

/// A block needs most of the shared memory and all accumulators of tensor memory.
static LogicalResult checkProduct(Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  using enum pipe::Engine;
  if (failed(checkTile(op, plan)) || failed(checkCluster(op, plan, target)))
    return failure();
  if (*plan.resident != 1)
    return misfit(op, "resident", "is 1", Twine(*plan.resident));
  return checkTiling(op, plan, target, {Tma, Tensor, ScaleCopy, Threads});
}

constexpr FamilyRules fp4::kProductRules = {requireTensorCore, proposeProduct, checkProduct};
