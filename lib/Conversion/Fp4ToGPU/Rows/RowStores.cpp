//===- RowStores.cpp - Stores of row kernels ------------------------------===//
#include "Rows/RowElements.h"

#include "ElementwiseEmitter.h"
#include "Reduce/GridMax.h"
#include "Rowwise/RowBlocks.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunk = RowTeam::kChunk;
/// The widest access.
constexpr int64_t kAccessBytes = 16;

int64_t bytesOf(RankedTensorType type) { return type.getElementTypeBitWidth() / 8; }

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace

SmallVector<Value> RowElements::mixed(RankedTensorType type, const Chunk &chunk) {
  SmallVector<Value> words(kChunk * bytesOf(type) / 4, constI32(b, 0));
  auto mix = [&](ArrayRef<Value> loaded) {
    for (auto [i, word] : llvm::enumerate(loaded))
      words[i % words.size()] = arith::XOrIOp::create(b, words[i % words.size()], word);
  };
  for (auto &[key, source] : sources)
    if (source.operand.hasColumns)
      mix(load(source.operand, chunk));
  for (auto &[tensor, elements] : given)
    mix(packedWords(b, elements));
  return words;
}

Value RowElements::mixedNumber() {
  Value mixedBits = constI32(b, 0);
  auto type = RankedTensorType::get({}, b.getF32Type());
  if (kept)
    forEachChunk([&](const Chunk &chunk) {
      for (Value word : mixed(sources.empty() ? type : sources.begin()->second.type, chunk))
        mixedBits = arith::XOrIOp::create(b, mixedBits, word);
    });
  return arith::BitcastOp::create(b, b.getF32Type(), mixedBits);
}

Value RowElements::existsIn(const Chunk &chunk, const ResultRow &to) {
  return chunk.exists ? arith::AndIOp::create(b, to.exists, chunk.exists).getResult() : to.exists;
}

/// Stores the chunk of this lane and that of its neighbour, of which each lane has every other
/// piece: an H200 writes 4096 rows of 16384 elements of bf16 in 70 us so, and in 84 us where lanes
/// store the pieces of their own chunks, which are halves of sectors.
void RowElements::storePairs(Value row, ArrayRef<Value> words, const Chunk &chunk,
                             const ResultRow &to) {
  constexpr int64_t sector = 2 * RowTeam::kPieceBytes;
  SmallVector<SmallVector<Value>> pieces = rowTeam.exchangePieces(words);
  Value pair = address(b, row, chunk.number / 2, int64_t(words.size()) * 8);
  Value place = address(b, pair, chunk.number % 2, RowTeam::kPieceBytes);
  emitWhen(b, existsIn(chunk, to), [&] {
    for (auto [i, piece] : llvm::enumerate(pieces))
      storeValues(b, piece, advance(b, place, int64_t(i) * sector));
  });
}

void RowElements::storeWords(Value base, RankedTensorType type, ArrayRef<Value> words,
                             const Chunk &chunk, const ResultRow &to) {
  int64_t bytes = bytesOf(type), all = kChunk * bytes;
  int64_t access = std::gcd(rowTeam.columns() * bytes, kAccessBytes);
  Value row = address(b, base, to.number, rowTeam.columns() * bytes);
  if (rowTeam.pairsPieces(all))
    return storePairs(row, words, chunk, to);
  Value place = address(b, row, chunk.number, all);
  auto storePart = [&](int64_t byte) {
    Value to = advance(b, place, byte);
    if (access >= 4)
      return storeValues(b, ArrayRef(words).slice(byte / 4, access / 4), to);
    Value shifted = arith::ShRUIOp::create(b, words[byte / 4], constI32(b, byte % 4 * 8));
    Type part = b.getIntegerType(8 * access);
    fp4::store(b, arith::TruncIOp::create(b, part, shifted), to, access);
  };
  auto storeParts = [&](int64_t first, int64_t end) {
    for (int64_t byte = first; byte < end; byte += access)
      storePart(byte);
  };
  Value condition = existsIn(chunk, to);
  int64_t common = rowTeam.residue() ? rowTeam.residue() * bytes : all;
  emitWhen(b, condition, [&] { storeParts(0, common); });
  if (common == all)
    return;
  Value isWhole = arith::XOrIOp::create(b, chunk.isLast, arith::ConstantIntOp::create(b, 1, 1));
  emitWhen(b, arith::AndIOp::create(b, condition, isWhole), [&] { storeParts(common, all); });
}

RowElements::ResultRows RowElements::rowsOfResult(Value result) {
  tensor::ScatterOp scatter = scatterOf(result);
  Value indices = scatter ? kernel.input(scatter.getIndices()) : Value();
  ResultRows rows;
  rowTeam.forEachRow([&] {
    if (!scatter)
      return rows.push_back(ownRow());
    Value place = address(b, indices, rowTeam.row(), 8);
    Value number = fp4::load(b, b.getI64Type(), place, 8);
    Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
    Value isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, number, zero);
    rows.push_back({Int32(b, arith::TruncIOp::create(b, b.getI32Type(), number)),
                    arith::AndIOp::create(b, rowTeam.isRow(), isRow)});
  });
  return rows;
}

void RowElements::store(Value base, RankedTensorType type, Value vector, const Chunk &chunk,
                        const ResultRow &to) {
  storeWords(base, type, noArithmetic ? mixed(type, chunk) : packed(vector, type), chunk, to);
}

void RowElements::storeChunk(const Chunk &chunk) {
  for (Stored &step : stored) {
    RankedTensorType type = typeOf(step.op.getResult(0));
    bool isNumber = isRowReduction(step.op) || isNumbersOfRows(type);
    if (!isNumber)
      store(step.base, type, noArithmetic ? Value() : elements(step.op.getResult(0), chunk), chunk,
            ownRow());
  }
}

void RowElements::storeNumbers() {
  for (Stored &step : stored) {
    Value result = step.op.getResult(0);
    if (!isRowReduction(step.op) && !isNumbersOfRows(result.getType()))
      continue;
    Value mixed = noArithmetic ? mixedNumber() : Value();
    rowTeam.forEachRow(
        [&] { storeNumber(step.base, typeOf(result), mixed ? mixed : number(result), ownRow()); });
  }
}

void RowElements::storeNumber(Value base, RankedTensorType type, Value number,
                              const ResultRow &to) {
  Value isFirst = arith::AndIOp::create(b, to.exists, rowTeam.lane() < 1);
  auto one = VectorType::get(1, b.getF32Type());
  Value narrow = narrowTo(b, vector::BroadcastOp::create(b, one, number), type.getElementType());
  Value element = vector::ExtractOp::create(b, narrow, 0);
  emitWhen(b, isFirst, [&] {
    fp4::store(b, element, address(b, base, to.number, bytesOf(type)), bytesOf(type));
  });
}
