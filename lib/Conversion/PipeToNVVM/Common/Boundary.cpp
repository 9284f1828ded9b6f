//===- Boundary.cpp - Kernel signature and scalar ops ---------------------===//
//
// gpu.func becomes llvm.func: buffers are global pointers, tensor maps are 128 bytes by value in
// parameter space (grid constants), or twice as many with a residue, and the launch requirements
// become attributes that the NVPTX backend (nvvm.*) and fp4-emit-kernels (fp4.*) read.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/ISA/TensorMap.h"

using namespace mlir;

namespace {

/// {byval, align 64, grid_constant}: the form in which the driver passes a CUtensorMap.
void markTensorMap(LLVM::LLVMFuncOp kernel, unsigned index, fp4::pipe::TensorMapType map) {
  Builder b(kernel.getContext());
  auto bytes = unsigned(fp4::hw::TensorMap::encodedBytes * uint64_t(map.getMaps()));
  kernel.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), bytes)));
  kernel.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
  kernel.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
}

struct LowerKernel : fp4::PipePattern<gpu::GPUFuncOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(gpu::GPUFuncOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getNumResults() != 0)
      return rewriter.notifyMatchFailure(op, "a kernel returns nothing");
    if (op.getNumWorkgroupAttributions() != 0 || op.getNumPrivateAttributions() != 0)
      return rewriter.notifyMatchFailure(op, "memory attributions are not part of pipe kernels");
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(getTypeConverter()->convertSignatureArgs(op.getArgumentTypes(), signature)))
      return rewriter.notifyMatchFailure(op, "an operand type has no lowering");
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()),
                                            signature.getConvertedTypes());
    auto kernel = LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getName(), type);
    if (op.isKernel()) {
      kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), rewriter.getUnitAttr());
      // gpu.launch_func on the host looks for this attribute.
      kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), rewriter.getUnitAttr());
    }
    rewriter.inlineRegionBefore(op.getBody(), kernel.getBody(), kernel.end());
    rewriter.applySignatureConversion(&kernel.getBody().front(), signature, getTypeConverter());
    for (auto [index, argument] : llvm::enumerate(op.getArgumentTypes()))
      if (auto map = dyn_cast<fp4::pipe::TensorMapType>(argument))
        markTensorMap(kernel, index, map);
    markLaunch(op, kernel);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Kernels whose clusters have two sizes get both from the launch, because PTX has no form for
  /// two.
  void markClusters(gpu::GPUFuncOp op, LLVM::LLVMFuncOp kernel) const {
    Builder b(op.getContext());
    auto [m, n] = state.cluster.shape;
    if (std::optional<fp4::hw::ClusterShape> fallback = fp4::pipe::fallbackOf(op)) {
      kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      b.getDenseI32ArrayAttr({0, 0, 0}));
      kernel->setAttr(NVVM::NVVMDialect::getClusterMaxBlocksAttrName(),
                      b.getI32IntegerAttr(int32_t(m * n)));
      kernel->setAttr("fp4.clusters",
                      b.getDenseI32ArrayAttr(
                          {int32_t(fallback->m), int32_t(fallback->n), int32_t(m), int32_t(n)}));
    } else if (auto size = op.getKnownClusterSizeAttr()) {
      kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), size);
    }
  }

  /// CTA and cluster size, CTAs per SM and dynamic shared memory.
  void markLaunch(gpu::GPUFuncOp op, LLVM::LLVMFuncOp kernel) const {
    Builder b(op.getContext());
    if (auto size = op.getKnownBlockSizeAttr())
      kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
    else if (state.numThreads)
      kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                      b.getDenseI32ArrayAttr({state.numThreads, 1, 1}));
    markClusters(op, kernel);
    for (StringRef name : {NVVM::NVVMDialect::getMinctasmAttrName(),
                           NVVM::NVVMDialect::getMaxnregAttrName()})
      if (Attribute value = op->getAttr(name))
        kernel->setAttr(name, value);
    // A kernel with tensor memory does not state that one CTA runs on an SM. Otherwise ptxas 13.0
    // has every load of an accumulator on its way at once, in all 255 registers, and spills
    // addresses.
    if (auto bytes = op->getAttrOfType<IntegerAttr>(fp4::pipe::PipeDialect::kSharedBytesAttr))
      kernel->setAttr("fp4.dynamic_shared_bytes", b.getI64IntegerAttr(bytes.getInt()));
  }
};

struct LowerReturn : OpConversionPattern<gpu::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(gpu::ReturnOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

/// The view of an argument becomes its address. Code that reads and writes through one with sizes
/// asks the operation for these (BufferLines.h). A view of a buffer of the host is no kernel code.
struct LowerView : OpConversionPattern<fp4::pipe::ViewOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(fp4::pipe::ViewOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<fp4::pipe::GlobalType>(op.getSource().getType()))
      return rewriter.notifyMatchFailure(op, "is a view of a buffer of the host");
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

struct LowerOpaque : fp4::PipePattern<fp4::pipe::OpaqueOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::OpaqueOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, fp4::computeHere(rewriter, op.getLoc(), adaptor.getValue()));
    return success();
  }
};

} // namespace

void fp4::populateBoundaryPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerKernel, LowerOpaque>(converter, patterns.getContext(), state);
  patterns.add<LowerReturn, LowerView>(converter, patterns.getContext());
}
