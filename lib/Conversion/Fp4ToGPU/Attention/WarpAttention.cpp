//===- WarpAttention.cpp - Few queries over keys of any format ------------===//
//
// The keys of a sequence are cut into parts, a CTA each, and the warps of a CTA take 16 keys at a
// time. Keys and values are operand A of mma.sync, so that threads convert them in registers and
// few queries, operand B, waste nothing:
//
//   S^T = K Q^T     16 keys x 8 queries: a lane has keys g and g + 8 (WarpMma.h)
//   O^T = V^T P^T   16 elements x 8 queries: a lane has keys 2t, 2t + 1, 2t + 8 and 2t + 9
//
// The words of the next 16 keys are loaded before those of these are converted, and their page one
// step earlier. Each warp scales its sums as its maximum grows (online softmax). In the end the
// warps of a CTA, and then the CTAs of a sequence in the last of them, become one state in an order
// that depends on the plan alone.
//
// Rows of queries are tokens and the heads that share keys.
//
//===----------------------------------------------------------------------===//
#include "Attention/CacheRows.h"
#include "Attention/WarpState.h"
#include "InlinePtx.h"
#include "Lowering.h"
#include "Reduce/GridMax.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

/// Keys of a step, and lanes that share a row of keys and of values.
constexpr int64_t kKeys = kWarpRows, kLanesOfKey = 4, kLanesOfValue = 8;
constexpr int64_t kWidestAccess = 16;

class WarpAttention {
public:
  WarpAttention(AttentionOp op, LoweringContext &context);
  void lower();

private:
  using Values = SmallVector<Value>;

  /// The sizes of the operation, and of its tiles.
  struct Sizes {
    int64_t tokens, heads, keyHeads, elements, valueElements, keys; ///< of a sequence
    int64_t pages = 0, pageTokens = 0; ///< of a sequence, and of a page
    int64_t batches, rows, tiles;      ///< tiles of eight rows
    int64_t rowTiles, parts, warps;

    int64_t headsOfGroup() const { return heads / keyHeads; }
    int64_t works() const { return batches * keyHeads * rowTiles; }
    int64_t valueTiles() const { return valueElements / kWarpRows; }
  };
  /// A CTA's part of the keys of a sequence, in steps of 16.
  struct Work {
    Int32 number; ///< of the parts of one result
    Int32 batch, keyHead, firstRow;
    Value keys;       ///< signed, of the sequence
    Int32 begin, end; ///< steps
  };

  static Sizes sizesOf(AttentionOp op, const KernelPlan &plan);
  void setOperands();
  void findWork();
  Value keysOfSequence(Int32 batch);
  Value endOfKeys(Int32 firstRow, Value keys);
  Value factorOf(Value operand, Value pointer);
  void findLimits();
  Int32 placeOf(Int32 row);
  void loadQueries();
  Values queryWords(Int32 row);

  Value pageOf(Int32 step);
  Values load(Int32 step, Value page);
  Values loadRows(Int32 first);
  WarpState passKeys();
  void addKeys(Int32 step, ArrayRef<Value> words, WarpState &state);
  Values scoresOf(int64_t tile, ArrayRef<Values> keys, Int32 step);
  Values powersOf(int64_t tile, ArrayRef<Value> scores, WarpState &state);
  void addValues(ArrayRef<Values> values, ArrayRef<Values> powers, WarpState &state);
  Value packed(Value low, Value high);

  WarpState makeState() { return {s, b, sizes.tiles, sizes.valueTiles()}; }
  void whenMerged(Value condition, WarpState &state, function_ref<WarpState()> other);
  void reduceWarps(WarpState &state);
  void write(const WarpState &state, Value pointer);
  WarpState read(Value pointer);
  void reduceCtas(WarpState &state);
  Value isLastCta();
  void store(const WarpState &state);
  void storeRow(const WarpState &state, int64_t row, Value inverse);

  AttentionOp op;
  Sizes sizes;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  Type element;
  CacheRows keys, values;
  Value query, result, lengths, pages, keyFactors, valueFactors; ///< pointers; null where absent
  Value shared, ticket, workspace, counters;
  std::optional<Int32> lane, warp;
  std::optional<Work> work;
  Value factor, valueFactor;       ///< f32: of scores, in the exponent of 2, and of results
  Values limits;                   ///< of each row of the lane, the end of the keys that it sees
  SmallVector<Values> queryOfTile; ///< words of operand B
};

} // namespace

//===----------------------------------------------------------------------===//
// The work of a CTA
//===----------------------------------------------------------------------===//

WarpAttention::Sizes WarpAttention::sizesOf(AttentionOp op, const KernelPlan &plan) {
  RankedTensorType query = op.getQueryType(), key = op.getKeyType();
  Sizes sizes;
  sizes.batches = query.getDimSize(0);
  sizes.tokens = query.getDimSize(1);
  sizes.heads = query.getDimSize(2);
  sizes.elements = query.getDimSize(3);
  sizes.keyHeads = key.getDimSize(2);
  sizes.valueElements = op.getValueType().getDimSize(3);
  sizes.keys = op.getKeyTokens();
  if (op.getPages()) {
    sizes.pages = op.getPagesOfSequence();
    sizes.pageTokens = key.getDimSize(1);
  }
  sizes.rows = sizes.tokens * sizes.headsOfGroup();
  int64_t rowsOfTile = rowsOfWarpTile(op);
  sizes.tiles = rowsOfTile / kWarpColumns;
  sizes.rowTiles = int64_t(llvm::divideCeil(sizes.rows, rowsOfTile));
  sizes.parts = *plan.kSlices;
  sizes.warps = *plan.threads / kWarp;
  return sizes;
}

WarpAttention::WarpAttention(AttentionOp op, LoweringContext &context)
    : op(op), sizes(sizesOf(op, context.plan)), kernel(op, "attention", context), b(kernel.body()),
      s(b, context.target), element(op.getQueryType().getElementType()),
      keys(kernel, context.target, op.getKey(), op.getKeyScales(), element, kLanesOfKey),
      values(kernel, context.target, op.getValue(), op.getValueScales(), element, kLanesOfValue) {}

void WarpAttention::setOperands() {
  query = kernel.input(op.getQuery());
  for (auto [pointer, operand] :
       {std::pair(&keyFactors, op.getKeyFactors()), std::pair(&valueFactors, op.getValueFactors()),
        std::pair(&lengths, op.getLengths()), std::pair(&pages, op.getPages())})
    if (operand)
      *pointer = kernel.input(operand);
  result = kernel.output(op.getResult(), /*rows=*/Value());
  int64_t words = makeState().size() * kWarp;
  if (sizes.warps > 1)
    shared = kernel.sharedWords(sizes.warps / 2 * words, "states");
  if (sizes.parts > 1) {
    ImplicitLocOpBuilder &host = kernel.host();
    auto states = RankedTensorType::get({sizes.works() * sizes.parts, words}, b.getF32Type());
    auto numbers = RankedTensorType::get({sizes.works()}, b.getI32Type());
    workspace = kernel.pointer(allocateBuffer(host, host.getLoc(), states, Value()), states);
    counters = kernel.pointer(
        allocateCounters(host, host.getLoc(),
                         MemRefType::get(numbers.getShape(), numbers.getElementType())),
        numbers);
    ticket = kernel.sharedWords(1, "ticket");
  }
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  lane = thread % kWarp;
  warp = thread / kWarp;
  keys.begin(thread);
  values.begin(thread);
}

void WarpAttention::lower() {
  setOperands();
  findWork();
  findLimits();
  loadQueries();
  WarpState state = passKeys();
  reduceWarps(state);
  if (sizes.parts > 1)
    reduceCtas(state);
  else
    emitWhen(b, *warp < 1, [&] { store(state); });
  kernel.launch(constIndex(kernel.host(), sizes.works() * sizes.parts));
}

/// The number of keys that a sequence has: its length, as a number from 0 to all.
Value WarpAttention::keysOfSequence(Int32 batch) {
  Value all = constI32(b, sizes.keys);
  if (!lengths)
    return all;
  Value length = fp4::load(b, b.getI32Type(), address(b, lengths, batch, 4), 4);
  Value some = arith::MaxSIOp::create(b, length, constI32(b, 0));
  return arith::MinSIOp::create(b, some, all);
}

/// The end of the keys that the last token of a tile sees.
Value WarpAttention::endOfKeys(Int32 firstRow, Value keys) {
  if (!op.getCausal())
    return keys;
  int64_t rows = sizes.tiles * kWarpColumns;
  Int32 token = minimum(firstRow + (rows - 1), Int32(b, sizes.rows - 1)) / sizes.headsOfGroup();
  Value end = Int32(b, keys) + token + (1 - sizes.tokens);
  return arith::MaxSIOp::create(b, end, constI32(b, 0));
}

void WarpAttention::findWork() {
  Int32 cta(b, kernel.ctaIndex());
  Int32 part = cta % sizes.parts, number = cta / sizes.parts;
  Int32 firstRow = number % sizes.rowTiles * (sizes.tiles * kWarpColumns);
  Int32 head = number / sizes.rowTiles % sizes.keyHeads;
  Int32 batch = number / (sizes.rowTiles * sizes.keyHeads);
  Value keys = keysOfSequence(batch);
  Int32 steps = (Int32(b, endOfKeys(firstRow, keys)) + (kKeys - 1)) / kKeys;
  Int32 ofPart = (steps + (sizes.parts - 1)) / sizes.parts;
  Int32 begin = minimum(part * ofPart, steps);
  work.emplace(number, batch, head, firstRow, keys, begin, minimum(begin + ofPart, steps));
  float scale = float(op.getScale().convertToDouble() * std::numbers::log2e);
  factor = s.constant(std::ldexp(scale, -this->keys.exponent()));
  if (keyFactors)
    factor = s.multiply(factor, factorOf(op.getKeyFactors(), keyFactors));
  valueFactor = s.constant(std::ldexp(1.f, -values.exponent()));
  if (valueFactors)
    valueFactor = s.multiply(valueFactor, factorOf(op.getValueFactors(), valueFactors));
}

/// The factor of all heads of keys, or of this one.
Value WarpAttention::factorOf(Value operand, Value pointer) {
  bool ofHeads = cast<RankedTensorType>(operand.getType()).getDimSize(0) > 1;
  Value place = ofHeads ? address(b, pointer, work->keyHead, 4) : pointer;
  return fp4::load(b, b.getF32Type(), place, 4);
}

/// The keys that each row of the lane sees: rows 8 j + 2t and one more. Rows behind the last token
/// see some, and are not stored.
void WarpAttention::findLimits() {
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    for (int64_t i = 0; i < kRowsOfLane; ++i) {
      if (!op.getCausal()) {
        limits.push_back(work->keys);
        continue;
      }
      Int32 row = work->firstRow + *lane % kLanesOfKey * kRowsOfLane + (tile * kWarpColumns + i);
      Int32 token = row / sizes.headsOfGroup();
      limits.push_back(Int32(b, work->keys) + token + (1 - sizes.tokens));
    }
}

/// The place of a row of the tile among all tokens and heads of queries.
Int32 WarpAttention::placeOf(Int32 row) {
  Int32 token = row / sizes.headsOfGroup(), head = row % sizes.headsOfGroup();
  return (work->batch * sizes.tokens + token) * sizes.heads + work->keyHead * sizes.headsOfGroup() +
         head;
}

/// The words of a chunk of a row of queries, which the lanes of a row of keys share.
WarpAttention::Values WarpAttention::queryWords(Int32 row) {
  Int32 place = placeOf(minimum(row, Int32(b, sizes.rows - 1)));
  Value ofRow = address(b, query, place, 2 * sizes.elements);
  int64_t bytes = 2 * keys.chunk();
  return loadWords(b, address(b, ofRow, *lane % kLanesOfKey, bytes), bytes);
}

/// The queries, in the order in which keys are converted.
void WarpAttention::loadQueries() {
  for (int64_t tile = 0; tile < sizes.tiles; ++tile) {
    Values words = queryWords(work->firstRow + *lane / kLanesOfKey + tile * kWarpColumns), pairs;
    for (int64_t pair = 0; pair < keys.chunk() / 2; ++pair) {
      int64_t low = keys.elementOf(pair, 0), high = keys.elementOf(pair, 1);
      uint32_t selector = (low % 2 ? 0x32 : 0x10) | (high % 2 ? 0x7600 : 0x5400);
      pairs.push_back(s.permute(words[size_t(low / 2)], words[size_t(high / 2)], selector));
    }
    queryOfTile.push_back(pairs);
  }
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// The page of a step's keys; null without a cache.
Value WarpAttention::pageOf(Int32 step) {
  if (!pages)
    return {};
  Int32 number = minimum(step * kKeys / sizes.pageTokens, Int32(b, sizes.pages - 1));
  Value place = address(b, pages, work->batch * sizes.pages + number, 4);
  return fp4::load(b, b.getI32Type(), place, 4);
}

/// The words of 16 rows of keys and of values, from row `first` of all tokens on. Rows behind the
/// last one of a sequence are that one; elsewhere the places of rows are constants apart.
WarpAttention::Values WarpAttention::loadRows(Int32 first) {
  bool mayEnd = !pages && sizes.keys % kKeys;
  Int32 last = work->batch * sizes.keys + (sizes.keys - 1);
  auto take = [&](CacheRows &rows, Int32 row, int64_t key, Int32 chunk) {
    Int32 existing = mayEnd ? minimum(first + row + key, last) : first + row;
    return rows.load(existing * sizes.keyHeads + work->keyHead, chunk,
                     mayEnd ? 0 : key * sizes.keyHeads);
  };
  Int32 group = *lane / kLanesOfKey, member = *lane % kLanesOfKey;
  Values words;
  for (int64_t key : {0, 8})
    llvm::append_range(words, take(keys, group, key, member));
  for (int64_t key : {0, 1, 8, 9})
    llvm::append_range(words, take(values, member * 2, key, group));
  return computeHere(b, b.getLoc(), words);
}

/// The words of a step. Keys and values of a page that does not exist are zero.
WarpAttention::Values WarpAttention::load(Int32 step, Value page) {
  if (!pages)
    return loadRows(work->batch * sizes.keys + step * kKeys);
  int64_t all = op.getKeyType().getDimSize(0);
  Int32 first = Int32(b, page) * sizes.pageTokens + step * kKeys % sizes.pageTokens;
  Values zeros(size_t(2 * keys.words() + 4 * values.words()), constI32(b, 0));
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(zeros)), Int32(b, page) < all,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loadRows(first));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, zeros);
  return branch.getResults();
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Passes over the warp's steps. Steps behind the last one are that one.
WarpState WarpAttention::passKeys() {
  Int32 last = Int32(b, arith::MaxUIOp::create(b, work->end, constI32(b, 1))) - 1;
  Int32 first = work->begin + *warp, next = minimum(first + sizes.warps, last);
  auto there = [&](Int32 step) { return minimum(step, last); };
  WarpState state = makeState();
  state.clear();
  Values carried = state.flat();
  if (pages)
    carried.push_back(pageOf(next));
  llvm::append_range(carried, load(there(first), pageOf(there(first))));
  auto size = size_t(state.size());
  ValueRange results = kernel.forEachItem(
      first, work->end, constI32(b, sizes.warps), carried, [&](Value number, ValueRange before) {
        Int32 step(b, number);
        state.assign(before.take_front(size));
        Value page = pages ? before[size] : Value();
        Value pageAfter = pageOf(there(step + 2 * sizes.warps));
        Values words = load(there(step + sizes.warps), page);
        addKeys(step, Values(before.drop_front(size + size_t(bool(pages)))), state);
        Values after = state.flat();
        if (pages)
          after.push_back(pageAfter);
        llvm::append_range(after, words);
        return after;
      });
  state.assign(results.take_front(size));
  state.addLanes();
  return state;
}

void WarpAttention::addKeys(Int32 step, ArrayRef<Value> words, WarpState &state) {
  auto take = [&](CacheRows &rows) {
    auto count = size_t(rows.words());
    Values pairs = rows.convert(words.take_front(count));
    words = words.drop_front(count);
    return pairs;
  };
  SmallVector<Values> ofKeys, ofValues, scores, powers;
  for (int64_t i = 0; i < 2; ++i)
    ofKeys.push_back(take(keys));
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    scores.push_back(scoresOf(tile, ofKeys, step));
  Values raised = state.maxima;
  for (auto [row, maximum] : llvm::enumerate(raised)) {
    const Values &ofTile = scores[row / kRowsOfLane];
    for (size_t key : {0, 1})
      maximum = s.maximumNumber(maximum, ofTile[2 * key + row % kRowsOfLane]);
    maximum = combineRows(b, maximum, [&](Value x, Value y) { return s.maximumNumber(x, y); });
  }
  state.raise(raised);
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    powers.push_back(powersOf(tile, scores[size_t(tile)], state));
  for (int64_t i = 0; i < 4; ++i)
    ofValues.push_back(take(values));
  addValues(ofValues, powers, state);
}

/// The scores of keys g and g + 8 and two rows each, in the exponent of 2; -infinity where a row
/// does not see a key.
WarpAttention::Values WarpAttention::scoresOf(int64_t tile, ArrayRef<Values> keys, Int32 step) {
  Values scores(kWarpSums, s.constant(0));
  const Values &queries = queryOfTile[size_t(tile)];
  for (size_t pair = 0; pair < queries.size(); pair += 2)
    multiplyWarp(b, element, {keys[0][pair], keys[1][pair], keys[0][pair + 1], keys[1][pair + 1]},
                 {queries[pair], queries[pair + 1]}, scores);
  Int32 key = step * kKeys + *lane / kLanesOfKey;
  for (int64_t i = 0; i < kWarpSums; ++i) {
    Value limit = limits[size_t(tile * kRowsOfLane + i % kRowsOfLane)];
    Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         key + i / kRowsOfLane * kWarpColumns, limit);
    Value nothing = s.constant(-std::numeric_limits<float>::infinity());
    Value score = s.multiply(scores[size_t(i)], factor);
    scores[size_t(i)] = arith::SelectOp::create(b, isSeen, score, nothing);
  }
  return scores;
}

/// Two floats as elements of a word.
Value WarpAttention::packed(Value low, Value high) {
  Value both =
      vector::FromElementsOp::create(b, VectorType::get(2, b.getF32Type()), ValueRange{low, high});
  Value rounded = arith::TruncFOp::create(b, VectorType::get(2, element), both);
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

/// The powers of two of distances from the maximum, as operand B: words of keys 2t and 2t + 8.
WarpAttention::Values WarpAttention::powersOf(int64_t tile, ArrayRef<Value> scores,
                                              WarpState &state) {
  Values words;
  for (size_t key : {0, 1}) {
    Values powers;
    for (int64_t i = 0; i < kRowsOfLane; ++i) {
      int64_t row = tile * kRowsOfLane + i;
      powers.push_back(state.powerOf(scores[size_t(2 * key + i)], row));
      state.sums[size_t(row)] = s.add(state.sums[size_t(row)], powers.back());
    }
    words.push_back(transposeMatrix(b, packed(powers[0], powers[1])));
  }
  return words;
}

/// Adds values times powers. Words of two keys become words of two elements of the next two.
void WarpAttention::addValues(ArrayRef<Values> values, ArrayRef<Values> powers, WarpState &state) {
  for (int64_t i = 0; i < sizes.valueTiles(); ++i) {
    Values a;
    for (size_t key : {0, 2})
      for (uint32_t halves : {0x5410, 0x7632})
        a.push_back(s.permute(values[key][size_t(i)], values[key + 1][size_t(i)], halves));
    for (int64_t tile = 0; tile < sizes.tiles; ++tile)
      multiplyWarp(b, element, a, powers[size_t(tile)],
                   MutableArrayRef(state.results)
                       .slice(size_t((tile * sizes.valueTiles() + i) * kWarpSums), kWarpSums));
  }
}

//===----------------------------------------------------------------------===//
// One state of all
//===----------------------------------------------------------------------===//

/// Writes a state to memory of a warp, a line of lanes for each number.
void WarpAttention::write(const WarpState &state, Value pointer) {
  Value ofLane = address(b, pointer, *lane, 4);
  for (auto [i, number] : llvm::enumerate(state.flat()))
    fp4::store(b, number, advance(b, ofLane, int64_t(i) * 4 * kWarp), 4);
}

WarpState WarpAttention::read(Value pointer) {
  Value ofLane = address(b, pointer, *lane, 4);
  WarpState state = makeState();
  Values numbers;
  for (int64_t i = 0; i < state.size(); ++i)
    numbers.push_back(
        LLVM::LoadOp::create(b, b.getF32Type(), advance(b, ofLane, i * 4 * kWarp), 4));
  state.assign(numbers);
  return state;
}

/// Merges `other` into `state` where the condition holds.
void WarpAttention::whenMerged(Value condition, WarpState &state, function_ref<WarpState()> other) {
  Values before = state.flat();
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(before)), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  state.merge(other());
  scf::YieldOp::create(b, state.flat());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, before);
  state.assign(branch.getResults());
}

/// Gives the first warp the state of all: the upper half of the warps leave theirs to the lower
/// half, until one is left.
void WarpAttention::reduceWarps(WarpState &state) {
  int64_t bytes = state.size() * kWarp * 4;
  for (int64_t half = sizes.warps / 2; half; half /= 2) {
    Int32 partner = *warp - half; // above all for the lower half
    emitWhen(b, partner < half, [&] { write(state, address(b, shared, partner, bytes)); });
    NVVM::Barrier0Op::create(b);
    whenMerged(*warp < half, state, [&] { return read(address(b, shared, *warp, bytes)); });
    NVVM::Barrier0Op::create(b);
  }
}

/// Counts the CTAs of a result that have left their states. Returns true (i1) in the last one, for
/// all threads.
Value WarpAttention::isLastCta() {
  NVVM::Barrier0Op::create(b);
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  emitWhen(b, thread < 1, [&] {
    Value before = countAndSynchronize(b, b.getLoc(), address(b, counters, work->number, 4),
                                       constI32(b, sizes.parts - 1));
    fp4::store(b, before, ticket, 4);
  });
  NVVM::Barrier0Op::create(b);
  Value before = LLVM::LoadOp::create(b, b.getI32Type(), ticket, 4);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, constI32(b, sizes.parts - 1));
}

/// The last CTA of a result merges the states of all, in the order of the parts.
void WarpAttention::reduceCtas(WarpState &state) {
  int64_t bytes = state.size() * kWarp * 4;
  Int32 first = work->number * sizes.parts;
  Int32 cta(b, kernel.ctaIndex());
  emitWhen(b, *warp < 1, [&] { write(state, address(b, workspace, cta, bytes)); });
  emitWhen(b, isLastCta(), [&] {
    WarpState all = makeState();
    all.clear();
    ValueRange merged =
        kernel.forEachItem(*warp, constI32(b, sizes.parts), constI32(b, sizes.warps), all.flat(),
                           [&](Value part, ValueRange before) {
                             all.assign(before);
                             Int32 place = first + Int32(b, part);
                             all.merge(read(address(b, workspace, place, bytes)));
                             return all.flat();
                           });
    all.assign(merged);
    reduceWarps(all);
    emitWhen(b, *warp < 1, [&] { store(all); });
  });
}

/// Stores the rows of the lane that exist. A row that sees no key is zero.
void WarpAttention::store(const WarpState &state) {
  for (auto [row, sum] : llvm::enumerate(state.sums)) {
    Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, s.constant(0));
    Value inverse = s.divide(valueFactor, sum);
    inverse = arith::SelectOp::create(b, isNone, s.constant(0), inverse);
    storeRow(state, int64_t(row), inverse);
  }
}

void WarpAttention::storeRow(const WarpState &state, int64_t row, Value inverse) {
  int64_t tile = row / kRowsOfLane, half = row % kRowsOfLane, chunk = values.chunk();
  Values words, elements((size_t(chunk)));
  for (int64_t i = 0; i < sizes.valueTiles(); ++i)
    for (int64_t upper : {0, 1}) {
      auto place = size_t((tile * sizes.valueTiles() + i) * kWarpSums + 2 * upper + half);
      elements[size_t(values.elementOf(i, upper))] = s.multiply(state.results[place], inverse);
    }
  for (int64_t i = 0; i < chunk; i += 2)
    words.push_back(packed(elements[size_t(i)], elements[size_t(i + 1)]));
  Int32 ofTile = *lane % kLanesOfKey * kRowsOfLane + (tile * kWarpColumns + half);
  Int32 number = work->firstRow + ofTile;
  emitWhen(b, number < sizes.rows, [&] {
    Value ofRow = address(b, result, placeOf(number), 2 * sizes.valueElements);
    Value first = address(b, ofRow, *lane / kLanesOfKey, 2 * chunk);
    int64_t access = std::gcd(2 * chunk, kWidestAccess);
    for (int64_t at = 0; at < 2 * chunk; at += access) {
      auto type = VectorType::get(access / 4, b.getI32Type());
      Value part = vector::FromElementsOp::create(
          b, type, ArrayRef(words).slice(size_t(at / 4), size_t(access / 4)));
      fp4::store(b, part, advance(b, first, at), unsigned(access));
    }
  });
}

LogicalResult fp4::lowerWarpAttention(AttentionOp op, LoweringContext &context) {
  WarpAttention(op, context).lower();
  return success();
}
