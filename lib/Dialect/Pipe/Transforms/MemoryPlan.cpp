//===- MemoryPlan.cpp - Depths and places of a kernel's buffers -----------===//

#include "MemoryPlan.h"

#include "ChannelEnds.h"
#include "StageColumns.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/Dialect/Pipe/IR/Turns.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

static constexpr int64_t kBarrierBytes = 8;
/// Smallest tensor memory allocation.
static constexpr int64_t kMinTmemColumns = 32;

/// The end of the tiles of all shared channels.
static int64_t layOutTiles(MemoryPlan &plan) {
  struct Tile {
    ChannelPlan *channel;
    size_t index;
    SharedType type;
    size_t order;
  };
  SmallVector<Tile> tiles;
  for (ChannelPlan &channel : plan.channels) {
    if (!channel.isShared())
      continue;
    ArrayRef<Type> payload = channel.channel.getType().getPayload();
    channel.places.assign(payload.size(), 0);
    for (auto [i, type] : llvm::enumerate(payload))
      tiles.push_back({&channel, i, cast<SharedType>(type), tiles.size()});
  }
  llvm::sort(tiles, [](const Tile &x, const Tile &y) {
    return std::pair(-x.type.getAlignment(), x.order) < std::pair(-y.type.getAlignment(), y.order);
  });
  int64_t offset = 0;
  for (Tile &tile : tiles) {
    offset = llvm::alignTo(offset, tile.type.getAlignment());
    tile.channel->places[tile.index] = offset;
    offset += tile.channel->depth * tile.channel->channel.getStageStride(tile.index);
  }
  return offset;
}

static void layOutShared(MemoryPlan &plan) {
  int64_t offset = layOutTiles(plan);
  for (ReductionPlan &join : plan.joins) {
    join.place = llvm::alignTo(offset, ClusterReductionOpInterface::kReductionAlignment);
    offset = join.place + join.op.getReductionBytes();
  }
  if (plan.stagedBytes) {
    plan.stagedPlace = llvm::alignTo(offset, StoreOp::kStagedAlignment);
    offset = plan.stagedPlace + plan.stagedBytes;
  }
  offset = llvm::alignTo(offset, plan.workDepth ? kResponseBytes : kBarrierBytes);
  plan.workRing = offset;
  offset += plan.workDepth * kRingBytesPerResponse;
  for (ChannelPlan &channel : plan.channels) {
    channel.barriers = offset;
    offset += barrierBytes(channel.channel, channel.depth);
  }
  plan.tmemSlot = offset;
  plan.sharedBytes = offset + kBarrierBytes;
}

static void layOutTmem(MemoryPlan &plan) {
  int64_t column = 0;
  for (ChannelPlan &channel : plan.channels) {
    if (channel.isShared())
      continue;
    channel.places.clear();
    for (Type type : channel.channel.getType().getPayload()) {
      channel.places.push_back(column);
      int64_t size = cast<TmemType>(type).getTmemColumns();
      column += (channel.depth - 1) * (channel.stride ? channel.stride : size) + size;
    }
  }
  for (StageTilePlan &tile : plan.stageTiles) {
    tile.column = column;
    column += tile.sets * tile.getSetColumns();
  }
  plan.usedColumns = column;
  plan.tmemColumns = column ? std::max<int64_t>(kMinTmemColumns, llvm::PowerOf2Ceil(column)) : 0;
}

/// Stages that are filled from fragments in a row.
static int64_t stagesOfFragments(ChannelOp channel) {
  return llvm::count_if(channel->getUsers(), [](Operation *user) {
    auto acquire = dyn_cast<ProducerAcquireOp>(user);
    return acquire && llvm::any_of(acquire->getUsers(), [](Operation *filler) {
             auto stage = dyn_cast<StageOp>(filler);
             return stage && stage.isOfFragment();
           });
  });
}

/// Returns true for tiles that are loaded once for all of a work tile, in front of a loop that uses
/// them.
static bool isOfWorkTile(ChannelOp channel) {
  return llvm::all_of(channel->getUsers(), [](Operation *user) {
    if (!isa<ProducerAcquireOp>(user))
      return true;
    Operation *behind = user;
    while (behind && !isa<LoopLikeOpInterface>(behind))
      behind = behind->getNextNode();
    return behind && isa<ForEachWorkOp>(user->getParentOp());
  });
}

/// Returns the most stages that help a channel. A channel that is filled once has one. An
/// accumulator that a loop fills takes as long as the loop, and one more is enough to overlap it.
/// Among stages that are stored to global memory, one is read while the next is filled; fragments
/// leave registers all at once, because the tensor core waits for that. Scales that have a channel
/// of their own come in parts of a k tile, of which three cover a copy. A tile that a loop reads is
/// there as long as the loop, and one more is enough for the next loop.
int64_t fp4::pipe::mostStages(ChannelOp channel, int64_t most) {
  constexpr int64_t mostScales = 4;
  if (channel->hasAttr(kKeptAttr))
    return 1;
  if (hasOnlyScales(channel))
    most = std::min(most, mostScales);
  if (llvm::is_contained(channel.getConsumerEngines(), Engine::BulkStore))
    return std::max<int64_t>(stagesOfFragments(channel), std::min<int64_t>(most, 2));
  if (channel.getType().isShared() && isOfWorkTile(channel))
    most = std::min<int64_t>(most, 2);
  for (Operation *user : channel->getUsers()) {
    if (!isa<ProducerAcquireOp>(user))
      continue;
    if (isa<RoleRegionOp>(user->getParentOp()))
      return 1;
    for (Operation *op = user; op && !channel.getType().isShared(); op = op->getNextNode()) {
      if (isa<LoopLikeOpInterface>(op))
        return std::min<int64_t>(most, 2);
      if (isa<ProducerCommitOp>(op) && llvm::is_contained(op->getOperands(), channel.getResult()))
        break;
    }
  }
  return most;
}

/// The turn in which a channel gets stages: with what those of earlier turns leave.
static int turnOf(ChannelOp channel) {
  if (stagesOfFragments(channel) > 0)
    return 2;
  return channel.getType().isShared() && isOfWorkTile(channel) ? 1 : 0;
}

/// Deepens the channels of a turn one after the other while the layout fits.
static void deepen(MemoryPlan &plan, bool shared, int64_t limit,
                   llvm::function_ref<bool()> layOutAndFits, int turn = 0) {
  for (bool grown = true; grown;) {
    grown = false;
    for (ChannelPlan &channel : plan.channels) {
      if (channel.isShared() != shared ||
          channel.depth + channel.step > mostStages(channel.channel, limit) ||
          turnOf(channel.channel) != turn)
        continue;
      channel.depth += channel.step;
      if (layOutAndFits())
        grown = true;
      else
        channel.depth -= channel.step;
    }
  }
  layOutAndFits();
}

/// Returns true for tiles in tensor memory that threads write beside sums that are kept: with two
/// of them a thread writes without a wait for the MMA before.
static bool isBesideKept(const MemoryPlan &plan, ChannelOp channel) {
  bool haveKept = llvm::any_of(
      plan.channels, [](const ChannelPlan &other) { return other.channel->hasAttr(kKeptAttr); });
  return haveKept && !channel.getType().isShared() && channel.getProducer() == Engine::Threads;
}

static void deepenTmem(MemoryPlan &plan, int64_t limit, llvm::function_ref<bool()> fits) {
  constexpr int64_t two = 2;
  for (ChannelPlan &channel : plan.channels)
    if (isBesideKept(plan, channel.channel) && limit >= two) {
      ++channel.depth;
      if (!fits())
        --channel.depth;
    }
  deepen(plan, /*shared=*/false, limit, fits);
}

static void deepenShared(MemoryPlan &plan, int64_t limit, llvm::function_ref<bool()> fits) {
  constexpr int64_t two =
      2; // the next tile of a loop is worth more than a third stage inside of it
  for (int turn : {0, 1})
    deepen(plan, /*shared=*/true, std::min(limit, two), fits, turn);
  for (int turn : {0, 1, 2})
    deepen(plan, /*shared=*/true, limit, fits, turn);
}

/// Sets of scales that are of use. One warp that multiplies and copies scales knows the addresses
/// of two sets, and its wait for the MMAs that read a set is part of the wait for the stage. If a
/// CTA has one tile, copies that wait for no MMAs are worth more than these instructions.
static int64_t mostSets(const ChannelPlan &channel, bool hasSeveralTiles) {
  constexpr int64_t kKnown = 2;
  bool isOneWarp = !feedsScaleWarp(channel.channel) && hasSeveralTiles;
  return isOneWarp ? std::min(channel.depth, kKnown) : channel.depth;
}

/// Gives the tiles made from a channel as many sets as are of use, or as many as fit.
static void deepenStageTiles(MemoryPlan &plan, bool hasSeveralTiles,
                             llvm::function_ref<bool()> layOutAndFits) {
  auto addSets = [&](ChannelOp channel, int64_t more) {
    for (StageTilePlan &tile : plan.stageTiles)
      if (tile.channel == channel)
        tile.sets += more;
  };
  auto setsOf = [&](ChannelOp channel) -> int64_t {
    for (StageTilePlan &tile : plan.stageTiles)
      if (tile.channel == channel)
        return tile.sets;
    return std::numeric_limits<int64_t>::max();
  };
  for (ChannelPlan &channel : plan.channels)
    while (setsOf(channel.channel) < mostSets(channel, hasSeveralTiles)) {
      addSets(channel.channel, 1);
      if (layOutAndFits())
        continue;
      addSets(channel.channel, -1);
      break;
    }
  layOutAndFits();
}

/// The wait of the one role that reads accumulators of `channel`; null where several tiles are
/// handed over, or to several.
static ConsumerWaitOp readerOf(ChannelOp channel) {
  ConsumerWaitOp reader;
  for (Operation *user : channel->getUsers())
    if (auto wait = dyn_cast<ConsumerWaitOp>(user)) {
      if (reader || channel.getType().getPayload().size() != 1)
        return {};
      reader = wait;
    }
  return reader;
}

/// Returns true when two accumulators may have `common` columns in common: a role that reads these
/// first gives them back before it has read half of a tile.
static bool areReadFirst(ChannelOp channel, int64_t columns, int64_t common) {
  ConsumerWaitOp wait = readerOf(channel);
  SmallVector<ReadOp> reads = wait ? readsOf(wait) : SmallVector<ReadOp>();
  ReadOp last = 2 * common < columns ? lastCommonRead(reads, wait, columns, common) : ReadOp();
  return last && 2 * (llvm::find(reads, last) - reads.begin()) < ptrdiff_t(reads.size());
}

/// Gives a channel that has room for one accumulator a second one, which begins within the first.
/// The columns that scales need say how many the two have in common. There are at least two sets of
/// scales, so that the MMAs of one k tile are on their way while the scales of the next are copied.
static void overlapAccumulators(MemoryPlan &plan, ChannelPlan &channel, int64_t capacity,
                                llvm::function_ref<bool()> fits) {
  constexpr int64_t kFewestSets = 2, kAlignment = 4;
  auto sets = llvm::map_to_vector(plan.stageTiles, [](const StageTilePlan &t) { return t.sets; });
  int64_t columns = cast<TmemType>(channel.channel.getType().getPayload()[0]).getTmemColumns();
  channel.depth = 2;
  for (int64_t most = sets.empty() ? 0 : *llvm::max_element(sets); most >= kFewestSets; --most) {
    for (auto [tile, original] : llvm::zip_equal(plan.stageTiles, sets))
      tile.sets = std::min(most, original);
    channel.stride = columns;
    layOutTmem(plan);
    int64_t common = llvm::alignTo(std::max<int64_t>(plan.usedColumns - capacity, 0), kAlignment);
    channel.stride = columns - common;
    if (areReadFirst(channel.channel, columns, common) && fits())
      return;
  }
  channel.depth = 1;
  channel.stride = 0;
  for (auto [tile, number] : llvm::zip_equal(plan.stageTiles, sets))
    tile.sets = number;
  fits();
}

int64_t fp4::pipe::sharedBytesOfEach(const hw::TargetModel &target, int64_t blocks) {
  return int64_t(target.limits.sharedBytesPerSM) / blocks - target.limits.sharedReservedPerCta;
}

Capacity fp4::pipe::capacityOf(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  int64_t blocks = ctasPerSm(kernel);
  int64_t share = sharedBytesOfEach(target, blocks);
  return {std::min<int64_t>(target.limits.sharedBytesPerCta, share),
          target.limits.tmemColumns / blocks};
}

int64_t StageTilePlan::getSetColumns() const {
  return cast<TmemType>(TmemTileOpInterface(ops.front()).getTmemTile().getType()).getTmemColumns();
}

int64_t fp4::pipe::workRingDepth(gpu::GPUFuncOp kernel) {
  int64_t depth = 0;
  kernel.walk(
      [&](ForEachWorkOp work) { depth = std::max(depth, work.getSchedule().getRingDepth()); });
  return depth;
}

/// The channel whose stages `tile` is made from, or null.
static ChannelOp channelOfStage(TmemTileOpInterface tile) {
  auto wait = tile.getStageTile().getDefiningOp<ConsumerWaitOp>();
  return wait ? wait.getChannel().getDefiningOp<ChannelOp>() : ChannelOp();
}

static void addStageTile(MemoryPlan &plan, TmemTileOpInterface tile) {
  for (StageTilePlan &other : plan.stageTiles)
    if (shareSets(other.ops.front(), tile)) {
      other.ops.push_back(tile);
      return;
    }
  plan.stageTiles.push_back({{tile}, channelOfStage(tile)});
}

/// Stages of `channel` after which it is the turn of the same warpgroup again. Each has stages of
/// its own: it waits for a phase of a stage, and that tells nothing unless it has seen the phase
/// before.
static int64_t turnsOf(ChannelOp channel) {
  int64_t turns = 1;
  for (Operation *user : channel->getUsers())
    if (auto region = user->getParentOfType<RoleRegionOp>()) {
      RoleAttr role = region.getRole();
      int64_t groups = role.getNumThreads() / role.getStageThreads();
      if (groups > 1)
        turns = std::max(turns, groups * stagesOfIteration(channel, region));
    }
  return turns;
}

/// Collects the ops of `kernel` that need a place and have none.
static MemoryPlan collect(gpu::GPUFuncOp kernel) {
  MemoryPlan plan;
  kernel.walk([&](Operation *op) {
    if (auto channel = dyn_cast<ChannelOp>(op)) {
      int64_t step = turnsOf(channel);
      plan.channels.push_back({channel, step, {}, 0});
      plan.channels.back().step = step;
    } else if (auto tile = dyn_cast<TmemTileOpInterface>(op))
      addStageTile(plan, tile);
    else if (auto join = dyn_cast<ClusterReductionOpInterface>(op))
      plan.joins.push_back({join});
    else if (auto store = dyn_cast<StoreOp>(op))
      plan.stagedBytes = std::max(plan.stagedBytes, store.getStagedBytes());
    else if (auto gather = dyn_cast<GatherRowsOp>(op))
      plan.stagedBytes = std::max(plan.stagedBytes, gather.getStagedBytes());
    else if (auto quantize = dyn_cast<QuantizeBlocksOp>(op))
      plan.stagedBytes = std::max(plan.stagedBytes, quantize.getStagedBytes());
  });
  plan.workDepth = workRingDepth(kernel);
  return plan;
}

FailureOr<MemoryPlan> fp4::pipe::planMemory(gpu::GPUFuncOp kernel, const hw::TargetModel &target,
                                            const PlanOptions &options) {
  MemoryPlan plan = collect(kernel);
  Capacity whole = capacityOf(kernel, target);
  int64_t capacity = whole.sharedBytes - options.reserveBytes;
  auto tmemFits = [&] {
    layOutTmem(plan);
    return plan.usedColumns <= whole.tmemColumns && plan.tmemColumns <= whole.tmemColumns;
  };
  auto sharedFits = [&] {
    layOutShared(plan);
    return plan.sharedBytes <= capacity;
  };
  if (!tmemFits())
    return withNote(kernel.emitOpError() << "tiles must fit in the " << whole.tmemColumns
                                         << " tensor memory columns of " << StringRef(target.name)
                                         << ", but take " << plan.usedColumns,
                    "take narrower tiles, or fewer stages of accumulators");
  deepenTmem(plan, options.maxAccumulators, tmemFits);
  if (!sharedFits())
    return withNote(kernel.emitOpError() << "one stage of every channel must fit in " << capacity
                                         << " bytes of shared memory of " << StringRef(target.name)
                                         << ", but takes " << plan.sharedBytes,
                    "take smaller tiles in the kernel's plan");
  deepenShared(plan, options.maxStages, sharedFits);
  deepenStageTiles(plan, options.maxAccumulators > 1, tmemFits);
  for (ChannelPlan &channel : plan.channels)
    if (!channel.isShared() && channel.depth == 1 &&
        mostStages(channel.channel, options.maxAccumulators) > 1)
      overlapAccumulators(plan, channel, whole.tmemColumns,
                          [&] { return tmemFits() && sharedFits(); });
  return plan;
}
