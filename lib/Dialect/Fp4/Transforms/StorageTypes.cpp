//===- StorageTypes.cpp - Packed and tiled tensors as tensors of bytes ----===//
//
// Other compilers read the size of a buffer from the shape of its tensor. The shape is wrong for
// two elements per byte and for tiled scales, and MLIR reports nothing before memory is
// overwritten. No such type is therefore left to them: a tensor whose elements only fp4 finds
// becomes the tensor of its bytes, wherever the host hands it on.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/Transforms/Islands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

bool fp4::hasOwnStorage(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (isa<Float4E2M1FNType>(tensor.getElementType()) || scaleLayout(tensor));
}

RankedTensorType fp4::storageType(RankedTensorType type) {
  if (!hasOwnStorage(type))
    return type;
  MemRefType buffer = userBufferType(type);
  if (!buffer || !buffer.getLayout().isIdentity())
    return {};
  return RankedTensorType::get(buffer.getShape(), buffer.getElementType());
}

namespace {

/// Types of values that a host handles: all but those whose bytes it cannot find.
struct StorageConverter : TypeConverter {
  StorageConverter() {
    addConversion([](Type type) { return type; });
    addConversion([](RankedTensorType type) -> std::optional<Type> {
      RankedTensorType storage = fp4::storageType(type);
      return storage ? storage : Type(); // null fails
    });
    auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
      return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
    };
    addSourceMaterialization(cast);
    addTargetMaterialization(cast);
  }
};

/// arith.select hands one of its operands on.
struct ConvertSelect : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, adaptor.getCondition(), adaptor.getTrueValue(),
                                                 adaptor.getFalseValue());
    return success();
  }
};

/// Static sizes are those of the tensor, and dynamic rows are rows of bytes.
struct ConvertDim : OpConversionPattern<tensor::DimOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tensor::DimOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getSource().getType());
    int64_t dimension = *op.getConstantIndex();
    if (type.isDynamicDim(dimension))
      rewriter.replaceOpWithNewOp<tensor::DimOp>(op, adaptor.getSource(), dimension);
    else
      rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(op, type.getDimSize(dimension));
    return success();
  }
};

struct ConvertEmpty : OpConversionPattern<tensor::EmptyOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tensor::EmptyOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    Value rows = type.isDynamicDim(0) ? op.getDynamicSize(0) : Value();
    SmallVector<Value> sizes = fp4::bufferDynamicSizes(rewriter, op.getLoc(), type, rows);
    RankedTensorType storage = fp4::storageType(type);
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, storage.getShape(), storage.getElementType(),
                                                 sizes);
    return success();
  }
};

/// Place of a slice of packed elements in the bytes: half as far along its rows.
struct PackedSlice {
  SmallVector<OpFoldResult> offsets, sizes, strides;

  PackedSlice(Builder builder, OffsetSizeAndStrideOpInterface slice)
      : offsets(slice.getMixedOffsets()), sizes(slice.getMixedSizes()),
        strides(slice.getMixedStrides()) {
    for (OpFoldResult *element : {&offsets.back(), &sizes.back()})
      *element = builder.getIndexAttr(*getConstantIntValue(*element) / 2);
  }
};

struct ConvertExtractSlice : OpConversionPattern<tensor::ExtractSliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    PackedSlice bytes(rewriter, op);
    rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(op, fp4::storageType(op.getType()),
                                                        adaptor.getSource(), bytes.offsets,
                                                        bytes.sizes, bytes.strides);
    return success();
  }
};

struct ConvertInsertSlice : OpConversionPattern<tensor::InsertSliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tensor::InsertSliceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    PackedSlice bytes(rewriter, op);
    rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(op, adaptor.getSource(), adaptor.getDest(),
                                                       bytes.offsets, bytes.sizes, bytes.strides);
    return success();
  }
};

/// Returns true when `op` takes or replaces whole bytes of packed rows.
bool isPackedSlice(Operation *op) {
  if (!isa<tensor::ExtractSliceOp, tensor::InsertSliceOp>(op) ||
      fp4::scaleLayout(cast<RankedTensorType>(op->getOperand(0).getType())))
    return false;
  auto slice = cast<OffsetSizeAndStrideOpInterface>(op);
  auto isEven = [](OpFoldResult value) {
    std::optional<int64_t> constant = getConstantIntValue(value);
    return constant && *constant % 2 == 0;
  };
  return isEven(slice.getMixedOffsets().back()) && isEven(slice.getMixedSizes().back()) &&
         isConstantIntValue(slice.getMixedStrides().back(), 1);
}

struct ConvertConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto value = cast<ElementsAttr>(op.getValue());
    auto type = cast<RankedTensorType>(op.getType());
    std::vector<uint8_t> bytes = fp4::constantBytes(value, fp4::userBufferType(type));
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseElementsAttr::get(fp4::storageType(type), ArrayRef<uint8_t>(bytes)));
    return success();
  }
};

/// Between a tensor and its bytes: how the host says where its bytes come from.
bool isStorageCast(Operation *op) {
  auto cast = dyn_cast<UnrealizedConversionCastOp>(op);
  if (!cast || cast.getNumOperands() != 1 || cast.getNumResults() != 1)
    return false;
  Type from = cast.getOperand(0).getType(), to = cast.getResult(0).getType();
  auto tensor = dyn_cast<RankedTensorType>(fp4::hasOwnStorage(from) ? from : to);
  return tensor && fp4::storageType(tensor) == (fp4::hasOwnStorage(from) ? to : from);
}

/// Returns true when `op` only hands tensors on, or has a pattern here.
bool handsOn(Operation *op) {
  return isa<func::FuncOp, func::ReturnOp, func::CallOp, scf::IfOp, scf::ForOp, scf::WhileOp,
             scf::ConditionOp, scf::YieldOp, arith::SelectOp, tensor::EmptyOp, BranchOpInterface>(
             op) ||
         isStorageCast(op) || isPackedSlice(op);
}

/// The first type of `op` that a host cannot handle, or null.
Type firstOwnType(Operation *op) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    llvm::append_range(types, function.getArgumentTypes());
    llvm::append_range(types, function.getResultTypes());
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::append_range(types, block.getArgumentTypes());
  auto *found = llvm::find_if(types, fp4::hasOwnStorage);
  return found == types.end() ? Type() : *found;
}

/// The rows of dynamic tiles are not recorded.
LogicalResult checkDim(tensor::DimOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  std::optional<int64_t> dimension = op.getConstantIndex();
  if (!dimension || *dimension < 0 || *dimension >= type.getRank())
    return fp4::withNote(op.emitOpError("must ask for a constant dimension of ") << type,
                         "write the dimension as an arith.constant from 0 to below the rank");
  if (type.isDynamicDim(*dimension) && fp4::scaleLayout(type))
    return fp4::withNote(
        op.emitOpError("must not ask for the rows of tiled scales, which their bytes do not "
                       "tell; take them from the data"),
        "tensor.dim of the codes gives the rows");
  return success();
}

LogicalResult checkForeign(Operation *op) {
  if (isa<fp4::ScaledOp>(op))
    return fp4::withNote(op->emitOpError("must be read by fp4.matmul alone"),
                         "hand on data and scales as two tensors, and write fp4.scaled before the "
                         "matmul");
  if (isa_and_present<fp4::Fp4Dialect>(op->getDialect()))
    return fp4::withNote(
        op->emitOpError("must be in a func.func of the module whose islands are outlined"),
        "move the operation into a function, or inline the function of the other module");
  Type type = firstOwnType(op);
  if (!type)
    return success();
  if (!fp4::storageType(cast<RankedTensorType>(type))) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "must not hand on " << type << ", which has no dense bytes";
    diagnostic.attachNote() << "static sizes, or dynamic rows of a matrix with an even number of "
                               "columns, have; use other tensors inside of one island only";
    return diagnostic;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return checkDim(dim);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return fp4::verifyConstant(cast<ElementsAttr>(constant.getValue()),
                               [&] { return op->emitOpError(); });
  if (handsOn(op))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "must not compute on " << type
                                                    << ", whose elements only fp4 operations find";
  diagnostic.attachNote() << "fp4.dequantize and fp4.unswizzle_scales give tensors that any "
                             "operation can read";
  return diagnostic;
}

/// An argument's names of dimensions are as many as the dimensions of its old type.
void dropDimNames(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (fp4::hasOwnStorage(type))
      function.removeArgAttr(index, "fp4.dims");
}

/// The pattern of functions converts the arguments of the entry block only, and that of branches
/// what they hand on.
void convertInnerBlocks(func::FuncOp function) {
  for (Block &block : llvm::drop_begin(function.getBody()))
    for (BlockArgument argument : block.getArguments()) {
      Type type = argument.getType();
      if (!fp4::hasOwnStorage(type))
        continue;
      OpBuilder builder = OpBuilder::atBlockBegin(&block);
      argument.setType(fp4::storageType(cast<RankedTensorType>(type)));
      auto cast = UnrealizedConversionCastOp::create(builder, argument.getLoc(), type, argument);
      argument.replaceAllUsesExcept(cast.getResult(0), cast);
    }
}

/// Visits the operations of `module` that are its host's.
WalkResult walkForeign(ModuleOp module, function_ref<LogicalResult(Operation *)> visit) {
  return module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != module && isa<ModuleOp>(op))
      return WalkResult::skip();
    return failed(visit(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
}

void populate(const StorageConverter &converter, RewritePatternSet &patterns,
              ConversionTarget &target) {
  patterns.add<ConvertSelect, ConvertDim, ConvertEmpty, ConvertConstant, ConvertExtractSlice,
               ConvertInsertSlice>(converter, patterns.getContext());
  populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, converter);
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  populateBranchOpInterfaceTypeConversionPattern(patterns, converter);
  scf::populateSCFStructuralTypeConversions(converter, patterns);
  target.addLegalOp<UnrealizedConversionCastOp>();
  target.markUnknownOpDynamicallyLegal([](Operation *op) { return !firstOwnType(op); });
  target.addDynamicallyLegalOp<ModuleOp>([](ModuleOp) { return true; });
  target.addDynamicallyLegalOp<func::FuncOp>([](func::FuncOp op) { return !firstOwnType(op); });
}

} // namespace

LogicalResult fp4::convertToStorage(ModuleOp module) {
  if (walkForeign(module, checkForeign).wasInterrupted())
    return failure();
  SmallVector<Operation *> functions;
  for (auto function : module.getOps<func::FuncOp>()) {
    dropDimNames(function);
    if (!function.isExternal())
      convertInnerBlocks(function);
    functions.push_back(function);
  }
  StorageConverter converter;
  RewritePatternSet patterns(module.getContext());
  ConversionTarget target(*module.getContext());
  populate(converter, patterns, target);
  if (failed(applyPartialConversion(functions, target, std::move(patterns))))
    return failure();
  SmallVector<UnrealizedConversionCastOp> casts;
  (void)walkForeign(module, [&](Operation *op) {
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op))
      casts.push_back(cast);
    return success();
  });
  reconcileUnrealizedCasts(casts);
  return success();
}
