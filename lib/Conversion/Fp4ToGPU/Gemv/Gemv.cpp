//===- Gemv.cpp - Small M without a tensor core ---------------------------===//
//
// A warp computes the dot products of all rows of the lhs with four rows of the rhs that are 32
// apart, whose scales lie in 16 bytes (fp4/ISA/ScaleLayout.h). Lane l takes the chunks l, l + 32,
// .. of 32 elements, so that a warp reads 512 bytes of a row at once. The lane adds block after
// block: the sum of the products of a block is exact, and a fused multiply-add puts it to the sum
// of the lane. The lanes are added in pairs, 16 apart, 8, 4, 2, 1. The order of the sums is that of
// fp4/Numerics (FmaGemm.cpp), whatever the number of threads. The codes and scales of the next
// chunk, or of the next two, are loaded before those of this one, or of these, are multiplied.
// A warp of a dual GEMM multiplies the same rows of both rhs in turn.
//
//===----------------------------------------------------------------------===//
#include "DotOperands.h"
#include "ElementwiseEmitter.h"
#include "InlinePtx.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kRowsOfWarp = hw::scaleBlockRows / hw::scaleUnitRowStep;
constexpr int64_t kRowStep = hw::scaleUnitRowStep;
constexpr int64_t kLanes = numerics::fmaLanes, kChunk = numerics::fmaChunk;
/// Words of codes in a chunk of a row, and bytes of its codes.
constexpr int64_t kWords = kChunk / 8, kBytes = kChunk / 2;
/// Registers of a thread that two chunks at a time need.
constexpr int64_t kRegistersOfTwo = 104;

/// Chunks that a lane loads at a time, for as many bytes in flight as memory needs: many warps need
/// one each, and fewer warps two.
int64_t chunksTogether(const LoweringContext &context) {
  int64_t threads = *context.plan.threads * context.plan.ctasPerSm.value_or(1);
  return context.target.limits.registersPerSM / threads < kRegistersOfTwo ? 1 : 2;
}

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class GemvKernel {
public:
  GemvKernel(BlockScaledMatmulOp op, LoweringContext &context);
  void lower();

private:
  using Values = SmallVector<Value>;
  /// The rhs of a GEMM, its scales, and its alpha or null.
  struct Weights {
    Value rhs, scales, alpha;
  };
  /// The places from which a warp reads: its rows of the rhs, its unit of their scales, and the
  /// group's lhs.
  struct Place {
    Values rhs, lhs; ///< pointers to rows
    Value rhsScales, lhsScales;
  };

  void multiplyRows(Value item);
  Values sumsOfGemms(Int32 group, Int32 row);
  Place findPlace(const Weights &ofGemm, Int32 group, Int32 row);
  Values sumChunks(const Place &place);
  Values loadRhs(const Place &place, Value chunk);
  Values loadTogether(const Place &place, Int32 chunk, int64_t count);
  Values addTogether(const Place &place, Int32 chunk, int64_t count, ValueRange words, Values sums);
  Values addChunk(const Place &place, Int32 chunk, ValueRange rhs, ValueRange sums);
  void addBlock(int64_t block, ArrayRef<Values> rhs, ArrayRef<Values> lhs, Values &sums);
  Values codes(Value row, Int32 chunk, bool isReadOnce);
  Int32 scaleTile(Value chunk) { return Int32(b, chunk) / (kTileBlocks / blocksOfChunk()); }
  Values factorsOf(Value word, Int32 chunk);
  Values lhsFactorsOf(Value word, Int32 chunk);
  Value reduce(Value sum);
  Value sumOfLane(ValueRange sums);
  void storeElement(Int32 group, Int32 row, Values sums);
  Value element(Values sums, Value row, Value column, Value group);
  Value number(Value pointer, RankedTensorType type, Value row, Value column);

  static constexpr int64_t kTileBlocks = hw::scaleBlockColumns;
  int64_t blocksOfChunk() const { return kChunk / block; }
  int64_t chunks() const { return llvm::divideCeil(depth, kChunk); }
  int64_t chunksOfLane() const { return llvm::divideCeil(chunks(), kLanes); }
  bool isWrittenOut() const { return rows == 1; }
  int64_t tiles() const { return llvm::divideCeil(depth / block, kTileBlocks); }

  BlockScaledMatmulOp op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  int64_t groups, rows, columns, depth, block, atATime;
  std::unique_ptr<DotOperands> operands;
  SmallVector<Weights, 2> weights; ///< of each GEMM
  Value lhs, lhsScales, result, lane;
  Values inputs;
};

} // namespace

GemvKernel::GemvKernel(BlockScaledMatmulOp op, LoweringContext &context)
    : op(op), kernel(op, "dots", context), b(kernel.body()), s(b, context.target),
      groups(op.getNumGroups()), rows(typeOf(op.getLhs()).getDimSize(0) / groups),
      columns(op.getColumns()), depth(typeOf(op.getLhs()).getDimSize(1)),
      block(blockSize(op.getFormat())),
      atATime(isWrittenOut() ? std::min(chunksTogether(context), chunksOfLane())
                             : chunksTogether(context)),
      operands(DotOperands::create(
          b, s, isa<Float8E4M3FNType>(typeOf(op.getLhsScales()).getElementType()))) {
  lhs = kernel.input(op.getLhs());
  lhsScales = kernel.input(op.getLhsScales());
  auto add = [&](Value rhs, Value scales, Value alpha) {
    weights.push_back({kernel.input(rhs), kernel.input(scales), {}});
    if (alpha)
      weights.back().alpha = kernel.input(alpha);
  };
  add(op.getRhs(), op.getRhsScales(), op.getAlpha());
  if (op.isDual())
    add(op.getRhs2(), op.getRhs2Scales(), op.getAlpha2());
  for (Value input : op.getEpilogueInputs())
    inputs.push_back(kernel.input(input));
  result = kernel.output(op.getResult(), /*rows=*/Value());
}

void GemvKernel::lower() {
  int64_t items = groups * llvm::divideCeil(columns, hw::scaleBlockRows) * kRowStep;
  int64_t warps = kernel.numThreads() / kLanes;
  Int32 thread(b, kernel.globalThread());
  lane = thread % kLanes;
  Value step = Int32(b, kernel.gridThreads()) / kLanes;
  kernel.forEachItem(thread / kLanes, constI32(b, items), step, {}, [&](Value item, ValueRange) {
    multiplyRows(item);
    return Values();
  });
  kernel.launch(constIndex(kernel.host(), llvm::divideCeil(items, warps)));
}

/// Consecutive warps have consecutive rows of a block of 128.
void GemvKernel::multiplyRows(Value item) {
  int64_t items = llvm::divideCeil(columns, hw::scaleBlockRows) * kRowStep;
  Int32 group = Int32(b, item) / items, unit = Int32(b, item) % items;
  Int32 row = unit / kRowStep * hw::scaleBlockRows + unit % kRowStep;
  storeElement(group, row, sumsOfGemms(group, row));
}

/// The sum of this lane in each GEMM. Two are turns of a loop: next to each other, LLVM would keep
/// the lhs of the first for the second, for which there are no registers.
GemvKernel::Values GemvKernel::sumsOfGemms(Int32 group, Int32 row) {
  auto sumOf = [&](const Weights &ofGemm) -> Value {
    Values sums = sumChunks(findPlace(ofGemm, group, row));
    for (Value &sum : sums)
      sum = reduce(sum);
    return sumOfLane(sums);
  };
  if (!op.isDual())
    return {sumOf(weights.front())};
  Values none(2, s.constant(0));
  return Values(kernel.forEachItem(
      constI32(b, 0), constI32(b, 2), constI32(b, 1), none, [&](Value turn, ValueRange before) {
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, turn, constI32(b, 0));
        auto choose = [&](Value Weights::*field) -> Value {
          return arith::SelectOp::create(b, isFirst, weights[0].*field, weights[1].*field);
        };
        return Values{before[1], sumOf({choose(&Weights::rhs), choose(&Weights::scales), {}})};
      }));
}

/// Rows that do not exist are the last one.
GemvKernel::Place GemvKernel::findPlace(const Weights &ofGemm, Int32 group, Int32 row) {
  int64_t pitch = hw::paddedRowBytes(depth);
  Place place;
  for (int64_t i = 0; i < kRowsOfWarp; ++i) {
    Int32 existing = minimum(row + i * kRowStep, Int32(b, columns - 1));
    place.rhs.push_back(address(b, ofGemm.rhs, group * columns + existing, pitch));
  }
  for (int64_t i = 0; i < rows; ++i)
    place.lhs.push_back(address(b, lhs, group * rows + i, pitch));
  int64_t rowBlocks = llvm::divideCeil(columns, hw::scaleBlockRows),
          rowBytes = tiles() * hw::scaleBlockBytes;
  Value first = address(b, ofGemm.scales, group * rowBlocks + row / hw::scaleBlockRows, rowBytes);
  place.rhsScales = address(b, first, row % kRowStep, hw::scaleUnitBytes);
  place.lhsScales = address(b, lhsScales, group, rowBytes);
  return place;
}

/// Loads a chunk: words of codes of each row of the rhs, and the words of the scales of all of
/// them. The loads are emitted here: LLVM would move a load that one iteration leaves to the next
/// into that one.
GemvKernel::Values GemvKernel::loadRhs(const Place &place, Value chunk) {
  Values loaded;
  for (Value row : place.rhs)
    llvm::append_range(loaded, codes(row, Int32(b, chunk), /*isReadOnce=*/true));
  auto unit = VectorType::get(kRowsOfWarp, b.getI32Type());
  Value from = address(b, place.rhsScales, scaleTile(chunk), hw::scaleBlockBytes);
  Values scales = scalarsOf(b, load(b, unit, from, hw::scaleUnitBytes));
  llvm::append_range(loaded, computeHere(b, b.getLoc(), scales));
  return loaded;
}

/// The codes of a chunk; behind the end of the row those before it, which are multiplied by
/// nothing.
GemvKernel::Values GemvKernel::codes(Value row, Int32 chunk, bool isReadOnce) {
  if (depth % kChunk == 0) {
    Value from = address(b, row, chunk, kBytes);
    auto type = VectorType::get(kWords, b.getI32Type());
    return isReadOnce ? loadOnce(b, from) : scalarsOf(b, load(b, type, from, kBytes));
  }
  constexpr int64_t bytes = kBytes / 2; // a row has halves of chunks
  Values words;
  for (int64_t half : {0, 1}) {
    Int32 place = minimum(chunk * 2 + half, Int32(b, depth / 2 / bytes - 1));
    auto type = VectorType::get(bytes / 4, b.getI32Type());
    llvm::append_range(words, scalarsOf(b, load(b, type, address(b, row, place, bytes), bytes)));
  }
  return words;
}

/// The words of `count` chunks of this lane, the first of which is `chunk`; chunks that do not
/// exist are the last one.
GemvKernel::Values GemvKernel::loadTogether(const Place &place, Int32 chunk, int64_t count) {
  Values loaded;
  for (int64_t i = 0; i < count; ++i)
    llvm::append_range(loaded, loadRhs(place, minimum(chunk + i * kLanes, Int32(b, chunks() - 1))));
  return loaded;
}

GemvKernel::Values GemvKernel::addTogether(const Place &place, Int32 chunk, int64_t count,
                                           ValueRange words, Values sums) {
  size_t ofChunk = words.size() / count;
  for (int64_t i = 0; i < count; ++i)
    sums = addChunk(place, chunk + i * kLanes, words.slice(i * ofChunk, ofChunk), sums);
  return sums;
}

/// The sums of this lane, of every row of the lhs with each of the rhs. With one row, the last
/// chunks that are loaded together, and those that are left, are multiplied behind the loop, which
/// would load what does not exist. With more rows that takes more registers than there are.
GemvKernel::Values GemvKernel::sumChunks(const Place &place) {
  size_t count = rows * kRowsOfWarp;
  int64_t step = atATime * kLanes, last = (chunksOfLane() / atATime - 1) * step;
  Values carried(count, s.constant(0));
  llvm::append_range(carried, loadTogether(place, Int32(b, lane), atATime));
  Value end = constI32(b, isWrittenOut() ? last : chunks());
  ValueRange results = kernel.forEachItem(
      lane, end, constI32(b, step), carried, [&](Value number, ValueRange state) {
        Int32 chunk(b, number);
        Values next = loadTogether(place, chunk + step, atATime);
        Values sums = addTogether(place, chunk, atATime, state.drop_front(count),
                                  Values(state.take_front(count)));
        llvm::append_range(sums, next);
        return sums;
      });
  Values sums(results.take_front(count));
  if (!isWrittenOut())
    return sums;
  Int32 chunk = Int32(b, lane) + last;
  int64_t left = chunksOfLane() % atATime;
  Values next = left ? loadTogether(place, chunk + step, left) : Values();
  sums = addTogether(place, chunk, atATime, results.drop_front(count), sums);
  return left ? addTogether(place, chunk + step, left, next, sums) : sums;
}

/// Factors of the blocks of a chunk, of a word with the scales of four.
GemvKernel::Values GemvKernel::factorsOf(Value word, Int32 chunk) {
  int64_t count = blocksOfChunk();
  word = Int32(b, word).shiftRight(chunk % (kTileBlocks / count) * (8 * count));
  return operands->factors(word, count);
}

/// `sums` with the products of a chunk. Blocks that do not exist have factors of zero.
GemvKernel::Values GemvKernel::addChunk(const Place &place, Int32 chunk, ValueRange loaded,
                                        ValueRange before) {
  Values rhsWords(loaded.drop_back(kRowsOfWarp)), rhsFactors;
  Values sums(before), lhsWords, lhsFactors;
  for (Value word : loaded.take_back(kRowsOfWarp))
    llvm::append_range(rhsFactors, factorsOf(word, chunk));
  Int32 existing = minimum(chunk, Int32(b, chunks() - 1));
  for (auto [i, row] : llvm::enumerate(place.lhs)) {
    llvm::append_range(lhsWords, codes(row, existing, /*isReadOnce=*/false));
    Value tile = address(b, place.lhsScales, scaleTile(existing), hw::scaleBlockBytes);
    Value word = load(b, b.getI32Type(), advance(b, tile, i * hw::scaleUnitBytes), 4);
    llvm::append_range(lhsFactors, lhsFactorsOf(word, chunk));
  }
  for (int64_t i = 0; i < blocksOfChunk(); ++i)
    addBlock(i, {rhsWords, rhsFactors}, {lhsWords, lhsFactors}, sums);
  return sums;
}

/// Factors of a chunk of the lhs, divided by the factor by which sums are too large; zero for
/// blocks that do not exist.
GemvKernel::Values GemvKernel::lhsFactorsOf(Value word, Int32 chunk) {
  int64_t together = blocksOfChunk() * kLanes * (isWrittenOut() ? 1 : atATime);
  int64_t blocks = depth / block;
  float inverse = 1 / operands->sumFactor();
  Values factors = factorsOf(word, chunk);
  for (auto [i, factor] : llvm::enumerate(factors)) {
    if (inverse != 1)
      factor = s.multiply(factor, s.constant(inverse));
    if (blocks % together == 0)
      continue;
    Value exists = chunk * blocksOfChunk() + i < blocks;
    factor = arith::SelectOp::create(b, exists, factor, s.constant(0));
  }
  return factors;
}

/// Block `number` of a chunk. `rhs` and `lhs` have the words of all rows and the factors.
void GemvKernel::addBlock(int64_t number, ArrayRef<Values> rhs, ArrayRef<Values> lhs,
                          Values &sums) {
  int64_t blocks = blocksOfChunk(), words = kWords / blocks;
  auto wordsOf = [&](const Values &all, int64_t row) {
    return ArrayRef(all).slice(row * kWords + number * words, words);
  };
  SmallVector<Values> weights;
  for (int64_t row = 0; row < kRowsOfWarp; ++row)
    weights.push_back(operands->rhsBlock(wordsOf(rhs[0], row)));
  for (int64_t i = 0; i < rows; ++i) {
    DotOperands::LhsBlock block = operands->lhsBlock(wordsOf(lhs[0], i));
    for (int64_t row = 0; row < kRowsOfWarp; ++row) {
      Value scaled = s.multiply(operands->sum(block, weights[row]), lhs[1][i * blocks + number]);
      Value &total = sums[i * kRowsOfWarp + row];
      total = LLVM::FMAOp::create(b, b.getF32Type(), scaled, rhs[1][row * blocks + number], total);
    }
  }
}

Value GemvKernel::reduce(Value sum) {
  for (int64_t stride = kLanes / 2; stride > 0; stride /= 2)
    sum = s.add(sum, valueOfPartner(b, sum, stride));
  return sum;
}

//===----------------------------------------------------------------------===//
// The element of the result
//===----------------------------------------------------------------------===//

/// Lane i has the product of row i / 4 of the lhs with row i % 4 of the warp.
Value GemvKernel::sumOfLane(ValueRange sums) {
  Value sum = sums.front();
  for (auto [i, other] : llvm::enumerate(sums.drop_front()))
    sum = arith::SelectOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, constI32(b, i + 1)), other,
        sum);
  return sum;
}

void GemvKernel::storeElement(Int32 group, Int32 row, Values sums) {
  Int32 number(b, lane);
  Int32 column = row + number % kRowsOfWarp * kRowStep;
  Value exists = arith::AndIOp::create(b, number < rows * kRowsOfWarp, column < columns);
  emitWhen(b, exists, [&] {
    Int32 resultRow = group * rows + number / kRowsOfWarp;
    RankedTensorType type = typeOf(op.getResult());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    Value start = address(b, result, resultRow, columns * bytes);
    store(b, element(std::move(sums), resultRow, column, group), address(b, start, column, bytes),
          bytes);
  });
}

static bool isOfGroups(Value input) { return typeOf(input).getRank() == 3; }

/// The number of a scalar, of a row or column, of both, or of a group.
Value GemvKernel::number(Value pointer, RankedTensorType type, Value row, Value column) {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  bool isMatrix = type.getRank() >= 2; // a tensor of groups has one for each
  if (isMatrix && type.getDimSize(0) != 1)
    pointer = address(b, pointer, row, type.getShape().back() * bytes);
  if (isMatrix && type.getShape().back() != 1)
    pointer = address(b, pointer, column, bytes);
  return load(b, type.getElementType(), pointer, bytes);
}

/// Makes an element of the sum of each GEMM; epilogue regions and steps are those of every matmul.
Value GemvKernel::element(Values sums, Value row, Value column, Value group) {
  Type resultType = typeOf(op.getResult()).getElementType();
  auto vectorOf = [&](Value number) -> Value {
    return vector::BroadcastOp::create(b, VectorType::get({1}, number.getType()), number);
  };
  for (auto [sum, ofGemm] : llvm::zip_equal(sums, weights)) {
    if (!ofGemm.alpha)
      continue;
    RankedTensorType type = typeOf(op.getAlpha()); // that of both
    Value pointer = type.getRank() == 1 ? address(b, ofGemm.alpha, group, 4) : ofGemm.alpha;
    sum = s.multiply(sum, number(pointer, type, row, column));
  }
  if (auto epilogue = op.getEpilogue())
    for ([[maybe_unused]] numerics::EpilogueOp step : epilogue->getSteps()) {
      assert(step == numerics::EpilogueOp::Relu && "every step has its operation");
      sums[0] = arith::MaximumFOp::create(b, sums[0], s.constant(0));
    }
  Values arguments = llvm::map_to_vector(sums, vectorOf);
  Value value = arguments.front();
  if (!op.getEpilogueBody().empty()) {
    for (auto [pointer, input] : llvm::zip_equal(inputs, op.getEpilogueInputs()))
      arguments.push_back(widenToF32(
          b, vectorOf(number(pointer, typeOf(input), isOfGroups(input) ? group : row, column))));
    value = emitElementwise(b, op.getEpilogueBody().front(), arguments).front();
  }
  value = vector::ExtractOp::create(b, narrowTo(b, value, resultType), 0);
  if (resultType.getIntOrFloatBitWidth() == 8) // memory has bytes
    value = arith::BitcastOp::create(b, b.getI8Type(), value);
  return value;
}

LogicalResult fp4::lowerGemv(BlockScaledMatmulOp op, LoweringContext &context) {
  GemvKernel(op, context).lower();
  return success();
}
