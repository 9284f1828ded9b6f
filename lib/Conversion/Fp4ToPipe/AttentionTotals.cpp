//===- AttentionTotals.cpp - Two numbers of each query --------------------===//
//
// Kernels of gradients add one number to the exponents of powers, minus the logarithm of the row's
// sum in base 2, and subtract another one from products, the sum of output times gradient. Both
// follow one another by query, head by head, so that tiles have them as rows or as columns. Rows
// behind the last query, and those of queries that see no key, get minus infinity and zero, with
// which all their powers are zero.
//
// A thread adds up eight products, and the threads of a row add theirs by halves, neighbours first.
//
//===----------------------------------------------------------------------===//
#include "AttentionBackward.h"
#include "ItemLaunch.h"

#include "SmallBuilders.h"

#include "fp4/Numerics/AttentionBackward.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numbers>

using namespace mlir;
using namespace fp4;

/// Elements of a thread, and threads of a row of 64 elements.
static constexpr int64_t kElements = int64_t(numerics::kBackwardElements), kPanelThreads = 8;

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
    Int32 query = row % backward.paddedQueries(), list = row / backward.paddedQueries();
    Int32 last(b, backward.op.getQueryTokens() - 1);
    int64_t heads = backward.op.getHeads();
    Int32 token = list / heads * backward.op.getQueryTokens() + minimum(query, last);
    Int32 source = token * heads + list % heads;
    Value total = sumOfParts(partOf(source, part));
    Value exponent =
        exponentOf(load(b, b.getF32Type(), address(b, kernel.pointer(2), source, 4), 4),
                   query < backward.op.getQueryTokens());
    kernel.when(part < 1, [&] {
      store(b, exponent, address(b, kernel.pointer(3), row, 4), 4);
      store(b, total, address(b, kernel.pointer(3), row + backward.numbers(), 4), 4);
    });
  }

private:
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

Value fp4::findTotals(RewriterBase &rewriter, AttentionBackward &backward, Value output,
                      Value gradient, Value logSums) {
  Location loc = backward.op.getLoc();
  Type f32 = rewriter.getF32Type();
  SmallVector<Type> types;
  SmallVector<Value> inputs;
  for (Value buffer : {output, gradient, logSums}) {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t count = type.getNumElements();
    types.push_back(pipe::GlobalType::get({count}, type.getElementType()));
    inputs.push_back(pipe::ViewOp::create(rewriter, loc,
                                          MemRefType::get({count}, type.getElementType()), buffer));
  }
  types.push_back(pipe::GlobalType::get({2 * backward.numbers()}, f32));
  ItemKernel kernel(rewriter, backward.op, "totals", types);
  TotalsKernel(kernel, backward).build();
  int64_t items = backward.numbers() * threadsOfRow(backward);
  Value ctas = arith::ConstantIndexOp::create(rewriter, loc, items / kItemThreads);
  return launchItems(rewriter, loc, kernel.finish(), inputs, ctas);
}
