//===- AttentionLanes.cpp - Attention with products in tensor memory -------===//
//
// One thread issues all products, and a role of 128 threads has 128 rows of queries, a part of the
// tile, each thread a row. Parts share the keys and values that are loaded: while the threads of
// one part compute powers, the tensor core multiplies for the other. Threads write their powers,
// rounded, into tensor memory, as operand A of the products with values.
//
// The sums of a row are in the registers of its thread, and not in tensor memory: the thread adds
// the products of each block, `sums = sums * shrink + products`, one instruction for an element.
// Sums in tensor memory would be read, multiplied and written instead, and the next MMA would wait
// for that. Products of a block are sums of the tensor core, and those of blocks are sums of fp32.
//
// The program writes all powers of a block first, then multiplies the keys of the next one, and the
// powers behind these: so that the tensor core has work while threads wait for scores.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of products that are read at a time: with twice as many, ptxas spills some of the sums
/// of a row.
static constexpr int64_t kReadColumns = 32;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {
/// Gives operations of threads the role that executes them.
struct RoleListener : OpBuilder::Listener {
  explicit RoleListener(StringAttr role) : role(role) {}

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    auto engineOp = dyn_cast<EngineOpInterface>(op);
    if (engineOp && engineOp.getEngine() == Engine::Threads)
      op->setAttr(PipeDialect::kRoleAttr, role);
  }

  StringAttr role;
};
} // namespace

/// Emits `body`, whose operations of threads are those of part `number`.
void AttentionBuilder::inPart(size_t number, ArrayRef<QueryPart> parts, function_ref<void()> body) {
  if (parts[number].role.empty())
    return body();
  RoleListener listener(b.getStringAttr(parts[number].role));
  b.setListener(&listener);
  body();
  b.setListener(nullptr);
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
    inPart(number, parts, [&, &part = part] {
      if (args.slopes)
        part.tile.slopes = slopesOf(part.tile);
      part.sums = fragment(attention.valueElements());
    });
  }
  return parts;
}

void AttentionBuilder::buildLanes(const QueryTile &tile) {
  SmallVector<QueryPart> parts = partsOf(tile);
  Range range = rangeOf(tile);
  LaneStates states = passLanes(parts, tile, range);
  SmallVector<Value> powers = writePowers(parts, states);
  BlockRows rows = rowsAgain(states.front().kept.rows, tile, range.begin);
  SmallVector<Value> products = multiplyPowers(parts, tile, rows, powers);
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      const RowState &state = states[number];
      addProducts(part, products[number], state.shrink);
      finish(part.tile, part.sums, state.maximum, state.sum);
    });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// All values of the states of parts, and the states of such values.
static SmallVector<Value> toValues(ArrayRef<RowState> states) {
  SmallVector<Value> values;
  for (const RowState &state : states)
    llvm::append_values(values, state.maximum, state.sum, state.powers, state.shrink);
  llvm::append_range(values, states.front().kept.rows);
  llvm::append_range(values, states.front().kept.next);
  return values;
}
static SmallVector<RowState, 2> toStates(ValueRange values, size_t parts) {
  constexpr size_t ofPart = 4;
  SmallVector<RowState, 2> states;
  for (size_t i = 0; i < parts; ++i) {
    ValueRange of = values.slice(i * ofPart, ofPart);
    states.push_back({of[0], of[1], of[2], of[3], {}});
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
  Value count = attention.window() ? b.sub(range.end, range.begin) : range.end;
  auto loop = scf::ForOp::create(b, b.constant(1), count, b.constant(1), toValues(first));
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(loop.getBody());
  LaneStates after = nextLanes(parts, tile, b.sub(last, loop.getInductionVar()),
                               toStates(loop.getRegionIterArgs(), parts.size()));
  scf::YieldOp::create(b, toValues(after));
  return toStates(loop.getResults(), parts.size());
}

AttentionBuilder::LaneStates AttentionBuilder::firstLanes(ArrayRef<QueryPart> parts,
                                                          const QueryTile &tile, Value block) {
  LaneStates states(parts.size());
  BlockRows rows = loads.rowsOf(tile, block);
  SmallVector<Value> products = multiplyKeys(parts, tile, rows);
  Value firstKey = b.mul(block, attention.keys);
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      Value all =
          ReadOp::create(b, attention.numbers(attention.keys), products[number], b.constant(0));
      states[number] = firstWeights(scoresOf(part.tile, firstKey, all));
      states[number].powers = rounded(states[number].powers);
      states[number].shrink = splat(1, 1); // sums are zeros
    });
  keepRows(states.front().kept, tile, block, rows);
  return states;
}

AttentionBuilder::LaneStates AttentionBuilder::nextLanes(ArrayRef<QueryPart> parts,
                                                         const QueryTile &tile, Value block,
                                                         const LaneStates &before) {
  LaneStates after(parts.size());
  const KeptRows &kept = before.front().kept;
  SmallVector<Value> powers = writePowers(parts, before);
  BlockRows rows = rowsAgain(kept.next, tile, block);
  SmallVector<Value> scores = multiplyKeys(parts, tile, rows);
  BlockRows ofValues = rowsAgain(kept.rows, tile, b.add(block, b.constant(1)));
  SmallVector<Value> products = multiplyPowers(parts, tile, ofValues, powers);
  Value firstKey = b.mul(block, attention.keys);
  for (auto [number, part] : llvm::enumerate(parts))
    inPart(number, parts, [&, number = number, &part = part] {
      addProducts(part, products[number], before[number].shrink);
      Value all =
          ReadOp::create(b, attention.numbers(attention.keys), scores[number], b.constant(0));
      after[number] = nextWeights(scoresOf(part.tile, firstKey, all), before[number]);
      after[number].powers = rounded(after[number].powers);
    });
  keepRows(after.front().kept, tile, block, rows);
  return after;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A tile of products in tensor memory, all of which are stages of `ring` of the part.
Value AttentionBuilder::accumulator(int64_t columns, StringRef ring, size_t part) {
  auto type = TmemType::get({kMmaM, columns}, b.getF32Type(), Layout::Linear);
  auto made = AccumulatorOp::create(b, type);
  made->setAttr(kRingAttr, b.getStringAttr(ring + Twine(part)));
  return made;
}

/// The products of each part's queries and a block of keys.
SmallVector<Value> AttentionBuilder::multiplyKeys(ArrayRef<QueryPart> parts, const QueryTile &tile,
                                                  const BlockRows &rows) {
  Value key = loads.key(tile, rows);
  SmallVector<Value> products;
  for (auto [number, part] : llvm::enumerate(parts)) {
    products.push_back(accumulator(attention.keys, "scores", number));
    MmaOp::create(b, products.back(), part.query, key);
  }
  return products;
}

/// Writes the powers of the last block of each part into tensor memory.
SmallVector<Value> AttentionBuilder::writePowers(ArrayRef<QueryPart> parts,
                                                 const LaneStates &states) {
  auto type = TmemType::get({kMmaM, attention.keys}, attention.element(), Layout::Linear);
  SmallVector<Value> powers;
  for (size_t number = 0; number < parts.size(); ++number)
    inPart(number, parts, [&] {
      auto written = WriteOp::create(b, type, states[number].powers);
      written->setAttr(kRingAttr, b.getStringAttr("powers" + Twine(number)));
      powers.push_back(written.getResult());
    });
  return powers;
}

/// The products of each part's powers and a block of values.
SmallVector<Value> AttentionBuilder::multiplyPowers(ArrayRef<QueryPart> parts,
                                                    const QueryTile &tile, const BlockRows &rows,
                                                    ArrayRef<Value> powers) {
  Value value = loads.value(tile, rows);
  SmallVector<Value> products;
  for (size_t number = 0; number < parts.size(); ++number) {
    products.push_back(accumulator(attention.valueElements(), "products", number));
    MmaOp::create(b, products.back(), powers[number], value).setTransposed(true);
  }
  return products;
}

/// sums = sums * shrink + products. The next products are on their way while those before are
/// added.
void AttentionBuilder::addProducts(const QueryPart &part, Value products, Value shrink) {
  RankedTensorType type = attention.numbers(kReadColumns);
  Value factors = toColumns(shrink, kReadColumns);
  auto readFrom = [&](int64_t first) -> Value {
    return ReadOp::create(b, type, products, b.constant(first));
  };
  Value next = readFrom(0);
  for (int64_t first = 0; first < attention.valueElements(); first += kReadColumns) {
    Value added = next;
    if (first + kReadColumns < attention.valueElements())
      next = readFrom(first + kReadColumns);
    Value sums = read(part.sums, first, kReadColumns);
    WriteOp::create(b, math::FmaOp::create(b, sums, factors, added), part.sums, uint64_t(first));
  }
}
