//===- Fp4ToGPU.cpp - Streaming fp4 operations to GPU kernels -------------===//
//
// 1. Collect the operations that stream, in program order.
// 2. Replace each by a kernel and its launch, by the lowering of its family.
//    Buffers meet the remaining tensors in unrealized conversion casts.
// 3. Erase what was replaced. Operations without a kernel are reported, all of them.
//
//===----------------------------------------------------------------------===//
#include "fp4/Conversion/Fp4ToGPU/Passes.h"

#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTFP4TOGPU
#include "fp4/Conversion/Fp4ToGPU/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

/// Returns true for prepacked weights for activations of e4m3.
bool isForBytes(TypedValue<RankedTensorType> tiles) {
  return tiles.getType().getDimSize(2) == fp4::hw::byteTileBytes;
}

/// Lowers an operation to the kernel of `context.plan`.
LogicalResult lowerToKernel(Operation *operation, fp4::LoweringContext &context) {
  if (context.isRowKernel)
    return fp4::lowerRows(operation, context);
  return TypeSwitch<Operation *, LogicalResult>(operation)
      .Case([&](fp4::AmaxOp op) { return fp4::lowerAmax(op, context); })
      .Case([&](fp4::HadamardOp op) { return fp4::lowerHadamard(op, context); })
      .Case([&](fp4::HadamardAmaxOp op) { return fp4::lowerHadamardAmax(op, context); })
      .Case([&](fp4::QuantizeOp op) {
        return op.hasF32Scales() ? fp4::lowerF32Quantize(op, context)
               : context.plan.family == fp4::KernelFamily::TileQuantize
                   ? fp4::lowerTileQuantize(op, context)
                   : fp4::lowerRowwiseQuantize(op, context);
      })
      .Case([&](fp4::DequantizeOp op) { return fp4::lowerDequantize(op, context); })
      .Case([&](fp4::SwizzleScalesOp op) { return fp4::lowerSwizzle(op, context); })
      .Case([&](fp4::UnswizzleScalesOp op) { return fp4::lowerUnswizzle(op, context); })
      .Case([&](fp4::StackScalesOp op) { return fp4::lowerStackScales(op, context); })
      .Case([&](fp4::InterleaveShardsOp op) { return fp4::lowerInterleaveShards(op, context); })
      .Case([&](fp4::PrepackOp op) {
        return isForBytes(op.getResult()) ? fp4::lowerPrepackBytes(op, context)
                                          : fp4::lowerPrepack(op, context);
      })
      .Case([&](fp4::UnprepackOp op) {
        return isForBytes(op.getInput()) ? fp4::lowerUnprepackBytes(op, context)
                                         : fp4::lowerUnprepack(op, context);
      })
      .Case([&](fp4::MatmulAlphaOp op) { return fp4::lowerMatmulAlpha(op, context); })
      .Case([&](fp4::ExpertOrderOp op) { return fp4::lowerExpertOrder(op, context); })
      .Case([&](fp4::AttentionOp op) { return fp4::lowerWarpAttention(op, context); })
      .Case([&](fp4::BlockScaledMatmulOp op) { return fp4::lowerGemv(op, context); })
      .Case([&](linalg::GenericOp op) { return fp4::lowerElementwise(op, context); })
      .Default([](Operation *) { return failure(); });
}

LogicalResult lower(Operation *op, fp4::LoweringContext &context) {
  return fp4::rowCasesOf(op).empty() ? lowerToKernel(op, context)
                                     : fp4::lowerRowCases(op, context, lowerToKernel);
}

/// Erases `op`, with the tensors that only it would write to: empty, or of one number.
void eraseWithInits(Operation *op) {
  SmallVector<Operation *> inits;
  for (Value operand : op->getOperands())
    if (operand.hasOneUse() && isa_and_present<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(
                                   operand.getDefiningOp()))
      inits.push_back(operand.getDefiningOp());
  op->erase();
  for (Operation *init : inits)
    isa<linalg::FillOp>(init) ? eraseWithInits(init) : init->erase();
}

/// Returns true when the kernel of `reader`, or of what reads it in turn where it is a prologue,
/// is `first` or runs behind it.
bool isStoredFor(Operation *reader, Operation *first) {
  if (reader->hasAttr(fp4::kPrologueAttr))
    return llvm::all_of(reader->getUsers(),
                        [&](Operation *user) { return isStoredFor(user, first); });
  auto quantize = dyn_cast<fp4::QuantizeOp>(first);
  if (quantize && fp4::amaxOfRows(quantize) == reader) // the same kernel computes it
    return true;
  return reader == first || fp4::isBehind(reader, first);
}

/// Why a prologue cannot be read by the operation of `use`, which neither computes it nor finds it
/// in memory; empty where it does.
std::string whyNotRead(linalg::GenericOp prologue, OpOperand &use) {
  if (!fp4::isStored(prologue))
    return fp4::whyNotReader(use);
  Operation *first = fp4::firstKernelOf(prologue);
  if (!first || !fp4::isRowKernel(first))
    return "no kernel computes and stores it";
  if (isStoredFor(use.getOwner(), first))
    return "";
  return ("'" + use.getOwner()->getName().getStringRef() +
          "' reads it before the kernel that stores it")
      .str();
}

/// Checks that every reader of a prologue computes it, or reads it from memory where it is stored.
LogicalResult checkReaders(linalg::GenericOp prologue) {
  for (OpOperand &use : prologue->getUses()) {
    std::string reason = whyNotRead(prologue, use);
    if (reason.empty())
      continue;
    InFlightDiagnostic diag = prologue.emitOpError("must have readers that compute it, but ")
                              << reason;
    diag.attachNote() << "remove the attribute " << fp4::kPrologueAttr
                      << ", and the operation becomes a kernel of its own";
    return diag;
  }
  return success();
}

/// Checks that a kernel behind an fp4.top_k computes it.
LogicalResult checkReaders(fp4::TopKOp op) {
  std::string reason = fp4::whyNotBefore(op);
  if (reason.empty())
    return success();
  InFlightDiagnostic diag = op.emitOpError("must have readers that compute it, but ") << reason;
  diag.attachNote() << "remove the attribute " << fp4::kPrologueAttr
                    << ", and the operation becomes a kernel of its own";
  return diag;
}

/// Checks the readers of all prologues. The readers of an amax are checked where a quantizer is the
/// first: it reports what it cannot compute.
LogicalResult checkPrologues(ModuleOp module, ArrayRef<Operation *> prologues) {
  auto check = [](Operation *op) {
    auto topK = dyn_cast<fp4::TopKOp>(op);
    return succeeded(topK ? checkReaders(topK) : checkReaders(cast<linalg::GenericOp>(op)));
  };
  if (!llvm::all_of(prologues, check))
    return failure();
  WalkResult result = module.walk([](fp4::AmaxOp amax) {
    if (!amax->hasAttr(fp4::kPrologueAttr) || fp4::quantizerOfRows(amax))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        amax.emitOpError("must have readers that compute it, but no quantizer "
                         "along rows of the same input is the first of them");
    diag.attachNote() << "remove the attribute " << fp4::kPrologueAttr
                      << ", and the operation becomes a kernel of its own";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The operations with the attribute that are erased behind their readers.
SmallVector<Operation *> allPrologues(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<linalg::GenericOp, fp4::TopKOp>(op) && op->hasAttr(fp4::kPrologueAttr))
      found.push_back(op);
  });
  return found;
}

/// Why no kernel reads the rows of a gather for its readers.
std::string whyNotRead(tensor::GatherOp op) {
  std::string reason = fp4::whyNotGather(op);
  for (Operation *user : op->getUsers())
    if (reason.empty() && !isa<linalg::GenericOp, tensor::DimOp>(user))
      reason =
          ("'" + user->getName().getStringRef() +
           "' reads it, and fp4-generalize-elementwise has made no elementwise operation of it")
              .str();
  return reason;
}

/// Why the kernel of its source does not do a scatter.
std::string whyNotWritten(tensor::ScatterOp op) {
  std::string reason = fp4::whyNotScatter(op);
  Operation *source = op.getSource().getDefiningOp();
  if (reason.empty() && !isa<linalg::GenericOp, fp4::QuantizeOp>(source))
    reason = ("'" + source->getName().getStringRef() + "' does not scatter what it computes").str();
  return reason;
}

/// Checks operations of a kind that kernels beside them do; `note` says what kernels do.
template <typename OpT>
LogicalResult checkMoves(ModuleOp module, std::string (*whyNot)(OpT), StringRef note) {
  WalkResult result = module.walk([&](OpT op) {
    std::string reason = whyNot(op);
    if (reason.empty())
      return WalkResult::advance();
    fp4::withNote(op.emitOpError("has no kernel: ") << reason, note);
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Checks that kernels do all gathers and scatters.
LogicalResult checkMoves(ModuleOp module) {
  return success(
      succeeded(checkMoves<tensor::GatherOp>(
          module, whyNotRead,
          "kernels gather rows of a matrix with static columns by row numbers in a tensor of M x 1 "
          "i64, gather_dims([0])")) &&
      succeeded(checkMoves<tensor::ScatterOp>(
          module, whyNotWritten,
          "kernels scatter rows into a tensor.empty of static sizes by row numbers in a tensor of "
          "M x 1 i64, scatter_dims([0]) unique")));
}

/// Erases the scatters of results that the kernel of `op` has written.
void eraseScatters(Operation *op) {
  for (Value result : op->getResults())
    if (tensor::ScatterOp scatter = fp4::scatterOf(result)) {
      Operation *empty = scatter.getDest().getDefiningOp();
      scatter->erase();
      if (empty->use_empty())
        empty->erase();
    }
}

/// Erases what the kernels of readers have computed: prologues, gathers and bundles.
void eraseComputed(ModuleOp module, ArrayRef<Operation *> prologues) {
  for (Operation *op : llvm::reverse(prologues))
    if (op->use_empty())
      eraseWithInits(op);
  module.walk([](tensor::GatherOp op) {
    if (op->use_empty())
      op->erase();
  });
  fp4::eraseUnusedBundles(module);
}

struct ConvertFp4ToGPU : fp4::impl::ConvertFp4ToGPUBase<ConvertFp4ToGPU> {
  using ConvertFp4ToGPUBase::ConvertFp4ToGPUBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> operations =
        fp4::kernelOperations(module, [](Operation *op) { return !fp4::hasTileKernel(op); });
    SmallVector<Operation *> prologues = allPrologues(module);
    if (failed(checkPrologues(module, prologues)) || failed(checkMoves(module)))
      return signalPassFailure();
    if (operations.empty())
      return;
    FailureOr<fp4::hw::TargetModel> target = fp4::targetOf(operations.front());
    if (failed(target))
      return signalPassFailure();
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), UnitAttr::get(&getContext()));
    SymbolTable symbols(module);
    fp4::LoweringContext context{symbols, *target, noArithmetic};
    // All plans are read before an operation is erased: the fit of a plan depends on its operands.
    auto plans =
        llvm::map_to_vector<1>(operations, [&](Operation *op) { return fp4::planOf(op, *target); });
    auto areRowKernels = llvm::map_to_vector<1>(operations, fp4::isRowKernel);
    for (auto [op, plan, isRowKernel] : llvm::zip_equal(operations, plans, areRowKernels)) {
      if (succeeded(plan))
        context.plan = *plan;
      context.isRowKernel = isRowKernel;
      context.buffers.clear(); // of results that are erased
      auto quantize = dyn_cast<fp4::QuantizeOp>(op);
      fp4::AmaxOp amax = quantize ? fp4::amaxOfRows(quantize) : fp4::AmaxOp();
      if (failed(plan) || failed(lower(op, context))) {
        signalPassFailure();
        continue;
      }
      eraseScatters(op);
      eraseWithInits(op);
      if (amax)
        amax->erase();
    }
    eraseComputed(module, prologues);
  }
};

} // namespace
