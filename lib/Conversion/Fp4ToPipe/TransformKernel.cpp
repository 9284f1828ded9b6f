//===- TransformKernel.cpp - Hadamard transform and quantization in one ---===//
//
// Quantizers that transform on the tensor core. Per tile of 64 rows (m) and 128 columns (k) of X:
// load, multiply the transpose of every 16 rows by the Hadamard matrix, and quantize. The
// accumulator has a row per column of X and four blocks of 16 consecutive m in it, so that an
// epilogue thread has whole blocks of a row of Q: no exchange, 32 contiguous bytes of codes and
// four scales. CTAs of the grid take strips of tiles along m, so that what a CTA writes next
// follows what it wrote.
//
// Rows and columns beyond X load as zero; their results are not stored, or are padding.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "TileBuilder.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Plans/KernelPlans.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// A columnwise, transformed fp4.quantize of X[M,K], and its plan. The output is Q[K,M], and the
/// transform runs along M.
struct Transform {
  Transform(QuantizeOp op, const KernelPlan &plan)
      : op(op), plan(plan), m(op.getInput().getType().getDimSize(0)),
        k(op.getInput().getType().getDimSize(1)), tileM(plan.tile[0]), tileK(plan.tile[1]) {}

  QuantizeOp op;
  const KernelPlan &plan;
  int64_t m, k;         ///< rows and columns of X
  int64_t tileM, tileK; ///< rows and columns of a tile of X

  /// Elements that one scale covers, and that one transform does.
  static constexpr int64_t kBlock = 16;

  RankedTensorType scales() { return cast<RankedTensorType>(op.getScales().getType()); }
  int64_t tilesM() const { return int64_t(llvm::divideCeil(m, tileM)); }
  int64_t tilesK() const { return int64_t(llvm::divideCeil(k, tileK)); }
  int64_t stripsOfColumn() const { return int64_t(llvm::divideCeil(tilesM(), *plan.strip)); }
  int64_t strips() const { return tilesK() * stripsOfColumn(); }
};

/// Arguments of the kernel; null where it has none.
struct TransformArguments {
  Value x, amax, rng, codes, scales;

  /// Visits the arguments in their order, with their types.
  void forEach(Transform &transform, llvm::function_ref<void(Value &argument, Type type)> visit) {
    Builder b(transform.op.getContext());
    int64_t m = transform.m, k = transform.k;
    // A box is as wide as the swizzle; a tile is two of them.
    visit(x, TensorMapType::get({transform.tileM, transform.tileK / 2}, b.getBF16Type(),
                                Layout::Swizzle128B));
    if (transform.op.getAmax())
      visit(amax, GlobalType::get({}, b.getF32Type()));
    if (transform.op.getRounding() == Rounding::Stochastic)
      visit(rng, GlobalType::get({2}, b.getI64Type()));
    visit(codes, GlobalType::get({k, m}, b.getType<Float4E2M1FNType>()));
    visit(scales, // whole scale blocks are transformed
          GlobalType::get({k, m / Transform::kBlock}, transform.scales().getElementType(),
                          scaleLayout(transform.scales()) ? Layout::Tiled128x4 : Layout::Linear));
  }
};

class TransformBuilder {
public:
  TransformBuilder(gpu::GPUFuncOp func, Transform &transform)
      : b(func, transform.plan, transform.op.getLoc()), transform(transform) {
    unsigned number = 0;
    args.forEach(transform, [&](Value &argument, Type) { argument = func.getArgument(number++); });
  }
  void build();

private:
  void buildStrip(Value tileK, Value strip);
  void buildTile(Value row, Value column);
  void buildEpilogue(Value acc, Value row, Value column);

  TileBuilder b;
  Transform &transform;
  TransformArguments args;
  Value amax, hadamard;
};
} // namespace

void TransformBuilder::build() {
  if (args.amax)
    amax = LoadEntryOp::create(b, b.getF32Type(), args.amax);
  auto type = SharedType::get({kDenseMmaK, kDenseMmaK}, b.getBF16Type(), Layout::Swizzle32B);
  auto signs = b.getI64IntegerAttr(transform.op.getColumnwiseHadamard()->getSignMask());
  hadamard = HadamardMatrixOp::create(b, type, signs, Value()).getResult();
  // Consecutive strips, which run at the same time, read the same rows of X.
  b.forEachWork(b.constant(transform.tilesK()), b.constant(transform.stripsOfColumn()),
                [&](Value tileK, Value strip, Value) { buildStrip(tileK, strip); });
  gpu::ReturnOp::create(b);
}

void TransformBuilder::buildStrip(Value tileK, Value strip) {
  int64_t tiles = *transform.plan.strip;
  Value column = b.mul(tileK, transform.tileK), first = b.mul(strip, tiles);
  Value count = b.existing(first, tiles, transform.tilesM());
  b.loop(b.constant(0), count ? count : b.constant(tiles), b.constant(1),
         [&](Value i) { buildTile(b.mul(b.add(first, i), transform.tileM), column); });
}

void TransformBuilder::buildTile(Value row, Value column) {
  auto tileType =
      SharedType::get({transform.tileM, transform.tileK}, b.getBF16Type(), Layout::Swizzle128B);
  Value tile = LoadOp::create(b, tileType, args.x, row, column, /*existing=*/Value()).getResult();
  auto accType = TmemType::get({kMmaM, transform.tileM}, b.getF32Type());
  Value acc = AccumulatorOp::create(b, accType);
  MmaOp::create(b, acc, tile, hadamard);
  buildEpilogue(acc, row, column);
}

void TransformBuilder::buildEpilogue(Value acc, Value row, Value column) {
  QuantizeOp op = transform.op;
  auto type = DistributionAttr::tensorOf(FragmentKind::Lanes, transform.tileM, b.getF32Type());
  Value sums = ReadOp::create(b, type, acc, b.constant(0));
  RankedTensorType elements = type.clone(b.getBF16Type());
  Value values = arith::TruncFOp::create(b, elements, sums);
  auto [codesType, scalesType] = QuantizeBlocksOp::resultTypes(elements, op.getRecipe());
  // Row and column of Q are column and row of X.
  Value q = args.rng ? column : Value(), p = args.rng ? row : Value();
  DenseI64ArrayAttr matrix;
  if (args.rng)
    matrix = b.getDenseI64ArrayAttr({transform.k, transform.m});
  auto quantized = QuantizeBlocksOp::create(b, codesType, scalesType, values, amax, args.rng, q, p,
                                            matrix, op.getRecipe(), op.getPhilox(),
                                            /*columnwise=*/true, /*resident=*/false,
                                            /*place=*/IntegerAttr());
  StoreOp::create(b, quantized.getCodes(), args.codes, column, row, Value());
  Value block = arith::ShRUIOp::create(b, row, b.constant(4));
  StoreOp::create(b, quantized.getScales(), args.scales, column, block, Value());
}

/// The kernel of the sequential form. The plan says which roles execute it and which schedule
/// shares out its strips.
static gpu::GPUFuncOp buildTransformKernel(gpu::GPUModuleOp module, Transform &transform) {
  SmallVector<Type> types;
  TransformArguments().forEach(transform, [&](Value &, Type type) { types.push_back(type); });
  gpu::GPUFuncOp func = createKernel(module, types, transform.plan, transform.op.getLoc());
  declareCtasPerSm(func, *transform.plan.ctasPerSm);
  TransformBuilder(func, transform).build();
  return func;
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

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
    Transform transform(op, *plan);
    Location loc = op.getLoc();
    auto allocate = [&](Value result) -> Value {
      return allocateBuffer(rewriter, loc, cast<RankedTensorType>(result.getType()),
                            /*rows=*/Value());
    };
    TransformArguments buffers{adaptor.getInput(), adaptor.getAmax(), adaptor.getRng(),
                               allocate(op.getData()), allocate(op.getScales())};
    gpu::GPUFuncOp kernel = buildTransformKernel(
        createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "transform"), transform);
    if (stridedRowsOf(op.getInput()) == op.getInput()) // rows of a batch, from a copy
      buffers.x = stridedBuffer(rewriter, loc, op.getInput());
    SmallVector<Value> arguments;
    buffers.forEach(transform, [&](Value &buffer, Type type) {
      arguments.push_back(
          isa<TensorMapType>(type)
              ? Value(MakeTensorMapOp::create(rewriter, loc, type, buffer,
                                              /*dynamic_columns=*/Value(),
                                              rewriter.getI64IntegerAttr(transform.k)))
              : Value(ViewOp::create(rewriter, loc, type, buffer)));
    });
    launchPersistent(rewriter, loc, kernel, *plan, transform.strips(), target, arguments);
    rewriter.replaceOp(op, {buffers.codes, buffers.scales});
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
