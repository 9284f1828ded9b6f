//===- TransformLowering.cpp - Quantizers that transform on tensor cores --===//
//
// Host side of TransformKernel.cpp: result buffers, kernel arguments and a launch.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "TransformKernel.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

static TransformShape transformShape(QuantizeOp op, const KernelPlan &plan) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  auto scales = cast<RankedTensorType>(op.getScales().getType());
  TransformShape shape;
  shape.m = input.getDimSize(0);
  shape.k = input.getDimSize(1);
  shape.signs = op.getColumnwiseHadamard()->getSignMask();
  shape.recipe = op.getRecipe();
  shape.scaleType = scales.getElementType();
  shape.tiledScales = scaleLayout(scales).has_value();
  shape.hasAmax = bool(op.getAmax());
  shape.stochastic = op.getRounding() == Rounding::Stochastic;
  shape.philox = op.getPhilox();
  shape.tileM = plan.tile[0];
  shape.tileK = plan.tile[1];
  shape.stripTiles = *plan.strip;
  shape.resident = *plan.ctasPerSm;
  return shape;
}

namespace {
struct TransformLowering : OpConversionPattern<QuantizeOp> {
  TransformLowering(const TypeConverter &converter, MLIRContext *context,
                    const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<KernelPlan> plan = planOf(op, target);
    if (failed(plan))
      return failure();
    TransformShape shape = transformShape(op, *plan);
    Value codes = allocate(rewriter, op.getData()), scales = allocate(rewriter, op.getScales());
    gpu::GPUModuleOp kernels =
        createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "transform");
    auto roles = cast<pipe::RolePlanAttr>(plan->roles);
    gpu::GPUFuncOp kernel = buildTransformKernel(kernels, shape, *plan, op.getLoc());

    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, op.getLoc(), value);
    };
    Value rows = adaptor.getInput(); // rows of a batch, from a copy
    if (stridedRowsOf(op.getInput()) == op.getInput())
      rows = stridedBuffer(rewriter, op.getLoc(), op.getInput());
    SmallVector<Value> arguments =
        kernelArguments(rewriter, op.getLoc(), shape, adaptor, rows, codes, scales);
    Value one = constant(1);
    Value blocks = constant(std::min<int64_t>(shape.strips(), shape.resident * target.sms));
    gpu::LaunchFuncOp::create(rewriter, op.getLoc(), kernel, gpu::KernelDim3{blocks, one, one},
                              gpu::KernelDim3{constant(roles.getNumThreads()), one, one},
                              /*dynamicSharedMemorySize=*/Value(), arguments);
    rewriter.replaceOp(op, {codes, scales});
    return success();
  }

private:
  static Value allocate(OpBuilder &b, Value result) {
    auto type = deviceBufferType(cast<RankedTensorType>(result.getType()));
    return gpu::AllocOp::create(b, result.getLoc(), type, Type(), ValueRange(), ValueRange(),
                                ValueRange())
        .getMemref();
  }

  static SmallVector<Value> kernelArguments(OpBuilder &b, Location loc, const TransformShape &shape,
                                            OpAdaptor adaptor, Value rows, Value codes,
                                            Value scales) {
    auto view = [&](Type type, Value buffer) -> Value {
      return pipe::GlobalViewOp::create(b, loc, type, buffer);
    };
    SmallVector<Value> arguments = {
        pipe::MakeTensorMapOp::create(b, loc, shape.mapX(), rows, b.getI64IntegerAttr(shape.k))};
    if (shape.hasAmax)
      arguments.push_back(view(shape.amax(), adaptor.getAmax()));
    if (shape.stochastic)
      arguments.push_back(view(shape.rng(), adaptor.getRng()));
    arguments.append({view(shape.codes(), codes), view(shape.scales(), scales)});
    return arguments;
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateTransformPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const hw::TargetModel &target) {
  patterns.add<TransformLowering>(converter, patterns.getContext(), target);
}
