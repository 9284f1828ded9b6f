//===- Roles.cpp - Prologue, warp roles, teardown -------------------------===//
//
//   a loading thread    prefetch the first weights (FirstRows.cpp)
//   thread 0            prefetch tensor maps; initialize every barrier; fence
//   all                 barrier of the CTA
//   tensor warp         allocate tensor memory, its address goes to shared memory
//   roles that use it   barrier of their warps; read the address
//   all but loading     clear rows that loads leave out; barrier of their warps
//   (ResiduePatterns.cpp) each role           if (its warps) { set its registers; the code of the
//   role } all                 barrier of the CTA tensor warp         free tensor memory
//
// In a kernel with clusters, the first and the last are barriers of the cluster: no CTA arrives at
// barriers of another CTA that do not exist yet, or no longer. Pairs allocate and free together;
// the roles that issue for their tensor cores run on the leader only. A role that loads does not
// wait for tensor memory, so that its first load is on its way while the others do.
//
// The last barrier orders the last reads of the epilogue and the last MMA before the release of
// tensor memory: both are complete when their role ends.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/ISA/TensorMap.h"

using namespace mlir;
using fp4::pipe::PipeDialect;

namespace {

/// The barrier of the warps that use tensor memory; barrier 0 is the CTA's.
constexpr int64_t kTmemBarrier = 1;

/// First warp of the role that drives the tensor engine: it allocates and frees tensor memory.
std::optional<int32_t> tensorWarp(gpu::GPUFuncOp kernel) {
  for (auto region : kernel.getOps<fp4::pipe::RoleRegionOp>())
    if (region.getRole().drives(fp4::pipe::Engine::Tensor))
      return region.getRole().getFirstWarp();
  return std::nullopt;
}

/// Returns true for a role that names tiles in tensor memory, or would if it ran on this CTA.
bool usesTensorMemory(fp4::pipe::RoleRegionOp region) {
  auto isTile = [](Type type) { return isa<fp4::pipe::TmemType>(type); };
  return region.getRole().drives(fp4::pipe::Engine::Tensor) ||
         region
             .walk([&](Operation *op) {
               bool uses = llvm::any_of(op->getOperandTypes(), isTile) ||
                           llvm::any_of(op->getResultTypes(), isTile);
               return uses ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted();
}

int64_t integerAttr(gpu::GPUFuncOp kernel, StringRef name) {
  auto attr = kernel->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : 0;
}

/// The module's symbol for dynamic shared memory, aligned as the widest swizzle needs.
LLVM::GlobalOp sharedSymbol(gpu::GPUFuncOp kernel) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  if (auto found = module.lookupSymbol<LLVM::GlobalOp>(fp4::kSharedSymbol))
    return found;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  return LLVM::GlobalOp::create(b, kernel.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                                /*isConstant=*/false, LLVM::Linkage::External, fp4::kSharedSymbol,
                                Attribute(), /*alignment=*/1024, fp4::kSharedSpace);
}

/// Runs `body` under `if (lhs == rhs)`.
void emitIfEqual(OpBuilder &b, Location loc, Value lhs, int64_t rhs,
                 llvm::function_ref<void()> body) {
  Value equal =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs, fp4::constantI32(b, loc, rhs));
  auto branch = scf::IfOp::create(b, loc, equal, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Initializes barriers. Full barriers count the producer's arrivals, empty barriers the
/// consumer's, of each CTA that arrives.
void initializeBarriers(OpBuilder &b, fp4::pipe::ChannelOp channel, const fp4::KernelState &state) {
  Location loc = channel.getLoc();
  int64_t depth = *channel.getDepth();
  fp4::pipe::ChannelSharing sharing = state.sharing.lookup(channel);
  // Threads of both CTAs fill for the tensor core of a pair; a stage that loads complete has one
  // arrival.
  bool both = sharing.pairUses && channel.getProducer() == fp4::pipe::Engine::Threads;
  int64_t full = channel.getProducerArrivals() * (both ? 2 : 1) + fp4::countsMmas(channel);
  auto released = [&](fp4::hw::ClusterShape shape) -> Value {
    int64_t blocks = (sharing.isShared() ? sharing.in(shape) : sharing).getNumReleasing();
    return fp4::constantI32(b, loc, channel.getNumConsumerArrivals() * blocks);
  };
  Value empty = released(state.cluster.shape);
  if (state.cluster.fallback)
    empty = arith::SelectOp::create(b, loc, state.cluster.inFallback,
                                    released(*state.cluster.fallback), empty);
  int64_t numBarriers = channel.getWithoutEmpty() ? depth : 2 * depth;
  for (int64_t i = 0; i < numBarriers; ++i) {
    Value barrier = fp4::offsetPointer(b, loc, state.sharedBase, *channel.getBarriers() + 8 * i);
    Value arrivals = i < depth ? fp4::constantI32(b, loc, full) : empty;
    NVVM::MBarrierInitOp::create(b, loc, barrier, arrivals, /*predicate=*/Value());
  }
  fp4::arriveForFirstStage(b, channel, state);
  if (channel.isCopiedAhead())
    fp4::initializeCopied(b, channel, state);
}

/// Prefetches the rows of groups, which all roles wait for, into the L2 cache. A kernel that begins
/// while the one before it ends may not read them yet.
void prefetchGroups(OpBuilder &b, gpu::GPUFuncOp kernel) {
  constexpr int64_t kSectorBytes = 32;
  auto level = NVVM::PrefetchCacheLevelAttr::get(b.getContext(), NVVM::PrefetchCacheLevel::L2);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  kernel.walk([&](fp4::pipe::CheckGroupsOp check) {
    Location loc = check.getLoc();
    Value offsets =
        UnrealizedConversionCastOp::create(b, loc, pointer, check.getOffsets()).getResult(0);
    fp4::pipe::GlobalType table = check.getOffsets().getType();
    for (int64_t at = 0; at < table.getShape()[0] * table.getRowPitch(); at += kSectorBytes)
      NVVM::PrefetchOp::create(b, loc, level, NVVM::CacheEvictionPriorityAttr(),
                               fp4::offsetPointer(b, loc, offsets, at), /*predicate=*/Value(),
                               /*tensormap=*/false, /*uniform=*/false, /*in_param_space=*/false);
  });
}

/// Prefetches the tensor maps of `argument`, one behind the other.
void prefetchMaps(OpBuilder &b, BlockArgument argument, int64_t count) {
  Location loc = argument.getLoc();
  Type type = LLVM::LLVMPointerType::get(b.getContext());
  Value maps = UnrealizedConversionCastOp::create(b, loc, type, argument).getResult(0);
  for (int64_t i = 0; i < count; ++i)
    NVVM::PrefetchOp::create(
        b, loc, NVVM::PrefetchCacheLevelAttr(), NVVM::CacheEvictionPriorityAttr(),
        fp4::offsetPointer(b, loc, maps, i * int64_t(fp4::hw::TensorMap::encodedBytes)),
        /*predicate=*/Value(), /*tensormap=*/true, /*uniform=*/false, /*in_param_space=*/true);
}

void initializeBlock(OpBuilder &b, gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  prefetchGroups(b, kernel);
  for (BlockArgument argument : kernel.getArguments())
    if (auto type = dyn_cast<fp4::pipe::TensorMapType>(argument.getType()))
      prefetchMaps(b, argument, type.getMaps());
  bool any = fp4::initializeWorkRing(b, kernel, state);
  for (auto channel : kernel.getOps<fp4::pipe::ChannelOp>()) {
    initializeBarriers(b, channel, state);
    any = true;
  }
  kernel.walk([&](fp4::pipe::ClusterReductionOpInterface join) {
    fp4::initializeJoin(b, join.getLoc(), join, state);
    any = true;
  });
  if (any)
    NVVM::FenceMbarrierInitOp::create(b, kernel.getLoc());
}

/// Returns an i1, for clusters whose CTAs exchange only partial sums: true when a CTA has another
/// turn of a loop with reductions behind its first. In one turn a CTA receives only what it waits
/// for itself (ReduceFragment.cpp). Null where the number of turns is unknown, or CTAs exchange
/// more.
Value hasSecondTurn(OpBuilder &b, gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  Location loc = kernel.getLoc();
  bool isKnown = state.sharing.empty() && state.ring.depth == 0;
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](fp4::pipe::ClusterReductionOpInterface join) {
    loops.push_back(fp4::loopOfReductions(join));
    isKnown &=
        loops.back() && llvm::all_of(loops.back()->getOperands().take_front(3), [&](Value bound) {
          return bound.getParentRegion() == &kernel.getBody();
        });
  });
  Value any;
  for (scf::ForOp loop : isKnown ? loops : SmallVector<scf::ForOp>()) {
    Value next = arith::AddIOp::create(b, loc, loop.getLowerBound(), loop.getStep());
    Value goesOn =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, next, loop.getUpperBound());
    any = any ? arith::OrIOp::create(b, loc, any, goesOn).getResult() : goesOn;
  }
  return any;
}

struct Warps {
  int32_t first, end;
  int32_t count() const { return end - first; }
};

Value isAmong(OpBuilder &b, Location loc, const fp4::KernelState &state, Warps warps) {
  Value first = fp4::constantI32(b, loc, warps.first);
  if (warps.count() == 1)
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, state.warpIndex, first);
  Value relative = warps.first == 0
                       ? state.warpIndex
                       : arith::SubIOp::create(b, loc, state.warpIndex, first).getResult();
  Value count = fp4::constantI32(b, loc, warps.count());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, relative, count);
}

/// The warps of all roles that use tensor memory, if they are side by side; else those of the CTA,
/// which then wait for it together.
Warps tensorMemoryWarps(gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  Warps all{state.numThreads / 32, 0};
  int32_t count = 0;
  for (auto region : kernel.getOps<fp4::pipe::RoleRegionOp>()) {
    if (!usesTensorMemory(region))
      continue;
    fp4::pipe::RoleAttr role = region.getRole();
    all = {std::min(all.first, role.getFirstWarp()), std::max(all.end, role.getEndWarp())};
    count += role.getNumWarps();
  }
  return count == all.count() ? all : Warps{0, state.numThreads / 32};
}

/// Allocates tensor memory. Returns its address in the roles that use it, and anything in other
/// roles.
Value allocateTensorMemory(OpBuilder &b, gpu::GPUFuncOp kernel, const fp4::KernelState &state,
                           int32_t warp) {
  Location loc = kernel.getLoc();
  Value slot =
      fp4::offsetPointer(b, loc, state.sharedBase, integerAttr(kernel, PipeDialect::kTmemSlotAttr));
  Warps users = tensorMemoryWarps(kernel, state);
  auto branch = scf::IfOp::create(b, loc, b.getI32Type(), isAmong(b, loc, state, users),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitIfEqual(b, loc, state.warpIndex, warp, [&] {
    NVVM::Tcgen05AllocOp::create(b, loc, slot, fp4::constantI32(b, loc, state.tmemColumns),
                                 state.ctaGroup());
    NVVM::Tcgen05RelinquishAllocPermitOp::create(b, loc, state.ctaGroup());
  });
  NVVM::BarrierOp::create(b, loc, TypeRange(), fp4::constantI32(b, loc, kTmemBarrier),
                          fp4::constantI32(b, loc, 32 * users.count()),
                          NVVM::BarrierReductionAttr(), /*reductionPredicate=*/Value());
  Value base = LLVM::LoadOp::create(b, loc, b.getI32Type(), slot);
  scf::YieldOp::create(b, loc, base);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, Value(LLVM::PoisonOp::create(b, loc, b.getI32Type())));
  return branch.getResult(0);
}

void emitTeardown(gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  std::optional<int32_t> warp = tensorWarp(kernel);
  bool frees = state.tmemColumns && warp;
  if (!frees && state.cluster.shape.size() == 1)
    return;
  Location loc = kernel.getLoc();
  OpBuilder b(kernel.getBody().back().getTerminator());
  if (Value more = state.cluster.pairs ? Value() : hasSecondTurn(b, kernel, state)) {
    auto branch = scf::IfOp::create(b, loc, more, /*withElseRegion=*/frees);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    fp4::emitKernelBarrier(b, loc, state);
    if (frees) { // whose last use comes before
      b.setInsertionPointToStart(branch.elseBlock());
      NVVM::BarrierOp::create(b, loc);
    }
  } else {
    fp4::emitKernelBarrier(b, loc, state);
  }
  if (!frees)
    return;
  emitIfEqual(b, loc, state.warpIndex, *warp, [&] {
    NVVM::Tcgen05DeallocOp::create(b, loc, fp4::tmemPointer(b, loc, state.tmemBase),
                                   fp4::constantI32(b, loc, state.tmemColumns), state.ctaGroup());
  });
}

struct LowerRole : fp4::PipePattern<fp4::pipe::RoleRegionOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::RoleRegionOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<fp4::pipe::RoleRegionOp> others = chainedRoles(op);
    auto dispatch = scf::IfOp::create(rewriter, loc, isMine(rewriter, op), !others.empty());
    for (fp4::pipe::RoleRegionOp other : others)
      rewriter.moveOpBefore(other, dispatch.elseBlock()->getTerminator());
    rewriter.setInsertionPointToStart(dispatch.thenBlock());
    Block *body = dispatch.thenBlock();
    if (int32_t registers = op.getRole().getRegisters()) {
      NVVM::SetMaxRegisterOp::create(rewriter, loc, registers,
                                     registers < state.registers.launch
                                         ? NVVM::SetMaxRegisterAction::decrease
                                         : NVVM::SetMaxRegisterAction::increase);
      if (isOnLeaders(op)) { // the same warps of the other CTA have released theirs
        body = scf::IfOp::create(rewriter, loc, fp4::isLeader(rewriter, loc, state), false)
                   .thenBlock();
        rewriter.setInsertionPointToStart(body);
      }
    }
    if (op.getRole().isElected() && !op.getRole().getWhole()) {
      Value leader = NVVM::ElectSyncOp::create(rewriter, loc, rewriter.getI1Type(), Value());
      body = scf::IfOp::create(rewriter, loc, leader, false).thenBlock();
    }
    rewriter.inlineBlockBefore(&op.getBody().front(), body, body->getTerminator()->getIterator());
    if (op.getRole().drives(fp4::pipe::Engine::BulkStore)) { // shared memory ends with the CTA
      rewriter.setInsertionPoint(body->getTerminator());
      NVVM::CpAsyncBulkWaitGroupOp::create(rewriter, loc, /*group=*/0u, rewriter.getUnitAttr());
    }
    if (!op.getRole().drives(fp4::pipe::Engine::Tensor) &&
        op.getRole().drives(fp4::pipe::Engine::ScaleCopy)) {
      rewriter.setInsertionPoint(body->getTerminator());
      fp4::awaitCopies(rewriter, op, state);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Returns true when roles are branches of one question, which asks 2 to 4 instructions later for
  /// the first load: if setmaxnreg leaves sums few other registers. With wgmma or mma.sync, ptxas
  /// spills in kernels that spill nothing if every role has a question of its own.
  bool chainsRoles() const {
    return state.registers.fragments && state.registers.launch &&
           fp4::pipe::namesTiles(*state.target);
  }

  /// The regions behind `region` of which its warps execute none. Warps that have ended need not
  /// ask whether they have the next role, so that values from before all roles which the next role
  /// takes need no registers in this one.
  SmallVector<fp4::pipe::RoleRegionOp> chainedRoles(fp4::pipe::RoleRegionOp region) const {
    SmallVector<fp4::pipe::RoleRegionOp> others;
    fp4::pipe::RoleAttr role = region.getRole();
    Operation *next = chainsRoles() ? region->getNextNode() : nullptr;
    while (auto other = dyn_cast_or_null<fp4::pipe::RoleRegionOp>(next)) {
      if (other.getRole().getFirstWarp() < role.getEndWarp() &&
          role.getFirstWarp() < other.getRole().getEndWarp())
        return {};
      others.push_back(other);
      next = other->getNextNode();
    }
    return others;
  }

  bool isOnLeaders(fp4::pipe::RoleRegionOp op) const {
    return fp4::pipe::runsOnLeaders(op.getRole(), state.cluster.pairs);
  }

  Value isMine(OpBuilder &b, fp4::pipe::RoleRegionOp op) const {
    fp4::pipe::RoleAttr role = op.getRole();
    Value mine = isAmong(b, op.getLoc(), state, {role.getFirstWarp(), role.getEndWarp()});
    if (!isOnLeaders(op) || role.getRegisters())
      return mine;
    return arith::AndIOp::create(b, op.getLoc(), mine, fp4::isLeader(b, op.getLoc(), state));
  }
};

} // namespace

bool fp4::isOfWholeRole(Operation *op, const KernelState &state) {
  pipe::RoleAttr role = state.roles.lookup(op);
  return role && role.getWhole();
}

void fp4::emitOnce(OpBuilder &b, Location loc, const KernelState &state, Operation *op,
                   llvm::function_ref<void()> body) {
  if (!isOfWholeRole(op, state))
    return body();
  Value elected = NVVM::ElectSyncOp::create(b, loc, b.getI1Type(), Value());
  auto branch = scf::IfOp::create(b, loc, elected, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value fp4::ofWarp(OpBuilder &b, Location loc, const KernelState &state, Value value) {
  if (llvm::none_of(llvm::make_second_range(state.roles),
                    [](pipe::RoleAttr role) { return role.getWhole(); }))
    return value;
  ImplicitLocOpBuilder inOrder(loc, b);
  return valueOfLane(inOrder, value, constantI32(b, loc, 0));
}

/// Records who executes each op, and the number of threads.
static void describeRoles(gpu::GPUFuncOp kernel, fp4::KernelState &state) {
  namespace pipe = fp4::pipe;
  if (DenseI32ArrayAttr size = kernel.getKnownBlockSizeAttr()) // also roles without a region
    state.numThreads = size[0];
  for (auto region : kernel.getOps<pipe::RoleRegionOp>()) {
    pipe::RoleAttr role = region.getRole();
    state.numThreads = std::max<int32_t>(state.numThreads, 32 * role.getEndWarp());
    state.roles[region] = role;
    region.walk([&](Operation *op) {
      if (isa<pipe::EngineOpInterface, pipe::ChannelOpInterface, pipe::NextWorkOp>(op))
        state.roles[op] = role;
      if (auto join = dyn_cast<pipe::ClusterReductionOpInterface>(op))
        state.reductions[op] = {join.getPieceBytes(),
                                *join.getReductionPlace() + join.getBarriersOffset(),
                                join.getNumAdding()};
    });
  }
}

/// Collects facts about the kernel before any of it is lowered.
static void describeKernel(gpu::GPUFuncOp kernel, fp4::KernelState &state) {
  namespace pipe = fp4::pipe;
  fp4::meetBehindSegments(kernel);
  describeRoles(kernel, state);
  fp4::countRegisters(kernel, state);
  for (auto channel : kernel.getOps<pipe::ChannelOp>())
    if (channel.isCopiedAhead())
      state.allCopied =
          *channel.getBarriers() + pipe::barrierBytes(channel, *channel.getDepth()) - 8;
  kernel.walk([&](Operation *op) {
    auto store = dyn_cast<pipe::StoreOp>(op);
    state.facts.splitsWarps |= (store && store.isOfLines()) || isa<pipe::FoldAmaxOp>(op);
    auto promote = dyn_cast<pipe::PromoteOp>(op);
    auto sums = dyn_cast<pipe::AccumulatorOp>(op);
    bool areLanes = sums && sums.getFragmentType() &&
                    sums.getFragmentType().getKind() == pipe::FragmentKind::Lanes;
    state.facts.keepsLanes |= areLanes || (promote && !promote.isOfFragment());
  });
  state.cluster.pairs = pipe::usesPairs(kernel);
  state.cluster.shape = pipe::clusterOf(kernel);
  for (auto channel : kernel.getOps<pipe::ChannelOp>())
    if (channel.isCluster())
      state.sharing[channel] = pipe::sharingOf(channel, state.cluster.pairs);
  state.tmemColumns = integerAttr(kernel, PipeDialect::kTmemColumnsAttr);
  if (auto ring = kernel->getAttrOfType<DenseI64ArrayAttr>(PipeDialect::kWorkRingAttr)) {
    state.ring.place = ring[0];
    state.ring.depth = ring[1];
  }
}

/// The place of a CTA among those that work on the same tiles, which several clusters may run. The
/// CTAs of a cluster begin at multiples of `blocks` in the grid.
static Value placeInGrid(OpBuilder &b, gpu::ClusterBlockIdOp op, int64_t blocks) {
  Location loc = op.getLoc();
  Value index = op.getDimension() == gpu::Dimension::x
                    ? NVVM::BlockIdXOp::create(b, loc, b.getI32Type()).getResult()
                    : NVVM::BlockIdYOp::create(b, loc, b.getI32Type()).getResult();
  return arith::RemUIOp::create(b, loc, index, fp4::constantI32(b, loc, blocks));
}

/// Derives the place of a CTA from its rank. ptxas would compute %cluster_ctaid from the sizes that
/// the launch gives, on the way to the first load.
static void deriveBlockIds(OpBuilder &b, gpu::GPUFuncOp kernel, const fp4::KernelState &state) {
  kernel.walk([&](gpu::ClusterBlockIdOp op) {
    if (op.getDimension() == gpu::Dimension::z)
      return;
    auto direction = op.getDimension() == gpu::Dimension::x ? fp4::hw::ClusterDirection::M
                                                            : fp4::hw::ClusterDirection::N;
    Value place = state.cluster.fallback ? placeInGrid(b, op, state.cluster.shape.along(direction))
                                         : fp4::placeInCluster(b, op.getLoc(), state, direction);
    op.replaceAllUsesWith(
        arith::IndexCastOp::create(b, op.getLoc(), b.getIndexType(), place).getResult());
    op.erase();
  });
}

/// Finds the place of a CTA in its cluster, and the number of CTAs of the cluster.
static void findPlace(OpBuilder &b, gpu::GPUFuncOp kernel, fp4::KernelState &state) {
  Location loc = kernel.getLoc();
  state.cluster.rank = NVVM::ClusterId::create(b, loc, b.getI32Type());
  if (state.cluster.fallback) {
    Value blocks = NVVM::ClusterDim::create(b, loc, b.getI32Type());
    state.cluster.inFallback =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, blocks,
                              fp4::constantI32(b, loc, int64_t(state.cluster.shape.size())));
  }
  deriveBlockIds(b, kernel, state);
}

fp4::KernelState fp4::emitPrologue(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  KernelState state;
  state.target = &target;
  if (kernel.getOps<pipe::RoleRegionOp>().empty())
    return state;
  describeKernel(kernel, state);
  state.cluster.fallback = pipe::fallbackOf(kernel);
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Location loc = kernel.getLoc();
  state.threadIndex = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  state.warpIndex = ofWarp(
      b, loc, state, arith::ShRUIOp::create(b, loc, state.threadIndex, constantI32(b, loc, 5)));
  state.sharedBase = LLVM::AddressOfOp::create(b, loc, sharedSymbol(kernel));
  if (state.cluster.shape.size() > 1)
    findPlace(b, kernel, state);
  prefetchFirstRows(b, kernel, state);
  emitIfEqual(b, loc, state.threadIndex, 0, [&] { initializeBlock(b, kernel, state); });
  emitFirstBarrier(b, loc, state);
  // The code of all roles comes before: LLVM loads the entry of a table with the number of tiles
  // while the first barrier is awaited, but not from behind this branch.
  b.setInsertionPoint(*kernel.getOps<pipe::RoleRegionOp>().begin());
  if (std::optional<int32_t> warp = tensorWarp(kernel); state.tmemColumns && warp)
    state.tmemBase = ofWarp(b, loc, state, allocateTensorMemory(b, kernel, state, *warp));
  clearBehindResidues(b, kernel, state);
  emitTeardown(kernel, state);
  return state;
}

SmallVector<Value> fp4::emitOwnBases(gpu::GPUFuncOp kernel, const KernelState &state) {
  SmallVector<Value> bases;
  for (auto region : kernel.getOps<pipe::RoleRegionOp>()) {
    auto multiplies = [](pipe::MmaOp mma) {
      return mma.getForm() == hw::MmaForm::WgmmaFloat ? WalkResult::interrupt()
                                                      : WalkResult::advance();
    };
    if (!region.getBody().walk(multiplies).wasInterrupted())
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(&region.getBody().front());
    bases.push_back(addressHere(b, region.getLoc(), state.sharedBase.getType(), kSharedSymbol));
  }
  return bases;
}

void fp4::useOwnBases(ArrayRef<Value> bases, const KernelState &state) {
  for (Value base : bases) {
    auto isInside = [&](Operation *op) {
      return base.getParentBlock()->findAncestorOpInBlock(*op) != nullptr;
    };
    auto usesInside = [&](OpOperand &use) { return isInside(use.getOwner()); };
    OpBuilder b(base.getContext());
    b.setInsertionPointAfterValue(base);
    for (Operation *user : llvm::to_vector(state.sharedBase.getUsers())) {
      bool isPlace = isa<LLVM::GEPOp>(user) && !isInside(user); // of a channel, for all roles
      if (isPlace && llvm::any_of(user->getUsers(), isInside))
        user->getResult(0).replaceUsesWithIf(b.clone(*user)->getResult(0), usesInside);
    }
    Value(state.sharedBase).replaceUsesWithIf(base, usesInside);
  }
}

bool fp4::hasSizes(gpu::GPUFuncOp kernel) {
  auto isSize = [](Type type) { return type.isInteger(32); };
  return llvm::any_of(kernel.getArgumentTypes(), isSize) ||
         kernel
             .walk([](pipe::LoadEntryOp entry) {
               return entry.getIndex() ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted();
}

void fp4::populateRolePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                               const KernelState &state) {
  patterns.add<LowerRole>(converter, patterns.getContext(), state);
}
