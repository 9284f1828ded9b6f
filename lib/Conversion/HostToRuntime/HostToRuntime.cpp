//===- HostToRuntime.cpp - Host functions to LLVM and runtime calls -------===//
//
// 1. The kernel table of every gpu.binary is read, and the binary becomes an fp4rt_module constant.
// 2. One dialect conversion lowers functions, arithmetic and memrefs with upstream's patterns, and
//    gpu and pipe host operations to calls of fp4-c/Runtime.h with fp4's patterns.
// 3. Every public function gets its entry point; all else becomes internal.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/HostToRuntime/Passes.h"

#include "EntryPoints.h"
#include "Patterns.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTHOSTTORUNTIME
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

struct ConvertHostToRuntime : fp4::impl::ConvertHostToRuntimeBase<ConvertHostToRuntime> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    fp4::KernelResourcesMap kernels = fp4::collectKernels(module);
    for (auto kernelModule : module.getOps<gpu::GPUModuleOp>()) {
      kernelModule.emitError("must be compiled before the host is lowered").attachNote()
          << "run fp4-emit-kernels before convert-host-to-runtime";
      return signalPassFailure();
    }
    for (auto binary : llvm::to_vector(module.getOps<gpu::BinaryOp>())) {
      if (failed(fp4::convertKernelBinary(binary, module)))
        return signalPassFailure();
      binary.erase();
      ++numModules;
    }
    fp4::EntryPoints entryPoints(module);
    if (failed(lower(module, kernels)))
      return signalPassFailure();
    entryPoints.create();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }

private:
  LogicalResult lower(ModuleOp module, const fp4::KernelResourcesMap &kernels) {
    LLVMTypeConverter converter(&getContext());
    RewritePatternSet patterns(&getContext());
    fp4::populatePipeHostPatterns(converter, patterns);
    fp4::populateGpuPatterns(converter, patterns, kernels);
    populateSCFToControlFlowConversionPatterns(patterns); // a kernel by the sizes of the call
    populateAffineToStdConversionPatterns(patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    memref::populateExpandStridedMetadataPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return failure();
    return success();
  }
};

} // namespace
