//===- AttentionKernel.cpp - Blocks of queries pass over blocks of keys ---===//
//
// A CTA takes tiles of queries, a warpgroup 64 rows of each (128 with tensor memory,
// AttentionLanes.cpp): tokens of one head, or tokens and the heads that share keys. For every block
// of keys, from the last one to the first: the products of queries and keys, their maximum of each
// row, powers of two of their distances from it, and the products of these, rounded, and the
// values. If the maximum grows, the sums of before are scaled (online softmax). The values of a
// block are multiplied with the keys of the next one, while threads compute powers
// (pipe-chain-mmas). Only the last blocks have masks, which the tile's number decides.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The order of arguments is that of AttentionLowering.
AttentionArguments::AttentionArguments(Attention &attention, gpu::GPUFuncOp func) {
  unsigned number = 0;
  auto take = [&](Value &argument, bool isThere = true) {
    if (isThere)
      argument = func.getArgument(number++);
  };
  AttentionOp op = attention.op;
  take(queries);
  take(keys);
  take(values, !attention.isLatent());
  take(result, attention.results.storesElements || attention.slices > 1);
  take(pitch, attention.results.isStrided && attention.slices == 1);
  if (attention.isBlockScaled())
    for (auto [argument, operand] :
         llvm::zip(scales, std::array<Value, 3>{op.getQueryScales(), op.getKeyScales(),
                                                op.getValueScales()}))
      take(argument, bool(operand));
  take(lengths, bool(op.getLengths()));
  take(pages, bool(op.getPages()));
  for (Value *argument : {&keyFactors, &valueFactors})
    take(*argument, bool(op.getKeyFactors()));
  bool isWhole = attention.slices == 1;
  take(sinks, op.getSinks() && isWhole);
  take(slopes, bool(op.getSlopes()));
  for (Value *argument : {&table, &places})
    take(*argument, op.isPacked());
  for (Value *argument : {&keyOffsets, &keyRows})
    take(*argument, op.hasPackedKeys());
  take(lse, op.getLse() || !isWhole);
  take(wholes, !isWhole);
  if (!isWhole) // another kernel has the epilogue
    return;
  inputs.resize(attention.results.inputs.size());
  for (Value &input : inputs)
    take(input);
  for (Value *argument : derived.derived(attention.results))
    take(*argument);
}

void AttentionBuilder::build() {
  if (args.pitch)
    args.result = ViewOp::create(b, attention.elements(), args.result, /*offset=*/uint64_t(0),
                                 /*rows=*/Value(), /*columns=*/Value(), args.pitch);
  if (attention.results.quantizer && attention.slices == 1)
    stores.emplace(b, *attention.results.quantizer, args.derived, attention.op.getResultRows());
  bool isPacked = attention.isPacked();
  Value tiles = isPacked ? b.entry(args.table, args.places) : b.constant(attention.tiles());
  b.forEachWork(tiles, b.constant(attention.lists()),
                [&](Value number, Value head, Value) { buildTile(tileOf(number, head, tiles)); });
  gpu::ReturnOp::create(b);
}

QueryTile AttentionBuilder::tileOf(Value number, Value batchAndHead, Value tiles) {
  QueryTile tile;
  tile.batch = b.div(batchAndHead, attention.headTiles());
  Value head = b.rem(batchAndHead, attention.headTiles());
  if (attention.slices > 1) { // tiles of the same keys are neighbours
    tile.slice = b.rem(tile.batch, attention.slices);
    tile.batch = b.div(tile.batch, attention.slices);
  }
  bool hasGroups = attention.tileHeads > 1;
  int64_t parts = hasGroups ? attention.tilesOfGroup() : 1;
  Value group = parts > 1 ? b.div(head, parts) : head;
  tile.keyHead = hasGroups ? group : b.div(head, attention.headsOfGroup());
  tile.head = hasGroups ? b.mul(group, attention.headsOfGroup()) : head;
  if (parts > 1)
    tile.head = b.add(tile.head, b.mul(b.rem(head, parts), attention.tileHeads));
  Value last = b.sub(b.sub(tiles, b.constant(1)), number);
  if (attention.op.getCausal()) // the longest first
    std::swap(number, last);
  bool areUneven = attention.op.getCausal() || attention.isPacked();
  placeTile(tile, b.inPanels(number, last, batchAndHead, attention.lists(), areUneven));
  loads.findKeys(tile);
  return tile;
}

/// Places a tile among the tokens of all sequences.
void AttentionBuilder::placeTile(QueryTile &tile, Value number) {
  if (attention.isPacked()) {
    tile.row = b.entry(args.table, number, 0);
    tile.rowsEnd = b.entry(args.table, number, 1);
    tile.batch = b.entry(args.table, number, 2);
    tile.left = b.sub(tile.rowsEnd, tile.row);
    return;
  }
  Value first = b.mul(number, attention.tileTokens());
  Value begin = b.mul(tile.batch, attention.queryTokens());
  tile.row = b.add(begin, first);
  tile.rowsEnd = b.add(begin, b.constant(attention.queryTokens()));
  tile.left = b.sub(b.constant(attention.queryTokens()), first);
}

/// The blocks of keys that some query of the tile sees, one at least: a tile that sees no key takes
/// a block all of whose keys are hidden.
Value AttentionBuilder::countBlocks(const QueryTile &tile) {
  if (attention.seesAll())
    return b.constant(attention.blocks());
  Value end = tile.keys;
  if (attention.op.getCausal()) // the end of the keys that the last query sees, if it exists
    end = b.sub(b.add(tile.keys, b.constant(attention.tileTokens())), tile.left);
  Value some = arith::MaxSIOp::create(b, end, b.constant(1));
  Value blocks = b.quotientUp(some, attention.keys);
  if (!attention.op.getCausal())
    return blocks;
  Value all = b.quotientUp(arith::MaxSIOp::create(b, tile.keys, b.constant(1)), attention.keys);
  return arith::MinSIOp::create(b, blocks, all);
}

/// The first block that some query of the tile sees, which is the first query; null: block 0.
Value AttentionBuilder::firstBlockSeen(const QueryTile &tile) {
  if (!attention.window())
    return {};
  Value first = b.sub(endForFirstQuery(tile), b.constant(attention.window()));
  return b.div(arith::MaxSIOp::create(b, first, b.constant(0)), attention.keys);
}

/// The blocks of this CTA, one at least: CTAs behind the last block have one that is hidden.
AttentionBuilder::Range AttentionBuilder::rangeOf(const QueryTile &tile) {
  Value blocks = countBlocks(tile), seen = firstBlockSeen(tile);
  if (attention.partsOfKeys() == 1)
    return {seen ? seen : b.constant(0), blocks};
  Value place = tile.slice ? tile.slice : b.placeInCluster(gpu::Dimension::x);
  Value perCta = b.quotientUp(seen ? b.sub(blocks, seen) : blocks, attention.partsOfKeys());
  Value begin = arith::MulIOp::create(b, place, perCta);
  if (seen)
    begin = b.add(begin, seen);
  Value end = arith::MinSIOp::create(b, b.add(begin, perCta), blocks);
  return {begin, arith::MaxSIOp::create(b, end, b.add(begin, b.constant(1)))};
}

namespace {
/// Gives operations of some engines the role that executes them.
struct RoleListener : OpBuilder::Listener {
  RoleListener(StringAttr role, ArrayRef<Engine> engines) : role(role), engines(engines) {}

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    auto engineOp = dyn_cast<EngineOpInterface>(op);
    if (engineOp && llvm::is_contained(engines, engineOp.getEngine()))
      op->setAttr(PipeDialect::kRoleAttr, role);
  }

  StringAttr role;
  ArrayRef<Engine> engines;
};
} // namespace

/// Emits `body`, whose operations of `engines` are those of `role`.
void AttentionBuilder::inRole(StringRef role, ArrayRef<Engine> engines, function_ref<void()> body) {
  RoleListener listener(b.getStringAttr(role), engines);
  b.setListener(&listener);
  body();
  b.setListener(nullptr);
}

void AttentionBuilder::buildTile(QueryTile tile) {
  takeFactors(tile);
  if (attention.hasLanes())
    return buildLanes(tile);
  if (args.slopes)
    tile.slopes = slopesOf(tile);
  if (attention.isLatent())
    return buildLatent(tile);
  Value sums = makeSums();
  Range range = rangeOf(tile);
  RowState state = passBlocks(tile, range, sums);
  BlockRows rows = rowsAgain(state.kept.rows, tile, range.begin);
  if (attention.isPromoted())
    addPart(0, addOtherParts(tile, rows, state), state);
  else
    multiplyValues(tile, rows, state, sums);
  finish(tile, sums, state.maximum, state.sum);
}

/// All values of a state, and the state of such values.
static SmallVector<Value> toValues(const RowState &state) {
  SmallVector<Value> values = {state.maximum, state.sum, state.powers};
  if (state.shrink)
    values.push_back(state.shrink);
  llvm::append_range(values, state.kept.rows);
  llvm::append_range(values, state.kept.next);
  return values;
}
static RowState toState(ValueRange values, bool hasShrink) {
  ValueRange rows = values.drop_front(hasShrink ? 4 : 3);
  return {
      values[0],
      values[1],
      values[2],
      /*scales=*/Value(),
      hasShrink ? values[3] : Value(),
      {BlockRows(rows.take_front(rows.size() / 2)), BlockRows(rows.drop_front(rows.size() / 2))}};
}

/// The number of blocks from the last one of `range` to the last one all of whose keys every query
/// of the tile sees, but for such keys, one at least.
Value AttentionBuilder::countHidden(const QueryTile &tile, Value last, Value count) {
  Value seen = arith::MinSIOp::create(b, endForFirstQuery(tile), tile.keys);
  Value whole = b.div(arith::MaxSIOp::create(b, seen, b.constant(0)), attention.keys);
  Value hidden = b.sub(b.add(last, b.constant(1)), whole);
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, hidden, b.constant(1)), count);
}

/// Passes over the blocks of `range` but for the values of the first one, which come last. Blocks
/// in which each query sees each key have a loop of their own with `loopsApart`, or else a branch.
RowState AttentionBuilder::passBlocks(const QueryTile &tile, const Range &range, Value sums) {
  Value last = b.sub(range.end, b.constant(1));
  auto [query, first] = firstBlock(tile, last);
  bool beginsAtZero = attention.splits == 1 && !attention.window();
  Value count = beginsAtZero ? range.end : b.sub(range.end, range.begin);
  RowState state = first;
  auto pass = [&, query = query](Value from, Value to, HiddenKeys hidden) {
    auto loop = scf::ForOp::create(b, from, to, b.constant(1), toValues(state));
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    RowState after = nextBlock(tile, b.sub(last, loop.getInductionVar()), query, sums,
                               toState(loop.getRegionIterArgs(), attention.scalesLate()), hidden);
    scf::YieldOp::create(b, toValues(after));
    state = toState(loop.getResults(), attention.scalesLate());
  };
  Value next = b.constant(1);
  bool mayHide = attention.hidesBeforeLast();
  if (mayHide && !attention.loopsApart()) {
    pass(next, count, HiddenKeys::Maybe);
    return state;
  }
  if (mayHide) {
    Value hidden = countHidden(tile, last, count);
    pass(next, hidden, HiddenKeys::Some);
    next = hidden;
  }
  pass(next, count, HiddenKeys::None);
  return state;
}

/// Keeps the rows of a block of a cache until its values come, and finds those of the block behind
/// it, or of some rows behind the last one. Other rows cost less than registers.
void AttentionBuilder::keepRows(KeptRows &kept, const QueryTile &tile, Value block,
                                const BlockRows &rows) {
  if (!attention.isPaged())
    return;
  kept.rows = rows;
  Value before = b.sub(block, b.constant(1));
  kept.next = loads.rowsOf(tile, arith::MaxSIOp::create(b, before, b.constant(0)));
}

/// The rows of a block that were `kept`, or else are found again.
BlockRows AttentionBuilder::rowsAgain(const BlockRows &kept, const QueryTile &tile, Value block) {
  return kept.empty() ? loads.rowsOf(tile, block) : kept;
}

/// The scores of the queries and a block of keys.
Value AttentionBuilder::scoresOf(const QueryTile &tile, Value block, Value key, Value query,
                                 HiddenKeys hidden) {
  Value firstKey = b.mul(block, attention.keys);
  Value products = fragment(attention.keys);
  MmaOp::create(b, products, query, key);
  return scoresOf(tile, firstKey, read(products), hidden);
}

/// The scores of `products`, of the keys from `firstKey` on.
Value AttentionBuilder::scoresOf(const QueryTile &tile, Value firstKey, Value products,
                                 HiddenKeys hidden) {
  Value scores = biased(tile, firstKey, softcapped(products));
  if (attention.isWhole() || hidden == HiddenKeys::None)
    return scores;
  return hidden == HiddenKeys::Some ? hide(tile, firstKey, scores) : masked(tile, firstKey, scores);
}

/// The hyperbolic tangents of products with a softcap, whose factor is that of the exponent.
Value AttentionBuilder::softcapped(Value products) {
  if (!attention.op.getSoftcap())
    return products;
  Value factor = splat(attention.keys, float(attention.op.getTangentFactor()));
  if (keyFactor)
    factor =
        arith::MulFOp::create(b, factor, b.splat(attention.numbers(attention.keys), keyFactor));
  return b.tangentsOf(products, factor);
}

/// The slope of each row in the scale of products, negative.
Value AttentionBuilder::slopesOf(const QueryTile &tile) {
  AttentionOp op = attention.op;
  double scale = op.getSoftcap().value_or(op.getScale()).convertToDouble();
  Value slopes = arith::MulFOp::create(b, ofHeads(tile, args.slopes), splat(1, float(-1 / scale)));
  if (!keyFactor || op.getSoftcap())
    return slopes;
  return arith::DivFOp::create(b, slopes, b.splat(attention.numbers(1), keyFactor));
}

/// Adds to each product its slope times the distance of the key from the query. Numbers of keys are
/// the mantissas of floats behind 2^23, since conversions are as slow as powers: an addition for
/// each, whose part of the thread and of the column are known.
Value AttentionBuilder::biased(const QueryTile &tile, Value firstKey, Value products) {
  if (!args.slopes)
    return products;
  constexpr int64_t bitsOfOrigin = 0x4B000000; // of 2^23
  int64_t columns = attention.keys;
  RankedTensorType ofKeys = attention.numbers(columns).clone(b.getI32Type());
  Value origin = b.splat(ofKeys, b.constant(bitsOfOrigin));
  Value column = ElementIndexOp::create(b, ofKeys, uint64_t(1));
  Value key = arith::BitcastOp::create(b, attention.numbers(columns),
                                       arith::AddIOp::create(b, column, origin));
  RankedTensorType ofRows = attention.numbers(1).clone(b.getI32Type());
  Value seen = b.sub(endForFirstQuery(tile), b.add(firstKey, b.constant(1)));
  Value place = arith::AddIOp::create(b, tokensOf(ofRows), b.splat(ofRows, seen));
  Value query = arith::AddFOp::create(b, arith::SIToFPOp::create(b, attention.numbers(1), place),
                                      splat(1, 0x1p23f));
  Value distance =
      math::AbsFOp::create(b, arith::SubFOp::create(b, toColumns(query, columns), key));
  return math::FmaOp::create(b, distance, toColumns(tile.slopes, columns), products);
}

/// `maximum`, or 0 where no key has been seen, so that distances from it are numbers.
Value AttentionBuilder::originOf(Value maximum) {
  if (!attention.mayHideBlocks())
    return maximum;
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum, nothing(/*columns=*/1));
  return arith::SelectOp::create(b, isNone, splat(1, 0), maximum);
}

/// Powers of the distances of `scores` from `maximum`.
Value AttentionBuilder::powersOf(Value scores, Value maximum) {
  int64_t columns = attention.keys;
  Value scaled = arith::MulFOp::create(b, maximum, factor(1));
  Value offset = attention.isOfBytes() ? arith::SubFOp::create(b, powerShift(), scaled).getResult()
                                       : arith::NegFOp::create(b, scaled).getResult();
  return exp2(math::FmaOp::create(b, scores, factor(columns), toColumns(offset, columns)));
}

/// The numbers of rows behind the first block, whose powers are not rounded yet.
RowState AttentionBuilder::firstWeights(Value scores) {
  RowState first;
  first.maximum = maximumOfRow(scores);
  first.powers = powersOf(scores, originOf(first.maximum));
  first.sum = sumOfRow(first.powers, attention.sumColumns());
  return first;
}

/// The maximum behind a further block, and what it multiplies the sums of before by. A maximum that
/// grows by little stays what it was.
RowState AttentionBuilder::nextMaximum(Value scores, const RowState &before) {
  RowState after;
  after.maximum = arith::MaximumFOp::create(b, before.maximum, maximumOfRow(scores));
  Value grown = arith::SubFOp::create(b, before.maximum, originOf(after.maximum));
  Value exponent = arith::MulFOp::create(b, grown, factor(1));
  after.shrink = exp2(exponent);
  if (attention.growth() <= 0)
    return after;
  Value stays = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, exponent,
                                      splat(1, float(-attention.growth())));
  after.maximum = arith::SelectOp::create(b, stays, before.maximum, after.maximum);
  after.shrink = arith::SelectOp::create(b, stays, splat(1, 1), after.shrink);
  return after;
}

/// The powers of a further block, which are not rounded yet, and their sum with those of before.
void AttentionBuilder::addWeights(RowState &after, Value scores, const RowState &before) {
  after.powers = powersOf(scores, originOf(after.maximum));
  int64_t columns = attention.sumColumns();
  Value shrink = columns > 1 ? toColumns(after.shrink, columns) : after.shrink;
  Value scaled = arith::MulFOp::create(b, before.sum, shrink);
  after.sum = arith::AddFOp::create(b, scaled, sumOfRow(after.powers, columns));
}

/// Queries, and the numbers behind the block that comes first. Keys are loaded while the tile
/// before still needs its queries.
std::pair<Value, RowState> AttentionBuilder::firstBlock(const QueryTile &tile, Value block) {
  BlockRows rows = loads.rowsOf(tile, block);
  KeptRows kept;
  keepRows(kept, tile, block, rows);
  Value key = loads.key(tile, rows), query = loads.query(tile);
  RowState first = firstWeights(scoresOf(tile, block, key, query, HiddenKeys::Maybe));
  first.kept = kept;
  first.powers = rounded(first.powers, attention.element());
  if (attention.scalesLate())
    first.shrink = splat(1, 1);
  return {query, first};
}

/// The products of the next block of keys, and of the last block of values, which run together.
RowState AttentionBuilder::nextBlock(const QueryTile &tile, Value block, Value query, Value sums,
                                     RowState before, HiddenKeys hidden) {
  BlockRows rows = rowsAgain(before.kept.next, tile, block);
  BlockRows ofValues = rowsAgain(before.kept.rows, tile, b.add(block, b.constant(1)));
  SmallVector<Value> values;
  if (attention.isPromoted())
    values = addOtherParts(tile, ofValues, before);
  KeptRows kept;
  keepRows(kept, tile, block, rows);
  Value scores = scoresOf(tile, block, loads.key(tile, rows), query, hidden);
  RowState after = nextMaximum(scores, before);
  addWeights(after, scores, before);
  after.kept = kept;
  if (attention.isPromoted())
    addPart(0, values, before);
  else
    multiplyValues(tile, ofValues, before, sums);
  after.powers = rounded(after.powers, attention.element());
  if (attention.scalesLate()) // sums are scaled when the next products are added
    return after;
  scale(sums, after.shrink);
  after.shrink = Value();
  return after;
}

/// Adds the products of the powers of `state` and a block of values to `sums`, which are scaled
/// first where `state` has a factor.
void AttentionBuilder::multiplyValues(const QueryTile &tile, const BlockRows &rows,
                                      const RowState &state, Value sums) {
  Value value = loads.value(tile, rows);
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product = MmaOp::create(b, sums, state.powers, none, none, value, none, none, always, none);
  product.setTransposed(true);
  if (state.shrink)
    product.getFactorsMutable().assign(state.shrink);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// The token of each row in its tile.
Value AttentionBuilder::tokensOf(RankedTensorType type) {
  Value row = ElementIndexOp::create(b, type, uint64_t(0));
  if (attention.tileHeads == 1)
    return row;
  return arith::DivUIOp::create(b, row, b.splat(type, b.constant(attention.tileHeads)));
}

/// The end of the keys up to that at the place of the first query of a tile, which are those that
/// it sees with a causal mask.
Value AttentionBuilder::endForFirstQuery(const QueryTile &tile) {
  return b.sub(b.add(tile.keys, b.constant(1)), tile.left);
}

/// Returns true (i1) where some query does not see a key of the block: the first query the last
/// key, or the last query the first one.
Value AttentionBuilder::isMasked(const QueryTile &tile, Value firstKey) {
  Value end = b.add(firstKey, b.constant(attention.keys)), seen = tile.keys;
  if (attention.op.getCausal())
    seen = arith::MinSIOp::create(b, endForFirstQuery(tile), tile.keys);
  Value isBehind = b.compare(arith::CmpIPredicate::sgt, end, seen);
  if (!attention.window())
    return isBehind;
  Value begin =
      b.add(endForFirstQuery(tile), b.constant(attention.partTokens() - 1 - attention.window()));
  return arith::OrIOp::create(b, isBehind, b.compare(arith::CmpIPredicate::slt, firstKey, begin));
}

/// `products` with minus infinity where a query does not see a key, in the blocks that have such
/// keys.
Value AttentionBuilder::masked(const QueryTile &tile, Value firstKey, Value products) {
  return b.replaceWhen(isMasked(tile, firstKey), products,
                       [&] { return hide(tile, firstKey, products); });
}

Value AttentionBuilder::hide(const QueryTile &tile, Value firstKey, Value products) {
  RankedTensorType type = attention.numbers(attention.keys).clone(b.getI32Type());
  auto tileOfScalar = [&](Value scalar) { return b.splat(type, scalar); };
  Value column = ElementIndexOp::create(b, type, uint64_t(1));
  Value begin;
  Value limit = tileOfScalar(b.sub(tile.keys, firstKey));
  if (attention.op.getCausal()) {
    Value seen = b.sub(endForFirstQuery(tile), firstKey);
    Value ofRow = arith::AddIOp::create(b, tokensOf(type), tileOfScalar(seen));
    limit = arith::MinSIOp::create(b, limit, ofRow);
    if (attention.window())
      begin = arith::SubIOp::create(b, ofRow, tileOfScalar(b.constant(attention.window())));
  }
  Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column, limit);
  if (begin)
    isSeen = arith::AndIOp::create(
        b, isSeen, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, column, begin));
  return arith::SelectOp::create(b, isSeen, products, nothing(attention.keys));
}
