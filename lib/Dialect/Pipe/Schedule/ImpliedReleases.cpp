//===- ImpliedReleases.cpp - Stages that are known to be empty ------------===//
//
// Rings whose ops are in the same loops walk in step, one stage of each in an iteration. The waits
// of a producer may then imply that the consumers have released the stage that it fills next. With
// warps that convert an operand of wgmma,
//
//   load                     convert                 math
//   acquire raw              wait codes              wait raw
//   announce raw             acquire tiles           wait tiles
//   acquire codes            convert codes -> tiles  multiply raw, tiles
//   announce codes           commit tiles            release tiles
//                            release codes           release raw
//
// the loads of iteration i wait until stage i - d of raw is released, d stages deep. The math warps
// had waited for tiles i - d, for which all threads that convert had read codes i - d; and they
// released tiles i - d before. So a role that fills codes or tiles need not wait, if these rings
// are not shallower.
//
// In general: a chain leads from the last use of a stage by each consumer to the acquire that
// follows, at most as many iterations later as the ring has stages. The links of a chain are the
// order of a role's ops, of one iteration and of the next, the wait for a stage that is filled, and
// the wait for one that is released, `depth` iterations later. Each arrival releases and each wait
// acquires, and all threads of a role arrive, so that what is before the chain happens before what
// is behind it (PTX ISA, "Causality order", which is transitive). The loads of TMA arrive when they
// are announced, by the thread that has waited. Such a chain also shows that nobody waits for the
// last fill of a stage when the next one begins.
//
// Threads that wait for the sums of an MMA know that it has read its operand A from tensor memory:
// they need not wait where the sums of the tile that was in the stage before have been seen.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fp4::pipe;

namespace {

/// The ops of a channel if each role has one of each kind, all in one basic block.
struct Ring {
  /// The ops of a consumer.
  struct Use {
    ConsumerWaitOp wait;
    Operation *release;
  };
  ChannelOp channel;
  Operation *acquire = nullptr;
  Operation *fill = nullptr; ///< the first fill that a consumer waits for; its wait comes after it
  SmallVector<Use, 1> uses;

  /// Returns nothing where threads do not wait or arrive in this way.
  static std::optional<Ring> of(ChannelOp channel);
};

/// The order of the ops of several rings, in iterations.
class Order {
public:
  explicit Order(ArrayRef<Ring> rings) : rings(rings) {}

  /// Returns true when the acquire comes behind all uses of its stage without waiting.
  bool implies(const Ring &ring) const;

private:
  std::optional<int64_t> distance(Operation *from, Operation *to, const Ring &without) const;
  void forEachNext(Operation *op, const Ring &without,
                   llvm::function_ref<void(Operation *, int64_t)> next) const;

  ArrayRef<Ring> rings;
};

} // namespace

/// The only op with this use of the channel, of `role` if there is one; null if there is none, or
/// several.
static Operation *onlyUse(ChannelOp channel, ChannelUse use, Operation *role = nullptr) {
  Operation *found = nullptr;
  for (Operation *user : channel->getUsers()) {
    if (cast<ChannelOpInterface>(user).getChannelUse() != use ||
        (role && !role->isProperAncestor(user)))
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

std::optional<Ring> Ring::of(ChannelOp channel) {
  const Engine producer = channel.getProducer();
  auto areThreads = [](Engine engine) { return engine == Engine::Threads; };
  if (channel.isCluster() || !channel.getType().isShared() ||
      (producer != Engine::Tma && producer != Engine::Threads) ||
      !llvm::all_of(channel.getConsumerEngines(), areThreads))
    return std::nullopt;
  Ring ring;
  ring.channel = channel;
  ring.acquire = onlyUse(channel, ChannelUse::Acquire);
  ring.fill = onlyUse(channel, producer == Engine::Tma ? ChannelUse::Announce : ChannelUse::Commit);
  bool isWhole = ring.acquire && ring.fill && ring.fill->getBlock() == ring.acquire->getBlock();
  for (Operation *user : channel->getUsers()) {
    auto wait = dyn_cast<ConsumerWaitOp>(user);
    ChannelUse use = cast<ChannelOpInterface>(user).getChannelUse();
    isWhole &= use != ChannelUse::AwaitRelease && use != ChannelUse::PartialRelease;
    if (!wait)
      continue;
    Operation *role = wait->getParentOfType<RoleRegionOp>();
    Operation *release = onlyUse(channel, ChannelUse::Release, role);
    isWhole &= release && release->getBlock() == wait->getBlock() &&
               onlyUse(channel, ChannelUse::Wait, role);
    ring.uses.push_back({wait, release});
  }
  isWhole &= ring.uses.size() == channel.getConsumers().size();
  return isWhole ? std::optional(ring) : std::nullopt;
}

/// The last op of the role that reads tiles of the stage. An MMA may still read its tiles after the
/// op: then the release.
static Operation *lastUse(const Ring::Use &use) {
  Operation *last = ConsumerWaitOp(use.wait);
  for (Operation *user : last->getUsers()) {
    auto op = dyn_cast<EngineOpInterface>(user);
    if (!op || op.getEngine() == Engine::Tensor ||
        llvm::any_of(user->getResultTypes(), llvm::IsaPred<SharedType>))
      return use.release;
    Operation *around = last->getBlock()->findAncestorOpInBlock(*user);
    last = last->isBeforeInBlock(around) ? around : last;
  }
  return last;
}

/// Calls `next` with each op that comes behind `op`, and how many iterations later. Nobody waits
/// for the release of `without`.
void Order::forEachNext(Operation *op, const Ring &without,
                        llvm::function_ref<void(Operation *, int64_t)> next) const {
  auto inRole = [&](Operation *other) {
    if (other->getBlock() == op->getBlock())
      next(other, op->isBeforeInBlock(other) ? 0 : 1);
  };
  for (const Ring &ring : rings) {
    inRole(ring.acquire);
    inRole(ring.fill);
    bool isAwaited = &ring != &without && !ChannelOp(ring.channel).getWithoutEmpty();
    for (const Ring::Use &use : ring.uses) {
      inRole(use.wait);
      inRole(use.release);
      if (op == ring.fill)
        next(use.wait, 0);
      if (op == use.release && isAwaited)
        next(ring.acquire, *ChannelOp(ring.channel).getDepth());
    }
  }
}

/// Iterations from `from` to `to` by the shortest chain, if there is one.
std::optional<int64_t> Order::distance(Operation *from, Operation *to, const Ring &without) const {
  llvm::MapVector<Operation *, int64_t> distances;
  distances[from] = 0;
  for (bool changed = true; std::exchange(changed, false);)
    for (size_t i = 0; i < distances.size(); ++i) {
      auto [op, before] = distances.begin()[i];
      forEachNext(op, without, [&, before = before](Operation *next, int64_t more) {
        auto [place, isNew] = distances.insert({next, before + more});
        if (!isNew && place->second <= before + more)
          return;
        place->second = before + more;
        changed = true;
      });
    }
  auto found = distances.find(to);
  return found == distances.end() ? std::nullopt : std::optional(found->second);
}

bool Order::implies(const Ring &ring) const {
  ChannelOp channel = ring.channel;
  return llvm::all_of(ring.uses, [&](const Ring::Use &use) {
    // A copy that overwrites what threads have read needs a fence, which the release may have.
    bool isFenced = channel.getProducer() == Engine::Threads ||
                    cast<ConsumerReleaseOp>(use.release).getUnfenced();
    std::optional<int64_t> iterations = distance(lastUse(use), ring.acquire, ring);
    return isFenced && iterations && *iterations <= int64_t(*channel.getDepth());
  });
}

//===--- Operands in tensor memory ----------------------------------------===//

/// The channel by which the MMA of the tile of `wait` hands over its sums, behind the MMA; null if
/// there is another use of the tile.
static ChannelOp sumsBehind(ConsumerWaitOp wait) {
  if (wait->getNumResults() != 1 || !wait->getResult(0).hasOneUse())
    return {};
  auto product = dyn_cast<MmaOp>(*wait->getUsers().begin());
  auto sums = product ? product.getAccumulator().getDefiningOp<ProducerAcquireOp>() : nullptr;
  if (!sums || product->getBlock() != wait->getBlock())
    return {};
  bool isHandedOver = llvm::any_of(sums.getChannel().getUsers(), [&](Operation *user) {
    return isa<ProducerCommitOp>(user) && user->getBlock() == product->getBlock() &&
           product->isBeforeInBlock(user);
  });
  return isHandedOver ? sums.getChannel().getDefiningOp<ChannelOp>() : ChannelOp();
}

/// The channel of the sums of all MMAs of tiles of `channel`, one for each; null if there is none.
static ChannelOp sumsOf(ChannelOp channel) {
  ChannelOp found;
  int64_t tiles = 0, commits = 0;
  for (Operation *user : channel->getUsers())
    if (auto wait = dyn_cast<ConsumerWaitOp>(user)) {
      ChannelOp sums = sumsBehind(wait);
      if (!sums || (found && found != sums))
        return {};
      found = sums;
      ++tiles;
    }
  for (Operation *user : found ? found->getUsers() : channel->getUsers())
    commits += isa<ProducerCommitOp>(user);
  return commits == tiles ? found : ChannelOp();
}

/// Returns how many tiles of `channel` the threads of `block` have acquired behind it without their
/// sums, if they had so many as `ahead` in front of it; nothing if that differs between paths, or
/// if a stage is taken whose sums they have not seen.
static std::optional<int64_t> tilesAhead(Block &block, ChannelOp channel, ChannelOp sums,
                                         int64_t ahead) {
  for (Operation &op : block) {
    auto use = dyn_cast<ChannelOpInterface>(op);
    if (isa<ProducerAcquireOp>(op) && use.getChannel() == channel) {
      if (ahead++ >= int64_t(*channel.getDepth()))
        return std::nullopt;
    } else if (isa<ConsumerWaitOp>(op) && use.getChannel() == sums) {
      --ahead;
    }
    for (Region &region : op.getRegions())
      for (Block &inside : region)
        if (tilesAhead(inside, channel, sums, ahead) != std::optional(ahead))
          return std::nullopt;
  }
  return ahead;
}

/// Returns true when threads fill stages of tensor memory behind waits for the sums of the MMAs
/// that have read them.
static bool hasSeenSums(gpu::GPUFuncOp kernel, ChannelOp channel) {
  if (channel.isCluster() || channel.getType().isShared() ||
      channel.getProducer() != Engine::Threads ||
      channel.getConsumerEngines() != ArrayRef(Engine::Tensor))
    return false;
  ChannelOp sums = sumsOf(channel);
  return sums && llvm::all_of(kernel.getOps<RoleRegionOp>(), [&](RoleRegionOp region) {
           return tilesAhead(region.getBody().front(), channel, sums, 0) == std::optional(0L);
         });
}

void fp4::pipe::findImpliedReleases(gpu::GPUFuncOp kernel) {
  SmallVector<Ring> rings;
  for (auto channel : kernel.getOps<ChannelOp>())
    if (std::optional<Ring> ring = Ring::of(channel))
      rings.push_back(*ring);
  for (const Ring &ring : rings)
    if (Order(rings).implies(ring))
      ChannelOp(ring.channel).setWithoutEmpty(true);
  for (auto channel : kernel.getOps<ChannelOp>())
    if (hasSeenSums(kernel, channel))
      channel.setWithoutEmpty(true);
}
