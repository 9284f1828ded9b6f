//===- VerifyCapacity.cpp - Places are disjoint and within the target -----===//

#include "ChannelEnds.h"
#include "MemoryPlan.h"
#include "VerifyCluster.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_VERIFYCAPACITY
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// Bytes of shared memory or columns of tensor memory that something occupies.
struct Extent {
  int64_t begin, end;
  std::string what;
  Operation *owner;
};

/// The ranges of one kernel.
struct Ranges {
  SmallVector<Extent> shared, tmem;
  SmallVector<TmemTileOpInterface> tiles; ///< tiles with sets of their own
};
} // namespace

/// Another tile fills the same sets in turns with `tile` (C137).
static bool isInTurns(const Ranges &ranges, TmemTileOpInterface tile) {
  return llvm::any_of(ranges.tiles, [&](TmemTileOpInterface other) {
    return shareSets(other, tile) && other.getFirstColumn() == tile.getFirstColumn() &&
           other.getNumSets() == tile.getNumSets();
  });
}

static void addChannel(Ranges &ranges, ChannelOp channel) {
  int64_t depth = *channel.getDepth();
  for (auto [i, type] : llvm::enumerate(channel.getType().getPayload())) {
    int64_t place = (*channel.getPayload())[i];
    std::string what = "tile " + std::to_string(i);
    int64_t before = (depth - 1) * channel.getStageStride(i); // stages before the last
    if (auto tile = dyn_cast<SharedType>(type))
      ranges.shared.push_back({place, place + before + tile.getBytes(), what, channel});
    else
      ranges.tmem.push_back(
          {place, place + before + cast<TmemType>(type).getTmemColumns(), what, channel});
  }
  int64_t barriers = *channel.getBarriers();
  ranges.shared.push_back({barriers, barriers + barrierBytes(channel, depth), "barriers", channel});
}

static LogicalResult addJoin(Ranges &ranges, ClusterReductionOpInterface join) {
  std::optional<int64_t> place = join.getReductionPlace();
  if (!place || *place % ClusterReductionOpInterface::kReductionAlignment) { // (C262)
    InFlightDiagnostic diag =
        join->emitOpError(
            "must have a place in shared memory in the pipelined form, a multiple of ")
        << ClusterReductionOpInterface::kReductionAlignment;
    diag.attachNote() << "add 'at <byte>'";
    return diag;
  }
  ranges.shared.push_back({*place, *place + join.getReductionBytes(), "join", join});
  return success();
}

/// (C334) Warpgroups have neighbouring parts of the place, whose barriers are those of a role.
static LogicalResult checkStaged(StoreOp store, StoreOp first) {
  std::optional<int64_t> place = store.getPlace();
  if (!place || *place % StoreOp::kStagedAlignment || place != first.getPlace()) {
    InFlightDiagnostic diag =
        store.emitOpError("must have the place of all staged stores, a multiple of ")
        << StoreOp::kStagedAlignment; // (C334)
    diag.attachNote() << "add 'at <byte>'";
    return diag;
  }
  bool isOfRole = store->getParentOfType<RoleRegionOp>() == first->getParentOfType<RoleRegionOp>();
  if (isOfRole && store.getStagedBytes() == first.getStagedBytes())
    return success();
  InFlightDiagnostic diag = store.emitOpError("must have the role and the ")
                            << first.getStagedBytes() << " bytes of all staged stores, but has "
                            << store.getStagedBytes()
                            << (isOfRole ? "" : " in another role"); // (C334)
  diag.attachNote(first.getLoc()) << "the first is here";
  return diag;
}

/// The place that all staged stores of a kernel have.
static LogicalResult addStaged(Ranges &ranges, gpu::GPUFuncOp kernel) {
  StoreOp first;
  WalkResult result = kernel.walk([&](StoreOp store) {
    if (!store.getStaged())
      return WalkResult::advance();
    if (!first)
      first = store;
    return failed(checkStaged(store, first)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (first && !result.wasInterrupted()) {
    auto place = int64_t(*first.getPlace());
    ranges.shared.push_back({place, place + first.getStagedBytes(), "staged store", first});
  }
  return failure(result.wasInterrupted());
}

/// (C572) The place that all gathered rows of a kernel have: the barriers between two gatherings
/// are those of one role.
static LogicalResult addGathered(Ranges &ranges, gpu::GPUFuncOp kernel) {
  GatherRowsOp first;
  WalkResult result = kernel.walk([&](GatherRowsOp gather) {
    if (!first)
      first = gather;
    std::optional<int64_t> place = gather.getPlace();
    bool isLikeFirst =
        gather->getParentOfType<RoleRegionOp>() == first->getParentOfType<RoleRegionOp>() &&
        gather.getStagedBytes() == first.getStagedBytes();
    if (place && *place % StoreOp::kStagedAlignment == 0 && place == first.getPlace() &&
        isLikeFirst)
      return WalkResult::advance();
    InFlightDiagnostic diag =
        gather.emitOpError("must have the role, the size and the place of all gathered rows, a "
                           "multiple of ")
        << StoreOp::kStagedAlignment; // (C572)
    diag.attachNote() << "add 'at <byte>'";
    return WalkResult::interrupt();
  });
  if (first && !result.wasInterrupted()) {
    auto place = int64_t(*first.getPlace());
    ranges.shared.push_back({place, place + first.getStagedBytes(), "gathered rows", first});
  }
  return failure(result.wasInterrupted());
}

/// (C572) The place of maxima that threads exchange: that of gathered rows where there are some,
/// since the barriers of one role order both.
static LogicalResult addExchanged(Ranges &ranges, gpu::GPUFuncOp kernel) {
  GatherRowsOp gather;
  kernel.walk([&](GatherRowsOp op) { gather = op; });
  QuantizeBlocksOp first;
  WalkResult result = kernel.walk([&](QuantizeBlocksOp quantize) {
    int64_t bytes = quantize.getStagedBytes();
    if (bytes == 0)
      return WalkResult::advance();
    if (!first)
      first = quantize;
    std::optional<int64_t> place = quantize.getPlace();
    bool isLikeFirst =
        quantize->getParentOfType<RoleRegionOp>() == first->getParentOfType<RoleRegionOp>();
    bool isGathered = !gather || (place == gather.getPlace() && bytes <= gather.getStagedBytes());
    if (place && *place % StoreOp::kStagedAlignment == 0 && place == first.getPlace() &&
        isLikeFirst && isGathered)
      return WalkResult::advance();
    InFlightDiagnostic diag =
        quantize.emitOpError("must have the role and the place of all exchanged maxima, that of "
                             "gathered rows where there are some, a multiple of ")
        << StoreOp::kStagedAlignment; // (C572)
    diag.attachNote() << "add 'at <byte>'";
    return WalkResult::interrupt();
  });
  if (first && !gather && !result.wasInterrupted()) {
    auto place = int64_t(*first.getPlace());
    ranges.shared.push_back({place, place + first.getStagedBytes(), "exchanged maxima", first});
  }
  return failure(result.wasInterrupted());
}

/// (C140), (C141) Ranges are disjoint and end at or before `limit`.
static LogicalResult checkRanges(SmallVector<Extent> &ranges, int64_t limit, StringRef unit,
                                 StringRef attribute) {
  llvm::sort(ranges, [](const Extent &x, const Extent &y) { return x.begin < y.begin; });
  for (auto [i, range] : llvm::enumerate(ranges)) {
    if (range.end > limit)
      return withNote(range.owner->emitOpError()
                          << range.what << " at " << unit << " " << range.begin << " to "
                          << range.end << " must end within " << attribute << ", " << limit,
                      "let pipe-pipeline choose the places, or enlarge the attribute up to what "
                      "the target has");
    if (i == 0 || ranges[i - 1].end <= range.begin)
      continue;
    const Extent &other = ranges[i - 1];
    InFlightDiagnostic diag = range.owner->emitOpError()
                              << range.what << " at " << unit << " " << range.begin << " to "
                              << range.end << " must be disjoint from " << other.what << " at "
                              << other.begin << " to " << other.end;
    diag.attachNote(other.owner->getLoc()) << "the other is here";
    return diag;
  }
  return success();
}

static FailureOr<int64_t> attribute(gpu::GPUFuncOp kernel, StringRef name) {
  if (auto value = kernel->getAttrOfType<IntegerAttr>(name))
    return value.getInt();
  InFlightDiagnostic diag = kernel.emitOpError()
                            << "pipelined kernel must have the attribute " << name;
  diag.attachNote() << "pipe-pipeline sets it";
  return failure();
}

static LogicalResult checkLimits(gpu::GPUFuncOp kernel, const hw::TargetModel &target,
                                 int64_t shared, int64_t columns) {
  Capacity capacity = capacityOf(kernel, target);
  if (shared > capacity.sharedBytes) // (C140)
    return withNote(kernel.emitOpError() << PipeDialect::kSharedBytesAttr << " must be at most "
                                         << capacity.sharedBytes << " on " << StringRef(target.name)
                                         << ", but got " << shared,
                    "take fewer stages or smaller tiles");
  if (columns &&
      (!llvm::isPowerOf2_64(columns) || columns < 32 || columns > capacity.tmemColumns))
    return withNote(kernel.emitOpError() << PipeDialect::kTmemColumnsAttr // (C141)
                                         << " must be 0 or a power of two from 32 to "
                                         << capacity.tmemColumns << ", but got " << columns,
                    "tensor memory is allocated in powers of two; round the number up");
  return success();
}

/// (C304) The ring of responses to requests for work.
static LogicalResult checkRing(gpu::GPUFuncOp kernel, const hw::TargetModel &target,
                               Ranges &ranges) {
  int64_t depth = workRingDepth(kernel);
  if (depth == 0)
    return success();
  if (Status status = hw::requireFeature(target, &hw::TargetFeatures::hasClusterLaunchControl,
                                         "cluster launch control");
      !status)
    return withNote(kernel.emitOpError()
                        << "work that is requested must be on a target that answers: "
                        << status.error().message,
                    "write #pipe.static_persistent, which shares the work out before");
  auto ring = kernel->getAttrOfType<DenseI64ArrayAttr>(PipeDialect::kWorkRingAttr);
  if (!ring || ring.size() != 2 || ring[0] < 0 || ring[0] % kResponseBytes || ring[1] != depth)
    return withNote(kernel.emitOpError()
                        << "attribute " << PipeDialect::kWorkRingAttr << " must be a multiple of "
                        << kResponseBytes << " and the " << depth << " responses of the schedule",
                    "pipe-pipeline writes it behind the other bytes of shared memory");
  int64_t end = ring[0] + depth * kRingBytesPerResponse;
  ranges.shared.push_back({ring[0], end, "ring of responses", kernel});
  return success();
}

static LogicalResult verifyKernel(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  Ranges ranges;
  WalkResult placed = kernel.walk([&](Operation *op) {
    if (auto channel = dyn_cast<ChannelOp>(op)) {
      addChannel(ranges, channel);
    } else if (auto tile = dyn_cast<TmemTileOpInterface>(op); tile && tile.fillsTile()) {
      std::optional<int64_t> column = tile.getFirstColumn();
      if (!column) { // (C141)
        op->emitOpError("must have a place in tensor memory in the pipelined form").attachNote()
            << "add 'at <column>'";
        return WalkResult::interrupt();
      }
      if (isInTurns(ranges, tile))
        return WalkResult::advance();
      ranges.tiles.push_back(tile);
      auto type = cast<TmemType>(tile.getTmemTile().getType());
      int64_t end = *column + tile.getNumSets() * type.getTmemColumns();
      ranges.tmem.push_back({*column, end, type.isScales() ? "scale tile" : "tile", op});
    } else if (auto join = dyn_cast<ClusterReductionOpInterface>(op)) {
      return WalkResult(addJoin(ranges, join));
    }
    return WalkResult::advance();
  });
  if (placed.wasInterrupted() || failed(addStaged(ranges, kernel)) ||
      failed(addGathered(ranges, kernel)) || failed(addExchanged(ranges, kernel)))
    return failure();
  if (failed(verifyCluster(kernel, target)) || failed(checkRing(kernel, target, ranges)))
    return failure();
  FailureOr<int64_t> shared = attribute(kernel, PipeDialect::kSharedBytesAttr);
  FailureOr<int64_t> columns = attribute(kernel, PipeDialect::kTmemColumnsAttr);
  FailureOr<int64_t> slot = attribute(kernel, PipeDialect::kTmemSlotAttr);
  if (failed(shared) || failed(columns) || failed(slot) ||
      failed(checkLimits(kernel, target, *shared, *columns)))
    return failure();
  ranges.shared.push_back({*slot, *slot + 4, "tensor memory slot", kernel});
  if (failed(checkRanges(ranges.shared, *shared, "bytes", PipeDialect::kSharedBytesAttr)))
    return failure();
  return checkRanges(ranges.tmem, *columns, "columns", PipeDialect::kTmemColumnsAttr);
}

namespace {
struct VerifyCapacityPass : fp4::pipe::impl::VerifyCapacityBase<VerifyCapacityPass> {
  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      auto channels = kernel.getBody().getOps<ChannelOp>();
      if (llvm::none_of(channels, [](ChannelOp c) { return c.isPipelined(); }))
        return;
      FailureOr<hw::TargetModel> target = targetOf(kernel);
      if (failed(target) || failed(verifyKernel(kernel, *target)))
        signalPassFailure();
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
