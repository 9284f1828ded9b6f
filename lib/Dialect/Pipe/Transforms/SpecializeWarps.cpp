//===- SpecializeWarps.cpp - Every warp role gets its own code ------------===//
//
// From the sequential to the specialized form, by the roles of ops alone:
//  1. A tile (a value in shared or tensor memory) crosses when its defining op and a user have
//     different roles. The crossing tiles of one block with the same producer and consumer become
//     one channel.
//  2. Every role gets a copy of the code with regions. Ops of other roles are erased from it, and
//     its ends of channels are put in: acquire and commit around its accesses to the tiles it
//     produces, wait and release around those to the tiles it consumes.
//  3. What has become dead in a copy is erased. Scalar code before the roles that one role alone
//     needs moves there.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/MapVector.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4::pipe;

namespace {
/// Warps of a role, and what completes its side of a channel.
struct RoleFacts {
  Role role;
  int32_t firstWarp, endWarp;
  Agent agent;
  int32_t arrivals;
};
/// Epilogue warps come first because a warp reads the tensor memory lanes of its index modulo 4.
constexpr RoleFacts kRoles[] = {{Role::Load, 5, 6, Agent::Tma, 1},
                                {Role::Mma, 4, 5, Agent::Mma, 1},
                                {Role::Epilogue, 0, 4, Agent::Threads, 128}};
constexpr int32_t kThreads = 192;

const RoleFacts *factsOf(Role role) {
  for (const RoleFacts &facts : kRoles)
    if (facts.role == role)
      return &facts;
  return nullptr;
}

/// Tiles that one block hands from one role to another.
struct Crossing {
  Role producer, consumer;
  SmallVector<Value> tiles; ///< in the order of their definitions
  ChannelOp channel;

  Block *block() const { return Value(tiles.front()).getParentBlock(); }
};

class KernelSpecializer {
public:
  explicit KernelSpecializer(gpu::GPUFuncOp kernel) : kernel(kernel) {}
  LogicalResult run();
  size_t numChannels() const { return crossings.size(); }

private:
  LogicalResult checkOps();
  LogicalResult findCrossings();
  LogicalResult addTile(Value tile, Role producer);
  void createChannels(OpBuilder &builder);
  LogicalResult buildRole(OpBuilder &builder, const RoleFacts &facts);
  void putProducerEnd(OpBuilder &builder, Crossing &crossing, IRMapping &mapping);
  void putConsumerEnd(OpBuilder &builder, Crossing &crossing, Role role, IRMapping &mapping);
  LogicalResult eraseOtherRoles(RoleRegionOp region);
  void sinkScalars();

  gpu::GPUFuncOp kernel;
  SmallVector<Operation *> body; ///< top-level ops that the roles copy
  SmallVector<Crossing> crossings;
  SmallVector<Operation *> replaced; ///< ops of the role being built whose tiles are slots now
};
} // namespace

static bool isTile(Type type) { return isa<SharedType, TmemType>(type); }

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

LogicalResult KernelSpecializer::checkOps() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("expects structured control flow in one block");
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    if (auto roleOp = dyn_cast<RoleOpInterface>(op)) {
      if (factsOf(roleOp.getRole()))
        return WalkResult::advance();
      op->emitOpError() << "role " << stringifyRole(roleOp.getRole()) << " has no warps";
      return WalkResult::interrupt();
    }
    if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op))
      return WalkResult::advance();
    op->emitOpError("has side effects but no role")
            .attachNote()
        << "only ops without side effects may be executed by every role";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult KernelSpecializer::addTile(Value tile, Role producer) {
  std::optional<Role> consumer;
  for (Operation *user : tile.getUsers()) {
    auto roleOp = dyn_cast<RoleOpInterface>(user);
    if (!roleOp || roleOp.getRole() == producer)
      continue;
    if (consumer && *consumer != roleOp.getRole())
      return user->emitOpError() << "tile has a second consumer, role "
                                 << stringifyRole(roleOp.getRole()) << ", but a channel has one, "
                                 << stringifyRole(*consumer);
    consumer = roleOp.getRole();
  }
  if (!consumer)
    return success();
  for (Crossing &crossing : crossings)
    if (crossing.producer == producer && crossing.consumer == *consumer &&
        crossing.block() == tile.getParentBlock()) {
      crossing.tiles.push_back(tile);
      return success();
    }
  crossings.push_back({producer, *consumer, {tile}, {}});
  return success();
}

LogicalResult KernelSpecializer::findCrossings() {
  WalkResult result = kernel.getBody().walk([&](RoleOpInterface op) {
    for (Value value : op->getResults())
      if (isTile(value.getType()) && failed(addTile(value, op.getRole())))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

void KernelSpecializer::createChannels(OpBuilder &builder) {
  for (Crossing &crossing : crossings) {
    auto payload = llvm::map_to_vector(crossing.tiles, [](Value v) { return v.getType(); });
    auto type = ChannelType::get(builder.getContext(), payload);
    const RoleFacts *from = factsOf(crossing.producer), *to = factsOf(crossing.consumer);
    crossing.channel = ChannelOp::create(
        builder, crossing.tiles.front().getLoc(), type, from->agent, from->arrivals, to->agent,
        to->arrivals, IntegerAttr(), DenseI64ArrayAttr(), IntegerAttr());
  }
}

/// The ops of `block` that are, or contain, users of `values` for which `keep` holds; first and
/// last.
static std::pair<Operation *, Operation *>
userRange(Block *block, ValueRange values, llvm::function_ref<bool(Operation *)> keep) {
  Operation *first = nullptr, *last = nullptr;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = keep(user) ? block->findAncestorOpInBlock(*user) : nullptr;
      if (!ancestor)
        continue;
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
      if (!last || last->isBeforeInBlock(ancestor))
        last = ancestor;
    }
  return {first, last};
}

/// Makes the op that returned `tile` fill `slot` instead.
static void fillSlot(Value tile, Value slot, Value channel) {
  Operation *op = tile.getDefiningOp();
  OpBuilder builder(op);
  if (auto load = dyn_cast<LoadOp>(op))
    LoadOp::create(builder, op->getLoc(), Type(), load.getMap(), load.getRow(), load.getColumn(),
                   slot, channel, Value());
  else if (auto scales = dyn_cast<LoadScalesOp>(op))
    LoadScalesOp::create(builder, op->getLoc(), Type(), scales.getSource(), scales.getRowBlock(),
                         scales.getColumnBlock(), scales.getBlocks(), slot, channel, Value());
  else if (auto matrix = dyn_cast<HadamardMatrixOp>(op))
    HadamardMatrixOp::create(builder, op->getLoc(), Type(), matrix.getSignsAttr(), slot);
}

void KernelSpecializer::putProducerEnd(OpBuilder &builder, Crossing &crossing,
                                       IRMapping &mapping) {
  auto tiles =
      llvm::map_to_vector(crossing.tiles, [&](Value v) { return mapping.lookup(v); });
  Operation *firstDef = tiles.front().getDefiningOp();
  Location loc = firstDef->getLoc();
  builder.setInsertionPoint(firstDef);
  auto acquire = ProducerAcquireOp::create(builder, loc, crossing.channel, Value());
  for (auto [tile, slot] : llvm::zip_equal(tiles, acquire.getSlots())) {
    fillSlot(tile, slot, crossing.channel);
    replaced.push_back(tile.getDefiningOp());
    tile.replaceUsesWithIf(slot, [&](OpOperand &use) {
      auto roleOp = dyn_cast<RoleOpInterface>(use.getOwner());
      return roleOp && roleOp.getRole() == crossing.producer;
    });
  }
  auto [first, last] = userRange(acquire->getBlock(), acquire.getSlots(),
                                 [](Operation *) { return true; });
  builder.setInsertionPointAfter(last ? last : acquire);
  ProducerCommitOp::create(builder, loc, crossing.channel, Value());
}

void KernelSpecializer::putConsumerEnd(OpBuilder &builder, Crossing &crossing, Role role,
                                       IRMapping &mapping) {
  auto tiles =
      llvm::map_to_vector(crossing.tiles, [&](Value v) { return mapping.lookup(v); });
  auto hasRole = [&](Operation *op) {
    auto roleOp = dyn_cast<RoleOpInterface>(op);
    return roleOp && roleOp.getRole() == role;
  };
  Block *block = tiles.front().getParentBlock();
  auto [first, last] = userRange(block, tiles, hasRole);
  Location loc = first->getLoc();
  builder.setInsertionPoint(first);
  auto wait = ConsumerWaitOp::create(builder, loc, crossing.channel, Value());
  for (auto [tile, slot] : llvm::zip_equal(tiles, wait.getSlots()))
    tile.replaceUsesWithIf(slot, [&](OpOperand &use) { return hasRole(use.getOwner()); });
  builder.setInsertionPointAfter(last);
  ConsumerReleaseOp::create(builder, loc, crossing.channel, Value());
}

/// Erases ops of `root` that nothing needs, loops left without an effect included. Ops that have a role
/// stay: who erases those of other roles knows them.
static void eraseDead(Operation *root) {
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != root && !isa<RoleOpInterface>(op) && isOpTriviallyDead(op))
      op->erase();
  });
}

LogicalResult KernelSpecializer::eraseOtherRoles(RoleRegionOp region) {
  SmallVector<Operation *> others;
  region.getBody().walk([&](RoleOpInterface op) {
    if (op.getRole() != region.getRole())
      others.push_back(op);
  });
  llvm::append_range(others, std::exchange(replaced, {}));
  for (Operation *op : others)
    op->dropAllReferences();
  eraseDead(region); // scalar code that only other roles needed
  for (Operation *op : others) {
    if (!op->use_empty()) {
      Operation *user = *op->user_begin();
      return user->emitOpError() << "value of " << op->getName() << " cannot cross from role "
                                 << stringifyRole(cast<RoleOpInterface>(op).getRole()) << " to "
                                 << stringifyRole(region.getRole());
    }
    op->erase();
  }
  eraseDead(region);
  return success();
}

LogicalResult KernelSpecializer::buildRole(OpBuilder &builder, const RoleFacts &facts) {
  auto region = RoleRegionOp::create(builder, kernel.getLoc(), facts.role, facts.firstWarp,
                                     facts.endWarp);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&region.getBody().emplaceBlock());
  IRMapping mapping;
  for (Operation *op : body)
    builder.clone(*op, mapping);
  for (Crossing &crossing : crossings) {
    if (crossing.producer == facts.role)
      putProducerEnd(builder, crossing, mapping);
    if (crossing.consumer == facts.role)
      putConsumerEnd(builder, crossing, facts.role, mapping);
  }
  return eraseOtherRoles(region);
}

void KernelSpecializer::sinkScalars() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front()))) {
    if (op.getNumRegions() || op.use_empty() || !isMemoryEffectFree(&op) ||
        op.hasTrait<OpTrait::ConstantLike>())
      continue;
    RoleRegionOp target;
    bool onlyOne = llvm::all_of(op.getUsers(), [&](Operation *user) {
      auto role = user->getParentOfType<RoleRegionOp>();
      bool same = role && (!target || role == target);
      target = role;
      return same;
    });
    if (onlyOne)
      op.moveBefore(&target.getBody().front(), target.getBody().front().begin());
  }
}

LogicalResult KernelSpecializer::run() {
  if (failed(checkOps()) || failed(findCrossings()))
    return failure();
  llvm::SmallSetVector<Role, 4> used;
  kernel.getBody().walk([&](RoleOpInterface op) { used.insert(op.getRole()); });
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto inBody = [&](Value v) { return llvm::is_contained(body, v.getDefiningOp()); };
    if (op.getNumRegions() || isa<RoleOpInterface>(op) || llvm::any_of(op.getOperands(), inBody))
      body.push_back(&op);
  }

  OpBuilder builder(kernel.getBody().front().getTerminator());
  createChannels(builder);
  for (const RoleFacts &facts : kRoles)
    if (used.contains(facts.role) && failed(buildRole(builder, facts)))
      return failure();
  for (Operation *op : llvm::reverse(body))
    op->erase();
  sinkScalars();
  eraseDead(kernel);
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// The kernel has tile ops and no roles yet.
static bool isSequential(gpu::GPUFuncOp func) {
  bool tileOps = false, roles = false;
  func.walk([&](Operation *op) {
    tileOps |= isa<RoleOpInterface>(op);
    roles |= isa<RoleRegionOp>(op);
  });
  return tileOps && !roles;
}

static LogicalResult checkBlockSize(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownBlockSize();
  if (size && ((*size)[0] != kThreads || (*size)[1] != 1 || (*size)[2] != 1))
    return kernel.emitOpError() << "expects a block of " << kThreads
                                << " threads, one warp per load and mma and four for the epilogue, "
                                   "but got "
                                << (*size)[0] << "x" << (*size)[1] << "x" << (*size)[2];
  kernel.setKnownBlockSizeAttr(
      DenseI32ArrayAttr::get(kernel.getContext(), {kThreads, 1, 1}));
  return success();
}

namespace {
struct SpecializeWarpsPass : fp4::pipe::impl::SpecializeWarpsBase<SpecializeWarpsPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](gpu::GPUFuncOp func) {
      if (!isSequential(func))
        return WalkResult::skip();
      KernelSpecializer specializer(func);
      if (failed(checkBlockSize(func)) || failed(specializer.run()))
        return WalkResult::interrupt();
      ++numKernels;
      numChannels += specializer.numChannels();
      return WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
