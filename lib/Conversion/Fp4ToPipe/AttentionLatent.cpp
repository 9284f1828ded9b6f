//===- AttentionLatent.cpp - Attention whose values are columns of keys ----===//
//
// A tile of keys is loaded once, and is operand B of both products. The sums of 512 columns are
// more than a warpgroup has registers for: the role that computes powers has the first half, and
// leaves powers, and what they scale sums by, in shared memory for the role of the other half. One
// block of keys is multiplied while the next one is loaded, since shared memory has room for two.
//
// Few tiles have their keys cut into slices, whose sums another kernel adds (AttentionSlices.cpp).
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/ISA/StagedSums.h"
#include "fp4/Plans/KernelPlans.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void AttentionBuilder::inValues(function_ref<void()> body) {
  inRole(kValuesRole, {Engine::Threads, Engine::Tensor}, body);
}

/// Sums of half of the columns of values, which are zero.
Value AttentionBuilder::zeroSums() {
  int64_t columns = attention.valueElements() / 2;
  Value sums = fragment(columns);
  WriteOp::create(b, splat(columns, 0), sums, uint64_t(0));
  return sums;
}

void AttentionBuilder::buildLatent(const QueryTile &tile) {
  Value query = loads.query(tile);
  SmallVector<Value, 2> sums = {zeroSums(), Value()};
  inValues([&] { sums[1] = zeroSums(); });
  Range range = rangeOf(tile);
  Value last = b.sub(range.end, b.constant(1));
  RowState state;
  SmallVector<Value> carried = {nothing(/*columns=*/1), splat(attention.sumColumns(), 0)};
  BlockRows rows = loads.rowsOf(tile, last);
  if (attention.isPaged()) // pages are read a block ahead
    llvm::append_range(carried, rows);
  auto loop =
      scf::ForOp::create(b, b.constant(0), b.sub(range.end, range.begin), b.constant(1), carried);
  {
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange before = loop.getRegionIterArgs();
    state.maximum = before[0];
    state.sum = before[1];
    state.kept.rows = BlockRows(before.drop_front(2));
    addLatent(tile, b.sub(last, loop.getInductionVar()), query, sums, state);
    SmallVector<Value> after = {state.maximum, state.sum};
    llvm::append_range(after, state.kept.rows);
    scf::YieldOp::create(b, after);
  }
  state.maximum = loop.getResult(0);
  state.sum = loop.getResult(1);
  finishLatent(tile, sums, state);
}

/// Adds a block of keys to the sums of both roles.
void AttentionBuilder::addLatent(const QueryTile &tile, Value block, Value query,
                                 ArrayRef<Value> sums, RowState &state) {
  BlockRows rows = rowsAgain(state.kept.rows, tile, block), next;
  if (attention.isPaged())
    next =
        loads.rowsOf(tile, arith::MaxSIOp::create(b, b.sub(block, b.constant(1)), b.constant(0)));
  Value keys = loads.key(tile, rows), products = fragment(attention.keys);
  MmaOp::create(b, products, query, keys);
  Value scores = scoresOf(tile, b.mul(block, attention.keys), read(products));
  RowState after = nextMaximum(scores, state);
  addWeights(after, scores, state);
  after.powers = rounded(after.powers, attention.element());
  auto staged =
      StageOp::create(b, attention.ofKeys().tile(attention.rows, attention.keys), after.powers,
                      /*dest=*/Value());
  staged->setAttr(kRingAttr, b.getStringAttr("powers"));
  Value shrink = handOver(after.shrink);
  addHalf(sums[0], after.powers, keys, after.shrink, /*half=*/0);
  inValues([&] { addHalf(sums[1], staged.getResult(), keys, taken(shrink), /*half=*/1); });
  state = after;
  state.kept.rows = next;
}

/// Scales the sums of half of the columns, and adds the products of powers and values.
void AttentionBuilder::addHalf(Value sums, Value powers, Value keys, Value shrink, int64_t half) {
  int64_t columns = attention.valueElements() / 2;
  Value scaled = arith::MulFOp::create(b, read(sums), toColumns(shrink, columns));
  WriteOp::create(b, scaled, sums, uint64_t(0));
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product = MmaOp::create(b, sums, powers, none, none, keys, none, none, always, none);
  product.setTransposed(true);
  product.setBColumn(uint64_t(half * columns));
}

/// Leaves a number of each row in shared memory for the other role, which takes it.
Value AttentionBuilder::handOver(Value numbers) {
  constexpr int64_t threads = 128;
  auto tile = SharedType::get({1, hw::sumsOfAccess * threads}, b.getF32Type());
  auto staged = StageOp::create(b, tile, toColumns(numbers, hw::columnsOfSums), /*dest=*/Value());
  staged->setAttr(kRingAttr, b.getStringAttr("rows"));
  return staged.getResult();
}
Value AttentionBuilder::taken(Value staged) {
  RankedTensorType type = attention.numbers(hw::columnsOfSums);
  return maximumOfRow(ReadOp::create(b, type, staged, int64_t(0), int64_t(0))); // all are equal
}

void AttentionBuilder::finishLatent(const QueryTile &tile, ArrayRef<Value> sums,
                                    const RowState &state) {
  int64_t columns = attention.valueElements() / 2;
  Value whole = sumOfRow(state.sum, /*columns=*/1);
  if (!tile.slice) {
    Value inverse = closeRows(tile, state.maximum, whole), staged = handOver(inverse);
    storeColumns(tile, read(sums[0]), 0, inverse);
    inValues([&] { storeColumns(tile, read(sums[1]), columns, taken(staged)); });
    return;
  }
  QueryTile ofSlice = tile;
  Value first = b.mul(tile.slice, attention.batches() * attention.queryTokens());
  ofSlice.row = b.add(tile.row, first);
  ofSlice.rowsEnd = b.add(tile.rowsEnd, first);
  storeNumbers(ofSlice, arith::MulFOp::create(b, state.maximum, factor(1)), args.lse);
  storeNumbers(ofSlice, whole, args.wholes);
  storeColumns(ofSlice, read(sums[0]), 0, /*inverse=*/Value());
  inValues([&] { storeColumns(ofSlice, read(sums[1]), columns, /*inverse=*/Value()); });
}
