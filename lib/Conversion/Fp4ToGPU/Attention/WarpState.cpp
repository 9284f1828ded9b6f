//===- WarpState.cpp - Maxima, sums and results of a warp's keys ----------===//
#include "Attention/WarpState.h"

#include "InlinePtx.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fp4;

Value fp4::combineRows(ImplicitLocOpBuilder &b, Value value,
                       function_ref<Value(Value, Value)> combine) {
  for (int64_t distance : {4, 8, 16})
    value = combine(value, valueOfPartner(b, value, distance));
  return value;
}

void WarpState::clear() {
  maxima.assign(size_t(tiles * kRowsOfLane), s.constant(-std::numeric_limits<float>::infinity()));
  sums.assign(size_t(tiles * kRowsOfLane), s.constant(0));
  results.assign(size_t(tiles * valueTiles * kWarpSums), s.constant(0));
}

WarpState::Values WarpState::flat() const {
  Values all(maxima);
  llvm::append_range(all, sums);
  llvm::append_range(all, results);
  return all;
}

void WarpState::assign(ValueRange numbers) {
  auto rows = size_t(tiles * kRowsOfLane);
  maxima.assign(numbers.begin(), numbers.begin() + rows);
  sums.assign(numbers.begin() + rows, numbers.begin() + 2 * rows);
  results.assign(numbers.begin() + 2 * rows, numbers.end());
}

/// The maximum, or 0 where no key was seen: distances from it are then -infinity.
Value WarpState::originOf(Value maximum) {
  Value nothing = s.constant(-std::numeric_limits<float>::infinity());
  Value isNothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum, nothing);
  return arith::SelectOp::create(b, isNothing, s.constant(0), maximum);
}

Value WarpState::distanceOf(Value score, int64_t row) {
  Value origin = originOf(maxima[size_t(row)]);
  if (exponent)
    origin = s.subtract(origin, s.constant(exponent));
  return s.subtract(score, origin);
}

void WarpState::raise(const Values &raised) {
  for (auto [row, maximum] : llvm::enumerate(raised))
    raiseRow(int64_t(row), maximum);
}

Value WarpState::shrinkOf(Value before, Value maximum) {
  return approximateExp2(b, s.subtract(before, originOf(maximum)));
}

void WarpState::raiseRow(int64_t row, Value maximum) {
  Value before = maxima[size_t(row)];
  maxima[size_t(row)] = maximum;
  Value shrink = shrinkOf(before, maximum);
  sums[size_t(row)] = s.multiply(sums[size_t(row)], shrink);
  int64_t tile = row / kRowsOfLane, first = tile * valueTiles * kWarpSums + row % kRowsOfLane;
  for (int64_t i = 0; i < valueTiles * kWarpSums; i += kRowsOfLane)
    results[size_t(first + i)] = s.multiply(results[size_t(first + i)], shrink);
}

void WarpState::addSink(int64_t row, Value sink) {
  raiseRow(row, s.maximumNumber(maxima[size_t(row)], sink));
  sums[size_t(row)] = s.add(sums[size_t(row)], approximateExp2(b, distanceOf(sink, row)));
}

Value WarpState::logSumOf(int64_t row) {
  Value logarithm = approximateLog2(b, sums[size_t(row)]);
  if (exponent)
    logarithm = s.subtract(logarithm, s.constant(exponent));
  return s.multiply(s.add(maxima[size_t(row)], logarithm), s.constant(std::numbers::ln2_v<float>));
}

void WarpState::add(const WarpState &other) {
  for (auto [mine, theirs] : llvm::zip_equal(sums, other.sums))
    mine = s.add(mine, theirs);
  for (auto [mine, theirs] : llvm::zip_equal(results, other.results))
    mine = s.add(mine, theirs);
}

void WarpState::addLanes() {
  for (Value &sum : sums)
    sum = combineRows(b, sum, [&](Value x, Value y) { return s.add(x, y); });
}
