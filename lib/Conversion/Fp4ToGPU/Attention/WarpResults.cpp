//===- WarpResults.cpp - One state of all warps and CTAs, and its results --===//
#include "Attention/WarpAttention.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numbers>
#include <numeric>

using namespace mlir;
using namespace fp4;

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

/// Gives the first warp of each head the state of all of the head: the upper half of the warps
/// leave theirs to the lower half, until each head has one.
void WarpAttention::reduceWarps(WarpState &state) {
  int64_t bytes = state.size() * kWarp * 4;
  for (int64_t half = sizes.warps / 2; half >= sizes.strip; half /= 2) {
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
  Int32 first = work->number * sizes.parts, head = *warp % sizes.strip;
  Int32 cta(b, kernel.ctaIndex());
  emitWhen(b, *warp < sizes.strip,
           [&] { write(state, address(b, workspace, cta * sizes.strip + *warp, bytes)); });
  emitWhen(b, isLastCta(), [&] {
    WarpState all = makeState();
    all.clear();
    ValueRange merged = kernel.forEachItem(
        *warp / sizes.strip, constI32(b, sizes.parts), constI32(b, sizes.warpsOfHead()), all.flat(),
        [&](Value part, ValueRange before) {
          all.assign(before);
          Int32 place = (first + Int32(b, part)) * sizes.strip + head;
          all.merge(read(address(b, workspace, place, bytes)));
          return all.flat();
        });
    all.assign(merged);
    reduceWarps(all);
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
  Int32 head = work->keyHead * sizes.headsOfGroup() + rowOfLane(row) % sizes.headsOfGroup();
  Value number = fp4::load(b, b.getF32Type(), address(b, list, head, 4), 4);
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

void WarpAttention::storeRow(const WarpState &state, int64_t row, Value inverse) {
  int64_t tile = row / kRowsOfLane, half = row % kRowsOfLane, chunk = values.chunk();
  Values words, elements((size_t(chunk)));
  for (int64_t i = 0; i < sizes.valueTiles(); ++i)
    for (int64_t upper : {0, 1}) {
      auto place = size_t((tile * sizes.valueTiles() + i) * kWarpSums + 2 * upper + half);
      elements[size_t(values.elementOfRows(2 * i + upper))] =
          s.multiply(state.results[place], inverse);
    }
  for (int64_t i = 0; i < chunk; i += 2)
    words.push_back(packed(elements[size_t(i)], elements[size_t(i + 1)], element));
  Int32 number = rowOfLane(row);
  emitWhen(b, number < sizes.rows, [&] {
    Value ofRow = address(b, result, placeOf(number), 2 * sizes.valueElements);
    Value first = address(b, ofRow, *lane / kLanesOfKey, 2 * chunk);
    constexpr int64_t widestAccess = 16;
    int64_t access = std::gcd(2 * chunk, widestAccess);
    for (int64_t at = 0; at < 2 * chunk; at += access) {
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
