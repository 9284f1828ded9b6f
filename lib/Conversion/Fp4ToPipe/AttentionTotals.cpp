//===- AttentionTotals.cpp - Two numbers of each query --------------------===//
//
// Kernels of gradients add one number to the exponents of powers, minus the logarithm of the row's
// sum in base 2, and subtract another one from products, the sum of output times gradient. Both
// follow one another by query, head by head, so that tiles have them as rows or as columns. Rows
// behind the last query, and those of queries that see no key, get minus infinity and zero, with
// which all their powers are zero. Numbers of packed queries have such rows behind each sequence
// (rowsBehind), whose place threads find among the offsets.
//
// A thread adds up eight products, and the threads of a row add theirs by halves, neighbours first.
//
//===----------------------------------------------------------------------===//
#include "AttentionBackward.h"
#include "ItemLaunch.h"

#include "SmallBuilders.h"

#include "fp4/Numerics/AttentionBackward.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numbers>

using namespace mlir;
using namespace fp4;

/// Elements of a thread, and threads of a row of 64 elements.
static constexpr int64_t kElements = int64_t(numerics::kBackwardElements), kPanelThreads = 8;
/// Numbers of a row of their buffer, of which a head of packed queries has a multiple.
static constexpr int64_t kRowNumbers = 64;

int64_t AttentionBackward::paddedQueries() const {
  AttentionBackwardOp backward = op;
  auto tokens = uint64_t(backward.getQueryTokens());
  uint64_t end =
      std::max(llvm::alignTo(tokens, uint64_t(rows)), llvm::alignTo(tokens, uint64_t(queries)));
  return int64_t(llvm::alignTo(end, uint64_t(kItemThreads / kPanelThreads)));
}

/// Threads of a row, some of which may have no elements of it.
static int64_t threadsOfRow(AttentionBackward &backward) {
  return int64_t(llvm::PowerOf2Ceil(uint64_t(backward.op.getValueElements() / kElements)));
}

namespace {
class TotalsKernel {
public:
  TotalsKernel(ItemKernel &kernel, AttentionBackward &backward)
      : kernel(kernel), b(kernel.b), backward(backward),
        parts(backward.op.getValueElements() / kElements), threads(threadsOfRow(backward)) {}

  void build() {
    Int32 item = kernel.item(), row = item / threads, part = item % threads;
    if (backward.isPacked())
      return buildPacked(row, part);
    Int32 query = row % backward.paddedQueries(), list = row / backward.paddedQueries();
    Int32 last(b, backward.op.getQueryTokens() - 1);
    int64_t heads = backward.op.getHeads();
    Int32 token = list / heads * backward.op.getQueryTokens() + minimum(query, last);
    write({token * heads + list % heads, query < backward.op.getQueryTokens()}, row, part,
          Int32(b, backward.numbers()));
  }

private:
  /// A row of the output and its gradient, and whether it is a query's (i1).
  struct Source {
    Int32 row;
    Value exists;
  };

  /// Numbers of packed queries, so many of each head.
  void buildPacked(Int32 row, Int32 part) {
    kernel.number(); // rows of the buffer
    Int32 tokens(b, kernel.number()), padded(b, kernel.number());
    int64_t heads = backward.op.getHeads();
    Source token = tokenAt(row % padded, tokens);
    write({minimum(token.row, tokens - 1) * heads + row / padded, token.exists}, row, part,
          padded * heads);
  }

  /// The token whose numbers are at `place`, if there is one: of the last sequence that begins
  /// there or before.
  Source tokenAt(Int32 place, Int32 tokens) {
    int64_t batches = backward.op.getBatches();
    constexpr int64_t unit = AttentionBackward::kPlaceUnit;
    auto offsetOf = [&](Int32 sequence) -> Int32 {
      Value number = load(b, b.getI32Type(), address(b, kernel.pointer(3), sequence, 4), 4);
      number = arith::MaxSIOp::create(b, number, Int32(b, int64_t(0)));
      return {b, arith::MinSIOp::create(b, number, tokens)};
    };
    auto placeOf = [&](Int32 sequence) -> Int32 {
      return offsetOf(sequence) / unit * unit + sequence * backward.rowsBehind();
    };
    Int32 found(b, int64_t(0)), end(b, batches);
    for (auto step = int64_t(llvm::bit_floor(uint64_t(batches))); step > 0; step /= 2) {
      Int32 later = minimum(found + step, end);
      found = select(place < placeOf(later), found, later);
    }
    Int32 token = offsetOf(found) + (place - placeOf(found));
    return {token, token < offsetOf(minimum(found + 1, end))};
  }

  /// Writes both numbers of a row, of which there are `ofKind` each. Rows behind a packed sequence
  /// are those of another one, whose numbers may be none.
  void write(const Source &source, Int32 row, Int32 part, Int32 ofKind) {
    Value total = sumOfParts(partOf(source.row, part));
    if (backward.isPacked())
      total = arith::SelectOp::create(b, source.exists, total, constF32(b, 0));
    Value exponent = exponentOf(
        load(b, b.getF32Type(), address(b, kernel.pointer(2), source.row, 4), 4), source.exists);
    Value result = kernel.pointer(backward.isPacked() ? 4 : 3);
    kernel.when(part < 1, [&] {
      store(b, exponent, address(b, result, row, 4), 4);
      store(b, total, address(b, result, row + ofKind, 4), 4);
    });
  }

  /// The sum of the products of a thread.
  Value partOf(Int32 source, Int32 part) {
    auto type = VectorType::get(kElements, backward.element());
    auto numbers = VectorType::get(kElements, b.getF32Type());
    Int32 place = source * parts + minimum(part, Int32(b, parts - 1));
    Value output = load(b, type, address(b, kernel.pointer(0), place, 2 * kElements), 16),
          gradient = load(b, type, address(b, kernel.pointer(1), place, 2 * kElements), 16);
    output = arith::ExtFOp::create(b, numbers, output);
    gradient = arith::ExtFOp::create(b, numbers, gradient);
    Value sum = constF32(b, 0);
    for (int64_t i = 0; i < kElements; ++i)
      sum = math::FmaOp::create(b, vector::ExtractOp::create(b, gradient, i),
                                vector::ExtractOp::create(b, output, i), sum);
    if (parts == threads)
      return sum;
    return arith::SelectOp::create(b, part < parts, sum, constF32(b, 0));
  }

  Value sumOfParts(Value sum) {
    for (int64_t distance = 1; distance < threads; distance *= 2)
      sum = arith::AddFOp::create(b, sum, valueOfPartner(b, sum, distance));
    return sum;
  }

  /// -logSum / ln(2), or minus infinity for a query that is not there or sees no key.
  Value exponentOf(Value logSum, Value exists) {
    Value none = constF32(b, -std::numeric_limits<float>::infinity());
    Value log2e = constF32(b, std::numbers::log2e_v<float>);
    Value exponent = arith::NegFOp::create(b, arith::MulFOp::create(b, logSum, log2e));
    Value isSum = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, logSum, none);
    Value isThere = arith::AndIOp::create(b, isSum, exists);
    return arith::SelectOp::create(b, isThere, exponent, none);
  }

  ItemKernel &kernel;
  ImplicitLocOpBuilder &b;
  AttentionBackward &backward;
  int64_t parts, threads; ///< of a row
};
} // namespace

/// The numbers of a head of packed queries of `tokens` tokens.
static Value countNumbers(OpBuilder &b, AttentionBackward &backward, Value tokens) {
  Location loc = backward.op.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value behind = index((backward.op.getBatches() + 1) * backward.rowsBehind());
  Value all = arith::AddIOp::create(b, loc, tokens, behind);
  return arith::MulIOp::create(b, loc, arith::CeilDivUIOp::create(b, loc, all, index(kRowNumbers)),
                               index(kRowNumbers));
}

/// A buffer as the matrix of its tokens, and of what each of them has.
static std::pair<pipe::GlobalType, Value> matrixOf(OpBuilder &b, Location loc, Value buffer,
                                                   int64_t rowDimensions, Value tokens) {
  auto type = cast<MemRefType>(buffer.getType());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t columns = ShapedType::getNumElements(shape.drop_front(size_t(rowDimensions)));
  int64_t rows = tokens ? ShapedType::kDynamic
                        : ShapedType::getNumElements(shape.take_front(size_t(rowDimensions)));
  Value view = pipe::ViewOp::create(b, loc, MemRefType::get({rows, columns}, type.getElementType()),
                                    buffer, /*offset=*/0, tokens);
  return {pipe::GlobalType::get({rows, columns}, type.getElementType()), view};
}

Totals fp4::findTotals(RewriterBase &rewriter, AttentionBackward &backward, Value output,
                       Value gradient, Value logSums, Value offsets) {
  Location loc = backward.op.getLoc();
  bool isPacked = backward.isPacked();
  Value tokens = isPacked ? Value(memref::DimOp::create(rewriter, loc, output, 0)) : Value();
  SmallVector<Type> types;
  SmallVector<Value> inputs;
  for (Value buffer : {output, gradient, logSums}) {
    auto [type, view] = matrixOf(rewriter, loc, buffer, isPacked ? 1 : 2, tokens);
    types.push_back(type);
    inputs.push_back(view);
  }
  Type f32 = rewriter.getF32Type();
  if (!isPacked) {
    types.push_back(pipe::GlobalType::get({2 * backward.numbers()}, f32));
    ItemKernel kernel(rewriter, backward.op, "totals", types);
    TotalsKernel(kernel, backward).build();
    int64_t items = backward.numbers() * threadsOfRow(backward);
    Value ctas = arith::ConstantIndexOp::create(rewriter, loc, items / kItemThreads);
    return {launchItems(rewriter, loc, kernel.finish(), inputs, ctas), Value()};
  }
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  types.append({pipe::GlobalType::get({backward.op.getBatches() + 1}, rewriter.getI32Type()),
                pipe::GlobalType::get({ShapedType::kDynamic, kRowNumbers}, f32)});
  inputs.push_back(offsets);
  types.append(3, rewriter.getI32Type());
  ItemKernel kernel(rewriter, backward.op, "totals", types);
  TotalsKernel(kernel, backward).build();
  Value padded = countNumbers(rewriter, backward, tokens);
  Value numbers = arith::MulIOp::create(rewriter, loc, padded, index(backward.op.getHeads()));
  Value rows = arith::DivUIOp::create(rewriter, loc, numbers, index(kRowNumbers / 2));
  Value ctas = blocksOfRows(rewriter, loc, numbers, threadsOfRow(backward));
  return {launchItems(rewriter, loc, kernel.finish(), inputs, ctas, {rows}, /*dependents=*/{},
                      {tokens, padded}),
          padded};
}
