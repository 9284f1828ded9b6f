//===- AttentionBackwardHost.cpp - Launches for gradients of attention ----===//

#include "AttentionBackward.h"
#include "Lowering.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
struct BackwardLowering : OpConversionPattern<AttentionBackwardOp> {
  BackwardLowering(const TypeConverter &converter, MLIRContext *context,
                   const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(AttentionBackwardOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<KernelPlan> plan = planOf(op, target);
    if (failed(plan))
      return failure();
    AttentionBackward backward(op, *plan);
    SmallVector<Value> results;
    for (Value result : op.getResults())
      results.push_back(allocateBuffer(rewriter, op.getLoc(),
                                       cast<RankedTensorType>(result.getType()), /*rows=*/Value()));
    Value totals = findTotals(rewriter, backward, adaptor.getOutput(), adaptor.getOutputGradient(),
                              adaptor.getLse());
    std::array<Value, 2> queries = {adaptor.getQuery(), adaptor.getOutputGradient()},
                         keys = {adaptor.getKey(), adaptor.getValue()};
    ValueRange ofKeys = ValueRange(results).drop_front();
    if (backward.sumsTogether()) {
      launch(rewriter, backward, {"keys", true, true, true}, keys, queries, totals, ofKeys);
    } else {
      launch(rewriter, backward, {"values", true, false, true}, keys, queries, totals,
             ofKeys.back());
      launch(rewriter, backward, {"keys", true, true, false}, keys, queries, totals,
             ofKeys.front());
    }
    launch(rewriter, backward, {"queries", false, true, false}, queries, keys, totals,
           results.front());
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// Launches a kernel whose tiles are of `own` and whose blocks are of `others`.
  void launch(ConversionPatternRewriter &b, AttentionBackward &backward,
              const BackwardKernel &which, ArrayRef<Value> own, ArrayRef<Value> others,
              Value totals, ValueRange results) const {
    Location loc = backward.op.getLoc();
    bool isOfKeys = which.isOfKeys;
    BackwardSide side(backward, isOfKeys), other(backward, !isOfKeys);
    SmallVector<Value> arguments;
    for (auto [tokens, rows] : {std::pair(own, backward.rows), std::pair(others, other.block)})
      for (Value buffer : tokens)
        arguments.push_back(mapOf(b, backward, buffer, rows));
    int64_t numbers = 2 * backward.numbers();
    arguments.push_back(isOfKeys ? globalOf(b, loc, totals, {1, numbers})
                                 : globalOf(b, loc, totals, {numbers, 1}));
    for (Value result : results) {
      ArrayRef<int64_t> shape = cast<MemRefType>(result.getType()).getShape();
      arguments.push_back(globalOf(b, loc, result, {shape[0] * shape[1], shape[2] * shape[3]}));
    }
    gpu::GPUModuleOp kernels =
        createKernelModule(b, backward.op->getParentOfType<ModuleOp>(), backward.op, which.name);
    gpu::GPUFuncOp kernel =
        createKernel(kernels, ValueRange(arguments).getTypes(), backward.plan, loc);
    buildBackward(kernel, backward, which);
    int64_t works = int64_t(llvm::divideCeil(side.tokens, backward.rows)) * side.lists;
    launchPersistent(b, loc, kernel, backward.plan, works, target, arguments);
  }

  /// A map of the tokens of all heads, each sequence a plane: what lies behind its last token loads
  /// as zero.
  static Value mapOf(OpBuilder &b, AttentionBackward &backward, Value buffer, int64_t rows) {
    Location loc = backward.op.getLoc();
    auto type = cast<MemRefType>(buffer.getType());
    ArrayRef<int64_t> shape = type.getShape();
    SmallVector<int64_t> planes = {shape[0], shape[1], shape[2] * shape[3]};
    Value view = ViewOp::create(b, loc, MemRefType::get(planes, type.getElementType()), buffer);
    return MakeTensorMapOp::create(b, loc, boxOfTokens(type.getElementType(), rows, shape[3]), view,
                                   /*dynamic_columns=*/Value(), b.getI64IntegerAttr(planes[2]));
  }

  static Value globalOf(OpBuilder &b, Location loc, Value buffer, ArrayRef<int64_t> shape) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value view = ViewOp::create(b, loc, MemRefType::get(shape, element), buffer);
    return ViewOp::create(b, loc, GlobalType::get(shape, element), view);
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateBackwardPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const hw::TargetModel &target) {
  patterns.add<BackwardLowering>(converter, patterns.getContext(), target);
}
