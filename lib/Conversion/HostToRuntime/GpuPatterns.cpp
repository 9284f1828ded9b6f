//===- GpuPatterns.cpp - gpu host operations to runtime calls -------------===//
//
// Patterns of gpu.alloc, dealloc, memset, memcpy and launch_func. Work is in order of issue
// (fp4-c/Runtime.h), so asynchronous forms are not matched.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "RuntimeCalls.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Dialect/Utils/LaunchAttributes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using fp4::constantInt;
using fp4::RuntimeFunction;

namespace {

ModuleOp moduleOf(Operation *op) { return op->getParentOfType<ModuleOp>(); }

/// Bytes of an element; 4-bit tensors are memrefs of i8 by now.
int64_t elementBytes(MemRefType type) { return llvm::divideCeil(type.getElementTypeBitWidth(), 8); }

/// Bytes of a contiguous buffer.
Value byteSize(OpBuilder &builder, Location loc, MemRefType type, Value descriptor) {
  MemRefDescriptor view(descriptor);
  Value bytes = constantInt(builder, loc, 64, elementBytes(type));
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    Value extent = ShapedType::isDynamic(size) ? view.size(builder, loc, dim)
                                               : constantInt(builder, loc, 64, size);
    bytes = LLVM::MulOp::create(builder, loc, bytes, extent);
  }
  return bytes;
}

/// Address of the first element: the aligned pointer moved by the offset.
Value firstElement(OpBuilder &builder, Location loc, const LLVMTypeConverter &converter,
                   MemRefType type, Value descriptor) {
  return MemRefDescriptor(descriptor).bufferPtr(builder, loc, converter, type);
}

struct AllocLowering : ConvertOpToLLVMPattern<gpu::AllocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::AllocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    MemRefType type = op.getType();
    if (op.getAsyncToken() || !isConvertibleAndHasIdentityMaps(type))
      return rewriter.notifyMatchFailure(op, "expects a synchronous allocation of a plain buffer");
    Location loc = op.getLoc();
    SmallVector<Value, 4> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getDynamicSizes(), rewriter, sizes, strides, bytes);
    Value address = allocate(rewriter, op, bytes);
    Value descriptor =
        createMemRefDescriptor(loc, type, address, address, sizes, strides, rewriter);
    rewriter.replaceOp(op, descriptor);
    return success();
  }

private:
  /// Allocates a buffer. Counters are memory of the program; a buffer that the function returns may
  /// be its caller's.
  static Value allocate(OpBuilder &builder, gpu::AllocOp op, Value bytes) {
    Location loc = op.getLoc();
    if (op->hasAttr(fp4::kCountersAttr))
      return fp4::callRuntime(builder, loc, moduleOf(op), RuntimeFunction::Counters, bytes);
    if (auto what = op->getAttrOfType<StringAttr>(fp4::kGroupReportAttr))
      return fp4::callRuntime(
          builder, loc, moduleOf(op), RuntimeFunction::GroupReport,
          fp4::stringAddress(builder, loc, moduleOf(op), "fp4_group_report", what.getValue()));
    auto result = op->getAttrOfType<IntegerAttr>(fp4::kResultAttr);
    if (!result)
      return fp4::callRuntime(builder, loc, moduleOf(op), RuntimeFunction::Alloc, bytes);
    Value number = constantInt(builder, loc, 32, result.getInt());
    return fp4::callRuntime(builder, loc, moduleOf(op), RuntimeFunction::AllocResult,
                            {number, bytes});
  }
};

struct DeallocLowering : ConvertOpToLLVMPattern<gpu::DeallocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::DeallocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getAsyncToken())
      return rewriter.notifyMatchFailure(op, "expects a synchronous deallocation");
    Value address = MemRefDescriptor(adaptor.getMemref()).allocatedPtr(rewriter, op.getLoc());
    fp4::callRuntime(rewriter, op.getLoc(), moduleOf(op), RuntimeFunction::Free, address);
    rewriter.eraseOp(op);
    return success();
  }
};

struct MemsetLowering : ConvertOpToLLVMPattern<gpu::MemsetOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::MemsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getDst().getType());
    if (op.getAsyncToken() || !type.getLayout().isIdentity())
      return rewriter.notifyMatchFailure(op, "expects a synchronous memset of a whole buffer");
    Location loc = op.getLoc();
    Value byte = adaptor.getValue();
    if (matchPattern(op.getValue(), m_Zero()) || matchPattern(op.getValue(), m_PosZeroFloat()))
      byte = constantInt(rewriter, loc, 8, 0);
    else if (!byte.getType().isInteger(8))
      return rewriter.notifyMatchFailure(op, "expects an i8 value or a constant zero");
    Value address = firstElement(rewriter, loc, *getTypeConverter(), type, adaptor.getDst());
    fp4::callRuntime(rewriter, loc, moduleOf(op), RuntimeFunction::Memset,
                     {address, byte, byteSize(rewriter, loc, type, adaptor.getDst())});
    rewriter.eraseOp(op);
    return success();
  }
};

/// A copy between two buffers of which at least one may be a window of rows.
struct MemcpyLowering : ConvertOpToLLVMPattern<gpu::MemcpyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::MemcpyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto dstType = cast<MemRefType>(op.getDst().getType());
    auto srcType = cast<MemRefType>(op.getSrc().getType());
    if (op.getAsyncToken())
      return rewriter.notifyMatchFailure(op, "expects a synchronous copy");
    bool flat = dstType.getLayout().isIdentity() && srcType.getLayout().isIdentity();
    if (!flat && !(isRows(dstType) && isRows(srcType)))
      return rewriter.notifyMatchFailure(op, "expects contiguous buffers or rows of a matrix");
    Location loc = op.getLoc();
    const LLVMTypeConverter &converter = *getTypeConverter();
    Value dst = firstElement(rewriter, loc, converter, dstType, adaptor.getDst());
    Value src = firstElement(rewriter, loc, converter, srcType, adaptor.getSrc());
    Value width, height, dstPitch, srcPitch;
    if (flat) {
      width = dstPitch = srcPitch = byteSize(rewriter, loc, srcType, adaptor.getSrc());
      height = constantInt(rewriter, loc, 64, 1);
    } else {
      MemRefDescriptor source(adaptor.getSrc());
      width = bytes(rewriter, loc, srcType, srcType.getDimSize(1),
                    [&] { return source.size(rewriter, loc, 1); });
      height = source.size(rewriter, loc, 0);
      dstPitch = pitch(rewriter, loc, dstType, adaptor.getDst());
      srcPitch = pitch(rewriter, loc, srcType, adaptor.getSrc());
    }
    fp4::callRuntime(rewriter, loc, moduleOf(op), RuntimeFunction::Memcpy2D,
                     {dst, dstPitch, src, srcPitch, width, height});
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Returns true for a matrix of contiguous rows.
  static bool isRows(MemRefType type) {
    SmallVector<int64_t> strides;
    int64_t offset;
    return type.getRank() == 2 && succeeded(type.getStridesAndOffset(strides, offset)) &&
           strides[1] == 1;
  }
  /// Bytes of `count` elements, or of as many as the descriptor says.
  static Value bytes(OpBuilder &builder, Location loc, MemRefType type, int64_t count,
                     llvm::function_ref<Value()> recorded) {
    if (!ShapedType::isDynamic(count))
      return constantInt(builder, loc, 64, count * elementBytes(type));
    return LLVM::MulOp::create(builder, loc, recorded(),
                               constantInt(builder, loc, 64, elementBytes(type)));
  }
  static Value pitch(OpBuilder &builder, Location loc, MemRefType type, Value descriptor) {
    SmallVector<int64_t> strides;
    int64_t offset;
    (void)type.getStridesAndOffset(strides, offset);
    return bytes(builder, loc, type, strides[0],
                 [&] { return MemRefDescriptor(descriptor).stride(builder, loc, 0); });
  }
};

struct LaunchLowering : ConvertOpToLLVMPattern<gpu::LaunchFuncOp> {
  LaunchLowering(const LLVMTypeConverter &converter, const fp4::KernelResourcesMap &kernels)
      : ConvertOpToLLVMPattern(converter), kernels(kernels) {}

  LogicalResult matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getAsyncToken())
      return rewriter.notifyMatchFailure(op, "expects a synchronous launch");
    if (op.hasClusterSize() && !isConstantIntValue(op.getClusterSizeZ(), 1))
      return rewriter.notifyMatchFailure(op, "expects clusters of one CTA along z");
    if (!kernels.contains({op.getKernelModuleName(), op.getKernelName()}))
      return rewriter.notifyMatchFailure(op, "expects a kernel that a gpu.binary holds");
    Location loc = op.getLoc();
    ModuleOp module = moduleOf(op);
    Type ptr = LLVM::LLVMPointerType::get(getContext());
    SmallVector<Value> operands = {
        LLVM::AddressOfOp::create(rewriter, loc, ptr,
                                  fp4::runtimeModuleSymbol(op.getKernelModuleName().getValue())),
        fp4::stringAddress(rewriter, loc, module, "fp4_name", op.getKernelName().getValue())};
    for (Value extent : {adaptor.getGridSizeX(), adaptor.getGridSizeY(), adaptor.getGridSizeZ(),
                         adaptor.getBlockSizeX(), adaptor.getBlockSizeY(), adaptor.getBlockSizeZ()})
      operands.push_back(toI32(rewriter, loc, extent));
    operands.push_back(sharedBytes(rewriter, op, adaptor));
    operands.push_back(parameterArray(rewriter, op, adaptor.getKernelOperands()));
    operands.push_back(constantInt(rewriter, loc, 32, op.getNumKernelOperands()));
    RuntimeFunction function = op->hasAttr(fp4::kCooperativeAttr) ? RuntimeFunction::LaunchCooperative
                               : op->hasAttr(fp4::kDependentAttr) ? RuntimeFunction::LaunchDependent
                                                                  : RuntimeFunction::Launch;
    if (SmallVector<Value> clusters = clustersOf(rewriter, op, adaptor); !clusters.empty()) {
      operands.push_back(constantInt(rewriter, loc, 32, op->hasAttr(fp4::kDependentAttr)));
      llvm::append_range(operands, clusters);
      function = RuntimeFunction::LaunchClusters;
    }
    fp4::callRuntime(rewriter, loc, module, function, operands);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The cluster and the preferred cluster of a launch, along x and y (i32), from the kernel table
  /// or from the operands of the launch, which prefer none. Empty where the kernel says its size.
  SmallVector<Value> clustersOf(OpBuilder &builder, gpu::LaunchFuncOp op, OpAdaptor adaptor) const {
    Location loc = op.getLoc();
    if (op.hasClusterSize()) {
      Value none = constantInt(builder, loc, 32, 0);
      return {toI32(builder, loc, adaptor.getClusterSizeX()),
              toI32(builder, loc, adaptor.getClusterSizeY()), none, none};
    }
    gpu::KernelMetadataAttr kernel = kernels.at({op.getKernelModuleName(), op.getKernelName()});
    auto sizes = kernel.getAttr<DenseI32ArrayAttr>("clusters");
    return sizes ? llvm::map_to_vector(
                       sizes.asArrayRef(),
                       [&](int32_t size) -> Value { return constantInt(builder, loc, 32, size); })
                 : SmallVector<Value>();
  }

  static Value toI32(OpBuilder &builder, Location loc, Value value) {
    if (value.getType().isInteger(32))
      return value;
    return LLVM::TruncOp::create(builder, loc, builder.getI32Type(), value);
  }

  /// Bytes of shared memory from the launch, else from the kernel table.
  Value sharedBytes(OpBuilder &builder, gpu::LaunchFuncOp op, OpAdaptor adaptor) const {
    if (Value size = adaptor.getDynamicSharedMemorySize())
      return toI32(builder, op.getLoc(), size);
    gpu::KernelMetadataAttr kernel = kernels.at({op.getKernelModuleName(), op.getKernelName()});
    auto bytes = kernel.getAttr<IntegerAttr>("dynamic_shared_bytes");
    return constantInt(builder, op.getLoc(), 32, bytes ? bytes.getInt() : 0);
  }

  /// An array of pointers to the parameter values. A tensor map is already the address of its 128
  /// bytes; everything else gets a stack slot.
  static Value parameterArray(OpBuilder &builder, gpu::LaunchFuncOp op, ValueRange values) {
    Location loc = op.getLoc();
    Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
    Value count = constantInt(builder, loc, 64, std::max<size_t>(values.size(), 1));
    Value array = LLVM::AllocaOp::create(builder, loc, ptr, ptr, count);
    Value one = constantInt(builder, loc, 64, 1);
    for (auto [index, value] : llvm::enumerate(values)) {
      Value address = value;
      if (!fp4::isPassedByAddress(op.getKernelOperand(index).getType())) {
        address = LLVM::AllocaOp::create(builder, loc, ptr, value.getType(), one);
        LLVM::StoreOp::create(builder, loc, value, address);
      }
      Value slot = LLVM::GEPOp::create(builder, loc, ptr, ptr, array,
                                       ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      LLVM::StoreOp::create(builder, loc, address, slot);
    }
    return array;
  }

  const fp4::KernelResourcesMap &kernels;
};

} // namespace

void fp4::populateGpuPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns,
                              const KernelResourcesMap &kernels) {
  patterns.add<AllocLowering, DeallocLowering, MemsetLowering, MemcpyLowering>(converter);
  patterns.add<LaunchLowering>(converter, kernels);
}
