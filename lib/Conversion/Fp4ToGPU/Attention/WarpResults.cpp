//===- WarpResults.cpp - One state of all warps and CTAs, and its results --===//
#include "Attention/WarpAttention.h"

#include "ElementwiseEmitter.h"
#include "LaneBlocks.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numbers>
#include <numeric>

using namespace mlir;
using namespace fp4;

/// Lanes of the eight that have the same elements, whose rows exist: a power of two.
int64_t WarpAttention::membersOfState() const {
  if (sizes.tiles > 1)
    return kLanesOfKey;
  int64_t pairs = (std::min(sizes.rows, kWarpColumns) + 1) / kRowsOfLane;
  return int64_t(llvm::PowerOf2Ceil(uint64_t(pairs)));
}

/// The place of four numbers of the lane, from number 4 `quad` on, in a state at `pointer`.
/// Neighbouring lanes lie together, so that no banks conflict. Lanes of rows that do not exist have
/// the place of another one.
Value WarpAttention::placeOfQuad(Value pointer, Int32 quad) {
  Int32 line = *lane / kLanesOfKey * membersOfState() + *lane % membersOfState();
  return address(b, pointer, quad * linesOfState() + line, 4 * kNumbersOfQuad);
}

/// Writes a state to memory of a warp, a line of lanes for four numbers each. Lanes whose rows do
/// not exist write none.
void WarpAttention::write(const WarpState &state, Value pointer) {
  Value ofLane = placeOfQuad(pointer, Int32(b, int64_t(0)));
  Values numbers = state.flat();
  emitWhen(b, *lane % kLanesOfKey < membersOfState(), [&] {
    for (int64_t i = 0; i < state.size(); i += kNumbersOfQuad)
      storeQuad(ArrayRef(numbers).slice(size_t(i), size_t(kNumbersOfQuad)),
                advance(b, ofLane, i * linesOfState() * 4));
  });
}

/// Four numbers of memory that other threads have written.
WarpAttention::Values WarpAttention::readQuad(Value pointer) {
  auto quad = VectorType::get(kNumbersOfQuad, b.getF32Type());
  Value loaded = LLVM::LoadOp::create(b, quad, pointer, 4 * kNumbersOfQuad);
  return scalarsOf(b, loaded);
}

WarpState WarpAttention::read(Value pointer) {
  Value ofLane = placeOfQuad(pointer, Int32(b, int64_t(0)));
  WarpState state = makeState();
  Values numbers;
  for (int64_t i = 0; i < state.size(); i += kNumbersOfQuad)
    llvm::append_range(numbers, readQuad(advance(b, ofLane, i * linesOfState() * 4)));
  state.assign(numbers);
  return state;
}

/// Makes `state` another one where the condition holds.
void WarpAttention::replaceWhen(Value condition, WarpState &state,
                                function_ref<WarpState()> other) {
  Values before = state.flat();
  state.assign(chooseValues(
      b, TypeRange(ValueRange(before)), condition, [&] { return other().flat(); },
      [&] { return before; }));
}

/// The largest maxima of the warps of a head. Lanes that have the same rows read those of a warp
/// each.
WarpAttention::Values WarpAttention::maximaOfWarps(const WarpState &state) {
  int64_t rows = sizes.tiles * kWarpColumns, bytes = 4 * kRowsOfLane;
  auto pair = VectorType::get(kRowsOfLane, b.getF32Type());
  auto placeOf = [&](Int32 warp, int64_t tile) {
    Value ofWarp = address(b, address(b, maxima, warp, 4 * rows), *lane % kLanesOfKey, bytes);
    return advance(b, ofWarp, tile * 4 * kWarpColumns);
  };
  emitWhen(b, *lane < kLanesOfKey, [&] {
    for (int64_t tile = 0; tile < sizes.tiles; ++tile) {
      auto own = ArrayRef(state.maxima).slice(size_t(tile * kRowsOfLane), size_t(kRowsOfLane));
      fp4::store(b, vector::FromElementsOp::create(b, pair, own), placeOf(*warp, tile),
                 unsigned(bytes));
    }
  });
  NVVM::Barrier0Op::create(b);
  Values top = state.maxima;
  for (int64_t first = 0; first < sizes.warpsOfHead(); first += kWarpColumns) {
    Int32 other = minimum(*lane / kLanesOfKey + first, Int32(b, sizes.warpsOfHead() - 1));
    for (auto [row, maximum] : llvm::enumerate(top)) {
      Value place = placeOf(other * sizes.strip + *warp % sizes.strip, int64_t(row) / kRowsOfLane);
      Value number = LLVM::LoadOp::create(b, b.getF32Type(),
                                          advance(b, place, int64_t(row) % kRowsOfLane * 4), 4);
      maximum = s.maximumNumber(maximum, number);
    }
  }
  for (Value &maximum : top)
    maximum = combineRows(b, maximum, [&](Value x, Value y) { return s.maximumNumber(x, y); });
  return top;
}

/// Calls `body` for each four numbers of `quads` that the warp has of its head.
void WarpAttention::forOwnQuads(int64_t quads, function_ref<void(Int32)> body) {
  kernel.forEachItem(*warp / sizes.strip, constI32(b, quads), constI32(b, sizes.warpsOfHead()), {},
                     [&](Value quad, ValueRange) {
                       body(Int32(b, quad));
                       return Values();
                     });
}

void WarpAttention::storeQuad(ArrayRef<Value> numbers, Value place) {
  auto type = VectorType::get(kNumbersOfQuad, b.getF32Type());
  fp4::store(b, vector::FromElementsOp::create(b, type, numbers), place, 4 * kNumbersOfQuad);
}

/// Writes four numbers of each lane whose rows exist.
void WarpAttention::writeQuad(ArrayRef<Value> numbers, Value place) {
  emitWhen(b, *lane % kLanesOfKey < membersOfState(), [&] { storeQuad(numbers, place); });
}

/// Adds up the states in shared memory that heads have, in the first of each head: a warp has some
/// numbers of all.
void WarpAttention::addStates() {
  forOwnQuads(makeState().size() / kNumbersOfQuad, [&](Int32 quad) {
    Value place = placeOfQuad(address(b, shared, *warp % sizes.strip, bytesOfState()), quad);
    SmallVector<Values> quads; // all loads before the first sum
    for (int64_t state = 0; state < slotsOfWarps(); state += sizes.strip)
      quads.push_back(readQuad(advance(b, place, state * bytesOfState())));
    Values sums = quads.front();
    for (const Values &other : ArrayRef(quads).drop_front())
      for (auto [sum, number] : llvm::zip_equal(sums, other))
        sum = s.add(sum, number);
    writeQuad(sums, place);
  });
  NVVM::Barrier0Op::create(b);
}

/// Gives the first warp of each head the state of all of the head. Warps scale their sums as the
/// largest maximum asks, and leave them in shared memory; if it has no room for all, the upper half
/// leave theirs to the lower half first.
void WarpAttention::reduceWarps(WarpState &state) {
  if (sizes.warpsOfHead() == 1)
    return;
  Values top = maximaOfWarps(state);
  state.raise(top);
  auto placeOf = [&](Int32 slot) { return address(b, shared, slot, bytesOfState()); };
  int64_t slots = slotsOfWarps();
  if (slots < sizes.warps) {
    Int32 partner = *warp - slots; // above all for the lower half
    emitWhen(b, partner < slots, [&] { write(state, placeOf(partner)); });
    NVVM::Barrier0Op::create(b);
    emitWhen(b, *warp < slots, [&] {
      WarpState both = state;
      both.add(read(placeOf(*warp)));
      write(both, placeOf(*warp));
    });
  } else {
    write(state, placeOf(*warp));
  }
  NVVM::Barrier0Op::create(b);
  if (slots > sizes.strip)
    addStates();
  replaceWhen(*warp < sizes.strip, state, [&] {
    WarpState all = read(placeOf(*warp));
    all.maxima = top;
    return all;
  });
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

/// The place of the state that part `part` of the keys has left of the warp's head.
Value WarpAttention::stateOfPart(Int32 part) {
  Int32 place = (work->number * sizes.parts + part) * sizes.strip + *warp % sizes.strip;
  return address(b, workspace, place, bytesOfState());
}

/// Loads maxima and sums of `count` parts from `first` on: lanes that have the same rows have parts
/// in turn.
SmallVector<WarpAttention::Values> WarpAttention::loadHeads(Int32 first, int64_t count) {
  Int32 group = *lane / kLanesOfKey;
  SmallVector<Values> heads;
  for (int64_t begin = 0; begin < count; begin += kWarpColumns) {
    int64_t last = std::min(count - begin, kWarpColumns) - 1;
    Int32 part = minimum(group, Int32(b, last)) + first + begin;
    Value place = placeOfQuad(stateOfPart(part), Int32(b, int64_t(0)));
    Values numbers;
    for (int64_t quad = 0; quad < sizes.tiles; ++quad)
      llvm::append_range(numbers,
                         readQuad(advance(b, place, quad * linesOfState() * 4 * kNumbersOfQuad)));
    for (Value &sum : MutableArrayRef(numbers).drop_front(size_t(sizes.tiles * kRowsOfLane)))
      sum = arith::SelectOp::create(b, group < last + 1, sum, s.constant(0));
    heads.push_back(numbers);
  }
  return heads;
}

/// Four results of `count` parts from `first` on.
SmallVector<WarpAttention::Values> WarpAttention::loadParts(Int32 quad, Int32 first,
                                                            int64_t count) {
  SmallVector<Values> quads;
  Value place = placeOfQuad(stateOfPart(first), quad + sizes.tiles);
  for (int64_t part = 0; part < count; ++part)
    quads.push_back(readQuad(advance(b, place, part * sizes.strip * bytesOfState())));
  return quads;
}

/// Calls `body` for batches of parts, with the first part and the number of parts, and returns what
/// it carries. More than a few parts have a loop, since the last CTA alone fetches its code: 64
/// parts in straight code take twice as long on an H200.
WarpAttention::Values
WarpAttention::forBatches(Values carried, function_ref<Values(Int32, int64_t, ValueRange)> body) {
  int64_t whole = hasFewParts() ? 0 : sizes.parts / kPartsOfBatch * kPartsOfBatch;
  if (whole)
    carried = kernel.forEachItem(constI32(b, 0), constI32(b, whole), constI32(b, kPartsOfBatch),
                                 carried, [&](Value first, ValueRange before) {
                                   return body(Int32(b, first), kPartsOfBatch, before);
                                 });
  if (whole < sizes.parts)
    carried = body(Int32(b, whole), sizes.parts - whole, carried);
  return carried;
}

/// Finds the largest maxima of all parts, for `all`.
void WarpAttention::raiseToParts(WarpState &all, HeadsOfParts headsOf) {
  all.maxima = forBatches(all.maxima, [&](Int32 first, int64_t count, ValueRange before) {
    Values maxima(before);
    for (const Values &numbers : headsOf(first, count))
      for (auto [row, maximum] : llvm::enumerate(maxima))
        maximum = s.maximumNumber(maximum, numbers[row]);
    return maxima;
  });
  for (Value &maximum : all.maxima)
    maximum = combineRows(b, maximum, [&](Value x, Value y) { return s.maximumNumber(x, y); });
}

/// The powers that each row of the parts is scaled by.
WarpAttention::Values WarpAttention::powersOfPart(const Values &numbers, WarpState &all) {
  Values powers;
  for (auto [row, maximum] : llvm::enumerate(all.maxima))
    powers.push_back(all.shrinkOf(numbers[row], maximum));
  return powers;
}

/// Adds up the sums of all parts, whose maxima `all` has.
void WarpAttention::addSumsOfParts(WarpState &all, HeadsOfParts headsOf) {
  all.sums = forBatches(all.sums, [&](Int32 first, int64_t count, ValueRange before) {
    Values sums(before);
    for (const Values &numbers : headsOf(first, count))
      for (auto [row, power] : llvm::enumerate(powersOfPart(numbers, all)))
        sums[row] = LLVM::FMAOp::create(b, numbers[sums.size() + row], power, sums[row]);
    return sums;
  });
  all.addLanes();
}

/// The power of row `row` of the tile that has the results `quad`.
Value WarpAttention::powerOfQuad(Int32 quad, ArrayRef<Value> powers, int64_t row) {
  Value power = powers[size_t(row)];
  for (int64_t tile = 1; tile < sizes.tiles; ++tile)
    power = arith::SelectOp::create(b, quad < tile * sizes.valueTiles(), power,
                                    powers[size_t(tile * kRowsOfLane + row)]);
  return power;
}

/// Four results of all parts, in the order of the parts.
WarpAttention::Values WarpAttention::sumOfParts(Int32 quad, WarpState &all, HeadsOfParts headsOf) {
  Values zeros(kNumbersOfQuad, s.constant(0));
  return forBatches(zeros, [&](Int32 first, int64_t count, ValueRange before) {
    Values sums(before);
    SmallVector<Values> loaded = loadParts(quad, first, count), powers;
    for (const Values &numbers : headsOf(first, count))
      powers.push_back(powersOfPart(numbers, all));
    for (int64_t part = 0; part < count; ++part) {
      Int32 owner = *lane % kLanesOfKey + part % kWarpColumns * kLanesOfKey;
      Values ofRows;
      for (int64_t row = 0; row < kRowsOfLane; ++row)
        ofRows.push_back(
            valueOfLane(b, powerOfQuad(quad, powers[size_t(part / kWarpColumns)], row), owner));
      for (auto [i, sum] : llvm::enumerate(sums))
        sum = LLVM::FMAOp::create(b, loaded[size_t(part)][i], ofRows[i % kRowsOfLane], sum);
    }
    return sums;
  });
}

/// The results of all parts: a warp adds up some of them, and each warp of the head gets all.
WarpAttention::Values WarpAttention::resultsOfParts(WarpState &all, HeadsOfParts headsOf) {
  int64_t quads = sizes.tiles * sizes.valueTiles();
  if (sizes.warpsOfHead() == 1) {
    Values results;
    for (int64_t quad = 0; quad < quads; ++quad)
      llvm::append_range(results, sumOfParts(Int32(b, quad), all, headsOf));
    return results;
  }
  Value ofHead = address(b, shared, *warp % sizes.strip, bytesOfState());
  forOwnQuads(quads, [&](Int32 quad) {
    writeQuad(sumOfParts(quad, all, headsOf), placeOfQuad(ofHead, quad + sizes.tiles));
  });
  NVVM::Barrier0Op::create(b);
  return read(ofHead).results;
}

/// The state of all parts.
WarpState WarpAttention::stateOfParts() {
  WarpState all = makeState();
  all.clear();
  SmallVector<Values> few;
  if (hasFewParts())
    few = loadHeads(Int32(b, int64_t(0)), sizes.parts);
  auto headsOf = [&](Int32 first, int64_t count) {
    return hasFewParts() ? few : loadHeads(first, count);
  };
  raiseToParts(all, headsOf);
  addSumsOfParts(all, headsOf);
  all.results = resultsOfParts(all, headsOf);
  return all;
}

/// The last CTA of a result merges the states of all, in an order that depends on the plan alone.
void WarpAttention::reduceCtas(WarpState &state) {
  emitWhen(b, *warp < sizes.strip,
           [&] { write(state, stateOfPart(Int32(b, kernel.ctaIndex()) % sizes.parts)); });
  emitWhen(b, isLastCta(), [&] {
    WarpState all = stateOfParts();
    emitWhen(b, *warp < sizes.strip, [&] { store(all); });
  });
}

/// A row of the lane in its sequence.
Int32 WarpAttention::rowOfLane(int64_t row) {
  Int32 ofTile =
      *lane % kLanesOfKey * kRowsOfLane + (row / kRowsOfLane * kWarpColumns + row % kRowsOfLane);
  return work->firstRow + ofTile;
}

/// The number that `list` has for the head of a row, in the exponent of 2.
Value WarpAttention::numberOfHead(Value list, int64_t row) {
  Value number =
      fp4::load(b, b.getF32Type(), address(b, list, headOf(rowOfLane(row)), 4), 4);
  return s.multiply(number, s.constant(std::numbers::log2e_v<float>));
}

/// Takes in the sink of each row.
void WarpAttention::addSinks(WarpState &state) {
  for (int64_t row = 0; row < sizes.tiles * kRowsOfLane; ++row)
    state.addSink(row, numberOfHead(sinks, row));
}

/// Stores the rows of the lane that exist. A row that sees no key is zero.
void WarpAttention::store(WarpState &state) {
  if (sinks)
    addSinks(state);
  for (auto [row, sum] : llvm::enumerate(state.sums)) {
    if (lse)
      storeLogSum(state, int64_t(row));
    Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, s.constant(0));
    Value inverse = s.divide(valueFactor, sum);
    inverse = arith::SelectOp::create(b, isNone, s.constant(0), inverse);
    storeRow(state, int64_t(row), inverse);
  }
}

/// The elements that the epilogue region makes of the numbers of a lane.
Value WarpAttention::elementsOf(const Values &numbers) {
  auto count = int64_t(numbers.size());
  Type type = op.getElementType();
  Values arguments = {
      vector::FromElementsOp::create(b, VectorType::get(count, b.getF32Type()), numbers)};
  SmallVector<Type> types;
  for (Value input : op.getEpilogueInputs())
    types.push_back(getElementTypeOrSelf(input));
  llvm::append_range(arguments, loadScalars(b, epilogueInputs, types, count));
  Region *region = op.getEpilogueBody().empty() ? nullptr : &op.getEpilogueBody();
  return emitEpilogue(b, region, arguments, type);
}

/// The address of the result of a row, a head of `headBytes`.
Value WarpAttention::addressOf(Int32 row, int64_t headBytes) {
  if (!resultPitch)
    return address(b, result, placeOf(row), headBytes);
  return address(b, address(b, result, tokenOf(row), resultPitch), headOf(row), headBytes);
}

void WarpAttention::storeRow(const WarpState &state, int64_t row, Value inverse) {
  int64_t tile = row / kRowsOfLane, half = row % kRowsOfLane;
  int64_t chunk = sizes.valueElements / kLanesOfValue;
  Values elements((size_t(chunk)));
  for (int64_t i = 0; i < sizes.valueTiles(); ++i)
    for (int64_t upper : {0, 1}) {
      auto place = size_t((tile * sizes.valueTiles() + i) * kWarpSums + 2 * upper + half);
      int64_t word = 2 * i + upper;
      elements[size_t(values ? values->elementOfRows(word) : word)] =
          s.multiply(state.results[place], inverse);
    }
  Int32 number = rowOfLane(row);
  Value converted = elementsOf(elements);
  if (EpilogueQuantizeOp quantize = op.getEpilogueQuantize())
    storeLaneBlocks(b, s, {quantize.getRecipe().getDecisions(), quantizeAmax, codes, scales},
                    converted, placeOf(number) * sizes.valueElements + *lane / kLanesOfKey * chunk,
                    *lane, kLanesOfKey, number < sizes.rows);
  if (!result)
    return;
  Values words = packedWords(b, converted);
  emitWhen(b, number < sizes.rows, [&] {
    int64_t bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
    Value first = address(b, addressOf(number, bytes * sizes.valueElements), *lane / kLanesOfKey, bytes * chunk);
    constexpr int64_t widestAccess = 16;
    int64_t access = std::gcd(bytes * chunk, widestAccess);
    for (int64_t at = 0; at < bytes * chunk; at += access) {
      auto type = VectorType::get(access / 4, b.getI32Type());
      Value part = vector::FromElementsOp::create(
          b, type, ArrayRef(words).slice(size_t(at / 4), size_t(access / 4)));
      fp4::store(b, part, advance(b, first, at), unsigned(access));
    }
  });
}

/// Stores the logarithm of a row's sum, in the first of the lanes that have the row.
void WarpAttention::storeLogSum(WarpState &state, int64_t row) {
  Value sum = state.logSumOf(row);
  Int32 number = rowOfLane(row);
  Value exists = arith::AndIOp::create(b, number < sizes.rows, *lane < kLanesOfKey);
  emitWhen(b, exists, [&] { fp4::store(b, sum, address(b, lse, placeOf(number), 4), 4); });
}
