//===- LatentPlans.cpp - Plans of attention whose values are columns of keys -//
//
// Heads of a token are rows of a tile of 64. Keys are cut into slices, a CTA each, if tiles are
// fewer than SMs, and another kernel adds the sums. Keys of a given order are one slice, and so are
// those of packed sequences.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4;

/// Rows of a tile, and keys of a block, of which shared memory has two beside 576 elements of
/// queries; elements that TMA loads together; most elements of keys, and of values of two roles.
static constexpr int64_t kRows = 64, kKeys = 64, kPanel = 64, kMostKeys = 576, kMostValues = 512;
/// Keys of a page that a box of TMA can begin at.
static constexpr int64_t kPageUnit = 8;

static LogicalResult requireLatent(Operation *operation, const KernelPlan &plan,
                                   const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  if (!route::hasCore(target, route::Core::Wgmma))
    return withNote(op.emitOpError() << "has kernels of 'latent' with wgmma, but target "
                                     << target.name << " has none",
                    "pass values of their own, or compile for sm_90a");
  int64_t elements = op.getElements(), values = op.getValueElements(), heads = op.getHeadsOfGroup();
  if (elements % kPanel || elements > kMostKeys || values % (2 * kPanel) || values > kMostValues)
    return withNote(op.emitOpError() << "has kernels of 'latent' for a multiple of " << kPanel
                                     << " elements of a head up to " << kMostKeys << ", and of "
                                     << 2 * kPanel << " elements of values up to " << kMostValues
                                     << ", but got " << elements << " and " << values,
                    "append zeros to the heads of query and key");
  if (heads > kRows && heads % kRows)
    return withNote(op.emitOpError() << "has kernels of 'latent' for up to " << kRows
                                     << " heads that share keys, or a multiple, but got " << heads,
                    "append heads of zeros to the query");
  KeyOrderAttr order = op.getOrderAttr();
  if (order && (order.getInBlocks() != kKeys || !order.getGrowth().getValue().isZero()))
    return withNote(op.emitOpError() << "has kernels of 'latent' for 'in_blocks' " << kKeys
                                     << " and 'growth' 0, but got " << order,
                    "write 'order <in_blocks = " + Twine(kKeys) + ", growth = 0.0>'");
  return failure(failed(requirePages(op, kPageUnit)) ||
                 failed(requireQuantizer(op, /*inLanes=*/true)));
}

/// Heads of a token that are rows of one tile.
static int64_t headsOfTile(AttentionOp op) {
  return std::min<int64_t>(kRows, int64_t(llvm::PowerOf2Ceil(uint64_t(op.getHeadsOfGroup()))));
}

/// Tiles of all sequences.
static int64_t tilesOf(AttentionOp op, int64_t heads) {
  int64_t ofSequence = int64_t(llvm::divideCeil(op.getQueryTokens(), kRows / heads));
  int64_t ofGroup = int64_t(llvm::divideCeil(op.getHeadsOfGroup(), heads));
  return op.getBatches() * ofSequence * op.getKeyHeads() * ofGroup;
}

/// Slices at most: one with an order, and of packed sequences, whose sums would have any number of
/// rows.
static int64_t mostSlices(AttentionOp op) {
  return op.getOrder() || op.isPacked() ? 1 : int64_t(llvm::divideCeil(op.getKeyTokens(), kKeys));
}

/// The slices of keys by which the last wave of CTAs ends first. A CTA costs as much as a few
/// blocks beside its own: it loads queries, and leaves sums that another kernel reads.
static int64_t slicesOfKeys(AttentionOp op, int64_t tiles, const hw::TargetModel &target) {
  constexpr int64_t ofTile = 2, ofSlice = 2, ofKernel = 2, most = 128;
  int64_t blocks = mostSlices(op);
  int64_t fewest = op.getEpilogueQuantize() ? 2 : 1, best = fewest; // who adds them up quantizes
  auto cost = [&](int64_t slices) {
    int64_t waves = int64_t(llvm::divideCeil(tiles * slices, target.sms));
    int64_t ofCta = int64_t(llvm::divideCeil(blocks, slices)) + ofTile;
    return slices > 1 ? waves * (ofCta + ofSlice) + ofKernel : waves * ofCta;
  };
  for (int64_t slices = fewest + 1; slices <= std::min(most, blocks); ++slices)
    if (cost(slices) < cost(best))
      best = slices;
  return best;
}

static KernelPlan proposeLatent(Operation *operation, const KernelPlan &partial,
                                const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  plan.tile = {kRows, kKeys, headsOfTile(op)};
  plan.ctasPerSm = 1;
  plan.roles = latentRoles(op.getContext(), /*transposes=*/op.isOfBytes());
  plan.schedule = neighboursAlongM(op.getContext());
  int64_t heads = partial.tile[2] ? partial.tile[2] : plan.tile[2];
  plan.split.kSlices = slicesOfKeys(op, tilesOf(op, std::clamp<int64_t>(heads, 1, kRows)), target);
  return plan;
}

static LogicalResult checkLatent(Operation *operation, const KernelPlan &plan,
                                 const hw::TargetModel &target) {
  using enum pipe::Engine;
  auto op = cast<AttentionOp>(operation);
  if (failed(checkTiling(op, plan, target, {Tma, Tensor, Threads},
                         {.areOneRole = true, .warps = {4}})))
    return failure();
  auto roles = cast<pipe::RolePlanAttr>(plan.roles);
  pipe::RoleAttr values = roles.getRole(kValuesRole);
  if (!values || values.getNumWarps() != 4 || !values.drives(Tensor) || !values.drives(Threads))
    return misfit(op, "roles",
                  "have one named '" + Twine(kValuesRole) +
                      "' of 4 warps that drives tensor and threads",
                  spell(plan.roles));
  if (op.isOfBytes() && !roles.getRole(kTransposeRole))
    return misfit(op, "roles", "have one named '" + Twine(kTransposeRole) + "'", spell(plan.roles));
  auto [rows, keys, heads] = plan.tile;
  bool hasHeads =
      llvm::isPowerOf2_64(uint64_t(heads)) && heads <= kRows && heads >= headsOfTile(op);
  if (rows != kRows || keys != kKeys || !hasHeads)
    return misfit(op, "tile",
                  "is [" + Twine(kRows) + ", " + Twine(kKeys) + ", H], H a power of two from " +
                      Twine(headsOfTile(op)) + " to " + Twine(kRows),
                  spell(plan.tile));
  if (plan.cluster[0] > 1 || plan.cluster[1] > 1)
    return misfit(op, "cluster", "is left out beside 'latent'",
                  "[" + Twine(plan.cluster[0]) + ", " + Twine(plan.cluster[1]) + "]");
  if (op.getEpilogueQuantize() && plan.split.kSlices.value_or(1) < 2)
    return misfit(op, "k_slices", "is 2 or more beside fp4.epilogue_quantize", "1");
  return checkAtMost(op, "k_slices", plan.split.kSlices.value_or(1), mostSlices(op));
}

constexpr FamilyRules fp4::kLatentRules = {KernelFamily::TileAttention, requireLatent,
                                           proposeLatent, checkLatent};
