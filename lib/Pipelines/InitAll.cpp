//===- InitAll.cpp - Registration of everything fp4 has -------------------===//

#include "fp4/InitAll.h"

#include "fp4/Conversion/Fp4ToGPU/Passes.h"
#include "fp4/Conversion/Fp4ToPipe/Passes.h"
#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Plans/Passes.h"
#include "fp4/Conversion/LinalgToFp4/Passes.h"
#include "fp4/Conversion/PipeToNVVM/Passes.h"
#include "fp4/Conversion/StablehloToFp4/Passes.h"
#include "fp4/Conversion/TosaToFp4/Passes.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/Transforms/Bufferization.h"
#include "fp4/Dialect/Fp4/Transforms/Passes.h"
#include "fp4/Dialect/Fp4/Transforms/Tiling.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"
#include "fp4/Pipelines/Passes.h"
#include "fp4/Pipelines/Pipelines.h"
#include "fp4/Target/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;

void fp4::registerDialects(DialectRegistry &registry) {
  registry.insert<Fp4Dialect, pipe::PipeDialect>();
  registerBufferization(registry);
  registerTiling(registry);
  // Sizes of batches are those of what they are views of.
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
}

void fp4::registerPasses() {
  registerFP4ToGPUPasses();
  registerFP4TargetPasses();
  registerFP4ToPipePasses();
  registerFP4PlansPasses();
  registerFP4TransformsPasses();
  pipe::registerFP4PipeTransformsPasses();
  pipe::registerFP4PipeSchedulePasses();
  pipe::registerSchedulePipeline();
  registerFP4PipelinesPasses();
  registerHostToRuntimePasses();
  registerPipelines();
  registerFP4PipeToNVVMPasses();
  registerTosaToFP4Passes();
  registerLinalgToFP4Passes();
  registerStablehloToFP4Passes();
}

void fp4::registerUpstreamDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, gpu::GPUDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                  tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  func::registerInlinerExtension(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
}
