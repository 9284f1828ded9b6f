//===- SpecializeWarps.cpp - Every warp role gets its own code ------------===//
//
// From the sequential to the specialized form. The role of an op is the one that drives its engine
// in the kernel's role plan:
//  1. A tile (a value in shared or tensor memory) crosses when its defining op and a user have
//     different roles. A tile that one role both makes and uses stays a value of that role. The
//     crossing tiles of one block of code with the same producer and consumer become one channel.
//     Tiles of one type of which each has been used when the next is made are successive stages of
//     it, or begin one, all others are together in one stage. If the kernel says so, scales that a
//     role copies and operands that it multiplies have channels of their own.
//  2. Every role gets a copy of the code with regions. Ops of other roles are erased from it, and
//     its ends of channels are put in: acquire and commit around its accesses to the tiles it
//     produces, wait and release around those to the tiles it consumes.
//  3. Ops that have become dead in a copy are erased. Scalar code before the roles that one role
//     alone needs moves there.
//
//===----------------------------------------------------------------------===//

#include "CarriedValues.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
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
/// Tiles that one block of code hands from one role to another.
struct Crossing {
  RoleAttr producer;
  Engine fills; ///< engine of the ops that fill the tiles
  /// Roles that use the tiles, in the order of the plan, with an engine of theirs that does.
  SmallVector<std::pair<RoleAttr, Engine>> consumers;
  /// The tiles of each stage, in the order of their definitions. All stages have tiles of the same
  /// types.
  SmallVector<SmallVector<Value>> stages;
  ChannelOp channel;
  Attribute ring; ///< the channel that loads ask for by its name, in any block of code

  bool usedBy(RoleAttr role) const {
    return llvm::any_of(consumers, [&](auto consumer) { return consumer.first == role; });
  }
  Block *block() const { return Value(firstTile()).getParentBlock(); }
  Value firstTile() const { return stages.front().front(); }
  bool take(Value tile);
  /// All stages have the same tiles, or there is one stage with all of them.
  void complete();
  /// Returns true when tiles of `other` may be in its channel; with `separate` one engine uses all
  /// of them.
  bool isLike(const Crossing &other, bool separate) const;
};

class KernelSpecializer {
public:
  KernelSpecializer(gpu::GPUFuncOp kernel, RolePlanAttr plan) : kernel(kernel), plan(plan) {}
  LogicalResult run();
  size_t numChannels() const { return crossings.size(); }

private:
  LogicalResult checkOps();
  void findCrossings();
  void addTile(Value tile, EngineOpInterface producer);
  /// The role that executes `op`: the one that it names, or the driver of its engine. Null for an
  /// op without an engine.
  RoleAttr roleOf(Operation *op) const {
    auto engineOp = dyn_cast<EngineOpInterface>(op);
    if (!engineOp)
      return {};
    auto name = op->getAttrOfType<StringAttr>(PipeDialect::kRoleAttr);
    return name ? plan.getRole(name) : plan.getDriver(engineOp.getEngine());
  }
  LogicalResult checkRole(EngineOpInterface op);
  void createChannels(OpBuilder &builder);
  void setScopes();
  LogicalResult buildRole(OpBuilder &builder, RoleAttr role);
  void putProducerEnd(OpBuilder &builder, Crossing &crossing, ValueRange tiles);
  void putConsumerEnd(OpBuilder &builder, Crossing &crossing, RoleAttr role, ValueRange tiles);
  LogicalResult eraseOtherRoles(RoleRegionOp region);
  void sinkScalars();

  gpu::GPUFuncOp kernel;
  RolePlanAttr plan;
  SmallVector<Operation *> body; ///< top-level ops that the roles copy
  SmallVector<Crossing> crossings;
  SmallVector<Operation *> replaced; ///< ops of the role being built whose tiles are slots now
};
} // namespace

static bool isTile(Type type) { return isa<SharedType, TmemType>(type); }

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

/// Checks that a role executes `op`, which drives its engine.
LogicalResult KernelSpecializer::checkRole(EngineOpInterface op) {
  RoleAttr role = roleOf(op);
  if (role && role.drives(op.getEngine()))
    return success();
  StringRef engine = stringifyEngine(op.getEngine());
  auto name = op->getAttrOfType<StringAttr>(PipeDialect::kRoleAttr);
  InFlightDiagnostic diag = op->emitOpError();
  if (!name)
    diag << "needs engine " << engine << ", which no role of the plan drives";
  else if (!role)
    diag << "must name a role of the plan, but got '" << name.getValue() << "'";
  else
    diag << "must name a role that drives " << engine << ", but got '" << name.getValue() << "'";
  diag.attachNote(kernel.getLoc()) << "the role plan is " << plan;
  return diag;
}

LogicalResult KernelSpecializer::checkOps() {
  if (!kernel.getBody().hasOneBlock())
    return fp4::withNote(kernel.emitOpError("expects structured control flow in one block"),
                         "write scf.for and scf.if instead of branches between blocks");
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    if (auto engineOp = dyn_cast<EngineOpInterface>(op))
      return failed(checkRole(engineOp)) ? WalkResult::interrupt() : WalkResult::advance();
    if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op))
      return WalkResult::advance();
    op->emitOpError("has side effects but no engine")
            .attachNote()
        << "only ops without side effects may be executed by every role";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Returns true when nothing uses `tile` behind `later`, a tile of the same block of code.
static bool isUsedBefore(Value tile, Value later) {
  Block *block = tile.getParentBlock();
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    return ancestor && ancestor->isBeforeInBlock(later.getDefiningOp());
  });
}

/// Adds `tile` to the last stage, or a stage with it; false where neither has room for it.
bool Crossing::take(Value tile) {
  SmallVector<Value> &last = stages.back();
  ArrayRef<Value> first = stages.front();
  if (ring && tile.getParentBlock() != last.front().getParentBlock()) { // one runs after the other
    stages.push_back({tile});
    return true;
  }
  if (tile.getType() == firstTile().getType() && last.size() == first.size() &&
      llvm::all_of(last, [&](Value earlier) { return isUsedBefore(earlier, tile); })) {
    stages.push_back({tile});
    return true;
  }
  if (stages.size() > 1 &&
      (last.size() == first.size() || first[last.size()].getType() != tile.getType()))
    return false;
  last.push_back(tile);
  return true;
}

void Crossing::complete() {
  if (stages.back().size() == stages.front().size())
    return;
  for (ArrayRef<Value> later : ArrayRef(stages).drop_front())
    llvm::append_range(stages.front(), later);
  stages.truncate(1);
}

bool Crossing::isLike(const Crossing &other, bool separate) const {
  if (producer != other.producer || fills != other.fills || ring != other.ring)
    return false;
  if (ring ? firstTile().getType() != other.firstTile().getType() : block() != other.block())
    return false;
  return separate ? consumers == other.consumers
                  : llvm::equal(llvm::make_first_range(consumers),
                                llvm::make_first_range(other.consumers));
}

/// Tiles of one block of code with the same producer and consumers share a channel, and so do those
/// of one ring.
void KernelSpecializer::addTile(Value tile, EngineOpInterface producer) {
  Crossing crossing = {
      roleOf(producer), producer.getEngine(), {}, {{tile}}, {}, producer->getAttr(kRingAttr)};
  for (RoleAttr role : plan.getRoles()) {
    auto user = llvm::find_if(tile.getUsers(), [&](Operation *op) { return roleOf(op) == role; });
    if (role != crossing.producer && user != tile.getUsers().end())
      crossing.consumers.push_back({role, cast<EngineOpInterface>(*user).getEngine()});
  }
  if (crossing.consumers.empty())
    return;
  bool separate = kernel->hasAttr(kSeparateScalesAttr);
  for (Crossing &other : crossings)
    if (other.isLike(crossing, separate) && other.take(tile))
      return;
  crossings.push_back(std::move(crossing));
}

void KernelSpecializer::findCrossings() {
  kernel.getBody().walk([&](EngineOpInterface op) {
    for (Value value : op->getResults())
      if (isTile(value.getType()))
        addTile(value, op);
  });
  for (Crossing &crossing : crossings)
    crossing.complete();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

void KernelSpecializer::createChannels(OpBuilder &builder) {
  for (Crossing &crossing : crossings) {
    auto payload = llvm::map_to_vector(crossing.stages.front(), [](Value v) { return v.getType(); });
    auto type = ChannelType::get(builder.getContext(), payload);
    Engine full = crossing.producer.getCompletion(crossing.fills);
    SmallVector<Attribute> empty;
    SmallVector<int32_t> arrivals;
    SmallVector<StringRef> names;
    for (auto [role, uses] : crossing.consumers) {
      names.push_back(role.getName());
      Engine completion = role.getCompletion(uses);
      empty.push_back(EngineAttr::get(builder.getContext(), completion));
      arrivals.push_back(role.getArrivals(completion));
    }
    crossing.channel = ChannelOp::create(
        builder, crossing.firstTile().getLoc(), type, full, crossing.producer.getArrivals(full),
        builder.getArrayAttr(empty), builder.getDenseI32ArrayAttr(arrivals), Scope::Cta,
        IntegerAttr(), DenseI64ArrayAttr(), DenseI64ArrayAttr(), IntegerAttr());
    llvm::SmallDenseSet<std::pair<Attribute, int32_t>> kinds;
    for (auto [engine, count] : llvm::zip_equal(empty, arrivals))
      kinds.insert({engine, count});
    if (kinds.size() < empty.size()) // roles of one kind are told apart by their names
      crossing.channel->setAttr(kConsumerRolesAttr, builder.getStrArrayAttr(names));
    Operation *maker = crossing.firstTile().getDefiningOp();
    if (Attribute kept = maker->getAttr(kKeptAttr))
      crossing.channel->setAttr(kKeptAttr, kept);
  }
}

/// Channels whose barriers several CTAs share say so, once their ends are there.
void KernelSpecializer::setScopes() {
  bool pairs = usesPairs(kernel);
  for (Crossing &crossing : crossings)
    if (sharingOf(crossing.channel, pairs).isShared())
      crossing.channel.setScope(Scope::Cluster);
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

/// Around the accesses of the role being built to the `tiles` of a stage that it fills.
void KernelSpecializer::putProducerEnd(OpBuilder &builder, Crossing &crossing, ValueRange tiles) {
  Operation *firstDef = tiles.front().getDefiningOp();
  Location loc = firstDef->getLoc();
  builder.setInsertionPoint(firstDef);
  auto acquire = ProducerAcquireOp::create(builder, loc, crossing.channel, Value());
  for (auto [tile, slot] : llvm::zip_equal(tiles, acquire.getSlots())) {
    if (auto filler = dyn_cast<StageFillerOpInterface>(tile.getDefiningOp())) {
      OpBuilder before(filler);
      filler.fillSlot(before, slot, crossing.channel);
      if (Attribute role = filler->getAttr(PipeDialect::kRoleAttr))
        filler->getPrevNode()->setAttr(PipeDialect::kRoleAttr, role);
    }
    replaced.push_back(tile.getDefiningOp());
    tile.replaceUsesWithIf(
        slot, [&](OpOperand &use) { return roleOf(use.getOwner()) == crossing.producer; });
  }
  auto [first, last] = userRange(acquire->getBlock(), acquire.getSlots(),
                                 [](Operation *) { return true; });
  builder.setInsertionPointAfter(last ? last : acquire);
  ProducerCommitOp::create(builder, loc, crossing.channel, Value());
}

/// Puts the ends of a consumer around its uses of a stage.
void KernelSpecializer::putConsumerEnd(OpBuilder &builder, Crossing &crossing, RoleAttr role,
                                       ValueRange tiles) {
  auto hasRole = [&](Operation *op) { return roleOf(op) == role; };
  Block *block = tiles.front().getParentBlock();
  // A tile made from the stage is used before the stage is released: the release covers the MMAs.
  SmallVector<Value> used = llvm::to_vector(tiles);
  for (Value tile : tiles)
    for (Operation *user : tile.getUsers())
      if (auto copy = dyn_cast<TmemTileOpInterface>(user))
        used.push_back(copy.getTmemTile());
  auto [first, last] = userRange(block, used, hasRole);
  Location loc = first->getLoc();
  builder.setInsertionPoint(first);
  auto wait = ConsumerWaitOp::create(builder, loc, crossing.channel, Value());
  for (auto [tile, slot] : llvm::zip_equal(tiles, wait.getSlots()))
    tile.replaceUsesWithIf(slot, [&](OpOperand &use) { return hasRole(use.getOwner()); });
  builder.setInsertionPointAfter(last);
  ConsumerReleaseOp::create(builder, loc, crossing.channel, Value());
}

/// Erases ops of `root` that nothing needs, loops left without an effect included. Ops that have
/// an engine stay, because eraseOtherRoles knows which of them to erase; `forget` is called with
/// those inside of an op that is erased.
static void eraseDead(Operation *root, llvm::function_ref<void(Operation *)> forget = {}) {
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op == root || isa<EngineOpInterface>(op) || !isOpTriviallyDead(op))
      return;
    if (forget)
      op->walk([&](EngineOpInterface inside) { forget(inside); });
    op->erase();
  });
}

/// A value of another role that a loop carries, and what it is computed from, keep each other:
/// takes `others` out. Returns one that something else needs, and what needs it.
static std::pair<Operation *, Operation *> takeOut(RoleRegionOp region,
                                                   ArrayRef<Operation *> others) {
  llvm::SmallDenseMap<Operation *, Operation *> placeholders;
  for (Operation *op : others) {
    OpBuilder builder(op);
    auto placeholder = UnrealizedConversionCastOp::create(builder, op->getLoc(),
                                                          op->getResultTypes(), ValueRange());
    op->replaceAllUsesWith(placeholder);
    placeholders[placeholder] = op;
    op->remove();
  }
  eraseDead(region);
  std::pair<Operation *, Operation *> found = {};
  region.walk([&](UnrealizedConversionCastOp left) {
    if (Operation *op = placeholders.lookup(left); op && !found.second && !left->use_empty())
      found = {op, *left->user_begin()};
  });
  return found;
}

LogicalResult KernelSpecializer::eraseOtherRoles(RoleRegionOp region) {
  SmallVector<Operation *> others;
  region.getBody().walk([&](EngineOpInterface op) {
    if (roleOf(op) != region.getRole())
      others.push_back(op);
  });
  llvm::append_range(others, std::exchange(replaced, {}));
  for (Operation *op : others)
    op->dropAllReferences();
  freeCarriedValues(region, [&](Operation *op) { return llvm::is_contained(others, op); });
  // A branch on a value of another role is dead once the operations in it are gone.
  auto eraseUnused = [&](Operation *op) {
    bool unused = op->use_empty();
    if (unused)
      op->erase();
    return unused;
  };
  for (size_t before = others.size() + 1; others.size() < before;) {
    before = others.size();
    // Scalar code that only other roles needed.
    eraseDead(region, [&](Operation *inside) { llvm::erase(others, inside); });
    llvm::erase_if(others, eraseUnused);
  }
  if (others.empty())
    return success();
  auto [op, user] = takeOut(region, others);
  if (user)
    fp4::withNote(
        user->emitOpError() << "value of " << op->getName() << " cannot cross from role "
                            << roleOf(op).getName() << " to " << region.getRole().getName(),
        "only tiles cross through channels: compute the value from arguments, so that both "
        "roles can");
  for (Operation *other : others)
    other->destroy();
  return failure(user != nullptr);
}

/// Moves commits of the tensor core behind the releases next to them: who sees the last products of
/// a kernel knows that no arrival of the role is on its way, and may leave.
static void commitLast(RoleRegionOp region) {
  if (!region.getRole().isElected() || !region.getRole().drives(Engine::Tensor))
    return;
  SmallVector<ProducerCommitOp> commits;
  region.walk([&](ProducerCommitOp commit) { commits.push_back(commit); });
  for (ProducerCommitOp commit : commits)
    while (isa_and_present<ConsumerReleaseOp>(commit->getNextNode()))
      commit->moveAfter(commit->getNextNode());
}

LogicalResult KernelSpecializer::buildRole(OpBuilder &builder, RoleAttr role) {
  auto region = RoleRegionOp::create(builder, kernel.getLoc(), role);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&region.getBody().emplaceBlock());
  IRMapping mapping;
  for (Operation *op : body)
    builder.clone(*op, mapping);
  for (Crossing &crossing : crossings)
    for (ArrayRef<Value> stage : crossing.stages) {
      auto tiles = llvm::map_to_vector(stage, [&](Value v) { return mapping.lookup(v); });
      if (crossing.producer == role)
        putProducerEnd(builder, crossing, tiles);
      if (crossing.usedBy(role))
        putConsumerEnd(builder, crossing, role, tiles);
    }
  if (failed(eraseOtherRoles(region)))
    return failure();
  commitLast(region);
  region.getBody().walk([](EngineOpInterface op) {
    op->removeAttr(PipeDialect::kRoleAttr);
    for (StringRef name : {kRingAttr, kKeptAttr})
      op->removeAttr(name);
  });
  return success();
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
  if (failed(checkOps()))
    return failure();
  findCrossings();
  llvm::SmallDenseSet<RoleAttr> used;
  kernel.getBody().walk([&](EngineOpInterface op) { used.insert(roleOf(op)); });
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto inBody = [&](Value v) { return llvm::is_contained(body, v.getDefiningOp()); };
    if (op.getNumRegions() || isa<EngineOpInterface>(op) || llvm::any_of(op.getOperands(), inBody))
      body.push_back(&op);
  }

  OpBuilder builder(kernel.getBody().front().getTerminator());
  createChannels(builder);
  for (RoleAttr role : plan.getRoles()) {
    bool gives = role.getRegisters(); // also where it has nothing else to do
    if ((used.contains(role) || gives) && failed(buildRole(builder, role)))
      return failure();
  }
  for (Operation *op : llvm::reverse(body))
    op->erase();
  sinkScalars();
  eraseDead(kernel);
  setScopes();
  kernel->removeAttr(PipeDialect::kRolePlanAttr);
  kernel->removeAttr(kSeparateScalesAttr);
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// The kernel has tile ops and no roles yet.
static bool isSequential(gpu::GPUFuncOp func) {
  bool tileOps = false, roles = false;
  func.walk([&](Operation *op) {
    tileOps |= isa<EngineOpInterface>(op);
    roles |= isa<RoleRegionOp>(op);
  });
  return tileOps && !roles;
}

static FailureOr<RolePlanAttr> rolePlan(gpu::GPUFuncOp kernel) {
  if (auto plan = kernel->getAttrOfType<RolePlanAttr>(PipeDialect::kRolePlanAttr))
    return plan;
  InFlightDiagnostic diag = kernel.emitOpError()
                            << "must have a role plan, the attribute " << PipeDialect::kRolePlanAttr;
  diag.attachNote() << "fp4-plan-kernels and convert-fp4-to-pipe write one; for example "
                       "#pipe.role_plan<epilogue warps 0 to 4 drives [threads], mma warps "
                       "4 to 5 drives [tensor, scale_copy], load warps 5 to 6 drives [tma]>";
  return failure();
}

/// The CTA has as many threads as the plan has.
static LogicalResult setBlockSize(gpu::GPUFuncOp kernel, RolePlanAttr plan) {
  int32_t threads = plan.getNumThreads();
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownBlockSize();
  if (size && ((*size)[0] != threads || (*size)[1] != 1 || (*size)[2] != 1))
    return fp4::withNote(kernel.emitOpError() << "expects a CTA of the " << threads
                                              << " threads of its role plan, but got " << (*size)[0]
                                              << "x" << (*size)[1] << "x" << (*size)[2],
                         "launch the threads of the plan, or change the warps of its roles");
  kernel.setKnownBlockSizeAttr(DenseI32ArrayAttr::get(kernel.getContext(), {threads, 1, 1}));
  return success();
}

namespace {
struct SpecializeWarpsPass : fp4::pipe::impl::SpecializeWarpsBase<SpecializeWarpsPass> {
  LogicalResult specialize(gpu::GPUFuncOp kernel) {
    FailureOr<RolePlanAttr> plan = rolePlan(kernel);
    if (failed(plan) || failed(setBlockSize(kernel, *plan)))
      return failure();
    KernelSpecializer specializer(kernel, *plan);
    if (failed(specializer.run()))
      return failure();
    ++numKernels;
    numChannels += specializer.numChannels();
    return success();
  }

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](gpu::GPUFuncOp func) {
      if (isSequential(func) && failed(specialize(func)))
        return WalkResult::interrupt();
      return WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
