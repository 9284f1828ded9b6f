//===- StageColumns.cpp - Columns of an accumulator, by turn --------------===//

#include "StageColumns.h"

#include "ChannelEnds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4::pipe;

/// `value` is the number of tiles before this one: the loop over work carries it from 0 on.
static bool countsTurns(Value value, ForEachWorkOp work) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!work || !argument || argument.getOwner() != work.getBody())
    return false;
  auto carried = llvm::find(work.getRegionIterArgs(), argument);
  if (carried == work.getRegionIterArgs().end())
    return false;
  size_t place = carried - work.getRegionIterArgs().begin();
  auto next = work.getYieldedValues()[place].getDefiningOp<arith::AddIOp>();
  return matchPattern(work.getInitArgs()[place], m_Zero()) && next && next.getLhs() == argument &&
         matchPattern(next.getRhs(), m_One());
}

/// Returns the value of `value` in turns of parity `parity`; it may use the lowest bit of the turn
/// only.
static std::optional<int64_t> valueIn(Value value, ForEachWorkOp work, int64_t parity) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::AndIOp, arith::MulIOp, arith::XOrIOp>(op))
    return std::nullopt;
  if (isa<arith::AndIOp>(op) && countsTurns(op->getOperand(0), work) &&
      matchPattern(op->getOperand(1), m_One()))
    return parity;
  auto x = valueIn(op->getOperand(0), work, parity), y = valueIn(op->getOperand(1), work, parity);
  if (!x || !y)
    return std::nullopt;
  return isa<arith::AddIOp>(op)   ? *x + *y
         : isa<arith::MulIOp>(op) ? *x * *y
         : isa<arith::XOrIOp>(op) ? *x ^ *y
                                  : *x & *y;
}

/// The smallest and the largest value of what a loop with constant bounds counts.
static std::optional<ColumnRange> countedBy(scf::ForOp loop) {
  APInt first, end, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&end)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSExtValue() < 1)
    return std::nullopt;
  int64_t low = first.getSExtValue(), count = end.getSExtValue() - low, by = step.getSExtValue();
  return ColumnRange{low, low + std::max<int64_t>(count - 1, 0) / by * by};
}

/// The loop over work each turn of which takes one stage, so that turns and stages have one parity.
/// In a loop around it stages could go on where turns begin again.
static ForEachWorkOp turnsOf(ConsumerWaitOp wait) {
  auto work = dyn_cast<ForEachWorkOp>(wait->getParentOp());
  if (!work || !isa<RoleRegionOp>(work->getParentOp()))
    return {};
  int64_t takes = 0;
  wait->getParentOfType<RoleRegionOp>().walk(
      [&](ConsumerWaitOp other) { takes += other.getChannel() == wait.getChannel(); });
  return takes == 1 ? work : ForEachWorkOp();
}

std::optional<ColumnRange> fp4::pipe::columnsRead(ReadOp read, ConsumerWaitOp wait, int64_t stage) {
  int64_t count = read.getResult().getType().getDimSize(1);
  if (auto column = valueIn(read.getColumn(), turnsOf(wait), stage))
    return ColumnRange{*column, *column + count};
  auto argument = dyn_cast<BlockArgument>(read.getColumn());
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  auto values = loop && loop.getInductionVar() == argument ? countedBy(loop) : std::nullopt;
  return values ? std::optional(ColumnRange{values->first, values->end + count}) : std::nullopt;
}

ColumnRange fp4::pipe::ownColumns(int64_t columns, int64_t common, int64_t stage) {
  return stage == 0 ? ColumnRange{0, columns - common} : ColumnRange{common, columns};
}

SmallVector<ReadOp> fp4::pipe::readsOf(ConsumerWaitOp wait) {
  SmallVector<ReadOp> reads;
  for (Operation *user : wait->getUsers()) {
    if (isa<PlaceOp>(user)) // names no columns
      continue;
    auto read = dyn_cast<ReadOp>(user);
    if (!read || read->getBlock() != wait->getBlock())
      return {};
    reads.push_back(read);
  }
  llvm::sort(reads, [](ReadOp x, ReadOp y) { return x->isBeforeInBlock(y); });
  return reads;
}

ReadOp fp4::pipe::lastCommonRead(ArrayRef<ReadOp> reads, ConsumerWaitOp wait, int64_t columns,
                                 int64_t common) {
  ReadOp last;
  for (ReadOp read : reads)
    for (int64_t stage = 0; stage < 2; ++stage) {
      std::optional<ColumnRange> range = columnsRead(read, wait, stage);
      if (!range)
        return {};
      ColumnRange own = ownColumns(columns, common, stage);
      if (range->first < own.first || own.end < range->end)
        last = read;
    }
  return last;
}
