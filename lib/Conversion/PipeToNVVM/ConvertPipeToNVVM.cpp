//===- ConvertPipeToNVVM.cpp - Pipe and streaming kernels to NVVM ---------===//
//
// 1. Per kernel: emit prologue and teardown, then lower the pipe ops, one pattern per op, and turn
//    the gpu.func into an llvm.func. Room Common has the patterns that every kernel may need, and
//    each core has a room of its own.
// 2. Structured control flow and multi-dimensional vectors with upstream's passes.
// 3. Everything that is left (arith, math, cf, vector, gpu index ops) in one full conversion.
// 4. NVVM ops without an LLVM intrinsic become inline assembly.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Common/Fragments.h"
#include "Common/Lowering.h"
#include "fp4/Conversion/PipeToNVVM/Passes.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTPIPETONVVM
#include "fp4/Conversion/PipeToNVVM/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

struct ConvertPipeToNVVM : fp4::impl::ConvertPipeToNVVMBase<ConvertPipeToNVVM> {
  LogicalResult report(Operation *op, const fp4::Error &error) {
    InFlightDiagnostic diagnostic = op->emitError() << error.message;
    if (!error.note.empty())
      diagnostic.attachNote() << error.note;
    return failure();
  }

  /// Checks that every tile has a place and that nothing of the sequential or specialized form is
  /// left.
  LogicalResult checkForm(gpu::GPUFuncOp kernel) {
    WalkResult result = kernel.walk([&](Operation *op) {
      bool placed =
          llvm::TypeSwitch<Operation *, bool>(op)
              .Case([](fp4::pipe::AccumulatorOp sums) { return bool(sums.getFragmentType()); })
              .Case([](fp4::pipe::ChannelOp channel) { return channel.isPipelined(); })
              .Case([](fp4::pipe::StageFillerOpInterface op) {
                return op.getSlot() || !op.getFilledTile();
              })
              .Case([](fp4::pipe::TmemTileOpInterface op) { return bool(op.getFirstColumn()); })
              .Case([&](fp4::pipe::NextWorkOp) {
                return kernel->hasAttr(fp4::pipe::PipeDialect::kWorkRingAttr);
              })
              .Case([](fp4::pipe::ClusterReductionOpInterface op) {
                return op.getReductionPlace().has_value();
              })
              .Case([](fp4::pipe::StoreOp op) { return !op.getStaged() || op.getPlace(); })
              .Case([](fp4::pipe::GatherRowsOp op) { return op.getPlace().has_value(); })
              .Case([](fp4::pipe::QuantizeBlocksOp op) {
                return !op.getStagedBytes() || op.getPlace();
              })
              .Default(true);
      auto region = dyn_cast<fp4::pipe::RoleRegionOp>(op);
      if (isa<fp4::pipe::ForEachWorkOp>(op) ||
          (region && fp4::pipe::hasScaleWarp(region.getRole()))) {
        fp4::withNote(op->emitOpError("expects the scheduled form"), "run pipe-schedule first");
        return WalkResult::interrupt();
      }
      if (placed)
        return WalkResult::advance();
      fp4::withNote(op->emitOpError("expects the pipelined form"), "run pipe-pipeline first");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Checks that everything the kernel uses exists on the target and fits into it.
  LogicalResult checkKernel(gpu::GPUFuncOp kernel, const fp4::hw::TargetModel &model) {
    auto integer = [&](StringRef name) {
      auto attr = kernel->getAttrOfType<IntegerAttr>(name);
      return attr ? attr.getInt() : 0;
    };
    if (integer(fp4::pipe::PipeDialect::kTmemColumnsAttr) != 0)
      if (fp4::Status status = fp4::route::requireCore(model, fp4::route::Core::Tcgen05); !status)
        return report(kernel, status.error());
    bool usesTmem = false, drivesTensor = false;
    for (auto channel : kernel.getOps<fp4::pipe::ChannelOp>())
      usesTmem |= !channel.getType().isShared();
    for (auto role : kernel.getOps<fp4::pipe::RoleRegionOp>())
      drivesTensor |= role.getRole().drives(fp4::pipe::Engine::Tensor);
    kernel.walk([&](fp4::pipe::TmemTileOpInterface) { usesTmem = true; });
    if (usesTmem && (!drivesTensor || integer(fp4::pipe::PipeDialect::kTmemColumnsAttr) == 0))
      return fp4::withNote(
          kernel.emitError() << "a kernel with tiles in tensor memory must have a role that "
                                "drives tensor, which allocates it, and the attribute "
                             << fp4::pipe::PipeDialect::kTmemColumnsAttr,
          "pipe-specialize-warps makes such a role, and pipe-pipeline sets the attribute");
    int64_t shared = integer(fp4::pipe::PipeDialect::kSharedBytesAttr);
    if (shared > model.limits.sharedBytesPerCta)
      return fp4::withNote(kernel.emitError()
                               << "expects at most " << model.limits.sharedBytesPerCta
                               << " bytes of shared memory on " << std::string(model.name)
                               << ", but got " << shared,
                           "take fewer stages, or a smaller tile in the kernel's plan");
    return success();
  }

  /// Sets the registers of the launch where roles ask for registers: the launch gives every thread
  /// an equal share of the SM's, and the roles redistribute them. Warps get registers by fours,
  /// whether there are four or not. Returns that share, 0 where no role asks.
  FailureOr<int32_t> setLaunchRegisters(gpu::GPUFuncOp kernel, const fp4::hw::TargetModel &model) {
    int32_t threads = 0, asking = 0, wanted = 0;
    for (auto region : kernel.getOps<fp4::pipe::RoleRegionOp>()) {
      fp4::pipe::RoleAttr role = region.getRole();
      threads = std::max(threads, 32 * role.getEndWarp());
      asking += role.getRegisters() ? role.getNumThreads() : 0;
      wanted += role.getRegisters() * role.getNumThreads();
    }
    if (wanted == 0)
      return 0;
    int32_t counted = int32_t(llvm::alignTo(threads, 4 * 32));
    int32_t share =
        std::min(model.limits.registersPerSM / counted, model.limits.maxRegistersPerThread) / 8 * 8;
    // Warps without a request, or without a role, keep the share of the launch. A role waits
    // forever for more registers than there are.
    wanted += share * (threads - asking);
    if (wanted > share * threads)
      return fp4::withNote(kernel.emitError()
                               << "roles must ask for at most the " << share * threads
                               << " registers of the launch on " << std::string(model.name)
                               << ", but ask for " << wanted,
                           "write smaller 'registers' at the roles, or launch fewer warps");
    kernel->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                    Builder(&getContext()).getI32IntegerAttr(share));
    return share;
  }

  static void populatePatterns(const fp4::PipeTypeConverter &converter, RewritePatternSet &patterns,
                               const fp4::KernelState &state) {
    fp4::populateBoundaryPatterns(converter, patterns, state);
    fp4::populateRegisterPatterns(converter, patterns);
    fp4::populateRolePatterns(converter, patterns, state);
    fp4::populateChannelPatterns(converter, patterns, state);
    fp4::populateLoadPatterns(converter, patterns, state);
    fp4::populateResiduePatterns(converter, patterns, state);
    fp4::populateMmaPatterns(converter, patterns, state);
    fp4::populateReadPatterns(converter, patterns, state);
    fp4::populateFloatMmaPatterns(converter, patterns, state);
    fp4::populateTransposePatterns(converter, patterns, state);
    fp4::populateFragmentRowPatterns(converter, patterns, state);
    fp4::populateFragmentPatterns(converter, patterns, state);
    fp4::populateDequantizedPatterns(converter, patterns, state);
    fp4::populateElementPatterns(converter, patterns, state);
    fp4::populatePrepackedPatterns(converter, patterns, state);
    fp4::populatePrepackedBytePatterns(converter, patterns, state);
    fp4::populateResidentBytePatterns(converter, patterns, state);
    fp4::populatePrepackedFewPatterns(converter, patterns, state);
    fp4::populatePromotionPatterns(converter, patterns, state);
    fp4::populateLanePromotionPatterns(converter, patterns, state);
    fp4::populateWeightLanePatterns(converter, patterns, state);
    fp4::populateWarpMmaPatterns(converter, patterns, state);
    fp4::populateWarpSharedPatterns(converter, patterns, state);
    fp4::populateGatherPatterns(converter, patterns, state);
    fp4::populateQuantizePatterns(converter, patterns, state);
    fp4::populateWorkPatterns(converter, patterns, state);
    fp4::populateEpiloguePatterns(converter, patterns, state);
    fp4::populateResultPatterns(converter, patterns, state);
    fp4::populateStagedStorePatterns(converter, patterns, state);
    fp4::populateClearRowsPatterns(converter, patterns, state);
    fp4::populateCountPartialPatterns(converter, patterns, state);
    fp4::populateReduceFragmentPatterns(converter, patterns, state);
    fp4::populateReduceTmemPatterns(converter, patterns, state);
  }

  static bool promotes(gpu::GPUFuncOp kernel) {
    auto stop = [](fp4::pipe::PromoteOp) { return WalkResult::interrupt(); };
    return kernel.walk(stop).wasInterrupted();
  }

  /// Rejects ops that must be lowered before kernels are, and pipe ops outside of kernels, for
  /// which there is no lowering.
  static LogicalResult checkDialects(gpu::GPUModuleOp module) {
    WalkResult result = module.walk([](Operation *op) {
      if (isa_and_present<fp4::Fp4Dialect>(op->getDialect())) {
        fp4::withNote(op->emitOpError("must be lowered to a kernel of its own first"),
                      "run fp4-plan-kernels, convert-fp4-to-gpu and convert-fp4-to-pipe on the "
                      "function that calls it");
        return WalkResult::interrupt();
      }
      bool inKernel = bool(op->getParentOfType<gpu::GPUFuncOp>());
      if (inKernel || !isa_and_present<fp4::pipe::PipeDialect>(op->getDialect()))
        return WalkResult::advance();
      fp4::withNote(op->emitOpError("must be in a gpu.func"),
                    "convert-pipe-to-nvvm has lowered this function already; run it on the whole "
                    "kernel");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Channels of scope cluster and tiles of a pair need the rank of the CTA, which only a kernel of
  /// clusters has.
  LogicalResult checkCluster(gpu::GPUFuncOp kernel) {
    if (fp4::pipe::clusterOf(kernel).size() > 1)
      return success();
    WalkResult result = kernel.walk([](Operation *op) {
      auto channel = dyn_cast<fp4::pipe::ChannelOp>(op);
      if (!(channel && channel.isCluster()) && !fp4::pipe::makesTileOfPair(op))
        return WalkResult::advance();
      fp4::withNote(op->emitOpError("must be in a kernel of clusters"),
                    "write known_cluster_size = array<i32: 2, 1, 1> at the gpu.func");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult lowerKernel(gpu::GPUFuncOp kernel, const fp4::hw::TargetModel &model) {
    if (failed(fp4::pipe::verifyInRoles(kernel)) || failed(checkForm(kernel)) ||
        failed(checkCluster(kernel)) || failed(checkKernel(kernel, model)))
      return failure();
    FailureOr<int32_t> registers = setLaunchRegisters(kernel, model);
    if (failed(registers))
      return failure();
    if (failed(fp4::takeVectors(kernel)))
      return failure();
    fp4::pinSizes(kernel);
    fp4::KernelState state = fp4::emitPrologue(kernel, model);
    state.registers.launch = *registers;
    state.facts.hasSizes = *registers && fp4::hasSizes(kernel);
    state.facts.hidesPlaces = state.facts.hasSizes && !promotes(kernel);
    if (failed(fp4::takeTurns(kernel, state)))
      return failure();
    SmallVector<Value> bases = fp4::emitOwnBases(kernel, state);
    fp4::PipeTypeConverter converter;
    RewritePatternSet patterns(&getContext());
    populatePatterns(converter, patterns, state);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<fp4::pipe::PipeDialect>();
    target.addLegalOp<fp4::pipe::StageOfOp>(); // until every use of a stage is lowered
    target.addIllegalOp<gpu::GPUFuncOp, gpu::ReturnOp>();
    target.addDynamicallyLegalOp<math::Exp2Op, math::Log2Op, arith::DivFOp>(
        [](Operation *op) { return !fp4::isApproximate(op); });
    target.addDynamicallyLegalOp<vector::BitCastOp, vector::ShuffleOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    if (failed(applyPartialConversion(kernel, target, std::move(patterns))))
      return failure();
    fp4::useOwnBases(bases, state);
    return success();
  }

  /// Runs step 3 of the file comment.
  LogicalResult lowerToLLVM(gpu::GPUModuleOp module) {
    LLVMTypeConverter converter(&getContext());
    configureGpuToNVVMTypeConverter(converter);
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    // Patterns of math come before upstream's calls of libdevice, which is not linked: math stays
    // LLVM intrinsics.
    populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1P=*/true,
                                         /*benefit=*/2);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    return applyFullConversion(module, target, std::move(patterns));
  }

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    FailureOr<fp4::hw::TargetModel> model = fp4::targetOf(module);
    if (failed(model) || failed(checkDialects(module)))
      return signalPassFailure();
    for (auto kernel : llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>()))
      if (failed(lowerKernel(kernel, *model)))
        return signalPassFailure();
    module.walk([](fp4::pipe::StageOfOp stage) {
      stage.replaceAllUsesWith(stage.getIteration());
      stage.erase();
    });
    OpPassManager structured(gpu::GPUModuleOp::getOperationName());
    structured.addPass(createReconcileUnrealizedCastsPass());
    structured.addPass(createSCFToControlFlowPass());
    structured.addPass(createConvertVectorToLLVMPass());
    OpPassManager cleanup(gpu::GPUModuleOp::getOperationName());
    cleanup.addPass(createConvertNVVMToLLVMPass());
    cleanup.addPass(createReconcileUnrealizedCastsPass());
    if (failed(runPipeline(structured, module)) || failed(lowerToLLVM(module)) ||
        failed(runPipeline(cleanup, module)))
      return signalPassFailure();
  }
};

} // namespace
