//===- RoleSteps.cpp - Operations of a role in the order of execution ------===//

#include "RoleSteps.h"

#include "ChannelEnds.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of overlapping stages that are one place.
static constexpr int64_t kColumnsOfPlace = 4;

namespace {
/// A tile that a value names while the role runs.
struct BoundTile {
  ChannelOp channel;
  int64_t number, iteration;
  std::optional<int64_t> column; ///< the first column of a set, of tiles that are copied
};

class RoleWalker {
public:
  explicit RoleWalker(const RoleLimits &limits) : limits(limits) {}
  LogicalResult walk(Block *block);
  RoleSteps result;

private:
  std::optional<int64_t> known(Value value);
  void set(Value value, std::optional<int64_t> number);
  void assume(Value value, int64_t number);
  std::optional<int64_t> evaluate(Operation *op);
  void copyValues(ValueRange from, ValueRange to);

  LogicalResult walkFor(scf::ForOp loop);
  LogicalResult walkWhile(scf::WhileOp loop);
  LogicalResult walkIf(scf::IfOp branch);
  LogicalResult walkOther(Operation *op);
  LogicalResult checkStage(StageOfOp op);
  LogicalResult bindScales(CopyScalesOp op);

  void addStep(Operation *op);
  void addUse(RoleStep &step, Value tile, bool writes);
  void addOverlappingUses(RoleStep &step, const BoundTile &tile, bool writes);
  bool isFull() {
    result.isWhole &= result.steps.size() < limits.steps;
    return !result.isWhole;
  }

  RoleLimits limits;
  llvm::DenseMap<Value, int64_t> numbers;
  llvm::DenseMap<Value, BoundTile> tiles;
};
} // namespace

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::optional<int64_t> RoleWalker::known(Value value) {
  if (auto found = numbers.find(value); found != numbers.end())
    return found->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return value.getType().isInteger(1) ? int64_t(constant.getZExtValue())
                                        : constant.getSExtValue();
  return std::nullopt;
}

void RoleWalker::set(Value value, std::optional<int64_t> number) {
  if (number)
    numbers[value] = *number;
  else
    numbers.erase(value);
}

void RoleWalker::assume(Value value, int64_t number) {
  if (!known(value))
    numbers[value] = number;
}

/// Returns x op y in 32 bits; nothing for operations that counters do not need.
static std::optional<int64_t> combine(Operation *op, int64_t x, int64_t y) {
  auto ux = uint32_t(x), uy = uint32_t(y);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return arith::applyCmpPredicate(cmp.getPredicate(), llvm::APInt(64, x, /*isSigned=*/true),
                                    llvm::APInt(64, y, /*isSigned=*/true));
  if (isa<arith::DivUIOp, arith::RemUIOp>(op) && uy == 0)
    return std::nullopt;
  bool isBit = op->getResult(0).getType().isInteger(1);
  auto sum = [&](uint32_t bits) { return isBit ? int64_t(bits & 1) : int64_t(int32_t(bits)); };
  if (isa<arith::AddIOp>(op))
    return sum(ux + uy);
  if (isa<arith::SubIOp>(op))
    return sum(ux - uy);
  if (isa<arith::MulIOp>(op))
    return sum(ux * uy);
  if (isa<arith::DivUIOp>(op))
    return sum(ux / uy);
  if (isa<arith::RemUIOp>(op))
    return sum(ux % uy);
  if (isa<arith::AndIOp>(op))
    return sum(ux & uy);
  if (isa<arith::OrIOp>(op))
    return sum(ux | uy);
  if (isa<arith::XOrIOp>(op))
    return sum(ux ^ uy);
  return std::nullopt;
}

std::optional<int64_t> RoleWalker::evaluate(Operation *op) {
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<int64_t> condition = known(select.getCondition());
    return condition ? known(*condition ? select.getTrueValue() : select.getFalseValue())
                     : std::nullopt;
  }
  if (isa<arith::ExtUIOp, arith::IndexCastOp, OpaqueOp, StageOfOp>(op))
    return known(op->getOperand(0));
  if (op->getNumOperands() != 2 || !isa_and_present<arith::ArithDialect>(op->getDialect()))
    return std::nullopt;
  auto x = known(op->getOperand(0)), y = known(op->getOperand(1));
  return x && y ? combine(op, *x, *y) : std::nullopt;
}

void RoleWalker::copyValues(ValueRange from, ValueRange to) {
  SmallVector<std::optional<int64_t>> values;
  for (Value value : from)
    values.push_back(known(value));
  for (auto [value, target] : llvm::zip_equal(values, to))
    set(target, value);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult RoleWalker::walkFor(scf::ForOp loop) {
  auto first = known(loop.getLowerBound()), end = known(loop.getUpperBound()),
       step = known(loop.getStep());
  int64_t count = limits.trips;
  if (limits.isExact && first && end && step && *step > 0)
    count = std::max<int64_t>(0, llvm::divideCeilSigned(*end - *first, *step));
  assume(loop.getLowerBound(), 0);
  assume(loop.getStep(), 1);
  int64_t low = *known(loop.getLowerBound()), by = *known(loop.getStep());
  assume(loop.getUpperBound(), low + limits.trips * by);
  copyValues(loop.getInitArgs(), loop.getRegionIterArgs());
  for (int64_t i = 0; i < count && !isFull(); ++i) {
    set(loop.getInductionVar(), low + i * by);
    if (failed(walk(loop.getBody())))
      return failure();
    copyValues(loop.getYieldedValues(), loop.getRegionIterArgs());
  }
  copyValues(loop.getRegionIterArgs(), loop.getResults());
  // MMAs that go on between iterations end behind the loop.
  if (llvm::any_of(loop.getOps<MmaOp>(),
                   [](MmaOp mma) { return mma.getChain() == MmaChain::UntilIteration; }))
    result.steps.push_back({loop, std::nullopt, {}});
  return success();
}

LogicalResult RoleWalker::walkWhile(scf::WhileOp loop) {
  copyValues(loop.getInits(), loop.getBeforeArguments());
  for (int64_t i = 0; i <= limits.trips && !isFull(); ++i) {
    if (failed(walk(loop.getBeforeBody())))
      return failure();
    auto condition = cast<scf::ConditionOp>(loop.getBeforeBody()->getTerminator());
    copyValues(condition.getArgs(), loop.getAfterArguments());
    if (i == limits.trips)
      break;
    if (failed(walk(loop.getAfterBody())))
      return failure();
    copyValues(loop.getAfterBody()->getTerminator()->getOperands(), loop.getBeforeArguments());
  }
  copyValues(loop.getAfterArguments(), loop.getResults());
  return success();
}

LogicalResult RoleWalker::walkIf(scf::IfOp branch) {
  bool isTaken = known(branch.getCondition()).value_or(1);
  Block *block = isTaken ? branch.thenBlock() : branch.elseBlock();
  if (!block)
    return success();
  if (failed(walk(block)))
    return failure();
  copyValues(block->getTerminator()->getOperands(), branch.getResults());
  return success();
}

/// Runs a loop of any kind `trips` times, and the first region of other ops once.
LogicalResult RoleWalker::walkOther(Operation *op) {
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  bool carries = loop && loop.getLoopResults() && !loop.getRegionIterArgs().empty();
  if (carries)
    copyValues(loop.getInits(), loop.getRegionIterArgs());
  for (int64_t i = 0; i < (loop ? limits.trips : 1) && !isFull(); ++i) {
    for (Block &block : op->getRegion(0))
      if (failed(walk(&block)))
        return failure();
    if (carries)
      copyValues(loop.getYieldedValues(), loop.getRegionIterArgs());
  }
  if (carries)
    copyValues(loop.getRegionIterArgs(), *loop.getLoopResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void RoleWalker::addOverlappingUses(RoleStep &step, const BoundTile &tile, bool writes) {
  ChannelOp channel = tile.channel;
  int64_t first = tile.iteration % *channel.getDepth() * channel.getStageStride(0);
  int64_t count = cast<TmemType>(channel.getType().getPayload().front()).getTmemColumns();
  if (auto read = dyn_cast<ReadOp>(step.op)) {
    std::optional<int64_t> column = known(read.getColumn());
    if (!column)
      return;
    first += *column;
    count = read.getResult().getType().getDimSize(1);
  }
  for (int64_t at = first / kColumnsOfPlace; at * kColumnsOfPlace < first + count; ++at)
    step.uses.push_back({{channel.getAsOpaquePointer(), -1, at}, tile.iteration, channel, writes});
}

void RoleWalker::addUse(RoleStep &step, Value value, bool writes) {
  auto found = tiles.find(value);
  if (found == tiles.end())
    return;
  BoundTile tile = found->second;
  if (tile.column)
    step.uses.push_back({{nullptr, *tile.column, 0}, tile.iteration, tile.channel, writes});
  else if (tile.channel.overlaps())
    addOverlappingUses(step, tile, writes);
  else
    step.uses.push_back({{tile.channel.getAsOpaquePointer(), tile.number,
                          tile.iteration % *tile.channel.getDepth()},
                         tile.iteration,
                         tile.channel,
                         writes});
}

/// Returns true when `op` writes the tile that is operand `value`.
static bool isWritten(Operation *op, Value value) {
  if (auto filler = dyn_cast<StageFillerOpInterface>(op))
    return filler.getSlot() == value;
  if (auto scaled = dyn_cast<ScaleRowsOp>(op))
    return scaled.getTile() == value;
  auto engineOp = dyn_cast<EngineOpInterface>(op);
  return engineOp && engineOp.getEngine() == Engine::Tensor && op->getOperand(0) == value &&
         isa<TmemType>(value.getType());
}

void RoleWalker::addStep(Operation *op) {
  RoleStep step = {op, std::nullopt, {}};
  auto use = dyn_cast<ChannelOpInterface>(op);
  if (use && use.getIteration())
    step.iteration = known(use.getIteration());
  if (isTake(op) && step.iteration)
    for (auto [i, slot] : llvm::enumerate(op->getResults()))
      tiles[slot] = {use.getChannel().getDefiningOp<ChannelOp>(), int64_t(i), *step.iteration, {}};
  auto copy = dyn_cast<CopyScalesOp>(op);
  if (!copy || copy.fillsTile())
    for (Value operand : op->getOperands())
      addUse(step, operand, isWritten(op, operand));
  if (copy && copy.fillsTile())
    addUse(step, op->getResult(0), /*writes=*/true);
  if (use ? !isa<ExpectTxOp>(op) : !step.uses.empty())
    result.steps.push_back(std::move(step));
}

/// (C627) The columns of a set are those of the iteration.
LogicalResult RoleWalker::bindScales(CopyScalesOp op) {
  auto source = tiles.find(op.getSource());
  if (source == tiles.end() || !op.getTmemColumnAttr())
    return success();
  BoundTile tile = source->second;
  int64_t sets = op.getSets().value_or(1), set = tile.iteration % sets;
  if (op.getSet() && int64_t(*op.getSet()) != set)
    return withNote(op.emitOpError() << "set must be " << set << " in iteration " << tile.iteration
                                     << " of its channel, but is " << *op.getSet(),
                    "leave 'set' out where iterations of one loop have different sets");
  tile.column = op.getTmemColumnAttr().getInt() + set * op.getType().getTmemColumns();
  tiles[op.getResult()] = tile;
  return success();
}

LogicalResult RoleWalker::checkStage(StageOfOp op) {
  auto iteration = known(op.getIteration()), stage = known(op.getStage()),
       phase = known(op.getPhase());
  if (!iteration || (!stage && !phase))
    return success();
  auto depth = int64_t(op.getDepth()), at = *iteration + int64_t(op.getAhead());
  int64_t expected = at % depth, turn = (at / depth + op.getOpposite()) % 2;
  if (stage.value_or(expected) == expected && phase.value_or(turn) == turn)
    return success();
  return withNote(op.emitOpError() << "stage and phase of iteration " << at << " must be "
                                   << expected << " and " << turn << ", but are "
                                   << stage.value_or(expected) << " and " << phase.value_or(turn),
                  "the stage is the iteration modulo the depth, and the phase changes whenever the "
                  "stages begin again"); // (C627)
}

LogicalResult RoleWalker::walk(Block *block) {
  for (Operation &op : *block) {
    if (isFull())
      return success();
    LogicalResult walked = success();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      walked = walkFor(loop);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      walked = walkWhile(loop);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      walked = walkIf(branch);
    else if (op.getNumRegions())
      walked = walkOther(&op);
    else if (auto stage = dyn_cast<StageOfOp>(op))
      walked = checkStage(stage);
    else if (auto copy = dyn_cast<CopyScalesOp>(op))
      walked = bindScales(copy);
    if (failed(walked))
      return failure();
    if (op.getNumRegions() == 0)
      addStep(&op);
    if (op.getNumRegions() == 0 && op.getNumResults() == 1 &&
        op.getResult(0).getType().isIntOrIndex())
      set(op.getResult(0), evaluate(&op));
  }
  return success();
}

RoleAttr fp4::pipe::roleOf(Operation *op) { return op->getParentOfType<RoleRegionOp>().getRole(); }

FailureOr<RoleSteps> fp4::pipe::stepsOf(RoleRegionOp role, const RoleLimits &limits) {
  RoleWalker walker(limits);
  if (failed(walker.walk(&role.getBody().front())))
    return failure();
  return std::move(walker.result);
}
