//===- RowTopK.cpp - The k best columns of the row of a team --------------===//
#include "Rows/RowTopK.h"

#include "Float32.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kColumns = RowTeam::kChunk; ///< columns of a lane
/// The key of a column that is not to be chosen, and that of NaN.
constexpr int kAbsent = std::numeric_limits<int>::min(), kNaN = std::numeric_limits<int>::max();

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Flips the bits of negative numbers, so that the order of integers is that of numbers; its own
/// inverse.
Bits32 flipped(Bits32 bits) {
  Value flips = (bits >> 31) & kNaN;
  return {bits.builder(), arith::XOrIOp::create(bits.builder(), bits, flips)};
}

/// Integers in the order of scores: 0 for -0 as for 0, and the largest one for NaN.
Value keysOf(Float32 scores) {
  ImplicitLocOpBuilder &b = scores.builder();
  Bits32 keys = flipped(bitsOf(scores + like(scores, 0)));
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, scores, scores);
  return arith::SelectOp::create(b, isNaN, like(keys, kNaN), keys);
}

Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, predicate, x, y);
}

/// The two largest keys of some columns.
struct Pair {
  Value first, second;
};

Pair merged(ImplicitLocOpBuilder &b, Pair x, Pair y) {
  Value first = arith::MaxSIOp::create(b, x.first, y.first);
  Value lost = arith::MinSIOp::create(b, x.first, y.first);
  Value seconds = arith::MaxSIOp::create(b, x.second, y.second);
  return {first, arith::MaxSIOp::create(b, lost, seconds)};
}

/// The two largest of a power of two of keys.
Pair bestTwo(ImplicitLocOpBuilder &b, ArrayRef<Value> keys) {
  if (keys.size() == 2)
    return {arith::MaxSIOp::create(b, keys[0], keys[1]),
            arith::MinSIOp::create(b, keys[0], keys[1])};
  size_t half = keys.size() / 2;
  return merged(b, bestTwo(b, keys.take_front(half)), bestTwo(b, keys.drop_front(half)));
}

} // namespace

RowTopK::RowTopK(KernelBuilder &kernel, TopKOp op, Value rows, bool noArithmetic)
    : kernel(kernel), b(kernel.body()), op(op), root(kernelOf(op)), scores(op.getScores()),
      weights(op.getWeights() ? op.getWeights() : op.getScores()),
      wide(kernel, op, rows, typeOf(op.getScores()).getDimSize(1),
           chunksOfRow(typeOf(op.getScores()).getDimSize(1)), noArithmetic),
      noArithmetic(noArithmetic) {}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// The keys of the scores of groups: of each that the lane has, or of the one that it has with
/// other lanes.
RowTopK::Lane RowTopK::groupScores(const Lane &keys) {
  int64_t size = typeOf(scores).getDimSize(1) / int64_t(op.getNumGroups());
  size_t own = size_t(std::min(size, kColumns));
  Lane sums;
  for (size_t first = 0; first < size_t(kColumns); first += own) {
    Pair best = bestTwo(b, ArrayRef(keys).slice(first, own));
    for (int64_t distance = 1; distance < size / kColumns; distance *= 2)
      best = merged(b, best,
                    {wide.team().exchanged(best.first, distance),
                     wide.team().exchanged(best.second, distance)});
    sums.push_back(keysOf(floatOf(flipped({b, best.first})) + floatOf(flipped({b, best.second}))));
  }
  return sums;
}

/// Returns (i1) whether the group with score `own` is among the best ones.
Value RowTopK::isChosen(Value own, Int32 group, const Lane &groupScores) {
  int64_t groups = int64_t(op.getNumGroups());
  int64_t size = typeOf(scores).getDimSize(1) / groups;
  Int32 better(b, 0);
  for (int64_t other = 0; other < groups; ++other) {
    Value word = groupScores[size_t(other * size % kColumns / std::min(size, kColumns))];
    if (wide.team().lanes() > 1)
      word = wide.team().wordOf(word, Int32(b, other * size / kColumns));
    Value isBetter = compare(b, arith::CmpIPredicate::sgt, word, own);
    Value isEqual = compare(b, arith::CmpIPredicate::eq, word, own);
    Value isFirst = Int32(b, other) < group;
    Value counts = arith::OrIOp::create(b, isBetter, arith::AndIOp::create(b, isEqual, isFirst));
    better = better + Int32(b, arith::ExtUIOp::create(b, b.getI32Type(), counts));
  }
  return better < int64_t(op.getTopGroups());
}

/// Makes columns absent whose group is not chosen.
void RowTopK::dropGroups(Lane &keys, const RowTeam::Chunk &chunk) {
  if (op.getTopGroups() == op.getNumGroups())
    return;
  int64_t size = typeOf(scores).getDimSize(1) / int64_t(op.getNumGroups());
  Lane sums = groupScores(keys);
  for (auto [number, own] : llvm::enumerate(sums)) {
    Int32 group = (chunk.number * kColumns + int64_t(number) * size) / size;
    Value chosen = isChosen(own, group, sums);
    size_t count = keys.size() / sums.size();
    for (Value &key : MutableArrayRef(keys).slice(number * count, count))
      key = arith::SelectOp::create(b, chosen, key, constI32(b, kAbsent));
  }
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// The best column of a lane: the first of the largest key.
RowTopK::Candidate RowTopK::bestOfLane(const Lane &keys, const RowTeam::Chunk &chunk) {
  SmallVector<Candidate> candidates;
  for (auto [i, key] : llvm::enumerate(keys))
    candidates.push_back({key, constI32(b, int64_t(i))});
  for (; candidates.size() > 1; candidates.resize(candidates.size() / 2))
    for (size_t i = 0; i < candidates.size() / 2; ++i) {
      auto [left, right] = std::pair(candidates[2 * i], candidates[2 * i + 1]);
      Value isRight = compare(b, arith::CmpIPredicate::sgt, right.key, left.key);
      candidates[i] = {arith::MaxSIOp::create(b, left.key, right.key),
                       arith::SelectOp::create(b, isRight, right.column, left.column)};
    }
  Int32 column(b, candidates.front().column);
  return {candidates.front().key, chunk.number * kColumns + column};
}

RowTopK::Candidate RowTopK::bestOfTeam(Candidate best) {
  for (int64_t distance = wide.team().lanes() / 2; distance; distance /= 2) {
    Candidate other{wide.team().exchanged(best.key, distance),
                    wide.team().exchanged(best.column, distance)};
    Value isBetter = compare(b, arith::CmpIPredicate::sgt, other.key, best.key);
    Value isEqual = compare(b, arith::CmpIPredicate::eq, other.key, best.key);
    Value isFirst = Int32(b, other.column) < Int32(b, best.column);
    Value takes = arith::OrIOp::create(b, isBetter, arith::AndIOp::create(b, isEqual, isFirst));
    best = {arith::MaxSIOp::create(b, best.key, other.key),
            arith::SelectOp::create(b, takes, other.column, best.column)};
  }
  return best;
}

void RowTopK::choose(const RowTeam::Chunk &chunk) {
  Value numbers = wide.elements(scores, chunk);
  Bits32 vector(b, keysOf({b, numbers}));
  Lane keys = scalarsOf(b, wide.team().withAbsent(vector, chunk, like(vector, kAbsent)));
  Lane given = scalarsOf(b, weights == scores ? numbers : wide.elements(weights, chunk));
  dropGroups(keys, chunk);
  Lane bestValues(kColumns, constF32(b, 0)), bestColumns(kColumns, constI32(b, 0));
  for (int64_t i = 0; i < int64_t(op.getK()); ++i) {
    Int32 column(b, bestOfTeam(bestOfLane(keys, chunk)).column);
    Int32 place = column - chunk.number * kColumns;
    Value value = given.front();
    for (int64_t j = 0; j < kColumns; ++j) {
      Value isHere = compare(b, arith::CmpIPredicate::eq, place, constI32(b, j));
      keys[size_t(j)] = arith::SelectOp::create(b, isHere, constI32(b, kAbsent), keys[size_t(j)]);
      value = arith::SelectOp::create(b, isHere, given[size_t(j)], value);
    }
    if (wide.team().lanes() > 1)
      value = wide.team().wordOf(value, column / kColumns);
    bestValues[size_t(i)] = value;
    bestColumns[size_t(i)] = column;
  }
  values = vector::FromElementsOp::create(b, VectorType::get(kColumns, b.getF32Type()), bestValues);
  ids = vector::FromElementsOp::create(b, VectorType::get(kColumns, b.getI32Type()), bestColumns);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns true when something behind the kernel reads a result.
bool RowTopK::mustStore(Value result) {
  return llvm::any_of(result.getUsers(), [&](Operation *user) { return isBehind(user, root); });
}

void RowTopK::emit(RowElements &narrow, Value hostRows) {
  wide.begin(hostRows);
  wide.forEachChunk([&](const RowTeam::Chunk &chunk) {
    wide.storeChunk(chunk);
    if (!noArithmetic)
      choose(chunk);
  });
  wide.storeNumbers();
  if (noArithmetic) {
    values = vector::BroadcastOp::create(b, VectorType::get(kColumns, b.getF32Type()),
                                         wide.mixedNumber());
    ids = bitsOf({b, values});
  }
  narrow.give(op.getValues(), values);
  for (auto [result, vector] : {std::pair(op.getValues(), values), std::pair(op.getIds(), ids)}) {
    if (!mustStore(result))
      continue;
    RankedTensorType type = typeOf(result);
    Value base = kernel.output(result, hostRows);
    narrow.forEachChunk([&, vector = vector](const RowTeam::Chunk &chunk) {
      narrow.store(base, type, vector, chunk, narrow.ownRow());
    });
  }
}
