//===- Fp4ToPipe.cpp - Operations of tensor cores to sequential kernels ---===//
//
// Rewrites every fp4.matmul, and every fp4.quantize that transforms on the tensor core
// (TransformKernel.cpp), into host code that makes the kernel's arguments and launches it, and a
// kernel (GemmKernel.cpp, TransformKernel.cpp) in a gpu.module of its own.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/Fp4ToPipe/Passes.h"

#include "DynamicSizes.h"
#include "GemmArguments.h"
#include "GemmKernel.h"
#include "ItemLaunch.h"
#include "Lowering.h"
#include "OperandKernels.h"
#include "WorkTables.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTFP4TOPIPE
#include "fp4/Conversion/Fp4ToPipe/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

gpu::GPUModuleOp fp4::createKernelModule(RewriterBase &rewriter, ModuleOp module, Operation *op,
                                         StringRef kind) {
  auto func = op->getParentOfType<func::FuncOp>();
  StringRef name = func ? func.getSymName() : StringRef("kernel");
  std::string prefix = (name + "_" + kind + "_").str();
  unsigned n = 0;
  while (module.lookupSymbol(prefix + std::to_string(n)))
    ++n;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(module.getBody());
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), rewriter.getUnitAttr());
  return gpu::GPUModuleOp::create(rewriter, op->getLoc(), prefix + std::to_string(n));
}

void fp4::launchPersistent(OpBuilder &b, Location loc, gpu::GPUFuncOp kernel,
                           const KernelPlan &plan, int64_t works, const hw::TargetModel &target,
                           ValueRange arguments) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value one = constant(1);
  int64_t ctasOfWork = std::max<int64_t>(1, plan.cluster[0]);
  int64_t most = std::max<int64_t>(1, *plan.ctasPerSm * target.sms / ctasOfWork);
  Value ctas = constant(std::min(works, most) * ctasOfWork);
  Value threads = constant(cast<pipe::RolePlanAttr>(plan.roles).getNumThreads());
  gpu::LaunchFuncOp::create(b, loc, kernel, gpu::KernelDim3{ctas, one, one},
                            gpu::KernelDim3{threads, one, one},
                            /*dynamicSharedMemorySize=*/Value(), arguments);
}

namespace {
struct MatmulLowering : OpConversionPattern<BlockScaledMatmulOp> {
  MatmulLowering(const TypeConverter &converter, MLIRContext *context,
                 const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(BlockScaledMatmulOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<std::vector<KernelPlan>> plans = plansOf(op, target);
    if (failed(plans))
      return failure();
    Gemm gemm = gemmOf(op, plans->back(), target);
    const GemmBuffers adaptor = buffersOf(op, rewriter);
    Value rows = rowsOf(rewriter, op, adaptor.lhs);
    if (gemm.problem.dynamicRows() && op.getLhsScales())
      checkScaleRows(rewriter, op, adaptor.lhsScales, rows);
    GemmSizes sizes = sizesOfGemm(rewriter, op, adaptor);
    checkGemmSizes(rewriter, op, adaptor, sizes, gemm);
    SmallVector<Value> results = allocateResults(rewriter, op, gemm, rows, sizes.columns);

    GemmBuffers operands = adaptor;
    if (gemm.spreadsCodes() && gemm.isMXF8F6F4())
      packOperands(rewriter, op, operands, rows, sizes);
    Multiplication product{op, adaptor, operands, rows, sizes, results};
    OpBuilder::InsertionGuard guard(rewriter);
    if (plans->front().waveCost[0])
      multiplyByCost(rewriter, product, *plans);
    else
      multiplyByGuard(rewriter, product, *plans);
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// The buffers of the tensors behind the operands.
  static GemmBuffers buffersOf(BlockScaledMatmulOp op, ConversionPatternRewriter &rewriter) {
    auto bufferOf = [&](Value tensor) {
      return tensor ? rewriter.getRemappedValue(tensor) : Value();
    };
    GemmBuffers buffers;
    buffers.lhs = bufferOf(op.getLhs());
    buffers.lhsScales = bufferOf(op.getLhsScales());
    buffers.rhs = bufferOf(op.getRhs());
    buffers.rhsScales = bufferOf(op.getRhsScales());
    buffers.alpha = bufferOf(op.getAlpha());
    for (Value input : op.getEpilogueInputs())
      buffers.inputs.push_back(bufferOf(input));
    buffers.offsets = bufferOf(op.getOffsets());
    buffers.rhs2 = bufferOf(op.getRhs2());
    buffers.rhs2Scales = bufferOf(op.getRhs2Scales());
    buffers.alpha2 = bufferOf(op.getAlpha2());
    buffers.quantizeAmax = bufferOf(op.getQuantizeAmax());
    return buffers;
  }

  /// A matmul whose results have their buffers.
  struct Multiplication {
    BlockScaledMatmulOp op;
    GemmBuffers adaptor;
    GemmBuffers operands; ///< buffers of `adaptor`, packed
    Value rows;
    GemmSizes sizes;
    SmallVector<Value> results;
  };

  /// Launches the kernel of the plan whose guard the sizes meet. Ranges of rows ascend, so that the
  /// first one that does not end before them is theirs; the last plan holds where no other does.
  void multiplyByGuard(ConversionPatternRewriter &rewriter, const Multiplication &product,
                       ArrayRef<KernelPlan> plans) const {
    Location loc = BlockScaledMatmulOp(product.op).getLoc();
    bool ofRows = llvm::all_of(plans, [](const KernelPlan &plan) { return plan.guard.isOfRows(); });
    for (const KernelPlan &plan : plans.drop_back()) {
      Guard guard = plan.guard;
      if (ofRows)
        guard.m.least = 1;
      Value holds = holdsFor(rewriter, loc, guard, product.rows, product.sizes);
      auto choice = scf::IfOp::create(rewriter, loc, holds, /*withElseRegion=*/true);
      rewriter.setInsertionPoint(choice.thenBlock()->getTerminator());
      multiply(rewriter, product, plan);
      rewriter.setInsertionPoint(choice.elseBlock()->getTerminator());
    }
    multiply(rewriter, product, plans.back());
  }

  /// Returns the predicted cost of `plan`, an index: a fixed part, and a part for each wave of its
  /// tiles. A plan that does not hold costs more than every other.
  Value predictedCost(OpBuilder &b, const Multiplication &product, const KernelPlan &plan) const {
    BlockScaledMatmulOp op = product.op;
    Location loc = op.getLoc();
    Gemm gemm = gemmOf(op, plan, target);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value depth = product.sizes.depth ? product.sizes.depth : constant(gemm.problem.depth);
    Value waves = arith::CeilDivUIOp::create(b, loc, countTiles(b, loc, gemm, product),
                                             constant(mostWorks(gemm, plan)));
    Value kTiles = arith::CeilDivUIOp::create(b, loc, depth, constant(plan.tile[2]));
    auto [once, wave, kTile] = plan.waveCost;
    Value ofWave = arith::AddIOp::create(b, loc, constant(wave),
                                         arith::MulIOp::create(b, loc, kTiles, constant(kTile)));
    Value cost =
        arith::AddIOp::create(b, loc, constant(once), arith::MulIOp::create(b, loc, waves, ofWave));
    Value holds = holdsFor(b, loc, plan.guard, product.rows, product.sizes);
    return holds ? arith::SelectOp::create(b, loc, holds, cost,
                                           constant(std::numeric_limits<int64_t>::max()))
                       .getResult()
                 : cost;
  }

  /// Launches the kernel of the plan that is predicted to cost the least; of equals, that of the
  /// last plan, and then the first.
  void multiplyByCost(ConversionPatternRewriter &rewriter, const Multiplication &product,
                      ArrayRef<KernelPlan> plans) const {
    Location loc = BlockScaledMatmulOp(product.op).getLoc();
    ArrayRef<KernelPlan> others = plans.drop_back();
    SmallVector<Value> costs;
    for (const KernelPlan &plan : others)
      costs.push_back(predictedCost(rewriter, product, plan));
    Value ofLast = predictedCost(rewriter, product, plans.back());
    auto holds = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpIOp::create(rewriter, loc, predicate, x, y);
    };
    for (auto [number, plan] : llvm::enumerate(others)) {
      Value isLeast = holds(arith::CmpIPredicate::ult, costs[number], ofLast);
      for (Value other : ArrayRef(costs).drop_front(number + 1))
        isLeast = arith::AndIOp::create(rewriter, loc, isLeast,
                                        holds(arith::CmpIPredicate::ule, costs[number], other));
      auto choice = scf::IfOp::create(rewriter, loc, isLeast, /*withElseRegion=*/true);
      rewriter.setInsertionPoint(choice.thenBlock()->getTerminator());
      multiply(rewriter, product, plan);
      rewriter.setInsertionPoint(choice.elseBlock()->getTerminator());
    }
    multiply(rewriter, product, plans.back());
  }

  /// Makes the kernel of `plan`, and launches it.
  void multiply(ConversionPatternRewriter &rewriter, const Multiplication &product,
                const KernelPlan &plan) const {
    auto [op, adaptor, operands, rows, sizes, results] = product;
    Location loc = op.getLoc();
    Gemm gemm = gemmOf(op, plan, target);
    auto module = op->getParentOfType<ModuleOp>();
    gpu::GPUModuleOp kernels = createKernelModule(rewriter, module, op, "matmul");
    gpu::GPUFuncOp kernel = buildGemmKernel(kernels, gemm, plan, loc);
    takeStrides(rewriter, op, operands, gemm);
    if (op.hasUnitScales() && gemm.route().lhs() == route::Operand::Pre)
      operands.lhsScales = unitScales(rewriter, op, rows, sizes.depth);
    if (gemm.tiling.splitsColumns() && !gemm.loadsUnitScales())
      halveScalesOfA(rewriter, op, operands, gemm);
    if (gemm.halvesScalesB())
      splitScalesOfB(rewriter, op, operands, gemm);
    Value table =
        gemm.problem.groups ? tableOfGroups(rewriter, op, adaptor.offsets, rows, gemm) : Value();
    if (gemm.route().lhs() == route::Operand::Pre)
      operands.lhs =
          preDequantize(rewriter, op, {adaptor.lhs, operands.lhsScales, table, rows, sizes.depth},
                        gemm, target, launchDependentsBefore(plan));
    Value powers = gemm.route().rhs() == route::Operand::Pre
                       ? convertWeights(rewriter, op, operands, gemm)
                       : Value();
    KernelArguments arguments = gemmArguments(rewriter, loc, gemm, operands, powers,
                                              {rows, sizes.columns, sizes.depth}, results);
    if (gemm.problem.groups)
      addGroups(rewriter, op, table, gemm, arguments);
    launch(rewriter, loc, kernel, gemm, plan, arguments.values(gemm), product);
  }

  static Value rowsOf(OpBuilder &b, BlockScaledMatmulOp op, Value lhs) {
    if (Value argument = stridedRowsOf(op.getLhs()))
      return stridedRows(b, op.getLoc(), argument);
    return logicalRows(b, op.getLoc(), cast<RankedTensorType>(op.getLhs().getType()), lhs);
  }

  /// Data that tensor maps read where the caller of the program has placed its rows. Data that is
  /// converted before, or spread by TMA, which wants pitches of 32 bytes, is read from a copy.
  static void takeStrides(OpBuilder &b, BlockScaledMatmulOp op, GemmBuffers &operands,
                          const Gemm &gemm) {
    auto take = [&](Value tensor, Value &buffer, bool isOfA) {
      if (!isStridedArgument(tensor) || cast<RankedTensorType>(tensor.getType()).getRank() != 2 ||
          pipe::isPadded((isOfA ? gemm.mapA() : gemm.mapB()).getLayout()))
        return;
      buffer = stridedBuffer(b, op.getLoc(), tensor);
    };
    if (gemm.route().lhs() != route::Operand::Pre)
      take(op.getLhs(), operands.lhs, !gemm.swapsOperands());
    if (!op.hasPrepackedRhs())
      take(op.getRhs(), operands.rhs, gemm.swapsOperands());
    if (op.isDual())
      take(op.getRhs2(), operands.rhs2, gemm.swapsOperands());
  }

  /// Data of 6 bits, of which TMA wants four in three bytes.
  static void packOperands(RewriterBase &rewriter, BlockScaledMatmulOp op, GemmBuffers &operands,
                           Value rows, const GemmSizes &sizes) {
    auto pack = [&](Value tensor, Value &buffer, Value size) {
      auto type = tensor ? cast<RankedTensorType>(tensor.getType()) : RankedTensorType();
      if (type && isSixBitElementType(type.getElementType()))
        buffer = packSix(rewriter, op, buffer, type, size, sizes.depth);
    };
    pack(op.getLhs(), operands.lhs, rows);
    pack(op.getRhs(), operands.rhs, sizes.columns);
    pack(op.getRhs2(), operands.rhs2, sizes.columns);
  }

  /// Prepacked weights, of which a kernel makes e4m3 in their place; returns their powers.
  static Value convertWeights(RewriterBase &rewriter, BlockScaledMatmulOp op, GemmBuffers &operands,
                              const Gemm &gemm) {
    ConvertedWeights weights = preDequantizeWeights(rewriter, op, operands.rhs, gemm);
    operands.rhs = weights.elements;
    return weights.powers;
  }

  /// The scales of A, of which each 64 rows get a scale tile.
  static void halveScalesOfA(RewriterBase &rewriter, BlockScaledMatmulOp op, GemmBuffers &operands,
                             const Gemm &gemm) {
    Value &scales = operands.lhsScales;
    if (gemm.problem.groups)
      scales = scalesOfGroups(rewriter, op.getLoc(), gemm, scales, gemm.scaleRowsA());
    scales = halveScales(rewriter, op, scales);
  }

  /// The scales of B, of which each half of a tile gets a scale tile.
  static void splitScalesOfB(RewriterBase &rewriter, BlockScaledMatmulOp op, GemmBuffers &operands,
                             const Gemm &gemm) {
    auto split = [&](Value &scales) {
      if (!scales)
        return;
      if (gemm.problem.groups)
        scales = scalesOfGroups(rewriter, op.getLoc(), gemm, scales,
                                gemm.problem.groups * gemm.problem.alignedColumns());
      scales = splitScales(rewriter, op, scales,
                           {std::max<int64_t>(gemm.problem.groups, 1), gemm.halvesOfGroupB(),
                            gemm.tiling.accumulatorColumns()});
    };
    split(operands.rhsScales);
    split(operands.rhs2Scales);
  }

  static void fillWithZero(OpBuilder &b, Location loc, Value buffer) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    gpu::MemsetOp::create(b, loc, TypeRange(), ValueRange(), buffer, zero);
  }

  /// Scales of a lhs without scales, all of them 1, for kernels that convert it before a GEMM.
  static Value unitScales(OpBuilder &b, BlockScaledMatmulOp op, Value rows, Value depth) {
    Location loc = op.getLoc();
    auto lhs = cast<RankedTensorType>(op.getLhs().getType());
    int64_t block = blockSize(op.getFormat());
    int64_t blocks = lhs.isDynamicDim(1) ? ShapedType::kDynamic : lhs.getDimSize(1) / block;
    auto type = RankedTensorType::get(
        {lhs.getDimSize(0), blocks}, scaleType(b.getContext(), op.getFormat()),
        ScaleLayoutAttr::get(b.getContext(), ScaleLayout::Tiled128x4));
    Value count;
    if (depth)
      count =
          arith::CeilDivUIOp::create(b, loc, depth, arith::ConstantIndexOp::create(b, loc, block));
    Value buffer = allocateBuffer(b, loc, type, type.isDynamicDim(0) ? rows : Value(), count);
    Value one = arith::ConstantIntOp::create(b, loc, numerics::ue8m0One, 8);
    gpu::MemsetOp::create(b, loc, TypeRange(), ValueRange(), buffer, one);
    return buffer;
  }

  /// Rows and columns of the results, of which quantizers have some in the other order.
  static SmallVector<std::pair<Value, Value>> sizesOfResults(OpBuilder &b, BlockScaledMatmulOp op,
                                                             const Gemm &gemm, Value rows,
                                                             Value columns) {
    SmallVector<std::pair<Value, Value>> sizes(op->getNumResults(), {rows, columns});
    if (!columns || !gemm.results.quantizer)
      return sizes;
    auto *next = sizes.begin() + (gemm.results.storesElements ? 1 : 0);
    if (gemm.results.quantizer->rows) {
      Value block = arith::ConstantIndexOp::create(b, op.getLoc(), gemm.results.quantizer->block());
      next[1].second = arith::CeilDivUIOp::create(b, op.getLoc(), columns, block);
      next += 2;
    }
    if (gemm.results.quantizer->columns)
      next[0] = next[1] = {columns, Value()};
    return sizes;
  }

  /// Buffers of all results, those of them zero that the kernel does not write as a whole: rows of
  /// no group, what an amax begins with, and rows that pad the scales that warps exchange.
  static SmallVector<Value> allocateResults(OpBuilder &b, BlockScaledMatmulOp op, const Gemm &gemm,
                                            Value rows, Value columns) {
    SmallVector<Value> results;
    std::optional<unsigned> place = placeOfResult(op);
    SmallVector<std::pair<Value, Value>> sizes = sizesOfResults(b, op, gemm, rows, columns);
    for (auto [result, size] : llvm::zip_equal(op.getResults(), sizes)) {
      auto type = cast<RankedTensorType>(result.getType());
      Value dynamic = type.hasStaticShape() ? Value() : size.first;
      results.push_back(
          place ? allocateStridedResult(b, op.getLoc(), type, *place, dynamic, size.second)
                : allocateBuffer(b, op.getLoc(), type, dynamic, size.second));
    }
    if (op.getOffsets() && !op.getUnspecifiedRows() && !gemm.results.clearsRows)
      for (Value result : results)
        fillWithZero(b, op.getLoc(), result);
    if (gemm.results.withAmax)
      fillWithZero(b, op.getLoc(), results.back());
    bool mayPad = gemm.problem.dynamicWidth() || gemm.n() % pipe::kScaleBlockRows != 0;
    if (gemm.results.quantizer && gemm.results.quantizer->tiledColumns && mayPad)
      fillWithZero(b, op.getLoc(), results[results.size() - (gemm.results.withAmax ? 2 : 1)]);
    if (gemm.swapsOperands() && gemm.results.quantizer && gemm.results.quantizer->tiledRows)
      fillWithZero(b, op.getLoc(), results[gemm.results.storesElements ? 2 : 1]);
    return results;
  }

  /// Data and scales of a caller can disagree on their dynamic rows; of one quantizer they cannot,
  /// and then the check folds away.
  static void checkScaleRows(OpBuilder &b, BlockScaledMatmulOp op, Value scales, Value rows) {
    auto type = cast<RankedTensorType>(op.getLhsScales().getType());
    if (!type.isDynamicDim(0))
      return;
    RankedTensorType column = type.clone({type.getDimSize(0), 1}); // shape that has only rows
    Value expected = bufferDynamicSizes(b, op.getLoc(), column, rows).front();
    Value found = memref::DimOp::create(b, op.getLoc(), scales, 0);
    pipe::ExpectSizeOp::create(b, op.getLoc(),
                               op.hasF32Scales() ? "rows of lhs_scales"
                                                 : "scale tiles of 128 rows of lhs_scales",
                               found, expected, "pass the scales of the rows of lhs");
  }

  /// Tiles of a result of which not all sizes are static.
  static Value countTiles(OpBuilder &b, Location loc, const Gemm &gemm,
                          const Multiplication &product) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto quotient = [&](Value size, int64_t unit) -> Value {
      return arith::CeilDivUIOp::create(b, loc, size, constant(unit));
    };
    auto [ofRows, ofColumns] = gemm.swapsOperands()
                                   ? std::pair(gemm.tiling.workN(), gemm.tiling.workM())
                                   : std::pair(gemm.tiling.workM(), gemm.tiling.workN());
    Value alongRows = quotient(product.rows, ofRows);
    if (gemm.problem.groups) // each may end within a tile
      alongRows = arith::AddIOp::create(b, loc, alongRows, constant(gemm.problem.morePlaces()));
    int64_t known = gemm.swapsOperands() ? gemm.tilesM() * gemm.work.worksOfTile() : gemm.worksN();
    Value others =
        gemm.problem.dynamicWidth() ? quotient(product.sizes.columns, ofColumns) : constant(known);
    return arith::MulIOp::create(b, loc, alongRows, others);
  }

  /// Tiles, of a CTA or a cluster each, that run at a time.
  int64_t mostWorks(const Gemm &gemm, const KernelPlan &plan) const {
    return std::max<int64_t>(1, residentCtasPerSm(gemm, plan, target) /
                                    (gemm.clusterCtasM() * gemm.tiling.clusterN));
  }

  /// Launches one CTA, or cluster, per output tile; without tiles nothing is launched. The grid has
  /// at most as many CTAs as fit on the GPU at once, except where CTAs take over tiles of others.
  void launch(OpBuilder &b, Location loc, gpu::GPUFuncOp kernel, const Gemm &gemm,
              const KernelPlan &plan, ValueRange arguments, const Multiplication &product) const {
    int64_t threads = cast<pipe::RolePlanAttr>(plan.roles).getNumThreads();
    int64_t most = mostWorks(gemm, plan);
    if (cast<pipe::WorkScheduleAttrInterface>(plan.schedule).getRingDepth())
      most = std::numeric_limits<int32_t>::max() / gemm.clusterCtasM(); // limit of a grid along x
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value one = constant(1), works;
    if (gemm.problem.dynamicRows() || gemm.problem.dynamicWidth()) {
      Value tiles = countTiles(b, loc, gemm, product);
      works = arith::MinUIOp::create(b, loc, tiles, constant(most));
    } else {
      works = constant(std::clamp<int64_t>(gemm.works(), 1, most));
    }
    if (gemm.clusterCtasM() > 1)
      works = arith::MulIOp::create(b, loc, works, constant(gemm.clusterCtasM()));
    auto launch = gpu::LaunchFuncOp::create(
        b, loc, kernel, gpu::KernelDim3{works, constant(gemm.tiling.clusterN), one},
        gpu::KernelDim3{constant(threads), one, one},
        /*dynamicSharedMemorySize=*/Value(), arguments);
    setPdl(launch, launchDependentsOf(plan));
  }

  const hw::TargetModel &target;
};

struct ConvertFp4ToPipePass : fp4::impl::ConvertFp4ToPipeBase<ConvertFp4ToPipePass> {
  void runOnOperation() override {
    SmallVector<Operation *> work = kernelOperations(getOperation(), hasTileKernel);
    if (work.empty())
      return;
    FailureOr<hw::TargetModel> target = targetOf(work.front());
    if (failed(target))
      return signalPassFailure();
    for (Operation *op : work) {
      auto product = dyn_cast<BlockScaledMatmulOp>(op);
      if (product ? failed(plansOf(product, *target)) : failed(planOf(op, *target)))
        return signalPassFailure();
    }

    BufferTypeConverter converter;
    ConversionTarget legality(getContext());
    legality.addDynamicallyLegalOp<BlockScaledMatmulOp>(
        [](BlockScaledMatmulOp op) { return !hasTileKernel(op); });
    legality.addDynamicallyLegalOp<QuantizeOp>([](QuantizeOp op) { return !hasTileKernel(op); });
    legality.addIllegalOp<AttentionOp, AttentionBackwardOp>();
    legality.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    patterns.add<MatmulLowering>(converter, &getContext(), *target);
    populateTransformPatterns(converter, patterns, *target);
    populateAttentionPatterns(converter, patterns, *target);
    populateBackwardPatterns(converter, patterns, *target);
    if (failed(applyPartialConversion(getOperation(), legality, std::move(patterns))))
      return signalPassFailure();
    eraseUnusedBundles(getOperation());
    numKernels += work.size();
  }
};
} // namespace
