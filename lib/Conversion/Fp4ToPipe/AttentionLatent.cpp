//===- AttentionLatent.cpp - Attention whose values are columns of keys ----===//
//
// A tile of keys is loaded once, and is operand B of both products. The sums of 512 columns are
// more than a warpgroup has registers for: the role that computes powers has the first half, and
// leaves powers, and what they scale sums by, in shared memory for the role of the other half. One
// block of keys is multiplied while the next one is loaded, since shared memory has room for two.
//
// Few tiles have their keys cut into slices, whose sums another kernel adds (AttentionSlices.cpp).
//
// In bytes another role transposes the columns of values, as in AttentionBytes.cpp, and each role
// promotes the sums of a block, a part of its columns after the other.
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

/// Emits `body` in the role that has part `number` of the columns of values.
void AttentionBuilder::inHalf(size_t number, function_ref<void()> body) {
  if (2 * number < promoted.size())
    return body();
  inValues(body);
}

/// Makes the sums of all parts, which are zero, and in bytes those of a block.
void AttentionBuilder::makeParts() {
  int64_t columns = attention.partColumns();
  promoted.assign(size_t(attention.valueElements() / columns), PromotedSums());
  for (size_t number = 0; number < promoted.size(); ++number)
    inHalf(number, [&] {
      Value sums = fragment(columns);
      WriteOp::create(b, splat(columns, 0), sums, uint64_t(0));
      promoted[number] = {sums, attention.isOfBytes() ? fragment(columns) : Value()};
    });
}

void AttentionBuilder::buildLatent(const QueryTile &tile) {
  Value query = loads.query(tile);
  makeParts();
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
    addLatent(tile, b.sub(last, loop.getInductionVar()), query, state);
    SmallVector<Value> after = {state.maximum, state.sum};
    llvm::append_range(after, state.kept.rows);
    scf::YieldOp::create(b, after);
  }
  state.maximum = loop.getResult(0);
  state.sum = loop.getResult(1);
  finishLatent(tile, state);
}

/// Adds a block of keys to the sums of both roles.
void AttentionBuilder::addLatent(const QueryTile &tile, Value block, Value query, RowState &state) {
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
  RowState theirs;
  theirs.powers = staged.getResult();
  inValues([&] { theirs.shrink = taken(shrink); });
  SmallVector<Value> values(promoted.size(), keys);
  if (attention.isOfBytes())
    values = transposedParts(keys);
  for (size_t number = 0; number < promoted.size(); ++number)
    inHalf(number,
           [&] { addColumns(number, values, 2 * number < values.size() ? after : theirs); });
  state = after;
  state.kept.rows = next;
}

/// Scales the sums of a part of the columns, and adds the products of powers and values.
void AttentionBuilder::addColumns(size_t number, ArrayRef<Value> values, const RowState &state) {
  if (attention.isOfBytes())
    return addPart(number, values, state);
  int64_t columns = attention.partColumns();
  Value sums = promoted[number].sums;
  Value scaled = arith::MulFOp::create(b, read(sums), toColumns(state.shrink, columns));
  WriteOp::create(b, scaled, sums, uint64_t(0));
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product =
      MmaOp::create(b, sums, state.powers, none, none, values[number], none, none, always, none);
  product.setTransposed(true);
  product.setBColumn(uint64_t(int64_t(number) * columns));
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

/// Stores the sums of all parts, times a number of each row; null: as they are.
void AttentionBuilder::storeParts(const QueryTile &tile, Value factors) {
  Value staged = factors ? handOver(factors) : Value(), theirs;
  if (staged)
    inValues([&] { theirs = taken(staged); });
  for (auto [number, part] : llvm::enumerate(promoted))
    inHalf(number, [&] {
      Value factor = 2 * number < promoted.size() ? factors : theirs;
      storeColumns(tile, read(part.sums), int64_t(number) * attention.partColumns(), factor);
    });
}

void AttentionBuilder::finishLatent(const QueryTile &tile, const RowState &state) {
  Value whole = sumOfRow(state.sum, /*columns=*/1), ofValues;
  if (tile.valueFactor)
    ofValues = b.splat(attention.numbers(1), tile.valueFactor);
  if (!tile.slice) {
    Value inverse = closeRows(tile, state.maximum, whole);
    return storeParts(tile,
                      ofValues ? arith::MulFOp::create(b, inverse, ofValues).getResult() : inverse);
  }
  QueryTile ofSlice = tile;
  Value first = b.mul(tile.slice, attention.batches() * attention.queryTokens());
  ofSlice.row = b.add(tile.row, first);
  ofSlice.rowsEnd = b.add(tile.rowsEnd, first);
  Value exponent = arith::MulFOp::create(b, state.maximum, factor(1));
  if (attention.isOfBytes())
    exponent = arith::SubFOp::create(b, exponent, powerShift());
  storeNumbers(ofSlice, exponent, args.lse);
  storeNumbers(ofSlice, whole, args.wholes);
  storeParts(ofSlice, ofValues);
}
