//===- IndexedRows.cpp - Chunks that are read at other rows and columns ---===//
#include "Rows/IndexedRows.h"

#include "Rowwise/RowBlocks.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunk = RowTeam::kChunk, kAccessBytes = 16;

/// The window of each chunk whose loads are whole words; none where elements are loaded alone.
std::optional<ChunkWindow> windowOf(RowTeam &team, const IndexedRow &from) {
  std::optional<ChunkWindow> window = chunkWindowOf(from.column, team.columns(), kChunk);
  bool hasWords = window && window->span * from.bytes % 4 == 0 &&
                  window->alignment * from.bytes % 4 == 0 && from.unit % 4 == 0;
  return hasWords ? window : std::nullopt;
}

/// Elements of 16 or 32 bits, one after the other, as words.
SmallVector<Value> loadAlone(RowTeam &team, Value row, const IndexedRow &of,
                             const RowTeam::Chunk &chunk) {
  ImplicitLocOpBuilder &b = team.builder();
  Int32 last(b, team.columns() - 1);
  SmallVector<Value> words;
  for (int64_t lane = 0; lane < kChunk; ++lane) {
    Int32 at = minimum(chunk.number * kChunk + lane, last);
    Value from = address(b, row, emitIndex(of.column, at), of.bytes);
    if (of.bytes == 4) {
      words.push_back(load(b, b.getI32Type(), from, 4));
      continue;
    }
    Value half = arith::ExtUIOp::create(b, b.getI32Type(), load(b, b.getI16Type(), from, 2));
    if (lane % 2 == 0)
      words.push_back(half);
    else
      words.back() = arith::OrIOp::create(
          b, words.back(), arith::ShLIOp::create(b, half, constI32(b, 16)).getResult());
  }
  return words;
}

} // namespace

Int32 fp4::emitIndex(AffineExpr expression, Int32 at) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return Int32(at.builder(), constant.getValue());
  if (!binary)
    return at;
  Int32 x = emitIndex(binary.getLHS(), at), y = emitIndex(binary.getRHS(), at);
  switch (expression.getKind()) {
  case AffineExprKind::Mul:
    return x * y;
  case AffineExprKind::FloorDiv: // no dividend is negative
    return x / y;
  case AffineExprKind::Mod:
    return x % y;
  default:
    return x + y;
  }
}

Int32 fp4::firstColumn(AffineExpr column, const ChunkWindow &window, Int32 number) {
  return emitIndex(column, number * kChunk + window.lane);
}

Value fp4::inLaneOrder(ImplicitLocOpBuilder &b, Value elements, const ChunkWindow &window) {
  return vector::ShuffleOp::create(b, elements, elements, window.lanes);
}

SmallVector<Value> fp4::loadIndexed(RowTeam &team, Value row, const IndexedRow &of,
                                    const RowTeam::Chunk &chunk) {
  ImplicitLocOpBuilder &b = team.builder();
  std::optional<ChunkWindow> window = windowOf(team, of);
  if (!window)
    return loadAlone(team, row, of, chunk);
  Int32 number = chunk.number;
  if (chunk.exists)
    number = minimum(number, Int32(b, team.columns() / kChunk - 1));
  Value from = address(b, row, firstColumn(of.column, *window, number), of.bytes);
  int64_t all = window->span * of.bytes, unit = std::gcd(of.unit, kAccessBytes);
  int64_t access = std::gcd(std::gcd(window->alignment * of.bytes, all), unit);
  return loadWords(b, from, all / 4, access);
}

Value fp4::elementsOf(RowTeam &team, ValueRange words, Type element, const IndexedRow &of) {
  ImplicitLocOpBuilder &b = team.builder();
  auto bits = VectorType::get(int64_t(words.size()), b.getI32Type());
  Value vector = vector::FromElementsOp::create(b, bits, words);
  auto type = VectorType::get(int64_t(words.size()) * 4 / of.bytes, element);
  vector = vector::BitCastOp::create(b, type, vector);
  std::optional<ChunkWindow> window = windowOf(team, of);
  return window ? inLaneOrder(b, vector, *window) : vector;
}
