//===- WarpAttention.cpp - Few queries over keys of any format ------------===//
//
// The keys of a sequence are cut into parts, a CTA each, and the warps of a CTA take 16 keys at a
// time, of one head or of neighbouring ones. Keys and values are operand A of mma.sync, so that
// threads convert them in registers and few queries, operand B, waste nothing:
//
//   S^T = K Q^T     16 keys x 8 queries: a lane has keys g and g + 8 (WarpMma.h)
//   O^T = V^T P^T   16 elements x 8 queries: a lane has keys 2t, 2t + 1, 2t + 8 and 2t + 9
//
// The words of the next 16 keys are loaded before those of these are converted, and their page one
// step earlier. Each warp scales its sums as its maximum grows (online softmax). In the end the
// warps of a CTA, and then the CTAs of a sequence in the last of them, become one state in an order
// that depends on the plan alone.
//
// Rows of queries are tokens and the heads that share keys. With scales of blocks, codes of queries
// and keys are operands as they are (ScaledRows.h). Values of e4m3 and powers become f16 then, and
// values with scales have steps of more keys (WarpBlocks.cpp).
//
//===----------------------------------------------------------------------===//
#include "Attention/WarpAttention.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// The work of a CTA
//===----------------------------------------------------------------------===//

WarpAttention::Sizes WarpAttention::sizesOf(AttentionOp op, const KernelPlan &plan) {
  Sizes sizes;
  sizes.batches = op.getBatches();
  sizes.tokens = op.getQueryTokens();
  sizes.heads = op.getHeads();
  sizes.elements = op.getElements();
  sizes.keyHeads = op.getKeyHeads();
  sizes.valueElements = op.getValueElements();
  sizes.keys = op.getKeyTokens();
  if (op.getPages()) {
    sizes.pages = op.getPagesOfSequence();
    sizes.pageTokens = op.getPageTokens();
  }
  sizes.rows = sizes.tokens * sizes.headsOfGroup();
  int64_t rowsOfTile = rowsOfWarpTile(op);
  sizes.tiles = rowsOfTile / kWarpColumns;
  sizes.rowTiles = int64_t(llvm::divideCeil(sizes.rows, rowsOfTile));
  sizes.parts = *plan.split.kSlices;
  sizes.warps = *plan.threads / kWarp;
  sizes.strip = plan.strip.value_or(1);
  sizes.keysOfStep = keysOfWarpStep(op);
  return sizes;
}

WarpAttention::WarpAttention(AttentionOp op, LoweringContext &context)
    : op(op), sizes(sizesOf(op, context.plan)), kernel(op, "attention", context), b(kernel.body()),
      s(b, context.target),
      element(op.isBlockScaled() ? b.getF16Type() : op.getQueryType().getElementType()) {
  if (!op.isBlockScaled())
    keys.emplace(kernel, context.target, op.getKey(), op.getKeyScales(), element, kLanesOfKey);
  if (!op.hasValueRows())
    values.emplace(kernel, context.target, op.getValue(), op.getValueScales(), element,
                   kLanesOfValue);
}

void WarpAttention::setOperands() {
  if (op.isBlockScaled()) {
    scaledQueries.emplace(kernel, op.getQuery(), op.getQueryScales(), sizes.tokens);
    scaledKeys.emplace(kernel, op.getKey(), op.getKeyScales(), sizes.keys);
  } else {
    query = kernel.input(op.getQuery());
  }
  if (op.hasValueRows())
    scaledValues.emplace(kernel, op.getValue(), op.getValueScales(), sizes.valueElements);
  for (auto [pointer, operand] :
       {std::pair(&keyFactors, op.getKeyFactors()), std::pair(&valueFactors, op.getValueFactors()),
        std::pair(&lengths, op.getLengths()), std::pair(&pages, op.getPages()),
        std::pair(&sinks, op.getSinks()), std::pair(&slopes, op.getSlopes())})
    if (operand)
      *pointer = kernel.input(operand);
  setResults();
  int64_t words = bytesOfState() / 4;
  if (sizes.warpsOfHead() > 1) {
    shared = kernel.sharedWords(slotsOfWarps() * words, "states");
    maxima = kernel.sharedWords(sizes.warps * sizes.tiles * kWarpColumns, "maxima");
  }
  if (sizes.parts > 1) {
    ImplicitLocOpBuilder &host = kernel.host();
    auto states =
        RankedTensorType::get({sizes.works() * sizes.parts * sizes.strip, words}, b.getF32Type());
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
  for (std::optional<CacheRows> *rows : {&keys, &values})
    if (*rows)
      (*rows)->begin(thread);
}

/// Allocates the results, and finds what the epilogue region reads.
void WarpAttention::setResults() {
  for (Value operand : op.getEpilogueInputs())
    epilogueInputs.push_back(kernel.input(operand));
  if (std::optional<InputRows> rows = kernel.stridedOutput(op.getResult())) {
    result = rows->base;
    resultPitch = rows->pitch;
  } else if (op.getResult()) {
    result = kernel.output(op.getResult(), /*rows=*/Value());
  }
  if (op.getLse())
    lse = kernel.output(op.getLse(), /*rows=*/Value());
  if (EpilogueQuantizeOp quantize = op.getEpilogueQuantize()) {
    if (quantize.getAmax())
      quantizeAmax = fp4::load(b, b.getF32Type(), kernel.input(op.getInputs().back()), 4);
    codes = kernel.output(op.getQuantized()[0], /*rows=*/Value());
    scales = kernel.output(op.getQuantized()[1], /*rows=*/Value());
  }
}

void WarpAttention::lower() {
  setOperands();
  findWork();
  findLimits();
  WarpState state = passKeys();
  reduceWarps(state);
  if (sizes.parts > 1)
    reduceCtas(state);
  else
    emitWhen(b, *warp < sizes.strip, [&] { store(state); });
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

/// The first step that has a key which a token of a tile sees: with a window, the first token does.
Int32 WarpAttention::firstStepSeen(Int32 firstRow, Value keys) {
  int64_t behind = 1 - sizes.tokens - int64_t(*op.getWindow());
  Value begin = Int32(b, keys) + firstRow / sizes.headsOfGroup() + behind;
  return Int32(b, arith::MaxSIOp::create(b, begin, constI32(b, 0))) / sizes.keysOfStep;
}

void WarpAttention::findWork() {
  Int32 cta(b, kernel.ctaIndex());
  Int32 part = cta % sizes.parts, number = cta / sizes.parts;
  Int32 firstRow = number % sizes.rowTiles * (sizes.tiles * kWarpColumns);
  Int32 head = number / sizes.rowTiles % sizes.strips() * sizes.strip + *warp % sizes.strip;
  Int32 batch = number / (sizes.rowTiles * sizes.strips());
  Value keys = keysOfSequence(batch);
  Int32 steps = (Int32(b, endOfKeys(firstRow, keys)) + (sizes.keysOfStep - 1)) / sizes.keysOfStep;
  std::optional<Int32> seen;
  if (op.getWindow())
    seen = firstStepSeen(firstRow, keys);
  Int32 ofPart = ((seen ? steps - *seen : steps) + (sizes.parts - 1)) / sizes.parts;
  Int32 begin = minimum(seen ? part * ofPart + *seen : part * ofPart, steps);
  work.emplace(number, batch, head, firstRow, keys, begin, minimum(begin + ofPart, steps));
  auto scale = float(op.getSoftcap() ? op.getTangentFactor() : op.getExponentFactor());
  factor = s.constant(std::ldexp(scale, this->keys ? -this->keys->exponent() : 0));
  if (keyFactors)
    factor = s.multiply(factor, factorOf(op.getKeyFactors(), keyFactors));
  valueFactor = s.constant(std::ldexp(1.f, values ? -values->exponent() : 0));
  if (valueFactors)
    valueFactor = s.multiply(valueFactor, factorOf(op.getValueFactors(), valueFactors));
}

/// The factor of all heads of keys, of this one, or of this one of the sequence.
Value WarpAttention::factorOf(Value operand, Value pointer) {
  auto type = cast<RankedTensorType>(operand.getType());
  Value place = pointer;
  if (type.getRank() > 1)
    place = address(b, pointer, work->batch * sizes.keyHeads + work->keyHead, 4);
  else if (type.getDimSize(0) > 1)
    place = address(b, pointer, work->keyHead, 4);
  return fp4::load(b, b.getF32Type(), place, 4);
}

/// The keys that each row of the lane sees: rows 8 j + 2t and one more. Rows behind the last token
/// see some, and are not stored.
void WarpAttention::findLimits() {
  for (int64_t row = 0; row < sizes.tiles * kRowsOfLane; ++row) {
    Int32 end = Int32(b, work->keys) + rowOfLane(row) / sizes.headsOfGroup() + (1 - sizes.tokens);
    limits.push_back(op.getCausal() ? Value(end) : work->keys);
    if (!slopes)
      continue;
    places.push_back(end - 1);
    slopesOfRow.push_back(numberOfHead(slopes, row));
  }
}

/// The token of a row of the tile among all, and its head.
Int32 WarpAttention::tokenOf(Int32 row) {
  return work->batch * sizes.tokens + row / sizes.headsOfGroup();
}
Int32 WarpAttention::headOf(Int32 row) {
  return work->keyHead * sizes.headsOfGroup() + row % sizes.headsOfGroup();
}

/// The place of a row of the tile among all tokens and heads of queries.
Int32 WarpAttention::placeOf(Int32 row) { return tokenOf(row) * sizes.heads + headOf(row); }

/// The words of a chunk of a row of queries, which the lanes of a row of keys share.
WarpAttention::Values WarpAttention::queryWords(Int32 row) {
  Int32 place = placeOf(minimum(row, Int32(b, sizes.rows - 1)));
  Value ofRow = address(b, query, place, 2 * sizes.elements);
  int64_t bytes = 2 * keys->chunk();
  return loadWords(b, address(b, ofRow, *lane % kLanesOfKey, bytes), bytes);
}

/// Keys of f16 multiply queries of f16.
bool WarpAttention::scalesQueries() const { return keys->elementType() != element; }

/// Makes words of f16 of the words of a row of bf16, times the power of two by which the largest
/// one has the largest exponent of f16; returns the inverse of that power. A number is exact unless
/// it is 2^30 times smaller than the largest one.
Value WarpAttention::scaleQueries(Values &words) {
  constexpr uint32_t magnitude = 0x7FFF0000;
  constexpr int64_t leastExponent = 1, fraction = 23, bias = 127;
  Values numbers;
  Value largest = constI32(b, 0);
  for (Value word : words)
    for (Value bits : {Value(arith::ShLIOp::create(b, word, s.integer(16))), word}) {
      Value upper = arith::AndIOp::create(b, bits, s.integer(0xFFFF0000));
      numbers.push_back(LLVM::BitcastOp::create(b, b.getF32Type(), upper));
      largest =
          arith::MaxSIOp::create(b, largest, arith::AndIOp::create(b, bits, s.integer(magnitude)));
    }
  for (int64_t distance : {1, 2})
    largest = arith::MaxSIOp::create(b, largest, valueOfPartner(b, largest, distance));
  Value exponent = arith::ShRUIOp::create(b, largest, s.integer(fraction));
  exponent = arith::MaxSIOp::create(b, exponent, constI32(b, kHalfPower + leastExponent));
  auto powerOf = [&](Value exponent) -> Value {
    Value bits = arith::ShLIOp::create(b, exponent, s.integer(fraction));
    return LLVM::BitcastOp::create(b, b.getF32Type(), bits);
  };
  Value inverse = Int32(b, exponent) - kHalfPower;
  Value power = powerOf(arith::SubIOp::create(b, constI32(b, 2 * bias), inverse));
  for (auto [i, word] : llvm::enumerate(words))
    word = packed(s.multiply(numbers[2 * i], power), s.multiply(numbers[2 * i + 1], power),
                  keys->elementType());
  return powerOf(inverse);
}

/// The queries, in the order in which keys are converted.
void WarpAttention::loadQueries() {
  if (scaledQueries)
    return loadScaledQueries();
  for (int64_t tile = 0; tile < sizes.tiles; ++tile) {
    Values words = queryWords(work->firstRow + *lane / kLanesOfKey + tile * kWarpColumns), pairs;
    Value scale = scalesQueries() ? scaleQueries(words) : Value();
    for (int64_t row = 0; row < kRowsOfLane; ++row) {
      Int32 first = *lane % kLanesOfKey * (kRowsOfLane * kLanesOfKey) + row * kLanesOfKey;
      factorsOfRow.push_back(scale ? s.multiply(factor, valueOfLane(b, scale, first)) : factor);
    }
    for (int64_t pair = 0; pair < keys->chunk() / 2; ++pair) {
      int64_t low = keys->elementOf(pair, 0), high = keys->elementOf(pair, 1);
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
  Int32 number = minimum(step * sizes.keysOfStep / sizes.pageTokens, Int32(b, sizes.pages - 1));
  Value place = address(b, pages, work->batch * sizes.pages + number, 4);
  return fp4::load(b, b.getI32Type(), place, 4);
}

/// The words of 16 rows of keys, of values or of both, from row `first` of all tokens on. Rows
/// behind the last one of a sequence are that one; elsewhere the places of rows are constants
/// apart.
WarpAttention::Values WarpAttention::loadRows(Int32 first, Words words) {
  bool mayEnd = !pages && sizes.keys % sizes.keysOfStep;
  Int32 last = work->batch * sizes.keys + (sizes.keys - 1);
  auto take = [&](CacheRows &rows, Int32 row, int64_t key, Int32 chunk) {
    Int32 existing = mayEnd ? minimum(first + row + key, last) : first + row;
    if (op.getHeadsFirst())
      return rows.load(existing, chunk, key);
    return rows.load(existing * sizes.keyHeads + work->keyHead, chunk,
                     mayEnd ? 0 : key * sizes.keyHeads);
  };
  Int32 group = *lane / kLanesOfKey, member = *lane % kLanesOfKey;
  Values loaded;
  if (scaledKeys && (words & OfKeys))
    loaded = loadScaledKeys(first - work->batch * sizes.keys, /*number=*/0);
  for (int64_t key : {0, 8})
    if (keys && (words & OfKeys))
      llvm::append_range(loaded, take(*keys, group, key, member));
  for (int64_t key : {0, 1, 8, 9})
    if (words & OfValues)
      llvm::append_range(loaded, take(*values, member * 2, key, group));
  return computeHere(b, b.getLoc(), loaded);
}

/// The words of a step. Keys and values of a page that does not exist are zero.
WarpAttention::Values WarpAttention::load(Int32 step, Value page, Words words) {
  if (!pages)
    return loadRows(work->batch * sizes.keys + step * sizes.keysOfStep, words);
  int64_t all = op.getKeyType().getDimSize(0);
  Int32 list(b, page); // of the tokens of a page, or of a head of a page
  if (op.getHeadsFirst())
    list = list * sizes.keyHeads + work->keyHead;
  Int32 first = list * sizes.pageTokens + step * sizes.keysOfStep % sizes.pageTokens;
  Values zeros(size_t(countOf(words)), constI32(b, 0));
  return chooseValues(
      b, TypeRange(ValueRange(zeros)), Int32(b, page) < all, [&] { return loadRows(first, words); },
      [&] { return zeros; });
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Passes over the warp's steps. Steps behind the last one are that one.
WarpState WarpAttention::passKeys() {
  if (overlapsSteps())
    return passOverlapped();
  if (scaledValues)
    return passBlocks();
  Int32 last = Int32(b, arith::MaxUIOp::create(b, work->end, constI32(b, 1))) - 1;
  Int32 first = work->begin + *warp / sizes.strip,
        next = minimum(first + sizes.warpsOfHead(), last);
  auto there = [&](Int32 step) { return minimum(step, last); };
  WarpState state = makeState();
  state.clear();
  Values carried = state.flat();
  if (pages)
    carried.push_back(pageOf(next));
  llvm::append_range(carried, load(there(first), pageOf(there(first)), OfBoth));
  loadQueries(); // keys are on their way
  auto size = size_t(state.size());
  // As loopUnrollByFactor asks, no warp begins a whole turn of the warps behind the end.
  ValueRange results = kernel.forEachItem(
      first, work->end, constI32(b, sizes.warpsOfHead()), carried,
      [&](Value number, ValueRange before) {
        Int32 step(b, number);
        state.assign(before.take_front(size));
        Value page = pages ? before[size] : Value();
        Value pageAfter = pageOf(there(step + 2 * sizes.warpsOfHead()));
        Values words = load(there(step + sizes.warpsOfHead()), page, OfBoth);
        addKeys(step, Values(before.drop_front(size + size_t(bool(pages)))), state);
        Values after = state.flat();
        if (pages)
          after.push_back(pageAfter);
        llvm::append_range(after, words);
        return after;
      });
  if (unrollsSteps())
    results = unrolledByTwo(results);
  state.assign(results.take_front(size));
  state.addLanes();
  return state;
}

void WarpAttention::addKeys(Int32 step, ArrayRef<Value> words, WarpState &state) {
  auto ofKeys = size_t(countOf(OfKeys));
  SmallVector<Values> scores = scoresOf(words.take_front(ofKeys), step), powers;
  if (scaledValues)
    hideSome(step, scores);
  else
    for (auto [tile, ofTile] : llvm::enumerate(scores))
      hide(int64_t(tile), step, ofTile);
  raise(scores, state);
  Values distances = distancesOf(scores, state);
  for (auto [tile, ofTile] : llvm::enumerate(scores)) {
    auto some = ArrayRef(distances).slice(tile * ofTile.size(), ofTile.size());
    powers.push_back(scaledValues ? quantizedPowers(int64_t(tile), some, state)
                                  : powersOf(int64_t(tile), some, state));
  }
  if (scaledValues)
    addScaledValues(words.drop_front(ofKeys), powers, state);
  else
    addValues(words.drop_front(ofKeys), powers, state);
}

/// Raises the maxima to those of scores.
void WarpAttention::raise(ArrayRef<Values> scores, WarpState &state) {
  Values raised = state.maxima;
  for (auto [row, maximum] : llvm::enumerate(raised)) {
    const Values &ofTile = scores[row / kRowsOfLane];
    for (size_t i = row % kRowsOfLane; i < ofTile.size(); i += kRowsOfLane)
      maximum = s.maximumNumber(maximum, ofTile[i]);
    maximum = combineRows(b, maximum, [&](Value x, Value y) { return s.maximumNumber(x, y); });
  }
  state.raise(raised);
}

/// The distances of the scores of all tiles from the maxima of their rows.
WarpAttention::Values WarpAttention::distancesOf(ArrayRef<Values> scores, WarpState &state) {
  Values distances;
  for (auto [tile, ofTile] : llvm::enumerate(scores))
    for (auto [i, score] : llvm::enumerate(ofTile))
      distances.push_back(
          state.distanceOf(score, int64_t(tile) * kRowsOfLane + int64_t(i) % kRowsOfLane));
  return distances;
}

/// The key of number `number` of those that the lane has of a step.
Int32 WarpAttention::keyOf(Int32 step, int64_t number) {
  Int32 row = *lane / kLanesOfKey + number % 2 * kWarpColumns;
  return step * sizes.keysOfStep + keyOfRow(row, number / 2);
}

/// The scores of all tiles with the keys of a step.
SmallVector<WarpAttention::Values> WarpAttention::scoresOf(ArrayRef<Value> words, Int32 step) {
  SmallVector<Values> ofKeys, scores;
  for (size_t i = 0; keys && i < 2; ++i)
    ofKeys.push_back(keys->convert(words.slice(i * size_t(keys->words()), size_t(keys->words()))));
  for (int64_t tile = 0; tile < sizes.tiles; ++tile)
    scores.push_back(
        finished(keys ? productsOf(tile, ofKeys) : scaledProductsOf(tile, words), tile, step));
  return scores;
}

/// The products of two rows of queries with keys g and g + 8.
WarpAttention::Values WarpAttention::productsOf(int64_t tile, ArrayRef<Values> keys) {
  Values products(kWarpSums, s.constant(0));
  const Values &queries = queryOfTile[size_t(tile)];
  for (size_t pair = 0; pair < queries.size(); pair += 2)
    multiplyWarp(b, this->keys->elementType(),
                 {keys[0][pair], keys[1][pair], keys[0][pair + 1], keys[1][pair + 1]},
                 {queries[pair], queries[pair + 1]}, products);
  return products;
}

/// Scores of products, in the exponent of 2.
WarpAttention::Values WarpAttention::finished(Values scores, int64_t tile, Int32 step) {
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t row = tile * kRowsOfLane + int64_t(i) % kRowsOfLane;
    score = softcapped(s.multiply(score, factorsOfRow[size_t(row)]));
    score = biased(score, row, keyOf(step, int64_t(i) / kRowsOfLane));
  }
  return scores;
}

/// Makes scores -infinity where a row does not see a key.
void WarpAttention::hide(int64_t tile, Int32 step, Values &scores) {
  Value nothing = s.constant(-std::numeric_limits<float>::infinity());
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value limit = limits[size_t(tile * kRowsOfLane) + i % kRowsOfLane];
    Value exists = isSeen(keyOf(step, int64_t(i) / kRowsOfLane), limit);
    score = arith::SelectOp::create(b, exists, score, nothing);
  }
}

/// Returns true (i1) for a key in front of `limit`, and in its window.
Value WarpAttention::isSeen(Value key, Value limit) {
  Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key, limit);
  if (!op.getWindow())
    return isBefore;
  Value begin = Int32(b, limit) - int64_t(*op.getWindow());
  return arith::AndIOp::create(b, isBefore,
                               arith::CmpIOp::create(b, arith::CmpIPredicate::sge, key, begin));
}

/// A score in the exponent of 2: with a softcap the hyperbolic tangent of x, times its factor,
/// where `number` is 2 log2(e) x.
Value WarpAttention::softcapped(Value number) {
  if (!op.getSoftcap())
    return number;
  Value inverse = s.reciprocalApprox(s.add(approximateExp2(b, number), s.constant(1)));
  Value tangent = LLVM::FMAOp::create(b, inverse, s.constant(-2), s.constant(1));
  return s.multiply(tangent, s.constant(float(op.getExponentFactor())));
}

/// A score minus the slope of its row times the distance of its key.
Value WarpAttention::biased(Value score, int64_t row, Int32 key) {
  if (!slopes)
    return score;
  Value distance = Int32(b, places[size_t(row)]) - key;
  Value number = arith::SIToFPOp::create(b, b.getF32Type(), distance);
  Value slope = arith::NegFOp::create(b, slopesOfRow[size_t(row)]);
  return LLVM::FMAOp::create(b, LLVM::FAbsOp::create(b, number), slope, score);
}

/// Two floats as the elements of `type` of a word.
Value WarpAttention::packed(Value low, Value high, Type type) {
  Value both =
      vector::FromElementsOp::create(b, VectorType::get(2, b.getF32Type()), ValueRange{low, high});
  Value rounded = arith::TruncFOp::create(b, VectorType::get(2, type), both);
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

/// The powers of two of distances from the maximum, as operand B: words of keys 2t and 2t + 8.
WarpAttention::Values WarpAttention::powersOf(int64_t tile, ArrayRef<Value> distances,
                                              WarpState &state) {
  Values words;
  for (size_t key : {0, 1}) {
    Values powers;
    for (int64_t i = 0; i < kRowsOfLane; ++i) {
      auto row = size_t(tile * kRowsOfLane + i);
      powers.push_back(approximateExp2(b, distances[2 * key + size_t(i)]));
      state.sums[row] = s.add(state.sums[row], powers.back());
    }
    words.push_back(transposeMatrix(b, packed(powers[0], powers[1], values->elementType())));
  }
  return words;
}

/// Adds the values of a step times powers. Operand A has an element of two keys in a word.
void WarpAttention::addValues(ArrayRef<Value> words, ArrayRef<Values> powers, WarpState &state) {
  SmallVector<Values> ofKeys;
  auto count = size_t(values->words());
  for (size_t i = 0; i < 4; i += 2)
    ofKeys.push_back(
        values->convertRows(words.slice(i * count, count), words.slice((i + 1) * count, count)));
  for (int64_t i = 0; i < sizes.valueTiles(); ++i) {
    Values a;
    for (const Values &some : ofKeys)
      llvm::append_range(a, ArrayRef(some).slice(size_t(2 * i), 2));
    for (int64_t tile = 0; tile < sizes.tiles; ++tile)
      multiplyWarp(b, values->elementType(), a, powers[size_t(tile)],
                   MutableArrayRef(state.results)
                       .slice(size_t((tile * sizes.valueTiles() + i) * kWarpSums), kWarpSums));
  }
}

LogicalResult fp4::lowerWarpAttention(AttentionOp op, LoweringContext &context) {
  WarpAttention(op, context).lower();
  return success();
}
