//===- TransformPlans.cpp - Plans of transforms on the tensor core --------===//

#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;

static InFlightDiagnostic noKernel(QuantizeOp op, const Twine &what, const Twine &found) {
  return withNote(op.emitOpError() << "with a transform on the tensor core must have " << what
                                   << ", but got " << found,
                  "give the transform 'arithmetic = butterfly'");
}

/// Checks the requirements of every kernel that transforms columns on the tensor core.
static LogicalResult requireBlocks(QuantizeOp op) {
  if (op.getFormat() != Format::NVFP4)
    return noKernel(op, "format nvfp4", stringifyFormat(op.getFormat()));
  if (op.hasSquareBlocks())
    return noKernel(op, "blocks of one row", "block [16, 16]");
  if (int64_t size = op.getColumnwiseHadamard()->getSize(); size != kTransformSize)
    return noKernel(op, "size 16", Twine(size));
  return success();
}

LogicalResult fp4::requireWarpTransform(QuantizeOp op) {
  if (op.getHadamard())
    return noKernel(op, "no transform of rows", "'hadamard'");
  return requireBlocks(op);
}

static LogicalResult requireForm(QuantizeOp op) {
  if (op.getOutputs() != Outputs::Columnwise)
    return noKernel(op, "outputs columnwise", stringifyOutputs(op.getOutputs()));
  if (failed(requireBlocks(op)))
    return failure();
  if (op.isGrouped())
    return noKernel(op, "one matrix", "groups");
  if (op.getPerRow())
    return noKernel(op, "one amax", "per_row");
  auto type = cast<RankedTensorType>(op.getInput().getType());
  // A tensor map steps by a row of X.
  if (int64_t columns = type.getDimSize(1);
      ShapedType::isDynamic(columns) || columns % 8 || columns == 0)
    return noKernel(op, "columns of the input a static, positive multiple of 8",
                    ShapedType::isDynamic(columns) ? Twine("?") : Twine(columns));
  if (int64_t rows = type.getDimSize(0); ShapedType::isDynamic(rows) || rows == 0)
    return noKernel(op, "a static, positive number of rows", rows ? Twine("?") : Twine(0));
  return success();
}

static LogicalResult requireTransform(Operation *op, const KernelPlan &,
                                      const hw::TargetModel &target) {
  Status status = route::requireCore(target, route::Core::Tcgen05);
  if (status)
    return requireForm(cast<QuantizeOp>(op));
  return withNote(report(op, status.error()), "or give the transform 'arithmetic = butterfly'");
}

/// Chooses the tiles of a strip so that the busiest of `blocks` resident CTAs has the least to do;
/// of equals, the most tiles, since a strip writes its rows of Q front to back.
static int64_t chooseStripTiles(int64_t tilesM, int64_t tilesK, int64_t blocks) {
  // The cost of a strip: beginning it costs about a tile.
  auto cost = [&](int64_t tiles) {
    int64_t strips = tilesK * int64_t(llvm::divideCeil(tilesM, tiles));
    return int64_t(llvm::divideCeil(strips, blocks)) * (tiles + 1);
  };
  int64_t best = 1;
  for (int64_t tiles = 2; tiles <= std::min<int64_t>(tilesM, 64); ++tiles)
    if (cost(tiles) <= cost(best))
      best = tiles;
  return best;
}

static KernelPlan proposeTransform(Operation *op, const KernelPlan &,
                                   const hw::TargetModel &target) {
  auto input = cast<RankedTensorType>(cast<QuantizeOp>(op).getInput().getType());
  KernelPlan plan = planOfFamily(KernelFamily::TileTransform);
  plan.tile = {kTransformTileM, kTransformTileK};
  // Quantizing takes longer than four warps can hide, and eight do.
  plan.ctasPerSm = 2;
  plan.strip = chooseStripTiles(llvm::divideCeil(input.getDimSize(0), kTransformTileM),
                                llvm::divideCeil(input.getDimSize(1), kTransformTileK),
                                *plan.ctasPerSm * target.sms);
  plan.schedule = neighboursAlongM(op->getContext());
  plan.roles = tensorMemoryRoles(op->getContext());
  return plan;
}

/// ptxas refuses to compile tcgen05.ld of 64 columns into fewer registers of a thread.
static constexpr int64_t kTransformRegisters = 82;

static LogicalResult checkTransform(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  if (plan.tile[0] != kTransformTileM || plan.tile[1] != kTransformTileK)
    return misfitTile(op, plan, "is [64, 128]");
  using enum pipe::Engine;
  auto input = cast<RankedTensorType>(cast<QuantizeOp>(op).getInput().getType());
  int64_t tiles = llvm::divideCeil(input.getDimSize(0), kTransformTileM);
  if (failed(checkAtMost(op, "strip", *plan.strip, tiles)))
    return failure();
  if (failed(checkTiling(op, plan, target, {Tma, Tensor, Threads})))
    return failure();
  int64_t threads = cast<pipe::RolePlanAttr>(plan.roles).getNumThreads();
  int64_t most = target.limits.registersPerSM / (threads * llvm::alignTo(kTransformRegisters, 8));
  if (*plan.ctasPerSm > most)
    return misfit(op, "ctas_per_sm",
                  "is at most " + Twine(most) + " for " + Twine(threads) + " threads of " +
                      Twine(kTransformRegisters) + " registers",
                  Twine(*plan.ctasPerSm));
  return success();
}

constexpr FamilyRules fp4::kTransformRules = {KernelFamily::TileTransform, requireTransform,
                                              proposeTransform, checkTransform};
