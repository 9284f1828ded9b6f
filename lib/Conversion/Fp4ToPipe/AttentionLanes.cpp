//===- AttentionLanes.cpp - Attention with products in tensor memory -------===//
//
// One thread issues all products, and a role of 128 threads has 128 rows of queries, a part of the
// tile, each thread a row. Parts share the keys and values that are loaded: while the threads of
// one part compute powers, the tensor core multiplies for the other. Threads write their powers,
// rounded, into tensor memory, as operand A of the products with values.
//
// The sums of a row stay in tensor memory, where the tensor core adds the products of each block.
// Threads scale them only if the maximum of a row has grown by more than 2^8 since the last time
// (numerics::kLazyGrowth): powers of a block are up to 2^8 then, which no type of theirs minds.
//
// Powers of e4m3 are up to 2^8 in any case, so that a maximum that may grow by 2^g leaves 2^(8 - g)
// for the powers of others: FlashAttention-4 takes g = 0, and FlashInfer g = 8.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Numerics/Recipe.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Emits `body`, whose operations of threads are those of part `number`.
void AttentionBuilder::inPart(size_t number, ArrayRef<QueryPart> parts, function_ref<void()> body) {
  if (parts[number].role.empty())
    return body();
  inRole(parts[number].role, {Engine::Threads}, body);
}

/// The parts of a tile, whose queries are loaded.
SmallVector<QueryPart> AttentionBuilder::partsOf(const QueryTile &tile) {
  SmallVector<StringRef> names = partRoles(attention.plan);
  SmallVector<QueryPart> parts(size_t(attention.parts()));
  for (auto [number, part] : llvm::enumerate(parts)) {
    part.tile = tile;
    if (number) {
      Value behind = b.constant(int64_t(number) * attention.partTokens());
      part.tile.row = b.add(tile.row, behind);
      part.tile.left = b.sub(tile.left, behind);
      part.role = names[number - 1];
    }
    part.query = loads.query(part.tile);
    if (attention.isBlockScaled())
      part.scales = copyScales(loads.queryScales(part.tile));
    if (args.slopes)
      inPart(number, parts, [&, &part = part] { part.tile.slopes = slopesOf(part.tile); });
  }
  return parts;
}

void AttentionBuilder::buildLanes(const QueryTile &tile) {
  SmallVector<QueryPart> parts = partsOf(tile);
  Range range = rangeOf(tile);
  LaneStates states = passLanes(parts, tile, range);
  SmallVector<LaneOperand> powers = writePowers(parts, states);
  BlockRows rows = rowsAgain(states.front().kept.rows, tile, range.begin);
  LaneOperand values = valuesOf(tile, range.begin, rows);
  Value more = b.compare(arith::CmpIPredicate::sgt, b.sub(range.end, range.begin), b.constant(1));
  SmallVector<Value> sums;
  for (size_t number = 0; number < parts.size(); ++number)
    sums.push_back(multiplyPowers(number, powers[number], values, more));
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      finish(part.tile, sums[number], states[number].maximum, states[number].sum);
    });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// All values of the states of parts, and the states of such values.
static SmallVector<Value> toValues(ArrayRef<RowState> states) {
  SmallVector<Value> values;
  for (const RowState &state : states) {
    llvm::append_values(values, state.maximum, state.sum, state.powers);
    if (state.scales)
      values.push_back(state.scales);
  }
  llvm::append_range(values, states.front().kept.rows);
  llvm::append_range(values, states.front().kept.next);
  return values;
}
static SmallVector<RowState, 2> toStates(ValueRange values, size_t parts, bool haveScales) {
  const size_t ofPart = haveScales ? 4 : 3;
  SmallVector<RowState, 2> states;
  for (size_t i = 0; i < parts; ++i) {
    ValueRange of = values.slice(i * ofPart, ofPart);
    states.push_back({of[0], of[1], of[2], haveScales ? of[3] : Value(), /*shrink=*/Value(), {}});
  }
  ValueRange rows = values.drop_front(parts * ofPart);
  states.front().kept = {BlockRows(rows.take_front(rows.size() / 2)),
                         BlockRows(rows.drop_front(rows.size() / 2))};
  return states;
}

/// Passes over the blocks of `range` but for the values of the first one, which come last.
AttentionBuilder::LaneStates
AttentionBuilder::passLanes(ArrayRef<QueryPart> parts, const QueryTile &tile, const Range &range) {
  Value last = b.sub(range.end, b.constant(1));
  LaneStates first = firstLanes(parts, tile, last);
  bool haveScales = bool(first.front().scales);
  Value count = attention.window() ? b.sub(range.end, range.begin) : range.end;
  auto loop = scf::ForOp::create(b, b.constant(1), count, b.constant(1), toValues(first));
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value more = b.compare(arith::CmpIPredicate::sgt, number, b.constant(1));
  LaneStates after = nextLanes(parts, tile, b.sub(last, number), more,
                               toStates(loop.getRegionIterArgs(), parts.size(), haveScales));
  scf::YieldOp::create(b, toValues(after));
  return toStates(loop.getResults(), parts.size(), haveScales);
}

/// The scores of a block of keys of a part.
Value AttentionBuilder::laneScores(const QueryPart &part, Value block, Value products) {
  return scoresOf(part.tile, b.mul(block, attention.keys), read(products, 0, attention.keys));
}

AttentionBuilder::LaneStates AttentionBuilder::firstLanes(ArrayRef<QueryPart> parts,
                                                          const QueryTile &tile, Value block) {
  LaneStates states(parts.size());
  BlockRows rows = loads.rowsOf(tile, block);
  LaneOperand keys = keysOf(tile, block, rows);
  SmallVector<Value> products;
  for (auto [number, part] : llvm::enumerate(parts))
    products.push_back(multiplyKeys(part, number, keys));
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      states[number] = firstWeights(laneScores(part, block, products[number]));
      roundPowers(states[number]);
    });
  keepRows(states.front().kept, tile, block, rows);
  return states;
}

/// The scores of a block, and the sums of the block before, which are added to others with `more`.
/// All powers are written first, so that the tensor core has work while threads wait for scores.
/// The tensor core adds to sums while threads find a maximum; that of 64 keys takes less time, so
/// that threads compute powers, too, before they wait for sums.
AttentionBuilder::LaneStates AttentionBuilder::nextLanes(ArrayRef<QueryPart> parts,
                                                         const QueryTile &tile, Value block,
                                                         Value more, const LaneStates &before) {
  LaneStates after(parts.size());
  const KeptRows &kept = before.front().kept;
  SmallVector<LaneOperand> powers = writePowers(parts, before);
  BlockRows rows = rowsAgain(kept.next, tile, block);
  LaneOperand keys = keysOf(tile, block, rows);
  SmallVector<Value> sums, products;
  Value last = b.add(block, b.constant(1));
  LaneOperand values = valuesOf(tile, last, rowsAgain(kept.rows, tile, last));
  for (auto [number, part] : llvm::enumerate(parts)) {
    products.push_back(multiplyKeys(part, number, keys));
    sums.push_back(multiplyPowers(number, powers[number], values, more));
  }
  bool scalesLast = attention.keys <= kPanel;
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      Value scores = laneScores(part, block, products[number]);
      after[number] = nextMaximum(scores, before[number]);
      auto scaleSums = [&] { ScaleRowsOp::create(b, sums[number], after[number].shrink); };
      if (!scalesLast)
        scaleSums();
      addWeights(after[number], scores, before[number]);
      roundPowers(after[number]);
      if (scalesLast)
        scaleSums();
    });
  keepRows(after.front().kept, tile, block, rows);
  return after;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A tile of products in tensor memory, all of which are stages of `ring`.
static AccumulatorOp accumulator(TileBuilder &b, int64_t columns, StringAttr ring) {
  auto type = TmemType::get({kMmaM, columns}, b.getF32Type(), Layout::Linear);
  auto made = AccumulatorOp::create(b, type);
  made->setAttr(kRingAttr, ring);
  return made;
}

/// Scales of blocks in tensor memory, where MMAs take them from.
Value AttentionBuilder::copyScales(Value scales) {
  auto type = cast<SharedType>(scales.getType());
  auto ofLanes = TmemType::get(type.getShape(), type.getElementType(), type.getLayout());
  return CopyScalesOp::create(b, ofLanes, scales, /*blocks=*/Value(), IntegerAttr(), IntegerAttr(),
                              IntegerAttr());
}

/// A block of keys, whose scales may begin in the middle of a scale tile.
LaneOperand AttentionBuilder::keysOf(const QueryTile &tile, Value block, const BlockRows &rows) {
  LaneOperand keys = {loads.key(tile, rows), {}, {}};
  if (!attention.isBlockScaled())
    return keys;
  keys.scales = copyScales(loads.keyScales(tile, block));
  if (attention.keys % kScaleBlockRows)
    keys.row = b.rem(b.mul(block, attention.keys), kScaleBlockRows);
  return keys;
}

/// A block of values, in rows of keys, or of all keys a row for each element of a head.
LaneOperand AttentionBuilder::valuesOf(const QueryTile &tile, Value block, const BlockRows &rows) {
  if (!attention.op.hasValueRows())
    return {loads.value(tile, rows), {}, {}};
  Value values = loads.valueRows(tile, block);
  return {values, copyScales(loads.valueScales(tile, block)), {}};
}

/// The products of a part's queries and a block of keys.
Value AttentionBuilder::multiplyKeys(const QueryPart &part, size_t number,
                                     const LaneOperand &keys) {
  AccumulatorOp products =
      accumulator(b, attention.keys, b.getStringAttr("scores" + Twine(number)));
  Value none;
  MmaOp::create(b, products, part.query, part.scales, none, keys.data, keys.scales, keys.row, none,
                none);
  return products;
}

/// Makes operand A of the powers of a state: rounded, or codes and scales of their blocks.
void AttentionBuilder::roundPowers(RowState &state) {
  if (!attention.ofValues().scale) {
    state.powers = rounded(state.powers, attention.ofValues().element);
    return;
  }
  std::string_view decisions =
      attention.ofValues().isPacked() ? numerics::kPowerRecipe : numerics::kBytePowerRecipe;
  auto recipe = RecipeAttr::get(b.getContext(), *numerics::parseRecipe(decisions));
  auto [codes, scales] =
      QuantizeBlocksOp::resultTypes(cast<RankedTensorType>(state.powers.getType()), recipe);
  Value none;
  auto quantized = QuantizeBlocksOp::create(
      b, codes, scales, state.powers, none, none, none, none, DenseI64ArrayAttr(), recipe,
      Philox::Element, /*columnwise=*/false, /*resident=*/true, /*place=*/IntegerAttr());
  state.powers = quantized.getCodes();
  state.scales = quantized.getScales();
}

/// Writes the powers of the last block of each part into tensor memory, where their scales come by
/// way of shared memory: a scale is in all quarters of the TMEM lanes, and threads reach one alone.
SmallVector<LaneOperand> AttentionBuilder::writePowers(ArrayRef<QueryPart> parts,
                                                       const LaneStates &states) {
  OperandFormat format = attention.ofValues();
  auto type = TmemType::get({kMmaM, attention.keys}, format.element, Layout::Linear);
  SmallVector<LaneOperand> powers(parts.size());
  for (size_t number = 0; number < parts.size(); ++number)
    inPart(number, parts, [&] {
      auto written = WriteOp::create(b, type, states[number].powers);
      written->setAttr(kRingAttr, b.getStringAttr("powers" + Twine(number)));
      powers[number].data = written.getResult();
      if (!states[number].scales)
        return;
      auto staged = StageOp::create(b, format.scaleTile(kMmaM, attention.keys),
                                    states[number].scales, /*dest=*/Value());
      staged->setAttr(kRingAttr, b.getStringAttr("power_scales" + Twine(number)));
      powers[number].scales = staged.getResult();
    });
  return powers;
}

/// The sums of a part with the products of its powers and a block of values; with `more` (i1) those
/// that threads have left are added to. Scales of powers, in shared memory, are copied here, so
/// that the tensor core waits for them behind the products of keys.
Value AttentionBuilder::multiplyPowers(size_t number, const LaneOperand &powers,
                                       const LaneOperand &values, Value more) {
  AccumulatorOp sums =
      accumulator(b, attention.valueElements(), b.getStringAttr("sums" + Twine(number)));
  sums->setAttr(kKeptAttr, b.getUnitAttr());
  Value none, scales = powers.scales ? copyScales(powers.scales) : none;
  MmaOp::create(b, sums, powers.data, scales, none, values.data, values.scales, none, more, none)
      .setTransposed(!attention.op.hasValueRows());
  return sums;
}
