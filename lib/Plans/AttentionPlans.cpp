//===- AttentionPlans.cpp - Plans of attention ----------------------------===//

#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Fp4/IR/AttentionEpilogue.h"
#include "fp4/Dialect/Fp4/IR/SharedKeys.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Schedules.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/Numerics/Attention.h"

using namespace mlir;
using namespace fp4;

/// Rows of queries of a warpgroup, elements of K of an instruction, and elements in a swizzled row.
static constexpr int64_t kGroupRows = 64, kInstructionK = 16, kPanel = 64;
/// Columns of a piece of a reduction in the cluster, at least.
static constexpr int64_t kThreadColumns = 8;
/// Elements of a head, and keys of a block, that kernels can have.
static constexpr int64_t kMostElements = 256, kMostKeys = 256;

InFlightDiagnostic fp4::refuseHead(AttentionOp op, StringRef name, int64_t elements,
                                   StringRef known) {
  return withNote(op.emitOpError() << "has kernels for heads of " << known
                                   << " elements, but operand '" << name << "' has " << elements,
                  "append zeros to the heads of query and key, or of value");
}

LogicalResult fp4::requirePages(AttentionOp op, int64_t unit) {
  int64_t tokens = op.getPageTokens();
  if (!op.getPages() || tokens % unit == 0)
    return success();
  return withNote(op.emitOpError() << "has kernels for pages of a multiple of " << unit
                                   << " tokens, but those of operand 'key' have " << tokens,
                  "pages of 16, 32, 64 or 128 tokens are usual");
}

/// Panels of 64 elements are as wide as a swizzle of 128 bytes, in 16 bits; wgmma reads those of 64
/// bytes, too.
LogicalResult fp4::requireQuantizer(AttentionOp op, bool inLanes) {
  EpilogueQuantizeOp quantize = op.getEpilogueQuantize();
  if (!quantize)
    return success();
  std::string reason = whyNotQuantized(op, quantize.getRecipe(),
                                       cast<RankedTensorType>(op.getQuantized()[1].getType()));
  if (reason.empty() && inLanes != quantizesInLanes(op))
    reason = inLanes ? "tiles have so many queries" : "warps have so few queries";
  if (reason.empty())
    return success();
  return withNote(op.emitOpError() << "has no kernel for fp4.epilogue_quantize: " << reason,
                  "quantize the result with fp4.quantize");
}

static LogicalResult requireHead(AttentionOp op, StringRef name, int64_t elements,
                                 const hw::TargetModel &target) {
  bool isHalved = route::hasCore(target, route::Core::Wgmma) && !op.isOfBytes();
  if (elements % (isHalved ? kPanel / 2 : kPanel) == 0 && elements <= kMostElements)
    return success();
  return refuseHead(op, name, elements,
                    isHalved ? "multiples of 32 up to 256" : "64, 128, 192 or 256");
}

/// Keys that a box of TMA can begin at in a page, because the swizzle repeats after so many rows.
static constexpr int64_t kPageUnit = 8;

/// Heads that are rows of one tile, because they share keys: those of a group, rounded up to a
/// power of two, where tokens are fewer than a tile has rows.
static int64_t headsOfTile(AttentionOp op) {
  if (op.isBlockScaled() || op.getEpilogueQuantize()) // scales are of rows of one head
    return 1;
  constexpr int64_t mostRows = 2 * kGroupRows;
  int64_t heads = int64_t(llvm::PowerOf2Ceil(uint64_t(op.getHeadsOfGroup())));
  return op.getQueryTokens() < mostRows && heads <= kGroupRows ? heads : 1;
}

/// Warpgroups of wgmma of a tile: one where its rows have room for all queries of a sequence. Three
/// have registers for the sums of 64 elements, and the same keys serve more rows: for as many rows,
/// those beyond the queries included, they take 85 % of the time of two on an H200, in e4m3 too,
/// and 95 % with a causal mask, whose tiles end at other keys.
static int32_t groupsOfTile(AttentionOp op) {
  if (op.getEpilogueQuantize()) // of 128 rows, which threads gather
    return 2;
  int64_t rows = op.getQueryTokens() * headsOfTile(op);
  if (rows <= kGroupRows)
    return 1;
  bool hasRegisters = op.getElements() <= 64 && op.getValueElements() <= 64;
  auto padded = [&](int64_t groups) { return int64_t(llvm::alignTo(rows, groups * kGroupRows)); };
  int64_t percent = op.getCausal() ? 95 : 85;
  return hasRegisters && headsOfTile(op) == 1 && percent * padded(3) < 100 * padded(2) ? 3 : 2;
}

/// Warpgroups of the tile that a plan names, or else of the one that is fastest.
static int32_t groupsOfPlan(AttentionOp op, const KernelPlan &partial) {
  return partial.tile[0] ? std::clamp(int32_t(partial.tile[0] / kGroupRows), 1, 3)
                         : groupsOfTile(op);
}

/// Most keys that the tokens of a tile see.
static int64_t keysOfTile(AttentionOp op, int32_t groups) {
  return op.getKeysOfTokens(groups * kGroupRows / headsOfTile(op));
}

/// Blocks of keys that tiles of a sequence pass over: of those that see the most, or with a causal
/// mask alone all of them.
static int64_t countBlocks(AttentionOp op, int32_t groups, int64_t block) {
  int64_t most = keysOfTile(op, groups), tokens = groups * kGroupRows / headsOfTile(op);
  if (!op.getCausal() || op.getWindow() || op.isPacked())
    return int64_t(llvm::divideCeil(most, block));
  int64_t blocks = 0;
  for (int64_t keys = most; keys > most - op.getQueryTokens(); keys -= tokens)
    blocks += int64_t(llvm::divideCeil(std::max<int64_t>(keys, 1), block));
  return blocks;
}

/// The keys of a block: as many as registers have room for beside the sums of a head of values, or
/// fewer where less of the last block is beyond the keys. Blocks of whole pages take the fewest
/// boxes, and smaller blocks are shared more evenly. Packed sequences end anywhere, and blocks of
/// 128 keys have a loop without masks (loopsApart).
static int64_t keysOfBlock(AttentionOp op, int32_t groups, bool isShared) {
  int64_t elements = op.getValueElements();
  if (op.getPages() || isShared || (op.isPacked() && elements == 128))
    return elements <= 128 ? 128 : 64;
  // The fastest on an H200. Keys of 192 elements leave shared memory for two stages of 128.
  bool hasShared = op.getElements() <= 128 && elements <= 128;
  int64_t most = groups == 3 ? 128 : hasShared ? 160 : elements <= 128 ? 128 : elements <= 192 ? 112 : 80;
  constexpr int64_t costOfBlock = 16; // in keys
  // Tiles of an even number of blocks took 7 % more of an H200, but for blocks of 128 keys, when
  // roles had one address of shared memory (emitOwnBases).
  bool isSame =
      elements == 128 && groups == 2 && !op.getCausal() && !op.getWindow() && !op.isPacked();
  auto cost = [&](int64_t block) {
    int64_t blocks = countBlocks(op, groups, block);
    bool isSlow = isSame && blocks % 2 == 0 && block != 128;
    return blocks * (block + costOfBlock) * (isSlow ? 107 : 100);
  };
  int64_t best = most;
  for (int64_t block = most; block >= most / 2; block -= kInstructionK)
    if (cost(block) < cost(best))
      best = block;
  return best;
}

/// Returns true when accumulators are in tensor memory, and not in registers.
static bool hasLanes(const hw::TargetModel &target) {
  return !route::hasCore(target, route::Core::Wgmma);
}

/// Elements of a head of values whose sums have columns of tensor memory beside the scores.
static constexpr int64_t kMostLaneElements = 128;

bool fp4::hasTiles(AttentionOp op, const hw::TargetModel &target) {
  return route::hasCore(target, route::Core::Wgmma) ||
         (route::hasCore(target, route::Core::Tcgen05) &&
          op.getValueElements() <= kMostLaneElements);
}

/// Keys of a block of a given order.
static std::optional<int64_t> keysOfBlock(AttentionOp op) {
  return op.getOrder() ? std::optional(op.getOrder()->getInBlocks()) : std::nullopt;
}

LogicalResult fp4::requireNoOrder(AttentionOp op) {
  if (!op.getOrder())
    return success();
  return withNote(op.emitOpError() << "has kernels without 'order' but for tiles with tcgen05, "
                                      "but got "
                                   << op.getOrderAttr(),
                  "leave 'order' out: the order of other kernels is their own");
}

/// Columns of tensor memory of the scales of rows of `elements` elements, of up to 128 rows.
static int64_t columnsOfScales(int64_t elements, int64_t block) {
  return int64_t(llvm::alignTo(llvm::divideCeil(elements, block), pipe::kScaleBlockColumns));
}

/// Columns of tensor memory of a tile: of each part scores, powers as operand A, and sums of
/// values. Scales of blocks are those of queries, and once in front of the loop over keys and once
/// in it those of keys, powers and values.
static int64_t columnsOfTile(AttentionOp op, int64_t parts, int64_t keys) {
  constexpr int64_t packed = 16, places = 2;
  int64_t bits = op.getValueType().getElementTypeBitWidth();
  int64_t columns = parts * (keys + keys * bits / 32 + op.getValueElements());
  if (!op.isBlockScaled())
    return columns;
  int64_t block = op.getQueryType().getElementTypeBitWidth() == 4 ? packed : 32;
  columns += (parts + places) * columnsOfScales(op.getElements(), block);
  return op.hasValueRows() ? columns + (parts + 1) * places * columnsOfScales(keys, block)
                           : columns;
}

/// The fewest keys of a block with tcgen05: those of a scale tile of values of MXFP8.
static int64_t fewestKeys(AttentionOp op) {
  bool areBytes = op.hasValueRows() && op.getValueType().getElementTypeBitWidth() == 8;
  return areBytes ? 2 * kPanel : kPanel;
}

/// Returns true when a block may have so many keys: tensor memory has room, and all scales of
/// values of the last block exist.
static bool fitsBlock(AttentionOp op, int64_t parts, int64_t keys, const hw::TargetModel &target) {
  bool isWhole = keys == fewestKeys(op) || !op.hasValueRows() || op.getKeyTokens() % keys == 0;
  return isWhole && columnsOfTile(op, parts, keys) <= int64_t(target.limits.tmemColumns);
}

/// Parts of 128 rows of a tile: one where it has room for all queries of a sequence. Three, which
/// heads of 64 have columns for, keep the units of powers busy: a score takes 83 % of the time that
/// it takes with two, predicted for a B200.
static int32_t partsOfTile(AttentionOp op, const hw::TargetModel &target) {
  int64_t rows = op.getQueryTokens() * headsOfTile(op);
  if (rows <= pipe::kMmaM || !fitsBlock(op, 2, fewestKeys(op), target))
    return 1;
  auto padded = [&](int64_t parts) { return int64_t(llvm::alignTo(rows, parts * pipe::kMmaM)); };
  bool isNarrow = op.getElements() <= kPanel && op.getValueElements() <= kPanel;
  int64_t keys = keysOfBlock(op).value_or(fewestKeys(op));
  bool fits = keys == kPanel && fitsBlock(op, 3, kPanel, target);
  constexpr int64_t percent = 83;
  return isNarrow && fits && percent * padded(3) < 100 * padded(2) ? 3 : 2;
}

/// Reports an order of keys that no kernel with tcgen05 has.
static LogicalResult requireOrder(AttentionOp op, const hw::TargetModel &target) {
  auto keys = keysOfBlock(op).value_or(fewestKeys(op));
  bool hasRoom = fitsBlock(op, partsOfTile(op, target), keys, target);
  if (keys == fewestKeys(op) || (keys == 2 * kPanel && hasRoom))
    return success();
  if (fewestKeys(op) != kPanel)
    return withNote(op.emitOpError()
                        << "has values of MXFP8, and 'in_blocks' must be 128, but got " << keys,
                    "write 'order <in_blocks = 128, growth = 0.0>'");
  return withNote(op.emitOpError() << "has kernels with tcgen05 for 'in_blocks' " << kPanel
                                   << ", or 128 where " << int64_t(target.limits.tmemColumns)
                                   << " columns of tensor memory have room, but got " << keys,
                  "write 'order <in_blocks = 64, growth = 8.0>'");
}

/// Keys of a block of bytes at most: sums of a block lie beside those of all blocks in registers.
static int64_t keysOfByteBlock(AttentionOp op) { return op.getValueElements() <= 128 ? 128 : 64; }

/// Reports queries of f8E4M3FN where no core multiplies them as they are, and a growth of their
/// maxima that leaves powers no place below 2^8.
static LogicalResult requireBytesOfCore(AttentionOp op, const hw::TargetModel &target) {
  if (!op.isOfBytes() || route::hasCore(target, route::Core::Wgmma))
    return success();
  if (!route::hasCore(target, route::Core::Tcgen05))
    return withNote(op.emitOpError() << "has kernels of queries of f8E4M3FN with wgmma or tcgen05, "
                                        "but target "
                                     << target.name << " has none",
                    "convert queries to bf16: keys and values of f8E4M3FN are a quantized cache");
  KeyOrderAttr order = op.getOrderAttr();
  double most = numerics::kByteShift, growth = order ? order.getGrowth().getValueAsDouble() : 0;
  if (growth <= most)
    return success();
  return withNote(
      op.emitOpError() << "has kernels of queries of 8 bits, or 4, for 'growth' 0 to "
                       << int64_t(most) << ", but got " << order,
      "powers are up to 2^8, or 2688 of NVFP4, which the largest numbers of their types "
      "limit");
}

/// Reports scales of blocks where no core multiplies by them, and values whose rows TMA cannot
/// load.
static LogicalResult requireBlockScales(AttentionOp op, const hw::TargetModel &target) {
  if (!op.isBlockScaled())
    return success();
  if (!route::hasCore(target, route::Core::Tcgen05))
    return withNote(op.emitOpError() << "has tiles of 'block_scales' with tcgen05, but target "
                                     << target.name << " has none",
                    "leave the plan out where the target has mma.sync with block_scale, or "
                    "dequantize queries to bf16");
  bool isMX = op.getQueryType().getElementTypeBitWidth() == 8;
  if (int64_t elements = op.getElements(); isMX && elements != kPanel && elements % (2 * kPanel))
    return withNote(op.emitOpError()
                        << "has kernels of MXFP8 for heads of 64, 128 or 256 elements, but operand "
                           "'query' has "
                        << elements,
                    "append zeros to the heads of query and key");
  return requireValueRows(op);
}

/// Reports formats of queries that `target` has no kernel for.
static LogicalResult requireFormats(AttentionOp op, const hw::TargetModel &target) {
  return failure(failed(requireBlockScales(op, target)) || failed(requireBytesOfCore(op, target)));
}

/// Reports heads and pages that no box of TMA has.
static LogicalResult requireShapes(AttentionOp op, const hw::TargetModel &target) {
  return failure(failed(requireHead(op, "query", op.getElements(), target)) ||
                 failed(requireHead(op, "value", op.getValueElements(), target)) ||
                 failed(requirePages(op, kPageUnit)) ||
                 failed(requireQuantizer(op, /*inLanes=*/false)));
}

/// Reports what no kernel of queries of f8E4M3FN has with wgmma.
static LogicalResult requireBytes(Operation *operation, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  if (failed(requireFormats(op, target)))
    return failure();
  KeyOrderAttr order = op.getOrderAttr();
  int64_t keys = keysOfByteBlock(op);
  if (order && (order.getInBlocks() != keys || !order.getGrowth().getValue().isZero()))
    return withNote(op.emitOpError() << "has kernels of queries of f8E4M3FN for 'in_blocks' "
                                     << keys << " and 'growth' 0, but got " << order,
                    "write 'order <in_blocks = " + Twine(keys) + ", growth = 0.0>'");
  return requireShapes(op, target);
}

/// Reports what no kernel of accumulators in registers has.
static LogicalResult requireFragments(Operation *operation, const KernelPlan &plan,
                                      const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  return failure(failed(requireFormats(op, target)) || failed(requireNoOrder(op)) ||
                 failed(requireShapes(op, target)));
}

/// Reports what no kernel of accumulators in tensor memory has.
static LogicalResult requireLanes(Operation *operation, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  if (failed(requireFormats(op, target)))
    return failure();
  if (!route::hasCore(target, route::Core::Tcgen05))
    if (Status status = route::requireCore(target, route::Core::Wgmma); !status)
      return report(op, status.error());
  if (failed(requireOrder(op, target)) || failed(requireShapes(op, target)))
    return failure();
  if (hasTiles(op, target))
    return success();
  return withNote(op.emitOpError() << "has kernels with tcgen05 for heads of 64 or 128 elements "
                                      "of operand 'value', but got "
                                   << op.getValueElements(),
                  op.isPacked()
                      ? "take values of at most 128 elements: no other family has packed sequences"
                      : "family warp_attention has up to 256 elements");
}

/// Bytes of keys and values that tiles which run at a time may read from the L2 cache.
static constexpr int64_t kCachedBytes = 44 << 20;

/// The order of tiles. Tiles of one head share its keys. With causal masks alone they are the
/// longer the later their queries are, and those of packed sequences differ too: the longest tiles
/// come first, and each CTA gets as many of each length. Such an order has tiles of a quarter as
/// many heads as there are SMs, or of a power of two of them, if keys and values of so many heads
/// fit in the L2 cache; else of all heads. Panels of a power of two do not divide rounds of all
/// CTAs, and are not turned around: every other one begins with the shortest tiles. Packed
/// sequences have four heads of any lengths. With tcgen05, which was not measured, all panels
/// divide rounds.
static pipe::WorkScheduleAttrInterface rasterOfTiles(AttentionOp op,
                                                     const hw::TargetModel &target) {
  MLIRContext *context = op.getContext();
  if (op.getWindow() || (!op.getCausal() && !op.isPacked()))
    return neighboursAlongM(context);
  int64_t elements = op.getKeyTokens() * (op.getElements() + op.getValueElements());
  int64_t ofHead = std::max<int64_t>(1, op.getKeyType().getElementTypeBitWidth() * elements / 8);
  int64_t heads = op.isPacked() ? op.getHeads() : op.getHeads() * op.getBatches();
  int64_t sharing = op.getHeadsOfGroup() * getSharingSequences(op);
  int64_t most = op.isPacked() ? 0 : kCachedBytes * sharing / ofHead;
  auto panels = [&](int64_t width, bool serpentine) {
    return pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, width, serpentine);
  };
  SmallVector<int64_t> ofRounds = {target.sms / 4};
  if (hasLanes(target))
    ofRounds = {target.sms, target.sms / 2, target.sms / 4};
  for (int64_t width : ofRounds)
    if (width > 0 && width <= most && width < heads)
      return panels(width, /*serpentine=*/true);
  constexpr int64_t ofPacked = 4;
  int64_t width = op.isPacked() ? ofPacked : int64_t(llvm::bit_floor(uint64_t(most)));
  if (width > 0 && width < heads && !hasLanes(target))
    return panels(width, /*serpentine=*/false);
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::AlongN, /*width=*/0,
                                         /*serpentine=*/true);
}

/// The most CTAs that share the keys of a tile: each has a piece of the result.
static int64_t mostSplits(AttentionOp op, const hw::TargetModel &target) {
  return std::min<int64_t>(hw::mostClusterCtas(target), op.getValueElements() / kThreadColumns);
}

/// CTAs that share the keys of a tile: as many as SMs have room for at a time, with two blocks each
/// or more. A second wave would cost more than its clusters save, each of which ends with an
/// exchange.
static int64_t splitsOfKeys(AttentionOp op, int64_t works, int64_t blocks,
                            const hw::TargetModel &target) {
  constexpr int64_t fewestBlocks = 2;
  int64_t splits = 1;
  for (int64_t more = 2; more <= mostSplits(op, target) && more * fewestBlocks <= blocks; ++more)
    if (works <= hw::clustersAtATime(target, more))
      splits = more;
  return splits;
}

/// A tile of one to three parts of 128 rows, with as many keys as tensor memory has room for.
static KernelPlan proposeLanes(Operation *operation, const KernelPlan &partial,
                               const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  int64_t tileHeads = headsOfTile(op);
  int32_t parts = partial.tile[0] ? std::clamp(int32_t(partial.tile[0] / pipe::kMmaM), 1, 3)
                                  : partsOfTile(op, target);
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  bool hasRoom = parts == 2 && op.getValueElements() <= kPanel && // one part would spill
                 fitsBlock(op, parts, 2 * kPanel, target);
  int64_t keys = hasRoom ? 2 * kPanel : fewestKeys(op);
  plan.tile = {parts * pipe::kMmaM, keysOfBlock(op).value_or(keys), tileHeads};
  plan.ctasPerSm = 1;
  plan.roles = attentionLaneRoles(op.getContext(), parts, op.isBlockScaled());
  plan.schedule = parts == 1 ? neighboursAlongM(op.getContext()) : rasterOfTiles(op, target);
  return plan;
}

/// A tile of one to three warpgroups, and warps beside them that transpose values.
static KernelPlan proposeBytes(Operation *operation, const KernelPlan &partial,
                               const hw::TargetModel &target) {
  auto op = cast<AttentionOp>(operation);
  int64_t tileHeads = headsOfTile(op);
  int32_t groups = groupsOfPlan(op, partial);
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  plan.tile = {groups * kGroupRows, keysOfByteBlock(op), tileHeads};
  plan.ctasPerSm = 1;
  plan.roles = byteAttentionRoles(op.getContext(), groups);
  plan.pipeline.stages = 4;
  plan.schedule = groups == 1 ? neighboursAlongM(op.getContext()) : rasterOfTiles(op, target);
  return plan;
}

/// Work that warpgroups have in turn. Three that begin their products in turn are up to 7 % faster
/// on an H200, and two with slopes, whose threads take longer than products, 1 to 4 %. Others of
/// two are up to 3 % slower: they find their phases by themselves.
static pipe::Turns turnsOfGroups(AttentionOp op, int32_t groups) {
  bool inTurn = groups == 3 || (groups == 2 && op.getSlopes());
  return inTurn ? pipe::Turns::Products : pipe::Turns::Nothing;
}

/// A tile of one to three warpgroups, or of one and clusters that share its keys.
static KernelPlan proposeFragments(Operation *op, const KernelPlan &partial,
                                   const hw::TargetModel &target) {
  auto attention = cast<AttentionOp>(op);
  int32_t groups = groupsOfPlan(attention, partial);
  int64_t tileHeads = headsOfTile(attention);
  int64_t heads = tileHeads > 1 ? attention.getKeyHeads() : attention.getHeads();
  int64_t works = attention.getBatches() * heads; // of one tile for each sequence
  bool isShared = groups == 1 && works <= hw::clustersAtATime(target, 2);
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  plan.tile = {groups * kGroupRows, keysOfBlock(attention, groups, isShared), tileHeads};
  plan.ctasPerSm = 1;
  constexpr RegisterShares shares[] = {RegisterShares(), kFewBeside, {160, 24}};
  plan.roles = fragmentRoles(op->getContext(), groups, shares[groups - 1], /*storesTiles=*/false,
                             turnsOfGroups(attention, groups));
  if (groups >= 2) {
    plan.pipeline.stages = groups == 2 ? 5 : 4;
    plan.schedule = rasterOfTiles(attention, target);
    return plan;
  }
  plan.schedule = neighboursAlongM(op->getContext());
  int64_t blocks = int64_t(llvm::divideCeil(keysOfTile(attention, groups), plan.tile[1]));
  if (int64_t splits = splitsOfKeys(attention, works, blocks, target); splits > 1)
    plan.cluster = {splits, 1};
  return plan;
}

/// Heads of a token that are rows of one tile.
static bool hasHeadsOfTile(AttentionOp op, int64_t heads) {
  if (op.isBlockScaled() || op.getEpilogueQuantize())
    return heads == 1;
  return heads == 1 || (heads >= op.getHeadsOfGroup() && heads <= kGroupRows &&
                        llvm::isPowerOf2_64(uint64_t(heads)));
}

SmallVector<StringRef> fp4::partRoles(const KernelPlan &plan) {
  SmallVector<StringRef> names;
  for (pipe::RoleAttr role : cast<pipe::RolePlanAttr>(plan.roles).getRoles())
    if (role.getAuxiliary() && role.getNumWarps() == 4 && role.getFirstWarp() % 4 == 0)
      names.push_back(role.getName());
  return names;
}

/// Reports slices of keys, which only latent values have.
static LogicalResult checkSlices(AttentionOp op, const KernelPlan &plan) {
  if (plan.split.kSlices.value_or(1) == 1)
    return success();
  return misfit(op, "k_slices", "is left out without 'latent'", Twine(*plan.split.kSlices));
}

static LogicalResult checkLanes(Operation *operation, const KernelPlan &plan,
                                const hw::TargetModel &target) {
  using enum pipe::Engine;
  auto op = cast<AttentionOp>(operation);
  if (failed(checkSlices(op, plan)))
    return failure();
  SmallVector<pipe::Engine> engines = {Tma, Tensor, Threads};
  if (op.isBlockScaled())
    engines.push_back(ScaleCopy);
  if (failed(checkTiling(op, plan, target, engines)))
    return failure();
  auto [rows, keys, heads] = plan.tile;
  int64_t parts = 1 + int64_t(partRoles(plan).size());
  bool hasKeys = (keys == kPanel || keys == 2 * kPanel) && keys == keysOfBlock(op).value_or(keys) &&
                 fitsBlock(op, parts, keys, target);
  if (rows != parts * pipe::kMmaM || !hasKeys || !hasHeadsOfTile(op, heads))
    return misfit(op, "tile",
                  "is [" + Twine(parts * pipe::kMmaM) + ", N, H], N 64, or 128 where " +
                      Twine(target.limits.tmemColumns) +
                      " columns of tensor memory have room, or the keys of 'in_blocks', and H 1, "
                      "or a power of two from " +
                      Twine(op.getHeadsOfGroup()) + " to " + Twine(kGroupRows),
                  spell(plan.tile));
  if (plan.cluster[0] <= 1 && plan.cluster[1] <= 1)
    return success();
  return misfit(op, "cluster", "is left out beside tcgen05",
                "[" + Twine(plan.cluster[0]) + ", " + Twine(plan.cluster[1]) + "]");
}

static LogicalResult checkBytes(Operation *operation, const KernelPlan &plan,
                                const hw::TargetModel &target) {
  using enum pipe::Engine;
  auto op = cast<AttentionOp>(operation);
  if (failed(checkSlices(op, plan)) ||
      failed(checkTiling(op, plan, target, {Tma, Tensor, Threads},
                         {.areOneRole = true, .warps = {4, 8, 12}})))
    return failure();
  auto [rows, keys, heads] = plan.tile;
  auto roles = cast<pipe::RolePlanAttr>(plan.roles);
  int64_t ofRoles = roles.getDriver(Tensor).getNumThreads() / 2, most = keysOfByteBlock(op);
  if (rows != ofRoles || keys != most || !hasHeadsOfTile(op, heads))
    return misfit(op, "tile",
                  "is [" + Twine(ofRoles) + ", " + Twine(most) +
                      ", H], and H 1, or a power of two from " + Twine(op.getHeadsOfGroup()) +
                      " to " + Twine(kGroupRows),
                  spell(plan.tile));
  if (!roles.getRole(kTransposeRole))
    return misfit(op, "roles", "have one named '" + Twine(kTransposeRole) + "'", "none");
  if (plan.cluster[0] <= 1 && plan.cluster[1] <= 1)
    return success();
  return misfit(op, "cluster", "is left out beside queries of f8E4M3FN",
                "[" + Twine(plan.cluster[0]) + ", " + Twine(plan.cluster[1]) + "]");
}

static LogicalResult checkFragments(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  using enum pipe::Engine;
  auto attention = cast<AttentionOp>(op);
  if (failed(checkSlices(attention, plan)) ||
      failed(checkTiling(op, plan, target, {Tma, Tensor, Threads},
                         {.areOneRole = true, .warps = {4, 8, 12}})))
    return failure();
  auto [rows, keys, heads] = plan.tile;
  int64_t ofRoles = cast<pipe::RolePlanAttr>(plan.roles).getDriver(Tensor).getNumThreads() / 2;
  int64_t group = attention.getHeadsOfGroup();
  bool hasKeys = keys > 0 && keys % kInstructionK == 0 && keys <= kMostKeys;
  if (rows != ofRoles || !hasKeys || !hasHeadsOfTile(attention, heads))
    return misfit(op, "tile",
                  "is [" + Twine(ofRoles) + ", N, H], N a multiple of 16 up to " +
                      Twine(kMostKeys) + ", and H 1, or a power of two from " + Twine(group) +
                      " to " + Twine(kGroupRows),
                  spell(plan.tile));
  int64_t most = mostSplits(attention, target);
  if (plan.cluster[1] > 1 || plan.cluster[0] > most)
    return misfit(op, "cluster", "is [S, 1], S at most " + Twine(most),
                  "[" + Twine(plan.cluster[0]) + ", " + Twine(plan.cluster[1]) + "]");
  return success();
}

/// Kernels by where accumulators are, and of queries of f8E4M3FN with wgmma.
static constexpr FamilyRules kLaneRules = {KernelFamily::TileAttention, requireLanes, proposeLanes,
                                           checkLanes},
                             kByteRules = {KernelFamily::TileAttention, requireBytes, proposeBytes,
                                           checkBytes},
                             kFragmentRules = {KernelFamily::TileAttention, requireFragments,
                                               proposeFragments, checkFragments};

/// The rules of the kernels that an op of family tile_attention has on a target.
static const FamilyRules &rulesOf(Operation *op, const hw::TargetModel &target) {
  if (isa<AttentionBackwardOp>(op))
    return kBackwardRules;
  auto attention = cast<AttentionOp>(op);
  if (attention.getLatent())
    return kLatentRules;
  return hasLanes(target) ? kLaneRules : attention.isOfBytes() ? kByteRules : kFragmentRules;
}

static LogicalResult requireAttention(Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target) {
  return rulesOf(op, target).require(op, plan, target);
}

static KernelPlan proposeAttention(Operation *op, const KernelPlan &partial,
                                   const hw::TargetModel &target) {
  return rulesOf(op, target).propose(op, partial, target);
}

static LogicalResult checkAttention(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  return rulesOf(op, target).check(op, plan, target);
}

constexpr FamilyRules fp4::kAttentionRules = {KernelFamily::TileAttention, requireAttention,
                                              proposeAttention, checkAttention};
