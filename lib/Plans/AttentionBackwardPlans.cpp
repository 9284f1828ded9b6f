//===- AttentionBackwardPlans.cpp - Plans of gradients of attention -------===//
//
// One plan has all kernels: tiles of queries pass over blocks of keys, and tiles of keys over
// blocks of queries.
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Schedules.h"

using namespace mlir;
using namespace fp4;

/// Rows of a warpgroup, elements of K of an instruction, elements in a swizzled row, and rows of a
/// block at most, and elements of a head.
static constexpr int64_t kGroupRows = 64, kInstructionK = 16, kPanel = 64, kMostBlock = 128,
                         kMostElements = 256;

static LogicalResult requireHead(AttentionBackwardOp op, StringRef name, int64_t elements) {
  if (elements % (kPanel / 2) == 0 && elements <= kMostElements)
    return success();
  return withNote(op.emitOpError()
                      << "has kernels for heads of multiples of 32 up to 256 elements, "
                         "but operand '"
                      << name << "' has " << elements,
                  "append zeros to the heads, or compute these gradients otherwise");
}

static LogicalResult requireBackward(Operation *op, const KernelPlan &,
                                     const hw::TargetModel &target) {
  if (!route::hasCore(target, route::Core::Wgmma))
    return withNote(op->emitOpError()
                        << "has kernels with wgmma, but target " << target.name << " has none",
                    "compute the gradients on sm_90a, or from a softmax of torch");
  auto backward = cast<AttentionBackwardOp>(op);
  return failure(failed(requireHead(backward, "query", backward.getElements())) ||
                 failed(requireHead(backward, "value", backward.getValueElements())));
}

/// Rows of a block at most: two stages of 48 of heads of 256 elements fit beside a tile in shared
/// memory, and sums of heads of keys and values of 192 and 128 leave registers for products of 32.
static int64_t mostOfBlock(AttentionBackwardOp op) {
  int64_t all = op.getElements() + op.getValueElements();
  return all <= 256 ? kMostBlock : all <= 320 ? 32 : all <= 384 ? kPanel : 48;
}

/// Returns true for scores that are tangents and have masks: both take registers beside sums of
/// more than two heads of 64 elements, which spill in blocks of more than 48 queries, or 96 keys.
static bool isTight(AttentionBackwardOp op) {
  return op.getSoftcap() && op.getCausal() && op.getElements() + op.getValueElements() > 2 * kPanel;
}

/// Queries of a block. Registers of two warpgroups have room for the sums of two heads of 128
/// elements and two products of 64 queries. Beside heads of 64, blocks of 112 are 5 to 11 % faster
/// on an H200 than those of 64, and with masks, which take registers, blocks of 80 up to 2 %.
static int64_t queriesOfBlock(AttentionBackwardOp op, int32_t groups) {
  bool areSmall = op.getElements() == kPanel && op.getValueElements() == kPanel;
  if (!areSmall || groups == 3)
    return std::min<int64_t>(isTight(op) ? 48 : kPanel, mostOfBlock(op));
  return op.getCausal() ? 80 : 112;
}

/// Keys of a block, beside the sum of a head of queries.
static int64_t keysOfBlock(AttentionBackwardOp op, int32_t groups) {
  bool areSmall = op.getElements() <= 2 * kPanel && op.getValueElements() <= 2 * kPanel;
  int64_t keys = groups < 3 && areSmall ? kMostBlock : kPanel;
  return std::min<int64_t>(isTight(op) ? std::min<int64_t>(keys, 96) : keys, mostOfBlock(op));
}

/// Two warpgroups, whose registers have room for the sum of a head of 128 elements and two products
/// of 128 keys.
static KernelPlan proposeBackward(Operation *op, const KernelPlan &partial,
                                  const hw::TargetModel &) {
  MLIRContext *context = op->getContext();
  int32_t groups =
      partial.tile[0] ? std::clamp(int32_t(partial.tile[0] / kGroupRows), 1, 3) : int32_t(2);
  constexpr RegisterShares shares[] = {RegisterShares(), kFewBeside, {160, 24}};
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  plan.tile = {groups * kGroupRows, queriesOfBlock(cast<AttentionBackwardOp>(op), groups),
               keysOfBlock(cast<AttentionBackwardOp>(op), groups)};
  plan.ctasPerSm = 1;
  plan.roles = fragmentRoles(context, groups, shares[groups - 1]);
  plan.pipeline.stages = 2;
  // With causal masks, or of packed sequences, the longest tiles come first, and each CTA gets as
  // many of each length. Packed sequences have four heads in a panel: 0.89 to 1.11 times the rate
  // of all heads on an H200, and 1.03 in the mean.
  auto backward = cast<AttentionBackwardOp>(op);
  constexpr int64_t headsOfPanel = 4;
  if (backward.isPacked()) {
    plan.schedule = pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, headsOfPanel,
                                                    /*serpentine=*/false);
    return plan;
  }
  plan.schedule = backward.getCausal()
                      ? pipe::StaticPersistentAttr::get(context, pipe::Raster::AlongN, /*width=*/0,
                                                        /*serpentine=*/true)
                      : neighboursAlongM(context);
  return plan;
}

static LogicalResult checkBackward(Operation *op, const KernelPlan &plan,
                                   const hw::TargetModel &target) {
  using enum pipe::Engine;
  if (failed(checkTiling(op, plan, target, {Tma, Tensor, Threads},
                         {.areOneRole = true, .warps = {4, 8, 12}})))
    return failure();
  auto [rows, queries, keys] = plan.tile;
  int64_t ofRoles = cast<pipe::RolePlanAttr>(plan.roles).getDriver(Tensor).getNumThreads() / 2;
  auto isBlock = [](int64_t tokens) {
    return tokens > 0 && tokens % kInstructionK == 0 && tokens <= kMostBlock;
  };
  if (rows != ofRoles || !isBlock(queries) || !isBlock(keys))
    return misfitTile(op, plan,
                      "is [" + Twine(ofRoles) + ", Q, K], Q and K multiples of 16 up to " +
                          Twine(kMostBlock));
  if (plan.cluster[0] <= 1 && plan.cluster[1] <= 1)
    return success();
  return misfit(op, "cluster", "is left out beside gradients",
                "[" + Twine(plan.cluster[0]) + ", " + Twine(plan.cluster[1]) + "]");
}

constexpr FamilyRules fp4::kBackwardRules = {KernelFamily::TileAttention, requireBackward,
                                             proposeBackward, checkBackward};
