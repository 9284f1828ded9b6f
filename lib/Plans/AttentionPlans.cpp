//===- AttentionPlans.cpp - Plans of attention ----------------------------===//

#include "Families.h"
#include "RolePlans.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Schedules.h"

using namespace mlir;
using namespace fp4;

/// Rows of queries of a warpgroup, elements of K of an instruction, and elements in a swizzled row.
static constexpr int64_t kGroupRows = 64, kInstructionK = 16, kPanel = 64;
/// Elements of a head, and keys of a block, that kernels can have.
static constexpr int64_t kMostElements = 256, kMostKeys = 256;

static LogicalResult requireHead(AttentionOp op, StringRef name, RankedTensorType type) {
  int64_t elements = type.getDimSize(3);
  if (elements % kPanel == 0 && elements <= kMostElements)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError() << "has kernels for heads of 64, 128, 192 or 256 elements, but operand '"
                       << name << "' has " << elements;
  diag.attachNote() << "append zeros to the heads of query and key, or of value";
  return failure();
}

/// The keys of a block: as many as registers have room for beside the sums of a head of values,
/// and of several sequences a divisor of their keys, because a box of TMA does not end with a
/// sequence. 0 where there is none.
static int64_t keysOfBlock(AttentionOp op) {
  int64_t keys = op.getKeyType().getDimSize(1);
  int64_t elements = op.getValueType().getDimSize(3);
  int64_t most = elements <= 128 ? 160 : elements <= 192 ? 112 : 80; // the fastest on an H200
  if (op.getKeyType().getDimSize(0) == 1)
    return most;
  for (int64_t block = most; block >= kInstructionK; block -= kInstructionK)
    if (keys % block == 0)
      return block;
  return 0;
}

static LogicalResult requireAttention(Operation *op, const KernelPlan &,
                                      const hw::TargetModel &target) {
  if (Status status = route::requireCore(target, route::Core::Wgmma); !status) {
    InFlightDiagnostic diag = op->emitOpError(status.error().message);
    diag.attachNote() << status.error().note;
    return failure();
  }
  auto attention = cast<AttentionOp>(op);
  if (failed(requireHead(attention, "query", attention.getQueryType())) ||
      failed(requireHead(attention, "value", attention.getValueType())))
    return failure();
  if (keysOfBlock(attention))
    return success();
  InFlightDiagnostic diag = op->emitOpError() << "of several batches has kernels for a multiple of "
                                              << kInstructionK << " keys, but operand 'key' has "
                                              << attention.getKeyType().getDimSize(1);
  diag.attachNote() << "run the batches one by one";
  return failure();
}

/// Bytes of keys and values that tiles which run at a time may read from the L2 cache.
static constexpr int64_t kCachedBytes = 36 << 20;

/// The order of tiles. Tiles of one head share its keys. With masks they are the longer the later
/// their queries are: the longest tiles come first, and each CTA gets as many of each length. Such
/// an order has tiles of as many heads as there are SMs, or half or a quarter, if keys and values
/// of so many heads fit in the L2 cache; else of all heads.
static pipe::WorkScheduleAttrInterface rasterOfTiles(AttentionOp op,
                                                     const hw::TargetModel &target) {
  MLIRContext *context = op.getContext();
  if (!op.getCausal())
    return neighboursAlongM(context);
  RankedTensorType key = op.getKeyType(), value = op.getValueType();
  int64_t heads = op.getQueryType().getDimSize(2), sharing = heads / key.getDimSize(2);
  int64_t bytes =
      2 * key.getDimSize(1) * (key.getDimSize(3) + value.getDimSize(3)); // of a head of keys
  for (int64_t width : {target.sms, target.sms / 2, target.sms / 4})
    if (width > 0 && width * bytes <= kCachedBytes * sharing && width < heads * key.getDimSize(0))
      return pipe::StaticPersistentAttr::get(context, pipe::Raster::Panels, width,
                                             /*serpentine=*/true);
  return pipe::StaticPersistentAttr::get(context, pipe::Raster::AlongN, /*width=*/0,
                                         /*serpentine=*/true);
}

static KernelPlan proposeAttention(Operation *op, const KernelPlan &,
                                   const hw::TargetModel &target) {
  constexpr int32_t groups = 2;
  KernelPlan plan = planOfFamily(KernelFamily::TileAttention);
  plan.tile = {groups * kGroupRows, keysOfBlock(cast<AttentionOp>(op))};
  plan.ctasPerSm = 1;
  plan.stages = 5;
  plan.schedule = rasterOfTiles(cast<AttentionOp>(op), target);
  plan.roles = fragmentRoles(op->getContext(), groups, kFewBeside);
  return plan;
}

static LogicalResult checkAttention(Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target) {
  using enum pipe::Engine;
  auto attention = cast<AttentionOp>(op);
  if (failed(checkTiling(op, plan, target, {Tma, Tensor, Threads}, fragmentRules)))
    return failure();
  auto [queries, keys, none] = plan.tile;
  int64_t rows = cast<pipe::RolePlanAttr>(plan.roles).getDriver(Tensor).getNumThreads() / 2;
  bool isWhole = attention.getKeyType().getDimSize(0) == 1 ||
                 (keys > 0 && attention.getKeyType().getDimSize(1) % keys == 0);
  if (queries == rows && keys > 0 && keys % kInstructionK == 0 && keys <= kMostKeys && isWhole)
    return success();
  return misfit(op, "tile",
                "is [" + Twine(rows) + ", N], N a multiple of 16 up to " + Twine(kMostKeys) +
                    ", and of several batches a divisor of the keys",
                "[" + Twine(queries) + ", " + Twine(keys) + "]");
}

constexpr FamilyRules fp4::kAttentionRules = {requireAttention, proposeAttention, checkAttention};
