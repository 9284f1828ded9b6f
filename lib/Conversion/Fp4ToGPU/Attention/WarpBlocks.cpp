//===- WarpBlocks.cpp - Operands whose blocks mma.sync scales -------------===//
//
// Values that have scales have a row for each element of a head, and blocks of keys, so that a step
// has as many keys as an instruction: 32 of MXFP8, or 64 of NVFP4. Codes of values are operand A as
// they are, and powers, operand B, are quantized in registers.
//
// The keys of a step may have any order in the products of keys. A lane takes four of them in a
// row, or eight, so that the codes of a query are a word, and a block is that of two lanes in NVFP4
// and of eight in MXFP8. Two exchanges of halves (movmatrix) make operand B of the words:
//
//   S^T   lane 4 g + t has word g of queries 2t and 2t + 1
//   P^T   lane 4 n + t has words 2t and 2t + 1 of query n: keys 8t and 8t + 4 in MXFP8, or 8t and
//         8t + 32 in NVFP4 (fp4/ISA/WarpOperands.h)
//
//===----------------------------------------------------------------------===//
#include "Attention/WarpAttention.h"

#include "BlockQuantizer.h"
#include "InlinePtx.h"

#include "fp4/ISA/WarpOperands.h"
#include "fp4/Numerics/Attention.h"

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// Queries and keys
//===----------------------------------------------------------------------===//

/// The queries, and their scales, as operand B.
void WarpAttention::loadScaledQueries() {
  for (int64_t tile = 0; tile < sizes.tiles; ++tile) {
    Int32 row = minimum(work->firstRow + *lane / kLanesOfKey + tile * kWarpColumns,
                        Int32(b, sizes.rows - 1));
    Values words = scaledQueries->load(placeOf(row), *lane % kLanesOfKey);
    llvm::append_range(words, scaledQueries->loadScales(work->batch * sizes.heads + headOf(row),
                                                        row / sizes.headsOfGroup()));
    queryOfTile.push_back(words);
    factorsOfRow.append(size_t(kRowsOfLane), factor);
  }
}

/// The key of a step that row `row` of instruction `number` has.
Int32 WarpAttention::keyOfRow(Int32 row, int64_t number) {
  if (!scaledValues)
    return row;
  Int32 word = row % kWarpColumns;
  if (scaledValues->isPacked())
    word = word / 2 + word % 2 * 4;
  return word * (2 * instructionsOfStep()) + row / kWarpColumns + 2 * number;
}

/// The words of the keys of instruction `number` of a step from token `first` on, as operand A, and
/// those of their scales.
WarpAttention::Values WarpAttention::loadScaledKeys(Int32 first, int64_t number) {
  auto existing = [&](Int32 row) {
    return minimum(first + keyOfRow(row, number), Int32(b, sizes.keys - 1));
  };
  Values loaded;
  for (int64_t upper : {0, 1}) {
    Int32 row = *lane / kLanesOfKey + upper * kWarpColumns;
    Int32 token = work->batch * sizes.keys + existing(row);
    llvm::append_range(
        loaded, scaledKeys->load(token * sizes.keyHeads + work->keyHead, *lane % kLanesOfKey));
  }
  llvm::append_range(loaded, scaledKeys->loadScales(work->batch * sizes.keyHeads + work->keyHead,
                                                    existing(hw::scaleRowOfShortA(*lane))));
  return loaded;
}

/// The words of the keys of a step.
WarpAttention::Values WarpAttention::loadKeysOfStep(Int32 step) {
  Values words;
  for (int64_t i = 0; i < instructionsOfStep(); ++i)
    llvm::append_range(words, loadScaledKeys(step * sizes.keysOfStep, i));
  return computeHere(b, b.getLoc(), words);
}

/// Products of operands with scales, of one instruction of keys behind another.
WarpAttention::Values WarpAttention::scaledProductsOf(int64_t tile, ArrayRef<Value> words) {
  Values all;
  for (int64_t i = 0; i < instructionsOfStep(); ++i) {
    auto count = size_t(wordsOfScaledKeys());
    llvm::append_range(all, productsOfKeys(tile, words.slice(size_t(i) * count, count)));
  }
  return all;
}

/// Products with 16 keys: their words, and behind them those of scales.
WarpAttention::Values WarpAttention::productsOfKeys(int64_t tile, ArrayRef<Value> words) {
  Values products(kWarpSums, s.constant(0));
  ArrayRef<Value> queries = queryOfTile[size_t(tile)];
  auto count = size_t(scaledKeys->words());
  for (int64_t step = 0; step < scaledKeys->steps(); ++step) {
    auto pair = size_t(2 * step), ofScales = size_t(scaledKeys->wordOf(step));
    multiplyScaledWarp(
        b, scaledKeys->elementType(),
        {words[pair], words[count + pair], words[pair + 1], words[count + pair + 1]},
        {queries[pair], queries[pair + 1]},
        {words[2 * count + ofScales], queries[count + ofScales], scaledKeys->byteOf(step)},
        products);
  }
  return products;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The element of a head that row `row` of operand A is, of the first instruction. A lane has the
/// results of neighbours.
Int32 WarpAttention::elementOfRow(Int32 row) {
  int64_t chunk = sizes.valueElements / kLanesOfValue;
  return row % kWarpColumns * chunk + row / kWarpColumns;
}

/// The words of the values of a step, as operand A, and of 32 rows those of their scales.
WarpAttention::Values WarpAttention::loadScaledValues(Int32 step) {
  Int32 head = work->batch * sizes.keyHeads + work->keyHead;
  Int32 row = head * sizes.valueElements + elementOfRow(*lane / kLanesOfKey);
  Values loaded;
  for (int64_t element = 0; element < 2 * sizes.valueTiles(); ++element)
    llvm::append_range(loaded, scaledValues->loadStep(row, element, *lane % kLanesOfKey, step));
  constexpr int64_t rows = hw::warpScaleRows, elements = 2 * rows / kWarpRows;
  for (int64_t first = 0; first < sizes.valueElements; first += rows) {
    Int32 element = elementOfRow(hw::scaleRowOfA(*lane)) + first / rows * elements;
    loaded.push_back(scaledValues->loadScalesOfStep(head, element, step));
  }
  return computeHere(b, b.getLoc(), loaded);
}

/// Passes over the warp's steps. Values are loaded as their step begins, and the keys of the next
/// one with them; keys of steps behind the last one are those of the last one.
WarpState WarpAttention::passBlocks() {
  Int32 last = Int32(b, arith::MaxUIOp::create(b, work->end, constI32(b, 1))) - 1;
  Int32 first = work->begin + *warp / sizes.strip;
  WarpState state = makeState();
  state.clear();
  Values carried = state.flat();
  auto size = size_t(state.size());
  llvm::append_range(carried, loadKeysOfStep(minimum(first, last)));
  loadQueries(); // keys are on their way
  ValueRange results =
      kernel.forEachItem(first, work->end, constI32(b, sizes.warpsOfHead()), carried,
                         [&](Value number, ValueRange before) {
                           Int32 step(b, number);
                           state.assign(before.take_front(size));
                           Values words = loadScaledValues(step);
                           Values next = loadKeysOfStep(minimum(step + sizes.warpsOfHead(), last));
                           words.insert(words.begin(), before.begin() + size, before.end());
                           addKeys(step, words, state);
                           Values after = state.flat();
                           llvm::append_range(after, next);
                           return after;
                         });
  state.assign(results.take_front(size));
  state.addLanes();
  return state;
}

/// Hides keys where a row may not see all of a step: a window may begin in any.
void WarpAttention::hideSome(Int32 step, SmallVector<Values> &scores) {
  auto flat = [&](bool isHidden) {
    Values all;
    for (auto [tile, ofTile] : llvm::enumerate(scores)) {
      Values some = ofTile;
      if (isHidden)
        hide(int64_t(tile), step, some);
      llvm::append_range(all, some);
    }
    return all;
  };
  Value may = mayHide(step);
  Values all = flat(bool(op.getWindow()));
  if (may && !op.getWindow())
    all = chooseValues(
        b, TypeRange(ValueRange(all)), may, [&] { return flat(true); }, [&] { return all; });
  for (auto [tile, ofTile] : llvm::enumerate(scores))
    ofTile = Values(ArrayRef(all).slice(tile * ofTile.size(), ofTile.size()));
}

/// The exponent of 2 of the factor of powers.
float WarpAttention::powerExponent() {
  if (scaledValues)
    return float(scaledValues->isPacked() ? numerics::kPackedShift : numerics::kByteShift);
  int most = kHalfPower - (overlapsSteps() ? kGrowth : 0);
  return values->elementType().isF16() ? float(most) : 0;
}

/// The powers of two of distances from the maximum, quantized: two words of operand B, and that of
/// their scales.
WarpAttention::Values WarpAttention::quantizedPowers(int64_t tile, ArrayRef<Value> distances,
                                                     WarpState &state) {
  bool isPacked = scaledValues->isPacked();
  int64_t nearest = isPacked ? 8 : 4, farthest = isPacked ? 8 : 16; // lanes that share a block
  std::string_view decisions = isPacked ? numerics::kPowerRecipe : numerics::kBytePowerRecipe;
  BlockQuantizer quantizer(s, b, *numerics::parseRecipe(decisions));
  quantizer.setTensorAmax({});
  Values codes, scales;
  for (int64_t row = 0; row < kRowsOfLane; ++row) {
    Value &sum = state.sums[size_t(tile * kRowsOfLane + row)], amax;
    BlockElements powers;
    powers.stored = b.getF32Type();
    for (size_t i = size_t(row); i < distances.size(); i += kRowsOfLane) {
      Value power = approximateExp2(b, distances[i]);
      powers.values.push_back(power);
      sum = s.add(sum, power);
      amax = amax ? s.maximumNumber(amax, power) : power;
    }
    for (int64_t distance = nearest; distance <= farthest; distance *= 2)
      amax = s.maximumNumber(amax, valueOfPartner(b, amax, distance));
    BlockQuantizer::Block block = quantizer.quantize(powers, amax);
    codes.push_back(block.codes.front());
    scales.push_back(arith::ExtUIOp::create(b, b.getI32Type(), block.scale));
  }
  return asOperand(codes, scales);
}

/// Operand B of the words of codes of both queries of the lanes, and the word of its scales, which
/// the first of four lanes has.
WarpAttention::Values WarpAttention::asOperand(ArrayRef<Value> codes, ArrayRef<Value> scales) {
  constexpr uint32_t lower = 0x5410, upper = 0x7632, blocks = 0x6240;
  Values halves;
  for (uint32_t half : {lower, upper})
    halves.push_back(transposeMatrix(b, s.permute(codes[0], codes[1], half)));
  Value ofRows = transposeMatrix(b, s.permute(scales[0], scales[1], lower));
  if (scaledValues->isPacked()) // blocks 0 and 2, and those of the lane two behind
    ofRows = s.permute(ofRows, valueOfPartner(b, ofRows, 2), blocks);
  return {s.permute(halves[0], halves[1], lower), s.permute(halves[0], halves[1], upper), ofRows};
}

/// Adds the values of a step times powers.
void WarpAttention::addScaledValues(ArrayRef<Value> words, ArrayRef<Values> powers,
                                    WarpState &state) {
  ArrayRef<Value> scales = words.drop_front(size_t(4 * sizes.valueTiles()));
  for (int64_t i = 0; i < sizes.valueTiles(); ++i) {
    ArrayRef<Value> rows = words.slice(size_t(4 * i), 4);
    for (auto [tile, ofTile] : llvm::enumerate(powers)) {
      size_t first = (tile * size_t(sizes.valueTiles()) + size_t(i)) * kWarpSums;
      multiplyScaledWarp(b, scaledValues->elementType(), {rows[0], rows[2], rows[1], rows[3]},
                         ArrayRef(ofTile).take_front(2),
                         {.a = scales[size_t(i / 2)], .b = ofTile.back(), .threadOfA = i % 2},
                         MutableArrayRef(state.results).slice(first, kWarpSums));
    }
  }
}
