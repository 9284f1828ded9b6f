//===- Turns.cpp - Warpgroups that have stages or products in turn --------===//
//
// A role `in_turn stages` is one role to all passes before. Here its code becomes that of one of
// its n warpgroups: the loop that takes the stages begins with the first that is the warpgroup's
// own, and goes on with every n-th.
//
//   the role                                  a warpgroup
//   for k = 0 to 64 iter_args(it = %i)        first = (group - i) mod n
//     consumer_wait ab[it]                    for k = first to 64 step n iter_args(it = i + first)
//     ...                                       consumer_wait ab[it]
//     yield it + 1                              ...
//                                               yield it + n
//                                             it = i + 64
//
// So the waits of a stage, from its load to the columns of tensor memory, are hidden behind the
// work of other warpgroups on the stages before and behind it. Only the warpgroup that takes a
// stage arrives at the barriers of that stage (RoleAttr::getArrivals). No wait is later than in the
// role, because each warpgroup has its waits in the order of the role, without those of other
// warpgroups. The depth of each channel is a multiple of n, so that a stage is always of the same
// warpgroup: a wait for a phase returns at once where the phase before is not complete yet.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Turns.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Verifies that each warpgroup has stages of its own, so that it has seen the phase before the one
/// it waits for.
static LogicalResult verifyDepths(RoleRegionOp region, int64_t groups) {
  WalkResult result = region.walk([&](ChannelOpInterface use) {
    auto channel = use.getChannel().getDefiningOp<ChannelOp>();
    int64_t turn = channel ? groups * stagesOfIteration(channel, region) : 0;
    if (turn == 0 || !channel.getDepth() || *channel.getDepth() % turn == 0)
      return WalkResult::advance();
    withNote(channel.emitOpError() << "depth must be a multiple of the " << turn // (C498)
                                   << (turn == groups ? " warpgroups that have its stages in turn"
                                                      : " stages that its warpgroups have in turn")
                                   << ", but got " << *channel.getDepth(),
             "change the depth, or leave 'in_turn' out of the role");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Loops of `region` that take stages.
static SmallVector<scf::ForOp> loopsOfStages(RoleRegionOp region) {
  llvm::SmallSetVector<Operation *, 2> loops;
  region.walk([&](ChannelOpInterface use) { loops.insert(use->getParentOp()); });
  return llvm::map_to_vector(loops, llvm::CastTo<scf::ForOp>);
}

/// The number that an iteration adds to counter `number` of `loop`.
static std::optional<int64_t> stepOf(scf::ForOp loop, unsigned number) {
  int64_t step = 0;
  Value value = loop.getYieldedValues()[number];
  while (value != loop.getRegionIterArg(number)) {
    auto sum = value.getDefiningOp<arith::AddIOp>();
    std::optional<int64_t> more = sum ? getConstantIntValue(sum.getRhs()) : std::nullopt;
    if (!more)
      return std::nullopt;
    step += *more;
    value = sum.getLhs();
  }
  return step;
}

/// Gives counter `number` of `loop` to a warpgroup that skips `first` iterations at the beginning
/// and all but every `groups`-th later.
static void skipStages(scf::ForOp loop, unsigned number, int64_t step, Value first, Value all,
                       int64_t groups) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  auto after = [&](Value count, Value from) -> Value {
    Value stages = arith::MulIOp::create(b, loc, count, fp4::constantI32(b, loc, step));
    return arith::AddIOp::create(b, loc, from, stages);
  };
  Value init = loop.getInitArgs()[number];
  loop.getInitArgsMutable()[number].set(after(first, init));
  loop.getResult(number).replaceAllUsesWith(after(all, init));
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value next = arith::AddIOp::create(b, loc, loop.getRegionIterArg(number),
                                     fp4::constantI32(b, loc, step * groups));
  loop.getBody()->getTerminator()->setOperand(number, next);
}

/// Makes the stages of `loop` those of the warpgroup `group` of `groups`. The first warpgroup goes
/// on from one loop to the next, so that neighbouring stages always belong to different ones.
static LogicalResult takeTurns(scf::ForOp loop, Value group, int64_t groups) {
  SmallVector<int64_t> steps;
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number) {
    std::optional<int64_t> step = stepOf(loop, number);
    if (!step)
      return withNote(
          loop.emitOpError("must carry nothing but numbers of stages in a role in turn"),
          "keep other values out of the loop, or leave 'in_turn' out of the role"); // (C498)
    steps.push_back(*step);
  }
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  Value count = fp4::constantI32(b, loc, groups);
  Value iterations = loop.getInitArgs().front(); // before this loop
  if (steps.front() != 1)
    iterations =
        arith::DivUIOp::create(b, loc, iterations, fp4::constantI32(b, loc, steps.front()));
  Value before = arith::RemUIOp::create(b, loc, iterations, count);
  Value ahead = arith::SubIOp::create(b, loc, arith::AddIOp::create(b, loc, group, count), before);
  Value first = arith::RemUIOp::create(b, loc, ahead, count);
  Value all = arith::SubIOp::create(b, loc, loop.getUpperBound(), loop.getLowerBound());
  for (auto [number, step] : llvm::enumerate(steps))
    skipStages(loop, number, step, first, all, groups);
  loop.setLowerBound(arith::AddIOp::create(b, loc, loop.getLowerBound(), first));
  loop.setStep(count);
  return success();
}

/// Warps of a warpgroup.
static constexpr int64_t kGroupWarps = 4;

static int64_t groupsOf(RoleAttr role) { return role.getNumWarps() / kGroupWarps; }

/// The warpgroup of a thread among those of `role`.
static Value groupOf(OpBuilder &b, Location loc, RoleAttr role, const KernelState &state) {
  Value warp =
      arith::SubIOp::create(b, loc, state.warpIndex, constantI32(b, loc, role.getFirstWarp()));
  return arith::DivUIOp::create(b, loc, warp, constantI32(b, loc, kGroupWarps));
}

/// Gives each warpgroup of a role the stages that are its own.
static LogicalResult takeStages(RoleRegionOp region, const KernelState &state) {
  RoleAttr role = region.getRole();
  if (failed(verifyDepths(region, groupsOf(role))))
    return failure();
  OpBuilder b = OpBuilder::atBlockBegin(&region.getBody().front());
  Value group = groupOf(b, region.getLoc(), role, state);
  for (scf::ForOp loop : loopsOfStages(region))
    if (failed(takeTurns(loop, group, groupsOf(role))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Products in turn
//
// A turn is the phase of a named barrier, at which its warpgroup waits and the warpgroup before it
// arrives once its MMAs have begun. Nothing is awaited during a turn, and all warpgroups run the
// same loops: each one comes.
//===----------------------------------------------------------------------===//

/// The barrier whose phase is the turn of the first warpgroup.
static constexpr int64_t kFirstTurn = 8;

MmaTurn fp4::turnOf(ImplicitLocOpBuilder &b, MmaOp op, const KernelState &state) {
  RoleAttr role = state.roles.at(op);
  if (role.getTurns() != Turns::Products || op.getChain() != MmaChain::Leads)
    return {};
  Value group = groupOf(b, b.getLoc(), role, state);
  auto constant = [&](int64_t value) { return constantI32(b, b.getLoc(), value); };
  Value own = arith::AddIOp::create(b, group, constant(kFirstTurn));
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, constant(groupsOf(role) - 1));
  Value next = arith::SelectOp::create(b, isLast, constant(kFirstTurn),
                                       arith::AddIOp::create(b, own, constant(1)));
  return {own, next};
}

/// Runs `body` in warpgroup `number` of a role.
static void inGroup(ImplicitLocOpBuilder &b, Value group, int64_t number,
                    function_ref<void()> body) {
  Value isIt =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, group, constantI32(b, b.getLoc(), number));
  auto branch = scf::IfOp::create(b, isIt, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Gives the first turn of a role to its first warpgroup, and takes the turn back that is left when
/// the role ends.
static void beginTurns(RoleRegionOp region, const KernelState &state) {
  Block *body = &region.getBody().front();
  auto b = ImplicitLocOpBuilder::atBlockBegin(region.getLoc(), body);
  Value group = groupOf(b, region.getLoc(), region.getRole(), state);
  Value first = constantI32(b, b.getLoc(), kFirstTurn),
        threads = constantI32(b, b.getLoc(), MmaTurn::threads);
  inGroup(b, group, groupsOf(region.getRole()) - 1,
          [&] { NVVM::BarrierArriveOp::create(b, first, threads); });
  b.setInsertionPointToEnd(body);
  inGroup(b, group, 0, [&] {
    NVVM::BarrierOp::create(b, TypeRange(), first, threads, NVVM::BarrierReductionAttr(), Value());
  });
}

LogicalResult fp4::takeTurns(gpu::GPUFuncOp kernel, const KernelState &state) {
  for (auto region : kernel.getOps<RoleRegionOp>()) {
    Turns turns = region.getRole().getTurns();
    if (turns == Turns::Stages && failed(takeStages(region, state)))
      return failure();
    if (turns == Turns::Products)
      beginTurns(region, state);
  }
  return success();
}
