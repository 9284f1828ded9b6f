//===- Fp4ToPipe.cpp - Operations of tensor cores to sequential kernels ---===//
//
// Rewrites every fp4.blockscaled_matmul, and every fp4.quantize that transforms on the tensor core
// (TransformLowering.cpp), into host code that makes the kernel's arguments and launches it, and a
// kernel (MatmulKernel.cpp, TransformKernel.cpp) in a gpu.module of its own.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/Fp4ToPipe/Passes.h"

#include "DynamicSizes.h"
#include "GemmArguments.h"
#include "GroupTable.h"
#include "HalveScales.h"
#include "ItemLaunch.h"
#include "Lowering.h"
#include "MatmulKernel.h"
#include "PackSix.h"
#include "PreDequantize.h"
#include "PreDequantizedWeights.h"
#include "StreamTable.h"
#include "WarpGemmKernel.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/ISA/TargetModel.h"

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

static MatmulShape::Alpha alphaOf(BlockScaledMatmulOp op) {
  if (!op.getAlpha())
    return MatmulShape::Alpha::None;
  auto type = cast<RankedTensorType>(op.getAlpha().getType());
  if (type.getRank() == 0)
    return MatmulShape::Alpha::One;
  if (type.getRank() == 1)
    return MatmulShape::Alpha::Groups;
  return type.getDimSize(1) == 1 ? MatmulShape::Alpha::Rows : MatmulShape::Alpha::Columns;
}

/// The number of the result whose rows the caller places, where the kernel can write them.
static std::optional<unsigned> placeOfResult(BlockScaledMatmulOp op) {
  bool isPlain = op.hasOnlyElements() && !op.isGrouped();
  return isPlain ? stridedResultOf(op.getResult()) : std::nullopt;
}

/// Sets the additional operands and results of `op` beside one GEMM and its elements.
static void setResults(MatmulShape &shape, BlockScaledMatmulOp op) {
  shape.dual = op.isDual();
  shape.withAmax = op.getWithAmax();
  shape.storesElements = static_cast<bool>(op.getResult());
  shape.stridedResult = placeOfResult(op).has_value();
  if (!op.getQuantizeRecipe())
    return;
  auto isTiled = [&](unsigned scales) {
    return scaleLayout(cast<RankedTensorType>(op.getQuantized()[scales].getType())).has_value();
  };
  ResultQuantizer quantizer{*op.getQuantizeRecipe(), static_cast<bool>(op.getQuantizeAmax())};
  quantizer.rows = op.quantizesRows();
  quantizer.columns = op.quantizesColumns();
  quantizer.tiledRows = quantizer.rows && isTiled(1);
  quantizer.tiledColumns = quantizer.columns && isTiled(quantizer.rows ? 3 : 1);
  shape.quantizer = quantizer;
}

/// Swaps the operands if rows of the rhs are TMEM lanes. Weights beside floats always are, and the
/// tile of their plan is that of the result.
static void swapOperands(MatmulShape &shape, const KernelPlan &plan,
                         const hw::TargetModel &target) {
  if (shape.floatA && target.hasTcgen05) {
    std::swap(shape.floatA, shape.floatB);
    std::swap(shape.prepackedA, shape.prepackedB);
    std::swap(shape.tileM, shape.tileN);
  }
  shape.swap = (plan.swap && target.hasTcgen05) || shape.floatB;
  if (!shape.swap)
    return;
  std::swap(shape.m, shape.n);
  std::swap(shape.dataTypeA, shape.dataTypeB);
}

/// Returns true when loads leave out missing rows. If only the last of several boxes had a residue,
/// CTAs would wait for zeros before a whole box. With tcgen05 that costs more than missing rows.
static bool loadsResidues(const MatmulShape &shape, BlockScaledMatmulOp op, const KernelPlan &plan,
                          const hw::TargetModel &target) {
  if (!target.hasTcgen05)
    return target.hasSlowPartialBoxes;
  int64_t most = mostRowsOf(op, plan), box = shape.swap ? shape.blockN() : shape.blockM();
  return target.hasSlowPartialBoxes && !shape.pair && !ShapedType::isDynamic(most) && most <= box;
}

/// Sets the number of warpgroups that read sums in tensor memory.
static void setWarpgroups(MatmulShape &shape, const KernelPlan &plan,
                          const hw::TargetModel &target) {
  if (shape.hasF32Scales() && target.hasTcgen05)
    shape.laneGroups =
        cast<pipe::RolePlanAttr>(plan.roles).getDriver(pipe::Engine::Threads).getNumWarps() / 4;
  else if (target.hasTcgen05)
    shape.epilogueGroups = plan.epilogueWarps.value_or(4) / 4;
}

/// The tile and what else the plan decides.
static void setPlan(MatmulShape &shape, BlockScaledMatmulOp op, const KernelPlan &plan,
                    const hw::TargetModel &target) {
  shape.tileM = plan.tile[0];
  shape.tileN = plan.tile[1];
  shape.tileK = plan.tile[2];
  shape.depthUnit = knownUnitOfDepth(op, plan);
  if (shape.hasF32Scales()) { // the tensor core sums one scale block
    shape.blocksOfTileK = shape.tileK / pipe::kPromotedBlock;
    shape.tileK = pipe::kPromotedBlock;
  }
  setWarpgroups(shape, plan, target);
  shape.hasSpareThreads =
      bool(cast<pipe::RolePlanAttr>(plan.roles).getDriver(pipe::Engine::Convert));
  shape.pair = plan.pair;
  shape.storesTiles = plan.store == ResultStore::Tma;
  swapOperands(shape, plan, target);
  shape.loadsResidues = loadsResidues(shape, op, plan, target);
  // Sums in registers are stored as they are, so nothing but the tile is swapped.
  shape.transposed = shape.floatA || (plan.swap && !shape.swap);
  shape.ranges = plan.kSlices.value_or(1);
  bool joins = plan.reduction == ReductionPlace::Cluster;
  shape.reducesInCluster = joins || (shape.hasFragments() && plan.cluster[0] > 1);
  if (plan.cluster[0] && !shape.hasFragments()) {
    shape.clusterM = plan.cluster[0] / (joins ? shape.splits : 1);
    shape.clusterN = plan.cluster[1];
    shape.fallsBack = plan.fallback[0] > 0;
  }
  if (plan.swap && shape.transposed)
    std::swap(shape.tileM, shape.tileN);
  shape.accumulatesFast = op.accumulatesFast();
  shape.preDequantizedWeights = plan.swap && shape.prepackedB;
  if (shape.preDequantizedWeights) {
    shape.prepackedB = false;
    shape.dataTypeB = Float8E4M3FNType::get(shape.scaleType.getContext());
  }
  if (!target.hasTcgen05 && target.hasWgmma && !shape.preDequantizedWeights && preDequantizes(plan))
    setPreDequantized(shape);
}

/// CTAs of `plan` that the target runs at a time. Smaller clusters fill what larger ones leave.
static int64_t residentCtasPerSm(const MatmulShape &shape, const KernelPlan &plan,
                                 const hw::TargetModel &target) {
  int64_t blocks = plan.fallback[0] ? 1 : shape.clusterCtasM() * shape.clusterN;
  return *plan.ctasPerSm * hw::smsOfClusters(target, blocks);
}

/// A CTA has several tiles, as far as is known. A kernel of one tile for each CTA would have fewer
/// sets of scales for nothing.
static bool takesTurns(const MatmulShape &shape, const KernelPlan &plan,
                       const hw::TargetModel &target) {
  return shape.dynamicRows() || shape.dynamicWidth() ||
         shape.works() * shape.clusterCtasM() * shape.clusterN >
             residentCtasPerSm(shape, plan, target);
}

static MatmulShape matmulShape(BlockScaledMatmulOp op, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  MatmulShape shape;
  shape.splits = splitsOf(op, plan);
  shape.m = lhs.getDimSize(0);
  shape.n = op.getColumns();
  shape.k = lhs.getDimSize(1);
  shape.block = blockSize(op.getFormat());
  shape.dataTypeA = lhs.getElementType();
  shape.dataTypeB = cast<RankedTensorType>(op.getRhs().getType()).getElementType();
  shape.scaleType = scaleType(op.getContext(), op.getFormat());
  shape.unitScalesA = op.hasUnitScales() && !target.hasTcgen05;
  shape.loadsUnitScales = op.hasUnitScales() && target.hasTcgen05;
  if (op.hasFloatLhs() && !op.hasUnitScales())
    shape.floatA = lhs.getElementType();
  shape.prepackedB = op.hasPrepackedRhs();
  if (shape.prepackedB && !shape.floatA)
    setPreDequantized(shape);
  shape.k96 = op.usesK96();
  shape.spreadsCodes = target.hasTcgen05;
  shape.warpsMultiply = target.hasMmaBlockScale;
  shape.resultType = op.getElementType();
  shape.alpha = alphaOf(op);
  if (auto epilogue = op.getEpilogue())
    shape.epilogue.assign(epilogue->getSteps().begin(), epilogue->getSteps().end());
  if (!op.getEpilogueBody().empty())
    shape.body = &op.getEpilogueBody();
  for (Value input : op.getEpilogueInputs())
    shape.inputs.push_back(MatmulShape::bodyInput(cast<RankedTensorType>(input.getType())));
  setResults(shape, op);
  setPlan(shape, op, plan, target);
  if (op.isGrouped())
    setGroups(shape, op);
  if (auto stream = op.getStreamK())
    setStream(shape, {uint64_t((*stream)[0]), uint64_t((*stream)[1]), uint64_t((*stream)[2])});
  shape.hasOneTile = !takesTurns(shape, plan, target);
  shape.alternates = shape.holdsHalves() && plan.accumulators != 1 && !shape.hasOneTile;
  return shape;
}

/// Returns the builder of the kernel of a matmul, by the places of conversions and of sums.
static decltype(&buildMatmulKernel) builderOf(const MatmulShape &shape,
                                              const hw::TargetModel &target) {
  return shape.laneGroups          ? buildLaneGemmKernel
         : shape.hasF32Scales()    ? buildPromotedGemmKernel
         : shape.floatB            ? buildWeightLaneKernel
         : shape.transposed        ? buildWeightGemmKernel
         : target.hasTcgen05       ? buildMatmulKernel
         : target.hasMmaBlockScale ? buildWarpGemmKernel
                                   : buildConvertedGemmKernel;
}

namespace {
struct MatmulLowering : OpConversionPattern<BlockScaledMatmulOp> {
  MatmulLowering(const TypeConverter &converter, MLIRContext *context,
                 const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(BlockScaledMatmulOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<std::vector<KernelPlan>> plans = plansOf(op, target),
                                       ofSizes = sizePlansOf(op, target);
    if (failed(plans) || failed(ofSizes))
      return failure();
    MatmulShape shape = matmulShape(op, plans->back(), target);
    Value rows = rowsOf(rewriter, op, adaptor.getLhs());
    if (shape.dynamicRows() && !op.hasFloatLhs())
      checkScaleRows(rewriter, op, adaptor.getLhsScales(), rows);
    GemmSizes sizes = sizesOfGemm(rewriter, op, adaptor.getLhs(), adaptor.getRhs());
    checkGemmSizes(rewriter, op, adaptor, sizes, shape);
    SmallVector<Value> results = allocateResults(rewriter, op, shape, rows, sizes.columns);

    SmallVector<Value> operands(adaptor.getOperands());
    if (shape.spreadsCodes)
      packOperands(rewriter, op, operands, rows, sizes);
    Multiplication product{op, adaptor, operands, rows, sizes, results};
    OpBuilder::InsertionGuard guard(rewriter);
    for (const KernelPlan &plan : ArrayRef(*plans).drop_back())
      rewriter.setInsertionPoint(multiplyFew(rewriter, product, plan));
    multiplyBySize(rewriter, product, *ofSizes, plans->back());
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// A matmul whose results have their buffers.
  struct Multiplication {
    BlockScaledMatmulOp op;
    OpAdaptor adaptor;
    SmallVector<Value> operands; ///< operands of `op`, packed
    Value rows;
    GemmSizes sizes;
    SmallVector<Value> results;
  };

  /// Launches the kernel of `plan` where there are no more rows than it has. Returns the end of
  /// what happens where there are more.
  Operation *multiplyFew(ConversionPatternRewriter &rewriter, const Multiplication &product,
                         const KernelPlan &plan) const {
    Location loc = BlockScaledMatmulOp(product.op).getLoc();
    Value most = arith::ConstantIndexOp::create(rewriter, loc, *plan.maxRows);
    Value isFew =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ule, product.rows, most);
    auto choice = scf::IfOp::create(rewriter, loc, isFew, /*withElseRegion=*/true);
    rewriter.setInsertionPoint(choice.thenBlock()->getTerminator());
    multiply(rewriter, product, plan);
    return choice.elseBlock()->getTerminator();
  }

  /// Returns the predicted cost of `plan`, an index: a fixed part, and a part for each wave of its
  /// tiles. A plan that does not hold costs more than every other.
  Value predictedCost(OpBuilder &b, const Multiplication &product, const KernelPlan &plan) const {
    BlockScaledMatmulOp op = product.op;
    Location loc = op.getLoc();
    MatmulShape shape = matmulShape(op, plan, target);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value depth = product.sizes.depth ? product.sizes.depth : constant(shape.k);
    Value waves = arith::CeilDivUIOp::create(b, loc, countTiles(b, loc, shape, product),
                                             constant(mostWorks(shape, plan)));
    Value kTiles = arith::CeilDivUIOp::create(b, loc, depth, constant(plan.tile[2]));
    auto [once, wave, kTile] = plan.waveCost;
    Value ofWave = arith::AddIOp::create(b, loc, constant(wave),
                                         arith::MulIOp::create(b, loc, kTiles, constant(kTile)));
    Value cost =
        arith::AddIOp::create(b, loc, constant(once), arith::MulIOp::create(b, loc, waves, ofWave));
    Value holds = holdsFor(b, loc, plan, product.rows, product.sizes.depth);
    return holds ? arith::SelectOp::create(b, loc, holds, cost,
                                           constant(std::numeric_limits<int64_t>::max()))
                       .getResult()
                 : cost;
  }

  /// Launches the kernel of the plan that is predicted to cost the least.
  void multiplyBySize(ConversionPatternRewriter &rewriter, const Multiplication &product,
                      ArrayRef<KernelPlan> others, const KernelPlan &last) const {
    Location loc = BlockScaledMatmulOp(product.op).getLoc();
    SmallVector<Value> costs;
    for (const KernelPlan &plan : others)
      costs.push_back(predictedCost(rewriter, product, plan));
    Value ofLast = others.empty() ? Value() : predictedCost(rewriter, product, last);
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
    multiply(rewriter, product, last);
  }

  /// Makes the kernel of `plan`, and launches it.
  void multiply(ConversionPatternRewriter &rewriter, const Multiplication &product,
                const KernelPlan &plan) const {
    auto [op, adaptor, operands, rows, sizes, results] = product;
    Location loc = op.getLoc();
    MatmulShape shape = matmulShape(op, plan, target);
    auto module = op->getParentOfType<ModuleOp>();
    gpu::GPUModuleOp kernels = createKernelModule(rewriter, module, op, "matmul");
    gpu::GPUFuncOp kernel = builderOf(shape, target)(kernels, shape, plan, loc);
    takeStrides(rewriter, op, operands, shape);
    if (shape.splitsColumns() && !shape.loadsUnitScales)
      halveScalesOfA(rewriter, op, operands, shape);
    if (shape.halvesScalesB())
      splitScalesOfB(rewriter, op, operands, shape);
    if (shape.preDequantizes)
      operands.front() = preDequantize(rewriter, op, adaptor.getLhs(), adaptor.getLhsScales(),
                                       shape, rows, sizes.depth, target, pdlBefore(plan));
    Value powers =
        shape.preDequantizedWeights ? convertWeights(rewriter, op, operands, shape) : Value();
    SmallVector<Value> arguments =
        gemmArguments(rewriter, loc, shape, OpAdaptor(operands, adaptor), powers,
                      {rows, sizes.columns, sizes.depth}, results);
    if (shape.groups)
      arguments.append(groupArguments(rewriter, op, adaptor.getOffsets(), rows, shape));
    launch(rewriter, loc, kernel, shape, plan, arguments, product);
  }

  static Value rowsOf(OpBuilder &b, BlockScaledMatmulOp op, Value lhs) {
    if (Value argument = stridedRowsOf(op.getLhs()))
      return stridedRows(b, op.getLoc(), argument);
    return logicalRows(b, op.getLoc(), cast<RankedTensorType>(op.getLhs().getType()), lhs);
  }

  /// Data that tensor maps read where the caller of the program has placed its rows. Data that is
  /// converted before, or spread by TMA, which wants pitches of 32 bytes, is read from a copy.
  static void takeStrides(OpBuilder &b, BlockScaledMatmulOp op, SmallVectorImpl<Value> &operands,
                          const MatmulShape &shape) {
    auto take = [&](OpOperand &operand, bool isOfA) {
      Value tensor = operand.get();
      if (!isStridedArgument(tensor) || cast<RankedTensorType>(tensor.getType()).getRank() != 2 ||
          pipe::isPadded((isOfA ? shape.mapA() : shape.mapB()).getLayout()))
        return;
      operands[operand.getOperandNumber()] = stridedBuffer(b, op.getLoc(), tensor);
    };
    if (!shape.preDequantizes)
      take(op.getLhsMutable(), !shape.swap);
    if (!op.hasPrepackedRhs())
      take(op.getRhsMutable(), shape.swap);
    for (OpOperand &operand : op.getRhs2Mutable())
      take(operand, shape.swap);
  }

  /// Data of 6 bits, of which TMA wants four in three bytes.
  static void packOperands(RewriterBase &rewriter, BlockScaledMatmulOp op,
                           SmallVectorImpl<Value> &operands, Value rows, const GemmSizes &sizes) {
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      if (auto type = cast<RankedTensorType>(operand.getType());
          isSixBitElementType(type.getElementType()))
        operands[number] = packSix(rewriter, op, operands[number], type,
                                   operand == op.getLhs() ? rows : sizes.columns, sizes.depth);
  }

  /// Prepacked weights, of which a kernel makes e4m3 in their place; returns their powers.
  static Value convertWeights(RewriterBase &rewriter, BlockScaledMatmulOp op,
                              SmallVectorImpl<Value> &operands, const MatmulShape &shape) {
    Value &rhs = operands[op.getRhsMutable().getOperandNumber()];
    ConvertedWeights weights = preDequantizeWeights(rewriter, op, rhs, shape);
    rhs = weights.elements;
    return weights.powers;
  }

  /// The scales of A, of which each 64 rows get a scale tile.
  static void halveScalesOfA(RewriterBase &rewriter, BlockScaledMatmulOp op,
                             SmallVectorImpl<Value> &operands, const MatmulShape &shape) {
    Value &scales = operands[op.getLhsScalesMutable().begin()->getOperandNumber()];
    if (shape.groups)
      scales = scalesOfGroups(rewriter, op.getLoc(), shape, scales, shape.scaleRowsA());
    scales = halveScales(rewriter, op, scales);
  }

  /// The scales of B, of which each half of a tile gets a scale tile.
  static void splitScalesOfB(RewriterBase &rewriter, BlockScaledMatmulOp op,
                             SmallVectorImpl<Value> &operands, const MatmulShape &shape) {
    auto split = [&](MutableOperandRange range) {
      if (range.empty())
        return;
      Value &scales = operands[range.begin()->getOperandNumber()];
      if (shape.groups)
        scales = scalesOfGroups(rewriter, op.getLoc(), shape, scales,
                                shape.groups * shape.alignedColumns());
      scales = splitScales(
          rewriter, op, scales,
          {std::max<int64_t>(shape.groups, 1), shape.halvesOfGroupB(), shape.accumulatorColumns()});
    };
    split(op.getRhsScalesMutable());
    split(op.getRhs2ScalesMutable());
  }

  static void fillWithZero(OpBuilder &b, Location loc, Value buffer) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    gpu::MemsetOp::create(b, loc, TypeRange(), ValueRange(), buffer, zero);
  }

  /// Rows and columns of the results, of which quantizers have some in the other order.
  static SmallVector<std::pair<Value, Value>> sizesOfResults(OpBuilder &b, BlockScaledMatmulOp op,
                                                             const MatmulShape &shape, Value rows,
                                                             Value columns) {
    SmallVector<std::pair<Value, Value>> sizes(op->getNumResults(), {rows, columns});
    if (!columns || !shape.quantizer)
      return sizes;
    auto *next = sizes.begin() + (shape.storesElements ? 1 : 0);
    if (shape.quantizer->rows) {
      Value block = arith::ConstantIndexOp::create(b, op.getLoc(), shape.quantizer->block());
      next[1].second = arith::CeilDivUIOp::create(b, op.getLoc(), columns, block);
      next += 2;
    }
    if (shape.quantizer->columns)
      next[0] = next[1] = {columns, Value()};
    return sizes;
  }

  /// Buffers of all results, those of them zero that the kernel does not write as a whole: rows of
  /// no group, what an amax begins with, and rows that pad the scales of columns.
  static SmallVector<Value> allocateResults(OpBuilder &b, BlockScaledMatmulOp op,
                                            const MatmulShape &shape, Value rows, Value columns) {
    SmallVector<Value> results;
    std::optional<unsigned> place = placeOfResult(op);
    SmallVector<std::pair<Value, Value>> sizes = sizesOfResults(b, op, shape, rows, columns);
    for (auto [result, size] : llvm::zip_equal(op.getResults(), sizes)) {
      auto type = cast<RankedTensorType>(result.getType());
      Value dynamic = type.hasStaticShape() ? Value() : size.first;
      results.push_back(
          place ? allocateStridedResult(b, op.getLoc(), type, *place, dynamic, size.second)
                : allocateBuffer(b, op.getLoc(), type, dynamic, size.second));
    }
    if (op.getOffsets() && !op.getUnspecifiedRows() && !shape.clearsRows)
      for (Value result : results)
        fillWithZero(b, op.getLoc(), result);
    if (shape.withAmax)
      fillWithZero(b, op.getLoc(), results.back());
    bool mayPad = shape.dynamicWidth() || shape.n % pipe::kScaleBlockRows != 0;
    if (shape.quantizer && shape.quantizer->tiledColumns && mayPad)
      fillWithZero(b, op.getLoc(), results[results.size() - (shape.withAmax ? 2 : 1)]);
    return results;
  }

  /// Data and scales of a caller can disagree on their dynamic rows; of one quantizer they cannot,
  /// and then the check folds away.
  static void checkScaleRows(OpBuilder &b, BlockScaledMatmulOp op, Value scales, Value rows) {
    auto type = cast<RankedTensorType>(op.getLhsScales().getType());
    if (!type.isDynamicDim(0))
      return;
    RankedTensorType column =
        type.clone({type.getDimSize(0), 1}); // shape that has only rows
    Value expected = bufferDynamicSizes(b, op.getLoc(), column, rows).front();
    Value found = memref::DimOp::create(b, op.getLoc(), scales, 0);
    pipe::ExpectSizeOp::create(b, op.getLoc(),
                               op.hasF32Scales() ? "rows of lhs_scales"
                                                 : "scale tiles of 128 rows of lhs_scales",
                               found, expected, "pass the scales of the rows of lhs");
  }

  /// Tiles of a result of which not all sizes are static.
  static Value countTiles(OpBuilder &b, Location loc, const MatmulShape &shape,
                          const Multiplication &product) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto quotient = [&](Value size, int64_t unit) -> Value {
      return arith::CeilDivUIOp::create(b, loc, size, constant(unit));
    };
    auto [ofRows, ofColumns] = shape.swap ? std::pair(shape.workN(), shape.workM())
                                          : std::pair(shape.workM(), shape.workN());
    Value alongRows = quotient(product.rows, ofRows);
    if (shape.groups) // each may end within a tile
      alongRows = arith::AddIOp::create(b, loc, alongRows, constant(shape.morePlaces()));
    int64_t known = shape.swap ? shape.tilesM() * shape.worksOfTile() : shape.worksN();
    Value others =
        shape.dynamicWidth() ? quotient(product.sizes.columns, ofColumns) : constant(known);
    return arith::MulIOp::create(b, loc, alongRows, others);
  }

  /// Tiles, of a CTA or a cluster each, that run at a time.
  int64_t mostWorks(const MatmulShape &shape, const KernelPlan &plan) const {
    return std::max<int64_t>(1, residentCtasPerSm(shape, plan, target) /
                                    (shape.clusterCtasM() * shape.clusterN));
  }

  /// Launches one CTA, or cluster, per output tile; without tiles nothing is launched. The grid has
  /// at most as many CTAs as fit on the GPU at once, except where CTAs take over tiles of others.
  void launch(OpBuilder &b, Location loc, gpu::GPUFuncOp kernel, const MatmulShape &shape,
              const KernelPlan &plan, ValueRange arguments, const Multiplication &product) const {
    int64_t threads = cast<pipe::RolePlanAttr>(plan.roles).getNumThreads();
    int64_t most = mostWorks(shape, plan);
    if (cast<pipe::WorkScheduleAttrInterface>(plan.schedule).getRingDepth())
      most = std::numeric_limits<int32_t>::max() / shape.clusterCtasM(); // limit of a grid along x
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value one = constant(1), works;
    if (shape.dynamicRows() || shape.dynamicWidth()) {
      Value tiles = countTiles(b, loc, shape, product);
      works = arith::MinUIOp::create(b, loc, tiles, constant(most));
    } else {
      works = constant(std::clamp<int64_t>(shape.works(), 1, most));
    }
    if (shape.clusterCtasM() > 1)
      works = arith::MulIOp::create(b, loc, works, constant(shape.clusterCtasM()));
    auto launch = gpu::LaunchFuncOp::create(b, loc, kernel,
                                            gpu::KernelDim3{works, constant(shape.clusterN), one},
                                            gpu::KernelDim3{constant(threads), one, one},
                                            /*dynamicSharedMemorySize=*/Value(), arguments);
    if (StringRef overlap = pdlOf(plan); !overlap.empty())
      launch->setAttr(overlap, b.getUnitAttr());
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
      if (product ? failed(plansOf(product, *target)) || failed(sizePlansOf(product, *target))
                  : failed(planOf(op, *target)))
        return signalPassFailure();
    }

    BufferTypeConverter converter;
    ConversionTarget legality(getContext());
    legality.addDynamicallyLegalOp<BlockScaledMatmulOp>(
        [](BlockScaledMatmulOp op) { return !hasTileKernel(op); });
    legality.addDynamicallyLegalOp<QuantizeOp>([](QuantizeOp op) { return !hasTileKernel(op); });
    legality.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(&getContext());
    patterns.add<MatmulLowering>(converter, &getContext(), *target);
    populateTransformPatterns(converter, patterns, *target);
    if (failed(applyPartialConversion(getOperation(), legality, std::move(patterns))))
      return signalPassFailure();
    numKernels += work.size();
  }
};
} // namespace
