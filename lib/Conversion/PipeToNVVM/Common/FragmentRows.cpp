//===- FragmentRows.cpp - Rows of tiles in registers ----------------------===//
//
// A thread of a fragment has elements of two rows, 8 apart: elements 0 and 1 of every four are of
// the upper one. The four threads of a row are neighbours in their warp. A thread of lanes has one
// row, whole.
//
//===----------------------------------------------------------------------===//
#include "Common/Fragments.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Elements that a thread has of 8 columns, of which two are of one row.
constexpr int64_t kTileElements = 4, kRowsOfThread = 2;

int64_t rowOfElement(int64_t element) { return element / 2 % kRowsOfThread; }

bool areLanes(Value tile) {
  return pipe::distributionOf(tile.getType()).getKind() == pipe::FragmentKind::Lanes;
}

struct LowerWrite : PipePattern<pipe::WriteOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::WriteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getFragmentType())
      return rewriter.notifyMatchFailure(op, "writes tensor memory");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType tile = op.getValue().getType();
    int64_t ofColumn = tile.getDimSize(1) / pipe::vectorOfThread(tile).getNumElements();
    int64_t byte = int64_t(*op.getFirst()) / ofColumn * 4;
    SmallVector<Value> elements = scalarsOf(b, adaptor.getValue());
    if (areLanes(op.getValue()) ||
        op.getComplete()) // LLVM would sink arithmetic behind later reads of tensor memory
      elements = finishHere(b, b.getLoc(), elements);
    storeElements(b, offsetPointer(b, b.getLoc(), adaptor.getDest(), byte), elements);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerReduceRows : PipePattern<pipe::ReduceRowsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReduceRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    if (areLanes(op.getResult())) {
      rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, ofLanes(b, op, adaptor));
      return success();
    }
    SmallVector<Value> results(size_t(type.getNumElements()));
    bool isWhole = pipe::areRowNumbers(op.getResult().getType());
    for (auto [i, element] : llvm::enumerate(scalarsOf(b, adaptor.getValue()))) {
      Value &result = results[isWhole ? rowOfElement(int64_t(i)) : int64_t(i) % kTileElements];
      result = result ? combine(b, op.getCombination(), result, element) : element;
    }
    for (int64_t distance : {2, 1})
      for (Value &result : results)
        if (isWhole)
          result = combine(b, op.getCombination(), result, valueOfPartner(b, result, distance));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, results);
    return success();
  }

private:
  /// Elements of a row in eight chains, which do not wait for one another. Sums are pairs of
  /// chains, which one instruction adds to, and end here: LLVM would add behind the waits that
  /// follow.
  static SmallVector<Value> ofLanes(ImplicitLocOpBuilder &b, pipe::ReduceRowsOp op,
                                    OpAdaptor adaptor) {
    size_t chains = hw::fragmentTileColumns;
    bool areSums = op.getCombination() == pipe::RowCombination::Add;
    SmallVector<Value> elements = scalarsOf(b, adaptor.getValue());
    if (areSums) {
      elements = pairsOf(b, elements);
      chains /= 2;
    }
    SmallVector<Value> results(chains);
    for (auto [i, element] : llvm::enumerate(elements)) {
      Value &result = results[i % chains];
      result = result ? combine(b, op.getCombination(), result, element) : element;
    }
    if (op.getResult().getType().getDimSize(1) > 1)
      return areSums ? elementsOfPairs(b, results) : results;
    for (size_t half = chains / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        results[i] = combine(b, op.getCombination(), results[i], results[i + half]);
    if (!areSums)
      return {results.front()};
    SmallVector<Value> both = scalarsOf(b, results.front());
    return finishHere(b, b.getLoc(), combine(b, op.getCombination(), both[0], both[1]));
  }

  static SmallVector<Value> pairsOf(ImplicitLocOpBuilder &b, ArrayRef<Value> elements) {
    auto type = VectorType::get(2, b.getF32Type());
    SmallVector<Value> pairs;
    for (size_t i = 0; i < elements.size(); i += 2)
      pairs.push_back(vector::FromElementsOp::create(b, type, elements.slice(i, 2)));
    return pairs;
  }
  static SmallVector<Value> elementsOfPairs(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs) {
    SmallVector<Value> elements;
    for (Value pair : pairs)
      llvm::append_range(elements, scalarsOf(b, pair));
    return elements;
  }

  static Value combine(ImplicitLocOpBuilder &b, pipe::RowCombination combination, Value x,
                       Value y) {
    switch (combination) {
    case pipe::RowCombination::Add:
      return arith::AddFOp::create(b, x, y);
    case pipe::RowCombination::Maximum:
      return arith::MaximumFOp::create(b, x, y);
    }
    llvm_unreachable("every combination has its operation");
  }
};

struct LowerBroadcastRows : PipePattern<pipe::BroadcastRowsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::BroadcastRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> rows = scalarsOf(b, adaptor.getValue()), elements;
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    bool isWhole = pipe::areRowNumbers(op.getResult().getType()), isOne = areLanes(op.getValue());
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back(rows[isOne ? 0 : isWhole ? i : rowOfElement(i)]);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

struct LowerElementIndex : PipePattern<pipe::ElementIndexOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ElementIndexOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    if (areLanes(op.getResult())) {
      rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, ofLanes(b, op));
      return success();
    }
    bool isWhole = pipe::areRowNumbers(op.getResult().getType());
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = rowOfThread(thread), column = thread % 4 * 2;
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      int64_t half = isWhole ? i : rowOfElement(i);
      int64_t behind = i / kTileElements * int64_t(hw::fragmentTileColumns) + i % 2;
      elements.push_back(op.getDimension() == 0 ? row + half * 8 : column + behind);
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }

private:
  SmallVector<Value> ofLanes(ImplicitLocOpBuilder &b, pipe::ElementIndexOp op) const {
    SmallVector<Value> elements;
    Value row = accumulatorLane(b, b.getLoc(), state);
    for (int64_t i = 0; i < pipe::vectorOfThread(op.getResult().getType()).getNumElements(); ++i)
      elements.push_back(op.getDimension() == 0 ? row : constI32(b, i));
    return elements;
  }
};

/// Lowers operations with the flag `afn` to the instruction. PTX: ex2.approx.ftz.f32,
/// lg2.approx.ftz.f32, rcp.approx.ftz.f32.
template <typename OpT> struct LowerApproximate : OpConversionPattern<OpT> {
  using Instruction = Value (*)(ImplicitLocOpBuilder &, Value);

  LowerApproximate(const TypeConverter &converter, MLIRContext *context, PatternBenefit benefit,
                   Instruction instruction)
      : OpConversionPattern<OpT>(converter, context, benefit), instruction(instruction) {}

  LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isApproximate(op))
      return rewriter.notifyMatchFailure(op, "is no approximation of a vector of f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = scalarsOf(b, adaptor.getOperands().back());
    for (Value &element : elements)
      element = instruction(b, element);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, cast<VectorType>(op.getType()),
                                                        elements);
    return success();
  }

  Instruction instruction;
};

} // namespace

bool fp4::isApproximate(Operation *op) {
  auto type = dyn_cast<VectorType>(op->getResult(0).getType());
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  bool isFunction = !isa<arith::DivFOp>(op) || matchPattern(op->getOperand(0), m_OneFloat());
  return type && type.getRank() == 1 && type.getElementType().isF32() && flags && isFunction &&
         bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn);
}

void fp4::populateFragmentRowPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                      const KernelState &state) {
  constexpr unsigned beforeUpstream = 2;
  patterns.add<LowerWrite, LowerReduceRows, LowerBroadcastRows, LowerElementIndex>(
      converter, patterns.getContext(), state);
  MLIRContext *context = patterns.getContext();
  auto approximateReciprocal = [](ImplicitLocOpBuilder &b, Value number) -> Value {
    return NVVM::RcpApproxFtzF32Op::create(b, b.getF32Type(), number);
  };
  patterns.add<LowerApproximate<math::Exp2Op>>(converter, context, beforeUpstream, approximateExp2);
  patterns.add<LowerApproximate<math::Log2Op>>(converter, context, beforeUpstream, approximateLog2);
  patterns.add<LowerApproximate<arith::DivFOp>>(converter, context, beforeUpstream,
                                                approximateReciprocal);
}
