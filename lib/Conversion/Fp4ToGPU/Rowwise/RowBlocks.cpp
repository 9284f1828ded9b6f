//===- RowBlocks.cpp - The blocks of a row-major matrix in memory ---------===//
#include "Rowwise/RowBlocks.h"

#include "InlinePtx.h"
#include "Int32.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

/// The widest access, in bytes: one instruction on sm_100a, two on sm_90a.
static constexpr int64_t kAccessBytes = 32;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

SmallVector<Value> fp4::loadWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count,
                                  int64_t accessBytes, Value policy) {
  int64_t perLoad = std::min(count, accessBytes / 4);
  auto type = VectorType::get(perLoad, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t first = 0; first < count; first += perLoad) {
    Value from = advance(b, pointer, first * 4);
    if (policy && perLoad == 4) {
      llvm::append_range(words, loadUnder(b, policy, from));
      continue;
    }
    Value data = fp4::load(b, type, from, perLoad * 4);
    for (int64_t lane = 0; lane < perLoad; ++lane)
      words.push_back(vector::ExtractOp::create(b, data, lane));
  }
  return words;
}

void fp4::storeValues(ImplicitLocOpBuilder &b, ArrayRef<Value> values, Value pointer) {
  Type element = values.front().getType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t perStore = std::min<int64_t>(values.size(), kAccessBytes / bytes);
  auto type = VectorType::get(perStore, element);
  for (int64_t first = 0; first < static_cast<int64_t>(values.size()); first += perStore) {
    Value data = vector::FromElementsOp::create(b, type, values.slice(first, perStore));
    store(b, data, advance(b, pointer, first * bytes), perStore * bytes);
  }
}

/// Words that nobody reads soon, in stores of two or four.
static void storeWordsOnce(ImplicitLocOpBuilder &b, ArrayRef<Value> words, Value pointer) {
  for (size_t first = 0; first < words.size(); first += 4)
    storeOnce(b, words.slice(first, std::min<size_t>(4, words.size() - first)),
              advance(b, pointer, 4 * first));
}

void RowBlocks::when(Value first, Value second, llvm::function_ref<void()> then) {
  Value condition = first && second ? arith::AndIOp::create(b, first, second).getResult()
                    : first         ? first
                                    : second;
  if (!condition)
    return then();
  emitWhen(b, condition, then);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

RowBlocks::RowBlocks(ImplicitLocOpBuilder &builder, Shape shape, Value rows,
                     std::optional<Columns> columns)
    : b(builder), shape(shape), rows(rows), dynamic(columns) {}

int64_t RowBlocks::countPerRow(const Shape &shape) {
  int64_t blocks = llvm::divideCeil(shape.columns, shape.blockSize);
  return shape.tiledScales ? llvm::alignTo(blocks, shape.tileBlocks) : blocks;
}

Value RowBlocks::countPerRow(ImplicitLocOpBuilder &host, const Shape &shape, Value columns) {
  if (!shape.isDynamic())
    return constIndex(host, countPerRow(shape));
  int64_t blocks = shape.tiledScales ? shape.tileBlocks : 1;
  Value unit = constIndex(host, blocks * shape.blockSize);
  return arith::MulIOp::create(host, arith::CeilDivUIOp::create(host, columns, unit),
                               constIndex(host, blocks));
}

Value RowBlocks::count(ImplicitLocOpBuilder &host, const Shape &shape, Value rows, Value columns) {
  if (shape.tiledScales) {
    Value tile = constIndex(host, hw::scaleBlockRows);
    rows = arith::MulIOp::create(host, arith::CeilDivUIOp::create(host, rows, tile), tile);
  }
  return arith::MulIOp::create(host, rows, countPerRow(host, shape, columns));
}

Value RowBlocks::count() {
  if (dynamic)
    return dynamic->count;
  Value all = rows;
  if (shape.paddedRows) {
    constexpr int64_t mask = hw::scaleBlockRows - 1;
    all = arith::AddIOp::create(b, all, constI32(b, mask));
    all = arith::AndIOp::create(b, all, constI32(b, ~mask));
  }
  return arith::MulIOp::create(b, all, constI32(b, countPerRow(shape)));
}

bool RowBlocks::needsRows() const {
  bool isDense =
      shape.isDynamic() || (shape.isWhole() && blocksPerRow() * codeBytes() == codePitch());
  return shape.tiledScales || shape.namesRows || shape.strided || !isDense;
}

static Value isLess(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
}

static Value atMost(ImplicitLocOpBuilder &b, Value x, Value count) {
  Value last = arith::SubIOp::create(b, count, constI32(b, 1));
  return arith::MinUIOp::create(b, x, last);
}

RowBlocks::Position RowBlocks::position(Value index, bool isGuarded) {
  Position at;
  at.index = index;
  if (isGuarded) {
    at.isMine = isLess(b, index, count());
    at.index = atMost(b, index, count());
  }
  if (!needsRows())
    return at;
  if (dynamic) {
    Int32 block(b, at.index), row = dynamic->perRow.quotient(block);
    at.row = at.paddedRow = row;
    at.column = at.paddedColumn = block - row * dynamic->perRow.divisor();
  } else {
    Value perRow = constI32(b, countPerRow(shape));
    at.row = at.paddedRow = arith::DivUIOp::create(b, at.index, perRow);
    at.column = at.paddedColumn = arith::RemUIOp::create(b, at.index, perRow);
  }
  if (shape.paddedRows) {
    at.isMatrix = isLess(b, at.paddedRow, rows);
    at.row = atMost(b, at.paddedRow, rows);
  }
  if (numbersPadding()) {
    Value blocks = dynamic ? Value(dynamic->blocks) : constI32(b, blocksPerRow());
    Value isColumn = isLess(b, at.paddedColumn, blocks);
    at.isMatrix =
        at.isMatrix ? arith::AndIOp::create(b, at.isMatrix, isColumn).getResult() : isColumn;
    at.column = atMost(b, at.paddedColumn, blocks);
  }
  return at;
}

Value RowBlocks::isResidue(const Position &at) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at.column,
                               constI32(b, blocksPerRow() - 1));
}

/// Address of a block in a matrix whose rows have `rowBytes`; `isDense`: blocks follow each other.
Value RowBlocks::place(Value base, const Position &at, int64_t rowBytes, int64_t bytes,
                       bool isDense) {
  if (dynamic)
    return address(b, base, denseIndex(at), bytes);
  bool isCounted = !numbersPadding() && !shape.paddedRows;
  if (!at.row || (isDense && isCounted))
    return address(b, base, at.index, bytes);
  return address(b, address(b, base, at.row, rowBytes), at.column, bytes);
}

Value RowBlocks::denseIndex(const Position &at) {
  if (!numbersPadding() && !shape.paddedRows)
    return at.index;
  return Int32(b, at.row) * dynamic->blocks + Int32(b, at.column);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Adds what one load brought (a vector of i32, or an i16) to the words of the block.
void RowBlocks::appendWords(SmallVector<Value> &words, Value chunk) {
  if (auto vector = dyn_cast<VectorType>(chunk.getType())) {
    for (int64_t lane = 0; lane < vector.getNumElements(); ++lane)
      words.push_back(vector::ExtractOp::create(b, chunk, lane));
    return;
  }
  Value wide = arith::ExtUIOp::create(b, b.getI32Type(), chunk);
  if (!half) {
    half = wide;
    return;
  }
  Value upper = arith::ShLIOp::create(b, wide, constI32(b, 16));
  words.push_back(arith::OrIOp::create(b, half, upper));
  half = Value();
}

Value RowBlocks::elementPlace(Value base, const Position &at) {
  return place(base, at, shape.columns * shape.elementBytes, blockBytes(), shape.isWhole());
}

/// Rows of the caller begin at multiples of 16 bytes.
int64_t RowBlocks::accessBytes() const { return shape.strided ? 16 : kAccessBytes; }

/// A power of two that divides a row divides its last block too.
int64_t RowBlocks::chunkBytes() const {
  return std::gcd(shape.columns * shape.elementBytes, accessBytes());
}

Value RowBlocks::elementsAt(const InputRows &input, const Position &at) {
  return shape.strided ? address(b, input.at(b, at.row), at.column, blockBytes())
                       : elementPlace(input.base, at);
}

SmallVector<Value> RowBlocks::load(const InputRows &input, const Position &at) {
  Value start = elementsAt(input, at);
  if (shape.isWhole() && shape.usedOnce) {
    SmallVector<Value> words;
    for (int64_t byte = 0; byte < blockBytes(); byte += 16)
      llvm::append_range(words, loadOnce(b, advance(b, start, byte)));
    return words;
  }
  if (shape.isWhole())
    return loadWords(b, start, blockBytes() / 4, accessBytes());
  int64_t chunk = chunkBytes();
  Type type = b.getI16Type();
  if (chunk >= 4)
    type = VectorType::get(chunk / 4, b.getI32Type());
  Value isLast = isResidue(at), zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> words;
  for (int64_t byte = 0; byte < blockBytes(); byte += chunk) {
    Value pointer = advance(b, start, byte);
    bool mayMiss = byte >= residueElements() * shape.elementBytes;
    if (mayMiss)
      pointer = arith::SelectOp::create(b, isLast, start, pointer);
    Value data = fp4::load(b, type, pointer, chunk);
    if (mayMiss)
      data = arith::SelectOp::create(b, isLast, zero, data);
    appendWords(words, data);
  }
  return words;
}

RowBlocks::Position RowBlocks::inFirstRow(const Position &at) {
  Position first = at;
  first.index = at.column;
  first.row = first.paddedRow = constI32(b, 0);
  return first;
}

void RowBlocks::clearBehindRow(MutableArrayRef<Value> words, const Position &at) {
  clearResidue(words, 4 / shape.elementBytes, at);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Makes what is behind the end of a row zero in words of `perWord` values.
void RowBlocks::clearResidue(MutableArrayRef<Value> words, int64_t perWord, const Position &at) {
  for (auto [number, word] : llvm::enumerate(words)) {
    int64_t valid = std::clamp<int64_t>(residueElements() - perWord * int64_t(number), 0, perWord);
    if (valid == perWord)
      continue;
    Value mask = constI32(b, (int64_t(1) << (32 / perWord * valid)) - 1);
    Value masked = arith::AndIOp::create(b, word, mask);
    word = arith::SelectOp::create(b, isResidue(at), masked, word);
  }
}

void RowBlocks::storeCodes(Value base, const Position &at, ArrayRef<Value> codes) {
  SmallVector<Value> words(codes);
  clearResidue(words, 32 / shape.codeBits, at);
  when(at.isMine, at.isMatrix, [&] {
    Value place = codePlace(base, at);
    shape.usedOnce ? storeWordsOnce(b, words, place) : storeValues(b, words, place);
  });
}

/// Packed codes have rows of whole units of TMA; others are as dense as the logical tensor.
int64_t RowBlocks::codePitch() const {
  return shape.codeBits == 4 ? hw::paddedRowBytes(shape.columns) : shape.columns;
}

Value RowBlocks::codePlace(Value base, const Position &at) {
  return place(base, at, codePitch(), codeBytes(), blocksPerRow() * codeBytes() == codePitch());
}

Value RowBlocks::tiledPlace(Value base, const Position &at) {
  Int32 row(b, at.paddedRow), block(b, at.paddedColumn);
  Int32 tileRow = row / hw::scaleBlockRows, tileColumn = block / hw::scaleBlockColumns;
  Int32 tile = dynamic ? hw::scaleBlockIndex(tileRow, tileColumn, dynamic->tiles)
                       : hw::scaleBlockIndex(tileRow, tileColumn,
                                             countPerRow(shape) / hw::scaleBlockColumns);
  return address(b, address(b, base, tile, hw::scaleBlockBytes),
                 hw::scaleOffsetInBlock(row, block), 1);
}

void RowBlocks::storeScale(Value base, const Position &at, Value scale) {
  if (at.isMatrix) {
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(scale.getType(), 0));
    scale = arith::SelectOp::create(b, at.isMatrix, scale, zero);
  }
  when(at.isMine, Value(), [&] { store(b, scale, scalePlace(base, at), 1); });
}

Value RowBlocks::scalePlace(Value base, const Position &at) {
  return shape.tiledScales ? tiledPlace(base, at) : address(b, base, at.index, 1);
}

//===----------------------------------------------------------------------===//
// The other way
//===----------------------------------------------------------------------===//

SmallVector<Value> RowBlocks::loadCodes(Value base, const Position &at) {
  return loadWords(b, codePlace(base, at), codeBytes() / 4, kAccessBytes);
}

Value RowBlocks::loadScale(Value base, const Position &at) {
  return fp4::load(b, b.getI8Type(), scalePlace(base, at), 1);
}

void RowBlocks::storeElements(Value base, const Position &at, ArrayRef<Value> elements) {
  Value start = elementPlace(base, at);
  if (shape.isWhole())
    return when(at.isMine, at.isMatrix, [&] { storeValues(b, elements, start); });
  int64_t perChunk = chunkBytes() / shape.elementBytes;
  Value isInner = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, at.column,
                                        constI32(b, blocksPerRow() - 1));
  for (int64_t first = 0; first < shape.blockSize; first += perChunk) {
    Value pointer = advance(b, start, first * shape.elementBytes);
    when(at.isMine, first < residueElements() ? Value() : isInner,
         [&] { storeValues(b, elements.slice(first, perChunk), pointer); });
  }
}
