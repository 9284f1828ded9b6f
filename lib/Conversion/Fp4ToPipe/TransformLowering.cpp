//===- TransformLowering.cpp - Quantizers that transform on tensor cores --===//
//
// Host side of TransformKernel.cpp. Unsupported cases are errors at the operation that name the
// alternative. The others become result buffers, kernel arguments and a launch.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "RolePlans.h"
#include "TransformKernel.h"

#include "fp4/Conversion/BufferTypes.h"
#include "fp4/Conversion/KernelChoice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

static InFlightDiagnostic noKernel(QuantizeOp op, const Twine &what, const Twine &found) {
  InFlightDiagnostic diag = op.emitOpError() << "with a transform on the tensor core must have "
                                             << what << ", but got " << found;
  diag.attachNote() << "give the transform 'arithmetic = butterfly'";
  return diag;
}

LogicalResult fp4::checkTransform(QuantizeOp op, const hw::TargetModel &target) {
  if (Status status = hw::requireFeature(target, &hw::TargetModel::hasTcgen05, "tcgen05");
      !status) {
    InFlightDiagnostic diag = op.emitOpError(status.error().message);
    diag.attachNote() << status.error().note;
    diag.attachNote() << "or give the transform 'arithmetic = butterfly'";
    return diag;
  }
  if (op.getOutputs() != Outputs::Columnwise)
    return noKernel(op, "outputs columnwise", stringifyOutputs(op.getOutputs()));
  if (op.getFormat() != Format::NVFP4)
    return noKernel(op, "format nvfp4", stringifyFormat(op.getFormat()));
  if (op.hasSquareBlocks())
    return noKernel(op, "blocks of one row", "block [16, 16]");
  if (op.getGroups())
    return noKernel(op, "one matrix", "groups");
  if (op.getPerRow())
    return noKernel(op, "one amax", "per_row");
  if (int64_t size = op.getColumnwiseHadamard()->getSize(); size != TransformShape::kBlock)
    return noKernel(op, "size 16", Twine(size));
  auto type = cast<RankedTensorType>(op.getInput().getType());
  // A row of X is what a tensor map steps by.
  if (int64_t columns = type.getDimSize(1); columns % 8 || columns == 0)
    return noKernel(op, "columns of the input a positive multiple of 8", Twine(columns));
  if (int64_t rows = type.getDimSize(0); ShapedType::isDynamic(rows) || rows == 0)
    return noKernel(op, "a static, positive number of rows", rows ? Twine("?") : Twine(0));
  return success();
}

static int64_t residentBlocks(const hw::TargetModel &target) {
  return TransformShape::kResidentBlocks * target.multiprocessors;
}

static TransformShape transformShape(QuantizeOp op, const hw::TargetModel &target) {
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
  shape.stripTiles = chooseStripTiles(shape.tilesM(), shape.tilesK(), residentBlocks(target));
  return shape;
}

namespace {
struct TransformLowering : OpConversionPattern<QuantizeOp> {
  TransformLowering(const TypeConverter &converter, MLIRContext *context,
                    const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(QuantizeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    TransformShape shape = transformShape(op, target);
    auto allocate = [&](Value result) {
      auto type = deviceBufferType(cast<RankedTensorType>(result.getType()));
      return gpu::AllocOp::create(rewriter, loc, type, Type(), ValueRange(), ValueRange(),
                                  ValueRange())
          .getMemref();
    };
    Value codes = allocate(op.getData()), scales = allocate(op.getScales());
    gpu::GPUModuleOp kernels =
        createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "transform");
    pipe::RolePlanAttr roles = tensorMemoryRoles(rewriter.getContext());
    gpu::GPUFuncOp kernel = buildTransformKernel(kernels, shape, roles, loc);

    auto view = [&](Type type, Value buffer) -> Value {
      return pipe::GlobalViewOp::create(rewriter, loc, type, buffer);
    };
    SmallVector<Value> arguments = {pipe::MakeTensorMapOp::create(
        rewriter, loc, shape.mapX(), adaptor.getInput(), rewriter.getI64IntegerAttr(shape.k))};
    if (shape.hasAmax)
      arguments.push_back(view(shape.amax(), adaptor.getAmax()));
    if (shape.stochastic)
      arguments.push_back(view(shape.rng(), adaptor.getRng()));
    arguments.append({view(shape.codes(), codes), view(shape.scales(), scales)});

    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value one = constant(1);
    Value blocks = constant(std::min(shape.strips(), residentBlocks(target)));
    gpu::LaunchFuncOp::create(rewriter, loc, kernel, gpu::KernelDim3{blocks, one, one},
                              gpu::KernelDim3{constant(roles.getNumThreads()), one, one},
                              /*dynamicSharedMemorySize=*/Value(), arguments);
    rewriter.replaceOp(op, {codes, scales});
    return success();
  }

private:
  const hw::TargetModel &target;
};
} // namespace

void fp4::populateTransformPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const hw::TargetModel &target) {
  patterns.add<TransformLowering>(converter, patterns.getContext(), target);
}
